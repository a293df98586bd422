//! The zip archive that `torch.save` writes: `<root>/data.pkl`, `<root>/data/<key>`, `<root>/byteorder`.
//!
//! An entry is read up to the size its reader expects, whatever the archive promises, so a small file cannot unfold into
//! a large one.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::ImportProblem;

/// The largest `data.pkl` that is read; that of a published model, optimiser included, has about 100 kB.
const MAX_PICKLE_BYTES: u64 = 8 << 20;
/// The most entries an archive may have; a published model, optimiser included, has about 830.
const MAX_ENTRIES: usize = 1 << 16;
/// How many times its own size an archive may unpack to. `torch.save` does not compress, and weights hardly shrink.
const MAX_RATIO: u64 = 32;

pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    root: String,
    /// Bytes that may yet be unpacked.
    budget: u64,
}

impl<'a> Archive<'a> {
    /// Opens the archive and finds its root. Refuses other files, saying what they look like.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Archive<'a>, ImportProblem> {
        if !bytes.starts_with(b"PK\x03\x04") {
            return Err(ImportProblem::Format(other_format(bytes)));
        }
        let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        if zip.len() > MAX_ENTRIES {
            return Err(ImportProblem::Limit { what: "entries of the archive", limit: MAX_ENTRIES as u64 });
        }
        if zip.has_duplicate_names() || zip.has_overlapping_entries().map_err(damaged)? {
            return Err(ImportProblem::Archive("entries repeat or overlap".to_string()));
        }
        let root = zip
            .file_names()
            .filter_map(|name| name.ok()?.strip_suffix("/data.pkl").map(String::from))
            .find(|root| !root.contains('/'))
            .ok_or(ImportProblem::Format("a zip archive without a data.pkl"))?;
        let mut archive = Archive { zip, root, budget: MAX_RATIO * bytes.len() as u64 };
        if let Some(order) = archive.entry("byteorder", 16)?
            && order != b"little"
        {
            return Err(ImportProblem::ByteOrder(String::from_utf8_lossy(&order).escape_debug().to_string()));
        }
        Ok(archive)
    }

    /// Reads the pickled description of the object.
    pub(super) fn pickle(&mut self) -> Result<Vec<u8>, ImportProblem> {
        match self.entry("data.pkl", MAX_PICKLE_BYTES)? {
            None => Err(ImportProblem::Archive("no data.pkl".to_string())),
            Some(bytes) if bytes.len() as u64 > MAX_PICKLE_BYTES => {
                Err(ImportProblem::Limit { what: "bytes of data.pkl", limit: MAX_PICKLE_BYTES })
            }
            Some(bytes) => Ok(bytes),
        }
    }

    /// Reads the raw bytes of one storage; `None` if it is missing or not exactly `len` bytes long.
    pub(super) fn storage(&mut self, key: &str, len: u64) -> Result<Option<Vec<u8>>, ImportProblem> {
        Ok(self.entry(&format!("data/{key}"), len)?.filter(|bytes| bytes.len() as u64 == len))
    }

    /// Reads the bytes of an entry, at most one more than `limit`. The checksum has been compared if all of them are there.
    fn entry(&mut self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, ImportProblem> {
        let mut entry = match self.zip.by_name(&format!("{}/{name}", self.root)) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(e) => return Err(damaged(e)),
        };
        // No capacity is reserved: the vector grows with what is there, not with what was promised.
        let mut bytes = Vec::new();
        let read = entry.by_ref().take(limit.saturating_add(1).min(self.budget + 1)).read_to_end(&mut bytes);
        read.map_err(|e| ImportProblem::Archive(format!("{name}: {e}")))?;
        match self.budget.checked_sub(bytes.len() as u64) {
            Some(rest) => self.budget = rest,
            None => {
                let what = "unpacked size, in multiples of the file";
                return Err(ImportProblem::Limit { what, limit: MAX_RATIO });
            }
        }
        Ok(Some(bytes))
    }
}

fn damaged(error: ZipError) -> ImportProblem {
    ImportProblem::Archive(error.to_string())
}

/// What a file that is not a zip archive looks like, and what to do about it.
fn other_format(bytes: &[u8]) -> &'static str {
    // A legacy file starts with the pickled number 0x1950a86a20f9469cfc6c.
    const LEGACY: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    if bytes.is_empty() {
        "an empty file"
    } else if bytes.first() == Some(&0x80) && bytes.get(2..).is_some_and(|rest| rest.starts_with(LEGACY)) {
        "a file in the format of PyTorch before 1.6; hint: load and save it again with a newer PyTorch"
    } else if bytes.first() == Some(&0x80) {
        "a bare pickle; hint: save the weights with torch.save"
    } else if bytes.get(8) == Some(&b'{') {
        "a safetensors file, which needs no import"
    } else if bytes.starts_with(b"version https://git-lfs") {
        "a Git LFS pointer; hint: download the file itself"
    } else if bytes.starts_with(b"<") {
        "a web page; hint: download the file itself"
    } else {
        "a file of unknown format"
    }
}
