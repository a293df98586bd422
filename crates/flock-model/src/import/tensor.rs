//! From views of storages to row-major `f32` tensors.
//!
//! Several tensors may share a storage (a GRU's weights on a GPU do), so each storage is read once, for all its tensors.

use std::collections::BTreeMap;

use super::ImportProblem;
use super::archive::Archive;
use super::pickle::{Element, Storage, TensorView};
use crate::half::{bf16_to_f32, f16_to_f32};
use crate::metadata::Metadata;
use crate::tensors::MAX_PARAMETERS;
use crate::weights::Weights;

/// Reads the tensors of a model, whose names and shapes have been checked.
pub(super) fn read_all(
    archive: &mut Archive<'_>,
    views: &BTreeMap<String, &TensorView<'_>>,
    meta: Metadata,
) -> Result<Weights, ImportProblem> {
    let mut by_storage: BTreeMap<&str, Vec<(&str, &TensorView)>> = BTreeMap::new();
    for (name, view) in views {
        check_extent(view).map_err(|reason| bad(name, reason))?;
        by_storage.entry(view.storage.key).or_default().push((name, view));
    }
    // Kept apart until all are there: a hostile file must not make us allocate a whole model.
    let mut read: Vec<(&str, Vec<f32>)> = Vec::with_capacity(views.len());
    for (key, members) in by_storage {
        // Members may disagree about their storage in a hostile file: each is checked against what was read.
        let (name, first) = members[0];
        let width = width(&first.storage).map_err(|reason| bad(name, reason))?;
        let bytes = archive.storage(key, first.storage.len * width)?.ok_or_else(|| {
            let len = first.storage.len * width;
            bad(name, format!("its storage data/{key} is missing or does not have {len} bytes"))
        })?;
        for (name, view) in members {
            if (view.storage.element, view.storage.len) != (first.storage.element, first.storage.len) {
                return Err(bad(name, format!("its storage data/{key} is declared twice, differently")));
            }
            read.push((name, gather(view, &bytes)));
        }
    }
    let mut weights = Weights::zeros(meta);
    for (name, data) in read {
        match weights.tensor_mut(name) {
            Some(values) if values.len() == data.len() => values.copy_from_slice(&data),
            _ => return Err(bad(name, "the model has no such tensor")),
        }
    }
    Ok(weights)
}

fn bad(tensor: &str, reason: impl Into<String>) -> ImportProblem {
    ImportProblem::Tensor { tensor: tensor.to_string(), reason: reason.into() }
}

/// Bytes per element.
fn width(storage: &Storage<'_>) -> Result<u64, String> {
    match storage.element {
        Element::F16 | Element::BF16 => Ok(2),
        Element::F32 => Ok(4),
        Element::F64 => Ok(8),
        Element::Other(name) => Err(format!("element type is {name}; expected a floating-point type")),
    }
}

/// Refuses a view that reaches outside its storage, or repeats it (which would make a small file unfold into a large one).
fn check_extent(view: &TensorView<'_>) -> Result<(), String> {
    let len = view.storage.len;
    if len > MAX_PARAMETERS {
        return Err(format!("its storage of {len} elements is larger than any model"));
    }
    let count = view.shape.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64));
    let last = (view.shape.iter().zip(&view.stride)).try_fold(view.offset as u64, |at, (&dim, &stride)| {
        (dim.saturating_sub(1) as u64).checked_mul(stride as u64)?.checked_add(at)
    });
    match (count, last) {
        (Some(0), _) => Ok(()),
        (Some(count), Some(last)) if last < len && count <= len => Ok(()),
        _ => Err(format!(
            "shape {:?} with strides {:?} at {} does not fit its storage of {len} elements",
            view.shape, view.stride, view.offset
        )),
    }
}

/// Copies the view's values in row-major order. The view fits the storage whose bytes these are.
fn gather(view: &TensorView<'_>, bytes: &[u8]) -> Vec<f32> {
    let value = |i: usize| match view.storage.element {
        Element::F16 => f16_to_f32(u16::from_le_bytes(bytes.as_chunks().0[i])),
        Element::BF16 => bf16_to_f32(u16::from_le_bytes(bytes.as_chunks().0[i])),
        Element::F32 => f32::from_le_bytes(bytes.as_chunks().0[i]),
        // Narrowed: the model computes in f32.
        Element::F64 => f64::from_le_bytes(bytes.as_chunks().0[i]) as f32,
        Element::Other(_) => f32::NAN, // refused by `width`
    };
    let count = view.shape.iter().product();
    let mut index = vec![0; view.shape.len()];
    let mut at = view.offset;
    let mut data = Vec::with_capacity(count);
    for _ in 0..count {
        data.push(value(at));
        // The next index in row-major order, the last dimension turning fastest. Wrapping, for the stride of a dimension
        // of one is never used and may be any number.
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            at = at.wrapping_add(view.stride[axis]);
            if index[axis] < view.shape[axis] {
                break;
            }
            at = at.wrapping_sub(index[axis].wrapping_mul(view.stride[axis]));
            index[axis] = 0;
        }
    }
    data
}
