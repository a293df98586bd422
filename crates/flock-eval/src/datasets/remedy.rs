//! What to do about an error with a dataset.

use std::fmt;

use super::layout::{Part, Split};

/// What to do about an error with a dataset. `Display` says it in words that fit any caller; a
/// command may name its own flags instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatasetRemedy {
    /// Predict this split, which has triples.
    PredictOther(Split),
    /// Put triples to predict into the file of this split.
    AddTriples(Split),
    /// Choose a name from the registry.
    ListNames,
    /// Fetch the dataset, or look in another directory.
    Fetch {
        /// Name of the dataset.
        name: String,
    },
    /// Check the dataset that exists, or remove it.
    CheckOrRemove,
    /// Name a source that has the file.
    NameSource {
        /// Upstream path of the file.
        path: String,
        /// Name of the dataset.
        name: String,
        /// The file of the layout.
        part: Part,
    },
    /// Fetch again: the download resumes where it broke off.
    Resume,
    /// Accept files that differ from the registry.
    Accept {
        /// Where the downloaded files are kept, if there are any. Without them the next call
        /// downloads again.
        kept: Option<String>,
    },
    /// Name a source that has the file as it was published, or try again later.
    OtherSource,
}

impl fmt::Display for DatasetRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasetRemedy::PredictOther(split) => write!(f, "predict {split}.txt"),
            DatasetRemedy::AddTriples(split) => write!(f, "put triples to predict into {split}.txt"),
            DatasetRemedy::ListNames => f.write_str("choose a name from the registry"),
            DatasetRemedy::Fetch { name } => write!(f, "fetch {name}, or look in another directory"),
            DatasetRemedy::CheckOrRemove => f.write_str("check it, or remove it to fetch it again"),
            DatasetRemedy::NameSource { path, name, part } => {
                write!(f, "name a source that has {path}, or {name}/{part}.txt in the layout itself")
            }
            DatasetRemedy::Resume => f.write_str("fetch it again, which resumes the download"),
            DatasetRemedy::Accept { kept: None } => f.write_str("accept the files as they are"),
            DatasetRemedy::Accept { kept: Some(dir) } => {
                write!(f, "accept the files as they are, or remove {dir} to download them again")
            }
            DatasetRemedy::OtherSource => {
                f.write_str("name a source that has the file as published, or try again later")
            }
        }
    }
}
