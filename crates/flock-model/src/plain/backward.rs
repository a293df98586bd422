//! The definition of the gradient: from the logits back through the head, all updates and the initial
//! states, in plain loops, on what [`forward`](super::forward::forward) has kept.
//!
//! ```text
//! logits ← head ← query rows ← states(I) ← update I−1 ← … ← update 0 ← initial states
//! ```
//! An update adds to the states it reads, so the gradient of a state runs straight through it and
//! gathers, on the way, what came through the walks. Losses are in [`flock_kernels::loss`]. Slow and
//! simple: fast training is held to it, and it to the fixtures.

use flock_kernels::embed::Positions;
use flock_kernels::{consensus, embed, head, swiglu};
use flock_walk::WalkQuery;

use super::forward::{ForwardCache, LayerInputs, PlainStates, endpoints, query_rows};
use crate::metadata::{Averaging, Metadata};
use crate::tensors::{ModelTensors, UpdateTensors};
use crate::weights::Weights;

/// Adds the gradients of every weight, given those of the candidates' logits, to `gradient`, which is
/// laid out like [`Weights::values`].
///
/// # Panics
/// If the walks, the cache or the buffer belong to another query or model.
pub fn backward(
    weights: &Weights,
    query: &WalkQuery,
    walks: &[Positions<'_>], // as in `forward`
    cache: &ForwardCache,
    candidates: &[u32], // (C)
    d_logits: &[f32],   // (C)
    gradient: &mut [f32],
) {
    let (model, mut d) = (weights.views(), weights.table().views_mut(gradient));
    let mut d_states = cache.states.zeros_like();
    scores_backward(&model, query, &cache.states, candidates, d_logits, &mut d_states, &mut d);
    for (i, (walks, inputs)) in walks.iter().zip(&cache.updates).enumerate().rev() {
        update_backward(&weights.meta, &model.updates[i], *walks, inputs, &mut d_states, &mut d.updates[i]);
    }
    for (d_init, d_states) in d.initial.iter_mut().zip([&d_states.nodes, &d_states.types]) {
        d_states.chunks_exact(d_init.len()).for_each(|row| add(d_init, row));
    }
}

/// Backward of [`scores`](super::forward::scores).
fn scores_backward(
    model: &ModelTensors<&[f32]>,
    query: &WalkQuery,
    states: &PlainStates,
    candidates: &[u32],         // (C)
    d_logits: &[f32],           // (C)
    d_states: &mut PlainStates, // those of all nodes and types
    d: &mut ModelTensors<&mut [f32]>,
) {
    let q = query_rows(model, query, states, candidates); // (C, D)
    let mut d_q = vec![0.0; q.len()];
    head::plain_backward(&q, model.head.weights(), d_logits, &mut d_q, &mut d.head.gradients());
    query_rows_backward(model, query, states, candidates, &d_q, d_states, d);
}

/// Backward of [`query_rows`].
pub(crate) fn query_rows_backward(
    model: &ModelTensors<&[f32]>,
    query: &WalkQuery,
    states: &PlainStates,
    candidates: &[u32],         // (C)
    d_q: &[f32],                // (C, D)
    d_states: &mut PlainStates, // those of all nodes and types
    d: &mut ModelTensors<&mut [f32]>,
) {
    // The candidates share the rest of the sum, which gets the gradients of all.
    let width = model.initial[0].len();
    let mut d_shared = vec![0.0; width];
    d_q.chunks_exact(width).for_each(|d_q| add(&mut d_shared, d_q));
    let row = |id: u32| id as usize * width..(id as usize + 1) * width;
    match *query {
        WalkQuery::Entity { relation, .. } => {
            for (&c, d_q) in candidates.iter().zip(d_q.chunks_exact(width)) {
                add(&mut d_states.nodes[row(c)], d_q);
            }
            add(&mut d_states.types[row(relation)], &d_shared);
        }
        WalkQuery::Relation { head, tail } => {
            for (&c, d_q) in candidates.iter().zip(d_q.chunks_exact(width)) {
                add(&mut d_states.types[row(c)], d_q);
            }
            let d_layers = d.endpoints.iter_mut().flatten();
            for ((layer, d_layer), node) in endpoints(model).iter().zip(d_layers).zip([head, tail]) {
                let (v, d_v) = (&states.nodes[row(node)], &mut d_states.nodes[row(node)]);
                layer.plain_backward(v, &d_shared, d_v, d_layer);
            }
        }
    }
}

/// Backward of [`update`](super::forward::update): `d_states` comes in as the gradient of the states
/// after, and leaves as that of the states before.
fn update_backward(
    meta: &Metadata,
    w: &UpdateTensors<&[f32]>,
    walks: Positions<'_>,
    inputs: &LayerInputs,
    d_states: &mut PlainStates,
    d: &mut UpdateTensors<&mut [f32]>,
) {
    let pool_backward = match meta.consensus {
        Averaging::Softmax => consensus::plain_backward,
        Averaging::Mean => consensus::plain_mean_backward,
    };
    let x = &inputs.processed;
    let mut d_x = vec![0.0; x.len()]; // (W, L, D)
    let ([node, ty], [mut d_node, mut d_type]) = (w.consensus(meta.consensus), d.consensus());
    pool_backward(x, walks.node, node, &d_states.nodes, &mut d_x, &mut d_node);
    pool_backward(x, walks.ty, ty, &d_states.types, &mut d_x, &mut d_type);
    let processor = meta.processor.processor();
    for ((w, d), [embedded, sequenced]) in w.layers.iter().zip(&mut d.layers).zip(&inputs.layers).rev() {
        let d_feed_forward = &mut d.feed_forward.gradients();
        swiglu::plain_backward(sequenced, w.feed_forward.weights(), &mut d_x, d_feed_forward);
        processor.plain_backward(embedded, meta.length, &w.processor, &mut d_x, &mut d.processor);
    }
    embed_backward(w, walks, &inputs.states, &d_x, d_states, d);
}

/// Backward of the embedding: into the tables, and through `from` into the states.
fn embed_backward(
    w: &UpdateTensors<&[f32]>,
    walks: Positions<'_>,
    states: &PlainStates,
    d_x: &[f32], // (W, L, D)
    d_states: &mut PlainStates,
    d: &mut UpdateTensors<&mut [f32]>,
) {
    let mut d_mark = vec![0.0; 16 * w.width()];
    let mut d_projected = states.zeros_like();
    let [d_node_name, d_type_name] = &mut d.names;
    let PlainStates { nodes: d_nodes, types: d_types } = &mut d_projected;
    let mut d_tables = embed::Gradients { d_node_name, d_type_name, d_mark: &mut d_mark, d_nodes, d_types };
    embed::plain_backward(walks, walks.node.len(), d_x, &mut d_tables); // rows in the order of positions
    d.add_marks(&d_mark);
    let [d_from_node, d_from_type] = &mut d.from;
    w.from[0].plain_backward(&states.nodes, d_nodes, &mut d_states.nodes, d_from_node);
    w.from[1].plain_backward(&states.types, d_types, &mut d_states.types, d_from_type);
}

pub(crate) fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
}
