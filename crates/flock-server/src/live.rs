//! A graph that changes while it is asked.
//!
//! Whoever asks takes a snapshot and keeps it to the end. An edit makes the next snapshot, which shares all but the touched rows
//! with the last, commits to the store, and only then is published and acknowledged. When a patch has grown, a thread builds a
//! fresh index beside the work and the edits made meanwhile are put on top of it.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use flock_kg::calibrate::Calibrations;
use flock_kg::graph::{Graph, GraphError, NameIndex, NameKind, NamedEdit, Names, UnknownName};

use crate::store::{GraphId, OpenedStore, Store, StoreContent, StoreError, StoredEdit};

/// A patch is folded into a fresh index when it has as many slots as an eighth of the graph, within these bounds.
const FEW_SLOTS: usize = 1 << 16;
const MANY_SLOTS: usize = 1 << 21;

/// Why an edit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// It does not fit the graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A name in it is not in the graph, or could stand for several.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// It could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an edit did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EditOutcome {
    /// Triples that are new.
    pub added: usize,
    /// Triples that are gone.
    pub removed: usize,
    /// Labels that are new, other ones or gone.
    pub labelled: usize,
    /// Triples of the graph now.
    pub triples: usize,
}

/// Names sorted for completion.
#[derive(Default)]
pub struct Indexes {
    /// Of entities.
    pub entities: NameIndex,
    /// Of relations.
    pub relations: NameIndex,
}

/// Where the edits of a graph are kept.
#[derive(Copy, Clone, Debug)]
pub struct EditsFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// Whether edits that were made on another graph are applied to this one.
    pub adopt: bool,
}

/// A graph with its edits.
pub struct Live {
    /// What people call it.
    pub name: String,
    /// Probabilities made for it.
    pub calibrations: Calibrations,
    /// What people should hear about its file of edits: what was repaired, dropped or converted.
    pub notices: Vec<String>,
    now: RwLock<Arc<Graph>>,
    indexes: RwLock<Arc<Indexes>>,
    indexing: Mutex<Indexing>,
    writer: Mutex<Writer>,
}

/// What the thread that sorts names is at.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Indexing {
    /// There is none.
    Idle,
    /// It sorts the names of the newest graph.
    Busy,
    /// The graph has changed meanwhile, so it will sort once more.
    Again,
}

struct Writer {
    store: Option<Store>,
    /// Edits made while a fresh index is being built.
    since: Option<Vec<StoredEdit>>,
}

fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done by a panic: a snapshot is published whole.
    lock.lock().unwrap_or_else(|e| e.into_inner())
}

fn named(edits: &[StoredEdit]) -> Vec<NamedEdit<'_>> {
    let edits = edits.iter();
    edits.map(|(t, present)| NamedEdit { triple: t.each_ref().map(String::as_str), present: *present }).collect()
}

/// The graph with what a store holds.
fn applied(graph: Graph, StoreContent { names, edits, labels }: &StoreContent) -> Result<Graph, GraphError> {
    let [entities, relations] = names.each_ref().map(|names| names.iter().map(String::as_str));
    let graph = match names.iter().all(Vec::is_empty) {
        true => graph,
        false => graph.with_names(entities, relations)?,
    };
    let graph = if edits.is_empty() { graph } else { graph.edited(&named(edits))? };
    let labels = labels.iter().map(|(name, label)| (name.as_str(), label.as_str()));
    Ok(if labels.len() == 0 { graph } else { graph.with_labels(labels) })
}

impl Live {
    /// A graph, and its edits if they are kept in a file.
    pub fn open(
        name: String,
        graph: Graph,
        edits: Option<EditsFile<'_>>,
        calibrations: Calibrations,
    ) -> Result<Arc<Live>, LiveError> {
        let opened = edits.map(|file| Store::open(file.path, GraphId::of(&graph), file.adopt)).transpose()?;
        let (store, graph, notices) = match opened {
            None => (None, graph, Vec::new()),
            Some(OpenedStore { store, stored, notices }) => (Some(store), applied(graph, &stored)?, notices),
        };
        let live = Arc::new(Live {
            name,
            calibrations,
            notices,
            now: RwLock::new(Arc::new(graph)),
            indexes: RwLock::default(),
            indexing: Mutex::new(Indexing::Idle),
            writer: Mutex::new(Writer { store, since: None }),
        });
        live.clone().index();
        live.clone().fold_if_grown(&mut unpoisoned(&live.writer));
        Ok(live)
    }

    /// Sorts the names on a thread of its own, one at a time; until then completion looks at all of them.
    fn index(self: Arc<Live>) {
        {
            let mut indexing = unpoisoned(&self.indexing);
            if *indexing != Indexing::Idle {
                *indexing = Indexing::Again;
                return;
            }
            *indexing = Indexing::Busy;
        }
        let live = self.clone();
        let sort = move || {
            loop {
                live.sort_names();
                let mut indexing = unpoisoned(&live.indexing);
                if *indexing == Indexing::Busy {
                    *indexing = Indexing::Idle;
                    return;
                }
                *indexing = Indexing::Busy;
            }
        };
        // Without a thread the older index goes on, and the next edit of labels tries again.
        if std::thread::Builder::new().spawn(sort).is_err() {
            *unpoisoned(&self.indexing) = Indexing::Idle;
        }
    }

    fn sort_names(&self) {
        let graph = self.graph();
        let index = |kind| NameIndex::build(graph.names(kind), graph.labels().of(kind));
        let indexes = Indexes { entities: index(NameKind::Entity), relations: index(NameKind::Relation) };
        *self.indexes.write().unwrap_or_else(|e| e.into_inner()) = Arc::new(indexes);
    }

    /// The graph as it is now.
    pub fn graph(&self) -> Arc<Graph> {
        self.now.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// The names, sorted.
    pub fn indexes(&self) -> Arc<Indexes> {
        self.indexes.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn publish(&self, graph: Graph) {
        *self.now.write().unwrap_or_else(|e| e.into_inner()) = Arc::new(graph);
    }

    /// Makes edits, all or none. When this returns they are on disk, if they are kept at all, and the next question sees them.
    pub fn edit(self: &Arc<Live>, edits: &[NamedEdit<'_>]) -> Result<EditOutcome, LiveError> {
        self.edit_labelled(edits, &[])
    }

    /// As [`Live::edit`], and gives names, new ones or old ones, labels. An empty label takes a label away.
    pub fn edit_labelled(
        self: &Arc<Live>,
        edits: &[NamedEdit<'_>],
        wanted: &[(&str, &str)],
    ) -> Result<EditOutcome, LiveError> {
        let mut writer = unpoisoned(&self.writer);
        // Another server may have made the file since this one started, and ended. (While there was no file, nothing was edited here.)
        if let Some(store) = &mut writer.store
            && let Some(left) = store.take_over()?
        {
            let graph = Graph::clone(&self.graph());
            self.publish(applied(graph, &left)?);
        }
        let before = self.graph();
        let mut after = before.edited(edits)?;
        let mut labels: Vec<(String, &str)> = Vec::new();
        for (text, label) in wanted {
            let name = after.name_for_label(text)?;
            // A label that is the name itself is none. What changes nothing is not kept.
            let label = if label.trim() == name { "" } else { label.trim() };
            if after.label(name).unwrap_or_default() != label {
                labels.push((name.to_string(), label));
            }
        }
        let labels: Vec<(&str, &str)> = labels.iter().map(|(name, label)| (name.as_str(), *label)).collect();
        if !labels.is_empty() {
            after = after.with_labels(labels.iter().copied());
        }
        let has = |graph: &Graph, [head, relation, tail]: [&str; 3]| {
            let ids = (graph.entities().id(head), graph.relations().id(relation), graph.entities().id(tail));
            matches!(ids, (Some(h), Some(r), Some(t)) if graph.topology().contains(h, r, t))
        };
        let mut triples: Vec<[&str; 3]> = edits.iter().map(|e| e.triple).collect();
        triples.sort_unstable();
        triples.dedup();
        // What changes nothing is not kept.
        let mut changes = Vec::new();
        for triple in triples {
            let present = has(&after, triple);
            if present != has(&before, triple) {
                changes.push(NamedEdit { triple, present });
            }
        }
        let added = changes.iter().filter(|c| c.present).count();
        let removed = changes.len() - added;
        let new = |before: &Names, after: &Names| -> Range<u32> { before.len() as u32..after.len() as u32 };
        let entities = new(before.entities(), after.entities()).map(|id| after.entities().get(id));
        let relations = new(before.relations(), after.relations()).map(|id| after.relations().get(id));
        let names: [Vec<&str>; 2] = [entities.collect(), relations.collect()];
        if let Some(store) = &mut writer.store
            && !(changes.is_empty() && names.iter().all(Vec::is_empty) && labels.is_empty())
        {
            store.commit(&changes, names, &labels)?;
        }
        if let Some(since) = &mut writer.since {
            since.extend(edits.iter().map(|e| (e.triple.map(str::to_string), e.present)));
        }
        let triples = after.topology().num_triples();
        self.publish(after);
        if !labels.is_empty() {
            self.clone().index();
        }
        self.clone().fold_if_grown(&mut writer);
        Ok(EditOutcome { added, removed, labelled: labels.len(), triples })
    }

    fn fold_if_grown(self: Arc<Live>, writer: &mut Writer) {
        let graph = self.graph();
        let topology = graph.topology();
        let limit = (topology.num_triples() / 4).clamp(FEW_SLOTS, MANY_SLOTS);
        if topology.patch_slots() <= limit || writer.since.is_some() {
            return;
        }
        writer.since = Some(Vec::new());
        std::thread::spawn(move || {
            let flat = graph.flattened();
            let mut writer = unpoisoned(&self.writer);
            let since = writer.since.take().unwrap_or_default();
            // If there is no fresh index the patched graph goes on as it is.
            let whole = flat.and_then(|flat| if since.is_empty() { Ok(flat) } else { flat.edited(&named(&since)) });
            if let Ok(whole) = whole {
                // Labels may have come meanwhile. Both states have the same names.
                let now = self.graph();
                self.publish(whole.with_labels_of(&now));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flock_kg::graph::GraphBuilder;
    use std::time::{Duration, Instant};

    fn ring(n: usize) -> Graph {
        let mut builder = GraphBuilder::new();
        for i in 0..n {
            builder.add(&format!("n{i}"), "next", &format!("n{}", (i + 1) % n));
        }
        builder.finish().unwrap()
    }

    fn all(graph: &Graph) -> Vec<[String; 3]> {
        let (e, r) = (graph.entities(), graph.relations());
        let names = graph.topology().triples().map(|t| [e.get(t.head), r.get(t.relation), e.get(t.tail)]);
        let mut names: Vec<_> = names.map(|n| n.map(str::to_string)).collect();
        names.sort();
        names
    }

    #[test]
    fn edits_are_seen_kept_and_survive_a_fresh_index() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("edits");
        let kept = EditsFile { path: &file, adopt: false };
        let live = Live::open("ring".into(), ring(30), Some(kept), Calibrations::default()).unwrap();
        assert!(!file.exists());
        let add = |t| NamedEdit { triple: t, present: true };
        let remove = |t| NamedEdit { triple: t, present: false };
        let old = live.graph();
        let outcome = live.edit(&[add(["n0", "likes", "<b>"]), remove(["n0", "next", "n1"]), remove(["x", "y", "z"])]);
        assert_eq!(outcome.unwrap(), EditOutcome { added: 1, removed: 1, labelled: 0, triples: 30 });
        // Added and taken back in one edit is nothing.
        let outcome = live.edit(&[add(["n1", "likes", "n2"]), remove(["n1", "likes", "n2"])]).unwrap();
        assert_eq!(outcome, EditOutcome { added: 0, removed: 0, labelled: 0, triples: 30 });
        assert_eq!(old.topology().num_triples(), 30);
        assert!(old.entities().id("<b>").is_none() && live.graph().entities().id("<b>") == Some(30));

        // A hub whose row is larger than the limit makes every edit at it worth a fresh index.
        let hub: Vec<String> = (0..70_000).map(|i| format!("leaf {i}")).collect();
        let edits: Vec<NamedEdit<'_>> = hub.iter().map(|leaf| add(["n3", "has", leaf])).collect();
        live.edit(&edits).unwrap();
        live.edit(&[add(["n4", "has", "leaf 0"])]).unwrap();
        let begin = Instant::now();
        while live.graph().topology().num_edits() > 1 && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(live.graph().topology().num_edits() <= 1);
        assert_eq!(live.graph().topology().num_triples(), 30 + 70_001);

        // A name that has lost its edges is a name still, and all keep their ids.
        live.edit(&[add(["Zeta", "likes", "Alpha"])]).unwrap();
        live.edit(&[remove(["Zeta", "likes", "Alpha"]), remove(["Zeta", "likes", "Alpha"])]).unwrap();
        let names = |live: &Live| live.graph().entities().iter().map(str::to_string).collect::<Vec<_>>();
        let (now, called) = (all(&live.graph()), names(&live));
        assert_eq!(&called[called.len() - 2..], ["Zeta", "Alpha"]);
        drop(unpoisoned(&live.writer).store.take());
        let again = Live::open("ring".into(), ring(30), Some(kept), Calibrations::default()).unwrap();
        assert_eq!(all(&again.graph()), now);
        assert_eq!(names(&again), called);
        // What changes nothing is not written.
        let size = |live: &Live| unpoisoned(&live.writer).store.as_ref().unwrap().commits();
        let before = size(&again);
        again.edit(&[remove(["who", "knows", "whom"]), add(["n5", "next", "n6"])]).unwrap();
        assert_eq!(size(&again), before);
    }

    /// Many labels in a row are sorted by one thread at a time, and the last one is in the index that stays.
    #[test]
    fn the_newest_labels_are_sorted_last() {
        let live = Live::open("ring".into(), ring(20_000), None, Calibrations::default()).unwrap();
        for letter in 'a'..='z' {
            let label = letter.to_string().repeat(9);
            live.edit_labelled(&[], &[("n7", label.as_str())]).unwrap();
            // This one, the thread that sorts, and perhaps one that is just ending.
            assert!(Arc::strong_count(&live) <= 3, "{}", Arc::strong_count(&live));
        }
        let begin = Instant::now();
        while *unpoisoned(&live.indexing) != Indexing::Idle && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (indexes, graph) = (live.indexes(), live.graph());
        let complete =
            |letter: char| graph.complete(&indexes.entities, NameKind::Entity, &letter.to_string().repeat(9), 3);
        assert_eq!(complete('z'), ["n7"]);
        assert!(('a'..='y').all(|letter| complete(letter).is_empty()));
    }

    /// Labels set while a fresh index is built are there afterwards, and a label that is there already is not kept twice.
    #[test]
    fn labels_survive_a_fresh_index() {
        let live = Live::open("ring".into(), ring(30), None, Calibrations::default()).unwrap();
        let leaves: Vec<String> = (0..70_000).map(|i| format!("leaf {i}")).collect();
        let hub: Vec<_> = leaves.iter().map(|leaf| NamedEdit { triple: ["n3", "has", leaf], present: true }).collect();
        assert_eq!(live.edit_labelled(&hub, &[("leaf 7", "The Leaf"), ("next", "is before")]).unwrap().labelled, 2);
        // A fresh index is on its way.
        let more = [("n1", "One"), ("THE LEAF", " The Leaf "), ("n2", "n2"), ("n4", "")];
        assert_eq!(live.edit_labelled(&[], &more).unwrap().labelled, 1);
        let begin = Instant::now();
        while live.graph().topology().num_edits() > 1 && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let graph = live.graph();
        assert!(graph.topology().num_edits() <= 1);
        let labels = ["leaf 7", "n1", "n2", "next"].map(|name| graph.label(name));
        assert_eq!(labels, [Some("The Leaf"), Some("One"), None, Some("is before")]);
        assert_eq!((graph.find_entity("one"), graph.find_relation("Is Before")), (Some(1), Some(0)));
        assert!(matches!(live.edit_labelled(&[], &[("nobody", "x")]), Err(LiveError::Name(_))));
    }
}
