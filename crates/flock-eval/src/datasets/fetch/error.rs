//! Why a dataset cannot be fetched.

use std::io;
use std::path::Path;

use super::suspicion::Suspicion;
use crate::datasets::{DatasetError, DatasetRemedy, Part};

/// Why a dataset cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The dataset exists already.
    #[error("{dir}: exists already")]
    Exists {
        /// The directory.
        dir: String,
    },
    /// A local file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The source does not have a file.
    #[error("{}: not found{}", .tried[0], also(.tried))]
    NotFound {
        /// What was asked for, the upstream file first.
        tried: Vec<String>,
        /// The upstream path.
        path: String,
        /// The dataset.
        name: String,
        /// The file of the layout.
        part: Part,
    },
    /// A download failed.
    #[error("{url}: {reason}; what has come is kept")]
    Http {
        /// What was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// An upstream file is of another kind, such as a web page that reports an error.
    #[error("{file}: looks like {found}, expected {expected}")]
    Foreign {
        /// The file.
        file: String,
        /// What it looks like.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// An upstream file has a row that is not a triple.
    #[error("{file}:{line}: expected 3 fields, found {found}")]
    Row {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// How many fields it has.
        found: usize,
    },
    /// An upstream file is not UTF-8.
    #[error("{file}:{line}: invalid UTF-8 at byte {byte} of the line, expected UTF-8 text")]
    NotUtf8 {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte of the line, counted from 1.
        byte: usize,
    },
    /// A line is longer than any triple.
    #[error("{file}:{line}: longer than {limit} bytes, expected a triple")]
    LongRow {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// A file is much larger than published.
    #[error("{file}: larger than {limit} bytes, expected {expected}")]
    TooLarge {
        /// The file.
        file: String,
        /// The limit.
        limit: u64,
        /// What was expected.
        expected: String,
    },
    /// An archive cannot be read.
    #[error("{file}: {reason}")]
    Archive {
        /// The archive.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The files differ from the registry.
    #[error("{name} is not as published:{}{}", lines(.differences), lines(.suspicions))]
    Differs {
        /// The dataset.
        name: String,
        /// What differs.
        differences: Vec<String>,
        /// What may be the cause.
        suspicions: Vec<Suspicion>,
        /// Where the downloaded files are kept, if there are any.
        kept: Option<String>,
    },
    /// The fetched files are not a dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl FetchError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<DatasetRemedy> {
        Some(match self {
            FetchError::Exists { .. } => DatasetRemedy::CheckOrRemove,
            FetchError::NotFound { path, name, part, .. } => {
                DatasetRemedy::NameSource { path: path.clone(), name: name.clone(), part: *part }
            }
            FetchError::Http { .. } => DatasetRemedy::Resume,
            FetchError::Differs { kept, .. } => DatasetRemedy::Accept { kept: kept.clone() },
            FetchError::Dataset(e) => return e.remedy(),
            _ if self.is_content() => DatasetRemedy::OtherSource,
            _ => return None,
        })
    }

    /// Returns whether an upstream file has something that it should not have, so that a copy of it
    /// is of no use.
    pub(super) fn is_content(&self) -> bool {
        use FetchError::{Archive, Foreign, LongRow, NotUtf8, Row, TooLarge};
        matches!(self, Foreign { .. } | Row { .. } | NotUtf8 { .. } | LongRow { .. } | TooLarge { .. } | Archive { .. })
    }
}

/// `; also tried a, b`, or nothing.
fn also(tried: &[String]) -> String {
    match tried {
        [_, others @ ..] if !others.is_empty() => format!("; also tried {}", others.join(", ")),
        _ => String::new(),
    }
}

/// Each on a line of its own.
fn lines(items: &[impl ToString]) -> String {
    items.iter().map(|item| format!("\n  {}", item.to_string())).collect()
}

pub(super) fn io_error(path: &Path) -> impl Fn(io::Error) -> FetchError + '_ {
    move |source| FetchError::Io { file: path.display().to_string(), source }
}
