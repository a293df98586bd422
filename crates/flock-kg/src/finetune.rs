//! Training from a shell: a config, graphs in files or in memory, and a directory make a run.
//!
//! [`flock_train`] has the runs. Here they get what every shell would choose alike: the engine of this machine, threads, the fast
//! gradient, the measured peak and the bundled models.
//!
#![cfg_attr(feature = "bundled", doc = "```no_run")]
#![cfg_attr(not(feature = "bundled"), doc = "```ignore")]
//! use std::path::Path;
//! use flock_kg::finetune::{RunOptions, Training};
//! use flock_kg::train::{Settings, TrainConfig};
//! use flock_kg::{Predictor, Task};
//!
//! let graph = flock_kg::bundled::graph()?;
//! let predictor = Predictor::bundled()?;
//! let mut settings = Settings::new();
//! settings.put("steps", "steps", 100);
//! let config = TrainConfig::resolve_in_memory(&settings, TrainConfig::finetuning)?;
//! let start = predictor.checkpoint(config.task)?;
//! let training = Training::new(&config).graph("countries", graph).start(&start);
//! let summary = training.run(Path::new("runs/countries"), RunOptions::default())?;
//! let tuned = Predictor::builder().model(&summary.model).build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use flock_graph::Graph;
use flock_kernels::{Precision, peak};
use flock_model::checkpoint::Checkpoint;
use flock_model::gradient::FastGradient;
use flock_model::model::Model;
use flock_train::{
    Event, PetalsConfig, PetalsReport, PetalsTest, RunContext, TrainConfig, TrainError, TrainRemedy, TrainSummary,
    petals, train, train_on, training_graph,
};

use crate::error::PredictorError;
use crate::predictor::{all_threads, engine, pool};

/// For how long the peak of the machine is measured.
const PEAK_TIME: Duration = Duration::from_millis(200);

/// Why a run cannot start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// The machine cannot run it.
    #[error(transparent)]
    Machine(Box<PredictorError>),
    /// The run itself failed.
    #[error(transparent)]
    Run(#[from] TrainError),
}

impl From<PredictorError> for TrainingError {
    fn from(e: PredictorError) -> TrainingError {
        TrainingError::Machine(Box::new(e))
    }
}

impl TrainingError {
    /// What to do about it, where that is known.
    pub fn remedy(&self) -> Option<TrainRemedy> {
        match self {
            TrainingError::Run(e) => e.remedy(),
            TrainingError::Machine(_) => None,
        }
    }
}

/// How a shell takes part in a run. By default nobody watches, and nothing stops it.
pub struct RunOptions<'a> {
    /// Whether a directory without a state to resume from is an error. A run that was cut off is resumed either way.
    pub resume: bool,
    /// When set, the run ends after the current step. It can be resumed.
    pub stop: &'a AtomicBool,
    /// Receives the events of the run.
    pub watch: Box<dyn FnMut(Event<'_>) + 'a>,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        RunOptions { resume: false, stop: &NEVER, watch: Box::new(|_| {}) }
    }
}

/// A run to be: its config, and what of it is in memory.
pub struct Training<'a> {
    config: &'a TrainConfig,
    graphs: Vec<(String, Graph)>,
    start: Option<&'a Checkpoint>,
}

impl<'a> Training<'a> {
    /// A run on the files of the config's `data.graphs`, from the weights of its `model.from`.
    pub fn new(config: &'a TrainConfig) -> Training<'a> {
        Training { config, graphs: Vec::new(), start: None }
    }

    /// Adds a graph in memory, of which `data.holdout` of the triples are held out for validation. With one or more of these, the
    /// files of the config are not read. Checkpoints and logs call the graph by its name.
    pub fn graph(mut self, name: impl Into<String>, graph: Graph) -> Training<'a> {
        self.graphs.push((name.into(), graph));
        self
    }

    /// Starts from a checkpoint in memory, in place of the config's `model.from`.
    pub fn start(mut self, checkpoint: &'a Checkpoint) -> Training<'a> {
        self.start = Some(checkpoint);
        self
    }

    /// Trains in a directory. If a run was cut off there, it goes on: with the same config, the same graphs under the same names,
    /// and the same start.
    ///
    /// # Errors
    /// A machine that cannot run it, a config or a graph that cannot be used, the directory of another run, or a step that failed.
    pub fn run(self, dir: &Path, options: RunOptions<'_>) -> Result<TrainSummary, TrainingError> {
        let Training { config, graphs, start } = self;
        config.check().map_err(TrainError::from)?;
        with_machine(config.optimiser.precision.into(), config.threads, start, options, |context| {
            if graphs.is_empty() {
                return train(config, dir, context);
            }
            let one = |(name, graph): (String, Graph)| training_graph(&name, graph, config.data.holdout, config.seed);
            let graphs = graphs.into_iter().map(one).collect::<Result<_, _>>()?;
            train_on(config, graphs, dir, context)
        })
    }
}

/// Trains and tests on Petals in a directory. `None` if the run was stopped before the end.
///
/// # Errors
/// As [`Training::run`].
pub fn run_petals(
    config: &PetalsConfig,
    dir: &Path,
    options: RunOptions<'_>,
) -> Result<Option<PetalsReport>, TrainingError> {
    with_machine(config.optimiser.precision.into(), config.threads, None, options, |context| {
        petals(config, dir, context)
    })
}

/// Tests a checkpoint on Petals, without training ([`flock_train::test_petals`]). `None` if it was
/// stopped before the end. `name` is what the report and errors call the checkpoint.
///
/// # Errors
/// A machine that cannot run it, or a model of relations.
pub fn test_petals(
    checkpoint: &Checkpoint,
    name: &str,
    config: &PetalsConfig,
    options: RunOptions<'_>,
) -> Result<Option<PetalsTest>, TrainingError> {
    let RunOptions { stop, mut watch, .. } = options;
    let pool = pool(config.threads.unwrap_or_else(all_threads))?;
    let model = Model::new(checkpoint, engine(Precision::F32)?).map_err(TrainError::from)?;
    Ok(flock_train::test_petals(&model, name, config, &pool, stop, &mut *watch)?)
}

/// Runs `work` with all that a run needs of this machine. The precision is that of the gradient; validation has the full one, as
/// answers do.
fn with_machine<T>(
    precision: Precision,
    threads: Option<usize>,
    start: Option<&Checkpoint>,
    options: RunOptions<'_>,
    work: impl FnOnce(RunContext<'_>) -> Result<T, TrainError>,
) -> Result<T, TrainingError> {
    let RunOptions { resume, stop, mut watch } = options;
    let validation = engine(Precision::F32)?;
    let pool = pool(threads.unwrap_or_else(all_threads))?;
    let threads = pool.current_num_threads();
    let gradient = FastGradient::new(engine(precision)?, threads);
    let mut gradient = gradient.map_err(|source| PredictorError::Threads { threads, source })?;
    #[cfg(feature = "bundled")]
    let bundled: Option<fn(_) -> _> = Some(crate::bundled::default_checkpoint);
    #[cfg(not(feature = "bundled"))]
    let bundled = None;
    let context = RunContext {
        gradient: &mut gradient,
        engine: validation,
        pool: &pool,
        peak_gflops: Some(peak::gflops(validation.level(), threads, PEAK_TIME)),
        resume,
        bundled,
        start,
        stop,
        watch: &mut *watch,
    };
    Ok(work(context)?)
}
