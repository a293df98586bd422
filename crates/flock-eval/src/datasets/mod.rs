//! Benchmark datasets: graphs with triples to predict, for training and evaluation.
//!
//! A directory has `train.txt`, `valid.txt`, `test.txt` and perhaps `inference.txt`, all
//! tab-separated. Its [`Protocol`] is what its `meta.json` states; without one, what the
//! [`registry`] has under the directory's name; without that, transductive. Entities that first
//! appear in triples known to the filter are candidates too, as published: nodes without an edge.

pub mod check;
mod directory;
mod error;
#[cfg(feature = "fetch")]
pub mod fetch;
mod finetuning;
mod graph;
pub mod layout;
mod meta;
pub mod registry;
mod remedy;
pub mod select;
mod test_set;
mod training;

pub use directory::Dataset;
pub use error::DatasetError;
pub use finetuning::{EpochBatches, PublishedFinetuning};
pub use graph::{Fingerprint, NamedGraph};
pub use layout::{Part, Protocol, Split, SplitKind};
pub use registry::{DatasetGroup, RegistryEntry, UnknownDataset};
pub use remedy::DatasetRemedy;
pub use test_set::TestSet;
pub(crate) use test_set::order as sample_order;
pub use training::{TrainingGraph, training, training_graph, training_triples, validation};
