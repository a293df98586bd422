//! Why a table or figure cannot be made, and what to do about it.

use std::fmt;

use flock_eval::datasets::DatasetError;
use flock_eval::{EvalError, EvalRemedy};
use flock_model::checkpoint::CheckpointError;
use flock_train::{ConfigError, TrainRemedy};

use super::{Item, UnknownItem};
use crate::error::{AskError, PredictorError};
use crate::finetune::TrainingError;

/// Why a table or figure cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// There is no such table or figure.
    #[error(transparent)]
    Unknown(#[from] UnknownItem),
    /// The engine cannot make it.
    #[error("{item}: {}", item.work())]
    Impossible {
        /// Which one.
        item: Item,
    },
    /// A graph was named that it does not use.
    #[error("{item}: {graph} is none of its graphs, which are {}", item.graphs())]
    OtherGraph {
        /// Which one.
        item: Item,
        /// The graph.
        graph: String,
    },
    /// A graph was named that is not at hand.
    #[error("{item}: {graph} is not in {data}")]
    MissingGraph {
        /// Which one.
        item: Item,
        /// The graph.
        graph: String,
        /// Where it was looked for.
        data: String,
    },
    /// A setting of trainings was given that the item itself decides.
    #[error("{item}: {key} cannot be set for its trainings")]
    Setting {
        /// Which one.
        item: Item,
        /// The key.
        key: &'static str,
    },
    /// None of the graphs that it needs is at hand.
    #[error("{item} needs graphs of the paper{}", data.as_ref().map_or(String::new(), |data| format!(", and none of them is in {data}")))]
    NoGraphs {
        /// Which one.
        item: Item,
        /// Where they were looked for.
        data: Option<String>,
    },
    /// A variant of the model was named that there is not.
    #[error("ablations: no row is called {name:?}; there are {known}")]
    Row {
        /// The name as it was given.
        name: String,
        /// All names.
        known: String,
    },
    /// A file of the work cannot be used.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
    /// An evaluation failed.
    #[error(transparent)]
    Eval(Box<EvalError>),
    /// A training failed.
    #[error(transparent)]
    Training(Box<TrainingError>),
    /// The settings of a training are wrong.
    #[error(transparent)]
    Config(Box<ConfigError>),
    /// A checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(Box<CheckpointError>),
    /// The machine or the model does not do.
    #[error(transparent)]
    Predictor(Box<PredictorError>),
    /// There is no model of the task.
    #[error(transparent)]
    Ask(Box<AskError>),
    /// A measurement failed.
    #[error("{0}")]
    Measure(String),
    /// The caller stopped the work; the same call goes on with it.
    #[error("stopped")]
    Stopped,
}

impl From<DatasetError> for ReproduceError {
    fn from(e: DatasetError) -> ReproduceError {
        EvalError::from(e).into()
    }
}

/// Keeps errors of other rooms in a box: they are large.
macro_rules! boxed {
    ($($variant:ident($error:ty);)*) => {
        $(impl From<$error> for ReproduceError {
            fn from(e: $error) -> ReproduceError {
                ReproduceError::$variant(Box::new(e))
            }
        })*
    };
}

boxed! {
    Eval(EvalError);
    Training(TrainingError);
    Config(ConfigError);
    Checkpoint(CheckpointError);
    Predictor(PredictorError);
    Ask(AskError);
}

/// What to do about it. `Display` says it in words that fit any caller; a command may name its own flags instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReproduceRemedy {
    /// List what there is.
    List,
    /// Name a directory that has the graphs, or fetch them.
    NameData,
    /// Say it by the option of its own, or leave it.
    UseOption,
    /// Do this about the evaluation.
    Eval(EvalRemedy),
    /// Do this about the training.
    Train(TrainRemedy),
}

impl fmt::Display for ReproduceRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReproduceRemedy::List => f.write_str("list the tables and figures"),
            ReproduceRemedy::NameData => f.write_str("name a directory with datasets, or fetch them first"),
            ReproduceRemedy::UseOption => f.write_str("use the option for it, or leave it out"),
            ReproduceRemedy::Eval(remedy) => remedy.fmt(f),
            ReproduceRemedy::Train(remedy) => remedy.fmt(f),
        }
    }
}

impl ReproduceError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<ReproduceRemedy> {
        Some(match self {
            ReproduceError::Unknown(_) => ReproduceRemedy::List,
            ReproduceError::NoGraphs { .. } | ReproduceError::MissingGraph { .. } => ReproduceRemedy::NameData,
            ReproduceError::Setting { .. } => ReproduceRemedy::UseOption,
            ReproduceError::Eval(e) => ReproduceRemedy::Eval(e.remedy()?),
            ReproduceError::Training(e) => ReproduceRemedy::Train(e.remedy()?),
            ReproduceError::Config(e) => ReproduceRemedy::Train(e.remedy()?),
            _ => return None,
        })
    }
}
