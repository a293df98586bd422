//! The gradient of a training batch, fast: each query forward and back on one thread, its gradients summed in the order of
//! the batch, so that no number of threads changes a bit. Held to [`PlainGradient`](crate::plain::PlainGradient).
//!
//! Everything the way back needs is kept, not computed again: some 5 KB per walk position and update, 180 MB for a query at
//! n = 16 and 128 positions. Writing and reading it takes a few percent of the time that computing it again would.

mod update;

use std::sync::Mutex;

use flock_kernels::{Aligned, D, Engine, head};
use flock_walk::WalkQuery;
use rayon::prelude::*;

use crate::checkpoint::Checkpoint;
use crate::fast::pass::{Draw, Model, ModelError, PassBuffers};
use crate::fast::update::Kept;
use crate::parameters::Parameters;
use crate::plain::backward::{Gradients, HEAD, add, lend, query_rows_backward, zeros};
use crate::plain::{PlainStates, head_weights, query_rows};
use crate::step::{Example, Gradient, StepInput, StepOutput};
use update::{BackwardBuffers, UpdateBackward};

/// Computes gradients on the threads of its own pool.
pub struct FastGradient {
    engine: Engine,
    pool: rayon::ThreadPool,
    buffers: Mutex<Vec<Buffers>>,
}

/// Buffers of one query, kept from query to query.
#[derive(Default)]
struct Buffers {
    pass: PassBuffers,
    kept: Vec<Kept>,
    back: BackwardBuffers,
    head: HeadBuffers,
}

#[derive(Default)]
struct HeadBuffers {
    hidden: [Aligned<f32>; 2], // (rows, HIDDEN) each
}

impl FastGradient {
    /// On `threads` threads of this process.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn new(engine: Engine, threads: usize) -> Result<FastGradient, rayon::ThreadPoolBuildError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build()?;
        Ok(FastGradient { engine, pool, buffers: Mutex::default() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Buffers>> {
        // A poisoned lock means a panic elsewhere; buffers hold nothing that a panic could leave half done.
        self.buffers.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Gradient for FastGradient {
    fn gradient(
        &mut self,
        parameters: &Parameters,
        input: &StepInput<'_>,
        gradient: &mut [f32],
    ) -> Result<StepOutput, ModelError> {
        let meta = parameters.meta.clone();
        let checkpoint = Checkpoint { meta, tensors: parameters.tensors(), hash: String::new() };
        let model = Model::new(&checkpoint, self.engine)?;
        for example in input.examples {
            model.check(input.view.topology, &example.query)?;
        }
        let back: Vec<UpdateBackward> =
            (0..checkpoint.meta.updates).map(|i| UpdateBackward::new(self.engine, &checkpoint, i)).collect();
        let head = head::Backward::new(self.engine, head_weights(&checkpoint));
        let step = Step { checkpoint: &checkpoint, model: &model, back: &back, head: &head, input };
        let this = &*self;
        let results: Vec<(f64, Gradients)> = this.pool.install(|| {
            let run = |example| {
                let mut buffers = this.lock().pop().unwrap_or_default();
                let result = step.run(example, &mut buffers);
                this.lock().push(buffers);
                result
            };
            input.examples.par_iter().with_max_len(1).map(run).collect()
        });
        gradient.fill(0.0);
        for (_, gradients) in &results {
            for (name, range) in parameters.names() {
                add(&mut gradient[range], &gradients[name].data);
            }
        }
        let losses: Vec<f64> = results.iter().map(|(loss, _)| *loss).collect();
        let loss = losses.iter().sum::<f64>() / input.loss.divisor(losses.len());
        Ok(StepOutput { losses, loss })
    }
}

/// What the queries of a step share.
struct Step<'a> {
    checkpoint: &'a Checkpoint,
    model: &'a Model,
    back: &'a [UpdateBackward],
    head: &'a head::Backward,
    input: &'a StepInput<'a>,
}

impl Step<'_> {
    /// One query: its loss, and its share of the batch's gradient.
    fn run(&self, example: &Example, buffers: &mut Buffers) -> (f64, Gradients) {
        let Buffers { pass, kept, back, head } = buffers;
        let input = self.input;
        let seed = input.seed_of(example);
        let draw = Draw { walks: input.walks.max(1), seed, pass: input.step, options: input.options };
        kept.resize_with(self.back.len(), Kept::default);
        let mut gradients = zeros(self.checkpoint);
        self.model.pass_kept(input.view, &example.query, draw, pass, kept);

        let (loss, mut d_states) = self.scores(example, pass, &mut gradients, head);
        for (update, kept) in self.back.iter().zip(kept.iter()).rev() {
            update.run(self.checkpoint, kept, &mut d_states, &mut gradients, back);
        }
        (loss, gradients)
    }

    /// The loss of a query whose states `pass` holds, and the gradients of those states: nodes, types. The head's, the end
    /// layers' and the initial states' are added to `gradients`.
    fn scores(
        &self,
        example: &Example,
        pass: &PassBuffers,
        gradients: &mut Gradients,
        buffers: &mut HeadBuffers,
    ) -> (f64, [Vec<f32>; 2]) {
        let (states, recorder) = pass.states();
        let tensor = |name: &str| &self.checkpoint.tensors[name].data[..];
        // In local ids: one row more than was met, the initial state, stands for all that was not.
        let all = PlainStates {
            nodes: [&states.nodes[..], tensor("node_init")].concat(),
            types: [&states.types[..], tensor("type_init")].concat(),
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
        let q = query_rows(self.checkpoint, &query, &all, &rows); // (rows, D)
        let mut row_logits = vec![0.0; rows.len()];
        self.model.head().forward_kept(&q, &mut buffers.hidden, &mut row_logits);

        let logits: Vec<f32> = place.iter().map(|&i| row_logits[i as usize]).collect();
        let (batch, count) = (self.input.examples.len(), candidates.len());
        let mut d_logits = vec![0.0; count];
        let loss = self.input.loss;
        let share = loss.run(example, &logits, batch, &mut d_logits);
        let mut d_rows = vec![0.0; rows.len()];
        place.iter().zip(&d_logits).for_each(|(&i, d)| d_rows[i as usize] += d);

        let mut d_q = vec![0.0; q.len()];
        lend(gradients, HEAD, |[d_w0, d_b0, d_w2, d_b2, d_w4, d_b4]| {
            let mut d_w = head::Gradients { d_w0, d_b0, d_w2, d_b2, d_w4, d_b4 };
            self.head.run(&q, &mut buffers.hidden, &d_rows, &mut d_q, &mut d_w);
        });
        let mut d_all = PlainStates { nodes: vec![0.0; all.nodes.len()], types: vec![0.0; all.types.len()] };
        query_rows_backward(self.checkpoint, &query, &all, &rows, &d_q, &mut d_all, gradients);
        let mut d_states = [d_all.nodes, d_all.types];
        for (d, name) in d_states.iter_mut().zip(["node_init", "type_init"]) {
            let initial = d.split_off(d.len() - D);
            lend(gradients, [name], |[d]| add(d, &initial));
        }
        (f64::from(share) * loss.divisor(batch), d_states)
    }
}

/// The different ones of `ids` in the order they come, and the place of each of `ids` among them.
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
