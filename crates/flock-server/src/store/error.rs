//! Why edits cannot be read or kept, and what helps.

use std::io;

use super::GraphId;
use super::log::VERSION;

/// Why edits cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another server has the file.
    #[error("{file}: another server has it open")]
    InUse {
        /// The file of edits.
        file: String,
    },
    /// The file is something else.
    #[error("{file}: {found}, expected a file of edits")]
    NotAStore {
        /// The file.
        file: String,
        /// What it is instead.
        found: &'static str,
    },
    /// The file is from a newer program.
    #[error("{file}: format version {found}, this program reads versions up to {VERSION}")]
    Newer {
        /// The file.
        file: String,
        /// Its version.
        found: u64,
    },
    /// The edits were made on another graph.
    #[error("{file}: its edits were made on another graph ({found}), this one has {expected}")]
    OtherGraph {
        /// The file.
        file: String,
        /// The graph of the file.
        found: GraphId,
        /// The graph that is served.
        expected: GraphId,
    },
    /// Something that was acknowledged cannot be read back.
    #[error("{file}: damaged at byte {at}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Where the damage begins.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A file of an older version cannot be read.
    #[error("{file}: edits of an older version cannot be read: {what}")]
    Old {
        /// The file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// The system could not read or write.
    #[error("{file}: cannot {doing}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// What helps against a [`StoreError`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreRemedy {
    /// Stop the other server, or keep edits in another file.
    StopOther,
    /// Restore the file from a backup, or move it away to begin without its edits.
    MoveAway,
    /// Use a newer program.
    Upgrade,
    /// Serve the graph the edits belong to, keep edits in another file, or apply them to this graph on purpose.
    Adopt,
    /// Make room on the disk; the next edit tries again.
    MakeRoom,
    /// Check that file and directory can be written.
    CheckAccess,
}

impl StoreError {
    /// What helps.
    pub fn remedy(&self) -> StoreRemedy {
        match self {
            StoreError::InUse { .. } => StoreRemedy::StopOther,
            StoreError::NotAStore { .. } | StoreError::Damaged { .. } | StoreError::Old { .. } => StoreRemedy::MoveAway,
            StoreError::Newer { .. } => StoreRemedy::Upgrade,
            StoreError::OtherGraph { .. } => StoreRemedy::Adopt,
            StoreError::Io { source, .. } if is_full(source) => StoreRemedy::MakeRoom,
            StoreError::Io { .. } => StoreRemedy::CheckAccess,
        }
    }
}

fn is_full(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
