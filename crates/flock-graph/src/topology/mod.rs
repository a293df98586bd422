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

mod huge;
pub mod mask;
mod neighbourhood;
mod patch;

pub use patch::Edit;

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

/// Set in a slot's step word when the word is an index into the lists of parallel half-steps.
const PARALLEL: u32 = 1 << 31;
/// Set in a node's second word when a self-loop slot follows its neighbours.
const HAS_LOOP: u32 = 1 << 31;
/// Stands for the node itself while half-steps are sorted, so that loops come last. Never an id: ids are below a `u32` count.
const LOOP_LAST: u32 = u32::MAX;

/// Where a node's slots are and how many neighbours it has.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct NodeRecord {
    first: u32,
    degree_and_loop: u32,
}

impl NodeRecord {
    /// Index of the node's first slot.
    #[inline]
    pub fn first(self) -> u32 {
        self.first
    }
    /// Number of distinct neighbours, the node itself excluded.
    #[inline]
    pub fn degree(self) -> u32 {
        self.degree_and_loop & !HAS_LOOP
    }
    /// 1 if a self-loop slot stands behind the neighbours' slots, else 0.
    #[inline]
    pub fn loops(self) -> u32 {
        self.degree_and_loop >> 31
    }
}

/// A distinct neighbour (high half, so that slots sort by neighbour) and the step to it (low half).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Slot(u64);

impl Slot {
    #[inline]
    fn new(neighbour: NodeId, step: u32) -> Slot {
        Slot(u64::from(neighbour) << 32 | u64::from(step))
    }
    /// The node this slot leads to; the slot's own node for a self-loop.
    #[inline]
    pub fn neighbour(self) -> NodeId {
        (self.0 >> 32) as u32
    }
    /// The half-step or where its list is.
    #[inline]
    pub fn step(self) -> Step {
        Step(self.0 as u32)
    }
}

/// What a slot says about the half-steps to its neighbour: the only one, or where their list is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Step(u32);

impl Step {
    /// The only half-step, or `None` if there are several.
    #[inline]
    pub fn single(self) -> Option<u32> {
        (self.0 & PARALLEL == 0).then_some(self.0)
    }
    /// Where in `Topology::parallel` the list is, without a branch, for those who ask for it ahead of time; 0 if there is none.
    #[inline]
    pub fn list(self) -> u32 {
        self.0 & !PARALLEL & (self.0 as i32 >> 31) as u32
    }
}

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

/// Where a walk can go from each node.
#[derive(Debug, Clone)]
struct Adjacency {
    nodes: Vec<NodeRecord>, // (V)
    slots: Vec<Slot>,       // grouped by node, sorted by neighbour, self-loop last
    parallel: Vec<u32>,     // lists [count, s, s, ...] of the slots with several half-steps
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

/// The arrays of a graph's index.
#[derive(Copy, Clone, Debug)]
pub struct Arrays<'a> {
    /// All node records.
    pub records: &'a [NodeRecord],
    /// All slots, grouped by node as the records say.
    pub slots: &'a [Slot],
    /// The lists of parallel half-steps that [`Step::list`] points into: each is its length, then the half-steps ascending.
    pub parallel: &'a [u32],
}

impl<'a> Arrays<'a> {
    /// As [`Topology::half_steps`].
    #[inline]
    pub fn half_steps(&self, step: &'a Step) -> &'a [u32] {
        half_steps(self.parallel, step)
    }
}

#[inline]
fn half_steps<'a>(parallel: &'a [u32], step: &'a Step) -> &'a [u32] {
    if step.single().is_some() {
        return std::slice::from_ref(&step.0);
    }
    let list = step.list() as usize;
    let count = parallel[list] as usize;
    &parallel[list + 1..list + 1 + count]
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

impl Adjacency {
    /// Scatters the half-steps to their nodes, sorts them there, and folds parallel ones into one slot, all in one buffer.
    fn build(num_nodes: u32, edges: &[u64], offsets: &[u32]) -> Result<Adjacency, TopologyError> {
        let mut ends = vec![0u32; num_nodes as usize + 1];
        for &edge in edges {
            let (head, tail) = ((edge >> 32) as usize, edge as u32 as usize);
            ends[head + 1] += 1;
            ends[tail + 1] += u32::from(head != tail);
        }
        for v in 0..num_nodes as usize {
            ends[v + 1] += ends[v];
        }
        let mut slots = huge::filled(Slot(0), ends[num_nodes as usize] as usize);
        let mut put = |v: u32, slot: Slot| {
            let at = &mut ends[v as usize];
            slots[*at as usize] = slot;
            *at += 1;
        };
        for (relation, range) in offsets.windows(2).enumerate() {
            let relation = relation as u32;
            for &edge in &edges[range[0] as usize..range[1] as usize] {
                let Triple { head, tail, .. } = unpack(edge, relation);
                if head == tail {
                    put(head, Slot::new(LOOP_LAST, 2 * relation));
                } else {
                    put(head, Slot::new(tail, 2 * relation));
                    put(tail, Slot::new(head, 2 * relation + 1));
                }
            }
        }

        let mut nodes = huge::filled(NodeRecord::default(), num_nodes as usize);
        let mut parallel = Vec::new();
        let (mut start, mut kept) = (0, 0);
        for v in 0..num_nodes {
            let end = ends[v as usize] as usize;
            slots[start..end].sort_unstable();
            let first = kept;
            let mut has_loop = 0;
            while start < end {
                let neighbour = slots[start].neighbour();
                let run = slots[start..end].iter().take_while(|s| s.neighbour() == neighbour).count();
                let step = if run == 1 {
                    slots[start].0 as u32
                } else {
                    let at = parallel.len();
                    if at + run >= PARALLEL as usize {
                        return Err(TopologyError::TooManyParallel);
                    }
                    parallel.push(run as u32);
                    parallel.extend(slots[start..start + run].iter().map(|s| s.0 as u32));
                    at as u32 | PARALLEL
                };
                let neighbour = if neighbour == LOOP_LAST {
                    has_loop = HAS_LOOP;
                    v
                } else {
                    neighbour
                };
                slots[kept] = Slot::new(neighbour, step);
                kept += 1;
                start += run;
            }
            let degree = (kept - first) as u32 - u32::from(has_loop != 0);
            nodes[v as usize] = NodeRecord { first: first as u32, degree_and_loop: degree | has_loop };
        }
        slots.truncate(kept);
        slots.shrink_to_fit();
        parallel.shrink_to_fit();
        Ok(Adjacency { nodes, slots, parallel })
    }
}
