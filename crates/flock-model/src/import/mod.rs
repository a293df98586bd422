//! Weights from elsewhere: the published PyTorch files, read without Python and without executing anything.
//!
//! `torch.save` writes a zip archive (`archive`): one pickle that describes the object, and one entry of raw values per
//! storage. The pickle is a program; ours (`pickle`) is a reader of the few instructions that build dictionaries and
//! tensors, and refuses every other. What it finds is a list of views into storages; `tensor` copies the model's out.
//! Names and shapes are checked before a single value is read, so a hostile file cannot make us allocate for it.

mod archive;
mod pickle;
mod tensor;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::checkpoint::Checkpoint;
use crate::files::{read_limited, sha256_hex};
use crate::metadata::Metadata;
use crate::tensors::{Shapes, TensorError, check_shapes};
use archive::Archive;
use pickle::{Dict, Pickle, TensorView};

/// Why a PyTorch file cannot be imported.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: ImportProblem,
}

/// What is wrong with a PyTorch file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportProblem {
    /// The file cannot be read.
    #[error("{0}")]
    Io(io::Error),
    /// Another kind of file.
    #[error("not a PyTorch zip file but {0}")]
    Format(&'static str),
    /// A damaged or unusual archive.
    #[error("the zip archive is damaged or truncated: {0}")]
    Archive(String),
    /// Values stored in big-endian order.
    #[error("byte order is `{0}`; only `little` is read; hint: save the file again on a little-endian machine")]
    ByteOrder(String),
    /// A Python object that is not on the list of those that are read.
    #[error("refuses to load `{0}`: only tensors and plain containers are read, and nothing is executed")]
    Global(String),
    /// A pickle instruction that is not on the list of those that are read.
    #[error("data.pkl: instruction {opcode:#04x} at byte {offset} is not one that describes tensors")]
    Opcode {
        /// The instruction.
        opcode: u8,
        /// Where it is.
        offset: usize,
    },
    /// A pickle that makes no sense.
    #[error("data.pkl: {reason} at byte {offset}")]
    Pickle {
        /// What is wrong.
        reason: &'static str,
        /// Where.
        offset: usize,
    },
    /// More of something than any model has.
    #[error("{what}: more than {limit}, the most that is read")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
    },
    /// The saved object is not a model's weights.
    #[error("the saved object is {0}; expected a `state_dict`, or a dictionary that has one under `model`")]
    Object(String),
    /// A tensor that cannot be read.
    #[error("tensor `{tensor}`: {reason}")]
    Tensor {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        reason: String,
    },
    /// The tensors are not those of a Flock model.
    #[error("{0}")]
    Tensors(#[from] TensorError),
}

/// Imports a file written by `torch.save`: a `state_dict`, or a dictionary that has one under `model`.
///
/// Sizes come from the tensors; the training graphs, and with them the base walk rule, are the published ones.
pub fn import_pth(path: impl AsRef<Path>) -> Result<Checkpoint, ImportError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let name = path.file_name().map_or_else(|| file.clone(), |name| name.to_string_lossy().into_owned());
    read_limited(path)
        .map_err(ImportProblem::Io)
        .and_then(|bytes| import(&name, &bytes))
        .map_err(|problem| ImportError { file, problem })
}

/// Imports the bytes of such a file; `name` is what errors and the metadata's note call it.
pub fn import_pth_bytes(name: &str, bytes: &[u8]) -> Result<Checkpoint, ImportError> {
    import(name, bytes).map_err(|problem| ImportError { file: name.to_string(), problem })
}

fn import(name: &str, bytes: &[u8]) -> Result<Checkpoint, ImportProblem> {
    let mut archive = Archive::open(bytes)?;
    let program = archive.pickle()?;
    let pickle = pickle::read(&program)?;
    let views = state_dict(&pickle)?;

    let shapes: Shapes = views.iter().map(|(name, view)| (name.clone(), view.shape.clone())).collect();
    let note = format!("imported from {name}, SHA-256 {}", sha256_hex(bytes));
    let meta = Metadata { note: Some(note), ..Metadata::infer(&shapes) };
    meta.check()?;
    check_shapes(&meta, &shapes, false)?;

    Ok(Checkpoint::new(tensor::read_all(&mut archive, &views, meta)?)?)
}

/// The model's tensors by name, without the `module.` that training on several devices puts before it.
fn state_dict<'p>(pickle: &'p Pickle<'_>) -> Result<BTreeMap<String, &'p TensorView<'p>>, ImportProblem> {
    let top = pickle.dict(pickle.root()).ok_or_else(|| ImportProblem::Object("not a dictionary".to_string()))?;
    let model = match pickle.get(top, "model") {
        Some(id) => pickle
            .dict(id)
            .ok_or_else(|| ImportProblem::Object("a dictionary whose `model` is not a dictionary".to_string()))?,
        None => top,
    };
    let mut tensors = BTreeMap::new();
    for &(key, value) in model {
        let (Some(key), Some(view)) = (pickle.str(key), pickle.tensor(value)) else {
            return Err(ImportProblem::Object(describe(pickle, model)));
        };
        let name = key.strip_prefix("module.").unwrap_or(key).to_string();
        if tensors.contains_key(&name) {
            return Err(ImportProblem::Tensor { tensor: name, reason: "named twice".to_string() });
        }
        tensors.insert(name, view);
    }
    Ok(tensors)
}

fn describe(pickle: &Pickle<'_>, dict: &Dict) -> String {
    let keys: Vec<&str> = dict.iter().filter_map(|&(key, _)| pickle.str(key)).take(6).collect();
    format!("a dictionary of {} items, not all of them tensors, with keys {keys:?}", dict.len())
}
