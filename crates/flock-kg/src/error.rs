//! Why there is no predictor or no answer, and what to do about it as a value that every shell puts in its own words.

use flock_graph::{NameKind, UnknownName};
use flock_kernels::Level;
use flock_model::checkpoint::{CheckpointError, Task};
use flock_model::ensemble::NotFinite;
use flock_model::model::ModelError;

use crate::candidates::CandidateError;

/// Why there is no predictor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictorError {
    /// A model file that cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A model of sizes that this build does not run.
    #[error("{origin}: {source}")]
    Model {
        /// The file.
        origin: String,
        /// What does not fit.
        source: ModelError,
    },
    /// A file of default calibrations beside a model file that cannot be used.
    #[error(transparent)]
    Calibration(#[from] Box<CalibrationError>),
    /// Two models for one task.
    #[error("{first} and {second} are both {task} models, expected one of each task")]
    SameTask {
        /// The file given first.
        first: String,
        /// The file given second.
        second: String,
        /// Their task.
        task: Task,
    },
    /// The environment variable `FLOCK_SIMD` names no instruction set.
    #[error("{0}")]
    Simd(String),
    /// An instruction set that this machine does not have.
    #[error("this machine has no {level}")]
    NoLevel {
        /// The instruction set.
        level: Level,
    },
    /// The threads cannot be started.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
    /// Neither a model file nor a bundled model.
    #[error("no model: this build has none inside, expected a checkpoint file")]
    NoModel,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No `?`, or more than one.
    #[error("expected one ? among head, relation and tail, found {}", if *.found == 0 { "none".to_string() } else { found.to_string() })]
    Blanks {
        /// How many there are.
        found: usize,
    },
    /// A name that the graph does not have.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A name that the graph does not have, after so many others that no near names were looked up.
    #[error("unknown {kind} {name:?}; near names are looked up for {limit} only")]
    UnknownToo {
        /// Entity or relation.
        kind: NameKind,
        /// The name.
        name: String,
        /// For how many names near ones are looked up.
        limit: usize,
    },
    /// A triple to explain or to score that has a `?` in it.
    #[error("found ? in a triple, expected three names")]
    BlankInTriple,
    /// A list of candidates without a name.
    #[error("the list of candidates is empty, expected at least one name")]
    NoCandidates,
    /// Candidates that cannot be used for this question.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// There is no model for this kind of question.
    #[error("{file}: this is {article} {other} model: it cannot answer {asked}",
        article = if *.task == Task::Entity { "a" } else { "an" },
        other = if *.task == Task::Entity { Task::Relation } else { Task::Entity },
        asked = if *.task == Task::Entity { "(head, relation, ?)" } else { "(head, ?, tail)" })]
    NoModel {
        /// The task that was asked for.
        task: Task,
        /// The model file of the other task.
        file: String,
    },
    /// The bundled model cannot be used.
    #[error(transparent)]
    Predictor(Box<PredictorError>),
    /// The question does not fit the model.
    #[error(transparent)]
    Model(ModelError),
    /// The model's scores are no numbers.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// Whoever asked has cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl From<ModelError> for AskError {
    fn from(e: ModelError) -> AskError {
        match e {
            ModelError::Stopped => AskError::Cancelled,
            e => AskError::Model(e),
        }
    }
}

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The graph gives too little to go by.
    #[error(
        "{found} candidates from held-out triples, expected at least {expected}: the graph has only {triples} triples"
    )]
    TooFew {
        /// Candidates seen.
        found: usize,
        /// Candidates needed.
        expected: usize,
        /// Triples of the graph.
        triples: usize,
    },
    /// A default calibration is tried on a graph that it was not fitted to, so one is too few.
    #[error("found {found} graph, expected at least 2: each is tried with what the others gave")]
    TooFewGraphs {
        /// Graphs given.
        found: usize,
    },
    /// Graphs that were asked of different models, or with different numbers of passes.
    #[error("the graphs were asked of different models or with different passes, expected one model and one number")]
    MixedGraphs,
    /// There is no model of the task.
    #[error(transparent)]
    Ask(Box<AskError>),
    /// The question does not fit the model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's scores are no numbers.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{file}: {what}, expected a calibration of version 1")]
    Format {
        /// The file.
        file: String,
        /// What was found.
        what: String,
    },
}

impl From<AskError> for CalibrationError {
    fn from(e: AskError) -> CalibrationError {
        CalibrationError::Ask(Box::new(e))
    }
}

/// What to do about an [`AskError`]. Each shell says it in its own terms.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskRemedy {
    /// Put `?` where the answer goes.
    AddBlank,
    /// Name two of the three parts.
    NameTheOthers,
    /// Name all three parts; which one is the answer is said apart.
    NameAllThree,
    /// Use a model of this task.
    OtherModel(Task),
}

impl AskError {
    /// What to do about it, where that is known.
    pub fn remedy(&self) -> Option<AskRemedy> {
        match self {
            AskError::Blanks { found: 0 } => Some(AskRemedy::AddBlank),
            AskError::Blanks { .. } => Some(AskRemedy::NameTheOthers),
            AskError::BlankInTriple => Some(AskRemedy::NameAllThree),
            AskError::NoModel { task, .. } => Some(AskRemedy::OtherModel(*task)),
            _ => None,
        }
    }
}
