//! Scored triples, and a file that grows with them: a run that is killed goes on where it was.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use flock_graph::Triple;
use serde::{Deserialize, Serialize};

use super::Standing;

const VERSION: u32 = 1;

/// A triple by its ids and where it stands on both sides.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ScoredTriple {
    /// Head, relation and tail.
    pub triple: Triple,
    /// Whether the graph has it.
    pub known: bool,
    /// As the tail of (head, relation, ?).
    pub as_tail: Standing,
    /// As the head of (?, relation, tail).
    pub as_head: Standing,
}

impl ScoredTriple {
    /// The mean logit of both sides.
    pub fn logit(&self) -> f64 {
        (self.as_tail.logit + self.as_head.logit) / 2.0
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    triple: [u32; 3],
    known: bool,
    as_tail: Standing,
    as_head: Standing,
}

/// The first line of the file.
#[derive(PartialEq, Serialize, Deserialize)]
struct Heading {
    version: u32,
    settings: String,
}

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is of another run.
    #[error("{file}: this is of another run, of another graph, model, walks or triples, or no journal at all")]
    Other {
        /// The file.
        file: String,
    },
}

/// A file of scored triples, in their order.
pub struct Journal {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Journal {
    /// Opens a journal, or begins one. `settings` says of what run it is. Returns what it already has; a last line that was cut off
    /// does not count.
    ///
    /// # Errors
    /// A file that cannot be used, or that is of another run.
    pub fn open(path: &Path, settings: &str) -> Result<(Journal, Vec<ScoredTriple>), JournalError> {
        let name = path.display().to_string();
        let failed = |source| JournalError::Io { file: name.clone(), source };
        let own = Heading { version: VERSION, settings: settings.to_string() };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let (mut scored, mut sound) = (Vec::new(), 0);
        let mut reader = BufReader::new(&mut file);
        let mut line = String::new();
        loop {
            line.clear();
            let len = reader.read_line(&mut line).map_err(failed)?;
            if len == 0 || !line.ends_with('\n') {
                // A first line that was cut off is a piece of ours.
                if sound == 0 && !serde_json::to_string(&own).is_ok_and(|whole| whole.starts_with(&line)) {
                    return Err(JournalError::Other { file: name });
                }
                break;
            }
            if sound == 0 {
                if serde_json::from_str::<Heading>(&line).ok().as_ref() != Some(&own) {
                    return Err(JournalError::Other { file: name });
                }
            } else {
                let Ok(Line { triple: [head, relation, tail], known, as_tail, as_head }) = serde_json::from_str(&line)
                else {
                    break;
                };
                scored.push(ScoredTriple { triple: Triple { head, relation, tail }, known, as_tail, as_head });
            }
            sound += len as u64;
        }
        file.set_len(sound).map_err(failed)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0)).map_err(failed)?;
        let mut journal = Journal { path: path.to_path_buf(), out: BufWriter::new(file) };
        if sound == 0 {
            journal.line(&own).map_err(failed)?;
        }
        Ok((journal, scored))
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }

    /// Adds scored triples; they are in the file when this returns.
    ///
    /// # Errors
    /// The system cannot write.
    pub fn add(&mut self, scored: &[ScoredTriple]) -> Result<(), JournalError> {
        let write = |journal: &mut Journal| {
            for s in scored {
                let Triple { head, relation, tail } = s.triple;
                let (known, as_tail, as_head) = (s.known, s.as_tail, s.as_head);
                journal.line(&Line { triple: [head, relation, tail], known, as_tail, as_head })?;
            }
            journal.out.flush()
        };
        write(self).map_err(|source| JournalError::Io { file: self.path.display().to_string(), source })
    }

    /// Removes the file: its run has ended.
    ///
    /// # Errors
    /// The system cannot remove it.
    pub fn remove(self) -> Result<(), JournalError> {
        std::fs::remove_file(&self.path)
            .map_err(|source| JournalError::Io { file: self.path.display().to_string(), source })
    }
}
