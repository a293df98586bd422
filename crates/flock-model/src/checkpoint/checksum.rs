//! The checksum in a file's header: SHA-256 of the whole file with the checksum's own digits as zeros.

use std::collections::HashMap;
use std::ops::Range;

use sha2::{Digest, Sha256};

use super::format::{METADATA_KEY, VERSION_KEY};
use crate::files::hex;

pub(super) const CHECKSUM_KEY: &str = "sha256";
/// What stands for the checksum while it is computed.
pub(super) const BLANK_CHECKSUM: [u8; 64] = [b'0'; 64];

/// Tells whether a file is what its checksum says, if it has one.
pub(super) fn checksum_holds(bytes: &[u8], about: &HashMap<String, String>) -> bool {
    let Some(stated) = about.get(CHECKSUM_KEY) else {
        // Either the file is from before there was a checksum, or the checksum's name is what the damage has hit.
        let ours = about.contains_key(METADATA_KEY) || about.contains_key(VERSION_KEY);
        let digits = |text: &String| text.len() == BLANK_CHECKSUM.len();
        return !(ours && about.iter().any(|(key, text)| key != METADATA_KEY && digits(text)));
    };
    checksum_place(bytes).is_some_and(|place| checksum(bytes, place) == *stated)
}

/// Finds the digits of the checksum in a file. Quotes inside a JSON string are escaped, so nothing else looks like it.
fn checksum_place(bytes: &[u8]) -> Option<Range<usize>> {
    let (size, rest) = bytes.split_first_chunk::<8>()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*size)).ok()?)?;
    let before = format!("\"{CHECKSUM_KEY}\":\"");
    let start = 8 + header.windows(before.len()).position(|w| w == before.as_bytes())? + before.len();
    let end = start + BLANK_CHECKSUM.len();
    (end <= bytes.len()).then_some(start..end)
}

/// Computes the checksum of a file whose own digits are at `place`.
fn checksum(bytes: &[u8], place: Range<usize>) -> String {
    let hash = Sha256::new().chain_update(&bytes[..place.start]).chain_update(BLANK_CHECKSUM);
    hex(&hash.chain_update(&bytes[place.end..]).finalize())
}

/// Fills in the checksum of a file whose header has the blank one.
pub(super) fn fill_in(bytes: &mut [u8]) {
    let place = checksum_place(bytes).expect("the header has one");
    let digits = checksum(bytes, place.clone());
    bytes[place].copy_from_slice(digits.as_bytes());
}
