//! The names-free index of one graph: which triples there are, and where a walk can go from each node.
//!
//! Two views of the same triples, both built by sorting, neither changed afterwards (edits are kept beside them, see
//! [`Topology::edited`]):
//!
//! - **Edges**: `(head, tail)` packed in a `u64`, sorted by (relation, head, tail). A triple's position is its id. A second
//!   `u32` permutation sorted by (relation, tail, head) answers inverse types. 12 bytes a triple.
//! - **Adjacency**: an 8-byte [`NodeRecord`] per node and an 8-byte [`Slot`] per (node, distinct neighbour). A slot names the
//!   neighbour and, when a single triple joins the two, the step itself; otherwise it points into a list of steps.
//!   16 bytes a triple, up to 20 where triples run in parallel.
//!
//! A **half-step** is one raw triple seen from one of its ends: the type `s` of the augmented edge that leaves this end, `r` at
//! the head and `r + R` at the tail. The two labels of that triple for a move away from this end are `(s, dir 0)` and
//! `(inverse(s), dir 1)`, so a uniform half-step and a fair coin are a uniform label (section 1 of the specification). A
//! self-loop is stored as one half-step in a slot of its own behind the neighbours; the coin gives its two types.
//! Half-steps are stored as `2r` and `2r + 1`: the coin is then an exclusive or, where `r + R` would cost the walk a branch.

mod adjacency;
mod huge;
pub mod mask;
mod neighbourhood;
mod patch;

pub use adjacency::{Arrays, NodeRecord, Slot, Step};
pub use patch::Edit;

use adjacency::{Adjacency, half_steps};
use thiserror::Error;

/// Dense id of an entity.
pub type NodeId = u32;
/// Id of a relation type: `0..R` is the raw relation `r`, `R..2R` its inverse `r + R`, and `2R` is "no type".
pub type TypeId = u32;

/// One fact, by ids.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Triple {
    /// The node the edge leaves.
    pub head: NodeId,
    /// The raw relation, below `R`.
    pub relation: u32,
    /// The node the edge enters.
    pub tail: NodeId,
}

/// Why a graph cannot be indexed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A head or tail is not below the number of nodes.
    #[error(
        "triple ({}, {}, {}) names a node outside 0..{num_nodes}",
        triple.head, triple.relation, triple.tail
    )]
    NodeOutOfRange {
        /// The offending triple.
        triple: Triple,
        /// The number of nodes given.
        num_nodes: u32,
    },
    /// A relation is not below the number of relations.
    #[error(
        "triple ({}, {}, {}) names a relation outside 0..{num_relations}",
        triple.head, triple.relation, triple.tail
    )]
    RelationOutOfRange {
        /// The offending triple.
        triple: Triple,
        /// The number of relations given.
        num_relations: u32,
    },
    /// More triples than 32-bit offsets can address once each is seen from both ends.
    #[error("{found} triples; at most {} (2^30) can be indexed", MAX_TRIPLES)]
    TooManyTriples {
        /// The number of triples given.
        found: usize,
    },
    /// More relations than type ids can hold once inverses are added.
    #[error("{found} relations; at most {} (2^30) can be indexed", MAX_RELATIONS)]
    TooManyRelations {
        /// The number of relations given.
        found: u32,
    },
    /// The lists of parallel triples outgrew their 31-bit index.
    #[error("too many parallel triples between the same nodes: their lists need more than 2^31 entries")]
    TooManyParallel,
}

/// The most triples one graph can hold.
pub const MAX_TRIPLES: usize = 1 << 30;
/// The most raw relations one graph can hold.
pub const MAX_RELATIONS: u32 = 1 << 30;

/// A graph indexed for walking, for known answers and for hiding edges.
#[derive(Debug, Clone)]
pub struct Topology {
    num_relations: u32,
    edges: Vec<u64>,     // (triples): head << 32 | tail, sorted within each relation
    offsets: Vec<u32>,   // (R + 1): the range of each relation in `edges`
    by_tail: Vec<u32>,   // (triples): ids sorted by (relation, tail, head)
    relations: Vec<u32>, // relations that have a triple, ascending
    adjacency: Adjacency,
    patch: Option<Box<patch::Patch>>, // if there is one, edges, by_tail and adjacency are its base's
}

impl Topology {
    /// Indexes `triples`; duplicates are dropped.
    ///
    /// # Errors
    /// An id out of range, or a graph too large for 32-bit offsets.
    pub fn build(num_nodes: u32, num_relations: u32, triples: Vec<Triple>) -> Result<Topology, TopologyError> {
        if triples.len() > MAX_TRIPLES {
            return Err(TopologyError::TooManyTriples { found: triples.len() });
        }
        if num_relations > MAX_RELATIONS {
            return Err(TopologyError::TooManyRelations { found: num_relations });
        }
        for &triple in &triples {
            if triple.head >= num_nodes || triple.tail >= num_nodes {
                return Err(TopologyError::NodeOutOfRange { triple, num_nodes });
            }
            if triple.relation >= num_relations {
                return Err(TopologyError::RelationOutOfRange { triple, num_relations });
            }
        }
        let (edges, offsets) = sort_edges(num_relations, triples);
        let by_tail = sort_by_tail(&edges, &offsets);
        let adjacency = Adjacency::build(num_nodes, &edges, &offsets)?;
        let relations = (0..num_relations).filter(|&r| offsets[r as usize] < offsets[r as usize + 1]).collect();
        Ok(Topology { num_relations, edges, offsets, by_tail, relations, adjacency, patch: None })
    }

    /// Number of nodes, those without an edge included.
    pub fn num_nodes(&self) -> u32 {
        self.patch.as_ref().map_or(self.adjacency.nodes.len() as u32, |p| p.num_nodes)
    }
    /// Number `R` of raw relations.
    #[inline]
    pub fn num_relations(&self) -> u32 {
        self.num_relations
    }
    /// Number `2R` of relation types.
    pub fn num_types(&self) -> u32 {
        2 * self.num_relations
    }
    /// The reserved type `2R`.
    #[inline]
    pub fn no_type(&self) -> TypeId {
        2 * self.num_relations
    }
    /// The type of the same edges walked the other way. "No type" and unknown ids are their own inverse.
    #[inline]
    pub fn inverse(&self, t: TypeId) -> TypeId {
        if t < self.num_relations {
            t + self.num_relations
        } else if t < self.num_types() {
            t - self.num_relations
        } else {
            t
        }
    }
    /// Number of distinct triples.
    pub fn num_triples(&self) -> usize {
        self.offsets[self.num_relations as usize] as usize
    }

    /// All triples in (relation, head, tail) order; the position is the triple's id.
    pub fn triples(&self) -> impl ExactSizeIterator<Item = Triple> + '_ {
        let mut relation = 0;
        (0..self.num_triples()).map(move |id| {
            while self.offsets[relation + 1] as usize <= id {
                relation += 1;
            }
            self.nth(relation as u32, id)
        })
    }

    /// The triple with this id.
    ///
    /// # Panics
    /// If `id` is not below [`Topology::num_triples`].
    pub fn triple(&self, id: u32) -> Triple {
        let relation = self.offsets.partition_point(|&start| start <= id) - 1;
        self.nth(relation as u32, id as usize)
    }

    /// The triple with this id, which belongs to this relation.
    #[inline]
    fn nth(&self, relation: u32, id: usize) -> Triple {
        match &self.patch {
            None => unpack(self.edges[id], relation),
            Some(patch) => {
                let (head, tail) = patch.nth(relation, id as u32 - self.offsets[relation as usize]);
                Triple { head, relation, tail }
            }
        }
    }

    /// The id of a triple, if the graph has it.
    pub fn triple_id(&self, t: Triple) -> Option<u32> {
        let range = self.relation_range(t.relation);
        if let Some(patch) = &self.patch {
            return patch.position(t).map(|position| range.start as u32 + position);
        }
        let found = self.edges[range.clone()].binary_search(&pack(t.head, t.tail)).ok()?;
        Some((range.start + found) as u32)
    }

    /// Known answers of (head, type, ?) for raw and inverse types, sorted and distinct; none for "no type" or unknown ids.
    pub fn answers(&self, head: NodeId, t: TypeId) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        let inverse = t >= self.num_relations;
        let relation = if inverse { t - self.num_relations } else { t };
        if let Some(patch) = &self.patch {
            let answers = if t < self.num_types() { patch.answers(head, relation, inverse) } else { Vec::new() };
            return Either::Right(answers.into_iter());
        }
        let range = self.relation_range(relation);
        let (low, high) = if inverse {
            let ids = &self.by_tail[range.clone()];
            let tail = |&id: &u32| self.edges[id as usize] as u32;
            (ids.partition_point(|id| tail(id) < head), ids.partition_point(|id| tail(id) <= head))
        } else {
            let edges = &self.edges[range.clone()];
            let source = |&edge: &u64| (edge >> 32) as u32;
            (edges.partition_point(|e| source(e) < head), edges.partition_point(|e| source(e) <= head))
        };
        Either::Left((range.start + low..range.start + high).map(move |i| {
            if inverse { (self.edges[self.by_tail[i] as usize] >> 32) as u32 } else { self.edges[i] as u32 }
        }))
    }

    /// The raw relations `r` with `(head, r, tail)` in the graph, ascending.
    pub fn relations_between(&self, head: NodeId, tail: NodeId) -> Vec<u32> {
        let Some(local) = self.find_slot(head, tail) else {
            return Vec::new();
        };
        let step = self.slot(self.record(head).first + local).step();
        let half_steps = self.half_steps(&step).to_vec();
        half_steps.into_iter().filter(|s| s & 1 == 0).map(|s| s / 2).collect()
    }

    /// Whether `(head, t, tail)` is an edge of the graph with its inverses.
    pub fn contains(&self, head: NodeId, t: TypeId, tail: NodeId) -> bool {
        let triple = if t < self.num_relations {
            Triple { head, relation: t, tail }
        } else {
            Triple { head: tail, relation: t - self.num_relations, tail: head }
        };
        self.triple_id(triple).is_some()
    }

    /// Number of distinct neighbours, the node itself excluded; 0 for an unknown node.
    pub fn degree(&self, v: NodeId) -> u32 {
        self.record(v).degree()
    }

    /// The distinct neighbours in increasing order, the node itself excluded.
    pub fn neighbours(&self, v: NodeId) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        let record = self.record(v);
        (record.first..record.first + record.degree()).map(|at| self.slot(at).neighbour())
    }

    /// The triples that touch a node, each once, grouped by neighbour; none for an unknown node.
    pub fn triples_at(&self, v: NodeId) -> Vec<Triple> {
        let record = self.record(v);
        let mut triples = Vec::new();
        for at in record.first..record.first + record.degree() + record.loops() {
            let slot = self.slot(at);
            let w = slot.neighbour();
            triples.extend(self.half_steps(&slot.step()).iter().map(|s| match s & 1 {
                0 => Triple { head: v, relation: s / 2, tail: w },
                _ => Triple { head: w, relation: s / 2, tail: v },
            }));
        }
        triples
    }

    /// Bytes held by the index.
    pub fn memory_bytes(&self) -> usize {
        fn bytes<T>(v: &Vec<T>) -> usize {
            v.capacity() * size_of::<T>()
        }
        self.patch.as_ref().map_or(0, |p| p.memory_bytes())
            + bytes(&self.edges)
            + bytes(&self.offsets)
            + bytes(&self.by_tail)
            + bytes(&self.relations)
            + bytes(&self.adjacency.nodes)
            + bytes(&self.adjacency.slots)
            + bytes(&self.adjacency.parallel)
    }

    // What follows is for those who walk or hide edges.

    /// The relations that have at least one triple, ascending.
    pub fn relations_in_use(&self) -> &[u32] {
        &self.relations
    }

    /// The ids of a relation's triples; empty for an unknown relation.
    pub fn relation_range(&self, relation: u32) -> std::ops::Range<usize> {
        if relation < self.num_relations {
            self.offsets[relation as usize] as usize..self.offsets[relation as usize + 1] as usize
        } else {
            0..0
        }
    }

    /// Head and tail of the triple with this id.
    ///
    /// # Panics
    /// If `id` is not below [`Topology::num_triples`].
    #[inline]
    pub fn ends(&self, id: usize) -> (NodeId, NodeId) {
        if self.patch.is_some() {
            let Triple { head, tail, .. } = self.triple(id as u32);
            return (head, tail);
        }
        ((self.edges[id] >> 32) as u32, self.edges[id] as u32)
    }

    /// The node's record; that of an isolated node if the node is unknown.
    #[inline]
    pub fn record(&self, v: NodeId) -> NodeRecord {
        match &self.patch {
            None => self.adjacency.nodes.get(v as usize).copied().unwrap_or_default(),
            Some(patch) => patch.record(v),
        }
    }

    /// A slot by its index, as the records say.
    ///
    /// # Panics
    /// If no record has such a slot.
    #[inline]
    pub fn slot(&self, at: u32) -> Slot {
        match &self.patch {
            None => self.adjacency.slots[at as usize],
            Some(patch) => patch.slot(at),
        }
    }

    /// The bare arrays, for walking at full speed; none of a patched graph, which has to be asked.
    #[inline]
    pub fn arrays(&self) -> Option<Arrays<'_>> {
        let Adjacency { nodes, slots, parallel } = &self.adjacency;
        self.patch.is_none().then_some(Arrays { records: nodes, slots, parallel })
    }

    /// The type of a half-step.
    #[inline]
    pub fn type_of(&self, half_step: u32) -> TypeId {
        (half_step >> 1) + (self.num_relations & (half_step & 1).wrapping_neg())
    }

    /// Position among the node's own slots of the one that leads to `w`; the self-loop's slot, at the degree, when `w` is `v`.
    pub fn find_slot(&self, v: NodeId, w: NodeId) -> Option<u32> {
        let record = self.record(v);
        if v == w {
            return (record.loops() == 1).then_some(record.degree());
        }
        let (mut low, mut high) = (0, record.degree());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.slot(record.first + middle).neighbour().cmp(&w) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The half-steps of a slot, ascending.
    ///
    /// # Panics
    /// If `step` does not come from a slot of this topology.
    #[inline]
    pub fn half_steps<'a>(&'a self, step: &'a Step) -> &'a [u32] {
        match &self.patch {
            None => half_steps(&self.adjacency.parallel, step),
            Some(patch) => patch.half_steps(step),
        }
    }
}

/// One of two ways to iterate.
enum Either<A, B> {
    Left(A),
    Right(B),
}

impl<T, A: ExactSizeIterator<Item = T>, B: ExactSizeIterator<Item = T>> Iterator for Either<A, B> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        match self {
            Either::Left(a) => a.next(),
            Either::Right(b) => b.next(),
        }
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Either::Left(a) => a.size_hint(),
            Either::Right(b) => b.size_hint(),
        }
    }
}

impl<T, A: ExactSizeIterator<Item = T>, B: ExactSizeIterator<Item = T>> ExactSizeIterator for Either<A, B> {}

#[inline]
fn pack(head: NodeId, tail: NodeId) -> u64 {
    u64::from(head) << 32 | u64::from(tail)
}

#[inline]
fn unpack(edge: u64, relation: u32) -> Triple {
    Triple { head: (edge >> 32) as u32, relation, tail: edge as u32 }
}

/// Scatters by relation, then sorts each relation's packed pairs and drops repeats.
fn sort_edges(num_relations: u32, triples: Vec<Triple>) -> (Vec<u64>, Vec<u32>) {
    let mut ends = vec![0u32; num_relations as usize + 1];
    for t in &triples {
        ends[t.relation as usize + 1] += 1;
    }
    for r in 0..num_relations as usize {
        ends[r + 1] += ends[r];
    }
    let mut edges = huge::filled(0u64, triples.len());
    // `ends[r]` moves from the start of relation r to its end, which is where r + 1 started.
    for t in &triples {
        let at = &mut ends[t.relation as usize];
        edges[*at as usize] = pack(t.head, t.tail);
        *at += 1;
    }
    drop(triples);
    let mut offsets = vec![0u32; num_relations as usize + 1];
    let (mut start, mut kept) = (0, 0);
    for r in 0..num_relations as usize {
        let end = ends[r] as usize;
        edges[start..end].sort_unstable();
        let first = kept;
        for i in start..end {
            let edge = edges[i];
            if kept == first || edges[kept - 1] != edge {
                edges[kept] = edge;
                kept += 1;
            }
        }
        offsets[r + 1] = kept as u32;
        start = end;
    }
    edges.truncate(kept);
    edges.shrink_to_fit();
    (edges, offsets)
}

/// Ids in (relation, tail, head) order: within a relation ids already follow (head, tail), so (tail, id) is that order.
fn sort_by_tail(edges: &[u64], offsets: &[u32]) -> Vec<u32> {
    let mut by_tail = Vec::with_capacity(edges.len());
    let mut keys = Vec::new();
    for range in offsets.windows(2) {
        keys.clear();
        keys.extend((range[0]..range[1]).map(|id| pack(edges[id as usize] as u32, id)));
        keys.sort_unstable();
        by_tail.extend(keys.iter().map(|&key| key as u32));
    }
    by_tail
}
