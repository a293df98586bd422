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

use flock_kernels::{D, consensus, embed, gru, head, linear, swiglu};
use flock_walk::WalkQuery;

use crate::checkpoint::{Checkpoint, Task, Tensor};
use crate::plain::{self, PlainRecords, PlainStates, head_weights};
use crate::update::UpdateWeights;

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
        gru::plain(&mut sequenced, checkpoint.meta.length, w.gru());
        let mut processed = sequenced.clone();
        swiglu::plain(&mut processed, w.feed_forward());
        consensus::plain(&processed, records.node, &mut states.nodes, w.consensus("node"));
        consensus::plain(&processed, records.ty, &mut states.types, w.consensus("type"));
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
    let mut d_x = vec![0.0; cache.processed.len()]; // (W, L, D)
    for (side, ids, d_states) in [("node", records.node, &d_states.nodes), ("type", records.ty, &d_states.types)] {
        let (to, logit) = (format!("to_{side}.{i}"), format!("{side}_logit.{i}"));
        let names = [&to, &logit].map(|layer| ["weight", "bias"].map(|part| format!("{layer}.{part}"))).concat();
        lend(gradients, [0, 1, 2, 3].map(|n| &names[n][..]), |[d_value, d_value_bias, d_logit, d_logit_bias]| {
            let mut d_w = consensus::Gradients { d_value, d_value_bias, d_logit, d_logit_bias };
            consensus::plain_backward(&cache.processed, ids, w.consensus(side), d_states, &mut d_x, &mut d_w);
        });
    }
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
    let w = UpdateWeights { checkpoint, i };
    let net = |part: &str| format!("net.{i}.{part}");
    let names = ["ffn_norm", "feed_forward.w1", "feed_forward.w3", "feed_forward.w2"].map(|n| net(n) + ".weight");
    lend(gradients, names.each_ref().map(|n| &n[..]), |[d_norm, d_w1, d_w3, d_w2]| {
        let mut d_w = swiglu::Gradients { d_norm, d_w1, d_w3, d_w2 };
        swiglu::plain_backward(&cache.sequenced, w.feed_forward(), d_x, &mut d_w);
    });
    let parts = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"];
    let [a, b, c, d] = parts.map(|n| net(&format!("gru.{n}")));
    let [e, f, g, h] = parts.map(|n| net(&format!("gru.{n}_reverse")));
    let names = [net("gru_norm.weight"), a, b, c, d, e, f, g, h, net("gru_out.weight")];
    lend(gradients, names.each_ref().map(|n| &n[..]), |[d_norm, a, b, c, d, e, f, g, h, d_out]| {
        let d_directions = [
            gru::DirectionGradients { d_w_ih: a, d_w_hh: b, d_b_ih: c, d_b_hh: d },
            gru::DirectionGradients { d_w_ih: e, d_w_hh: f, d_b_ih: g, d_b_hh: h },
        ];
        let mut d_w = gru::Gradients { d_norm, d_directions, d_out };
        gru::plain_backward(&cache.embedded, checkpoint.meta.length, w.gru(), d_x, &mut d_w);
    });
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
    let tables = ["emb_anon_node", "emb_anon_type"].map(|n| format!("{n}.{i}.weight"));
    lend(gradients, tables.each_ref().map(|n| &n[..]), |[d_node_name, d_type_name]| {
        let (d_mark, d_nodes, d_types) = (&mut d_mark[..], &mut d_nodes[..], &mut d_types[..]);
        let mut d = embed::Gradients { d_node_name, d_type_name, d_mark, d_nodes, d_types };
        embed::plain_backward(positions, records.node.len(), d_x, &mut d); // rows in the order of positions
    });
    marks_backward(checkpoint, i, &d_mark, gradients);
    linear_backward(checkpoint, &format!("from_node.{i}"), &states.nodes, &d_nodes, &mut d_states.nodes, gradients);
    linear_backward(checkpoint, &format!("from_type.{i}"), &states.types, &d_types, &mut d_states.types, gradients);
}

/// A mark is a direction, two flags, and the rows 0 of the two tables that published weights carry along.
pub(crate) fn marks_backward(
    checkpoint: &Checkpoint,
    i: usize,
    d_mark: &[f32], // (16, D)
    gradients: &mut Gradients,
) {
    let flags = match checkpoint.meta.task {
        Task::Entity => ["emb_node_is_query", "emb_type_is_query"],
        Task::Relation => ["emb_head_is_query", "emb_tail_is_query"],
    };
    for (mark, d_mark) in d_mark.chunks_exact(D).enumerate() {
        let rows = [
            ("emb_direction", mark & 3),
            (flags[0], mark >> 2 & 1),
            (flags[1], mark >> 3),
            ("emb_restart", 0),
            ("emb_neighbor", 0),
        ];
        for (table, row) in rows {
            lend(gradients, [&format!("{table}.{i}.weight")], |[d_table]| add(&mut d_table[row * D..][..D], d_mark));
        }
    }
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
