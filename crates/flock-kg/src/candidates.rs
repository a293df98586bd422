//! The only candidates of a question: a list of names, given or read from a file with one name per line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flock_graph::{Graph, Names, UnknownName};
use flock_model::checkpoint::Task;

/// The most bytes of a name: no name in a graph is longer.
const MAX_NAME: u64 = 64 << 10;

/// The most bytes of a list, so that a stream without an end has one.
const MAX_LIST: u64 = 256 << 20;

/// Distinct names, each with the place it was read from.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    names: Names,
    file: Option<String>,
    lines: Vec<u64>, // of a file: where each name stands first
}

/// Why a list of candidates cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CandidatesError {
    /// The system cannot read it.
    #[error("{file}: cannot read: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is no name.
    #[error("{file}:{line}: found a line of more than {} KiB, expected one name per line", MAX_NAME >> 10)]
    LongLine {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// More than is taken.
    #[error("{file}:{line}: found more than {} MiB of names", MAX_LIST >> 20)]
    LongList {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// A line that is no text.
    #[error("{file}:{line}: invalid UTF-8, expected one name per line")]
    NotText {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// Nothing at all.
    #[error("{file}: no names, expected one per line")]
    Empty {
        /// The file.
        file: String,
    },
}

/// A candidate that the graph does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{unknown}", if .place.is_empty() { String::new() } else { format!("{place}: ") })]
pub struct UnknownCandidate {
    /// `file:line`, or nothing.
    pub place: String,
    /// The name, and names near it.
    pub unknown: UnknownName,
}

impl Candidates {
    /// Candidates by name; repeated ones count once.
    pub fn new<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Candidates {
        let mut candidates = Candidates::default();
        for name in names {
            candidates.names.intern(name.as_ref());
        }
        candidates
    }

    /// Reads a file with one name per line.
    ///
    /// # Errors
    /// As [`Candidates::read`].
    pub fn open(path: &Path) -> Result<Candidates, CandidatesError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| CandidatesError::Io { file: name.clone(), source })?;
        Candidates::read(&name, file)
    }

    /// Reads one name per line; blank lines are skipped. `file` is the name of the source in errors.
    ///
    /// # Errors
    /// A source that cannot be read, has no names, or is no list of names.
    pub fn read(file: &str, source: impl Read) -> Result<Candidates, CandidatesError> {
        let file = file.to_string();
        let io_error = |source| CandidatesError::Io { file: file.clone(), source };
        // One byte more than is taken tells an end from too much.
        let mut reader = BufReader::new(source.take(MAX_LIST + 1));
        let (mut names, mut lines, mut row) = (Names::new(), Vec::new(), Vec::new());
        let mut total = 0;
        for line in 1u64.. {
            row.clear();
            let len = reader.by_ref().take(MAX_NAME + 1).read_until(b'\n', &mut row).map_err(io_error)? as u64;
            total += len;
            if len == 0 {
                break;
            }
            if len > MAX_NAME && !row.ends_with(b"\n") {
                return Err(CandidatesError::LongLine { file, line });
            }
            if total > MAX_LIST {
                return Err(CandidatesError::LongList { file, line });
            }
            let Ok(text) = std::str::from_utf8(&row) else { return Err(CandidatesError::NotText { file, line }) };
            let text = if line == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
            let name = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
            if !name.trim().is_empty() && names.intern(name) as usize == lines.len() {
                lines.push(line);
            }
        }
        if names.is_empty() {
            return Err(CandidatesError::Empty { file });
        }
        Ok(Candidates { names, file: Some(file), lines })
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The ids of the names in a graph, ascending: entities, or relations.
    ///
    /// # Errors
    /// The first name that the graph does not have.
    pub fn ids(&self, graph: &Graph, task: Task) -> Result<Vec<u32>, UnknownCandidate> {
        let mut ids = Vec::with_capacity(self.names.len());
        for (i, name) in self.names.iter().enumerate() {
            let id = match task {
                Task::Entity => graph.parse_entity(name),
                Task::Relation => graph.parse_relation(name),
            };
            let place = || match (&self.file, self.lines.get(i)) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => String::new(),
            };
            ids.push(id.map_err(|unknown| UnknownCandidate { place: place(), unknown })?);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph {
        let mut builder = flock_graph::GraphBuilder::new();
        builder.add("Lisbon", "capital of", "Portugal");
        builder.add("Portugal", "borders", "Spain");
        builder.finish().unwrap()
    }

    #[test]
    fn names_are_found_once_each() {
        // Lisbon 0, Portugal 1, Spain 2; a byte order mark, CRLF, a blank line and a repeated name.
        let file = "\u{feff}Spain\r\n\nLisbon\nSpain\n";
        let read = Candidates::read("list.txt", file.as_bytes()).unwrap();
        assert_eq!((read.len(), read.ids(&graph(), Task::Entity).unwrap()), (2, vec![0, 2]));
        let given = Candidates::new(["borders", "borders"]);
        assert_eq!(given.ids(&graph(), Task::Relation).unwrap(), [1]);
    }

    #[test]
    fn errors_name_file_and_line() {
        let read = |bytes: &[u8]| Candidates::read("list.txt", bytes);
        let text = |e: CandidatesError| e.to_string();
        assert_eq!(text(read(b"\n \n").unwrap_err()), "list.txt: no names, expected one per line");
        assert_eq!(text(read(b"a\n\xff\n").unwrap_err()), "list.txt:2: invalid UTF-8, expected one name per line");
        let long = vec![b'x'; 65 << 10];
        assert!(text(read(&long).unwrap_err()).starts_with("list.txt:1: found a line of more than 64 KiB"));
        assert!(text(Candidates::read("-", io::repeat(0)).unwrap_err()).starts_with("-:1: found a line"));
        let unknown = read(b"Spain\nSpian\n").unwrap().ids(&graph(), Task::Entity).unwrap_err();
        assert_eq!(unknown.to_string(), r#"list.txt:2: unknown entity "Spian"; near names: "Spain""#);
        let given = Candidates::new(["Spian"]).ids(&graph(), Task::Entity).unwrap_err();
        assert_eq!(given.to_string(), r#"unknown entity "Spian"; near names: "Spain""#);
    }
}
