//! Edits on disk: a log of text lines that only grows, each line sealed by a hash.
//!
//! ```text
//! flock-kg edits 1 graph <sha256> entities <n> relations <n> triples <n> check <hash>
//! kept <number> <bytes> <hash of that line> check <hash>          two marks, written in turn
//! kept <number> <bytes> <hash of that line> check <hash>
//! <number> <hash> {"entities":[…],"relations":[…],"add":[[h,r,t],…],"remove":[…]}
//! ```
//!
//! The hash of a line covers the hash of the line before it, so a line that was changed, lost or moved breaks the chain from there on.
//! A commit writes its line, waits for the disk, and then moves a mark: "so many bytes are acknowledged". A reader can therefore
//! tell two things apart. What is wrong before the mark is damage, and the file is refused. What is wrong after the mark is an edit
//! that was cut off and never acknowledged; it is dropped, and the caller hears of it.
//!
//! What was written last about a triple counts. New names are kept in the order they came in: ids follow it, and walks follow ids.
//! A server holds the lock of `FILE.lock` from the moment it reads or makes the file until it ends. Files of older versions
//! (`old`) are converted.

mod old;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flock_kg::graph::{Graph, NamedEdit};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 1;
const MAGIC: &str = "flock-kg edits ";
/// A log is written afresh at opening when it is larger than this and most of its edits have been overtaken by later ones.
const LARGE: u64 = 1 << 20;

/// Why edits cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another server has the file.
    #[error("{file}: another server has it open")]
    InUse {
        /// The file of edits.
        file: String,
    },
    /// The file is something else.
    #[error("{file}: {found}, expected a file of edits")]
    NotAStore {
        /// The file.
        file: String,
        /// What it is instead.
        found: &'static str,
    },
    /// The file is from a newer program.
    #[error("{file}: format version {found}, this program reads versions up to {VERSION}")]
    Newer {
        /// The file.
        file: String,
        /// Its version.
        found: u64,
    },
    /// The edits were made on another graph.
    #[error("{file}: its edits were made on another graph ({found}), this one has {expected}")]
    OtherGraph {
        /// The file.
        file: String,
        /// The graph of the file.
        found: GraphId,
        /// The graph that is served.
        expected: GraphId,
    },
    /// Something that was acknowledged cannot be read back.
    #[error("{file}: damaged at byte {at}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Where the damage begins.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A file of an older version cannot be read.
    #[error("{file}: edits of an older version cannot be read: {what}")]
    Old {
        /// The file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// The system could not read or write.
    #[error("{file}: cannot {doing}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// What helps against a [`StoreError`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreRemedy {
    /// Stop the other server, or keep edits in another file.
    StopOther,
    /// Restore the file from a backup, or move it away to begin without its edits.
    MoveAway,
    /// Use a newer program.
    Upgrade,
    /// Serve the graph the edits belong to, keep edits in another file, or apply them to this graph on purpose.
    Adopt,
    /// Make room on the disk; the next edit tries again.
    MakeRoom,
    /// Check that file and directory can be written.
    CheckAccess,
}

impl StoreError {
    /// What helps.
    pub fn remedy(&self) -> StoreRemedy {
        match self {
            StoreError::InUse { .. } => StoreRemedy::StopOther,
            StoreError::NotAStore { .. } | StoreError::Damaged { .. } | StoreError::Old { .. } => StoreRemedy::MoveAway,
            StoreError::Newer { .. } => StoreRemedy::Upgrade,
            StoreError::OtherGraph { .. } => StoreRemedy::Adopt,
            StoreError::Io { source, .. } if is_full(source) => StoreRemedy::MakeRoom,
            StoreError::Io { .. } => StoreRemedy::CheckAccess,
        }
    }
}

fn is_full(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// Which graph edits belong to: its sizes, and a hash of its names and triples in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphId {
    entities: u64,
    relations: u64,
    triples: u64,
    sha256: String,
}

impl GraphId {
    /// The id of a graph. Takes one pass over it.
    pub fn of(graph: &Graph) -> GraphId {
        let mut sum = Sha256::new();
        for names in [graph.entities(), graph.relations()] {
            for name in names.iter() {
                sum.update((name.len() as u64).to_le_bytes());
                sum.update(name);
            }
            sum.update(u64::MAX.to_le_bytes()); // no name is so long
        }
        let topology = graph.topology();
        for t in topology.triples() {
            for id in [t.head, t.relation, t.tail] {
                sum.update(id.to_le_bytes());
            }
        }
        GraphId {
            entities: u64::from(topology.num_nodes()),
            relations: u64::from(topology.num_relations()),
            triples: topology.num_triples() as u64,
            sha256: hex(&sum.finalize()),
        }
    }
}

impl fmt::Display for GraphId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GraphId { entities, relations, triples, sha256 } = self;
        let short = sha256.get(..12).unwrap_or(sha256);
        write!(f, "{entities} entities, {relations} relations, {triples} triples, SHA-256 {short}…")
    }
}

/// A triple by its names, and whether the graph has it.
pub type StoredEdit = ([String; 3], bool);

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Entities and relations that the graph file lacks, in the order they came in.
    pub names: [Vec<String>; 2],
    /// Edits, in the order of their names.
    pub edits: Vec<StoredEdit>,
}

/// What one commit keeps, as it stands in the file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<T, N> {
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    entities: Vec<N>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    relations: Vec<N>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    add: Vec<T>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    remove: Vec<T>,
}

/// What the store asks of the disk. Tests put a failing disk in the place of a file.
trait Disk: Send {
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

/// The edits of one graph.
pub struct Store {
    path: PathBuf,
    graph: GraphId,
    lock: Option<File>,
    log: Option<Log>,
}

/// A store that has been opened, what it holds, and what people should hear about it.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// What it holds.
    pub stored: Stored,
    /// What was repaired, dropped or converted on the way.
    pub notices: Vec<String>,
}

/// The end of the log, where the next line goes.
struct Log {
    disk: Box<dyn Disk>,
    marks: u64,     // where the two marks begin
    len: u64,       // bytes acknowledged
    number: u64,    // of the last line
    digest: String, // of the last line
    torn: bool,     // whether something may stand after `len`
}

impl Store {
    /// Opens the store of a graph if it exists; else it is made with the first edit. With `adopt`, edits of another graph are
    /// taken over.
    pub fn open(path: &Path, graph: GraphId, adopt: bool) -> Result<Opened, StoreError> {
        let mut store = Store { path: path.to_path_buf(), graph, lock: None, log: None };
        let (mut stored, mut notices) = (Stored::default(), Vec::new());
        if store.exists()? || old::beside(path).exists() {
            if let Err(e) = store.lock() {
                // Nobody can write in a directory that cannot be written, so there is nobody to lock out.
                let closed = |s: &io::Error| {
                    matches!(s.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
                };
                match &e {
                    StoreError::Io { source, .. } if closed(source) => {
                        notices.push(format!("{e}; edits are read and new ones are refused"));
                    }
                    _ => return Err(e),
                }
            }
            (stored, notices) = store.load(adopt, notices)?;
        }
        Ok(Opened { store, stored, notices })
    }

    /// Makes sure that no other server has the file. If another one made it since this one started, and has ended, gives what it
    /// left: the next edit goes on from there.
    pub fn take_over(&mut self) -> Result<Option<Stored>, StoreError> {
        if self.log.is_some() {
            return Ok(None);
        }
        self.lock()?;
        if !self.exists()? {
            return Ok(None);
        }
        self.load(false, Vec::new()).map(|(stored, _)| Some(stored))
    }

    /// Keeps edits and the entities and relations that came with them, all or none. When this returns they are on disk. After an
    /// error the next call tries again from the last acknowledged edit. A file that another server has made must be
    /// [taken over](Store::take_over) first.
    pub fn commit(&mut self, edits: &[NamedEdit<'_>], names: [Vec<&str>; 2]) -> Result<(), StoreError> {
        let failed = self.io_error("keep an edit");
        self.lock()?;
        if self.log.is_none() {
            if self.exists()? {
                return Err(failed(io::ErrorKind::AlreadyExists.into()));
            }
            self.create(&Stored::default())?;
        }
        let [entities, relations] = names;
        let all = |present| edits.iter().filter(move |e| e.present == present).map(|e| e.triple).collect();
        let line = Line { entities, relations, add: all(true), remove: all(false) };
        let text = serde_json::to_string(&line).map_err(|e| failed(e.into()))?;
        let log = self.log.as_mut().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        log.append(&text).map_err(failed)
    }

    /// How many commits the file holds.
    pub fn commits(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.number)
    }

    fn io_error(&self, doing: &'static str) -> impl Fn(io::Error) -> StoreError + use<> {
        let file = self.path.display().to_string();
        move |source| StoreError::Io { file: file.clone(), doing, source }
    }

    fn exists(&self) -> Result<bool, StoreError> {
        self.path.try_exists().map_err(self.io_error("look for it"))
    }

    fn lock(&mut self) -> Result<(), StoreError> {
        if self.lock.is_some() {
            return Ok(());
        }
        let path = with_ending(&self.path, ".lock");
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let lock = opened.map_err(self.io_error("lock it"))?;
        match lock.try_lock() {
            Ok(()) => self.lock = Some(lock),
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { file: self.path.display().to_string() });
            }
            Err(TryLockError::Error(e)) => return Err(self.io_error("lock it")(e)),
        }
        Ok(())
    }

    /// Reads the file, whatever its version, and gets ready to go on with it.
    fn load(&mut self, adopt: bool, mut notices: Vec<String>) -> Result<(Stored, Vec<String>), StoreError> {
        let old = old::beside(&self.path);
        if !self.exists()? && old.exists() {
            let stored = old::read(&old)?;
            self.create(&stored)?;
            let away = with_ending(&old, ".old");
            fs::rename(&old, &away).map_err(self.io_error("move the old file away"))?;
            notices.push(format!(
                "{}: converted to {}; the old file is kept as {}",
                old.display(),
                self.path.display(),
                away.display()
            ));
            return Ok((stored, notices));
        }
        if old::is_old(&self.path).map_err(self.io_error("read it"))? {
            let stored = old::read(&self.path)?;
            let away = with_ending(&self.path, ".old");
            let copied = fs::copy(&self.path, &away).and_then(|_| File::open(&away)?.sync_all());
            copied.map_err(self.io_error("copy the old file"))?;
            self.create(&stored)?;
            let (file, away) = (self.path.display(), away.display());
            notices.push(format!("{file}: converted to a newer format; the old file is kept as {away}"));
            return Ok((stored, notices));
        }
        let mut found = Reading::read(&self.path)?;
        notices.append(&mut found.notices);
        let (file, size) = (self.path.display().to_string(), found.len);
        if found.graph != self.graph {
            if !adopt {
                return Err(StoreError::OtherGraph { file, found: found.graph, expected: self.graph.clone() });
            }
            notices.push(format!("{file}: edits made on another graph ({}) are applied to this one", found.graph));
        }
        let stored = Stored { names: found.names, edits: found.edits.into_iter().collect() };
        let overtaken = found.seen > 2 * stored.edits.len() as u64 && size > LARGE;
        if found.graph != self.graph || overtaken && self.lock.is_some() {
            self.create(&stored)?;
            return Ok((stored, notices));
        }
        if self.lock.is_some() {
            let disk = OpenOptions::new().read(true).write(true).open(&self.path);
            let mut log = Log {
                disk: Box::new(disk.map_err(self.io_error("open it for writing"))?),
                marks: found.marks,
                len: size,
                number: found.number,
                digest: found.digest,
                torn: found.torn,
            };
            if log.torn {
                log.mend().map_err(self.io_error("mend it"))?;
            }
            self.log = Some(log);
        }
        Ok((stored, notices))
    }

    /// Writes a file under another name and gives it its own when all of it is on disk: a crash leaves the file there was, or none.
    fn create(&mut self, stored: &Stored) -> Result<(), StoreError> {
        let temporary = with_ending(&self.path, ".new");
        let made = self.make(&temporary, stored);
        if made.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        self.log = Some(made.map_err(self.io_error("write it"))?);
        Ok(())
    }

    fn make(&self, temporary: &Path, stored: &Stored) -> io::Result<Log> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(temporary)?;
        let head = head(&self.graph);
        let digest = check_of(&head);
        let marks = head.len() as u64;
        let none = mark(0, marks + 2 * MARK_LEN as u64, &digest);
        file.write_all(format!("{head}{none}{none}").as_bytes())?;
        let disk = Box::new(file.try_clone()?);
        let mut log = Log { disk, marks, len: marks + 2 * MARK_LEN as u64, number: 0, digest, torn: false };
        if *stored != Stored::default() {
            let of = |present| stored.edits.iter().filter(move |e| e.1 == present).map(|e| &e.0).collect();
            let [entities, relations] = stored.names.each_ref().map(|n| n.iter().collect());
            let line = Line { entities, relations, add: of(true), remove: of(false) };
            log.append(&serde_json::to_string(&line)?)?;
        }
        file.sync_all()?;
        fs::rename(temporary, &self.path)?;
        sync_directory(&self.path)?;
        Ok(log)
    }
}

impl Log {
    fn append(&mut self, text: &str) -> io::Result<()> {
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
    fn mend(&mut self) -> io::Result<()> {
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
struct Reading {
    graph: GraphId,
    names: [Vec<String>; 2],
    edits: BTreeMap<[String; 3], bool>,
    seen: u64, // edits in all lines
    marks: u64,
    len: u64,
    number: u64,
    digest: String,
    torn: bool,
    notices: Vec<String>,
}

impl Reading {
    fn read(path: &Path) -> Result<Reading, StoreError> {
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
        match version {
            Some(found) if found > u64::from(VERSION) => return Err(StoreError::Newer { file, found }),
            Some(found) if found == u64::from(VERSION) => {}
            _ => return Err(damaged(0, "the first line has no version")),
        }
        let graph = parse_head(&head_line).ok_or_else(|| damaged(0, "the first line is not what was written"))?;

        let marks = head_line.len() as u64;
        let mut slots = vec![0; 2 * MARK_LEN];
        reader.read_exact(&mut slots).map_err(|_| damaged(size, "it ends within its marks"))?;
        let found: Vec<Option<(u64, u64, String)>> = slots.chunks(MARK_LEN).map(parse_mark).collect();
        let newest = found.iter().flatten().max_by_key(|m| m.0).cloned();
        let Some((acknowledged, until, last)) = newest else {
            return Err(damaged(marks, "neither of its two marks is what was written"));
        };
        let mut reading = Reading {
            graph,
            names: Default::default(),
            edits: BTreeMap::new(),
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
            if line.is_empty() || !reading.take(&line) {
                break;
            }
            if reading.number == acknowledged && (reading.len, &reading.digest) != (until, &last) {
                return Err(damaged(reading.len, "the line is not the one that was acknowledged"));
            }
        }
        if reading.number < acknowledged {
            let what = if line.is_empty() {
                "it ends before the last acknowledged edit"
            } else {
                "an acknowledged edit is not what was written"
            };
            return Err(damaged(reading.len, what));
        }
        if found.iter().any(Option::is_none) {
            // A kill cuts lines off but damages no mark. With both there is no telling what the mark acknowledged.
            if reading.len < size {
                return Err(damaged(reading.len, "an edit and one of the two marks are not what was written"));
            }
            reading.torn = true;
            let whole = "all edits are whole, and the mark is written again";
            reading.notices.push(format!("{file}: one of its two marks was damaged; {whole}"));
        }
        if reading.len < size {
            reading.torn = true;
            reading.notices.push(format!(
                "{file}: {} bytes of an edit that was cut off and never acknowledged are dropped; {} edits are whole",
                size - reading.len,
                reading.number
            ));
        }
        Ok(reading)
    }

    /// Takes a line if it is whole and follows the one before.
    fn take(&mut self, line: &[u8]) -> bool {
        let parsed = || {
            let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
            let (number, rest) = text.split_once(' ')?;
            let (digest, json) = rest.split_once(' ')?;
            let next = self.number + 1;
            let fits = number == next.to_string() && digest == digest_of(&self.digest, next, json);
            let content: Line<[String; 3], String> = serde_json::from_str(json).ok().filter(|_| fits)?;
            Some((digest.to_string(), content))
        };
        let Some((digest, Line { entities, relations, add, remove })) = parsed() else { return false };
        self.names[0].extend(entities);
        self.names[1].extend(relations);
        self.seen += (add.len() + remove.len()) as u64;
        self.edits.extend(remove.into_iter().map(|t| (t, false)).chain(add.into_iter().map(|t| (t, true))));
        self.number += 1;
        self.len += line.len() as u64;
        self.digest = digest;
        true
    }
}

/// Half of a SHA-256, in hexadecimal: more than enough against accidents.
const HASH_LEN: usize = 32;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

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

fn head(graph: &GraphId) -> String {
    let GraphId { entities, relations, triples, sha256 } = graph;
    sealed(&format!("{MAGIC}{VERSION} graph {sha256} entities {entities} relations {relations} triples {triples}"))
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

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// A new name reaches the disk with its directory.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(parent) {
        Ok(directory) if cfg!(unix) => directory.sync_all(),
        // Elsewhere directories cannot be opened like files, and renames are flushed by the system.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A file on a disk that does only so much more: each write, truncation and wait for the disk takes one, then all fail. The
    /// write that fails has written half.
    struct Failing {
        file: File,
        left: Arc<Mutex<usize>>,
    }

    impl Failing {
        fn spend(&self) -> io::Result<()> {
            let mut left = self.left.lock().unwrap();
            *left = left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(())
        }
    }

    impl Disk for Failing {
        fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
            if let Err(full) = self.spend() {
                Disk::write_at(&mut self.file, &bytes[..bytes.len() / 2], at)?;
                return Err(full);
            }
            Disk::write_at(&mut self.file, bytes, at)
        }
        fn truncate(&mut self, len: u64) -> io::Result<()> {
            self.spend()?;
            self.file.truncate(len)
        }
        fn sync(&mut self) -> io::Result<()> {
            self.spend()
        }
    }

    fn id() -> GraphId {
        GraphId { entities: 1, relations: 1, triples: 1, sha256: "0".repeat(64) }
    }

    fn add(store: &mut Store, tail: &str) -> Result<(), StoreError> {
        store.commit(&[NamedEdit { triple: ["h", "r", tail], present: true }], [vec![tail], vec![]])
    }

    /// A disk that is full after any number of steps: the edit fails, whoever opens the file then finds all acknowledged edits and
    /// perhaps the failed one, and when there is room again the next edit is kept without a restart.
    #[test]
    fn after_a_full_disk_edits_go_on() {
        for steps in 0..8 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("edits");
            let mut store = Store::open(&path, id(), false).unwrap().store;
            add(&mut store, "a").unwrap();
            let left = Arc::new(Mutex::new(steps));
            let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            store.log.as_mut().unwrap().disk = Box::new(Failing { file, left: left.clone() });
            let mut kept = vec!["a"];
            for tail in ["b", "c"] {
                match add(&mut store, tail) {
                    Ok(()) => kept.push(tail),
                    Err(e) => assert_eq!(e.remedy(), StoreRemedy::MakeRoom, "{e}"),
                }
            }
            // An edit takes three steps: the line, the wait, the mark.
            assert_eq!(kept.len(), 1 + (steps / 3).min(2), "{steps} steps");
            let copy = dir.path().join("copy");
            fs::copy(&path, &copy).unwrap();
            let crashed = Store::open(&copy, id(), false).unwrap().stored.names[0].clone();
            assert_eq!(crashed[..kept.len()], kept[..], "{steps} steps");
            assert!(crashed.len() <= kept.len() + 1);

            *left.lock().unwrap() = usize::MAX;
            add(&mut store, "d").unwrap();
            kept.push("d");
            drop(store);
            let Opened { stored, notices, .. } = Store::open(&path, id(), false).unwrap();
            assert_eq!(
                (&stored.names[0][..], notices.len()),
                (&kept.iter().map(|s| s.to_string()).collect::<Vec<_>>()[..], 0)
            );
        }
    }

    /// Where the file cannot be made, the edit fails and leaves nothing; the next one tries again.
    #[test]
    fn a_file_that_cannot_be_made_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("edits");
        let mut store = Store::open(&path, id(), false).unwrap().store;
        let in_the_way = dir.path().join("edits.new");
        fs::create_dir(&in_the_way).unwrap();
        assert!(matches!(add(&mut store, "a"), Err(StoreError::Io { .. })));
        assert!(!path.exists());
        fs::remove_dir(&in_the_way).unwrap();
        add(&mut store, "a").unwrap();
        drop(store);
        assert_eq!(Store::open(&path, id(), false).unwrap().stored.names[0], ["a"]);
    }

    /// A log whose edits have been overtaken is written afresh at opening, with the same content.
    #[test]
    fn a_long_log_is_shortened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("edits");
        let mut store = Store::open(&path, id(), false).unwrap().store;
        let long = "x".repeat(100_000);
        for i in 0..12 {
            let edit = NamedEdit { triple: ["h", "r", &long], present: i % 2 == 0 };
            store.commit(&[edit], [vec![], vec![]]).unwrap();
        }
        drop(store);
        let before = fs::metadata(&path).unwrap().len();
        let Opened { store, stored, .. } = Store::open(&path, id(), false).unwrap();
        assert_eq!(stored.edits, [(["h".to_string(), "r".to_string(), long.clone()], false)]);
        assert!(before > 1_200_000 && fs::metadata(&path).unwrap().len() < 110_000);
        drop(store);
        assert_eq!(Store::open(&path, id(), false).unwrap().stored, stored);
    }
}
