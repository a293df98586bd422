//! Hides edges of a [`Topology`] without changing it.
//!
//! Training hides the edges it asks about (docs/reference/model.md, section 8). A node reached only by
//! hidden edges is then no neighbour. For everything that the hidden triples touch, the mask stores
//! the sorted *positions* that are gone: slots of a node, half-steps of a slot, triples of a
//! relation, relations of the graph. A uniform choice among the rest is exact index arithmetic,
//! [`nth_kept`]. So nothing is copied, and a mask costs O(hidden · log), whatever the degrees and
//! the size of the graph.

use super::{NodeId, Topology, Triple};
use std::ops::Range;

/// The hidden edges of one topology. Use a mask only with the topology it was made for.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    triples: Vec<u32>,           // hidden ids, ascending
    in_relation: Vec<u32>,       // the same triples, counted from the start of their relation
    relations: Vec<HiddenGroup>, // touched relations -> `in_relation`
    gone_relations: Vec<u32>,    // positions in `relations_in_use` with no triple left
    nodes: Vec<HiddenNode>,      // touched nodes, ascending
    slots: Vec<u32>,             // per touched node, the slots that are gone
    partial: Vec<HiddenGroup>,   // per touched node, the slots that keep some half-steps -> `steps`
    steps: Vec<u32>,             // positions of hidden half-steps in their slot's list
    filter: Vec<u64>,            // 64 bits per touched node, a power of two: one bit rules out most other nodes
    table: Vec<u64>,             // node << 32 | index in `nodes`, open addressing, a power of two
}

/// A touched relation (its id) or slot of a node, and where its hidden positions are.
#[derive(Debug, Clone, Copy)]
struct HiddenGroup {
    key: u32,
    start: u32,
    end: u32,
}

/// What is hidden at one node.
#[derive(Debug, Clone, Copy)]
pub struct HiddenNode {
    slots: (u32, u32),
    partial: (u32, u32),
    loop_gone: bool,
}

impl HiddenNode {
    /// Returns how many neighbours of the node are gone.
    #[inline]
    pub fn neighbours_gone(&self) -> u32 {
        self.slots.1 - self.slots.0
    }
    /// Returns 1 if the self-loop slot of the node is gone, else 0.
    #[inline]
    pub fn loops_gone(&self) -> u32 {
        u32::from(self.loop_gone)
    }
}

const EMPTY: u64 = u64::MAX;

impl Mask {
    /// Hides `hidden` from `topology`. Repeated triples count once. Triples that the graph does not
    /// have are ignored.
    pub fn new(topology: &Topology, hidden: &[Triple]) -> Mask {
        let mut triples: Vec<u32> = hidden.iter().filter_map(|&t| topology.triple_id(t)).collect();
        triples.sort_unstable();
        triples.dedup();
        let mut mask = Mask::default();
        mask.hide_in_relations(topology, &triples);
        mask.hide_at_nodes(topology, &triples);
        mask.triples = triples;
        mask
    }

    /// Tells whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.triples.is_empty()
    }
    /// Returns the number of distinct hidden triples.
    pub fn len(&self) -> usize {
        self.triples.len()
    }
    /// Tells whether the triple with this id is hidden.
    pub fn hides(&self, id: u32) -> bool {
        self.triples.binary_search(&id).is_ok()
    }

    /// Returns what is hidden at node `v`, if anything.
    #[inline]
    pub fn node(&self, v: NodeId) -> Option<&HiddenNode> {
        let bit = hash(v, 64 * self.filter.len());
        let bits = self.filter.get(bit / 64).copied().unwrap_or(0);
        if bits >> (bit % 64) & 1 == 0 { None } else { self.find(v) }
    }

    fn find(&self, v: NodeId) -> Option<&HiddenNode> {
        let mut at = hash(v, self.table.len());
        while self.table[at] != EMPTY {
            if (self.table[at] >> 32) as u32 == v {
                return Some(&self.nodes[self.table[at] as u32 as usize]);
            }
            at = (at + 1) & (self.table.len() - 1);
        }
        None
    }

    /// Lists the positions, among the node's slots, of the neighbours that are gone.
    #[inline]
    pub fn gone_slots(&self, node: &HiddenNode) -> &[u32] {
        &self.slots[node.slots.0 as usize..node.slots.1 as usize]
    }

    /// Lists the positions of the hidden half-steps of a slot that is not gone.
    #[inline]
    pub fn hidden_steps(&self, node: &HiddenNode, slot: u32) -> &[u32] {
        group(&self.partial[node.partial.0 as usize..node.partial.1 as usize], slot, &self.steps)
    }

    /// Lists the hidden triples of a relation, counted from the relation's first triple.
    pub fn hidden_in_relation(&self, relation: u32) -> &[u32] {
        group(&self.relations, relation, &self.in_relation)
    }

    /// Lists the positions in [`Topology::relations_in_use`] of the relations with every triple
    /// hidden.
    pub fn gone_relations(&self) -> &[u32] {
        &self.gone_relations
    }

    fn hide_in_relations(&mut self, topology: &Topology, triples: &[u32]) {
        let mut rest = triples;
        while let Some(&id) = rest.first() {
            let relation = topology.triple(id).relation;
            let range = topology.relation_range(relation);
            let (here, after) = rest.split_at(rest.partition_point(|&id| (id as usize) < range.end));
            let start = self.in_relation.len() as u32;
            self.in_relation.extend(here.iter().map(|&id| id - range.start as u32));
            self.relations.push(HiddenGroup { key: relation, start, end: self.in_relation.len() as u32 });
            if here.len() == range.len() {
                let position = topology.relations_in_use().partition_point(|&r| r < relation);
                self.gone_relations.push(position as u32);
            }
            rest = after;
        }
    }

    fn hide_at_nodes(&mut self, topology: &Topology, triples: &[u32]) {
        let mut half_steps = Vec::with_capacity(2 * triples.len()); // (node, slot, position in the slot's list)
        for &id in triples {
            let Triple { head, relation, tail } = topology.triple(id);
            half_steps.extend(locate(topology, head, tail, 2 * relation));
            if head != tail {
                half_steps.extend(locate(topology, tail, head, 2 * relation + 1));
            }
        }
        half_steps.sort_unstable();

        let mut ids = Vec::new();
        for at_node in half_steps.chunk_by(|a, b| a.0 == b.0) {
            let v = at_node[0].0;
            let record = topology.record(v);
            let (slots, partial) = (self.slots.len() as u32, self.partial.len() as u32);
            let mut loop_gone = false;
            for in_slot in at_node.chunk_by(|a, b| a.1 == b.1) {
                let slot = in_slot[0].1;
                let step = topology.slot(record.first() + slot).step();
                let whole = topology.half_steps(&step).len();
                if in_slot.len() < whole {
                    let start = self.steps.len() as u32;
                    self.steps.extend(in_slot.iter().map(|half_step| half_step.2));
                    self.partial.push(HiddenGroup { key: slot, start, end: self.steps.len() as u32 });
                } else if slot == record.degree() {
                    loop_gone = true;
                } else {
                    self.slots.push(slot);
                }
            }
            self.nodes.push(HiddenNode {
                slots: (slots, self.slots.len() as u32),
                partial: (partial, self.partial.len() as u32),
                loop_gone,
            });
            ids.push(v);
        }

        if ids.is_empty() {
            return;
        }
        self.filter = vec![0; ids.len().next_power_of_two()];
        self.table = vec![EMPTY; (2 * ids.len()).next_power_of_two()];
        for (index, &v) in ids.iter().enumerate() {
            let bit = hash(v, 64 * self.filter.len());
            self.filter[bit / 64] |= 1 << (bit % 64);
            let mut at = hash(v, self.table.len());
            while self.table[at] != EMPTY {
                at = (at + 1) & (self.table.len() - 1);
            }
            self.table[at] = u64::from(v) << 32 | index as u64;
        }
    }
}

/// Finds the half-step from `v` to `w`: its node, slot and position. Returns `None` only if the
/// topology does not have it.
fn locate(topology: &Topology, v: NodeId, w: NodeId, half_step: u32) -> Option<(NodeId, u32, u32)> {
    let slot = topology.find_slot(v, w)?;
    let step = topology.slot(topology.record(v).first() + slot).step();
    let position = topology.half_steps(&step).binary_search(&half_step).ok()?;
    Some((v, slot, position as u32))
}

#[inline]
fn group<'a>(groups: &[HiddenGroup], key: u32, positions: &'a [u32]) -> &'a [u32] {
    let range: Range<usize> = match groups.binary_search_by_key(&key, |g| g.key) {
        Ok(at) => groups[at].start as usize..groups[at].end as usize,
        Err(_) => 0..0,
    };
    &positions[range]
}

/// Hashes by multiplication: scales the top bits of the product to the size of the table.
#[inline]
fn hash(v: NodeId, size: usize) -> usize {
    ((u64::from(v.wrapping_mul(0x9E37_79B1)) * size as u64) >> 32) as usize
}

/// Returns the position of the `index`-th element that is *not* in `gone`, a sorted list of
/// positions. Exact, in O(log).
#[inline]
pub fn nth_kept(gone: &[u32], index: u32) -> u32 {
    // Before the i-th gone element there are gone[i] - i kept ones. This sequence never decreases,
    // so skip all gone elements where it is at most `index`.
    let (mut low, mut high) = (0, gone.len());
    while low < high {
        let middle = (low + high) / 2;
        if gone[middle] - middle as u32 <= index {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    index + low as u32
}
