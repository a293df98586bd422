//! The definition: the whole forward pass in plain loops, over every node and type of the graph.
//!
//! Slow and simple; the fast model is held to it, and both to the fixtures. Section numbers are the specification's.

use flock_kernels::{D, attention, consensus, gru, head, linear, swiglu};
use flock_walk::WalkQuery;

use crate::checkpoint::{Averaging, Checkpoint, Processor};
use crate::fast::update::UpdateWeights;

/// One update's walks, recorded; all (W, L), ids those of the graph.
pub struct PlainRecords<'a> {
    /// Node at each position.
    pub node: &'a [u32],
    /// Type of the step into each position.
    pub ty: &'a [u32],
    /// Row of the node's name.
    pub node_name: &'a [u16],
    /// Row of the type's name.
    pub type_name: &'a [u16],
    /// Direction and query flags.
    pub mark: &'a [u8],
}

/// States of all nodes and types of the graph.
#[derive(Clone)]
pub struct PlainStates {
    /// (V, D)
    pub nodes: Vec<f32>,
    /// (2R + 1, D)
    pub types: Vec<f32>,
}

/// Initial states (section 4).
pub fn initial_states(checkpoint: &Checkpoint, num_nodes: usize, num_types: usize) -> PlainStates {
    let tensor = |name: &str| &checkpoint.tensors[name].data;
    PlainStates { nodes: tensor("node_init").repeat(num_nodes), types: tensor("type_init").repeat(num_types + 1) }
}

/// One update (section 5).
pub fn update(checkpoint: &Checkpoint, i: usize, records: &PlainRecords<'_>, states: &mut PlainStates) {
    let w = UpdateWeights { checkpoint, i };
    let mut x = embed(checkpoint, i, records, states);
    sequence(checkpoint, i, &mut x);
    swiglu::plain(&mut x, w.feed_forward());
    pool(checkpoint, i, &x, records, states);
}

/// The first half of an update's sequence processor, in place.
pub(crate) fn sequence(checkpoint: &Checkpoint, i: usize, x: &mut [f32]) {
    let (w, length) = (UpdateWeights { checkpoint, i }, checkpoint.meta.length);
    match checkpoint.meta.processor {
        Processor::Gru => gru::plain(x, length, w.gru()),
        Processor::Transformer => attention::plain(x, length, w.attention()),
    }
}

/// The consensus of an update.
pub(crate) fn pool(
    checkpoint: &Checkpoint,
    i: usize,
    x: &[f32], // (W, L, D)
    records: &PlainRecords<'_>,
    states: &mut PlainStates,
) {
    let w = UpdateWeights { checkpoint, i };
    let plain = match checkpoint.meta.consensus {
        Averaging::Softmax => consensus::plain,
        Averaging::Mean => consensus::plain_mean,
    };
    plain(x, records.node, &mut states.nodes, w.consensus("node"));
    plain(x, records.ty, &mut states.types, w.consensus("type"));
}

/// The input of an update's sequence processor: at each position a sum of table rows and projected states.
pub fn embed(checkpoint: &Checkpoint, i: usize, records: &PlainRecords<'_>, states: &PlainStates) -> Vec<f32> {
    let w = UpdateWeights { checkpoint, i };
    let project = |states: &[f32], name: &str| {
        let mut out = vec![0.0; states.len()];
        linear::plain(states, w.at(name, "weight"), w.at(name, "bias"), &mut out, D);
        out
    };
    let (nodes, types) = (project(&states.nodes, "from_node"), project(&states.types, "from_type"));
    let (names, type_names, marks) = (w.at("emb_anon_node", "weight"), w.at("emb_anon_type", "weight"), w.marks());
    let mut x = vec![0.0; records.node.len() * D];
    for (p, x) in x.chunks_exact_mut(D).enumerate() {
        let rows = [
            (names, records.node_name[p] as usize),
            (type_names, records.type_name[p] as usize),
            (&marks[..], records.mark[p] as usize),
            (&nodes[..], records.node[p] as usize),
            (&types[..], records.ty[p] as usize),
        ];
        for (c, x) in x.iter_mut().enumerate() {
            *x = rows.iter().map(|(table, row)| table[row * D + c]).sum();
        }
    }
    x
}

/// The rows that the head scores, one per candidate (section 6).
pub fn query_rows(checkpoint: &Checkpoint, query: &WalkQuery, states: &PlainStates, candidates: &[u32]) -> Vec<f32> {
    let tensor = |name: &str| &checkpoint.tensors[name].data[..];
    let node = |v: u32| &states.nodes[v as usize * D..][..D];
    let ty = |t: u32| &states.types[t as usize * D..][..D];
    let mut q = Vec::with_capacity(candidates.len() * D);
    match *query {
        WalkQuery::Entity { relation, .. } => {
            for &c in candidates {
                q.extend(node(c).iter().zip(ty(relation)).map(|(a, b)| a + b));
            }
        }
        WalkQuery::Relation { head, tail } => {
            let (mut a, mut b) = ([0.0; D], [0.0; D]);
            linear::plain(node(head), tensor("head_to_query.weight"), tensor("head_to_query.bias"), &mut a, D);
            linear::plain(node(tail), tensor("tail_to_query.weight"), tensor("tail_to_query.bias"), &mut b, D);
            for &c in candidates {
                q.extend((0..D).map(|i| a[i] + b[i] + ty(c)[i]));
            }
        }
    }
    q
}

/// Logits of candidates, nodes or types (section 6).
pub fn scores(checkpoint: &Checkpoint, query: &WalkQuery, states: &PlainStates, candidates: &[u32]) -> Vec<f32> {
    let q = query_rows(checkpoint, query, states, candidates);
    let mut logits = vec![0.0; candidates.len()];
    head::plain(&q, &mut logits, head_weights(checkpoint));
    logits
}

pub(crate) fn head_weights(checkpoint: &Checkpoint) -> head::Weights<'_> {
    let tensor = |name: &str| &checkpoint.tensors[name].data[..];
    head::Weights {
        w0: tensor("head.0.weight"),
        b0: tensor("head.0.bias"),
        w2: tensor("head.2.weight"),
        b2: tensor("head.2.bias"),
        w4: tensor("head.4.weight"),
        b4: tensor("head.4.bias"),
    }
}
