//! Edits on disk, kept beside the graph they were made on: `log` is the file, `old` reads those of older versions, which are
//! converted.
//!
//! What was written last about a triple counts. New names are kept in the order they came in: ids follow it, and walks follow ids.
//! A server holds the lock of `FILE.lock` from the moment it reads or makes the file until it ends.

mod error;
mod log;
mod old;

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use flock_kg::graph::{Graph, NamedEdit};
use sha2::{Digest, Sha256};

use log::{CommitLine, Log, LogContent, UNLABELLED};

pub use error::{StoreError, StoreRemedy};
pub use log::VERSION;

/// A log is written afresh at opening when it is larger than this and most of its edits have been overtaken by later ones.
const LARGE: u64 = 1 << 20;

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
pub struct StoreContent {
    /// Entities and relations that the graph file lacks, in the order they came in.
    pub names: [Vec<String>; 2],
    /// Edits, in the order of their names.
    pub edits: Vec<StoredEdit>,
    /// Names and their labels. An empty label takes the label of the graph file away.
    pub labels: Vec<(String, String)>,
}

impl StoreContent {
    fn of(found: &LogContent) -> StoreContent {
        StoreContent {
            names: found.names.clone(),
            edits: found.edits.iter().map(|(triple, present)| (triple.clone(), *present)).collect(),
            labels: found.labels.iter().map(|(name, label)| (name.clone(), label.clone())).collect(),
        }
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
pub struct OpenedStore {
    /// The store.
    pub store: Store,
    /// What it holds.
    pub stored: StoreContent,
    /// What was repaired, dropped or converted on the way.
    pub notices: Vec<String>,
}

impl Store {
    /// Opens the store of a graph if it exists; else it is made with the first edit. With `adopt`, edits of another graph are
    /// taken over.
    pub fn open(path: &Path, graph: GraphId, adopt: bool) -> Result<OpenedStore, StoreError> {
        let mut store = Store { path: path.to_path_buf(), graph, lock: None, log: None };
        let (mut stored, mut notices) = (StoreContent::default(), Vec::new());
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
        Ok(OpenedStore { store, stored, notices })
    }

    /// Makes sure that no other server has the file. If another one made it since this one started, and has ended, gives what it
    /// left: the next edit goes on from there.
    pub fn take_over(&mut self) -> Result<Option<StoreContent>, StoreError> {
        if self.log.is_some() {
            return Ok(None);
        }
        self.lock()?;
        if !self.exists()? {
            return Ok(None);
        }
        self.load(false, Vec::new()).map(|(stored, _)| Some(stored))
    }

    /// Keeps edits, the entities and relations that came with them, and labels, all or none. When this returns they are on disk. After an
    /// error the next call tries again from the last acknowledged edit. A file that another server has made must be
    /// [taken over](Store::take_over) first.
    pub fn commit(
        &mut self,
        edits: &[NamedEdit<'_>],
        names: [Vec<&str>; 2],
        labels: &[(&str, &str)],
    ) -> Result<(), StoreError> {
        let failed = self.io_error("keep an edit");
        self.lock()?;
        if self.log.is_none() {
            if self.exists()? {
                return Err(failed(io::ErrorKind::AlreadyExists.into()));
            }
            self.create(&StoreContent::default(), if labels.is_empty() { UNLABELLED } else { VERSION })?;
        } else if !labels.is_empty() && self.log.as_ref().is_some_and(|log| log.version < VERSION) {
            // The first label: a file of the older version is written afresh, without what was not acknowledged.
            if let Some(log) = &mut self.log
                && log.torn
            {
                log.mend().map_err(&failed)?;
            }
            // If this fails it is not known which of the two files has the name: the next edit takes over that one.
            self.log = None;
            let content = StoreContent::of(&LogContent::read(&self.path)?);
            self.create(&content, VERSION)?;
        }
        let [entities, relations] = names;
        let all = |present| edits.iter().filter(move |e| e.present == present).map(|e| e.triple).collect();
        let labels = labels.iter().map(|(name, label)| [*name, *label]).collect();
        let line = CommitLine { entities, relations, add: all(true), remove: all(false), labels };
        let log = self.log.as_mut().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        log.append(&line).map_err(failed)
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
    fn load(&mut self, adopt: bool, mut notices: Vec<String>) -> Result<(StoreContent, Vec<String>), StoreError> {
        let old = old::beside(&self.path);
        if !self.exists()? && old.exists() {
            let stored = old::read(&old)?;
            self.create(&stored, UNLABELLED)?;
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
            self.create(&stored, UNLABELLED)?;
            let (file, away) = (self.path.display(), away.display());
            notices.push(format!("{file}: converted to a newer format; the old file is kept as {away}"));
            return Ok((stored, notices));
        }
        let mut found = LogContent::read(&self.path)?;
        notices.append(&mut found.notices);
        let (file, size) = (self.path.display().to_string(), found.len);
        if found.graph != self.graph {
            if !adopt {
                return Err(StoreError::OtherGraph { file, found: found.graph, expected: self.graph.clone() });
            }
            notices.push(format!("{file}: edits made on another graph ({}) are applied to this one", found.graph));
        }
        let stored = StoreContent::of(&found);
        let overtaken = found.seen > 2 * (stored.edits.len() + stored.labels.len()) as u64 && size > LARGE;
        let adopted = found.graph != self.graph;
        if adopted || overtaken && self.lock.is_some() {
            match self.create(&stored, if stored.labels.is_empty() { UNLABELLED } else { VERSION }) {
                Ok(()) => return Ok((stored, notices)),
                Err(e) if adopted => return Err(e),
                // It would only have become shorter. It is not known which of the two files has the name.
                Err(e) => {
                    notices.push(format!("{e}; the file is used as it is"));
                    found = LogContent::read(&self.path)?;
                }
            }
        }
        if self.lock.is_some() {
            let disk = OpenOptions::new().read(true).write(true).open(&self.path);
            let mut log = Log {
                disk: Box::new(disk.map_err(self.io_error("open it for writing"))?),
                version: found.version,
                marks: found.marks,
                len: found.len,
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
    fn create(&mut self, content: &StoreContent, version: u32) -> Result<(), StoreError> {
        let temporary = with_ending(&self.path, ".new");
        let made = Log::create(&temporary, &self.path, &self.graph, content, version);
        if made.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        self.log = Some(made.map_err(self.io_error("write it"))?);
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
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
    use super::log::Disk;
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A file on a disk that does only so much more: each write, truncation and wait for the disk takes one, then all fail. The
    /// write that fails has written half.
    struct FailingDisk {
        file: File,
        left: Arc<Mutex<usize>>,
    }

    impl FailingDisk {
        fn spend(&self) -> io::Result<()> {
            let mut left = self.left.lock().unwrap();
            *left = left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(())
        }
    }

    impl Disk for FailingDisk {
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
        store.commit(&[NamedEdit { triple: ["h", "r", tail], present: true }], [vec![tail], vec![]], &[])
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
            store.log.as_mut().unwrap().disk = Box::new(FailingDisk { file, left: left.clone() });
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
            let OpenedStore { stored, notices, .. } = Store::open(&path, id(), false).unwrap();
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
            store.commit(&[edit], [vec![], vec![]], &[]).unwrap();
        }
        drop(store);
        let before = fs::metadata(&path).unwrap().len();
        let OpenedStore { store, stored, .. } = Store::open(&path, id(), false).unwrap();
        assert_eq!(stored.edits, [(["h".to_string(), "r".to_string(), long.clone()], false)]);
        assert!(before > 1_200_000 && fs::metadata(&path).unwrap().len() < 110_000);
        drop(store);
        assert_eq!(Store::open(&path, id(), false).unwrap().stored, stored);
        // Where there is no room to write it afresh, it is used as it is.
        let mut store = Store::open(&path, id(), false).unwrap().store;
        for i in 0..12 {
            let edit = NamedEdit { triple: ["h", "r", &long], present: i % 2 == 0 };
            store.commit(&[edit], [vec![], vec![]], &[]).unwrap();
        }
        drop(store);
        let in_the_way = dir.path().join("edits.new");
        fs::create_dir(&in_the_way).unwrap();
        let OpenedStore { mut store, stored: as_it_is, notices } = Store::open(&path, id(), false).unwrap();
        assert!(
            as_it_is == stored && notices.len() == 1 && notices[0].ends_with("the file is used as it is"),
            "{notices:?}"
        );
        add(&mut store, "more").unwrap();
        drop(store);
        fs::remove_dir(&in_the_way).unwrap();
        let stored = Store::open(&path, id(), false).unwrap().stored;
        assert_eq!((stored.names[0].len(), stored.edits.len()), (1, 2));
    }

    /// An edit whose line was written but not acknowledged is not made by the first label, which writes the file afresh. And where
    /// that fails, the next edit goes on with whatever file there is.
    #[test]
    fn the_first_label_keeps_what_was_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("edits");
        let mut store = Store::open(&path, id(), false).unwrap().store;
        add(&mut store, "a").unwrap();
        // The line of this edit is written whole; then the disk fails, at mending too.
        let left = Arc::new(Mutex::new(1));
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        store.log.as_mut().unwrap().disk = Box::new(FailingDisk { file, left: left.clone() });
        add(&mut store, "b").unwrap_err();
        assert!(store.log.as_ref().unwrap().torn);
        *left.lock().unwrap() = usize::MAX;
        let label = |store: &mut Store| store.commit(&[], [vec![], vec![]], &[("a", "Ann")]);
        // The new file cannot be made at first.
        let in_the_way = dir.path().join("edits.new");
        fs::create_dir(&in_the_way).unwrap();
        label(&mut store).unwrap_err();
        assert_eq!(store.take_over().unwrap().unwrap().names[0], ["a"]);
        add(&mut store, "c").unwrap();
        fs::remove_dir(&in_the_way).unwrap();
        label(&mut store).unwrap();
        drop(store);
        let stored = Store::open(&path, id(), false).unwrap().stored;
        assert_eq!((stored.names[0].join(" "), stored.labels.len()), ("a c".to_string(), 1));
    }

    /// A file without labels is one that older programs read. With the first label it is written afresh, with the edits it had.
    #[test]
    fn the_first_label_makes_a_newer_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("edits");
        let version = || fs::read_to_string(&path).unwrap().split(' ').nth(2).unwrap().to_string();
        let mut store = Store::open(&path, id(), false).unwrap().store;
        add(&mut store, "a").unwrap();
        drop(store);
        assert_eq!(version(), "1");
        let OpenedStore { mut store, stored, .. } = Store::open(&path, id(), false).unwrap();
        assert_eq!(stored.labels, []);
        store.commit(&[], [vec![], vec![]], &[("a", "Ann"), ("b", "Bob")]).unwrap();
        add(&mut store, "c").unwrap();
        store.commit(&[], [vec![], vec![]], &[("b", ""), ("a", "Anna")]).unwrap();
        drop(store);
        assert_eq!(version(), "2");
        let OpenedStore { store, stored, notices } = Store::open(&path, id(), false).unwrap();
        assert_eq!((stored.names[0].join(" "), stored.edits.len(), notices), ("a c".to_string(), 2, vec![]));
        let labels: Vec<(&str, &str)> = stored.labels.iter().map(|(n, l)| (n.as_str(), l.as_str())).collect();
        assert_eq!(labels, [("a", "Anna"), ("b", "")]);
        drop(store);
        // Edits of another graph bring their labels along.
        let other = GraphId { triples: 2, ..id() };
        let adopted = Store::open(&path, other.clone(), true).unwrap().stored;
        assert_eq!((adopted, version()), (Store::open(&path, other, false).unwrap().stored, "2".to_string()));
        let fresh = dir.path().join("fresh");
        let mut store = Store::open(&fresh, id(), false).unwrap().store;
        store.commit(&[], [vec![], vec![]], &[("h", "Head")]).unwrap();
        drop(store);
        assert_eq!(Store::open(&fresh, id(), false).unwrap().stored.labels, [("h".to_string(), "Head".to_string())]);
    }
}
