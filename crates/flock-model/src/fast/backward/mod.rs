//! The gradient of a training batch, fast: each query forward and back on one thread, its gradients
//! summed in the order of the batch, so that no number of threads changes a bit. Held to
//! [`PlainGradient`](crate::plain::PlainGradient).
//!
//! Everything the way back needs is kept, not computed again: some 5 KB per walk position and update,
//! 180 MB for a query at n = 16 and 128 positions. Writing and reading it takes a few percent of the time
//! that computing it again would.

mod update;

use std::sync::{Mutex, MutexGuard};

use flock_kernels::{AlignedVec, Engine, head};
use flock_walk::WalkQuery;
use rayon::prelude::*;

use super::pass::{Model, PassBuffers};
use super::update::{Parallelism, UpdateCache};
use crate::input::{Draw, ModelError};
use crate::plain::{PlainStates, add, query_rows, query_rows_backward};
use crate::step::{Example, Gradient, StepInput, StepOutput};
use crate::tensors::ModelTensors;
use crate::weights::Weights;
use update::{BackwardBuffers, UpdateBackward};

/// Computes gradients on the threads of its own pool.
pub struct FastGradient {
    engine: Engine,
    pool: rayon::ThreadPool,
    buffers: Mutex<Vec<QueryBuffers>>,
    gradients: Mutex<Vec<Vec<f32>>>, // laid out like the weights
}

/// Buffers of one query, kept from query to query.
#[derive(Default)]
struct QueryBuffers {
    pass: PassBuffers,
    caches: Vec<UpdateCache>,
    back: BackwardBuffers,
    hidden: [AlignedVec<f32>; 2], // of the head, (rows, 2D) each
}

impl FastGradient {
    /// Starts a pool of `threads` threads.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn new(engine: Engine, threads: usize) -> Result<FastGradient, rayon::ThreadPoolBuildError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build()?;
        Ok(FastGradient { engine, pool, buffers: Mutex::default(), gradients: Mutex::default() })
    }
}

/// Locks a list of spare buffers. A poisoned lock means a panic elsewhere; buffers hold nothing that a
/// panic could leave half done.
fn lock<T>(buffers: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    buffers.lock().unwrap_or_else(|e| e.into_inner())
}

impl Gradient for FastGradient {
    fn gradient(
        &mut self,
        weights: &Weights,
        input: &StepInput<'_>,
        gradient: &mut [f32],
    ) -> Result<StepOutput, ModelError> {
        // Not checked: weights that have gone astray must show in the loss, where the query is known.
        let model = Model::pack(weights, String::new(), self.engine)?;
        for example in input.examples {
            model.check(input.view.topology, &example.query)?;
        }
        let tensors = weights.views();
        let pack = |update| UpdateBackward::new(self.engine, &weights.meta, update);
        let back: Vec<UpdateBackward> = tensors.updates.iter().map(pack).collect();
        let head = head::Backward::new(self.engine, tensors.head.weights());
        let step = Step { weights, tensors, model: &model, back: &back, head: &head, input };
        let (buffers, gradients) = (&self.buffers, &self.gradients);
        let results: Vec<(f64, Vec<f32>)> = self.pool.install(|| {
            let run = |example| {
                let mut own = lock(buffers).pop().unwrap_or_default();
                let mut d = lock(gradients).pop().unwrap_or_default();
                d.clear();
                d.resize(weights.values.len(), 0.0);
                let loss = step.run(example, &mut own, &mut d);
                lock(buffers).push(own);
                (loss, d)
            };
            input.examples.par_iter().with_max_len(1).map(run).collect()
        });
        gradient.fill(0.0);
        let mut losses = Vec::with_capacity(results.len());
        for (loss, d) in results {
            add(gradient, &d);
            losses.push(loss);
            lock(gradients).push(d);
        }
        let loss = losses.iter().sum::<f64>() / input.loss.divisor(losses.len());
        Ok(StepOutput { losses, loss })
    }
}

/// What the queries of a step share.
struct Step<'a> {
    weights: &'a Weights,
    tensors: ModelTensors<&'a [f32]>,
    model: &'a Model,
    back: &'a [UpdateBackward],
    head: &'a head::Backward,
    input: &'a StepInput<'a>,
}

impl Step<'_> {
    /// Computes the loss of one query, and adds its share of the batch's gradient to `gradient`.
    fn run(&self, example: &Example, buffers: &mut QueryBuffers, gradient: &mut [f32]) -> f64 {
        let QueryBuffers { pass, caches, back, hidden } = buffers;
        let input = self.input;
        let seed = input.seed_of(example);
        let draw = Draw { walks: input.walks.max(1), seed, pass: input.step, options: input.options };
        caches.resize_with(self.back.len(), UpdateCache::default);
        self.model.forward(input.view, &example.query, draw, pass, Parallelism::OneThread, caches);

        let mut d = self.weights.table().views_mut(gradient);
        let (loss, mut d_states) = self.scores(example, pass, &mut d, hidden);
        let ModelTensors { initial: d_initial, updates: d_updates, .. } = &mut d;
        let updates = self.back.iter().zip(&self.tensors.updates).zip(d_updates).zip(&*caches);
        for (((update, w), d), cache) in updates.rev() {
            update.run(w, &self.tensors.initial, cache, &mut d_states, d, d_initial, back);
        }
        loss
    }

    /// Computes the loss of a query whose states `pass` holds, and the gradients of those states: nodes,
    /// types. The head's, the end layers' and the initial states' are added to `d`.
    fn scores(
        &self,
        example: &Example,
        pass: &PassBuffers,
        d: &mut ModelTensors<&mut [f32]>,
        hidden: &mut [AlignedVec<f32>; 2],
    ) -> (f64, [Vec<f32>; 2]) {
        let (states, recorder) = pass.states();
        let [node_init, type_init] = self.tensors.initial;
        // In local ids: one row more than was met, the initial state, stands for all that was not.
        let all = PlainStates {
            nodes: [&states.nodes[..], node_init].concat(),
            types: [&states.types[..], type_init].concat(),
        };
        let node = |v: u32| recorder.local_node(v).unwrap_or(recorder.nodes().len() as u32);
        let ty = |t: u32| recorder.local_type(t).unwrap_or(recorder.types().len() as u32);
        let (query, candidates): (WalkQuery, Vec<u32>) = match example.query {
            WalkQuery::Entity { head, relation } => {
                let query = WalkQuery::Entity { head: node(head), relation: ty(relation) };
                (query, example.candidates.iter().map(|c| node(*c)).collect())
            }
            WalkQuery::Relation { head, tail } => {
                let query = WalkQuery::Relation { head: node(head), tail: node(tail) };
                (query, example.candidates.iter().map(|c| ty(*c)).collect())
            }
        };
        // Many candidates may share the initial state: a row is scored once.
        let (rows, place) = distinct(&candidates);
        let q = query_rows(&self.tensors, &query, &all, &rows); // (rows, D)
        let mut row_logits = vec![0.0; rows.len()];
        self.model.head().forward_kept(&q, hidden, &mut row_logits);

        let logits: Vec<f32> = place.iter().map(|&i| row_logits[i as usize]).collect();
        let (batch, count) = (self.input.examples.len(), candidates.len());
        let mut d_logits = vec![0.0; count];
        let loss = self.input.loss;
        let share = loss.run(example, &logits, batch, &mut d_logits);
        let mut d_rows = vec![0.0; rows.len()];
        place.iter().zip(&d_logits).for_each(|(&i, d)| d_rows[i as usize] += d);

        let mut d_q = vec![0.0; q.len()];
        self.head.run(&q, hidden, &d_rows, &mut d_q, &mut d.head.gradients());
        let mut d_all = all.zeros_like();
        query_rows_backward(&self.tensors, &query, &all, &rows, &d_q, &mut d_all, d);
        let mut d_states = [d_all.nodes, d_all.types];
        for (d_states, d_initial) in d_states.iter_mut().zip(&mut d.initial) {
            add(d_initial, &d_states.split_off(d_states.len() - d_initial.len()));
        }
        (f64::from(share) * loss.divisor(batch), d_states)
    }
}

/// Returns the different ones of `ids` in the order they come, and the place of each of `ids` among them.
fn distinct(ids: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut place_of = vec![u32::MAX; ids.iter().max().map_or(0, |m| *m as usize + 1)];
    let mut rows = Vec::new();
    let place = ids.iter().map(|&id| {
        let place = &mut place_of[id as usize];
        if *place == u32::MAX {
            *place = rows.len() as u32;
            rows.push(id);
        }
        *place
    });
    let place = place.collect();
    (rows, place)
}

#[cfg(test)]
mod tests {
    use flock_kernels::Precision;

    use super::*;
    use crate::bench::synthetic_graph;
    use crate::init::initial_weights;
    use crate::input::View;
    use crate::metadata::{Metadata, ProcessorKind, Task};

    #[test]
    fn a_training_pass_computes_what_inference_computes() {
        let graph = synthetic_graph(60, 5, 240, 4);
        let view = View { topology: &graph, mask: None };
        for (task, query) in [
            (Task::Entity, WalkQuery::Entity { head: 3, relation: 2 }),
            (Task::Relation, WalkQuery::Relation { head: 3, tail: 7 }),
        ] {
            for &processor in ProcessorKind::ALL {
                let meta = Metadata { length: 10, updates: 3, processor, ..Metadata::published(task) };
                let weights = initial_weights(meta, 8).unwrap().weights;
                for engine in Engine::all() {
                    let model = Model::pack(&weights, String::new(), engine).unwrap();
                    let draw = Draw { walks: 5, seed: 3, pass: 1, options: model.walk_options() };
                    let (mut asked, mut trained) = (PassBuffers::default(), PassBuffers::default());
                    let want = model.pass(view, &query, draw, &mut asked, Parallelism::OneThread);
                    let mut caches: Vec<UpdateCache> = (0..3).map(|_| UpdateCache::default()).collect();
                    model.forward(view, &query, draw, &mut trained, Parallelism::OneThread, &mut caches);
                    let got = model.score(graph.num_relations(), &query, &mut trained, Parallelism::OneThread);
                    assert_eq!((&got.ids, &got.visits), (&want.ids, &want.visits));
                    let pairs = got.logits.iter().zip(&want.logits).chain([(&got.unreached, &want.unreached)]);
                    let off =
                        pairs.map(|(g, w)| (g - w).abs()).fold(0f32, |m, d| if d > m || d.is_nan() { d } else { m });
                    // The GRU's kernel that keeps its gates rounds the new state otherwise than the one that
                    // does not (z and n apart, instead of one division for both). All else is the same to the
                    // last bit. In bf16 such a difference may move a rounded operand by one part in 256.
                    let bound = match (processor, engine.precision()) {
                        (ProcessorKind::Transformer, _) => 0.0,
                        (ProcessorKind::Gru, Precision::F32) => 2e-6,
                        (ProcessorKind::Gru, Precision::Bf16) => 1e-2,
                    };
                    assert!(off <= bound, "{task} {processor} {engine:?}: off by {off}");
                }
            }
        }
    }
}
