//! Adds edges to a graph and removes them, without rebuilding its index.
//!
//! A patched [`Topology`] shares the index it was made from. Beside it, it stores a new row of
//! slots for each node that an edit touches. The indices of these rows and lists continue where
//! those of the base end, so a walk reads them like any other. Triples are numbered as if all were
//! sorted again: the n-th triple of a relation is found from the positions that were removed and
//! those that were added. A patched graph gives the same answers and the same walks as a rebuilt
//! graph, bit for bit.
//!
//! Making a patch takes time proportional to the degrees of the nodes it touches, and every edit
//! makes a new patch. [`Topology::flattened`] rebuilds the index of a graph with many edits.

use super::adjacency::{Adjacency, HAS_LOOP, LOOP_LAST, NodeRecord, PARALLEL, Slot, Step};
use super::mask::{Mask, nth_kept};
use super::{NodeId, Topology, TopologyError, Triple, TypeId, pack};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A change to a graph.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The triple.
    pub triple: Triple,
    /// Whether the graph has the triple after the edit.
    pub present: bool,
}

/// The differences from the base.
#[derive(Debug, Clone)]
pub(super) struct Patch {
    pub base: Arc<Topology>, // has no patch itself
    pub num_nodes: u32,
    rows: HashMap<NodeId, NodeRecord, RandomState>, // touched nodes
    slots: Vec<Slot>,                               // indices continue after the base's
    parallel: Vec<u32>,                             // likewise
    removed: Vec<Triple>,
    gone: Mask,         // the same, hidden from the base
    added: Vec<Triple>, // by (relation, head, tail)
    places: Vec<u32>,   // positions of `added` in their relation, with all triples sorted
}

fn by_relation(t: &Triple) -> (u32, NodeId, NodeId) {
    (t.relation, t.head, t.tail)
}

impl Topology {
    /// Returns the graph after some edits, applied in order. The graph itself does not change.
    /// Edits may name new nodes and relations. `num_nodes` and `num_relations` count those of the
    /// edited graph. The old numbers apply if they are larger.
    ///
    /// # Errors
    /// An id out of range, or a graph too large for 32-bit offsets.
    pub fn edited(
        self: &Arc<Topology>,
        num_nodes: u32,
        num_relations: u32,
        edits: &[Edit],
    ) -> Result<Topology, TopologyError> {
        let num_nodes = num_nodes.max(self.num_nodes());
        let num_relations = num_relations.max(self.num_relations);
        let (base, mut changes) = match &self.patch {
            None => (self.clone(), BTreeMap::new()),
            Some(patch) => {
                let removed = patch.removed.iter().map(|t| (*t, false));
                (patch.base.clone(), removed.chain(patch.added.iter().map(|t| (*t, true))).collect())
            }
        };
        for &Edit { triple, present } in edits {
            if triple.head >= num_nodes || triple.tail >= num_nodes {
                return Err(TopologyError::NodeOutOfRange { triple, num_nodes });
            }
            if triple.relation >= num_relations {
                return Err(TopologyError::RelationOutOfRange { triple, num_relations });
            }
            changes.insert(triple, present);
        }
        changes.retain(|triple, present| base.triple_id(*triple).is_some() != *present);
        Patch::build(base, num_nodes, num_relations, &changes)
    }

    /// Returns how many triples differ from the index that this graph was first built with.
    pub fn num_edits(&self) -> usize {
        self.patch.as_ref().map_or(0, |p| p.added.len() + p.removed.len())
    }

    /// Returns how many slots the patch stores beside the index. The next edit takes time
    /// proportional to this number.
    pub fn patch_slots(&self) -> usize {
        self.patch.as_ref().map_or(0, |p| p.slots.len())
    }

    /// Returns the same graph with an index of its own.
    ///
    /// # Errors
    /// A graph too large for 32-bit offsets.
    pub fn flattened(&self) -> Result<Topology, TopologyError> {
        Topology::build(self.num_nodes(), self.num_relations, self.triples().collect())
    }
}

impl Patch {
    fn build(
        base: Arc<Topology>,
        num_nodes: u32,
        num_relations: u32,
        changes: &BTreeMap<Triple, bool>,
    ) -> Result<Topology, TopologyError> {
        let list = |wanted: bool| changes.iter().filter(move |(_, present)| **present == wanted).map(|(t, _)| *t);
        let removed: Vec<Triple> = list(false).collect();
        let mut added: Vec<Triple> = list(true).collect();
        added.sort_unstable_by_key(by_relation);
        let total = base.num_triples() - removed.len() + added.len();
        if total > super::MAX_TRIPLES {
            return Err(TopologyError::TooManyTriples { found: total });
        }
        if num_relations > super::MAX_RELATIONS {
            return Err(TopologyError::TooManyRelations { found: num_relations });
        }
        let gone = Mask::new(&base, &removed);

        let mut places = Vec::with_capacity(added.len());
        for in_relation in added.chunk_by(|a, b| a.relation == b.relation) {
            let relation = in_relation[0].relation;
            let edges = &base.edges[base.relation_range(relation)];
            let hidden = gone.hidden_in_relation(relation);
            places.extend((0u32..).zip(in_relation).map(|(i, t)| {
                let before = edges.partition_point(|e| *e < pack(t.head, t.tail)) as u32;
                i + before - hidden.partition_point(|h| *h < before) as u32
            }));
        }
        let mut offsets = Vec::with_capacity(num_relations as usize + 1);
        let (mut total, mut rest) = (0u32, &added[..]);
        for relation in 0..num_relations {
            offsets.push(total);
            let (here, after) = rest.split_at(rest.partition_point(|t| t.relation <= relation));
            let kept = base.relation_range(relation).len() - gone.hidden_in_relation(relation).len();
            total += (kept + here.len()) as u32;
            rest = after;
        }
        offsets.push(total);
        let relations = (0..num_relations).filter(|&r| offsets[r as usize] < offsets[r as usize + 1]).collect();

        let mut patch = Patch {
            base,
            num_nodes,
            rows: HashMap::default(),
            slots: Vec::new(),
            parallel: Vec::new(),
            removed,
            gone,
            added,
            places,
        };
        patch.build_rows(changes)?;
        Ok(Topology {
            num_relations,
            edges: Vec::new(),
            offsets,
            by_tail: Vec::new(),
            relations,
            adjacency: Adjacency { nodes: Vec::new(), slots: Vec::new(), parallel: Vec::new() },
            patch: Some(Box::new(patch)),
        })
    }

    /// Makes a row for each node that a change touches.
    fn build_rows(&mut self, changes: &BTreeMap<Triple, bool>) -> Result<(), TopologyError> {
        // (node, neighbour with loops last, half-step), as the index sorts them.
        let mut halves: Vec<(NodeId, u32, u32, bool)> = Vec::with_capacity(2 * changes.len());
        for (&Triple { head, relation, tail }, &present) in changes {
            if head == tail {
                halves.push((head, LOOP_LAST, 2 * relation, present));
            } else {
                halves.push((head, tail, 2 * relation, present));
                halves.push((tail, head, 2 * relation + 1, present));
            }
        }
        halves.sort_unstable();
        let base = self.base.clone();
        let mut row: Vec<(u32, u32)> = Vec::new();
        for at_node in halves.chunk_by(|a, b| a.0 == b.0) {
            let v = at_node[0].0;
            row.clear();
            let record = base.record(v);
            for i in record.first..record.first + record.degree() + record.loops() {
                let slot = base.slot(i);
                let neighbour = if slot.neighbour() == v { LOOP_LAST } else { slot.neighbour() };
                row.extend(base.half_steps(&slot.step()).iter().map(|s| (neighbour, *s)));
            }
            let removed = |e: &(u32, u32)| at_node.binary_search(&(v, e.0, e.1, false)).is_ok();
            row.retain(|e| !removed(e));
            row.extend(at_node.iter().filter(|h| h.3).map(|h| (h.1, h.2)));
            row.sort_unstable();
            self.push_row(v, &row)?;
        }
        Ok(())
    }

    fn push_row(&mut self, v: NodeId, row: &[(u32, u32)]) -> Result<(), TopologyError> {
        let first = self.base.adjacency.slots.len() + self.slots.len();
        let mut has_loop = 0;
        for run in row.chunk_by(|a, b| a.0 == b.0) {
            let step = match run {
                [(_, step)] => *step,
                _ => {
                    let at = self.base.adjacency.parallel.len() + self.parallel.len();
                    if at + run.len() >= PARALLEL as usize {
                        return Err(TopologyError::TooManyParallel);
                    }
                    self.parallel.push(run.len() as u32);
                    self.parallel.extend(run.iter().map(|e| e.1));
                    at as u32 | PARALLEL
                }
            };
            let neighbour = match run[0].0 {
                LOOP_LAST => {
                    has_loop = HAS_LOOP;
                    v
                }
                neighbour => neighbour,
            };
            self.slots.push(Slot::new(neighbour, step));
        }
        let end = self.base.adjacency.slots.len() + self.slots.len();
        if end > u32::MAX as usize {
            return Err(TopologyError::TooManyTriples { found: end });
        }
        let degree = (end - first) as u32 - u32::from(has_loop != 0);
        self.rows.insert(v, NodeRecord { first: first as u32, degree_and_loop: degree | has_loop });
        Ok(())
    }

    #[inline]
    pub fn record(&self, v: NodeId) -> NodeRecord {
        self.rows.get(&v).copied().unwrap_or_else(|| self.base.record(v))
    }

    #[inline]
    pub fn slot(&self, at: u32) -> Slot {
        let own = (at as usize).wrapping_sub(self.base.adjacency.slots.len());
        self.slots.get(own).copied().unwrap_or_else(|| self.base.adjacency.slots[at as usize])
    }

    #[inline]
    pub fn half_steps<'a>(&'a self, step: &'a Step) -> &'a [u32] {
        if step.single().is_some() {
            return std::slice::from_ref(&step.0);
        }
        match (step.list() as usize).checked_sub(self.base.adjacency.parallel.len()) {
            None => self.base.half_steps(step),
            Some(own) => {
                let count = self.parallel[own] as usize;
                &self.parallel[own + 1..own + 1 + count]
            }
        }
    }

    /// Returns the triples added to a relation, and their positions in it.
    fn added_to(&self, relation: u32) -> (&[Triple], &[u32]) {
        let low = self.added.partition_point(|t| t.relation < relation);
        let high = self.added.partition_point(|t| t.relation <= relation);
        (&self.added[low..high], &self.places[low..high])
    }

    /// Returns the head and tail of the triple at a position of a relation.
    pub fn nth(&self, relation: u32, position: u32) -> (NodeId, NodeId) {
        let (added, places) = self.added_to(relation);
        let before = places.partition_point(|p| *p < position);
        if places.get(before) == Some(&position) {
            return (added[before].head, added[before].tail);
        }
        let kept = nth_kept(self.gone.hidden_in_relation(relation), position - before as u32);
        self.base.ends(self.base.relation_range(relation).start + kept as usize)
    }

    /// Returns the position of a triple in its relation.
    pub fn position(&self, t: Triple) -> Option<u32> {
        let (added, places) = self.added_to(t.relation);
        let before = match added.binary_search_by_key(&by_relation(&t), by_relation) {
            Ok(found) => return Some(places[found]),
            Err(before) => before as u32,
        };
        let id = self.base.triple_id(t)?;
        if self.gone.hides(id) {
            return None;
        }
        let local = id - self.base.relation_range(t.relation).start as u32;
        let hidden = self.gone.hidden_in_relation(t.relation).partition_point(|h| *h < local) as u32;
        Some(local - hidden + before)
    }

    /// Lists the known answers of a raw relation or of its inverse, ascending.
    pub fn answers(&self, head: NodeId, relation: u32, inverse: bool) -> Vec<NodeId> {
        let triple = |other| match inverse {
            false => Triple { head, relation, tail: other },
            true => Triple { head: other, relation, tail: head },
        };
        let mut answers = Vec::new();
        if relation < self.base.num_relations {
            let ty: TypeId = if inverse { relation + self.base.num_relations } else { relation };
            let kept = |a: &NodeId| self.base.triple_id(triple(*a)).is_some_and(|id| !self.gone.hides(id));
            answers.extend(self.base.answers(head, ty).filter(kept));
        }
        let here = |t: &&Triple| if inverse { t.tail == head } else { t.head == head };
        let other = |t: &Triple| if inverse { t.head } else { t.tail };
        answers.extend(self.added_to(relation).0.iter().filter(here).map(other));
        answers.sort_unstable();
        answers
    }

    pub fn memory_bytes(&self) -> usize {
        self.base.memory_bytes()
            + self.slots.capacity() * size_of::<Slot>()
            + self.parallel.capacity() * 4
            + self.rows.capacity() * size_of::<(NodeId, NodeRecord)>()
            + (self.added.capacity() + self.removed.capacity()) * size_of::<Triple>()
    }
}
