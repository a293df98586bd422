//! The model: `walk → record → process → consensus`, `I` times, then a score for every candidate.
//!
//! A pass over one query is one run of [`Model::pass`]; training runs the same pass with a
//! sink that keeps what the way back needs. It touches what its walks touch: no buffer and no
//! loop here is as long as the graph has nodes or edges. Sections are those of
//! `docs/reference/model.md`.

use std::time::Instant;

use flock_graph::{NodeId, Topology, TypeId};
use flock_kernels::consensus::Side;
use flock_kernels::head::{self, Head};
use flock_kernels::linear::{Activation, Linear};
use flock_kernels::{AlignedVec, Engine};
use flock_walk::{Key, Recorder, Records, Starts, WalkOptions, WalkQuery, sample_from};
use rayon::prelude::*;

use super::update::{Parallelism, Refresh, Stages, States, Update, UpdateCache, Workspace, lap};
use crate::checkpoint::Checkpoint;
pub use crate::input::{Draw, ModelError, SizeError, View, query_number};
use crate::metadata::{Metadata, Task};
use crate::weights::Weights;

/// A trained or initial model, packed for an engine.
pub struct Model {
    meta: Metadata,
    hash: String,
    engine: Engine,
    initial: [Vec<f32>; 2], // node and type: (D) each
    updates: Vec<Update>,
    head: Head,
    /// What a relation model makes of the query's head and tail.
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
    queries: AlignedVec<f32>, // (candidates, D)
    head: head::Scratch,
}

impl PassBuffers {
    /// Returns the states the last pass left, and the recorder that numbers them.
    pub fn states(&self) -> (&States, &Recorder) {
        (&self.states, &self.recorder)
    }

    /// Returns the raw walks of the last update: nodes, types and directions, (W, L) each.
    pub fn walks(&self) -> (&[NodeId], &[TypeId], &[u8]) {
        (&self.nodes, &self.types, &self.dirs)
    }

    /// Finds where the last update's walks stood on a node (or showed a type), in their order, and what
    /// each of these positions weighed in the consensus, per head of `model`, whose pass it was.
    pub fn weights(&self, model: &Model, side: Side, id: u32) -> Vec<(usize, Vec<f32>)> {
        let (local, locals) = match side {
            Side::Node => (self.recorder.local_node(id), &self.records.node),
            Side::Type => (self.recorder.local_type(id), &self.records.ty),
        };
        let Some(local) = local else { return Vec::new() };
        let positions = locals.iter().enumerate().filter(|(_, l)| **l == local).map(|(at, _)| at);
        positions.zip(self.work.weights(side, local, model.meta.heads)).collect()
    }

    /// Returns what the last consensus read at a node or type, by local id.
    #[doc(hidden)]
    pub fn group_rows(&self, side: Side, local: u32) -> Vec<Vec<f32>> {
        self.work.group_rows(side, local)
    }

    /// Makes buffers that hold these states, numbered by this recorder.
    pub fn with_states(recorder: Recorder, states: States) -> PassBuffers {
        PassBuffers { recorder, states, ..PassBuffers::default() }
    }
}

/// Receives what a pass computes on its way.
pub(crate) trait PassSink {
    /// Gives the place where update `i` leaves what the way back needs; `None` if nobody goes back.
    fn cache(&mut self, i: usize) -> Option<&mut UpdateCache>;
    /// Sees the buffers after update `i`.
    fn after_update(&mut self, i: usize, buffers: &PassBuffers);
}

/// Inference: keeps nothing and shows each update to somebody.
struct Watch<'a>(&'a mut dyn FnMut(usize, &PassBuffers));

impl PassSink for Watch<'_> {
    fn cache(&mut self, _: usize) -> Option<&mut UpdateCache> {
        None
    }
    fn after_update(&mut self, i: usize, buffers: &PassBuffers) {
        (self.0)(i, buffers);
    }
}

/// Training: one cache for each update.
impl PassSink for Vec<UpdateCache> {
    fn cache(&mut self, i: usize) -> Option<&mut UpdateCache> {
        self.get_mut(i)
    }
    fn after_update(&mut self, _: usize, _: &PassBuffers) {}
}

impl Model {
    /// Packs a checkpoint.
    pub fn new(checkpoint: &Checkpoint, engine: Engine) -> Result<Model, ModelError> {
        Model::pack(&checkpoint.weights, checkpoint.hash.clone(), engine)
    }

    /// Packs weights; `hash` is what [`Model::hash`] returns.
    pub(crate) fn pack(weights: &Weights, hash: String, engine: Engine) -> Result<Model, ModelError> {
        let meta = weights.meta.clone();
        SizeError::check(&meta).map_err(ModelError::Size)?;
        let tensors = weights.views();
        Ok(Model {
            hash,
            engine,
            initial: tensors.initial.map(<[f32]>::to_vec),
            updates: (0..meta.updates).map(|i| Update::new(engine, &meta, &tensors, i)).collect(),
            head: Head::new(engine, tensors.head.weights()),
            endpoints: tensors
                .endpoints
                .map(|layers| layers.map(|l| Linear::new(engine, l.weight, l.bias, meta.width))),
            meta,
        })
    }

    /// Returns what the model is.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// Returns the checkpoint's hash.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns how its kernels run.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns how walks are drawn for this model; see [`Metadata::walk_options`].
    pub fn walk_options(&self) -> WalkOptions {
        self.meta.walk_options()
    }

    /// Returns the updates, in order.
    pub fn updates(&self) -> &[Update] {
        &self.updates
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Checks that the query is of the model's task and inside the graph.
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

    /// Runs one pass over one query, which [`Model::check`] has accepted.
    pub fn pass(
        &self,
        view: View<'_>,
        query: &WalkQuery,
        draw: Draw,
        buffers: &mut PassBuffers,
        parallelism: Parallelism,
    ) -> PassScores {
        self.pass_watched(view, query, draw, buffers, parallelism, &mut |_, _| ())
    }

    /// As [`Model::pass`]; `watch` sees the buffers after each update.
    pub fn pass_watched(
        &self,
        view: View<'_>,
        query: &WalkQuery,
        draw: Draw,
        buffers: &mut PassBuffers,
        parallelism: Parallelism,
        watch: &mut dyn FnMut(usize, &PassBuffers),
    ) -> PassScores {
        let mut stages = self.forward(view, query, draw, buffers, parallelism, &mut Watch(watch));
        let mut clock = Instant::now();
        let mut scores = self.score(view.topology.num_relations(), query, buffers, parallelism);
        lap(&mut clock, &mut stages.head);
        scores.stages = stages;
        scores
    }

    /// Runs the updates of a pass; [`PassBuffers::states`] has the states they leave.
    pub(crate) fn forward(
        &self,
        view: View<'_>,
        query: &WalkQuery,
        draw: Draw,
        buffers: &mut PassBuffers,
        parallelism: Parallelism,
        sink: &mut dyn PassSink,
    ) -> Stages {
        let mut stages = Stages::default();
        buffers.recorder.begin(query, view.topology.no_type());
        buffers.states.clear();
        for (i, update) in self.updates.iter().enumerate() {
            // Section 2: the random walks.
            let mut clock = Instant::now();
            self.walk(view, query, draw, i as u32, buffers, parallelism);
            lap(&mut clock, &mut stages.walk);
            // Section 3: the recording protocol.
            let PassBuffers { recorder, records, nodes, types, dirs, states, work, .. } = buffers;
            recorder.record(self.meta.length, nodes, types, dirs, records);
            lap(&mut clock, &mut stages.record);
            // Section 5: the sequence processor and the consensus protocol.
            let met = [recorder.nodes().len(), recorder.types().len()];
            match sink.cache(i) {
                None => {
                    let refresh = self.refresh(i, query, recorder);
                    update.run(records, met, &refresh, states, work, parallelism, &mut stages, None);
                }
                // The way back asks for every state.
                Some(cache) => {
                    let all = [Refresh::All, Refresh::All];
                    update.run(records, met, &all, states, work, parallelism, &mut stages, Some(&mut *cache));
                    std::mem::swap(&mut cache.records, records);
                }
            }
            sink.after_update(i, buffers);
        }
        stages
    }

    /// Tells which states the rest of the pass reads after update `i`: besides the candidates' states, the
    /// last one is asked only for that of the query's type, or those of its two ends.
    pub fn refresh(&self, i: usize, query: &WalkQuery, recorder: &Recorder) -> [Refresh; 2] {
        match *query {
            _ if i + 1 < self.updates.len() => [Refresh::All, Refresh::All],
            WalkQuery::Entity { relation, .. } => {
                [Refresh::All, Refresh::Only(recorder.local_type(relation).into_iter().collect())]
            }
            WalkQuery::Relation { head, tail } => {
                let mut ends: Vec<u32> = [head, tail].into_iter().filter_map(|v| recorder.local_node(v)).collect();
                ends.dedup();
                [Refresh::Only(ends), Refresh::All]
            }
        }
    }

    fn walk(
        &self,
        view: View<'_>,
        query: &WalkQuery,
        draw: Draw,
        update: u32,
        buffers: &mut PassBuffers,
        parallelism: Parallelism,
    ) {
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
        match parallelism {
            Parallelism::OneThread => run(0, &mut buffers.nodes, &mut buffers.types, &mut buffers.dirs),
            Parallelism::Pool => buffers
                .nodes
                .par_chunks_mut(part)
                .zip(buffers.types.par_chunks_mut(part))
                .zip(buffers.dirs.par_chunks_mut(part))
                .enumerate()
                .for_each(|(i, ((nodes, types), dirs))| run(i * PART, nodes, types, dirs)),
        }
    }

    /// Returns the state that a type has after a pass; the initial one if no walk met it. After an entity
    /// query only the query's own type has been through the last update.
    pub fn type_state<'b>(&'b self, buffers: &'b PassBuffers, t: TypeId) -> &'b [f32] {
        let width = self.meta.width;
        let row = |i: u32| &buffers.states.types[i as usize * width..][..width];
        buffers.recorder.local_type(t).map_or(&self.initial[1], row)
    }

    /// Computes a logit for each candidate the walks reached, and one for all others (section 6).
    pub fn score(
        &self,
        num_relations: u32,
        query: &WalkQuery,
        buffers: &mut PassBuffers,
        parallelism: Parallelism,
    ) -> PassScores {
        let PassBuffers { recorder, states, queries, head, .. } = buffers;
        let width = self.meta.width;
        let row = |rows: &[f32], initial: &[f32], local: Option<u32>| -> Vec<f32> {
            local.map_or(initial, |i| &rows[i as usize * width..][..width]).to_vec()
        };
        // What is added to every candidate's own state, and where those states are: rows, and the ids they belong to.
        let (base, own): (Vec<f32>, Candidates<'_>) = match *query {
            WalkQuery::Entity { relation, .. } => {
                let base = row(&states.types, &self.initial[1], recorder.local_type(relation));
                let ids = recorder.nodes().to_vec();
                let rows = (0..ids.len() as u32).collect();
                (base, Candidates { states: &states.nodes, initial: &self.initial[0], rows, ids })
            }
            WalkQuery::Relation { head, tail } => {
                let mut base = vec![0.0; width];
                for (layer, node) in self.endpoints.iter().flatten().zip([head, tail]) {
                    let mut out = vec![0.0; width];
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
        queries.resize((own.ids.len() + 1) * width);
        for (i, q) in queries.chunks_exact_mut(width).enumerate() {
            let state = own.rows.get(i).map_or(own.initial, |r| &own.states[*r as usize * width..][..width]);
            q.iter_mut().zip(state.iter().zip(&base)).for_each(|(q, (state, base))| *q = state + base);
        }
        let ids = own.ids;
        let mut logits = vec![0.0; ids.len() + 1];
        match parallelism {
            Parallelism::OneThread => self.head.forward(queries, &mut logits, head),
            Parallelism::Pool => {
                const PART: usize = 96;
                logits
                    .par_chunks_mut(PART)
                    .zip(queries.par_chunks(PART * width))
                    .for_each_init(head::Scratch::default, |head, (logits, q)| self.head.forward(q, logits, head));
            }
        }
        let unreached = logits.pop().unwrap_or(0.0);
        PassScores { ids, logits, visits, unreached, stages: Stages::default() }
    }
}
