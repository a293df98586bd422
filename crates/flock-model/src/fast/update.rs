//! One update (`docs/reference/model.md`, section 5): the sequence processor reads recorded walks, the
//! consensus pools what it read back onto nodes and types.
//!
//! Shapes: `W` walks, `L` positions, `D` width; `N` nodes and `T` types met so far by this query in
//! this pass. Nothing here is as large as the graph.

use std::cell::RefCell;
use std::ops::Range;
use std::time::{Duration, Instant};

use flock_kernels::consensus::{self, Consensus, Groups, Side, logit_columns, logit_slots};
use flock_kernels::embed::{Embed, Positions};
use flock_kernels::linear::{Activation, Linear};
use flock_kernels::swiglu::{self, SwiGlu};
use flock_kernels::{AlignedVec, BLOCK, Engine};
use flock_walk::Records;
use rayon::prelude::*;

use crate::metadata::Metadata;
use crate::processor::PackedForward;
use crate::tensors::{LayerTensors, ModelTensors};

/// The states of what a query has met: rows by local id. A node or type not met yet has the initial state.
#[derive(Default)]
pub struct States {
    /// Node states.
    pub nodes: AlignedVec<f32>, // (N, D)
    /// Type states.
    pub types: AlignedVec<f32>, // (T, D)
    /// Positions at which each node stood, over all updates.
    pub visits: Vec<u32>, // (N)
}

impl States {
    pub(crate) fn clear(&mut self) {
        self.nodes.resize(0);
        self.types.resize(0);
        self.visits.clear();
    }
}

/// Which threads work on one query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parallelism {
    /// The calling thread: best when there are as many queries as threads.
    OneThread,
    /// All threads of the current rayon pool.
    Pool,
}

/// Which states of a side an update brings up to date. The last update of a pass may leave out what
/// nothing reads any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refresh {
    /// All.
    All,
    /// Those of these local ids; the others keep the state they had.
    Only(Vec<u32>),
}

/// Where the time of a query goes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Stages {
    /// Sampling walks.
    pub walk: Duration,
    /// Naming them.
    pub record: Duration,
    /// `from_node` and `from_type`, once per node and type.
    pub project: Duration,
    /// Summing embedding rows.
    pub embed: Duration,
    /// The sequence processor before its feed-forward: the GRU and its output layer, or the attention.
    pub gru: Duration,
    /// The feed-forward.
    pub feed_forward: Duration,
    /// Logits, softmax, pooling, `to_node` and `to_type`.
    pub consensus: Duration,
    /// Scoring.
    pub head: Duration,
}

impl Stages {
    /// Returns names and durations, in the order of the work.
    pub fn parts(&self) -> [(&'static str, Duration); 8] {
        [
            ("walk", self.walk),
            ("record", self.record),
            ("project", self.project),
            ("embed", self.embed),
            ("gru", self.gru),
            ("feed_forward", self.feed_forward),
            ("consensus", self.consensus),
            ("head", self.head),
        ]
    }

    /// Adds another's times.
    pub fn add(&mut self, other: &Stages) {
        self.walk += other.walk;
        self.record += other.record;
        self.project += other.project;
        self.embed += other.embed;
        self.gru += other.gru;
        self.feed_forward += other.feed_forward;
        self.consensus += other.consensus;
        self.head += other.head;
    }
}

/// Adds the time since `since` to `to`, and starts anew.
pub(crate) fn lap(since: &mut Instant, to: &mut Duration) {
    let now = Instant::now();
    *to += now - *since;
    *since = now;
}

/// Buffers of one query, kept from query to query.
#[derive(Default)]
pub struct Workspace {
    x: AlignedVec<f32>,                 // (W · L, D), time-major in blocks
    pub(super) logits: AlignedVec<f32>, // (W · L, columns of logits)
    groups: [Groups; 2],                // nodes, types
    projected: [AlignedVec<f32>; 2],    // (N, D), (T, D)
    rows: AlignedVec<f32>,              // dense rows on their way to or from listed ones
    list: Vec<u32>,
}

impl Workspace {
    /// Computes the weights of a group's rows in the last consensus, per head, in the order of the
    /// positions: the softmax that the pooling has used and not kept.
    pub(crate) fn weights(&self, side: Side, group: u32, heads: usize) -> Vec<Vec<f32>> {
        let groups = &self.groups[side as usize];
        let Ok(i) = groups.ids().binary_search(&group) else { return Vec::new() };
        let own = side as usize * logit_slots(heads);
        let logits = |row: &u32| self.logits[*row as usize * logit_columns(heads) + own..][..heads].to_vec();
        let mut rows: Vec<Vec<f32>> = groups.rows(i).iter().map(logits).collect();
        for k in 0..heads {
            let max = rows.iter().fold(f32::NEG_INFINITY, |max, row| max.max(row[k]));
            rows.iter_mut().for_each(|row| row[k] = (row[k] - max).exp());
            let total: f32 = rows.iter().map(|row| row[k]).sum();
            rows.iter_mut().for_each(|row| row[k] /= total);
        }
        rows
    }

    /// Returns what the consensus read of a group's positions, in their order.
    #[doc(hidden)]
    pub fn group_rows(&self, side: Side, group: u32) -> Vec<Vec<f32>> {
        let groups = &self.groups[side as usize];
        let width = self.x.len() / groups.num_rows();
        let i = groups.ids().binary_search(&group).unwrap();
        groups.rows(i).iter().map(|row| self.x[*row as usize * width..][..width].to_vec()).collect()
    }
}

/// Buffers of one thread. A sequence processor has its own.
#[derive(Default)]
struct Scratch {
    feed_forward: swiglu::Scratch,
    consensus: consensus::Scratch,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// One side of an update: nodes or types.
struct SideLayers {
    side: Side,
    from: Linear,
    /// The initial state, and what `from` makes of it: most nodes are met for the first time.
    initial: Vec<f32>, // (D)
    initial_projected: Vec<f32>, // (D)
}

/// The layers of one update.
pub struct Update {
    length: usize,
    width: usize,
    sides: [SideLayers; 2],
    embed: Embed,
    layers: Vec<Layer>,
    consensus: Consensus,
}

/// A layer of the sequence processor.
struct Layer {
    processor: Box<dyn PackedForward>,
    feed_forward: SwiGlu,
}

/// What the way back through an update needs of the way there: the sink of a training pass. `P` rows,
/// time-major in blocks.
#[derive(Default)]
pub struct UpdateCache {
    pub(super) records: Records,
    pub(super) known: [usize; 2],     // nodes and types met before these walks
    pub(super) states: [Vec<f32>; 2], // their states before the update, (known, D)
    pub(super) groups: [Groups; 2],
    pub(super) layers: Vec<LayerCache>,
    pub(super) processed: AlignedVec<f32>, // (P, D), the consensus' input
    pub(super) logits: AlignedVec<f32>,    // (P, columns of logits)
}

/// What the way back through a layer needs.
#[derive(Default)]
pub(super) struct LayerCache {
    pub(super) embedded: AlignedVec<f32>,  // (P, D), the sequence processor's input
    pub(super) processor: AlignedVec<f32>, // (P, kept), what the processor kept, block by block
    pub(super) kept: usize,
    pub(super) sequenced: AlignedVec<f32>, // (P, D), the feed-forward's input
    pub(super) factors: AlignedVec<f32>,   // (P, 2F), the feed-forward's factors
}

/// The part of a layer's cache that belongs to one block of walks.
struct BlockCache<'a> {
    embedded: &'a mut [f32],
    processor: &'a mut [f32],
    sequenced: &'a mut [f32],
    factors: &'a mut [f32],
}

/// One block of walks on its way through the sequence processor.
struct Block<'a> {
    positions: Positions<'a>,
    x: &'a mut [f32],            // (rows, D)
    logits: &'a mut [f32],       // (rows, columns of logits)
    caches: Vec<BlockCache<'a>>, // one for each layer, or none
}

impl LayerCache {
    /// Makes room for `rows` rows of width `d` and cuts it into blocks of `step`.
    fn blocks(&mut self, rows: usize, step: usize, d: usize, kept: usize) -> Vec<BlockCache<'_>> {
        let factors = 2 * swiglu::FACTOR * d;
        self.kept = kept;
        self.embedded.resize(rows * d);
        self.processor.resize(rows * kept);
        self.sequenced.resize(rows * d);
        self.factors.resize(rows * factors);
        let (mut embedded, mut processor) = (&mut self.embedded[..], &mut self.processor[..]);
        let (mut sequenced, mut rest) = (&mut self.sequenced[..], &mut self.factors[..]);
        let mut blocks = Vec::with_capacity(rows.div_ceil(step));
        for first in (0..rows).step_by(step) {
            let rows = step.min(rows - first);
            blocks.push(BlockCache {
                embedded: take(&mut embedded, rows * d),
                processor: take(&mut processor, rows * kept),
                sequenced: take(&mut sequenced, rows * d),
                factors: take(&mut rest, rows * factors),
            });
        }
        blocks
    }
}

impl UpdateCache {
    /// Takes over what the update no longer needs.
    fn take_over(&mut self, work: &mut Workspace) {
        std::mem::swap(&mut self.groups, &mut work.groups);
        std::mem::swap(&mut self.processed, &mut work.x);
        std::mem::swap(&mut self.logits, &mut work.logits);
    }
}

/// Cuts the first `len` values off.
fn take<'a>(rest: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
    let (first, after) = std::mem::take(rest).split_at_mut(len);
    *rest = after;
    first
}

/// Returns recorded walks as the kernels take them.
pub(super) fn positions(records: &Records) -> Positions<'_> {
    Positions {
        node_name: &records.node_name,
        type_name: &records.type_name,
        mark: &records.mark,
        node: &records.node,
        ty: &records.ty,
    }
}

impl Update {
    /// Packs update `i` of a model.
    pub(crate) fn new(engine: Engine, meta: &Metadata, model: &ModelTensors<&[f32]>, i: usize) -> Update {
        let w = &model.updates[i];
        let side = |side: Side| {
            let (layer, initial) = (&w.from[side as usize], model.initial[side as usize]);
            let from = Linear::new(engine, layer.weight, layer.bias, meta.width);
            let mut initial_projected = vec![0.0; meta.width];
            from.forward(initial, None, &mut initial_projected, Activation::None);
            SideLayers { side, from, initial: initial.to_vec(), initial_projected }
        };
        let [node, ty] = w.consensus(meta.consensus);
        let layer = |w: &LayerTensors<&[f32]>| Layer {
            processor: meta.processor.processor().pack(engine, &w.processor),
            feed_forward: SwiGlu::new(engine, w.feed_forward.weights()),
        };
        Update {
            length: meta.length,
            width: meta.width,
            sides: [side(Side::Node), side(Side::Type)],
            embed: Embed::new(engine, w.names[0], w.names[1], &w.marks()),
            layers: w.layers.iter().map(layer).collect(),
            consensus: Consensus::new(engine, node, ty),
        }
    }

    /// Reads the recorded walks and updates the states. `met` is how many nodes and types have been
    /// met, these walks included. With a cache, it leaves there what the way back needs, but for the
    /// records.
    pub fn run(
        &self,
        records: &Records, // (W, L)
        met: [usize; 2],
        refresh: &[Refresh; 2],
        states: &mut States,
        work: &mut Workspace,
        parallelism: Parallelism,
        stages: &mut Stages,
        mut cache: Option<&mut UpdateCache>,
    ) {
        let mut clock = Instant::now();
        if let Some(cache) = &mut cache {
            cache.known = [states.nodes.len() / self.width, states.types.len() / self.width];
            for (kept, state) in cache.states.iter_mut().zip([&states.nodes, &states.types]) {
                kept.clear();
                kept.extend_from_slice(state);
            }
        }
        let ids = [&records.node, &records.ty];
        for s in 0..2 {
            work.groups[s].build(met[s], ids[s], self.length);
        }
        lap(&mut clock, &mut stages.consensus);

        for s in 0..2 {
            let known = if s == 0 { &states.nodes } else { &states.types };
            let (projected, rows, list) = (&mut work.projected[s], &mut work.rows, &mut work.list);
            self.sides[s].project(known, met[s], &work.groups[s], projected, rows, list, parallelism);
        }
        lap(&mut clock, &mut stages.project);

        self.process(positions(records), work, parallelism, stages, cache.as_deref_mut());

        clock = Instant::now();
        for s in 0..2 {
            let state = if s == 0 { &mut states.nodes } else { &mut states.types };
            self.pool(s, met[s], &refresh[s], state, work, parallelism);
        }
        states.visits.resize(met[0], 0);
        for (i, &node) in work.groups[0].ids().iter().enumerate() {
            states.visits[node as usize] += work.groups[0].rows(i).len() as u32;
        }
        if let Some(cache) = cache {
            cache.take_over(work);
        }
        lap(&mut clock, &mut stages.consensus);
    }

    /// Runs the sequence processor: fills `work.x` and `work.logits`.
    fn process(
        &self,
        positions: Positions<'_>, // (W, L)
        work: &mut Workspace,
        parallelism: Parallelism,
        stages: &mut Stages,
        cache: Option<&mut UpdateCache>,
    ) {
        let (rows, step) = (positions.node.len(), BLOCK * self.length);
        let (width, columns) = (self.width, self.consensus.logit_columns());
        work.x.resize(rows * width);
        work.logits.resize(rows * columns);
        let parts = work.x.chunks_mut(step * width).zip(work.logits.chunks_mut(step * columns));
        let mut blocks: Vec<Block<'_>> = parts
            .enumerate()
            .map(|(b, (x, logits))| {
                let (from, to) = (b * step, b * step + x.len() / width);
                Block { positions: positions.slice(from, to), x, logits, caches: Vec::new() }
            })
            .collect();
        if let Some(cache) = cache {
            cache.layers.resize_with(self.layers.len(), LayerCache::default);
            for (layer, cache) in self.layers.iter().zip(&mut cache.layers) {
                let parts = cache.blocks(rows, step, width, layer.processor.cache_width());
                blocks.iter_mut().zip(parts).for_each(|(block, part)| block.caches.push(part));
            }
        }
        let projected = &work.projected;
        let sum = |mut a: Stages, b: Stages| {
            a.add(&b);
            a
        };
        let spent = match parallelism {
            Parallelism::OneThread => {
                blocks.into_iter().map(|block| self.process_block(block, projected)).fold(Stages::default(), sum)
            }
            Parallelism::Pool => {
                let blocks = blocks.into_par_iter().map(|block| self.process_block(block, projected));
                blocks.reduce(Stages::default, sum)
            }
        };
        stages.add(&spent);
    }

    /// One block of walks: embedding, the layers of the sequence processor, logits of the consensus.
    fn process_block(&self, block: Block<'_>, projected: &[AlignedVec<f32>; 2]) -> Stages {
        let Block { positions, x, logits, caches } = block;
        let mut stages = Stages::default();
        let mut clock = Instant::now();
        let walks = x.len() / self.width / self.length;
        self.embed.forward(positions, &projected[0], &projected[1], walks, x);
        lap(&mut clock, &mut stages.embed);
        let mut caches = caches.into_iter();
        for Layer { processor, feed_forward } in &self.layers {
            let mut cache = caches.next();
            if let Some(cache) = &mut cache {
                cache.embedded.copy_from_slice(x);
            }
            processor.run(x, walks, cache.as_mut().map(|cache| &mut *cache.processor));
            if let Some(cache) = &mut cache {
                cache.sequenced.copy_from_slice(x);
            }
            lap(&mut clock, &mut stages.gru);
            SCRATCH.with_borrow_mut(|scratch| match cache {
                None => feed_forward.forward(x, &mut scratch.feed_forward),
                Some(cache) => feed_forward.forward_cached(x, cache.factors, &mut scratch.feed_forward),
            });
            lap(&mut clock, &mut stages.feed_forward);
        }
        self.consensus.logits(x, logits);
        lap(&mut clock, &mut stages.consensus);
        stages
    }

    /// Runs the consensus of one side: adds to the states, which first grow to `met` rows.
    fn pool(
        &self,
        s: usize,
        met: usize,
        refresh: &Refresh,
        state: &mut AlignedVec<f32>,
        work: &Workspace,
        parallelism: Parallelism,
    ) {
        let width = self.width;
        let known = state.len() / width;
        state.resize(met * width);
        for row in state[known * width..].chunks_exact_mut(width) {
            row.copy_from_slice(&self.sides[s].initial);
        }
        let groups = &work.groups[s];
        if groups.ids().is_empty() {
            return;
        }
        let pool = |(range, states): (Range<usize>, &mut [f32])| {
            SCRATCH.with_borrow_mut(|scratch| {
                let side = self.sides[s].side;
                self.consensus.pool(side, &work.x, &work.logits, groups, range, states, &mut scratch.consensus);
            });
        };
        // The states from the first group of a range on.
        let first = |range: &Range<usize>| groups.ids()[range.start] as usize * width;
        match (refresh, parallelism) {
            (Refresh::Only(ids), _) => {
                for i in ids.iter().filter_map(|id| groups.ids().binary_search(id).ok()) {
                    pool((i..i + 1, &mut state[first(&(i..i + 1))..]));
                }
            }
            (Refresh::All, Parallelism::OneThread) => pool((0..groups.ids().len(), &mut state[first(&(0..1))..])),
            (Refresh::All, Parallelism::Pool) => {
                let mut rest: &mut [f32] = state;
                let mut parts = Vec::new();
                // From the last range to the first, so that each takes the end of what is left.
                for range in groups.split(4 * rayon::current_num_threads()).into_iter().rev() {
                    let (before, states) = std::mem::take(&mut rest).split_at_mut(first(&range));
                    parts.push((range, states));
                    rest = before;
                }
                parts.into_par_iter().for_each(pool);
            }
        }
    }
}

impl SideLayers {
    /// Puts `from(state)` of the groups that occur at their rows of `projected`.
    fn project(
        &self,
        states: &[f32], // (known, D)
        met: usize,
        groups: &Groups,
        projected: &mut AlignedVec<f32>, // (met, D)
        rows: &mut AlignedVec<f32>,
        list: &mut Vec<u32>,
        parallelism: Parallelism,
    ) {
        let width = self.initial.len();
        let known = states.len() / width;
        projected.resize(met * width);
        for row in projected[known.min(met) * width..].chunks_exact_mut(width) {
            row.copy_from_slice(&self.initial_projected);
        }
        let occurs = groups.ids().partition_point(|g| (*g as usize) < known);
        list.clear();
        list.extend_from_slice(&groups.ids()[..occurs]);
        rows.resize(list.len() * width);
        const PART: usize = 240;
        let part = |(list, rows): (&[u32], &mut [f32])| self.from.forward(states, Some(list), rows, Activation::None);
        match parallelism {
            Parallelism::OneThread => part((list, rows)),
            Parallelism::Pool => list.par_chunks(PART).zip(rows.par_chunks_mut(PART * width)).for_each(part),
        }
        for (&id, row) in list.iter().zip(rows.chunks_exact(width)) {
            projected[id as usize * width..][..width].copy_from_slice(row);
        }
    }
}
