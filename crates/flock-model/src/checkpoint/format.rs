//! The bytes of a checkpoint: a safetensors file whose header also says what the model is.

use std::collections::BTreeMap;
use std::fmt;

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorInfo};
use serde::Serialize;

use super::checksum::{self, BLANK_CHECKSUM, CHECKSUM_KEY, checksum_holds};
use super::error::CheckpointProblem;
use crate::half::{bf16_to_f32, f16_to_f32, f32_to_f16};
use crate::metadata::Metadata;
use crate::tensors::{Shapes, check_finite, check_shapes};
use crate::weights::Weights;

/// The version of the format this crate writes, and the only one it reads.
pub const FORMAT_VERSION: &str = "1";
/// The longest header of a safetensors file, as in the format's own library.
const MAX_HEADER_BYTES: u64 = 100_000_000;

pub(super) const METADATA_KEY: &str = "flock-kg";
pub(super) const VERSION_KEY: &str = "format_version";

/// Reads the bytes of a file. `lenient` leaves out tensors the model does not have.
pub(super) fn parse(bytes: &[u8], lenient: bool) -> Result<Weights, CheckpointProblem> {
    check_extent(bytes)?;
    let format = |e: SafeTensorError| format_error(bytes, e);
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let file = SafeTensors::deserialize(bytes).map_err(format)?;
    let shapes: Shapes = file.iter().map(|(name, view)| (name.to_string(), view.shape().to_vec())).collect();

    let about = header.metadata().as_ref();
    let json = about.and_then(|map| map.get(METADATA_KEY));
    let version = about.and_then(|map| map.get(VERSION_KEY)).map_or("(none)", String::as_str);
    if json.is_some() && version != FORMAT_VERSION {
        return Err(CheckpointProblem::Version { found: version.to_string() });
    }
    // Before anything is said about the content: a damaged file may look like a model that has gone wrong.
    if !about.is_none_or(|about| checksum_holds(bytes, about)) {
        return Err(CheckpointProblem::Checksum);
    }
    let meta = match json {
        Some(json) => serde_json::from_str(json).map_err(|e| CheckpointProblem::Metadata(e.to_string()))?,
        None => {
            let note = "the file had no metadata: sizes inferred from its tensors, the rest are the published defaults";
            Metadata { note: Some(note.to_string()), ..Metadata::infer(&shapes) }
        }
    };
    meta.check().map_err(CheckpointProblem::Tensors)?;
    check_shapes(&meta, &shapes, lenient).map_err(CheckpointProblem::Tensors)?;

    let mut weights = Weights::zeros(meta);
    let table = weights.table().clone();
    for tensor in table.tensors() {
        let (name, values) = (&tensor.name, &mut weights.values[tensor.range()]);
        let view = file.tensor(name).map_err(format)?;
        if !widen(view.dtype(), view.data(), values) {
            return Err(CheckpointProblem::Dtype { tensor: name.clone(), dtype: view.dtype().to_string() });
        }
        check_finite(name, values).map_err(CheckpointProblem::Tensors)?;
    }
    Ok(weights)
}

/// Refuses a header that reaches past the end of the file, naming the tensor. (The safetensors crate only says that the
/// file is "not fully covered", and adds such offsets up without a check.)
fn check_extent(bytes: &[u8]) -> Result<(), CheckpointProblem> {
    let Some((size, rest)) = bytes.split_first_chunk::<8>() else { return Ok(()) };
    let header_len = u64::from_le_bytes(*size);
    // The crate's own limit, before a tree twenty times the size is built from it.
    if header_len > MAX_HEADER_BYTES {
        return Err(format_error(
            bytes,
            format!("a header of {header_len} bytes, expected at most {MAX_HEADER_BYTES}"),
        ));
    }
    let Some(header) = usize::try_from(header_len).ok().and_then(|n| rest.get(..n)) else { return Ok(()) };
    let header: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|e| format_error(bytes, e))?;
    let len = bytes.len() as u64;
    for (tensor, entry) in header {
        let end = entry.pointer("/data_offsets/1").and_then(serde_json::Value::as_u64).unwrap_or(0);
        let end = end.saturating_add(8 + header_len);
        if end > len {
            return Err(CheckpointProblem::Truncated { tensor, end, len });
        }
    }
    Ok(())
}

fn format_error(bytes: &[u8], reason: impl fmt::Display) -> CheckpointProblem {
    let bytes = bytes[..bytes.len().min(32)].to_vec();
    CheckpointProblem::Format { reason: reason.to_string(), bytes }
}

/// Writes little-endian bytes to `values` as `f32`; false for element types that are not widened.
fn widen(dtype: Dtype, bytes: &[u8], values: &mut [f32]) -> bool {
    fn put(values: &mut [f32], read: impl Iterator<Item = f32>) -> bool {
        values.iter_mut().zip(read).for_each(|(value, read)| *value = read);
        true
    }
    let pairs = || bytes.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b));
    match dtype {
        Dtype::F32 => put(values, bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b))),
        Dtype::F16 => put(values, pairs().map(f16_to_f32)),
        Dtype::BF16 => put(values, pairs().map(bf16_to_f32)),
        _ => false,
    }
}

/// The element type of the tensors of a file.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Element {
    Single,
    Half,
}

/// Writes the file's bytes. Not left to the safetensors crate, whose header lists the metadata in a
/// random order: the bytes, and so the hash, would differ from one write to the next.
pub(super) fn serialize(weights: &Weights, element: Element) -> Vec<u8> {
    #[derive(Serialize)]
    struct Header<'a> {
        #[serde(rename = "__metadata__")]
        about: BTreeMap<&'a str, String>,
        #[serde(flatten)]
        tensors: BTreeMap<&'a str, TensorInfo>,
    }
    let table = weights.table();
    let (dtype, bytes_each) = match element {
        Element::Single => (Dtype::F32, 4),
        Element::Half => (Dtype::F16, 2),
    };
    let mut end = 0;
    let mut info = |shape: &[usize], len: usize| {
        let start = end;
        end += bytes_each * len;
        TensorInfo { dtype, shape: shape.to_vec(), data_offsets: (start, end) }
    };
    let header = Header {
        tensors: table.by_name().map(|t| (t.name.as_str(), info(&t.shape, t.range().len()))).collect(),
        about: BTreeMap::from([
            (METADATA_KEY, to_json(&weights.meta)),
            (VERSION_KEY, FORMAT_VERSION.to_string()),
            (CHECKSUM_KEY, String::from_utf8_lossy(&BLANK_CHECKSUM).into_owned()),
        ]),
    };
    let mut header = to_json(&header);
    // The data starts at a multiple of eight, as the format asks.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));

    let mut bytes = Vec::with_capacity(8 + header.len() + end);
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header.as_bytes());
    for tensor in table.by_name() {
        let values = weights.values[tensor.range()].iter();
        match element {
            Element::Single => bytes.extend(values.flat_map(|x| x.to_le_bytes())),
            Element::Half => bytes.extend(values.flat_map(|x| f32_to_f16(*x).to_le_bytes())),
        }
    }
    checksum::fill_in(&mut bytes);
    bytes
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("string keys and plain values are always JSON")
}
