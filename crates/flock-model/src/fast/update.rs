//! One update (section 5 of the specification): the sequence processor reads recorded walks, the consensus pools what it
//! read back onto nodes and types.
//!
//! Shapes: `W` walks, `L` positions, `D` width; `N` nodes and `T` types met so far by this query in this pass. Nothing
//! here is as large as the graph.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use flock_kernels::attention::{self, Attention};
use flock_kernels::consensus::{self, Consensus, Groups, LOGITS, Side};
use flock_kernels::embed::{Embed, Positions};
use flock_kernels::gru::{self, Gru};
use flock_kernels::linear::{Activation, Linear};
use flock_kernels::swiglu::{self, SwiGlu};
use flock_kernels::{Aligned, BLOCK, D, Engine, F, H};
use flock_walk::Records;
use rayon::prelude::*;

use crate::checkpoint::{Averaging, Checkpoint, Processor};

/// The states of what a query has met: rows by local id. A node or type not met yet has the initial state.
#[derive(Default)]
pub struct States {
    /// Node states.
    pub nodes: Aligned<f32>, // (N, D)
    /// Type states.
    pub types: Aligned<f32>, // (T, D)
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

/// Who does the work of one query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Team {
    /// The calling thread: best when there are as many queries as threads.
    Solo,
    /// All threads of the current rayon pool.
    Pool,
}

/// Which states of a side an update is to bring up to date. The last update may leave out what nothing reads any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
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
    /// The bidirectional GRU and its output layer, or the attention in its place.
    pub gru: Duration,
    /// The feed-forward.
    pub feed_forward: Duration,
    /// Logits, softmax, pooling, `to_node` and `to_type`.
    pub consensus: Duration,
    /// Scoring.
    pub head: Duration,
}

impl Stages {
    /// Names and durations, in the order of the work.
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
    x: Aligned<f32>,                 // (W · L, D), time-major in blocks
    pub(super) logits: Aligned<f32>, // (W · L, LOGITS)
    groups: [Groups; 2],             // nodes, types
    projected: [Aligned<f32>; 2],    // (N, D), (T, D)
    rows: Aligned<f32>,              // dense rows on their way to or from listed ones
    list: Vec<u32>,
}

impl Workspace {
    /// The weights of a group's rows in the last consensus, per head, in the order of the positions: the softmax that the
    /// pooling has used and not kept.
    pub(crate) fn weights(&self, side: Side, group: u32) -> Vec<[f32; H]> {
        let groups = &self.groups[side as usize];
        let Ok(i) = groups.ids().binary_search(&group) else { return Vec::new() };
        let logits = |row: u32| {
            let row = &self.logits[row as usize * LOGITS + side as usize * H..][..H];
            std::array::from_fn::<f32, H, _>(|k| row[k])
        };
        let rows: Vec<[f32; H]> = groups.rows(i).iter().map(|row| logits(*row)).collect();
        let max = rows.iter().fold([f32::NEG_INFINITY; H], |m, row| std::array::from_fn(|k| m[k].max(row[k])));
        let e = rows.iter().map(|row| std::array::from_fn::<f32, H, _>(|k| (row[k] - max[k]).exp()));
        let e: Vec<[f32; H]> = e.collect();
        let total = e.iter().fold([0.0f32; H], |t, row| std::array::from_fn(|k| t[k] + row[k]));
        e.iter().map(|row| std::array::from_fn(|k| row[k] / total[k])).collect()
    }

    /// What the consensus read of a group's positions, in their order.
    #[doc(hidden)]
    pub fn group_rows(&self, side: Side, group: u32) -> Vec<Vec<f32>> {
        let groups = &self.groups[side as usize];
        let i = groups.ids().binary_search(&group).unwrap();
        groups.rows(i).iter().map(|row| self.x[*row as usize * D..][..D].to_vec()).collect()
    }
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    gru: gru::Scratch,
    attention: attention::Scratch,
    feed_forward: swiglu::Scratch,
    consensus: consensus::Scratch,
}

/// The first half of the sequence processor.
enum Sequence {
    Gru(Gru),
    Attention(Attention),
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
    sides: [SideLayers; 2],
    embed: Embed,
    sequence: Sequence,
    feed_forward: SwiGlu,
    consensus: Consensus,
}

impl Update {
    /// Packs update `i` of a checkpoint, whose tensors are known to be complete.
    pub(crate) fn new(engine: Engine, checkpoint: &Checkpoint, i: usize) -> Update {
        let weights = UpdateWeights { checkpoint, i };
        let side = |side, name: &str, init: &str| {
            let from = Linear::new(
                engine,
                weights.at(&format!("from_{name}"), "weight"),
                weights.at(&format!("from_{name}"), "bias"),
                D,
            );
            let initial = checkpoint.tensors[init].data.clone();
            let mut initial_projected = vec![0.0; D];
            from.forward(&initial, None, &mut initial_projected, Activation::None);
            SideLayers { side, from, initial, initial_projected }
        };
        Update {
            length: checkpoint.meta.length,
            sides: [side(Side::Node, "node", "node_init"), side(Side::Type, "type", "type_init")],
            embed: Embed::new(
                engine,
                weights.at("emb_anon_node", "weight"),
                weights.at("emb_anon_type", "weight"),
                &weights.marks(),
            ),
            sequence: match checkpoint.meta.processor {
                Processor::Gru => Sequence::Gru(Gru::new(engine, weights.gru())),
                Processor::Transformer => Sequence::Attention(Attention::new(engine, weights.attention())),
            },
            feed_forward: SwiGlu::new(engine, weights.feed_forward()),
            consensus: Consensus::new(engine, weights.consensus("node"), weights.consensus("type")),
        }
    }

    /// Reads the recorded walks and updates the states. `met` is how many nodes and types have been met, these walks
    /// included.
    pub fn run(
        &self,
        records: &Records, // (W, L)
        met: [usize; 2],
        wanted: &[Wanted; 2],
        states: &mut States,
        work: &mut Workspace,
        team: Team,
        stages: &mut Stages,
    ) {
        let mut clock = Instant::now();
        let ids = [&records.node, &records.ty];
        for s in 0..2 {
            work.groups[s].build(met[s], ids[s], self.length);
        }
        lap(&mut clock, &mut stages.consensus);

        for s in 0..2 {
            let known = if s == 0 { &states.nodes } else { &states.types };
            self.sides[s].project(
                known,
                met[s],
                &work.groups[s],
                &mut work.projected[s],
                &mut work.rows,
                &mut work.list,
                team,
            );
        }
        lap(&mut clock, &mut stages.project);

        self.process(records, work, team, stages);

        clock = Instant::now();
        for s in 0..2 {
            let state = if s == 0 { &mut states.nodes } else { &mut states.types };
            self.pool(s, met[s], &wanted[s], state, work, team);
        }
        states.visits.resize(met[0], 0);
        for (i, &node) in work.groups[0].ids().iter().enumerate() {
            states.visits[node as usize] += work.groups[0].rows(i).len() as u32;
        }
        lap(&mut clock, &mut stages.consensus);
    }

    /// The sequence processor: fills `work.x` and `work.logits`.
    fn process(&self, records: &Records, work: &mut Workspace, team: Team, stages: &mut Stages) {
        let rows = records.node.len();
        let positions = Positions {
            node_name: &records.node_name,
            type_name: &records.type_name,
            mark: &records.mark,
            node: &records.node,
            ty: &records.ty,
        };
        work.x.resize(rows * D);
        work.logits.resize(rows * LOGITS);
        let projected = &work.projected;
        let step = BLOCK * self.length;
        let block = |(b, (x, logits)): (usize, (&mut [f32], &mut [f32]))| -> Stages {
            let mut stages = Stages::default();
            let mut clock = Instant::now();
            let count = x.len() / D;
            let walks = count / self.length;
            let here = positions.slice(b * step, b * step + count);
            self.embed.forward(here, &projected[0], &projected[1], walks, x);
            lap(&mut clock, &mut stages.embed);
            SCRATCH.with_borrow_mut(|scratch| {
                match &self.sequence {
                    Sequence::Gru(gru) => gru.forward(x, walks, &mut scratch.gru),
                    Sequence::Attention(attention) => attention.forward(x, walks, &mut scratch.attention),
                }
                lap(&mut clock, &mut stages.gru);
                self.feed_forward.forward(x, &mut scratch.feed_forward);
                lap(&mut clock, &mut stages.feed_forward);
            });
            self.consensus.logits(x, logits);
            lap(&mut clock, &mut stages.consensus);
            stages
        };
        let sum = |mut a: Stages, b: Stages| {
            a.add(&b);
            a
        };
        let (x, logits) = (&mut work.x, &mut work.logits);
        let spent = match team {
            Team::Solo => {
                let blocks = x.chunks_mut(step * D).zip(logits.chunks_mut(step * LOGITS));
                blocks.enumerate().map(block).fold(Stages::default(), sum)
            }
            Team::Pool => {
                let blocks = x.par_chunks_mut(step * D).zip(logits.par_chunks_mut(step * LOGITS));
                blocks.enumerate().map(block).reduce(Stages::default, sum)
            }
        };
        stages.add(&spent);
    }

    /// The consensus of one side: adds to the states, which first grow to `met` rows.
    fn pool(&self, s: usize, met: usize, wanted: &Wanted, state: &mut Aligned<f32>, work: &mut Workspace, team: Team) {
        let known = state.len() / D;
        state.resize(met * D);
        for row in state[known * D..].chunks_exact_mut(D) {
            row.copy_from_slice(&self.sides[s].initial);
        }
        let groups = &work.groups[s];
        if groups.ids().is_empty() {
            return;
        }
        let pool = |(range, states): (std::ops::Range<usize>, &mut [f32])| {
            SCRATCH.with_borrow_mut(|scratch| {
                let side = self.sides[s].side;
                self.consensus.pool(side, &work.x, &work.logits, groups, range, states, &mut scratch.consensus);
            });
        };
        // The states from the first group of a range on.
        let first = |range: &std::ops::Range<usize>| groups.ids()[range.start] as usize * D;
        match (wanted, team) {
            (Wanted::Only(ids), _) => {
                for i in ids.iter().filter_map(|id| groups.ids().binary_search(id).ok()) {
                    pool((i..i + 1, &mut state[first(&(i..i + 1))..]));
                }
            }
            (Wanted::All, Team::Solo) => pool((0..groups.ids().len(), &mut state[first(&(0..1))..])),
            (Wanted::All, Team::Pool) => {
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

/// What an update keeps for the way back, `P` rows time-major in blocks.
#[derive(Default)]
pub struct Kept {
    pub(super) records: Records,
    pub(super) known: [usize; 2],     // nodes and types met before these walks
    pub(super) states: [Vec<f32>; 2], // their states before the update, (known, D)
    pub(super) groups: [Groups; 2],
    pub(super) embedded: Aligned<f32>, // (P, D), the input of the GRU or the attention
    pub(super) gates: [Aligned<f32>; 2], // (P, gru::CACHED), of a GRU
    pub(super) sequenced: Aligned<f32>, // (P, D), the feed-forward's input
    pub(super) factors: Aligned<f32>,  // (P, 2F), the feed-forward's factors
    pub(super) processed: Aligned<f32>, // (P, D), the consensus' input
    pub(super) logits: Aligned<f32>,   // (P, LOGITS)
}

impl Update {
    /// As [`Update::run`], keeping what the way back needs. The records are taken over.
    pub(crate) fn run_kept(
        &self,
        records: &mut Records, // (W, L)
        met: [usize; 2],
        states: &mut States,
        work: &mut Workspace,
        kept: &mut Kept,
    ) {
        let known = [states.nodes.len() / D, states.types.len() / D];
        kept.known = known;
        for (s, state) in [&states.nodes, &states.types].into_iter().enumerate() {
            kept.states[s].clear();
            kept.states[s].extend_from_slice(state);
            let ids = if s == 0 { &records.node } else { &records.ty };
            work.groups[s].build(met[s], ids, self.length);
            let (projected, rows, list) = (&mut work.projected[s], &mut work.rows, &mut work.list);
            self.sides[s].project(state, met[s], &work.groups[s], projected, rows, list, Team::Solo);
        }
        self.process_kept(records, work, kept);
        for s in 0..2 {
            let state = if s == 0 { &mut states.nodes } else { &mut states.types };
            self.pool(s, met[s], &Wanted::All, state, work, Team::Solo);
        }
        std::mem::swap(&mut kept.records, records);
        std::mem::swap(&mut kept.groups, &mut work.groups);
        std::mem::swap(&mut kept.processed, &mut work.x);
        std::mem::swap(&mut kept.logits, &mut work.logits);
    }

    /// The sequence processor, keeping what each layer was given.
    fn process_kept(&self, records: &Records, work: &mut Workspace, kept: &mut Kept) {
        let rows = records.node.len();
        let positions = positions(records);
        work.x.resize(rows * D);
        work.logits.resize(rows * LOGITS);
        kept.embedded.resize(rows * D);
        kept.sequenced.resize(rows * D);
        kept.factors.resize(rows * 2 * F);
        if let Sequence::Gru(_) = self.sequence {
            kept.gates.iter_mut().for_each(|gates| gates.resize(rows * gru::CACHED));
        }
        let step = BLOCK * self.length;
        SCRATCH.with_borrow_mut(|scratch| {
            for (b, x) in work.x.chunks_mut(step * D).enumerate() {
                let (from, count) = (b * step, x.len() / D);
                let here = from..from + count;
                let walks = count / self.length;
                let (nodes, types) = (&work.projected[0], &work.projected[1]);
                self.embed.forward(positions.slice(here.start, here.end), nodes, types, walks, x);
                kept.embedded[here.start * D..here.end * D].copy_from_slice(x);
                match &self.sequence {
                    Sequence::Gru(gru) => {
                        let [a, b] = &mut kept.gates;
                        let of = here.start * gru::CACHED..here.end * gru::CACHED;
                        gru.forward_cached(x, walks, [&mut a[of.clone()], &mut b[of]], &mut scratch.gru);
                    }
                    Sequence::Attention(attention) => attention.forward(x, walks, &mut scratch.attention),
                }
                kept.sequenced[here.start * D..here.end * D].copy_from_slice(x);
                let factors = &mut kept.factors[here.start * 2 * F..here.end * 2 * F];
                self.feed_forward.forward_cached(x, factors, &mut scratch.feed_forward);
            }
        });
        self.consensus.logits(&work.x, &mut work.logits);
    }
}

pub(super) fn positions(records: &Records) -> Positions<'_> {
    Positions {
        node_name: &records.node_name,
        type_name: &records.type_name,
        mark: &records.mark,
        node: &records.node,
        ty: &records.ty,
    }
}

impl SideLayers {
    /// `from(state)` of the groups that occur, at their rows of `projected`.
    fn project(
        &self,
        states: &[f32], // (known, D)
        met: usize,
        groups: &Groups,
        projected: &mut Aligned<f32>, // (met, D)
        rows: &mut Aligned<f32>,
        list: &mut Vec<u32>,
        team: Team,
    ) {
        let known = states.len() / D;
        projected.resize(met * D);
        for row in projected[known.min(met) * D..].chunks_exact_mut(D) {
            row.copy_from_slice(&self.initial_projected);
        }
        let occurs = groups.ids().partition_point(|g| (*g as usize) < known);
        list.clear();
        list.extend_from_slice(&groups.ids()[..occurs]);
        rows.resize(list.len() * D);
        const PART: usize = 240;
        let part = |(list, rows): (&[u32], &mut [f32])| self.from.forward(states, Some(list), rows, Activation::None);
        match team {
            Team::Solo => part((list, rows)),
            Team::Pool => list.par_chunks(PART).zip(rows.par_chunks_mut(PART * D)).for_each(part),
        }
        for (&id, row) in list.iter().zip(rows.chunks_exact(D)) {
            projected[id as usize * D..][..D].copy_from_slice(row);
        }
    }
}

/// The tensors of one update under the names of the layers.
pub(crate) struct UpdateWeights<'a> {
    pub checkpoint: &'a Checkpoint,
    pub i: usize,
}

impl<'a> UpdateWeights<'a> {
    fn tensor(&self, name: &str) -> &'a [f32] {
        &self.checkpoint.tensors[name].data
    }

    /// Tensor `layer.i.part`.
    pub fn at(&self, layer: &str, part: &str) -> &'a [f32] {
        self.tensor(&format!("{layer}.{}.{part}", self.i))
    }

    /// The rows that depend on a position's mark alone, added up: direction, both query flags, and the rows 0 of the
    /// two tables that published weights carry along.
    pub fn marks(&self) -> Vec<f32> {
        let flags = self.checkpoint.meta.flag_tables();
        let table = |name: &str| self.at(name, "weight");
        let mut marks = Vec::with_capacity(16 * D);
        for mark in 0..16 {
            let rows =
                [(table("emb_direction"), mark & 3), (table(flags[0]), mark >> 2 & 1), (table(flags[1]), mark >> 3)];
            for c in 0..D {
                let sum: f32 = rows.iter().map(|(t, row)| t[row * D + c]).sum();
                marks.push(sum + table("emb_restart")[c] + table("emb_neighbor")[c]);
            }
        }
        marks
    }

    pub fn gru(&self) -> gru::Weights<'a> {
        let net = |part: &str| self.tensor(&format!("net.{}.{part}", self.i));
        let direction = |way: &str| gru::Direction {
            w_ih: net(&format!("gru.weight_ih_l0{way}")),
            w_hh: net(&format!("gru.weight_hh_l0{way}")),
            b_ih: net(&format!("gru.bias_ih_l0{way}")),
            b_hh: net(&format!("gru.bias_hh_l0{way}")),
        };
        gru::Weights {
            norm: net("gru_norm.weight"),
            directions: [direction(""), direction("_reverse")],
            out: net("gru_out.weight"),
        }
    }

    pub fn attention(&self) -> attention::Weights<'a> {
        let net = |part: &str| self.tensor(&format!("net.{}.{part}.weight", self.i));
        attention::Weights {
            position: self.at("emb_position", "weight"),
            norm: net("attention_norm"),
            q: net("attention.q"),
            k: net("attention.k"),
            v: net("attention.v"),
            out: net("attention.out"),
        }
    }

    pub fn feed_forward(&self) -> swiglu::Weights<'a> {
        let net = |part: &str| self.tensor(&format!("net.{}.{part}", self.i));
        swiglu::Weights {
            norm: net("ffn_norm.weight"),
            w1: net("feed_forward.w1.weight"),
            w3: net("feed_forward.w3.weight"),
            w2: net("feed_forward.w2.weight"),
        }
    }

    /// Equal weights are the softmax of equal logits: a mean has zeros for their parameters.
    pub fn consensus(&self, side: &str) -> consensus::Weights<'a> {
        static EQUAL: [f32; H * D] = [0.0; H * D];
        let (to, logit) = (format!("to_{side}"), format!("{side}_logit"));
        let (logit, logit_bias) = match self.checkpoint.meta.consensus {
            Averaging::Softmax => (self.at(&logit, "weight"), self.at(&logit, "bias")),
            Averaging::Mean => (&EQUAL[..], &EQUAL[..H]),
        };
        consensus::Weights { value: self.at(&to, "weight"), value_bias: self.at(&to, "bias"), logit, logit_bias }
    }
}
