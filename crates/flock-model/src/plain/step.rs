//! The definition of a training step's gradient: the walks of a pass, the plain forward and backward
//! pass, the loss. Slow; whatever is faster is held to it.

use flock_kernels::embed::Positions;
use flock_walk::{Key, Recorder, Records, WalkOptions, Walks};
use rayon::prelude::*;

use super::backward::{add, backward};
use super::forward::{forward, scores};
use crate::input::{ModelError, query_number};
use crate::step::{BaseLoss, Example, Gradient, StepInput, StepOutput};
use crate::weights::Weights;

/// The gradient by plain loops, an example to each thread.
#[derive(Debug)]
pub struct PlainGradient {
    pool: rayon::ThreadPool,
}

impl PlainGradient {
    /// Starts a pool of `threads` threads.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn new(threads: usize) -> Result<PlainGradient, rayon::ThreadPoolBuildError> {
        Ok(PlainGradient { pool: rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build()? })
    }
}

impl Gradient for PlainGradient {
    fn gradient(
        &mut self,
        weights: &Weights,
        input: &StepInput<'_>,
        gradient: &mut [f32],
    ) -> Result<StepOutput, ModelError> {
        let entries: usize = input.examples.iter().map(|e| e.candidates.len()).sum();
        let weight = |example: &Example| match input.loss.base {
            BaseLoss::MeanBce => example.candidates.len() as f32 / entries as f32,
            _ => 1.0 / input.loss.divisor(input.examples.len()) as f32,
        };
        let run = |example: &Example| one(weights, input, example, weight(example));
        let parts: Vec<(f64, Vec<f32>)> =
            self.pool.install(|| input.examples.par_iter().with_max_len(1).map(run).collect());

        // Summed in the order of the examples, so that the number of threads leaves no trace.
        gradient.fill(0.0);
        let (mut losses, mut mean) = (Vec::with_capacity(parts.len()), 0.0);
        for ((loss, part), example) in parts.into_iter().zip(input.examples) {
            add(gradient, &part);
            mean += f64::from(weight(example)) * loss;
            losses.push(loss);
        }
        Ok(StepOutput { losses, loss: mean })
    }
}

/// Computes the loss of one example, and its share of the gradient.
fn one(weights: &Weights, input: &StepInput<'_>, example: &Example, weight: f32) -> (f64, Vec<f32>) {
    let (topology, query) = (input.view.topology, &example.query);
    let (length, updates) = (weights.meta.length, weights.meta.updates as u32);
    let options = WalkOptions { length, updates, ..input.options };
    let mut recorder = Recorder::new();
    recorder.begin(query, topology.no_type());
    let walks: Vec<(Walks, Records)> = (0..weights.meta.updates as u32)
        .map(|update| {
            let key = Key { seed: input.seed_of(example), pass: input.step, update, query: query_number(query) };
            let walks = Walks::sample(topology, input.view.mask, query, input.walks, key, &options);
            let mut records = Records::default();
            recorder.record(options.length, &walks.nodes, &walks.types, &walks.dirs, &mut records);
            (walks, records)
        })
        .collect();
    // The definition has a state for every node and type: ids are those of the graph.
    let positions: Vec<Positions<'_>> = walks
        .iter()
        .map(|(w, r)| Positions {
            node: &w.nodes,
            ty: &w.types,
            node_name: &r.node_name,
            type_name: &r.type_name,
            mark: &r.mark,
        })
        .collect();
    let (nodes, types) = (topology.num_nodes() as usize, topology.num_types() as usize);
    let cache = forward(weights, &positions, nodes, types);
    let logits = scores(weights, query, &cache.states, &example.candidates);
    let mut d_logits = vec![0.0; logits.len()];
    let loss = input.loss.run(example, &logits, 1, &mut d_logits);
    d_logits.iter_mut().for_each(|d| *d *= weight);
    let mut gradient = vec![0.0; weights.values.len()];
    backward(weights, query, &positions, &cache, &example.candidates, &d_logits, &mut gradient);
    (f64::from(loss), gradient)
}
