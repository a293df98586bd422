//! The model: `walk → record → process → consensus`, `I` times, then a score for every candidate.
//!
//! A pass over one query is one run of [`Model::pass`]. It touches what its walks touch: no buffer and no loop here is as
//! long as the graph has nodes or edges.

use std::time::Instant;

use flock_graph::{Mask, NodeId, Topology, TypeId};
use flock_kernels::consensus::Side;
use flock_kernels::head::{self, Head};
use flock_kernels::linear::{Activation, Linear};
use flock_kernels::{Aligned, D, Engine, F, H};
use flock_walk::{Key, Recorder, Records, Starts, WalkOptions, WalkQuery, sample_from};
use rayon::prelude::*;

use crate::checkpoint::{Checkpoint, Metadata, Task};
use crate::fast::update::Kept;
use crate::fast::update::{Stages, States, Team, Update, Wanted, Workspace, lap};
use crate::plain::head_weights;

/// Why a checkpoint or a query does not fit the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Sizes the kernels are not compiled for.
    #[error("the model has {name} {found}, this build runs {expected} only")]
    Size {
        /// What has the wrong size.
        name: &'static str,
        /// In the checkpoint.
        found: usize,
        /// In this build.
        expected: usize,
    },
    /// A relation query to an entity model, or the reverse.
    #[error("this is {article} {found} model: it cannot answer {asked}; give --model one trained for that task",
        article = if *.found == Task::Entity { "an" } else { "a" },
        asked = if *.found == Task::Entity { "(head, ?, tail)" } else { "(head, relation, ?)" })]
    Task {
        /// The model's task.
        found: Task,
    },
    /// A node or relation outside the graph.
    #[error("{what} {id} is outside the graph, which has {count}")]
    OutOfRange {
        /// "entity" or "type".
        what: &'static str,
        /// The id.
        id: u32,
        /// How many there are.
        count: u32,
    },
    /// Whoever asked has gone.
    #[error("stopped")]
    Stopped,
}

/// A graph to walk on, some of its edges perhaps hidden.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The graph.
    pub topology: &'a Topology,
    /// What is hidden from the walks.
    pub mask: Option<&'a Mask>,
}

/// How the walks of a pass are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Base walk count `n`.
    pub walks: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// Which pass of the ensemble.
    pub pass: u32,
    /// Switches; the length is the model's.
    pub options: WalkOptions,
}

/// A trained or initial model, packed for an engine.
pub struct Model {
    meta: Metadata,
    hash: String,
    engine: Engine,
    initial: [Vec<f32>; 2], // node and type: (D) each
    updates: Vec<Update>,
    head: Head,
    /// `head_to_query` and `tail_to_query` of a relation model.
    endpoints: Option<[Linear; 2]>,
}

/// The scores of one pass: those candidates that walks reached, and the one score all others share.
#[derive(Clone, Debug, Default)]
pub struct PassScores {
    /// Nodes (entity query) or raw relations (relation query), in the order of their first visit.
    pub ids: Vec<u32>,
    /// Their logits.
    pub logits: Vec<f32>,
    /// At how many positions each stood (nodes), over all updates; zeros for relations.
    pub visits: Vec<u32>,
    /// The logit of every candidate not in `ids`.
    pub unreached: f32,
    /// Where the time went.
    pub stages: Stages,
}

/// The candidates a pass has met, as the head reads them.
struct Candidates<'a> {
    states: &'a [f32],  // (N or T, D)
    initial: &'a [f32], // (D)
    rows: Vec<u32>,     // of `states`
    ids: Vec<u32>,      // nodes or raw relations
}

/// Buffers of one pass, kept from pass to pass.
#[derive(Default)]
pub struct PassBuffers {
    recorder: Recorder,
    records: Records,
    nodes: Vec<NodeId>, // (W, L)
    types: Vec<TypeId>, // (W, L)
    dirs: Vec<u8>,      // (W, L)
    states: States,
    work: Workspace,
    queries: Aligned<f32>, // (candidates, D)
    head: head::Scratch,
}

impl PassBuffers {
    /// The states the last pass left, and the recorder that numbers them.
    pub fn states(&self) -> (&States, &Recorder) {
        (&self.states, &self.recorder)
    }

    /// The raw walks of the last update: nodes, types and directions, (W, L) each.
    pub fn walks(&self) -> (&[NodeId], &[TypeId], &[u8]) {
        (&self.nodes, &self.types, &self.dirs)
    }

    /// Where the last update's walks stood on a node (or showed a type), in their order, and what each of these positions
    /// weighed in the consensus, per head.
    pub fn weights(&self, side: Side, id: u32) -> Vec<(usize, [f32; H])> {
        let (local, locals) = match side {
            Side::Node => (self.recorder.local_node(id), &self.records.node),
            Side::Type => (self.recorder.local_type(id), &self.records.ty),
        };
        let Some(local) = local else { return Vec::new() };
        let positions = locals.iter().enumerate().filter(|(_, l)| **l == local).map(|(at, _)| at);
        positions.zip(self.work.weights(side, local)).collect()
    }

    /// What the last consensus read at a node or type, by local id.
    #[doc(hidden)]
    pub fn group_rows(&self, side: Side, local: u32) -> Vec<Vec<f32>> {
        self.work.group_rows(side, local)
    }

    /// Buffers that hold these states, numbered by this recorder.
    pub fn with_states(recorder: Recorder, states: States) -> PassBuffers {
        PassBuffers { recorder, states, ..PassBuffers::default() }
    }
}

/// A number for a query that depends on nothing but the query: its walks are the same in any batch.
pub fn query_number(query: &WalkQuery) -> u64 {
    match *query {
        WalkQuery::Entity { head, relation } => u64::from(head) << 32 | u64::from(relation),
        WalkQuery::Relation { head, tail } => !(u64::from(head) << 32 | u64::from(tail)),
    }
}

impl Model {
    /// Packs a checkpoint.
    pub fn new(checkpoint: &Checkpoint, engine: Engine) -> Result<Model, ModelError> {
        let meta = checkpoint.meta.clone();
        for (name, found, expected) in
            [("width", meta.width, D), ("heads", meta.heads, H), ("feed-forward width", meta.feed_forward_width(), F)]
        {
            if found != expected {
                return Err(ModelError::Size { name, found, expected });
            }
        }
        let tensor = |name: &str| &checkpoint.tensors[name].data[..];
        let linear =
            |name: &str| Linear::new(engine, tensor(&format!("{name}.weight")), tensor(&format!("{name}.bias")), D);
        Ok(Model {
            hash: checkpoint.hash.clone(),
            engine,
            initial: [tensor("node_init").to_vec(), tensor("type_init").to_vec()],
            updates: (0..meta.updates).map(|i| Update::new(engine, checkpoint, i)).collect(),
            head: Head::new(engine, head_weights(checkpoint)),
            endpoints: (meta.task == Task::Relation).then(|| [linear("head_to_query"), linear("tail_to_query")]),
            meta,
        })
    }

    /// What the model is.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// The checkpoint's hash.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// How its kernels run.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// How walks are drawn for this model; see [`Metadata::walk_options`].
    pub fn walk_options(&self) -> WalkOptions {
        self.meta.walk_options()
    }

    /// The updates, in order.
    pub fn updates(&self) -> &[Update] {
        &self.updates
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Whether the query is of the model's task and inside the graph.
    pub fn check(&self, topology: &Topology, query: &WalkQuery) -> Result<(), ModelError> {
        let found = self.meta.task;
        let node = |id: NodeId| match topology.num_nodes() {
            count if id >= count => Err(ModelError::OutOfRange { what: "entity", id, count }),
            _ => Ok(()),
        };
        match *query {
            WalkQuery::Entity { head, relation } if found == Task::Entity => {
                node(head)?;
                match topology.num_types() {
                    count if relation >= count => Err(ModelError::OutOfRange { what: "type", id: relation, count }),
                    _ => Ok(()),
                }
            }
            WalkQuery::Relation { head, tail } if found == Task::Relation => node(head).and(node(tail)),
            _ => Err(ModelError::Task { found }),
        }
    }

    /// One pass over one query, which [`Model::check`] has accepted.
    pub fn pass(
        &self,
        view: View<'_>,
        query: &WalkQuery,
        draw: Draw,
        buffers: &mut PassBuffers,
        team: Team,
    ) -> PassScores {
        self.pass_watched(view, query, draw, buffers, team, &mut |_, _| ())
    }

    /// As [`Model::pass`]; `watch` sees the buffers after each update.
    pub fn pass_watched(
        &self,
        view: View<'_>,
        query: &WalkQuery,
        draw: Draw,
        buffers: &mut PassBuffers,
        team: Team,
        watch: &mut dyn FnMut(usize, &PassBuffers),
    ) -> PassScores {
        let mut stages = Stages::default();
        buffers.recorder.begin(query, view.topology.no_type());
        buffers.states.clear();
        for (i, update) in self.updates.iter().enumerate() {
            // Section 2 of the specification; the paper's random walk.
            let mut clock = Instant::now();
            self.walk(view, query, draw, i as u32, buffers, team);
            lap(&mut clock, &mut stages.walk);
            // Section 3: the recording protocol.
            let PassBuffers { recorder, records, nodes, types, dirs, states, work, .. } = buffers;
            recorder.record(self.meta.length, nodes, types, dirs, records);
            lap(&mut clock, &mut stages.record);
            // Section 5: the sequence processor and the consensus protocol.
            let met = [recorder.nodes().len(), recorder.types().len()];
            let wanted = self.wanted(i, query, recorder);
            update.run(records, met, &wanted, states, work, team, &mut stages);
            watch(i, buffers);
        }
        let mut clock = Instant::now();
        let mut scores = self.score(view.topology.num_relations(), query, buffers, team);
        lap(&mut clock, &mut stages.head);
        scores.stages = stages;
        scores
    }

    /// What the rest of the pass reads after update `i`: besides the candidates' states, the last one is asked only for that of
    /// the query's type, or those of its two ends.
    pub fn wanted(&self, i: usize, query: &WalkQuery, recorder: &Recorder) -> [Wanted; 2] {
        match *query {
            _ if i + 1 < self.updates.len() => [Wanted::All, Wanted::All],
            WalkQuery::Entity { relation, .. } => {
                [Wanted::All, Wanted::Only(recorder.local_type(relation).into_iter().collect())]
            }
            WalkQuery::Relation { head, tail } => {
                let mut ends: Vec<u32> = [head, tail].into_iter().filter_map(|v| recorder.local_node(v)).collect();
                ends.dedup();
                [Wanted::Only(ends), Wanted::All]
            }
        }
    }

    /// The updates of a pass on one thread, with what the way back needs kept; [`PassBuffers::states`] has the states.
    pub(crate) fn pass_kept(
        &self,
        view: View<'_>,
        query: &WalkQuery,
        draw: Draw,
        buffers: &mut PassBuffers,
        kept: &mut [Kept],
    ) {
        buffers.recorder.begin(query, view.topology.no_type());
        buffers.states.clear();
        for (i, (update, kept)) in self.updates.iter().zip(kept).enumerate() {
            self.walk(view, query, draw, i as u32, buffers, Team::Solo);
            let PassBuffers { recorder, records, nodes, types, dirs, states, work, .. } = buffers;
            recorder.record(self.meta.length, nodes, types, dirs, records);
            let met = [recorder.nodes().len(), recorder.types().len()];
            update.run_kept(records, met, states, work, kept);
        }
    }

    fn walk(&self, view: View<'_>, query: &WalkQuery, draw: Draw, update: u32, buffers: &mut PassBuffers, team: Team) {
        let options = WalkOptions { length: self.meta.length, updates: self.updates.len() as u32, ..draw.options };
        let key = Key { seed: draw.seed, pass: draw.pass, update, query: query_number(query) };
        let starts = Starts::prepare(view.topology, view.mask, query, draw.walks, key, &options);
        let walks = starts.num_walks();
        let entries = walks * options.length;
        buffers.nodes.resize(entries, 0);
        buffers.types.resize(entries, 0);
        buffers.dirs.resize(entries, 0);
        const PART: usize = 16; // walks the sampler interleaves
        let part = PART * options.length;
        let run = |first: usize, nodes: &mut [NodeId], types: &mut [TypeId], dirs: &mut [u8]| {
            let range = first..first + nodes.len() / options.length;
            sample_from(&starts, view.topology, view.mask, &options, range, nodes, types, dirs);
        };
        match team {
            Team::Solo => run(0, &mut buffers.nodes, &mut buffers.types, &mut buffers.dirs),
            Team::Pool => buffers
                .nodes
                .par_chunks_mut(part)
                .zip(buffers.types.par_chunks_mut(part))
                .zip(buffers.dirs.par_chunks_mut(part))
                .enumerate()
                .for_each(|(i, ((nodes, types), dirs))| run(i * PART, nodes, types, dirs)),
        }
    }

    /// The state that a type has after a pass; the initial one if no walk met it. After an entity query only the query's own type
    /// has been through the last update.
    pub fn type_state<'b>(&'b self, buffers: &'b PassBuffers, t: TypeId) -> &'b [f32] {
        buffers.recorder.local_type(t).map_or(&self.initial[1], |i| &buffers.states.types[i as usize * D..][..D])
    }

    /// Section 6: a logit for each candidate the walks reached, and one for all others.
    pub fn score(&self, num_relations: u32, query: &WalkQuery, buffers: &mut PassBuffers, team: Team) -> PassScores {
        let PassBuffers { recorder, states, queries, head, .. } = buffers;
        let row = |rows: &[f32], initial: &[f32], local: Option<u32>| -> [f32; D] {
            let row = local.map_or(initial, |i| &rows[i as usize * D..][..D]);
            std::array::from_fn(|c| row[c])
        };
        // What is added to every candidate's own state, and where those states are: rows, and the ids they belong to.
        let (base, own): ([f32; D], Candidates<'_>) = match *query {
            WalkQuery::Entity { relation, .. } => {
                let base = row(&states.types, &self.initial[1], recorder.local_type(relation));
                let ids = recorder.nodes().to_vec();
                let rows = (0..ids.len() as u32).collect();
                (base, Candidates { states: &states.nodes, initial: &self.initial[0], rows, ids })
            }
            WalkQuery::Relation { head, tail } => {
                let mut base = [0.0; D];
                for (layer, node) in self.endpoints.iter().flatten().zip([head, tail]) {
                    let mut out = [0.0; D];
                    let state = row(&states.nodes, &self.initial[0], recorder.local_node(node));
                    layer.forward(&state, None, &mut out, Activation::None);
                    base.iter_mut().zip(out).for_each(|(s, o)| *s += o);
                }
                let raw = |(_, t): &(u32, TypeId)| *t < num_relations;
                let (rows, ids) = (0..).zip(recorder.types().iter().copied()).filter(raw).unzip();
                (base, Candidates { states: &states.types, initial: &self.initial[1], rows, ids })
            }
        };
        let visits = match query {
            WalkQuery::Entity { .. } => states.visits.clone(),
            WalkQuery::Relation { .. } => vec![0; own.ids.len()],
        };
        // One row more, the initial state, for all candidates that were not met.
        queries.resize((own.ids.len() + 1) * D);
        for (i, q) in queries.chunks_exact_mut(D).enumerate() {
            let state = own.rows.get(i).map_or(own.initial, |r| &own.states[*r as usize * D..][..D]);
            for c in 0..D {
                q[c] = state[c] + base[c];
            }
        }
        let ids = own.ids;
        let mut logits = vec![0.0; ids.len() + 1];
        match team {
            Team::Solo => self.head.forward(queries, &mut logits, head),
            Team::Pool => {
                const PART: usize = 96;
                logits
                    .par_chunks_mut(PART)
                    .zip(queries.par_chunks(PART * D))
                    .for_each_init(head::Scratch::default, |head, (logits, q)| self.head.forward(q, logits, head));
            }
        }
        let unreached = logits.pop().unwrap_or(0.0);
        PassScores { ids, logits, visits, unreached, stages: Stages::default() }
    }
}
