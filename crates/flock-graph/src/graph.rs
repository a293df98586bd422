//! A graph: two sets of names and a [`Topology`] over their ids.

use crate::folded::FoldedNames;
use crate::labels::{Labels, LabelsByName};
use crate::names::{NameBatch, Names};
use crate::prefixes::Prefixes;
use crate::topology::{Edit, Topology, TopologyError, Triple};
use std::borrow::Cow;
use std::sync::Arc;

/// Number of names that are looked up together.
const PENDING: usize = 128;

/// Number of triples at which duplicates are dropped for the first time. After that they are
/// dropped each time the list has doubled. So a file of duplicates takes no more memory than this.
const MANY: usize = 4 << 20;

/// A knowledge graph with names.
#[derive(Debug, Clone)]
pub struct Graph {
    entities: Arc<Names>,
    relations: Arc<Names>,
    topology: Arc<Topology>,
    prefixes: Prefixes,
    labels: Labels,
    /// For look-ups that ignore case. Shared by later states of the graph.
    pub(crate) folded: Arc<FoldedNames>,
}

/// A change to a graph, by names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NamedEdit<'a> {
    /// Head, relation and tail.
    pub triple: [&'a str; 3],
    /// Whether the graph has the triple after the edit.
    pub present: bool,
}

impl Graph {
    /// Puts a graph together. The topology has as many nodes and relations as there are names.
    pub(crate) fn from_parts(
        entities: Names,
        relations: Names,
        topology: Topology,
        prefixes: Prefixes,
        labels: Labels,
    ) -> Graph {
        Graph {
            folded: Arc::new(FoldedNames::new(&entities, &relations)),
            entities: Arc::new(entities),
            relations: Arc::new(relations),
            topology: Arc::new(topology),
            prefixes,
            labels,
        }
    }

    /// Returns the names of the entities. The id of a name is the node of the [`Topology`].
    pub fn entities(&self) -> &Names {
        &self.entities
    }

    /// Returns the names of the raw relations.
    pub fn relations(&self) -> &Names {
        &self.relations
    }

    /// Returns the triples, indexed for walking and filtering.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the prefixes for showing IRIs. There are none if names are not IRIs.
    pub fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// Returns the labels of entities and relations. There are none if the files had none.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the heap memory of the graph in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.entities.memory_bytes()
            + self.relations.memory_bytes()
            + self.topology.memory_bytes()
            + self.labels.memory_bytes()
            + self.folded.memory_bytes()
    }

    /// Shortens a name for display: an IRI gets its prefix. [`Graph::parse_entity`] and
    /// [`Graph::parse_relation`] understand the result. [`Graph::shown`] prefers labels.
    pub fn display<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.prefixes.shorten(name) {
            // Another name may be spelled like the short form.
            Some(short) if self.entities.id(&short).or(self.relations.id(&short)).is_none() => Cow::Owned(short),
            _ => Cow::Borrowed(name),
        }
    }

    /// Returns the graph after some edits, applied in order. This graph does not change, and both
    /// share memory. New names get the next ids. All names stay and keep their ids. Removing a
    /// triple that is not there changes nothing.
    ///
    /// Takes time proportional to the number of edits since the graph was last
    /// [flattened](Graph::flattened) and to the degrees of the entities they touch.
    pub fn edited(&self, edits: &[NamedEdit<'_>]) -> Result<Graph, GraphError> {
        let (mut entities, mut relations) = (Names::over(&self.entities), Names::over(&self.relations));
        let mut changes = Vec::with_capacity(edits.len());
        for &NamedEdit { triple: [head, relation, tail], present } in edits {
            let ids = match present {
                true => Some((entities.intern(head), relations.intern(relation), entities.intern(tail))),
                false => (|| Some((entities.id(head)?, relations.id(relation)?, entities.id(tail)?)))(),
            };
            if let Some((head, relation, tail)) = ids {
                changes.push(Edit { triple: Triple { head, relation, tail }, present });
            }
        }
        let topology = self.topology.edited(entities.len() as u32, relations.len() as u32, &changes)?;
        Ok(Graph {
            folded: self.folded_for(&entities, &relations),
            entities: if entities.len() > self.entities.len() { Arc::new(entities) } else { self.entities.clone() },
            relations: if relations.len() > self.relations.len() {
                Arc::new(relations)
            } else {
                self.relations.clone()
            },
            topology: Arc::new(topology),
            prefixes: self.prefixes.clone(),
            labels: self.labels.clone(),
        })
    }

    /// Returns the graph with some more names. New names get the next ids, in this order.
    pub fn with_names<'a>(
        &self,
        new_entities: impl Iterator<Item = &'a str>,
        new_relations: impl Iterator<Item = &'a str>,
    ) -> Result<Graph, GraphError> {
        let (mut entities, mut relations) = (Names::over(&self.entities), Names::over(&self.relations));
        new_entities.for_each(|name| _ = entities.intern(name));
        new_relations.for_each(|name| _ = relations.intern(name));
        let topology = self.topology.edited(entities.len() as u32, relations.len() as u32, &[])?;
        Ok(Graph {
            folded: self.folded_for(&entities, &relations),
            entities: Arc::new(entities),
            relations: Arc::new(relations),
            topology: Arc::new(topology),
            prefixes: self.prefixes.clone(),
            labels: self.labels.clone(),
        })
    }

    /// Returns the same graph with the same ids and an index of its own, without traces of edits.
    pub fn flattened(&self) -> Result<Graph, GraphError> {
        Ok(Graph {
            entities: Arc::new(self.entities.flattened()),
            relations: Arc::new(self.relations.flattened()),
            topology: Arc::new(self.topology.flattened()?),
            prefixes: self.prefixes.clone(),
            labels: self.labels.clone(),
            folded: self.folded.clone(),
        })
    }

    /// Returns the graph with some more labels, given as names and labels. A name is spelled as in the
    /// graph. An empty label takes the old one away. Names that the graph does not have are ignored.
    pub fn with_labels<'a>(&self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Graph {
        let mut all = LabelsByName::default();
        // The last label of a name counts.
        let labels: Vec<_> = labels.into_iter().collect();
        labels.into_iter().rev().for_each(|(name, label)| all.add(name, label, 0));
        self.relabelled(&all)
    }

    /// Returns this graph with the labels of another state of it, which has the same names.
    pub fn with_labels_of(self, other: &Graph) -> Graph {
        debug_assert!(self.entities.len() == other.entities.len() && self.relations.len() == other.relations.len());
        Graph { labels: other.labels.clone(), folded: other.folded.clone(), ..self }
    }

    pub(crate) fn relabelled(&self, labels: &LabelsByName) -> Graph {
        let labels = labels.finish(&self.entities, &self.relations, &self.labels);
        Graph { labels, folded: Arc::new(FoldedNames::new(&self.entities, &self.relations)), ..self.clone() }
    }

    /// The indexes of folded names for a later state of this graph.
    fn folded_for(&self, entities: &Names, relations: &Names) -> Arc<FoldedNames> {
        match self.folded.serves(entities, relations) {
            true => self.folded.clone(),
            false => Arc::new(FoldedNames::new(entities, relations)),
        }
    }
}

/// Why triples do not form a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// No triple was added.
    #[error("the graph has no triples, expected at least one")]
    Empty,
    /// The index could not be built.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Builds a graph from named triples, one by one.
///
/// ```
/// let mut builder = flock_graph::GraphBuilder::new();
/// builder.add("Lisbon", "capital of", "Portugal");
/// builder.entity("Atlantis"); // an entity without edges
/// let graph = builder.finish()?;
/// assert_eq!(graph.entities().iter().collect::<Vec<_>>(), ["Lisbon", "Portugal", "Atlantis"]);
/// # Ok::<(), flock_graph::GraphError>(())
/// ```
#[derive(Debug, Default)]
pub struct GraphBuilder {
    entities: Names,
    relations: Names,
    triples: Vec<Triple>,
    /// Number of duplicates that were dropped.
    dropped: usize,
    /// Number of triples at which duplicates are dropped next. 0 stands for [`MANY`].
    limit: usize,
    prefixes: Prefixes,
    labels: LabelsByName,
    /// Heads and tails of the last triples, whose ids have not been looked up yet.
    pending: NameBatch,
    ids: Vec<u32>,
}

impl GraphBuilder {
    /// Makes a builder without names and triples.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Returns the id of an entity, and adds it if it is new. Ids follow the order of first
    /// appearance.
    pub fn entity(&mut self, name: &str) -> u32 {
        self.settle();
        self.entities.intern(name)
    }

    /// Returns the id of a relation, and adds it if it is new.
    pub fn relation(&mut self, name: &str) -> u32 {
        self.relations.intern(name)
    }

    /// Adds a triple. [`finish`](GraphBuilder::finish) drops duplicates.
    pub fn add(&mut self, head_name: &str, relation: &str, tail_name: &str) {
        let relation = self.relations.intern(relation);
        let (head, tail) = (u32::MAX, u32::MAX);
        self.triples.push(Triple { head, relation, tail });
        self.pending.push(head_name);
        self.pending.push(tail_name);
        if self.pending.len() >= PENDING {
            self.settle();
        }
    }

    /// Gives an entity or a relation a label. Names that no triple has, and empty labels, are ignored.
    /// Of several labels the one with the lowest `rank` is kept, and of those the first.
    pub fn label(&mut self, name: &str, label: &str, rank: u32) {
        if !label.trim().is_empty() {
            self.labels.add(name, label, rank);
        }
    }

    /// Looks up the ids of pending heads and tails.
    fn settle(&mut self) {
        self.entities.intern_batch(&mut self.pending, &mut self.ids);
        let open = self.triples.len() - self.ids.len() / 2;
        for (triple, ids) in self.triples[open..].iter_mut().zip(self.ids.chunks_exact(2)) {
            (triple.head, triple.tail) = (ids[0], ids[1]);
        }
        if self.triples.len() >= self.limit.max(MANY) {
            let before = self.triples.len();
            self.triples.sort_unstable_by_key(|t| (t.relation, t.head, t.tail));
            self.triples.dedup();
            self.dropped += before - self.triples.len();
            self.limit = 2 * self.triples.len();
        }
    }

    /// Returns the prefixes for showing IRIs.
    pub fn prefixes(&mut self) -> &mut Prefixes {
        &mut self.prefixes
    }

    /// Derives prefixes from the names, if there are none yet.
    pub(crate) fn derive_prefixes(&mut self) {
        self.settle();
        if self.prefixes.is_empty() {
            self.prefixes = Prefixes::derive(self.entities.iter().chain(self.relations.iter()));
        }
    }

    /// Returns the number of triples added, including duplicates.
    pub fn len(&self) -> usize {
        self.triples.len() + self.dropped
    }

    /// Tells whether no triple was added.
    pub fn is_empty(&self) -> bool {
        self.triples.is_empty()
    }

    /// Builds the graph and its index.
    pub fn finish(mut self) -> Result<Graph, GraphError> {
        if self.triples.is_empty() {
            return Err(GraphError::Empty);
        }
        self.settle();
        self.entities.shrink();
        self.relations.shrink();
        // Both lengths fit, because ids are below u32::MAX.
        let nodes = self.entities.len() as u32;
        let topology = Topology::build(nodes, self.relations.len() as u32, self.triples)?;
        let labels = self.labels.finish(&self.entities, &self.relations, &Labels::default());
        Ok(Graph::from_parts(self.entities, self.relations, topology, self.prefixes, labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_take_no_memory() {
        let mut builder = GraphBuilder::new();
        for _ in 0..MANY + 1000 {
            builder.add("a", "r", "b");
        }
        builder.add("b", "r", "a");
        assert!(builder.triples.len() < 2000);
        assert_eq!(builder.len(), MANY + 1001);
        assert_eq!(builder.finish().unwrap().topology().num_triples(), 2);
    }
}
