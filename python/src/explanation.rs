//! The reasons for an answer: a table of them, and a picture of their paths.

use flock_kg::explain::svg;
use flock_kg::records::Column;
use pyo3::prelude::*;
use serde_json::Value;

use crate::fault::Fault;
use crate::objects::{object, value};
use crate::table::{About, Table};

/// Why an answer has its score. In a notebook it shows its paths as a picture.
#[pyclass(frozen, module = "flock_kg")]
pub struct Explanation {
    info: Value,
    picture: String,
    text: String,
    reasons: Py<Table>,
}

/// A picture that is no wider than the page of a notebook.
pub fn fitted(svg: &str) -> String {
    svg.replacen("<svg ", "<svg style=\"max-width:100%;height:auto\" ", 1)
}

/// An explanation that needs no graph any more and no interpreter yet.
pub struct Told {
    info: Value,
    picture: String,
    text: String,
    reasons: Table,
}

impl Told {
    pub fn new(e: &flock_kg::Explanation<'_>) -> Result<Told, Fault> {
        let show = |name: &str| e.show(name).to_string();
        let title = format!("{}  →  {}", e.query.map(show).join("  "), show(e.answer));
        let columns = vec![
            Column::integer("rank"),
            Column::number("share").digits(3),
            Column::integer("count"),
            Column::integer("paths"),
            Column::integer("steps"),
            Column::text("pattern"),
            Column::text("reason"),
        ];
        let info = value(e)?;
        let quiet = ["paths", "steps", "pattern"].map(String::from).to_vec();
        let about = About { title: title.clone(), quiet, info: info.clone(), ..About::default() };
        let reasons = Table::build(columns, about, |out| {
            for (rank, r) in (1u32..).zip(&e.reasons) {
                out.row(&[
                    rank.into(),
                    r.share.into(),
                    r.count.into(),
                    r.paths.into(),
                    r.steps.len().into(),
                    r.pattern(show).into(),
                    r.line(show).into(),
                ])?;
            }
            Ok(())
        })?;
        let mut text = format!(
            "{title}\nlogit {:+.3}, {} {:.4}, {} passes, n = {}, seed {}",
            e.logit,
            e.probability_from.title(),
            e.probability,
            e.passes,
            e.walks,
            e.seed
        );
        for r in &e.reasons {
            text += &format!("\n{:.3}  {}", r.share, r.brief(show));
        }
        if let Some(d) = &e.deletion {
            let (count, edges) = (d.edges.len(), if d.edges.len() == 1 { "edge" } else { "edges" });
            text += &format!("\nwithout the {count} {edges} of the best reasons the logit falls by {:.3}", d.fall);
            text += &d.random_mean.map_or(String::new(), |mean| format!("; without as many random ones by {mean:.3}"));
        }
        Ok(Told { info, picture: svg(e, show), text, reasons })
    }

    pub fn into_object(self, py: Python<'_>) -> PyResult<Explanation> {
        let Told { info, picture, text, reasons } = self;
        Ok(Explanation { info, picture, text, reasons: Py::new(py, reasons)? })
    }
}

#[pymethods]
impl Explanation {
    /// Everything that is known of it.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.info)
    }

    /// The reasons, the best first: share, count, pattern, and a path.
    #[getter]
    fn reasons(&self, py: Python<'_>) -> Py<Table> {
        self.reasons.clone_ref(py)
    }

    /// The mean logit of the answer.
    #[getter]
    fn logit(&self) -> f64 {
        self.info.get("logit").and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// The logit as a probability, or as a score if there is no calibration.
    #[getter]
    fn probability(&self) -> f64 {
        self.info.get("probability").and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// Whether the graph has the triple; it was then hidden from the walks.
    #[getter]
    fn known(&self) -> bool {
        self.info.get("known").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The paths as a picture.
    #[getter]
    fn svg(&self) -> &str {
        &self.picture
    }

    fn __repr__(&self) -> &str {
        &self.text
    }

    fn _repr_svg_(&self) -> String {
        fitted(&self.picture)
    }
}
