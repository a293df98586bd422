//! The definition of the gradient: the forward pass of [`plain`] with what it must remember, and the way
//! back through the head, all updates and the initial states, in plain loops.
//!
//! ```text
//! logits ← head ← query rows ← states(I) ← update I−1 ← … ← update 0 ← node_init, type_init
//! ```
//! An update adds to the states it reads, so the gradient of a state runs straight through it and gathers, on the way,
//! what came through the walks. Losses are in [`flock_kernels::loss`]. Slow and simple: fast training is held to it, and
//! it to the fixtures.

use std::collections::BTreeMap;

use flock_kernels::{D, attention, consensus, embed, gru, head, linear, swiglu};
use flock_walk::WalkQuery;

use crate::checkpoint::{Averaging, Checkpoint, Processor, Tensor};
use crate::fast::gradients::UpdateGradients;
use crate::fast::update::UpdateWeights;
use crate::plain::{self, PlainRecords, PlainStates, head_weights};

/// A gradient per tensor: names and shapes are the checkpoint's.
pub type Gradients = BTreeMap<String, Tensor>;

/// Gradients of zero, to be added to.
pub fn zeros(checkpoint: &Checkpoint) -> Gradients {
    let zero = |t: &Tensor| Tensor { shape: t.shape.clone(), data: vec![0.0; t.data.len()] };
    checkpoint.tensors.iter().map(|(name, t)| (name.clone(), zero(t))).collect()
}

/// What the backward pass of a query needs of its forward pass.
pub struct Cache {
    updates: Vec<UpdateCache>,
    /// The states after the last update.
    pub states: PlainStates,
}

/// What each layer of an update was given.
struct UpdateCache {
    states: PlainStates,
    embedded: Vec<f32>,  // (W, L, D), the GRU's input
    sequenced: Vec<f32>, // (W, L, D), the feed-forward's
    processed: Vec<f32>, // (W, L, D), the consensus'
}

/// All updates of a query, one set of recorded walks each; [`plain::scores`] has the logits from the states they leave.
pub fn forward(checkpoint: &Checkpoint, records: &[PlainRecords<'_>], num_nodes: usize, num_types: usize) -> Cache {
    let mut states = plain::initial_states(checkpoint, num_nodes, num_types);
    let mut updates = Vec::with_capacity(records.len());
    for (i, records) in records.iter().enumerate() {
        let w = UpdateWeights { checkpoint, i };
        let before = states.clone();
        let embedded = plain::embed(checkpoint, i, records, &states);
        let mut sequenced = embedded.clone();
        plain::sequence(checkpoint, i, &mut sequenced);
        let mut processed = sequenced.clone();
        swiglu::plain(&mut processed, w.feed_forward());
        plain::pool(checkpoint, i, &processed, records, &mut states);
        updates.push(UpdateCache { states: before, embedded, sequenced, processed });
    }
    Cache { updates, states }
}

/// Adds the gradients of every parameter, given those of the candidates' logits, to what [`zeros`] began.
///
/// # Panics
/// If the walks, the cache or the gradients belong to another query or model.
pub fn backward(
    checkpoint: &Checkpoint,
    query: &WalkQuery,
    records: &[PlainRecords<'_>], // as in `forward`
    cache: &Cache,
    candidates: &[u32], // (C)
    d_logits: &[f32],   // (C)
    gradients: &mut Gradients,
) {
    let mut d_states =
        PlainStates { nodes: vec![0.0; cache.states.nodes.len()], types: vec![0.0; cache.states.types.len()] };
    scores_backward(checkpoint, query, &cache.states, candidates, d_logits, &mut d_states, gradients);
    for (i, (records, cache)) in records.iter().zip(&cache.updates).enumerate().rev() {
        update_backward(checkpoint, i, records, cache, &mut d_states, gradients);
    }
    for (name, d_states) in [("node_init", &d_states.nodes), ("type_init", &d_states.types)] {
        lend(gradients, [name], |[d_init]| d_states.chunks_exact(D).for_each(|row| add(d_init, row)));
    }
}

/// The head's tensors, in the order of [`head::Gradients`].
pub(crate) const HEAD: [&str; 6] =
    ["head.0.weight", "head.0.bias", "head.2.weight", "head.2.bias", "head.4.weight", "head.4.bias"];

/// Backward of [`plain::scores`].
fn scores_backward(
    checkpoint: &Checkpoint,
    query: &WalkQuery,
    states: &PlainStates,
    candidates: &[u32],         // (C)
    d_logits: &[f32],           // (C)
    d_states: &mut PlainStates, // those of all nodes and types
    gradients: &mut Gradients,
) {
    let q = plain::query_rows(checkpoint, query, states, candidates); // (C, D)
    let mut d_q = vec![0.0; q.len()];
    lend(gradients, HEAD, |[d_w0, d_b0, d_w2, d_b2, d_w4, d_b4]| {
        let mut d_w = head::Gradients { d_w0, d_b0, d_w2, d_b2, d_w4, d_b4 };
        head::plain_backward(&q, head_weights(checkpoint), d_logits, &mut d_q, &mut d_w);
    });
    query_rows_backward(checkpoint, query, states, candidates, &d_q, d_states, gradients);
}

/// Backward of [`plain::query_rows`].
pub(crate) fn query_rows_backward(
    checkpoint: &Checkpoint,
    query: &WalkQuery,
    states: &PlainStates,
    candidates: &[u32],         // (C)
    d_q: &[f32],                // (C, D)
    d_states: &mut PlainStates, // those of all nodes and types
    gradients: &mut Gradients,
) {
    // The candidates share the rest of the sum, which gets the gradients of all.
    let mut d_shared = [0.0; D];
    d_q.chunks_exact(D).for_each(|d_q| add(&mut d_shared, d_q));
    let row = |id: u32| id as usize * D..(id as usize + 1) * D;
    match *query {
        WalkQuery::Entity { relation, .. } => {
            for (&c, d_q) in candidates.iter().zip(d_q.chunks_exact(D)) {
                add(&mut d_states.nodes[row(c)], d_q);
            }
            add(&mut d_states.types[row(relation)], &d_shared);
        }
        WalkQuery::Relation { head, tail } => {
            for (&c, d_q) in candidates.iter().zip(d_q.chunks_exact(D)) {
                add(&mut d_states.types[row(c)], d_q);
            }
            for (layer, node) in [("head_to_query", head), ("tail_to_query", tail)] {
                let (v, d_v) = (&states.nodes[row(node)], &mut d_states.nodes[row(node)]);
                linear_backward(checkpoint, layer, v, &d_shared, d_v, gradients);
            }
        }
    }
}

/// Backward of [`plain::update`]: `d_states` comes in as the gradient of the states after, and leaves as that of the
/// states before.
fn update_backward(
    checkpoint: &Checkpoint,
    i: usize,
    records: &PlainRecords<'_>,
    cache: &UpdateCache,
    d_states: &mut PlainStates,
    gradients: &mut Gradients,
) {
    let w = UpdateWeights { checkpoint, i };
    let plain_backward = match checkpoint.meta.consensus {
        Averaging::Softmax => consensus::plain_backward,
        Averaging::Mean => consensus::plain_mean_backward,
    };
    let mut d_x = vec![0.0; cache.processed.len()]; // (W, L, D)
    UpdateGradients { gradients, i }.consensus(|[d_node, d_type]| {
        let x = &cache.processed;
        plain_backward(x, records.node, w.consensus("node"), &d_states.nodes, &mut d_x, d_node);
        plain_backward(x, records.ty, w.consensus("type"), &d_states.types, &mut d_x, d_type);
    });
    process_backward(checkpoint, i, cache, &mut d_x, gradients);
    embed_backward(checkpoint, i, records, &cache.states, &d_x, d_states, gradients);
}

/// Backward of the sequence processor: `d_x` comes in as the gradient of its output, and leaves as that of its input.
fn process_backward(
    checkpoint: &Checkpoint,
    i: usize,
    cache: &UpdateCache,
    d_x: &mut [f32],
    gradients: &mut Gradients,
) {
    let (w, length) = (UpdateWeights { checkpoint, i }, checkpoint.meta.length);
    let mut gradients = UpdateGradients { gradients, i };
    gradients.feed_forward(|d_w| swiglu::plain_backward(&cache.sequenced, w.feed_forward(), d_x, d_w));
    let x = &cache.embedded;
    match checkpoint.meta.processor {
        Processor::Gru => gradients.gru(|d_w| gru::plain_backward(x, length, w.gru(), d_x, d_w)),
        Processor::Transformer => {
            gradients.attention(|d_w| attention::plain_backward(x, length, w.attention(), d_x, d_w));
        }
    }
}

/// Backward of [`plain::embed`]: into the tables, and through `from_node` and `from_type` into the states.
fn embed_backward(
    checkpoint: &Checkpoint,
    i: usize,
    records: &PlainRecords<'_>,
    states: &PlainStates,
    d_x: &[f32], // (W, L, D)
    d_states: &mut PlainStates,
    gradients: &mut Gradients,
) {
    let positions = embed::Positions {
        node_name: records.node_name,
        type_name: records.type_name,
        mark: records.mark,
        node: records.node,
        ty: records.ty,
    };
    let mut d_mark = vec![0.0; 16 * D];
    let (mut d_nodes, mut d_types) = (vec![0.0; states.nodes.len()], vec![0.0; states.types.len()]); // projected
    let mut update = UpdateGradients { gradients, i };
    update.names(|d_node_name, d_type_name| {
        let (d_mark, d_nodes, d_types) = (&mut d_mark[..], &mut d_nodes[..], &mut d_types[..]);
        let mut d = embed::Gradients { d_node_name, d_type_name, d_mark, d_nodes, d_types };
        embed::plain_backward(positions, records.node.len(), d_x, &mut d); // rows in the order of positions
    });
    update.add_marks(&checkpoint.meta, &d_mark);
    linear_backward(checkpoint, &format!("from_node.{i}"), &states.nodes, &d_nodes, &mut d_states.nodes, gradients);
    linear_backward(checkpoint, &format!("from_type.{i}"), &states.types, &d_types, &mut d_states.types, gradients);
}

/// Backward of the named linear layer, `D` wide on both sides.
pub(crate) fn linear_backward(
    checkpoint: &Checkpoint,
    layer: &str,
    x: &[f32],       // (P, D)
    d_y: &[f32],     // (P, D)
    d_x: &mut [f32], // (P, D)
    gradients: &mut Gradients,
) {
    let [weight, bias] = ["weight", "bias"].map(|part| format!("{layer}.{part}"));
    lend(gradients, [&weight, &bias], |[d_w, d_b]| {
        linear::plain_backward(x, &checkpoint.tensors[&weight].data, d_y, d_x, d_w, d_b, D);
    });
}

/// Lends several gradients out at once, which the map itself does not.
pub(crate) fn lend<const N: usize>(gradients: &mut Gradients, names: [&str; N], work: impl FnOnce([&mut [f32]; N])) {
    let mut taken = names.map(|n| std::mem::take(data(gradients, n)));
    work(taken.each_mut().map(|d| &mut d[..]));
    for (name, d) in names.into_iter().zip(taken) {
        *data(gradients, name) = d;
    }
}

fn data<'a>(gradients: &'a mut Gradients, name: &str) -> &'a mut Vec<f32> {
    &mut gradients
        .get_mut(name)
        .unwrap_or_else(|| panic!("no gradient for {name}: not the zeros of this checkpoint"))
        .data
}

pub(crate) fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
}
