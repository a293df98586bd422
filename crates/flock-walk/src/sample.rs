//! Drawing walks. A move takes O(1) time and one random word. Under a mask it takes O(log) of what
//! is hidden at the node.
//!
//! - **Next node.** There are `c` candidates in a row of slots, and the node just left is one of
//!   them. Draw one of the first `c - 1`. If it is the node just left, take the last one instead.
//!   So each of the other `c - 1` has the same chance, without a search. The node just left is
//!   always a candidate, because every edge can be walked both ways.
//! - **Label.** The place of the word within the share of the chosen slot is again a uniform word.
//!   It picks a half-step and a coin.
//! - **Memory.** A move is two dependent reads: a record, then a slot. [`WALKERS`] walks advance in
//!   turns, and each read is prefetched one turn before it is needed. So the waits overlap.
//!
//! The masked sampler sees the same rows and skips some slots. So it draws the same walks, bit for
//! bit, as on a graph rebuilt without the hidden edges.

use crate::prefetch::prefetch;
use crate::query::{WalkOptions, WalkQuery};
use crate::rng::{Key, Stream, split};
use crate::starts::{Naming, Start, Starts};
use flock_graph::mask::{HiddenNode, nth_kept};
use flock_graph::topology::{Arrays, NodeRecord, Slot, Step};
use flock_graph::{Mask, NodeId, Topology, TypeId};
use std::ops::Range;

/// Number of walks that advance in turns. More of them hide more of the wait when the graph is not
/// in cache, and cost a little when it is: see `docs/reference/walks.md`.
const WALKERS: usize = 16;
/// An id that no node has: ids are below a `u32` count.
const NOWHERE: u32 = u32::MAX;
/// The direction of "no step".
const NO_STEP: u8 = 3;

/// Raw walks, one after the other. Every vector has W · L entries, one per position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walks {
    /// Number of positions `L` of a walk.
    pub length: usize,
    /// The node at each position.
    pub nodes: Vec<NodeId>, // (W, L)
    /// The type of the step into each position.
    pub types: Vec<TypeId>, // (W, L)
    /// The direction of that step: 0 along its edge, 1 against it or around a self-loop, 3 for no
    /// step.
    pub dirs: Vec<u8>, // (W, L)
}

impl Walks {
    /// Samples all walks of a query.
    pub fn sample(
        topology: &Topology,
        mask: Option<&Mask>,
        query: &WalkQuery,
        n: u32,
        key: Key,
        options: &WalkOptions,
    ) -> Walks {
        let walks = query.num_walks(n);
        let length = options.length;
        let mut nodes = vec![0; walks * length];
        let mut types = vec![0; walks * length];
        let mut dirs = vec![0; walks * length];
        sample(topology, mask, query, n, key, options, 0..walks, &mut nodes, &mut types, &mut dirs);
        Walks { length, nodes, types, dirs }
    }
}

/// Samples the walks `range`, out of the `3n` or `4n` of a query, into slices of `range.len() · L`
/// entries.
///
/// The result does not depend on how the walks are cut into ranges, so threads may share a query.
/// For many ranges, prepare [`Starts`] once and call [`sample_from`]. A node that the topology does
/// not know counts as isolated.
///
/// # Panics
/// If the range or the slices do not fit the query.
pub fn sample(
    topology: &Topology,
    mask: Option<&Mask>,
    query: &WalkQuery,
    n: u32,
    key: Key,
    options: &WalkOptions,
    range: Range<usize>,
    nodes: &mut [NodeId],
    types: &mut [TypeId],
    dirs: &mut [u8],
) {
    let starts = Starts::prepare(topology, mask, query, n, key, options);
    sample_from(&starts, topology, mask, options, range, nodes, types, dirs);
}

/// Does the same as [`sample`] from prepared starts. Pass the graph, mask and options with which
/// the starts were prepared.
///
/// # Panics
/// If the range or the slices do not fit the query.
pub fn sample_from(
    starts: &Starts,
    topology: &Topology,
    mask: Option<&Mask>,
    options: &WalkOptions,
    range: Range<usize>,
    nodes: &mut [NodeId],
    types: &mut [TypeId],
    dirs: &mut [u8],
) {
    let length = options.length;
    assert!(range.start <= range.end && range.end <= starts.num_walks(), "walks {range:?} of {}", starts.num_walks());
    let entries = range.len() * length;
    assert!(
        nodes.len() == entries && types.len() == entries && dirs.len() == entries,
        "{} walks of {length} positions need {entries} entries, not {}, {}, {}",
        range.len(),
        nodes.len(),
        types.len(),
        dirs.len()
    );
    if entries == 0 {
        return;
    }
    let block = WALKERS * length;
    let outputs = nodes.chunks_mut(block).zip(types.chunks_mut(block)).zip(dirs.chunks_mut(block));
    for (first, ((nodes, types), dirs)) in range.step_by(WALKERS).zip(outputs) {
        let out = BlockOutput::new(length, nodes, types, dirs);
        match (mask.filter(|m| !m.is_empty()), topology.arrays()) {
            (None, Some(arrays)) => sample_block(starts, topology, arrays, FullView, options, first, out),
            (Some(mask), Some(arrays)) => sample_block(starts, topology, arrays, MaskedView(mask), options, first, out),
            (None, None) => sample_block(starts, topology, topology, FullView, options, first, out),
            (Some(mask), None) => sample_block(starts, topology, topology, MaskedView(mask), options, first, out),
        }
    }
}

/// The output of a block of up to [`WALKERS`] walks.
struct BlockOutput<'a> {
    walks: usize,
    length: usize,
    nodes: &'a mut [NodeId], // (walks, length), like the other two
    types: &'a mut [TypeId],
    dirs: &'a mut [u8],
}

impl<'a> BlockOutput<'a> {
    fn new(length: usize, nodes: &'a mut [NodeId], types: &'a mut [TypeId], dirs: &'a mut [u8]) -> BlockOutput<'a> {
        let walks = nodes.len() / length;
        assert!(nodes.len() == walks * length && types.len() == nodes.len() && dirs.len() == nodes.len());
        BlockOutput { walks, length, nodes, types, dirs }
    }

    #[inline(always)]
    fn put_node(&mut self, walk: usize, position: usize, node: NodeId) {
        debug_assert!(walk < self.walks && position < self.length);
        // SAFETY: `new` checked that there are walks * length entries. The only callers, `walk_block` and
        // `restarting_block`, keep `walks` walkers, so `walk < walks`, and their loops end at
        // `length`. Checked writes make the sampler 7 % slower.
        unsafe { *self.nodes.get_unchecked_mut(walk * self.length + position) = node };
    }

    #[inline(always)]
    fn put_step(&mut self, walk: usize, position: usize, (ty, dir): (TypeId, u8)) {
        debug_assert!(walk < self.walks && position < self.length);
        let at = walk * self.length + position;
        // SAFETY: as in `put_node`; the three slices have the same length.
        unsafe {
            *self.types.get_unchecked_mut(at) = ty;
            *self.dirs.get_unchecked_mut(at) = dir;
        }
    }
}

/// A walk in progress. A move takes three turns: [`aim`] draws a slot, [`take`] reads it, [`label`]
/// names the step.
#[derive(Copy, Clone)]
struct Walker<H> {
    stream: Stream,
    at: NodeId,
    left: NodeId, // the node just left, or NOWHERE if any neighbour may come next
    loops: u32,   // 1 if a self-loop counts as a candidate
    chosen: u32,  // the slot drawn
    last: u32,    // the last candidate slot, or NOWHERE if there is none
    step: Step,   // the step taken
    looped: u8,   // 1 if the step was a self-loop
    word: u64,    // the rest of the random word
    hidden: H,    // what is hidden at the current node
}

impl<H: Default> Walker<H> {
    fn empty() -> Walker<H> {
        Walker {
            stream: Stream::default(),
            at: NOWHERE,
            left: NOWHERE,
            loops: 0,
            chosen: 0,
            last: NOWHERE,
            step: Step::default(),
            looped: 0,
            word: 0,
            hidden: H::default(),
        }
    }
}

/// Access to the graph for a walk: to the arrays of its index, or to a graph with edits, which
/// looks in two places.
trait GraphReader: Copy {
    fn record(self, v: NodeId) -> NodeRecord;
    fn slot(self, at: u32) -> Slot;
    fn half_steps<'s>(&'s self, step: &'s Step) -> &'s [u32];
    fn prefetch_record(self, v: NodeId);
    fn prefetch_slot(self, at: u32);
    fn prefetch_list(self, step: Step);
}

impl GraphReader for Arrays<'_> {
    #[inline(always)]
    fn record(self, v: NodeId) -> NodeRecord {
        self.records.get(v as usize).copied().unwrap_or_default()
    }
    #[inline(always)]
    fn slot(self, at: u32) -> Slot {
        self.slots[at as usize]
    }
    #[inline(always)]
    fn half_steps<'s>(&'s self, step: &'s Step) -> &'s [u32] {
        Arrays::half_steps(self, step)
    }
    #[inline(always)]
    fn prefetch_record(self, v: NodeId) {
        prefetch(self.records, v as usize);
    }
    #[inline(always)]
    fn prefetch_slot(self, at: u32) {
        prefetch(self.slots, at as usize);
    }
    #[inline(always)]
    fn prefetch_list(self, step: Step) {
        prefetch(self.parallel, step.list() as usize);
    }
}

/// A graph with edits is read without prefetching. The edited part is small, and the rest is rarely
/// far away.
impl GraphReader for &Topology {
    fn record(self, v: NodeId) -> NodeRecord {
        Topology::record(self, v)
    }
    fn slot(self, at: u32) -> Slot {
        Topology::slot(self, at)
    }
    fn half_steps<'s>(&'s self, step: &'s Step) -> &'s [u32] {
        Topology::half_steps(self, step)
    }
    fn prefetch_record(self, _: NodeId) {}
    fn prefetch_slot(self, _: u32) {}
    fn prefetch_list(self, _: Step) {}
}

/// The part of the graph that a walk can see. One sampler is compiled for each view.
trait View: Copy {
    /// What is hidden at a node.
    type Hidden: Copy + Default;
    fn mask(&self) -> Option<&Mask>;
    fn hidden(self, v: NodeId, record: NodeRecord) -> Self::Hidden;
    /// Returns how many neighbours and how many self-loop slots are hidden.
    fn gone(self, hidden: Self::Hidden) -> (u32, u32);
    /// Returns the position, among the node's slots, of the `index`-th slot that is not hidden.
    fn nth_slot(self, hidden: Self::Hidden, index: u32) -> u32;
    /// Lists the positions of the hidden half-steps among those of a slot.
    fn hidden_steps(&self, hidden: Self::Hidden, slot: u32) -> &[u32];
}

/// The whole graph.
#[derive(Copy, Clone)]
struct FullView;

impl View for FullView {
    type Hidden = ();
    fn mask(&self) -> Option<&Mask> {
        None
    }
    #[inline(always)]
    fn hidden(self, _: NodeId, _: NodeRecord) {}
    #[inline(always)]
    fn gone(self, (): ()) -> (u32, u32) {
        (0, 0)
    }
    #[inline(always)]
    fn nth_slot(self, (): (), index: u32) -> u32 {
        index
    }
    #[inline(always)]
    fn hidden_steps(&self, (): (), _: u32) -> &[u32] {
        &[]
    }
}

/// The graph without the edges that a mask hides.
#[derive(Copy, Clone)]
struct MaskedView<'a>(&'a Mask);

impl<'a> View for MaskedView<'a> {
    type Hidden = Option<(&'a HiddenNode, u32)>; // with the node's first slot
    fn mask(&self) -> Option<&Mask> {
        Some(self.0)
    }
    #[inline(always)]
    fn hidden(self, v: NodeId, record: NodeRecord) -> Self::Hidden {
        self.0.node(v).map(|h| (h, record.first()))
    }
    #[inline(always)]
    fn gone(self, hidden: Self::Hidden) -> (u32, u32) {
        hidden.map_or((0, 0), |(h, _)| (h.neighbours_gone(), h.loops_gone()))
    }
    #[inline(always)]
    fn nth_slot(self, hidden: Self::Hidden, index: u32) -> u32 {
        hidden.map_or(index, |(h, _)| nth_kept(self.0.gone_slots(h), index))
    }
    #[inline(always)]
    fn hidden_steps(&self, hidden: Self::Hidden, slot: u32) -> &[u32] {
        hidden.map_or(&[], |(h, first)| self.0.hidden_steps(h, slot - first))
    }
}

/// Samples a block of walks. Walks without restarts have a function of their own, so that restarts
/// cost them nothing.
fn sample_block<G: GraphReader, V: View>(
    starts: &Starts,
    topology: &Topology,
    reader: G,
    view: V,
    options: &WalkOptions,
    first: usize,
    out: BlockOutput<'_>,
) {
    if options.restart == 0 {
        walk_block(starts, topology, reader, view, options, first, out);
    } else {
        restarting_block(starts, topology, reader, view, options, first, out);
    }
}

/// The restarts of one walk.
#[derive(Copy, Clone)]
struct Restarts {
    stream: Stream,
    chance: u32, // in parts of 1024
    next: usize, // position of the next restart
}

impl Restarts {
    /// Draws the position of the next restart. `from` is the first position that may be one. At a
    /// chance of 1 / 1024 the mean gap is 1,024 positions. The loop stops at the end of the walk.
    fn schedule(&mut self, from: usize, length: usize) {
        self.next = from;
        while self.next < length && self.stream.below(1024) >= u64::from(self.chance) {
            self.next += 1;
        }
    }
}

/// Does the same as [`walk_block`] for walks that may restart at any position. Where no restart is
/// due it draws the same walks.
fn restarting_block<G: GraphReader, V: View>(
    starts: &Starts,
    topology: &Topology,
    reader: G,
    view: V,
    options: &WalkOptions,
    first: usize,
    mut out: BlockOutput<'_>,
) {
    let (backtrack, naming, length) = (options.backtrack, starts.naming, out.length);
    let period = options.restart_period.max(1) as usize;
    let mut walkers = [Walker::<V::Hidden>::empty(); WALKERS];
    let walkers = &mut walkers[..out.walks];
    let mut fixed = [None; WALKERS]; // the first move of a walk that starts on an edge
    let mut restarts = [Restarts { stream: Stream::default(), chance: 0, next: usize::MAX }; WALKERS];
    let begin = |walker: &mut Walker<V::Hidden>, start: Start| -> Option<(NodeId, TypeId)> {
        walker.left = NOWHERE;
        let (at, fixed) = match start {
            Start::Node(v) => (v, None),
            Start::Edge { from, to, ty } => (from, Some((to, ty))),
        };
        walker.at = at;
        reader.prefetch_record(at);
        fixed
    };
    for (i, walker) in walkers.iter_mut().enumerate() {
        let walk = first + i;
        let (stream, start) = starts.start(topology, view.mask(), walk);
        walker.stream = stream;
        walker.loops = u32::from(starts.counts_loops(walk));
        fixed[i] = begin(walker, start);
        if walk % period == period - 1 {
            restarts[i] = Restarts { stream: starts.restarts(walk), chance: options.restart, next: usize::MAX };
            // A start on an edge takes two positions.
            restarts[i].schedule(1 + usize::from(fixed[i].is_some()), length);
        }
        out.put_node(i, 0, walker.at);
        out.put_step(i, 0, (topology.no_type(), NO_STEP));
    }
    for walker in walkers.iter_mut() {
        aim(reader, view, walker, false);
    }
    for position in 1..length {
        for (i, walker) in walkers.iter_mut().enumerate() {
            if restarts[i].next == position {
                let start = starts.again(topology, view.mask(), first + i, &mut restarts[i].stream);
                fixed[i] = begin(walker, start);
            } else if let Some((to, _)) = fixed[i] {
                arrive(walker, to, backtrack);
            } else {
                take(reader, walker, backtrack);
            }
            out.put_node(i, position, walker.at);
        }
        for (i, walker) in walkers.iter_mut().enumerate() {
            let anew = restarts[i].next == position;
            let step = if anew {
                restarts[i].schedule(position + 1 + usize::from(fixed[i].is_some()), length);
                (topology.no_type(), NO_STEP)
            } else {
                match fixed[i].take() {
                    Some((_, ty)) => (ty, 0),
                    None => label(topology, reader, view, walker, naming),
                }
            };
            out.put_step(i, position, step);
            aim(reader, view, walker, !backtrack && !anew);
        }
    }
}

fn walk_block<G: GraphReader, V: View>(
    starts: &Starts,
    topology: &Topology,
    reader: G,
    view: V,
    options: &WalkOptions,
    first: usize,
    mut out: BlockOutput<'_>,
) {
    let (backtrack, naming) = (options.backtrack, starts.naming);
    let mut walkers = [Walker::<V::Hidden>::empty(); WALKERS];
    let walkers = &mut walkers[..out.walks];
    let mut fixed = [None; WALKERS];
    for (i, walker) in walkers.iter_mut().enumerate() {
        let (stream, start) = starts.start(topology, view.mask(), first + i);
        walker.stream = stream;
        walker.loops = u32::from(starts.counts_loops(first + i));
        walker.at = match start {
            Start::Node(v) => v,
            Start::Edge { from, to, ty } => {
                fixed[i] = Some((to, ty));
                from
            }
        };
        reader.prefetch_record(walker.at);
        out.put_node(i, 0, walker.at);
        out.put_step(i, 0, (topology.no_type(), NO_STEP));
    }
    if out.length == 1 {
        return;
    }

    // The first move: no node was left yet, and balanced starts already have their move.
    for walker in walkers.iter_mut() {
        aim(reader, view, walker, false);
    }
    for (i, walker) in walkers.iter_mut().enumerate() {
        match fixed[i] {
            None => take(reader, walker, backtrack),
            Some((to, _)) => arrive(walker, to, backtrack),
        }
        out.put_node(i, 1, walker.at);
    }
    for (i, walker) in walkers.iter_mut().enumerate() {
        out.put_step(i, 1, fixed[i].map_or_else(|| label(topology, reader, view, walker, naming), |(_, ty)| (ty, 0)));
        aim(reader, view, walker, !backtrack);
    }
    for position in 2..out.length {
        for (i, walker) in walkers.iter_mut().enumerate() {
            take(reader, walker, backtrack);
            out.put_node(i, position, walker.at);
        }
        for (i, walker) in walkers.iter_mut().enumerate() {
            out.put_step(i, position, label(topology, reader, view, walker, naming));
            // The draw after the last position is not used. To skip it would cost a branch.
            aim(reader, view, walker, !backtrack);
        }
    }
}

/// Draws the next slot and prefetches it. With `left_one`, the node just left is a candidate that
/// must be avoided.
#[inline(always)]
fn aim<G: GraphReader, V: View>(reader: G, view: V, walker: &mut Walker<V::Hidden>, left_one: bool) {
    let record: NodeRecord = reader.record(walker.at);
    walker.hidden = view.hidden(walker.at, record);
    let (neighbours_gone, loops_gone) = view.gone(walker.hidden);
    let degree = record.degree() - neighbours_gone;
    // A self-loop is a candidate for balanced walks, and for all walks if there is no other
    // candidate.
    let loops = (record.loops() - loops_gone) & (walker.loops | u32::from(degree == 0));
    let candidates = degree + loops;
    if candidates == 0 {
        walker.last = NOWHERE;
        return;
    }
    let avoided = u32::from(left_one & (candidates > 1));
    let (index, word) = split(walker.stream.draw(), u64::from(candidates - avoided));
    walker.word = word;
    walker.chosen = record.first() + view.nth_slot(walker.hidden, index as u32);
    walker.last = record.first() + view.nth_slot(walker.hidden, candidates - 1);
    reader.prefetch_slot(walker.chosen);
}

/// Moves along the drawn slot, and prefetches what the label and the next draw need.
#[inline(always)]
fn take<G: GraphReader, H>(reader: G, walker: &mut Walker<H>, backtrack: bool) {
    if walker.last == NOWHERE {
        return;
    }
    let mut slot = reader.slot(walker.chosen);
    if slot.neighbour() == walker.left {
        walker.chosen = walker.last;
        slot = reader.slot(walker.last);
    }
    let next = slot.neighbour();
    reader.prefetch_record(next);
    reader.prefetch_list(slot.step());
    walker.step = slot.step();
    walker.looped = u8::from(next == walker.at);
    arrive(walker, next, backtrack);
}

#[inline(always)]
fn arrive<H>(walker: &mut Walker<H>, next: NodeId, backtrack: bool) {
    walker.left = if backtrack { NOWHERE } else { walker.at };
    walker.at = next;
}

/// Returns the type and direction of the step: a uniform half-step of the slot, and a coin. Without
/// inverses there is no coin. The half-step itself says whether the walk follows the type that names
/// its relation or goes against it.
#[inline(always)]
fn label<G: GraphReader, V: View>(
    topology: &Topology,
    reader: G,
    view: V,
    walker: &Walker<V::Hidden>,
    naming: Naming,
) -> (TypeId, u8) {
    if walker.last == NOWHERE {
        return (topology.no_type(), NO_STEP);
    }
    let (half_step, coin) = match walker.step.single() {
        Some(half_step) => (half_step, (walker.word >> 63) as u32),
        None => {
            let half_steps = reader.half_steps(&walker.step);
            let hidden = view.hidden_steps(walker.hidden, walker.chosen);
            let (index, _) = split(walker.word, 2 * (half_steps.len() - hidden.len()) as u64);
            (half_steps[nth_kept(hidden, (index / 2) as u32) as usize], index as u32 & 1)
        }
    };
    let coin = match naming {
        Naming::Both => coin,
        Naming::One(inverse) => half_step & 1 ^ inverse,
    };
    (topology.type_of(half_step ^ coin), coin as u8 | walker.looped)
}
