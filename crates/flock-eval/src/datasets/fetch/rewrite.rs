//! Rewrites upstream triples in one form: head, relation, tail, separated by tabs, a line feed after
//! each. Files are streamed: memory holds one row, and a file much larger than published is refused.
//!
//! Fields are separated by tabs, or by blanks where a line has no tab. Blanks at the ends of a line
//! are no part of a name; blanks beside a tab are, as in the code that the published numbers come
//! from.

use std::fs::File;
use std::io::{BufRead, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flock_graph::foreign_kind;
use sha2::{Digest, Sha256};

use super::error::{FetchError, io_error};
use crate::datasets::{Part, RegistryEntry};

/// A row may have so many bytes.
const MAX_ROW: usize = 64 << 10;
/// A file may have so many bytes for each triple that the registry expects, and this many more.
const BYTES_PER_TRIPLE: u64 = 1 << 10;
const SPARE_BYTES: u64 = 1 << 20;

/// A file of the layout while it is written.
pub(super) struct PartWriter {
    path: PathBuf,
    out: BufWriter<File>,
    sum: Sha256,
    /// Triples that the registry expects.
    expected: u64,
    /// Bytes read so far.
    read: u64,
    row: Vec<u8>,
}

impl PartWriter {
    /// Creates the file of `part` in `dir`.
    pub fn create(dir: &Path, entry: &RegistryEntry, part: Part) -> Result<PartWriter, FetchError> {
        let path = dir.join(part.file());
        let expected = match part {
            Part::Train => entry.train[2],
            Part::Inference => entry.test.triples,
            Part::Valid => entry.valid.predicted,
            Part::Test => entry.test.predicted,
        };
        let out = BufWriter::new(File::create(&path).map_err(io_error(&path))?);
        Ok(PartWriter { path, out, sum: Sha256::new(), expected, read: 0, row: Vec::new() })
    }

    /// Adds the triples of an upstream file. `failed` makes an error of one in reading.
    pub fn add(
        &mut self,
        file: &str,
        reader: &mut dyn BufRead,
        columns: [usize; 3],
        failed: &dyn Fn(std::io::Error) -> FetchError,
    ) -> Result<(), FetchError> {
        check_kind(file, reader, "triples")?;
        let limit = self.expected * BYTES_PER_TRIPLE + SPARE_BYTES;
        let mut row = std::mem::take(&mut self.row);
        for line in 1.. {
            row.clear();
            if reader.take(MAX_ROW as u64 + 1).read_until(b'\n', &mut row).map_err(failed)? == 0 {
                break;
            }
            let file = || file.to_string();
            if row.len() > MAX_ROW {
                return Err(FetchError::LongRow { file: file(), line, limit: MAX_ROW });
            }
            self.read += row.len() as u64;
            if self.read > limit {
                let expected = format!("{} triples", self.expected);
                return Err(FetchError::TooLarge { file: file(), limit, expected });
            }
            let text = std::str::from_utf8(&row).map_err(|e| FetchError::NotUtf8 {
                file: file(),
                line,
                byte: e.valid_up_to() + 1,
            })?;
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let fields = fields(text).map_err(|found| FetchError::Row { file: file(), line, found })?;
            self.write(columns.map(|column| fields[column]))?;
        }
        self.row = row;
        Ok(())
    }

    fn write(&mut self, triple: [&str; 3]) -> Result<(), FetchError> {
        for (name, end) in triple.into_iter().zip([b"\t", b"\t", b"\n"]) {
            for bytes in [name.as_bytes(), end] {
                self.sum.update(bytes);
                self.out.write_all(bytes).map_err(io_error(&self.path))?;
            }
        }
        Ok(())
    }

    /// Ends the file. Returns its SHA-256.
    pub fn finish(mut self) -> Result<String, FetchError> {
        self.out.flush().map_err(io_error(&self.path))?;
        Ok(self.sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The three fields of a line, or how many it has.
fn fields(line: &str) -> Result<[&str; 3], usize> {
    fn three<'a>(mut fields: impl Iterator<Item = &'a str>) -> Result<[&'a str; 3], usize> {
        match [fields.next(), fields.next(), fields.next(), fields.next()] {
            [Some(a), Some(b), Some(c), None] => Ok([a, b, c]),
            first => Err(first.iter().flatten().count() + fields.count()),
        }
    }
    if line.contains('\t') { three(line.split('\t')) } else { three(line.split_whitespace()) }
}

/// Refuses a file that begins like one of another kind.
pub(super) fn check_kind(
    file: &str,
    reader: &mut (impl BufRead + ?Sized),
    expected: &'static str,
) -> Result<(), FetchError> {
    // What cannot be read is told by whoever reads it next.
    match reader.fill_buf().ok().and_then(foreign_kind) {
        Some(found) => Err(FetchError::Foreign { file: file.to_string(), found, expected }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn tabs_separate_where_there_are_any() {
        assert_eq!(fields("a\tb\tc"), Ok(["a", "b", "c"]));
        assert_eq!(fields("a b  c"), Ok(["a", "b", "c"]));
        assert_eq!(fields("a tall tree \tIsA\tplant"), Ok(["a tall tree ", "IsA", "plant"]));
        assert_eq!(fields("12345"), Err(1));
        assert_eq!(fields("a b\tc"), Err(2));
        assert_eq!(fields("a b c d e f"), Err(6));
    }
}
