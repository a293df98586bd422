//! The ranks of an unfinished run on disk: an append-only file of JSON lines, from which a killed
//! run is resumed.
//!
//! ```text
//! {"flock-kg":"eval","format":3}
//! {"begin":{"dataset":…,"task":…,"split":…,"protocol":{…}}}
//! {"queries":64,"seconds":1.7,"placed":[[[higher,ties,filtered higher,filtered ties,reached,rivals],score],…]}
//! ```
//! A line that a kill has cut short is removed. Metrics are always computed from the ranks, so a
//! resumed run gives the same numbers as one that was never killed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::difference::difference;
use crate::rank::{AnswerRank, Rank};
use crate::remedy::EvalRemedy;

const FORMAT: u32 = 3;

/// Why a run cannot be resumed from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartialError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Another run is writing to the file.
    #[error("{file}: another run is using it")]
    Busy {
        /// The file.
        file: String,
    },
    /// The file was not left by a run.
    #[error("{file}: not the record of an evaluation that was cut off")]
    Content {
        /// The file.
        file: String,
    },
    /// The file has the format of another version of the program.
    #[error("{file}: the record of an evaluation in format {found}, this program reads format {FORMAT}")]
    Version {
        /// The file.
        file: String,
        /// Its format.
        found: u32,
    },
    /// The file was left by a run with other settings.
    #[error("{file}: the run that was cut off has {difference} on {dataset}")]
    Other {
        /// The file.
        file: String,
        /// The dataset.
        dataset: String,
        /// What differs.
        difference: String,
    },
}

impl PartialError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<EvalRemedy> {
        Some(match self {
            PartialError::Io { .. } => return None,
            PartialError::Busy { .. } => EvalRemedy::OtherFile,
            PartialError::Content { .. } => EvalRemedy::OtherFileOrOverwrite,
            PartialError::Version { .. } => EvalRemedy::StartOver,
            PartialError::Other { .. } => EvalRemedy::SameOptions,
        })
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PartialLine {
    Head {
        #[serde(rename = "flock-kg")]
        kind: String,
        format: u32,
    },
    Begin {
        begin: RunKey,
    },
    Batch {
        queries: usize,
        seconds: f64,
        placed: Vec<([u32; 6], f64)>,
    },
}

/// Identifies what is evaluated: two runs with the same key give the same ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunKey {
    /// Name of the dataset.
    pub dataset: String,
    /// `entity` or `relation`.
    pub task: String,
    /// `valid` or `test`.
    pub split: String,
    /// Which run it is of several on the same triples, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub run: u32,
    /// Everything that the ranks depend on.
    pub protocol: Value,
}

fn is_first(run: &u32) -> bool {
    *run == 0
}

/// The part of a dataset that is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedRanks {
    /// Number of queries.
    pub queries: usize,
    /// Seconds that they took.
    pub seconds: f64,
    /// Ranks of their answers.
    pub ranks: Vec<AnswerRank>,
}

/// An unfinished run and its file.
#[derive(Debug)]
pub struct PartialRun {
    path: PathBuf,
    file: File,
    sections: Vec<(RunKey, SavedRanks)>,
    resumed: Vec<usize>, // the sections that have gone on
}

impl PartialRun {
    /// Where the ranks of an evaluation are kept until its results are in the file `out`.
    pub fn path(out: &Path) -> PathBuf {
        let mut name = out.as_os_str().to_owned();
        name.push(".partial");
        PathBuf::from(name)
    }

    /// Opens the file and reads what a run has left in it. With `fresh`, the old content is
    /// dropped.
    pub fn open(path: &Path, fresh: bool) -> Result<PartialRun, PartialError> {
        let name = || path.display().to_string();
        let io = |source| PartialError::Io { file: name(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(PartialError::Busy { file: name() }),
            Err(TryLockError::Error(e)) => return Err(io(e)),
            Ok(()) => {}
        }
        let mut bytes = Vec::new();
        if !fresh {
            file.read_to_end(&mut bytes).map_err(io)?;
        }
        let (sections, whole) = read(&bytes).ok_or_else(|| match format(&bytes) {
            Some(found) if found != FORMAT => PartialError::Version { file: name(), found },
            _ => PartialError::Content { file: name() },
        })?;
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(io)?;
        let mut partial = PartialRun { path: path.to_path_buf(), file, sections, resumed: Vec::new() };
        if whole == 0 {
            partial.write(&PartialLine::Head { kind: "eval".to_string(), format: FORMAT })?;
        }
        Ok(partial)
    }

    /// Starts or resumes a dataset, and returns what is done already. `answers` maps a number of
    /// queries to the number of their answers, or to `None` if there are fewer queries.
    pub fn resume(
        &mut self,
        key: &RunKey,
        answers: impl Fn(usize) -> Option<usize>,
    ) -> Result<SavedRanks, PartialError> {
        let same =
            |b: &RunKey| (&b.dataset, &b.task, &b.split, b.run) == (&key.dataset, &key.task, &key.split, key.run);
        let exact = |b: &RunKey| same(b) && difference(&b.protocol, &key.protocol, &[]).is_none();
        let mut sections = 0..self.sections.len();
        let found = sections.clone().find(|&i| exact(&self.sections[i].0));
        // One that has gone on with its own graph may be of another dataset of that name.
        let other_graph = |b: &RunKey| b.protocol["graph"] != key.protocol["graph"];
        let foreign = |i: &usize| self.resumed.contains(i) && other_graph(&self.sections[*i].0);
        let found = found.or_else(|| sections.find(|i| same(&self.sections[*i].0) && !foreign(i)));
        self.resumed.extend(found);
        let done = match found.map(|i| &self.sections[i]) {
            None => SavedRanks::default(),
            Some((old, done)) => match difference(&old.protocol, &key.protocol, &[]) {
                None if answers(done.queries) == Some(done.ranks.len()) => done.clone(),
                None => return Err(PartialError::Content { file: self.path.display().to_string() }),
                Some((name, old, new)) => {
                    let (file, dataset) = (self.path.display().to_string(), key.dataset.clone());
                    let difference = format!("{name} = {old}, this one {name} = {new},");
                    return Err(PartialError::Other { file, dataset, difference });
                }
            },
        };
        self.write(&PartialLine::Begin { begin: key.clone() })?;
        Ok(done)
    }

    /// Appends the ranks of further answers. `queries` is the number of queries done with them.
    pub fn append(&mut self, queries: usize, seconds: f64, ranks: &[AnswerRank]) -> Result<(), PartialError> {
        let row = |r: &AnswerRank| {
            let AnswerRank { rank, filtered, reached, score, rivals } = *r;
            ([rank.higher, rank.ties, filtered.higher, filtered.ties, u32::from(reached), rivals], score)
        };
        self.write(&PartialLine::Batch { queries, seconds, placed: ranks.iter().map(row).collect() })
    }

    /// Removes the file of a run that is complete.
    pub fn remove(self) -> Result<(), PartialError> {
        std::fs::remove_file(&self.path)
            .map_err(|source| PartialError::Io { file: self.path.display().to_string(), source })
    }

    fn write(&mut self, line: &PartialLine) -> Result<(), PartialError> {
        let mut text = serde_json::to_string(line).expect("lines have string keys and plain values");
        text.push('\n');
        // One call: a kill leaves the line whole or cut, never mixed with another.
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| PartialError::Io { file: self.path.display().to_string(), source })
    }
}

/// Returns the format that the first line states.
fn format(bytes: &[u8]) -> Option<u32> {
    match serde_json::from_slice(bytes.split(|b| *b == b'\n').next()?) {
        Ok(PartialLine::Head { kind, format }) if kind == "eval" => Some(format),
        _ => None,
    }
}

/// Parses the lines. Also returns how many bytes are whole lines. `None` if the file is something
/// else.
fn read(bytes: &[u8]) -> Option<(Vec<(RunKey, SavedRanks)>, usize)> {
    let (mut sections, mut whole): (Vec<(RunKey, SavedRanks)>, usize) = (Vec::new(), 0);
    let mut current = None;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if line.last() != Some(&b'\n') {
            break;
        }
        let parsed = serde_json::from_slice::<PartialLine>(line);
        match parsed {
            Ok(PartialLine::Head { kind, format }) if whole == 0 && kind == "eval" && format == FORMAT => {}
            Ok(PartialLine::Begin { begin }) if whole > 0 => {
                current = Some(sections.iter().position(|(b, _)| *b == begin).unwrap_or_else(|| {
                    sections.push((begin, SavedRanks::default()));
                    sections.len() - 1
                }));
            }
            Ok(PartialLine::Batch { queries, seconds, placed }) => {
                let done = &mut sections[current?].1;
                let rank = |higher, ties| Rank { higher, ties };
                let place = |([h, t, fh, ft, reached, rivals], score): ([u32; 6], f64)| AnswerRank {
                    rank: rank(h, t),
                    filtered: rank(fh, ft),
                    reached: reached != 0,
                    score,
                    rivals,
                };
                done.ranks.extend(placed.into_iter().map(place));
                (done.queries, done.seconds) = (queries, seconds);
            }
            _ => return None,
        }
        whole += line.len();
    }
    // The beginning of a first line counts as an empty file.
    (whole > 0 || bytes.is_empty() || b"{\"flock-kg\"".starts_with(&bytes[..bytes.len().min(11)]))
        .then_some((sections, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u32) -> RunKey {
        let [dataset, task, split] = ["a", "entity", "test"].map(String::from);
        RunKey { dataset, task, split, run: 0, protocol: serde_json::json!({ "seed": seed }) }
    }

    #[test]
    fn goes_on_after_a_kill_at_any_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.partial");
        let place = |n| {
            let rank = Rank { higher: n, ties: 1 };
            AnswerRank { rank, filtered: rank, reached: n % 2 == 0, score: f64::from(n) / 3.0, rivals: n + 7 }
        };
        let mut partial = PartialRun::open(&path, false).unwrap();
        assert_eq!(partial.resume(&key(1), Some).unwrap(), SavedRanks::default());
        partial.append(2, 0.5, &[place(0), place(1)]).unwrap();
        let before = std::fs::read(&path).unwrap().len();
        partial.append(3, 0.75, &[place(2)]).unwrap();
        assert!(matches!(PartialRun::open(&path, false), Err(PartialError::Busy { .. })));
        drop(partial);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let done = PartialRun::open(&path, false).unwrap().resume(&key(1), Some).unwrap();
            let want = if cut == whole.len() {
                3
            } else if cut >= before {
                2
            } else {
                0
            };
            assert_eq!((done.queries, done.ranks.len()), (want, want), "cut at {cut}");
            assert!(done.ranks.iter().zip(0..).all(|(p, n)| *p == place(n)));
        }
        // Two datasets of one name, both begun: each goes on with its own.
        let mut partial = PartialRun::open(&path, false).unwrap();
        assert_eq!(partial.resume(&key(1), Some).unwrap().queries, 3);
        assert!(partial.resume(&key(2), Some).is_err());
        let other = RunKey { protocol: serde_json::json!({ "seed": 1, "graph": "b" }), ..key(1) };
        assert_eq!(partial.resume(&other, Some).unwrap(), SavedRanks::default());
        partial.append(1, 0.5, &[place(5)]).unwrap();
        drop(partial);
        let mut partial = PartialRun::open(&path, false).unwrap();
        assert_eq!([key(1), other].map(|key| partial.resume(&key, Some).unwrap().queries), [3, 1]);
        drop(partial);
        std::fs::write(&path, &whole).unwrap();
        let fewer =
            PartialRun::open(&path, false).unwrap().resume(&key(1), |queries| (queries <= 2).then_some(queries));
        assert!(matches!(fewer, Err(PartialError::Content { .. })));
        let error = PartialRun::open(&path, false).unwrap().resume(&key(2), Some).unwrap_err().to_string();
        assert!(error.contains("has seed = 1, this one seed = 2, on a"), "{error}");
        assert_eq!(PartialRun::open(&path, true).unwrap().resume(&key(2), Some).unwrap(), SavedRanks::default());
        std::fs::write(&path, "[]\n").unwrap();
        assert!(matches!(PartialRun::open(&path, false), Err(PartialError::Content { .. })));
        std::fs::write(&path, "{\"flock-kg\":\"eval\",\"format\":1}\n").unwrap();
        assert!(matches!(PartialRun::open(&path, false), Err(PartialError::Version { found: 1, .. })));
    }
}
