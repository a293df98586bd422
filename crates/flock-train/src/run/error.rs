//! Why a run cannot start, or stops.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::data::DataError;
use crate::state::StateError;
use flock_eval::EvalError;
use flock_eval::datasets::DatasetError;
use flock_model::checkpoint::{CheckpointError, TensorError};
use flock_model::model::ModelError;

/// Why a run cannot start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Graphs with nothing to ask.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A model that does not fit.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A validation.
    #[error("validation: {0}")]
    Eval(#[from] EvalError),
    /// A checkpoint to start from, or to write.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Weights that no checkpoint can hold.
    #[error(transparent)]
    Tensors(#[from] TensorError),
    /// A training state.
    #[error(transparent)]
    State(#[from] StateError),
    /// A checkpoint to start from that contradicts the config.
    #[error("{file}: {reason}")]
    Start {
        /// The checkpoint.
        file: String,
        /// What does not fit.
        reason: String,
    },
    /// Some other file of the run.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// NaN or infinity.
    #[error(
        "step {step}: the {what} of {query} on {graph} is NaN or infinite; nothing after step {before} is kept; \
         hint: a lower optimiser.rate, or optimiser.clip = 1", before = step - 1
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
    /// The config is not the one that the state was made with.
    #[error(
        "{dir}: the run there has {key} = {old}, this one {key} = {new}; hint: the same value to go on with it, \
         or another directory (--out)"
    )]
    Changed {
        /// The run's directory.
        dir: String,
        /// The first key that differs.
        key: String,
        /// Its value in the state.
        old: Value,
        /// Its value now.
        new: Value,
    },
    /// A training graph is not the one that the state was made with.
    #[error(
        "{dir}: the run there was trained on {old}, now there is {new}; hint: the same graphs, or another directory (--out)"
    )]
    OtherGraph {
        /// The run's directory.
        dir: String,
        /// The graphs of the state.
        old: String,
        /// The graphs now.
        new: String,
    },
    /// Nothing to resume.
    #[error("{dir}: no training state to resume; hint: leave out --resume to start a run there")]
    NoState {
        /// The run's directory.
        dir: String,
    },
    /// Files that a run would overwrite.
    #[error("{dir} has {file} but no training state: it belongs to something else; hint: another directory (--out)")]
    Foreign {
        /// The run's directory.
        dir: String,
        /// The file.
        file: &'static str,
    },
    /// Another process works there.
    #[error("{dir}: another run is writing there; hint: wait for it, or another directory (--out)")]
    Locked {
        /// The run's directory.
        dir: String,
    },
}

/// Error of a file of the run.
pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> TrainError {
    let file = path.display().to_string();
    move |source| TrainError::Io { file, source }
}
