//! Whether a set of tensors is a model, and what it may be if not.

use std::fmt::Write as _;

use super::{FROM_NODE, Shapes, TensorInfo, TensorTable};
use crate::metadata::Metadata;

/// Why a set of tensors is not a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A size or mean that no model has.
    #[error("{field} is {value}; it {rule}")]
    Metadata {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        rule: &'static str,
    },
    /// A tensor of the model is not there.
    #[error("tensor `{tensor}` of shape {expected:?} is missing; this seems to be {looks_like}")]
    Missing {
        /// The tensor.
        tensor: String,
        /// Its shape.
        expected: Vec<usize>,
        /// What the tensors seem to be.
        looks_like: String,
    },
    /// A tensor has another shape than the model's.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected:?}; this seems to be {looks_like}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The shape it has.
        found: Vec<usize>,
        /// The shape it should have.
        expected: Vec<usize>,
        /// What the tensors seem to be.
        looks_like: String,
    },
    /// Tensors the model does not have.
    #[error("tensors a Flock model does not have: {}", list(.tensors))]
    Extra {
        /// Their names.
        tensors: Vec<String>,
    },
    /// A tensor has more or fewer values than its shape says.
    #[error("tensor `{tensor}` has {len} values, which do not fill its shape {shape:?}")]
    Length {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// How many values it has.
        len: usize,
    },
    /// A weight that is NaN or infinite.
    #[error("tensor `{tensor}` has {value} at position {index}; weights must be finite")]
    NotFinite {
        /// The tensor.
        tensor: String,
        /// The position in row-major order.
        index: usize,
        /// The value.
        value: f32,
    },
}

/// Compares names and shapes with the model's. `lenient` lets further tensors pass.
pub(crate) fn check_shapes(meta: &Metadata, shapes: &Shapes, lenient: bool) -> Result<(), TensorError> {
    let table = TensorTable::new(meta);
    // In the order of the table, so that the first complaint about a foreign file is always the same.
    for TensorInfo { name, shape, .. } in table.tensors() {
        let (tensor, expected) = (name.clone(), shape.clone());
        match shapes.get(name) {
            None => return Err(TensorError::Missing { tensor, expected, looks_like: looks_like(shapes) }),
            Some(found) if *found != expected => {
                let (found, looks_like) = (found.clone(), looks_like(shapes));
                return Err(TensorError::Shape { tensor, found, expected, looks_like });
            }
            Some(_) => {}
        }
    }
    let extra: Vec<String> = shapes.keys().filter(|name| table.get(name).is_none()).cloned().collect();
    if !lenient && !extra.is_empty() {
        return Err(TensorError::Extra { tensors: extra });
    }
    Ok(())
}

/// Refuses NaN and infinities.
pub(crate) fn check_finite(tensor: &str, data: &[f32]) -> Result<(), TensorError> {
    match data.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(TensorError::NotFinite { tensor: tensor.to_string(), index, value: data[index] }),
    }
}

/// A guess, for an error message, at what a set of tensors belongs to.
fn looks_like(shapes: &Shapes) -> String {
    let any = |prefix: &str| shapes.keys().any(|name| name.starts_with(prefix));
    let Some((first, shape)) = shapes.iter().next() else {
        return "an empty file".to_string();
    };
    if any(&format!("{FROM_NODE}.0.")) {
        let meta = Metadata::infer(shapes);
        let Metadata { task, updates, length, width, layers, .. } = meta;
        let layers = if layers == 1 { String::new() } else { format!(", {layers} layers") };
        format!("a Flock {task} model with {updates} updates{layers}, walk length {length} and width {width}")
    } else if any(&format!("module.{FROM_NODE}.")) || any(&format!("model.{FROM_NODE}.")) {
        "a Flock model whose names carry a prefix; hint: remove it from every name".to_string()
    } else if any("named_walks") {
        "a record of walks and states, not weights".to_string()
    } else if any("entity_model.") && any("relation_model.") {
        "an ULTRA or TRIX model".to_string()
    } else if any("model.layers.") || any("transformer.h.") || any("encoder.layer.") {
        "a language model".to_string()
    } else {
        format!("something else: {} tensors, first `{first}` of shape {shape:?}", shapes.len())
    }
}

/// The first few of a list of names.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        let _ = write!(text, " and {} more", names.len() - SHOWN);
    }
    text
}
