//! The file of edits: a log of text lines that only grows, each line sealed by a hash.
//!
//! ```text
//! flock-kg edits <version> graph <sha256> entities <n> relations <n> triples <n> check <hash>
//! kept <number> <bytes> <hash of that line> check <hash>          two marks, written in turn
//! kept <number> <bytes> <hash of that line> check <hash>
//! <number> <hash> {"entities":[…],"relations":[…],"add":[[h,r,t],…],"remove":[…],"labels":[[name,label],…]}
//! ```
//!
//! Version 2 has labels. A file without labels is written as version 1, which older programs read; with the first label it is
//! written afresh as version 2.
//!
//! The hash of a line covers the hash of the line before it, so a line that was changed, lost or moved breaks the chain from there on.
//! A commit writes its line, waits for the disk, and then moves a mark: "so many bytes are acknowledged". A reader can therefore
//! tell two things apart. What is wrong before the mark is damage, and the file is refused. What is wrong after the mark is an edit
//! that was cut off and never acknowledged; it is dropped, and the caller hears of it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{GraphId, StoreContent, StoreError, hex, sync_directory};

/// The newest version of the format. It is written if there are labels.
pub const VERSION: u32 = 2;
/// The version that has no labels.
pub(super) const UNLABELLED: u32 = 1;
const MAGIC: &str = "flock-kg edits ";

/// What one commit keeps, as it stands in the file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommitLine<T, N> {
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) entities: Vec<N>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) relations: Vec<N>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) add: Vec<T>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) remove: Vec<T>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) labels: Vec<[N; 2]>,
}

/// What the store asks of the disk. Tests put a failing disk in the place of a file.
pub(super) trait Disk: Send {
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    fn truncate(&mut self, len: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

impl Disk for File {
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        self.seek(SeekFrom::Start(at))?;
        self.write_all(bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The end of the log, where the next line goes.
pub(super) struct Log {
    pub(super) disk: Box<dyn Disk>,
    pub(super) version: u32,
    pub(super) marks: u64,     // where the two marks begin
    pub(super) len: u64,       // bytes acknowledged
    pub(super) number: u64,    // of the last line
    pub(super) digest: String, // of the last line
    pub(super) torn: bool,     // whether something may stand after `len`
}

impl Log {
    /// Writes a file of some version under the name `temporary` and gives it its own, `path`, when all of it is on disk.
    pub(super) fn create(
        temporary: &Path,
        path: &Path,
        graph: &GraphId,
        content: &StoreContent,
        version: u32,
    ) -> io::Result<Log> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(temporary)?;
        let head = head(graph, version);
        let digest = check_of(&head);
        let marks = head.len() as u64;
        let none = mark(0, marks + 2 * MARK_LEN as u64, &digest);
        file.write_all(format!("{head}{none}{none}").as_bytes())?;
        let disk = Box::new(file.try_clone()?);
        let mut log = Log { disk, version, marks, len: marks + 2 * MARK_LEN as u64, number: 0, digest, torn: false };
        if *content != StoreContent::default() {
            let of = |present| content.edits.iter().filter(move |e| e.1 == present).map(|e| &e.0).collect();
            let [entities, relations] = content.names.each_ref().map(|n| n.iter().collect());
            let labels = content.labels.iter().map(|(name, label)| [name, label]).collect();
            let line = CommitLine { entities, relations, add: of(true), remove: of(false), labels };
            log.append(&line)?;
        }
        file.sync_all()?;
        fs::rename(temporary, path)?;
        sync_directory(path)?;
        Ok(log)
    }

    /// Adds a line and waits for the disk. After an error nothing is acknowledged, and the next call tries again.
    pub(super) fn append(&mut self, line: &CommitLine<impl Serialize, impl Serialize>) -> io::Result<()> {
        let text = &serde_json::to_string(line)?;
        if self.torn {
            self.mend()?;
        }
        let number = self.number + 1;
        let digest = digest_of(&self.digest, number, text);
        let line = format!("{number} {digest} {text}\n");
        let len = self.len + line.len() as u64;
        self.torn = true;
        let kept = self.disk.write_at(line.as_bytes(), self.len).and_then(|()| self.disk.sync());
        // The mark needs no wait of its own: it reaches the disk with the next line, and before that a process that dies leaves
        // it to the system. Without it the line still counts, for it is whole.
        let kept = kept.and_then(|()| self.put_mark(number, len, &digest));
        if let Err(e) = kept {
            let _ = self.mend(); // else the next edit tries again
            return Err(e);
        }
        (self.len, self.number, self.digest, self.torn) = (len, number, digest, false);
        Ok(())
    }

    /// Cuts off what stands after the last acknowledged line and writes both marks.
    pub(super) fn mend(&mut self) -> io::Result<()> {
        self.torn = true;
        self.disk.truncate(self.len)?;
        for turn in 0..2 {
            let mark = mark(self.number, self.len, &self.digest);
            self.disk.write_at(mark.as_bytes(), self.marks + turn * MARK_LEN as u64)?;
        }
        self.disk.sync()?;
        self.torn = false;
        Ok(())
    }

    fn put_mark(&mut self, number: u64, len: u64, digest: &str) -> io::Result<()> {
        let at = self.marks + number % 2 * MARK_LEN as u64;
        self.disk.write_at(mark(number, len, digest).as_bytes(), at)
    }
}

/// A file as it was read and checked.
pub(super) struct LogContent {
    pub(super) version: u32,
    pub(super) graph: GraphId,
    pub(super) names: [Vec<String>; 2],
    pub(super) edits: BTreeMap<[String; 3], bool>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) seen: u64, // edits in all lines, and labels
    pub(super) marks: u64,
    pub(super) len: u64,
    pub(super) number: u64,
    pub(super) digest: String,
    pub(super) torn: bool,
    pub(super) notices: Vec<String>,
}

impl LogContent {
    /// Reads a file and checks all of it.
    pub(super) fn read(path: &Path) -> Result<LogContent, StoreError> {
        let file = path.display().to_string();
        let failed = |source| StoreError::Io { file: file.clone(), doing: "read it", source };
        let damaged = |at, what| StoreError::Damaged { file: file.clone(), at, what };
        let opened = File::open(path).map_err(failed)?;
        let size = opened.metadata().map_err(failed)?.len();
        let mut reader = BufReader::new(opened);

        let mut line = Vec::new();
        reader.by_ref().take(4096).read_until(b'\n', &mut line).map_err(failed)?;
        let not = |found| StoreError::NotAStore { file: file.clone(), found };
        if line.is_empty() {
            return Err(not("is empty"));
        }
        if !line.starts_with(MAGIC.as_bytes()) {
            return Err(not("is something else"));
        }
        let head_line = String::from_utf8(line).map_err(|_| damaged(0, "the first line is not text"))?;
        let version = head_line[MAGIC.len()..].split(' ').next().and_then(|v| v.parse::<u64>().ok());
        let version = match version {
            Some(found) if found > u64::from(VERSION) => return Err(StoreError::Newer { file, found }),
            Some(found) if found >= u64::from(UNLABELLED) => found as u32,
            _ => return Err(damaged(0, "the first line has no version")),
        };
        let graph = parse_head(&head_line).ok_or_else(|| damaged(0, "the first line is not what was written"))?;

        let marks = head_line.len() as u64;
        let mut slots = vec![0; 2 * MARK_LEN];
        reader.read_exact(&mut slots).map_err(|_| damaged(size, "it ends within its marks"))?;
        let found: Vec<Option<(u64, u64, String)>> = slots.chunks(MARK_LEN).map(parse_mark).collect();
        let newest = found.iter().flatten().max_by_key(|m| m.0).cloned();
        let Some((acknowledged, until, last)) = newest else {
            return Err(damaged(marks, "neither of its two marks is what was written"));
        };
        let mut content = LogContent {
            version,
            graph,
            names: Default::default(),
            edits: BTreeMap::new(),
            labels: BTreeMap::new(),
            seen: 0,
            marks,
            len: marks + slots.len() as u64,
            number: 0,
            digest: check_of(&head_line),
            torn: false,
            notices: Vec::new(),
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(failed)?;
            if line.is_empty() || !content.take(&line) {
                break;
            }
            if content.number == acknowledged && (content.len, &content.digest) != (until, &last) {
                return Err(damaged(content.len, "the line is not the one that was acknowledged"));
            }
        }
        if content.number < acknowledged {
            let what = if line.is_empty() {
                "it ends before the last acknowledged edit"
            } else {
                "an acknowledged edit is not what was written"
            };
            return Err(damaged(content.len, what));
        }
        if found.iter().any(Option::is_none) {
            // A kill cuts lines off but damages no mark. With both there is no telling what the mark acknowledged.
            if content.len < size {
                return Err(damaged(content.len, "an edit and one of the two marks are not what was written"));
            }
            content.torn = true;
            let whole = "all edits are whole, and the mark is written again";
            content.notices.push(format!("{file}: one of its two marks was damaged; {whole}"));
        }
        if content.len < size {
            content.torn = true;
            content.notices.push(format!(
                "{file}: {} bytes of an edit that was cut off and never acknowledged are dropped; {} edits are whole",
                size - content.len,
                content.number
            ));
        }
        Ok(content)
    }

    /// Takes a line if it is whole and follows the one before.
    fn take(&mut self, line: &[u8]) -> bool {
        let parsed = || {
            let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
            let (number, rest) = text.split_once(' ')?;
            let (digest, json) = rest.split_once(' ')?;
            let next = self.number + 1;
            let fits = number == next.to_string() && digest == digest_of(&self.digest, next, json);
            let line: CommitLine<[String; 3], String> = serde_json::from_str(json).ok().filter(|_| fits)?;
            Some((digest.to_string(), line))
        };
        let Some((digest, CommitLine { entities, relations, add, remove, labels })) = parsed() else { return false };
        self.names[0].extend(entities);
        self.names[1].extend(relations);
        self.seen += (add.len() + remove.len() + labels.len()) as u64;
        self.labels.extend(labels.into_iter().map(|[name, label]| (name, label)));
        self.edits.extend(remove.into_iter().map(|t| (t, false)).chain(add.into_iter().map(|t| (t, true))));
        self.number += 1;
        self.len += line.len() as u64;
        self.digest = digest;
        true
    }
}

/// Half of a SHA-256, in hexadecimal: more than enough against accidents.
const HASH_LEN: usize = 32;

fn hash(parts: &[&str]) -> String {
    let mut sum = Sha256::new();
    parts.iter().for_each(|part| sum.update(part));
    hex(&sum.finalize()[..HASH_LEN / 2])
}

fn digest_of(before: &str, number: u64, text: &str) -> String {
    hash(&[before, " ", &number.to_string(), " ", text])
}

/// A line of words, sealed by their hash.
fn sealed(words: &str) -> String {
    format!("{words} check {}\n", hash(&[words]))
}

/// The words of a sealed line.
fn unsealed(line: &str) -> Option<&str> {
    let (words, _) = line.rsplit_once(" check ")?;
    (sealed(words) == line).then_some(words)
}

/// The hash at the end of a sealed line.
fn check_of(line: &str) -> String {
    line.trim_end().rsplit(' ').next().unwrap_or("").to_string()
}

fn head(graph: &GraphId, version: u32) -> String {
    let GraphId { entities, relations, triples, sha256 } = graph;
    sealed(&format!("{MAGIC}{version} graph {sha256} entities {entities} relations {relations} triples {triples}"))
}

fn parse_head(line: &str) -> Option<GraphId> {
    let words: Vec<&str> = unsealed(line)?.strip_prefix(MAGIC)?.split(' ').collect();
    let [_, "graph", sha256, "entities", entities, "relations", relations, "triples", triples] = words[..] else {
        return None;
    };
    let number = |text: &str| text.parse().ok();
    Some(GraphId {
        entities: number(entities)?,
        relations: number(relations)?,
        triples: number(triples)?,
        sha256: sha256.to_string(),
    })
}

/// `kept `, two numbers of 20 digits, two hashes, and what stands between.
const MARK_LEN: usize = 5 + 20 + 1 + 20 + 1 + HASH_LEN + 7 + HASH_LEN + 1;

fn mark(number: u64, len: u64, digest: &str) -> String {
    sealed(&format!("kept {number:020} {len:020} {digest}"))
}

/// Number, bytes and hash of a mark.
fn parse_mark(bytes: &[u8]) -> Option<(u64, u64, String)> {
    let words: Vec<&str> = unsealed(std::str::from_utf8(bytes).ok()?)?.split(' ').collect();
    let ["kept", number, len, digest] = words[..] else { return None };
    Some((number.parse().ok()?, len.parse().ok()?, digest.to_string()))
}
