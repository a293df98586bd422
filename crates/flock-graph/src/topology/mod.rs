//! The index of a graph, by ids and without names: which triples it has, and where a walk can go
//! from each node.
//!
//! It has two views of the same triples. Both are built by sorting and never change. Edits are
//! stored beside them, see [`Topology::edited`].
//!
//! - **Edges**: `(head, tail)` packed in a `u64`, sorted by (relation, head, tail). The position of
//!   a triple is its id. A permutation of `u32`, sorted by (relation, tail, head), serves inverse
//!   types. This takes 12 bytes per triple.
//! - **Adjacency**: a [`NodeRecord`] of 8 bytes per node and a [`Slot`] of 8 bytes per (node,
//!   distinct neighbour). A slot names the neighbour. If a single triple joins the two, the slot
//!   also holds the step itself. Otherwise it points into a list of steps. This takes 16 bytes per
//!   triple, and up to 20 where triples are parallel.
//!
//! A **half-step** is one raw triple seen from one of its ends. It is the type `s` of the edge that
//! leaves this end in the graph with inverses: `r` at the head and `r + R` at the tail. For a move
//! away from this end the triple has two labels, `(s, dir 0)` and `(inverse(s), dir 1)`. So a
//! uniform half-step and a fair coin give a uniform label (docs/reference/model.md, section 1). A
//! self-loop is stored as one half-step, in a slot of its own after the neighbours, and the coin
//! picks one of its two types. Half-steps are stored as `2r` and `2r + 1`, so that the coin is an
//! exclusive or. With `r + R` it would cost the walk a branch.

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
/// Id of a relation type: `0..R` are the raw relations `r`, `R..2R` their inverses `r + R`, and
/// `2R` is "no type".
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
    /// More triples than 32-bit offsets can address. Each triple counts twice, once from each end.
    #[error("{found} triples; at most {} (2^30) can be indexed", MAX_TRIPLES)]
    TooManyTriples {
        /// The number of triples given.
        found: usize,
    },
    /// More relations than type ids can hold together with their inverses.
    #[error("{found} relations; at most {} (2^30) can be indexed", MAX_RELATIONS)]
    TooManyRelations {
        /// The number of relations given.
        found: u32,
    },
    /// The lists of parallel triples need more than 31 bits of index.
    #[error("too many parallel triples between the same nodes: their lists need more than 2^31 entries")]
    TooManyParallel,
}

/// Greatest number of triples in one graph.
pub const MAX_TRIPLES: usize = 1 << 30;
/// Greatest number of raw relations in one graph.
pub const MAX_RELATIONS: u32 = 1 << 30;

/// A graph indexed for walking, for finding known answers and for hiding edges.
#[derive(Debug, Clone)]
pub struct Topology {
    num_relations: u32,
    edges: Vec<u64>,     // (triples): head << 32 | tail, sorted within each relation
    offsets: Vec<u32>,   // (R + 1): the range of each relation in `edges`
    by_tail: Vec<u32>,   // (triples): ids sorted by (relation, tail, head)
    relations: Vec<u32>, // relations that have a triple, ascending
    adjacency: Adjacency,
    patch: Option<Box<patch::Patch>>, // if set, `edges`, `by_tail` and `adjacency` are empty and the patch's base has them
}

impl Topology {
    /// Indexes `triples` and drops duplicates.
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

    /// Returns the number of nodes, including those without an edge.
    pub fn num_nodes(&self) -> u32 {
        self.patch.as_ref().map_or(self.adjacency.nodes.len() as u32, |p| p.num_nodes)
    }
    /// Returns the number `R` of raw relations.
    #[inline]
    pub fn num_relations(&self) -> u32 {
        self.num_relations
    }
    /// Returns the number `2R` of relation types.
    pub fn num_types(&self) -> u32 {
        2 * self.num_relations
    }
    /// Returns the reserved type `2R`, which means "no type".
    #[inline]
    pub fn no_type(&self) -> TypeId {
        2 * self.num_relations
    }
    /// Returns the type of the same edges walked the other way. "No type" and unknown ids are their
    /// own inverse.
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
    /// Returns the number of distinct triples.
    pub fn num_triples(&self) -> usize {
        self.offsets[self.num_relations as usize] as usize
    }

    /// Lists all triples in (relation, head, tail) order. The position of a triple is its id.
    pub fn triples(&self) -> impl ExactSizeIterator<Item = Triple> + '_ {
        let mut relation = 0;
        (0..self.num_triples()).map(move |id| {
            while self.offsets[relation + 1] as usize <= id {
                relation += 1;
            }
            self.nth(relation as u32, id)
        })
    }

    /// Returns the triple with this id.
    ///
    /// # Panics
    /// If `id` is not below [`Topology::num_triples`].
    pub fn triple(&self, id: u32) -> Triple {
        let relation = self.offsets.partition_point(|&start| start <= id) - 1;
        self.nth(relation as u32, id as usize)
    }

    /// Returns the triple with this id, which belongs to this relation.
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

    /// Returns the id of a triple, if the graph has it.
    pub fn triple_id(&self, t: Triple) -> Option<u32> {
        let range = self.relation_range(t.relation);
        if let Some(patch) = &self.patch {
            return patch.position(t).map(|position| range.start as u32 + position);
        }
        let found = self.edges[range.clone()].binary_search(&pack(t.head, t.tail)).ok()?;
        Some((range.start + found) as u32)
    }

    /// Lists the known answers of (head, type, ?), sorted and distinct. The type may be raw or
    /// inverse. "No type" and unknown ids have no answers.
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

    /// Lists the raw relations `r` with `(head, r, tail)` in the graph, ascending.
    pub fn relations_between(&self, head: NodeId, tail: NodeId) -> Vec<u32> {
        let Some(local) = self.find_slot(head, tail) else {
            return Vec::new();
        };
        let step = self.slot(self.record(head).first + local).step();
        let half_steps = self.half_steps(&step).to_vec();
        half_steps.into_iter().filter(|s| s & 1 == 0).map(|s| s / 2).collect()
    }

    /// Tells whether `(head, t, tail)` is an edge of the graph with inverses.
    pub fn contains(&self, head: NodeId, t: TypeId, tail: NodeId) -> bool {
        let triple = if t < self.num_relations {
            Triple { head, relation: t, tail }
        } else {
            Triple { head: tail, relation: t - self.num_relations, tail: head }
        };
        self.triple_id(triple).is_some()
    }

    /// Returns the number of distinct neighbours, not counting the node itself. It is 0 for an
    /// unknown node.
    pub fn degree(&self, v: NodeId) -> u32 {
        self.record(v).degree()
    }

    /// Lists the distinct neighbours in increasing order, without the node itself.
    pub fn neighbours(&self, v: NodeId) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        let record = self.record(v);
        (record.first..record.first + record.degree()).map(|at| self.slot(at).neighbour())
    }

    /// Lists the triples that touch a node, each once, grouped by neighbour. An unknown node has
    /// none.
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

    /// Returns the memory of the index in bytes.
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

    // The methods below serve code that walks or hides edges.

    /// Lists the relations that have at least one triple, ascending.
    pub fn relations_in_use(&self) -> &[u32] {
        &self.relations
    }

    /// Returns the ids of a relation's triples. The range is empty for an unknown relation.
    pub fn relation_range(&self, relation: u32) -> std::ops::Range<usize> {
        if relation < self.num_relations {
            self.offsets[relation as usize] as usize..self.offsets[relation as usize + 1] as usize
        } else {
            0..0
        }
    }

    /// Returns the head and tail of the triple with this id.
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

    /// Returns the record of a node. An unknown node has the record of an isolated one.
    #[inline]
    pub fn record(&self, v: NodeId) -> NodeRecord {
        match &self.patch {
            None => self.adjacency.nodes.get(v as usize).copied().unwrap_or_default(),
            Some(patch) => patch.record(v),
        }
    }

    /// Returns a slot by its index. Records say which slots a node has.
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

    /// Returns the bare arrays, for walking at full speed. A patched graph has none: use
    /// [`Topology::record`], [`Topology::slot`] and [`Topology::half_steps`] there.
    #[inline]
    pub fn arrays(&self) -> Option<Arrays<'_>> {
        let Adjacency { nodes, slots, parallel } = &self.adjacency;
        self.patch.is_none().then_some(Arrays { records: nodes, slots, parallel })
    }

    /// Returns the type of a half-step.
    #[inline]
    pub fn type_of(&self, half_step: u32) -> TypeId {
        (half_step >> 1) + (self.num_relations & (half_step & 1).wrapping_neg())
    }

    /// Finds the slot of `v` that leads to `w` and returns its position among the slots of `v`. If
    /// `w` is `v`, that is the slot of the self-loop, whose position is the degree.
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

    /// Lists the half-steps of a slot, ascending.
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

/// One of two iterators over the same items.
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

/// Groups the triples by relation, sorts the packed pairs of each relation and drops duplicates.
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

/// Lists ids in (relation, tail, head) order. Within a relation ids already follow (head, tail), so
/// sorting by (tail, id) gives this order.
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
