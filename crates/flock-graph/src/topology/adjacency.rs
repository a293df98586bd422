//! Where a walk can go from each node: records, slots and lists of parallel half-steps. `mod.rs` defines half-steps.

use super::{NodeId, TopologyError, Triple, huge, unpack};

/// Bit in the step word of a slot. If it is set, the word is an index into the lists of parallel
/// half-steps.
pub(super) const PARALLEL: u32 = 1 << 31;
/// Bit in the second word of a node record. If it is set, a self-loop slot follows the neighbours.
pub(super) const HAS_LOOP: u32 = 1 << 31;
/// Stands for the node itself while half-steps are sorted, so that loops come last. It is never an
/// id: ids are below a `u32` count.
pub(super) const LOOP_LAST: u32 = u32::MAX;

/// The place of a node's slots and the number of its neighbours.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct NodeRecord {
    pub(super) first: u32,
    pub(super) degree_and_loop: u32,
}

impl NodeRecord {
    /// Returns the index of the node's first slot.
    #[inline]
    pub fn first(self) -> u32 {
        self.first
    }
    /// Returns the number of distinct neighbours, not counting the node itself.
    #[inline]
    pub fn degree(self) -> u32 {
        self.degree_and_loop & !HAS_LOOP
    }
    /// Returns 1 if a self-loop slot follows the slots of the neighbours, else 0.
    #[inline]
    pub fn loops(self) -> u32 {
        self.degree_and_loop >> 31
    }
}

/// A distinct neighbour (in the high half, so that slots sort by neighbour) and the step to it (in
/// the low half).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Slot(u64);

impl Slot {
    #[inline]
    pub(super) fn new(neighbour: NodeId, step: u32) -> Slot {
        Slot(u64::from(neighbour) << 32 | u64::from(step))
    }
    /// Returns the node that this slot leads to. For a self-loop that is the node that owns the
    /// slot.
    #[inline]
    pub fn neighbour(self) -> NodeId {
        (self.0 >> 32) as u32
    }
    /// Returns the step to the neighbour.
    #[inline]
    pub fn step(self) -> Step {
        Step(self.0 as u32)
    }
}

/// The step of a slot: its only half-step, or the place of a list of half-steps.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Step(pub(super) u32);

impl Step {
    /// Returns the only half-step, or `None` if there are several.
    #[inline]
    pub fn single(self) -> Option<u32> {
        (self.0 & PARALLEL == 0).then_some(self.0)
    }
    /// Returns the place of the list in [`Arrays::parallel`], or 0 if there is none. It has no
    /// branch, so that callers can prefetch the list cheaply.
    #[inline]
    pub fn list(self) -> u32 {
        self.0 & !PARALLEL & (self.0 as i32 >> 31) as u32
    }
}

/// The records, slots and lists of all nodes.
#[derive(Debug, Clone)]
pub(super) struct Adjacency {
    pub(super) nodes: Vec<NodeRecord>, // (V)
    pub(super) slots: Vec<Slot>,       // grouped by node, sorted by neighbour, self-loop last
    pub(super) parallel: Vec<u32>,     // lists [count, s, s, ...] of the slots with several half-steps
}

/// The arrays of a graph's index, borrowed.
#[derive(Copy, Clone, Debug)]
pub struct Arrays<'a> {
    /// All node records.
    pub records: &'a [NodeRecord],
    /// All slots, grouped by node. The records say where each group is.
    pub slots: &'a [Slot],
    /// The lists of parallel half-steps that [`Step::list`] points into. Each list is its length,
    /// then the half-steps in ascending order.
    pub parallel: &'a [u32],
}

impl<'a> Arrays<'a> {
    /// Lists the half-steps of a slot, ascending, as
    /// [`Topology::half_steps`](super::Topology::half_steps) does.
    #[inline]
    pub fn half_steps(&self, step: &'a Step) -> &'a [u32] {
        half_steps(self.parallel, step)
    }
}

#[inline]
pub(super) fn half_steps<'a>(parallel: &'a [u32], step: &'a Step) -> &'a [u32] {
    if step.single().is_some() {
        return std::slice::from_ref(&step.0);
    }
    let list = step.list() as usize;
    let count = parallel[list] as usize;
    &parallel[list + 1..list + 1 + count]
}

impl Adjacency {
    /// Groups the half-steps by node, sorts each group, and merges parallel half-steps into one
    /// slot. All this happens in one buffer.
    pub(super) fn build(num_nodes: u32, edges: &[u64], offsets: &[u32]) -> Result<Adjacency, TopologyError> {
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
