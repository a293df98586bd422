//! Calibrations: what makes probabilities of logits.

use std::path::PathBuf;

use flock_kg::Task;
use flock_kg::calibrate::{Calibrations, svg};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::Value;

use crate::explanation::fitted;
use crate::fault::Fault;
use crate::objects::object;

/// What makes probabilities of logits on one graph.
#[pyclass(frozen, module = "flock_kg")]
pub struct Calibration {
    pub kept: Calibrations,
    info: Value,
    picture: Option<String>,
    beside: Option<PathBuf>,
}

impl Calibration {
    /// What there is; nothing if there is none.
    pub fn of(kept: &Calibrations, beside: Option<PathBuf>) -> Option<Calibration> {
        if kept.of(Task::Entity).is_none() && kept.of(Task::Relation).is_none() {
            return None;
        }
        let mut info = serde_json::Map::new();
        for task in [Task::Entity, Task::Relation] {
            let Some(c) = kept.of(task) else { continue };
            let mut about = serde_json::to_value(c).unwrap_or_default();
            about.as_object_mut().map(|fields| fields.remove("map"));
            info.insert(task.to_string(), about);
        }
        Some(Calibration { kept: kept.clone(), info: Value::Object(info), picture: None, beside })
    }

    /// The same with the diagram of a calibration that was just made.
    pub fn with_picture(mut self, title: &str, report: &flock_kg::calibrate::CalibrationReport) -> Calibration {
        self.picture = Some(svg(title, &report.before, &report.after));
        self
    }
}

#[pymethods]
impl Calibration {
    /// Reads a file that :meth:`save` or ``flock-kg calibrate`` has written.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Calibration> {
        let kept = Calibrations::read_file(&path).map_err(|e| Fault::from(e).raise(py))?;
        Calibration::of(&kept, Some(path.clone()))
            .ok_or_else(|| Fault::other(format!("{}: no calibration in it", path.display())).raise(py))
    }

    /// How it was made and how well it fits, for each task.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.info)
    }

    /// The reliability diagram, if it was just made.
    #[getter]
    fn svg(&self) -> Option<&str> {
        self.picture.as_deref()
    }

    /// Writes it to a file, by default beside the graph's file, and returns the path.
    #[pyo3(signature = (path=None))]
    fn save(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<PathBuf> {
        let Some(path) = path.or_else(|| self.beside.clone()) else {
            return Err(
                Fault::argument("the graph is from no file, so there is no place beside it", "save(path)").raise(py)
            );
        };
        self.kept.write(&path).map_err(|e| Fault::from(e).raise(py))?;
        Ok(path)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("flock_kg._flock_kg")?.getattr("_calibration_from_state")?;
        let beside = self.beside.as_ref().map(|path| path.display().to_string());
        Ok((make, (self.kept.to_text(), self.picture.clone(), beside).into_pyobject(py)?))
    }

    fn __repr__(&self) -> String {
        let one = |task: Task| {
            let c = self.kept.of(task)?;
            Some(format!(
                "{task}: expected error {:.4} before, {:.4} after, {} questions, n = {}, P = {}",
                c.error_before, c.error_after, c.queries, c.walks, c.passes
            ))
        };
        let tasks: Vec<String> = [Task::Entity, Task::Relation].into_iter().filter_map(one).collect();
        format!("Calibration({})", tasks.join("; "))
    }

    fn _repr_svg_(&self) -> Option<String> {
        self.picture.as_deref().map(fitted)
    }
}

/// A calibration from its pickle.
#[pyfunction]
pub fn _calibration_from_state(
    py: Python<'_>,
    text: &str,
    picture: Option<String>,
    beside: Option<PathBuf>,
) -> PyResult<Calibration> {
    let kept = Calibrations::from_text("pickle", text).map_err(|e| Fault::from(e).raise(py))?;
    let made = Calibration::of(&kept, beside).map(|made| Calibration { picture, ..made });
    made.ok_or_else(|| Fault::other("this is no pickled calibration").raise(py))
}
