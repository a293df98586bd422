//! Models: the bundled ones, files, or what fine-tuning made.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flock_kg::bundled;
use flock_kg::calibrate::DefaultCalibrations;
use flock_kg::model::checkpoint::Checkpoint;
use flock_kg::model::files::{sha256_hex, write_atomically};
use flock_kg::{Precision, Predictor, Task};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use serde_json::Value;

use crate::fault::Fault;
use crate::objects::object;

/// One pretrained model for any graph: it answers questions, finds missing links and gives reasons.
///
/// >>> import flock_kg as fk
/// >>> model = fk.Model.bundled()
/// >>> model.tasks
/// ['entity', 'relation']
///
/// Answers depend on the graph, the question, ``seed``, ``passes`` and ``walks`` alone: the same on any number of threads,
/// in a batch or alone, and the same as those of the ``flock-kg`` command. Long calls release the interpreter's lock, stop
/// on Ctrl-C, and show their progress with ``progress=True`` (or call ``progress(done, total)``).
#[pyclass(frozen, module = "flock_kg")]
pub struct Model {
    sources: Vec<Source>,
    pub threads: Option<usize>,
    pub precision: Precision,
    /// Whether a pickle has the paths instead of the weights.
    by_path: bool,
    /// What came of the fine-tuning that made it.
    training: Option<Value>,
    open: Mutex<Opened>,
}

/// As for the command: far more than help.
const MOST_THREADS: usize = 1024;

/// A predictor, and the process whose threads it has.
struct Opened {
    process: u32,
    predictor: Arc<Predictor>,
}

/// A checkpoint, as it was when it was read. With none, the bundled models are meant.
#[derive(Clone)]
struct Source {
    /// Its file, or what fine-tuning calls it.
    origin: String,
    bytes: Arc<Vec<u8>>,
    /// Its default calibrations, as the text of their file.
    defaults: Option<String>,
}

impl Source {
    fn read(path: &Path) -> Result<Source, Fault> {
        let origin = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Fault::missing(format!("{origin}: no such file")),
            _ => Fault::model(format!("{origin}: cannot read: {e}")),
        })?;
        let file = DefaultCalibrations::path(path);
        let defaults = match std::fs::read_to_string(&file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|e| Fault::other(format!("{}: cannot read: {e}", file.display())))?),
        };
        Ok(Source { origin, bytes: Arc::new(bytes), defaults })
    }
}

impl Model {
    fn new(
        sources: Vec<Source>,
        threads: Option<usize>,
        precision: Option<Precision>,
        by_path: bool,
    ) -> Result<Model, Fault> {
        if threads.is_some_and(|threads| threads == 0 || threads > MOST_THREADS) {
            let message = format!("found threads={}", threads.unwrap_or(0));
            return Err(Fault::argument(message, format!("threads= from 1 to {MOST_THREADS}, or None for all")));
        }
        let predictor = Arc::new(open(&sources, threads, precision)?);
        let precision = predictor.engine().precision();
        let opened = Opened { process: std::process::id(), predictor };
        Ok(Model { sources, threads, precision, by_path, training: None, open: Mutex::new(opened) })
    }

    /// This model with another one for a task, which fine-tuning has made and kept in a file.
    pub fn tuned(&self, task: Task, file: &Path, origin: String, training: Value) -> Result<Model, Fault> {
        let other = if task == Task::Entity { Task::Relation } else { Task::Entity };
        let mut sources = vec![Source { origin, ..Source::read(file)? }];
        if self.sources.is_empty() {
            let bytes = Arc::new(bundled::bundled(other).to_vec());
            sources.push(Source { origin: bundled::ORIGIN.to_string(), bytes, defaults: None });
        }
        for source in &self.sources {
            if Checkpoint::from_bytes(&source.origin, &source.bytes)?.meta().task == other {
                sources.push(source.clone());
            }
        }
        let made = Model::new(sources, self.threads, Some(self.precision), false)?;
        Ok(Model { training: Some(training), ..made })
    }

    /// The models and their threads. In a process that was forked from the one that made them, the threads are gone: they are made
    /// anew there.
    pub fn predictor(&self) -> Result<Arc<Predictor>, Fault> {
        let mut opened = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.process != std::process::id() {
            let predictor = Arc::new(open(&self.sources, self.threads, Some(self.precision))?);
            // Its threads do not exist here, so there is nobody to end them.
            std::mem::forget(std::mem::replace(&mut opened.predictor, predictor));
            opened.process = std::process::id();
        }
        Ok(opened.predictor.clone())
    }

    /// The task that is meant if none is named.
    pub fn task(&self, predictor: &Predictor, given: Option<&str>) -> Result<Task, Fault> {
        match given {
            Some("entity") => Ok(Task::Entity),
            Some("relation") => Ok(Task::Relation),
            Some(other) => Err(Fault::argument(format!("found task={other:?}"), "task=\"entity\" or \"relation\"")),
            None => Ok(predictor.default_tasks().first().copied().unwrap_or(Task::Entity)),
        }
    }
}

fn open(sources: &[Source], threads: Option<usize>, precision: Option<Precision>) -> Result<Predictor, Fault> {
    let mut builder = Predictor::builder().precision(precision);
    for Source { origin, bytes, defaults } in sources {
        builder = builder.checkpoint(Checkpoint::from_bytes(origin, bytes)?, origin.clone());
        if let Some(text) = defaults {
            builder = builder.default_calibrations(DefaultCalibrations::from_text(origin, text)?);
        }
    }
    if let Some(threads) = threads {
        builder = builder.threads(threads);
    }
    Ok(builder.build()?)
}

fn precision(word: Option<&str>) -> Result<Option<Precision>, Fault> {
    let parse = |word: &str| {
        let remedy = "precision=\"f32\" or \"bf16\", or None for the faster one";
        word.parse().map_err(|_| Fault::argument(format!("found precision={word:?}"), remedy))
    };
    word.map(parse).transpose()
}

#[pymethods]
impl Model {
    /// The models inside the package, one for entities and one for relations.
    ///
    /// ``threads`` is all of the machine if it is not given. ``precision`` is ``"f32"`` or ``"bf16"``; if it is not given,
    /// ``"bf16"`` where the processor has it, else ``"f32"``.
    #[classmethod]
    #[pyo3(signature = (*, threads=None, precision=None))]
    fn bundled(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        threads: Option<usize>,
        precision: Option<&str>,
    ) -> PyResult<Model> {
        let make = || Model::new(Vec::new(), threads, self::precision(precision)?, false);
        py.detach(make).map_err(|fault| fault.raise(py))
    }

    /// Reads checkpoints (.safetensors), one for each task.
    ///
    /// A pickle of the model has its weights; with ``pickle="path"`` it has the paths.
    #[classmethod]
    #[pyo3(signature = (*paths, threads=None, precision=None, pickle="content"))]
    fn from_file(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        threads: Option<usize>,
        precision: Option<&str>,
        pickle: &str,
    ) -> PyResult<Model> {
        let make = || -> Result<Model, Fault> {
            if paths.is_empty() {
                return Err(Fault::argument("no file was named", "Model.from_file(path), or Model.bundled()"));
            }
            let by_path = match pickle {
                "path" => true,
                "content" => false,
                other => {
                    let message = format!("found pickle={other:?}");
                    return Err(Fault::argument(message, "pickle=\"content\" or \"path\""));
                }
            };
            let sources = paths.iter().map(|path| Source::read(path)).collect::<Result<_, _>>()?;
            Model::new(sources, threads, self::precision(precision)?, by_path)
        };
        py.detach(make).map_err(|fault| fault.raise(py))
    }

    /// What it can predict: ``"entity"``, ``"relation"``.
    #[getter]
    fn tasks(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let predictor = self.predictor().map_err(|fault| fault.raise(py))?;
        Ok(predictor.tasks().iter().map(Task::to_string).collect())
    }

    /// How many threads it uses.
    #[getter]
    fn threads(&self, py: Python<'_>) -> PyResult<usize> {
        let predictor = self.predictor().map_err(|fault| fault.raise(py))?;
        Ok(predictor.pool().current_num_threads())
    }

    /// What came of the fine-tuning that made this model; ``None`` if it was not fine-tuned here.
    #[getter]
    fn training<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.training.as_ref().map(|training| object(py, training)).transpose()
    }

    /// The precision of multiplications.
    #[getter]
    fn precision(&self) -> String {
        self.precision.to_string()
    }

    /// The hash of the checkpoint of a task, which results are known by.
    #[pyo3(signature = (task="entity"))]
    fn sha256(&self, py: Python<'_>, task: &str) -> PyResult<String> {
        let find = || -> Result<String, Fault> {
            let predictor = self.predictor()?;
            let task = self.task(&predictor, Some(task))?;
            Ok(predictor.model(task)?.name.sha256.clone())
        };
        find().map_err(|fault| fault.raise(py))
    }

    /// Writes the checkpoint of a task, whole or not at all.
    #[pyo3(signature = (path, *, task=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, task: Option<&str>) -> PyResult<()> {
        let write = || -> Result<(), Fault> {
            let predictor = self.predictor()?;
            let task = self.task(&predictor, task)?;
            // The very bytes that were read, so that the copy has the hash by which calibrations know it.
            let of_task =
                |source: &&Source| predictor.model(task).is_ok_and(|m| m.name.sha256 == sha256_hex(&source.bytes));
            let bytes = match self.sources.iter().find(of_task) {
                Some(source) => &source.bytes[..],
                None if self.sources.is_empty() => bundled::bundled(task),
                None => {
                    return Err(predictor.model(task).err().map_or_else(|| Fault::other("no weights"), Fault::from));
                }
            };
            write_atomically(&path, bytes).map_err(|e| Fault::model(format!("{}: {e}", path.display())))
        };
        py.detach(write).map_err(|fault| fault.raise(py))
    }

    fn __repr__(&self) -> String {
        let origins: Vec<&str> = self.sources.iter().map(|source| source.origin.as_str()).collect();
        let origins = if origins.is_empty() { "bundled".to_string() } else { origins.join(", ") };
        let threads = self.threads.map_or(String::new(), |threads| format!(", threads={threads}"));
        format!("Model({origins}, {}{threads})", self.precision)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("flock_kg._flock_kg")?.getattr("_model_from_state")?;
        let state = |source: &Source| {
            let bytes = (!self.by_path).then(|| PyBytes::new(py, &source.bytes));
            let origin = match self.by_path {
                true => std::path::absolute(&source.origin)
                    .map_or_else(|_| source.origin.clone(), |p| p.display().to_string()),
                false => source.origin.clone(),
            };
            (origin, bytes, source.defaults.clone(), sha256_hex(&source.bytes))
        };
        let sources: Vec<_> = self.sources.iter().map(state).collect();
        let training = self.training.as_ref().map(Value::to_string);
        let state = (sources, self.threads, self.precision.to_string(), self.by_path, training);
        Ok((make, state.into_pyobject(py)?))
    }
}

/// A checkpoint in a pickle: its origin, its bytes unless it goes by path, its default calibrations, its hash.
type SourceState = (String, Option<Vec<u8>>, Option<String>, String);

/// A model from its pickle: paths, or weights with their default calibrations.
#[pyfunction]
pub fn _model_from_state(
    py: Python<'_>,
    sources: Vec<SourceState>,
    threads: Option<usize>,
    precision: &str,
    by_path: bool,
    training: Option<&str>,
) -> PyResult<Model> {
    let source = |(origin, bytes, defaults, sha256): SourceState| match bytes {
        Some(bytes) => Ok(Source { origin, bytes: Arc::new(bytes), defaults }),
        None => {
            let source = Source::read(Path::new(&origin))?;
            if sha256_hex(&source.bytes) != sha256 {
                return Err(Fault::model(format!("{origin}: the file has another model than when it was pickled")));
            }
            Ok(source)
        }
    };
    let make = || {
        let sources = sources.into_iter().map(source).collect::<Result<_, _>>()?;
        let made = Model::new(sources, threads, self::precision(Some(precision))?, by_path)?;
        let training = training.map(serde_json::from_str).transpose().map_err(|e| Fault::other(e.to_string()))?;
        Ok(Model { training, ..made })
    };
    py.detach(make).map_err(|fault: Fault| fault.raise(py))
}
