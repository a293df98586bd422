//! Why a dataset cannot be used.

use flock_graph::{GraphError, LoadError, TopologyError};

use super::layout::Split;
use super::registry::UnknownDataset;

/// Why a dataset cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file of triples cannot be read.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// `meta.json` cannot be read or understood.
    #[error("{file}: {reason}")]
    Meta {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The directory has nothing to predict.
    #[error("{dir}: no {split}.txt with triples of the walked graph; hint: {hint}", hint = match (.split, .other) {
        (Split::Test, true) => "--split valid",
        (Split::Test, false) => "put triples to predict into test.txt, tab-separated like train.txt",
        (Split::Valid, true) => "--split test, or leave it out of validation.extra",
        (Split::Valid, false) => "put triples to predict into valid.txt, or leave it out of validation.extra",
    })]
    NothingToPredict {
        /// The directory.
        dir: String,
        /// The split that was asked for.
        split: Split,
        /// Whether the file of the other split is there.
        other: bool,
    },
    /// The name is neither a directory nor in the registry.
    #[error(transparent)]
    Unknown(#[from] UnknownDataset),
    /// The registry has the name, but its files are not there.
    #[error("{dir}: no such directory; hint: flock-kg datasets fetch {name} --data DIR, or another --data")]
    Missing {
        /// Where it was looked for.
        dir: String,
        /// The dataset.
        name: String,
    },
    /// The triples do not make a graph.
    #[error("{file}: {source}")]
    Graph {
        /// The file.
        file: String,
        /// Why.
        source: GraphError,
    },
    /// The triples cannot be indexed.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}
