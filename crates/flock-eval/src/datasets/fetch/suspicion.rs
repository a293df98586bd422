//! What may be behind counts that differ: columns in another order, or a header.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::error::{FetchError, io_error};
use crate::datasets::{Dataset, Part, RegistryEntry, check};

/// The words for the columns of a triple.
const ROLES: [&str; 3] = ["head", "relation", "tail"];

/// What may be behind counts that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspicion {
    /// With another order of the upstream columns the counts are as published.
    Columns {
        /// What each upstream column seems to be.
        are: [&'static str; 3],
        /// What it was taken for.
        taken_for: [&'static str; 3],
    },
    /// All files begin with the same row.
    Header {
        /// The row.
        row: String,
    },
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suspicion::Columns { are, taken_for } => write!(
                f,
                "the columns may be swapped: as {} instead of {} the counts are as published",
                are.join(", "),
                taken_for.join(", ")
            ),
            Suspicion::Header { row } => write!(f, "there may be a header: every file begins with {row:?}"),
        }
    }
}

/// Looks for what may be behind counts that differ in `made`, whose files come from upstream files
/// with these columns. `spare` is a directory that may be written.
pub(super) fn suspicions(
    entry: &RegistryEntry,
    made: &Path,
    columns: [usize; 3],
    spare: &Path,
) -> Result<Vec<Suspicion>, FetchError> {
    let mut found = Vec::new();
    let parts = || entry.collection.files.keys();
    let first: Vec<String> = parts().map(|part| first_row(&made.join(part.file()))).collect();
    if first.iter().all(|row| !row.is_empty() && *row == first[0]) {
        found.push(Suspicion::Header { row: first[0].replace('\t', " ") });
    }
    // Counts tell relations from entities, not heads from tails.
    for order in [[0, 2, 1], [1, 0, 2]] {
        fs::create_dir_all(spare).map_err(io_error(spare))?;
        for name in parts().map(|part| Part::file(*part)).chain(["meta.json".to_string()]) {
            let (from, to) = (made.join(&name), spare.join(&name));
            let copied =
                if name.ends_with("json") { fs::copy(&from, &to).map(|_| ()) } else { exchange(&from, &to, order) };
            copied.map_err(io_error(&from))?;
        }
        let same = Dataset::open(spare).and_then(|swapped| check::counts(&swapped));
        if same.is_ok_and(|differences| differences.is_empty()) {
            let role = |order: [usize; 3]| {
                let mut roles = [""; 3];
                order.iter().zip(ROLES).for_each(|(k, role)| roles[columns[*k]] = role);
                roles
            };
            found.push(Suspicion::Columns { are: role(order), taken_for: role([0, 1, 2]) });
        }
        fs::remove_dir_all(spare).map_err(io_error(spare))?;
    }
    Ok(found)
}

/// The first row of a file, or nothing if it cannot be read.
fn first_row(path: &Path) -> String {
    let mut row = String::new();
    // The file was written here, so no row is long.
    let _ = File::open(path).map(|file| BufReader::new(file.take(1 << 20)).read_line(&mut row));
    row.trim_end().to_string()
}

/// Writes a file with its columns in another order.
fn exchange(from: &Path, to: &Path, order: [usize; 3]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(to)?);
    for line in BufReader::new(File::open(from)?).lines() {
        let line = line?;
        let fields: Vec<&str> = line.split('\t').collect();
        writeln!(out, "{}\t{}\t{}", fields[order[0]], fields[order[1]], fields[order[2]])?;
    }
    out.flush()
}
