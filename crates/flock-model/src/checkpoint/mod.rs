//! Model weights on disk: a safetensors file whose header also says what the model is.
//!
//! The tensors keep the names of the published `state_dict` and stand in the order of these names. The
//! metadata is one JSON object under the key `flock-kg`. A file without it (weights exported from
//! elsewhere) is read too: its sizes are inferred from its shapes and the rest are the published
//! defaults. Whatever is read has been checked in full: names, shapes, element types, and no NaN or
//! infinity. The same holds for whatever is written, so no file is written that could not be read back,
//! and the same weights always make the same bytes, hence the same hash.
//!
//! The header also has a checksum, `sha256`: that of the whole file with the checksum's own digits as
//! zeros. A file that has one and does not match it is refused, whatever bit is wrong. Files written
//! before there was one are read without.

mod checksum;
mod error;
mod format;

use std::path::Path;

use crate::files::{read_limited, sha256_hex, write_atomically};
pub use crate::metadata::{Averaging, Metadata, ProcessorKind, Task};
pub use crate::tensors::{MAX_PARAMETERS, TensorError};
pub use crate::weights::{Tensor, Weights};
pub use error::{CheckpointError, CheckpointProblem};
use format::Element;
pub use format::FORMAT_VERSION;

/// The weights of a model and what is known about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The weights, and what the model is.
    pub weights: Weights,
    /// SHA-256 of the file's bytes, in hex; of the bytes [`Checkpoint::write`] would write if it was
    /// not read from a file.
    pub hash: String,
}

impl Checkpoint {
    /// Makes a checkpoint of weights at hand, checked.
    pub fn new(weights: Weights) -> Result<Checkpoint, TensorError> {
        let mut checkpoint = Checkpoint { weights, hash: String::new() };
        checkpoint.hash = sha256_hex(&checkpoint.to_bytes()?);
        Ok(checkpoint)
    }

    /// Makes a checkpoint of the mean of several models' weights ([`Weights::average`]). One model is returned as it is. The
    /// note names the models, and the training steps are the most that one of them has.
    pub fn average(models: &[Checkpoint]) -> Result<Checkpoint, TensorError> {
        if let [one] = models {
            return Ok(one.clone());
        }
        let weights: Vec<&Weights> = models.iter().map(|model| &model.weights).collect();
        let mut mean = Weights::average(&weights)?;
        let names: Vec<&str> = models.iter().map(|model| model.hash.get(..12).unwrap_or(&model.hash)).collect();
        let made = format!("mean of {}", names.join(", "));
        mean.meta.note = Some(mean.meta.note.map_or(made.clone(), |note| format!("{note}; {made}")));
        mean.meta.steps = models.iter().map(|model| model.meta().steps).max().unwrap_or(0);
        Checkpoint::new(mean)
    }

    /// Reads a file. Tensors the model does not have are an error.
    pub fn read(path: impl AsRef<Path>) -> Result<Checkpoint, CheckpointError> {
        read_file(path.as_ref(), false)
    }

    /// Reads a file, leaving out tensors the model does not have.
    pub fn read_lenient(path: impl AsRef<Path>) -> Result<Checkpoint, CheckpointError> {
        read_file(path.as_ref(), true)
    }

    /// Reads the bytes of a file; `name` is what errors call it.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
        parse(bytes, false).map_err(|problem| problem.in_file(name))
    }

    /// Returns what the model is.
    pub fn meta(&self) -> &Metadata {
        &self.weights.meta
    }

    /// Returns the values of a tensor.
    pub fn tensor(&self, name: &str) -> Option<&[f32]> {
        self.weights.tensor(name)
    }

    /// Returns the bytes of the file: the same for the same weights and metadata. Refuses what reading
    /// would refuse.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TensorError> {
        self.weights.check()?;
        Ok(format::serialize(&self.weights, Element::Single))
    }

    /// Returns the bytes of a file of half the size, with its weights rounded to half precision. Refuses weights that are too
    /// large for it, 65,520 or more.
    pub fn to_half_bytes(&self) -> Result<Vec<u8>, TensorError> {
        self.weights.in_half_precision().check()?;
        Ok(format::serialize(&self.weights, Element::Half))
    }

    /// Writes the file and returns the hash of its bytes. The file appears whole or not at all: it is
    /// written under a temporary name in the same directory, flushed to disk and renamed.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<String, CheckpointError> {
        write_bytes(path.as_ref(), self.to_bytes())
    }

    /// As [`Checkpoint::write`], with the weights in half precision: [`Checkpoint::to_half_bytes`].
    pub fn write_half(&self, path: impl AsRef<Path>) -> Result<String, CheckpointError> {
        write_bytes(path.as_ref(), self.to_half_bytes())
    }
}

fn write_bytes(path: &Path, bytes: Result<Vec<u8>, TensorError>) -> Result<String, CheckpointError> {
    let name = path.display().to_string();
    let bytes = bytes.map_err(|e| CheckpointProblem::Tensors(e).in_file(&name))?;
    write_atomically(path, &bytes).map_err(|e| CheckpointProblem::Io(e).in_file(&name))?;
    Ok(sha256_hex(&bytes))
}

fn read_file(path: &Path, lenient: bool) -> Result<Checkpoint, CheckpointError> {
    let name = path.display().to_string();
    read_limited(path)
        .map_err(CheckpointProblem::Io)
        .and_then(|bytes| parse(&bytes, lenient))
        .map_err(|problem| problem.in_file(&name))
}

fn parse(bytes: &[u8], lenient: bool) -> Result<Checkpoint, CheckpointProblem> {
    Ok(Checkpoint { weights: format::parse(bytes, lenient)?, hash: sha256_hex(bytes) })
}
