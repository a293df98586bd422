//! The training state: one file, from which a run resumes as if it had never stopped.
//!
//! ```text
//! "FLOCKTRN"  version u32  header length u64  header (JSON)  number of arrays u32  { length u64, f32 … } …  SHA-256 of all before
//! ```
//! Little-endian. The file is written under a temporary name, flushed to disk and renamed, so a run
//! that is killed at any moment leaves the last state whole. The checksum detects a damaged file.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::remedy::TrainRemedy;
use flock_model::files::write_atomically;

const MAGIC: &[u8; 8] = b"FLOCKTRN";
/// The version of the format this crate writes, and the only one it reads.
pub const STATE_VERSION: u32 = 1;

/// Why a training state cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The file is not a training state.
    #[error("{file}: not a training state of flock-kg")]
    Magic {
        /// The file.
        file: String,
    },
    /// The state has another version.
    #[error("{file}: training state of version {found}, but this program reads version {STATE_VERSION}")]
    Version {
        /// The file.
        file: String,
        /// The version it states.
        found: u32,
    },
    /// The file is damaged.
    #[error("{file}: the checksum does not match: the file is damaged")]
    Checksum {
        /// The file.
        file: String,
    },
    /// The checksum is right, but the content is not a state of this kind of run.
    #[error("{file}: {reason}")]
    Content {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

impl StateError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<TrainRemedy> {
        matches!(self, StateError::Checksum { .. }).then_some(TrainRemedy::RemoveState)
    }
}

/// Writes a state.
pub(crate) fn write(path: &Path, header: &impl Serialize, arrays: &[&[f32]]) -> Result<(), StateError> {
    let header = serde_json::to_vec(header).expect("headers have string keys and plain values");
    let floats: usize = arrays.iter().map(|a| a.len()).sum();
    let mut bytes = Vec::with_capacity(header.len() + 4 * floats + 16 * arrays.len() + 64);
    bytes.extend(MAGIC);
    bytes.extend(STATE_VERSION.to_le_bytes());
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header);
    bytes.extend((arrays.len() as u32).to_le_bytes());
    for array in arrays {
        bytes.extend((array.len() as u64).to_le_bytes());
        bytes.extend(array.iter().flat_map(|x| x.to_le_bytes()));
    }
    let sum = Sha256::digest(&bytes);
    bytes.extend(sum);
    write_atomically(path, &bytes).map_err(|source| StateError::Io { file: path.display().to_string(), source })
}

/// Reads a state back.
pub(crate) fn read<H: DeserializeOwned>(path: &Path) -> Result<(H, Vec<Vec<f32>>), StateError> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| StateError::Io { file: file.clone(), source })?;
    let content = |reason: &str| StateError::Content { file: file.clone(), reason: reason.to_string() };
    if !bytes.starts_with(MAGIC) {
        return Err(StateError::Magic { file });
    }
    // A file cut short has lost its checksum, and what stands in its place does not match.
    let Some((body, sum)) = bytes.split_last_chunk::<32>() else { return Err(StateError::Checksum { file }) };
    let mut rest = Bytes(body.get(MAGIC.len()..).unwrap_or_default());
    let version = rest.u32().ok_or_else(|| StateError::Checksum { file: file.clone() })?;
    if version != STATE_VERSION {
        return Err(StateError::Version { file, found: version });
    }
    if Sha256::digest(body)[..] != sum[..] {
        return Err(StateError::Checksum { file });
    }
    let header = rest.u64().and_then(|len| rest.take(len)).ok_or_else(|| content("its header is cut short"))?;
    let header: H = serde_json::from_slice(header).map_err(|e| content(&format!("its header: {e}")))?;
    let count = rest.u32().ok_or_else(|| content("its arrays are cut short"))?;
    let mut arrays = Vec::new();
    for _ in 0..count {
        let array = rest.u64().and_then(|len| rest.take(len.checked_mul(4)?));
        let array = array.ok_or_else(|| content("its arrays are cut short"))?;
        arrays.push(array.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect());
    }
    Ok((header, arrays))
}

/// The bytes of a file that are not parsed yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
    fn u64(&mut self) -> Option<u64> {
        let (low, high) = (self.u32()?, self.u32()?);
        Some(u64::from(high) << 32 | u64::from(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let arrays: [&[f32]; 3] = [&[1.0, -0.0, f32::MIN_POSITIVE], &[], &[2.5]];
        write(&path, &vec![("step", 7u64)], &arrays).unwrap();
        let (header, back): (Vec<(String, u64)>, _) = read(&path).unwrap();
        assert_eq!(header, [("step".to_string(), 7)]);
        let bits = |a: &[f32]| a.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert!(back.len() == 3 && back.iter().zip(arrays).all(|(a, b)| bits(a) == bits(b)));

        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 16;
            std::fs::write(&path, &bytes).unwrap();
            assert!(read::<Vec<(String, u64)>>(&path).is_err(), "byte {at} changed");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(read::<Vec<(String, u64)>>(&path).is_err(), "cut at byte {at}");
        }
        std::fs::write(&path, &whole).unwrap();
        assert!(matches!(read::<u64>(&path), Err(StateError::Content { .. })));
    }
}
