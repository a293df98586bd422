//! Why a dataset cannot be used.

use flock_graph::{GraphError, LoadError, TopologyError};

use super::layout::Split;
use super::registry::UnknownDataset;
use super::remedy::DatasetRemedy;

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
    #[error("{dir}: no {split}.txt with triples of the walked graph")]
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
    #[error("{dir}: no such directory")]
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

impl DatasetError {
    /// Returns what to do about it, where that is known. A file that cannot be loaded has its own
    /// remedy: [`LoadError::remedy`].
    pub fn remedy(&self) -> Option<DatasetRemedy> {
        Some(match self {
            DatasetError::NothingToPredict { split, other: false, .. } => DatasetRemedy::AddTriples(*split),
            DatasetError::NothingToPredict { split: Split::Test, .. } => DatasetRemedy::PredictOther(Split::Valid),
            DatasetError::NothingToPredict { split: Split::Valid, .. } => DatasetRemedy::PredictOther(Split::Test),
            DatasetError::Unknown(e) => return Some(e.remedy()),
            DatasetError::Missing { name, .. } => DatasetRemedy::Fetch { name: name.clone() },
            _ => return None,
        })
    }
}
