//! Why an evaluation stops.

use crate::datasets::DatasetError;
use crate::partial::PartialError;
use crate::remedy::EvalRemedy;
use flock_model::ensemble::NotFinite;
use flock_model::model::ModelError;

/// Why an evaluation stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The model does not fit, or a query does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's scores are not finite.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// What a killed run left cannot be used.
    #[error(transparent)]
    Partial(#[from] PartialError),
    /// The dataset cannot be loaded.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Triples of the graph cannot be hidden.
    #[error(transparent)]
    Holdout(#[from] HoldoutError),
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    File {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a list of results.
    #[error("{file}: not results of flock-kg eval: {reason}")]
    Results {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The file does not have the columns of a file of ranks.
    #[error("{file}:1: expected the columns of a file of ranks")]
    RankColumns {
        /// The file.
        file: String,
    },
    /// A row of a file of ranks is wrong.
    #[error("{file}:{line}: {reason}")]
    Ranks {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The caller stopped the run.
    #[error("stopped")]
    Stopped,
}

impl EvalError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<EvalRemedy> {
        match self {
            EvalError::Partial(e) => e.remedy(),
            EvalError::Dataset(e) => e.remedy().map(EvalRemedy::Dataset),
            EvalError::Holdout(HoldoutError::Nothing { .. }) => Some(EvalRemedy::LargerGraph),
            _ => None,
        }
    }
}

/// Why triples of a graph cannot be hidden.
#[derive(Copy, Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldoutError {
    /// The share is no share.
    #[error("found {share} as the share of triples to hide, expected a number above 0 and below 1, such as 0.1")]
    Share {
        /// The share.
        share: f64,
    },
    /// Every triple is the last one of its head, its tail or its relation.
    #[error(
        "no triple of the graph ({triples} triples, {entities} entities) can be hidden: each is the only one of its head, its tail \
         or its relation"
    )]
    Nothing {
        /// Triples of the graph.
        triples: usize,
        /// Its entities.
        entities: u32,
    },
}
