//! Why a run cannot start, or stops.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::data::DataError;
use crate::remedy::TrainRemedy;
use crate::settings::ConfigError;
use crate::state::StateError;
use flock_eval::datasets::DatasetError;
use flock_eval::{EvalError, EvalRemedy};
use flock_model::checkpoint::{CheckpointError, TensorError};
use flock_model::model::ModelError;

/// Why a run cannot start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The config breaks a rule.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A dataset cannot be used.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The graphs have nothing to ask.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The model does not fit.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A validation failed.
    #[error("validation: {0}")]
    Eval(#[from] EvalError),
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A checkpoint cannot hold the weights.
    #[error(transparent)]
    Tensors(#[from] TensorError),
    /// The training state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The checkpoint to start from contradicts the config.
    #[error("{file}: {reason}")]
    Start {
        /// The checkpoint.
        file: String,
        /// What does not fit.
        reason: String,
    },
    /// A file of the run cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A loss or gradient is NaN or infinite.
    #[error(
        "step {step}: the {what} of {query} on {graph} is NaN or infinite; nothing after step {before} is kept", before = step - 1
    )]
    NotFinite {
        /// The step, counted from 1.
        step: u64,
        /// "loss" or "gradient".
        what: &'static str,
        /// The graph.
        graph: String,
        /// The question that caused it.
        query: String,
    },
    /// The config differs from that of the state.
    #[error("{dir}: the run there has {key} = {old}, this one {key} = {new}")]
    Changed {
        /// Directory of the run.
        dir: String,
        /// The first key that differs.
        key: String,
        /// Its value in the state.
        old: Value,
        /// Its value now.
        new: Value,
    },
    /// The training graphs differ from those of the state.
    #[error("{dir}: the run there was trained on {old}, now there is {new}")]
    OtherGraph {
        /// Directory of the run.
        dir: String,
        /// The graphs of the state.
        old: String,
        /// The graphs now.
        new: String,
    },
    /// There is no state to resume from.
    #[error("{dir}: no training state to resume")]
    NoState {
        /// Directory of the run.
        dir: String,
    },
    /// The directory has files of something else, which the run would overwrite.
    #[error("{dir} has {file} but no training state: it belongs to something else")]
    Foreign {
        /// Directory of the run.
        dir: String,
        /// The file.
        file: &'static str,
    },
    /// The directory has a file that would stand among those to be written.
    #[error("{dir}: has {file}, expected a directory that is new or empty")]
    Occupied {
        /// The directory.
        dir: String,
        /// The file.
        file: String,
    },
    /// Another process is using the directory.
    #[error("{dir}: another run is writing there")]
    Locked {
        /// Directory of the run.
        dir: String,
    },
}

impl TrainError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<TrainRemedy> {
        Some(match self {
            TrainError::Dataset(e) => return e.remedy().map(|r| TrainRemedy::Eval(EvalRemedy::Dataset(r))),
            TrainError::Eval(e) => return e.remedy().map(TrainRemedy::Eval),
            TrainError::Config(e) => return e.remedy(),
            TrainError::Data(e) => return e.remedy(),
            TrainError::State(e) => return e.remedy(),
            TrainError::NotFinite { .. } => TrainRemedy::LowerRate,
            TrainError::Changed { .. } => TrainRemedy::SameValue,
            TrainError::OtherGraph { .. } => TrainRemedy::SameGraphs,
            TrainError::NoState { .. } => TrainRemedy::StartNew,
            TrainError::Foreign { .. } => TrainRemedy::OtherDirectory,
            TrainError::Occupied { .. } => TrainRemedy::NewDirectory,
            TrainError::Locked { .. } => TrainRemedy::Wait,
            _ => return None,
        })
    }
}

/// Makes the error about a file of the run.
pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> TrainError {
    let file = path.display().to_string();
    move |source| TrainError::Io { file, source }
}
