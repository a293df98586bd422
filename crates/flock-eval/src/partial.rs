//! What a run has placed so far, on disk: an append-only file of JSON lines that a killed run goes on from.
//!
//! ```text
//! {"flock-kg":"eval","format":1}
//! {"begin":{"dataset":…,"task":…,"split":…,"protocol":{…}}}
//! {"queries":64,"seconds":1.7,"placed":[[higher,ties,filtered higher,filtered ties,reached],…]}
//! ```
//! A line that a kill has cut short is taken back. Metrics are always computed from the places, so a run that was cut off and one
//! that was not give the same numbers.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::difference::difference;
use crate::rank::{Placed, Rank};

const FORMAT: u32 = 2;

/// Why a run cannot go on from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Another run writes to it.
    #[error("{file}: another run is using it; hint: another --out")]
    Busy {
        /// The file.
        file: String,
    },
    /// Not what a run leaves.
    #[error(
        "{file}: not the record of an evaluation that was cut off; hint: another --out, or --fresh to overwrite it"
    )]
    Content {
        /// The file.
        file: String,
    },
    /// Left by another version of the program.
    #[error(
        "{file}: the record of an evaluation in format {found}, this program reads format {FORMAT}; hint: --fresh to start anew"
    )]
    Version {
        /// The file.
        file: String,
        /// Its format.
        found: u32,
    },
    /// The run that was cut off was another.
    #[error(
        "{file}: the run that was cut off has {difference} on {dataset}; hint: the same options to go on with it, --fresh to \
         start anew, or another --out"
    )]
    Other {
        /// The file.
        file: String,
        /// The dataset.
        dataset: String,
        /// What differs.
        difference: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Head {
        #[serde(rename = "flock-kg")]
        kind: String,
        format: u32,
    },
    Begin {
        begin: Begin,
    },
    Batch {
        queries: usize,
        seconds: f64,
        placed: Vec<([u32; 6], f64)>,
    },
}

/// What is evaluated: two runs that begin alike give the same places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// Name of the dataset.
    pub dataset: String,
    /// `entity` or `relation`.
    pub task: String,
    /// `valid` or `test`.
    pub split: String,
    /// All that the places depend on.
    pub protocol: Value,
}

/// What of a dataset is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Queries.
    pub queries: usize,
    /// Time they took.
    pub seconds: f64,
    /// Places of their answers.
    pub placed: Vec<Placed>,
}

/// The file of a run.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
    sections: Vec<(Begin, Done)>,
}

impl Record {
    /// Opens the file, and reads what a run has left in it. With `fresh`, whatever is there is dropped.
    pub fn open(path: &Path, fresh: bool) -> Result<Record, RecordError> {
        let name = || path.display().to_string();
        let io = |source| RecordError::Io { file: name(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(RecordError::Busy { file: name() }),
            Err(TryLockError::Error(e)) => return Err(io(e)),
            Ok(()) => {}
        }
        let mut bytes = Vec::new();
        if !fresh {
            file.read_to_end(&mut bytes).map_err(io)?;
        }
        let (sections, whole) = read(&bytes).ok_or_else(|| match format(&bytes) {
            Some(found) if found != FORMAT => RecordError::Version { file: name(), found },
            _ => RecordError::Content { file: name() },
        })?;
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(io)?;
        let mut record = Record { path: path.to_path_buf(), file, sections };
        if whole == 0 {
            record.write(&Line::Head { kind: "eval".to_string(), format: FORMAT })?;
        }
        Ok(record)
    }

    /// Begins with a dataset, or goes on with it: what is done already. `answers` says how many places so many queries have,
    /// if there are so many.
    pub fn begin(&mut self, begin: &Begin, answers: impl Fn(usize) -> Option<usize>) -> Result<Done, RecordError> {
        let same = |b: &Begin| (&b.dataset, &b.task, &b.split) == (&begin.dataset, &begin.task, &begin.split);
        let done = match self.sections.iter().find(|(b, _)| same(b)) {
            None => Done::default(),
            Some((old, done)) => match difference(&old.protocol, &begin.protocol, &[]) {
                None if answers(done.queries) == Some(done.placed.len()) => done.clone(),
                None => return Err(RecordError::Content { file: self.path.display().to_string() }),
                Some((key, old, new)) => {
                    let (file, dataset) = (self.path.display().to_string(), begin.dataset.clone());
                    let difference = format!("{key} = {old}, this one {key} = {new},");
                    return Err(RecordError::Other { file, dataset, difference });
                }
            },
        };
        self.write(&Line::Begin { begin: begin.clone() })?;
        Ok(done)
    }

    /// Adds the places of the answers of the queries up to `queries`.
    pub fn append(&mut self, queries: usize, seconds: f64, placed: &[Placed]) -> Result<(), RecordError> {
        let row = |p: &Placed| {
            let Placed { rank, filtered, reached, score, rivals } = *p;
            ([rank.higher, rank.ties, filtered.higher, filtered.ties, u32::from(reached), rivals], score)
        };
        self.write(&Line::Batch { queries, seconds, placed: placed.iter().map(row).collect() })
    }

    /// The run is complete: nothing is left to go on with.
    pub fn remove(self) -> Result<(), RecordError> {
        std::fs::remove_file(&self.path)
            .map_err(|source| RecordError::Io { file: self.path.display().to_string(), source })
    }

    fn write(&mut self, line: &Line) -> Result<(), RecordError> {
        let mut text = serde_json::to_string(line).expect("lines have string keys and plain values");
        text.push('\n');
        // One call: a kill leaves the line whole or cut, never mixed with another.
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| RecordError::Io { file: self.path.display().to_string(), source })
    }
}

/// The format that the first line names.
fn format(bytes: &[u8]) -> Option<u32> {
    match serde_json::from_slice(bytes.split(|b| *b == b'\n').next()?) {
        Ok(Line::Head { kind, format }) if kind == "eval" => Some(format),
        _ => None,
    }
}

/// What the lines say, and how many bytes of them are whole. `None` if they are of something else.
fn read(bytes: &[u8]) -> Option<(Vec<(Begin, Done)>, usize)> {
    let (mut sections, mut whole): (Vec<(Begin, Done)>, usize) = (Vec::new(), 0);
    let mut current = None;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if line.last() != Some(&b'\n') {
            break;
        }
        let parsed = serde_json::from_slice::<Line>(line);
        match parsed {
            Ok(Line::Head { kind, format }) if whole == 0 && kind == "eval" && format == FORMAT => {}
            Ok(Line::Begin { begin }) if whole > 0 => {
                current = Some(sections.iter().position(|(b, _)| *b == begin).unwrap_or_else(|| {
                    sections.push((begin, Done::default()));
                    sections.len() - 1
                }));
            }
            Ok(Line::Batch { queries, seconds, placed }) => {
                let done = &mut sections[current?].1;
                let rank = |higher, ties| Rank { higher, ties };
                let place = |([h, t, fh, ft, reached, rivals], score): ([u32; 6], f64)| Placed {
                    rank: rank(h, t),
                    filtered: rank(fh, ft),
                    reached: reached != 0,
                    score,
                    rivals,
                };
                done.placed.extend(placed.into_iter().map(place));
                (done.queries, done.seconds) = (queries, seconds);
            }
            _ => return None,
        }
        whole += line.len();
    }
    // Nothing but the beginning of a first line is nothing.
    (whole > 0 || bytes.is_empty() || b"{\"flock-kg\"".starts_with(&bytes[..bytes.len().min(11)]))
        .then_some((sections, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(seed: u32) -> Begin {
        let [dataset, task, split] = ["a", "entity", "test"].map(String::from);
        Begin { dataset, task, split, protocol: serde_json::json!({ "seed": seed }) }
    }

    #[test]
    fn goes_on_after_a_kill_at_any_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.partial");
        let place = |n| {
            let rank = Rank { higher: n, ties: 1 };
            Placed { rank, filtered: rank, reached: n % 2 == 0, score: f64::from(n) / 3.0, rivals: n + 7 }
        };
        let mut record = Record::open(&path, false).unwrap();
        assert_eq!(record.begin(&begin(1), Some).unwrap(), Done::default());
        record.append(2, 0.5, &[place(0), place(1)]).unwrap();
        let before = std::fs::read(&path).unwrap().len();
        record.append(3, 0.75, &[place(2)]).unwrap();
        assert!(matches!(Record::open(&path, false), Err(RecordError::Busy { .. })));
        drop(record);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let done = Record::open(&path, false).unwrap().begin(&begin(1), Some).unwrap();
            let want = if cut == whole.len() {
                3
            } else if cut >= before {
                2
            } else {
                0
            };
            assert_eq!((done.queries, done.placed.len()), (want, want), "cut at {cut}");
            assert!(done.placed.iter().zip(0..).all(|(p, n)| *p == place(n)));
        }
        let fewer = Record::open(&path, false).unwrap().begin(&begin(1), |queries| (queries <= 2).then_some(queries));
        assert!(matches!(fewer, Err(RecordError::Content { .. })));
        let error = Record::open(&path, false).unwrap().begin(&begin(2), Some).unwrap_err().to_string();
        assert!(error.contains("has seed = 1, this one seed = 2, on a;"), "{error}");
        assert_eq!(Record::open(&path, true).unwrap().begin(&begin(2), Some).unwrap(), Done::default());
        std::fs::write(&path, "[]\n").unwrap();
        assert!(matches!(Record::open(&path, false), Err(RecordError::Content { .. })));
        std::fs::write(&path, "{\"flock-kg\":\"eval\",\"format\":1}\n").unwrap();
        assert!(matches!(Record::open(&path, false), Err(RecordError::Version { found: 1, .. })));
    }
}
