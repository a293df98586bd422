//! Why a file is not a checkpoint.

use std::io;

use super::format::FORMAT_VERSION;
use crate::tensors::TensorError;

/// Why a file is not a checkpoint, or could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct CheckpointError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: CheckpointProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointProblem {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(io::Error),
    /// Not the layout of a safetensors file.
    #[error("not a safetensors file: {reason}{}", hint(.bytes))]
    Format {
        /// What is wrong.
        reason: String,
        /// The file's first bytes, to say what it may be instead.
        bytes: Vec<u8>,
    },
    /// A header that promises more bytes than the file has.
    #[error("truncated: tensor `{tensor}` ends at byte {end} but the file has {len}; hint: copy or download it again")]
    Truncated {
        /// The tensor.
        tensor: String,
        /// Where it should end.
        end: u64,
        /// Where the file ends.
        len: u64,
    },
    /// A checksum that is not that of the file.
    #[error(
        "damaged: the checksum in its header is not that of its bytes; hint: copy or download it again (if a program \
         changed the tensors on purpose, have it leave `sha256` out of the metadata)"
    )]
    Checksum,
    /// Metadata of ours that cannot be understood.
    #[error("metadata `flock-kg` in the header: {0}")]
    Metadata(String),
    /// Metadata of another version.
    #[error(
        "checkpoint format version {found}, but this program reads version {FORMAT_VERSION}; hint: update flock-kg"
    )]
    Version {
        /// The version the file states.
        found: String,
    },
    /// A tensor of integers, or of another type that is not widened.
    #[error("tensor `{tensor}` has element type {dtype}; expected F32, F16 or BF16")]
    Dtype {
        /// The tensor.
        tensor: String,
        /// Its element type.
        dtype: String,
    },
    /// The tensors are not those of the model.
    #[error("{0}")]
    Tensors(TensorError),
}

impl CheckpointProblem {
    pub(super) fn in_file(self, file: &str) -> CheckpointError {
        CheckpointError { file: file.to_string(), problem: self }
    }
}

/// What to do with a file of another format, by its first bytes.
fn hint(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\x80\x02") {
        "; hint: this looks like a PyTorch file, which can be imported"
    } else if bytes.starts_with(b"version https://git-lfs") {
        "; hint: this is a Git LFS pointer, not the file itself"
    } else {
        ""
    }
}
