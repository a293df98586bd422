//! The predictor: models, engine and threads in one value, ready to ask about any graph.
//!
//! It knows no graph. `Predictor::on` joins it to one for as long as questions are asked:
//!
#![cfg_attr(feature = "bundled", doc = "```")]
#![cfg_attr(not(feature = "bundled"), doc = "```ignore")]
//! let graph = flock_kg::bundled::graph()?;
//! let predictor = flock_kg::Predictor::builder().threads(1).build()?;
//! let answers = predictor.on(&graph).passes(2).only_new(true).ask(["Spain", "borders", "?"])?;
//! assert!(answers.top(3).iter().all(|answer| !answer.known));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flock_graph::Graph;
use flock_kernels::{Engine, Level, Precision};
use flock_model::ModelName;
use flock_model::checkpoint::{Checkpoint, Task};
use flock_model::model::Model;

use crate::calibrate::{Calibration, DefaultCalibration, DefaultCalibrations, Probabilities};
use crate::error::{AskError, CalibrationError, PredictorError};

/// A model and what answers call it.
pub struct NamedModel {
    /// The model.
    pub model: Model,
    /// Its name in answers.
    pub name: ModelName,
    defaults: Option<DefaultCalibrations>, // of this model: with its hash
}

impl NamedModel {
    /// Packs a checkpoint for an engine. `origin` says where it comes from: a file, or `bundled`. A copy of a bundled model has
    /// its default calibrations.
    ///
    /// # Errors
    /// A model of sizes that this build does not run.
    pub fn new(checkpoint: &Checkpoint, engine: Engine, origin: String) -> Result<NamedModel, PredictorError> {
        let model = Model::new(checkpoint, engine)
            .map_err(|source| PredictorError::Model { origin: origin.clone(), source })?;
        let name = ModelName {
            task: checkpoint.meta().task,
            sha256: model.hash().to_string(),
            precision: engine.precision().to_string(),
            origin,
        };
        #[cfg(feature = "bundled")]
        let defaults = Some(crate::bundled::default_calibrations(name.task)).filter(|d| d.model == name.sha256);
        #[cfg(not(feature = "bundled"))]
        let defaults = None;
        Ok(NamedModel { model, name, defaults })
    }

    /// The same with default calibrations, if they are of this model; else as it was.
    pub fn with_default_calibrations(mut self, defaults: DefaultCalibrations) -> NamedModel {
        if defaults.model == self.name.sha256 {
            self.defaults = Some(defaults);
        }
        self
    }

    /// The default calibration for about so many passes, if the model carries any.
    pub fn default_calibration(&self, passes: u32) -> Option<&DefaultCalibration> {
        self.defaults.as_ref()?.nearest(passes)
    }

    /// How logits become probabilities for a question on a graph with so many base walks and passes: by the calibration of the graph
    /// (`own`) if it was made in the same way, else by the default calibration of this model if it has one for about these
    /// settings, else not at all.
    pub fn probabilities<'c>(
        &'c self,
        own: Option<&'c Calibration>,
        graph: &Graph,
        walks: u32,
        passes: u32,
    ) -> Probabilities<'c> {
        let (default, rule) = (self.default_calibration(passes), self.base_walks(graph));
        Probabilities::choose(own, default, &self.name.sha256, graph.topology(), rule, walks, passes)
    }

    /// The base walk count `n` on a graph, by the model's own rule.
    pub fn base_walks(&self, graph: &Graph) -> u32 {
        let topology = graph.topology();
        self.model.meta().base_walks(topology.num_nodes(), topology.num_triples())
    }
}

/// Chooses models, precision and threads. Made by [`Predictor::builder`].
#[derive(Clone, Debug, Default)]
pub struct PredictorBuilder {
    models: Vec<ModelSource>,
    defaults: Vec<DefaultCalibrations>,
    precision: Option<Precision>,
    threads: Option<usize>,
}

/// Where a model comes from.
#[derive(Clone, Debug)]
enum ModelSource {
    File(PathBuf),
    Checkpoint(Box<Checkpoint>, String),
}

impl PredictorBuilder {
    /// Adds a checkpoint file. With none, the bundled models are used; one of each task can be given. Default calibrations are read
    /// from the file beside it ([`DefaultCalibrations::path`]), if there is one.
    pub fn model(mut self, file: impl AsRef<Path>) -> PredictorBuilder {
        self.models.push(ModelSource::File(file.as_ref().to_path_buf()));
        self
    }

    /// Adds a checkpoint that is in memory. `origin` is its name in answers.
    pub fn checkpoint(mut self, checkpoint: Checkpoint, origin: impl Into<String>) -> PredictorBuilder {
        self.models.push(ModelSource::Checkpoint(Box::new(checkpoint), origin.into()));
        self
    }

    /// Adds default calibrations, for the model whose hash they have. A model file has its own beside it.
    pub fn default_calibrations(mut self, defaults: DefaultCalibrations) -> PredictorBuilder {
        self.defaults.push(defaults);
        self
    }

    /// Multiplies in `f32` or `bf16`. By default in the faster one of this machine ([`Precision::fastest`]).
    pub fn precision(mut self, precision: impl Into<Option<Precision>>) -> PredictorBuilder {
        self.precision = precision.into();
        self
    }

    /// Uses so many threads; all of the machine by default. Answers do not depend on it.
    pub fn threads(mut self, threads: usize) -> PredictorBuilder {
        self.threads = Some(threads);
        self
    }

    /// Reads the models and starts the threads.
    ///
    /// # Errors
    /// A model that cannot be used, or a machine that cannot run it.
    pub fn build(self) -> Result<Predictor, PredictorError> {
        let mut predictor = Predictor {
            engine: engine(self.precision)?,
            given: !self.models.is_empty(),
            models: Default::default(),
            checkpoints: Default::default(),
            pool: Arc::new(pool(self.threads.unwrap_or_else(all_threads))?),
        };
        for source in self.models {
            let (checkpoint, origin, defaults) = match source {
                ModelSource::File(file) => {
                    (Checkpoint::read(&file)?, file.display().to_string(), default_calibrations(&file)?)
                }
                ModelSource::Checkpoint(checkpoint, origin) => (*checkpoint, origin, None),
            };
            let mut named = NamedModel::new(&checkpoint, predictor.engine, origin)?;
            for defaults in defaults.into_iter().chain(self.defaults.iter().cloned()) {
                named = named.with_default_calibrations(defaults);
            }
            let task = named.name.task;
            let slot = &predictor.models[task as usize];
            if let Err(second) = slot.set(Arc::new(named)) {
                let first = slot.get().map_or_else(String::new, |m| m.name.origin.clone());
                return Err(PredictorError::SameTask { first, second: second.name.origin.clone(), task });
            }
            predictor.checkpoints[task as usize] = Some(Arc::new(checkpoint));
        }
        #[cfg(not(feature = "bundled"))]
        if !predictor.given {
            return Err(PredictorError::NoModel);
        }
        Ok(predictor)
    }
}

/// The default calibrations beside a model file, if there are any.
fn default_calibrations(model: &Path) -> Result<Option<DefaultCalibrations>, PredictorError> {
    match DefaultCalibrations::read_file(&DefaultCalibrations::path(model)) {
        Err(CalibrationError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        read => Ok(Some(read.map_err(Box::new)?)),
    }
}

/// Models, engine and threads: whatever a question needs besides a graph.
pub struct Predictor {
    engine: Engine,
    given: bool, // models were given; the bundled ones are not used then
    models: [OnceLock<Arc<NamedModel>>; 2],
    checkpoints: [Option<Arc<Checkpoint>>; 2], // of given models; the bundled ones can be read again
    pool: Arc<rayon::ThreadPool>,
}

impl Predictor {
    /// The bundled models on all threads of the machine. They are unpacked when they are first asked.
    ///
    /// # Errors
    /// The threads cannot be started.
    #[cfg(feature = "bundled")]
    pub fn bundled() -> Result<Predictor, PredictorError> {
        Predictor::builder().build()
    }

    /// A choice of models, precision and threads.
    pub fn builder() -> PredictorBuilder {
        PredictorBuilder::default()
    }

    /// The model of a task.
    ///
    /// # Errors
    /// Model files were given, and none of them is for this task.
    pub fn model(&self, task: Task) -> Result<&Arc<NamedModel>, AskError> {
        let slot = &self.models[task as usize];
        if let Some(named) = slot.get() {
            return Ok(named);
        }
        #[cfg(feature = "bundled")]
        if !self.given {
            use crate::bundled::{ORIGIN, default_checkpoint};
            let named = NamedModel::new(&default_checkpoint(task), self.engine, ORIGIN.to_string())
                .map_err(|e| AskError::Predictor(Box::new(e)))?;
            return Ok(slot.get_or_init(|| Arc::new(named)));
        }
        Err(self.no_model(task))
    }

    /// The checkpoint of the model of a task, such as a fine-tuning starts from.
    ///
    /// # Errors
    /// Model files were given, and none of them is for this task.
    pub fn checkpoint(&self, task: Task) -> Result<Arc<Checkpoint>, AskError> {
        if let Some(checkpoint) = &self.checkpoints[task as usize] {
            return Ok(checkpoint.clone());
        }
        #[cfg(feature = "bundled")]
        if !self.given {
            return Ok(Arc::new(crate::bundled::default_checkpoint(task)));
        }
        Err(self.no_model(task))
    }

    fn no_model(&self, task: Task) -> AskError {
        let file = self.open().next().map_or_else(String::new, |m| m.name.origin.clone());
        AskError::NoModel { task, file }
    }

    /// The tasks of the given models; both tasks if the bundled models are used.
    pub fn tasks(&self) -> Vec<Task> {
        if self.given { self.open().map(|m| m.name.task).collect() } else { vec![Task::Entity, Task::Relation] }
    }

    /// The tasks that a command works on if none is named: those of the given models, or entities.
    pub fn default_tasks(&self) -> Vec<Task> {
        if self.given { self.tasks() } else { vec![Task::Entity] }
    }

    /// Whether models were given; otherwise the bundled ones answer.
    pub fn has_given_models(&self) -> bool {
        self.given
    }

    fn open(&self) -> impl Iterator<Item = &Arc<NamedModel>> {
        self.models.iter().filter_map(OnceLock::get)
    }

    /// The threads.
    pub fn pool(&self) -> &Arc<rayon::ThreadPool> {
        &self.pool
    }

    /// How the kernels run.
    pub fn engine(&self) -> Engine {
        self.engine
    }
}

/// The engine for a precision, at the level of `FLOCK_SIMD`, or else the best of this machine. Without a precision, it has the
/// faster one at that level ([`Precision::fastest`]).
///
/// # Errors
/// `FLOCK_SIMD` names no instruction set, or one that this machine does not have.
pub fn engine(precision: impl Into<Option<Precision>>) -> Result<Engine, PredictorError> {
    let level = Level::detect().map_err(PredictorError::Simd)?;
    let precision = precision.into().unwrap_or_else(|| Precision::fastest(level));
    Engine::new(level, precision).ok_or(PredictorError::NoLevel { level })
}

/// How many threads this machine offers.
pub fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// A pool of so many threads.
///
/// # Errors
/// They cannot be started.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool, PredictorError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|source| PredictorError::Threads { threads, source })
}
