//! The definition: the whole forward pass in plain loops, over every node and type of the graph.
//!
//! Slow and simple; the fast model is held to it, and both to the fixtures. Sections are those of
//! `docs/reference/model.md`.

use flock_kernels::embed::Positions;
use flock_kernels::{consensus, head, swiglu};
use flock_walk::WalkQuery;

use crate::metadata::Averaging;
use crate::tensors::{LinearTensors, ModelTensors, UpdateTensors};
use crate::weights::Weights;

/// States of all nodes and types of the graph.
#[derive(Clone)]
pub struct PlainStates {
    /// (V, D)
    pub nodes: Vec<f32>,
    /// (2R + 1, D)
    pub types: Vec<f32>,
}

impl PlainStates {
    /// Returns zeros, as many as there are states.
    pub(crate) fn zeros_like(&self) -> PlainStates {
        PlainStates { nodes: vec![0.0; self.nodes.len()], types: vec![0.0; self.types.len()] }
    }
}

/// What the backward pass of a query needs of its forward pass.
pub struct ForwardCache {
    pub(super) updates: Vec<LayerInputs>,
    /// The states after the last update.
    pub states: PlainStates,
}

/// What each layer of an update was given.
pub struct LayerInputs {
    pub(super) states: PlainStates,
    /// The sequence processor's input and the feed-forward's, by layer.
    pub(super) layers: Vec<[Vec<f32>; 2]>, // (W, L, D) each
    pub(super) processed: Vec<f32>, // (W, L, D), the consensus' input
}

/// Makes the initial states (section 4).
pub fn initial_states(weights: &Weights, num_nodes: usize, num_types: usize) -> PlainStates {
    let [node, ty] = weights.views().initial;
    PlainStates { nodes: node.repeat(num_nodes), types: ty.repeat(num_types + 1) }
}

/// Runs all updates of a query, one set of recorded walks each. [`scores`] has the logits from the
/// states they leave.
pub fn forward(weights: &Weights, walks: &[Positions<'_>], num_nodes: usize, num_types: usize) -> ForwardCache {
    let mut states = initial_states(weights, num_nodes, num_types);
    let updates = walks.iter().enumerate().map(|(i, walks)| update(weights, i, *walks, &mut states)).collect();
    ForwardCache { updates, states }
}

/// Runs one update (section 5) and returns what each of its layers was given. Positions are (W, L),
/// their nodes and types those of the graph.
pub fn update(weights: &Weights, i: usize, walks: Positions<'_>, states: &mut PlainStates) -> LayerInputs {
    let (model, meta) = (weights.views(), &weights.meta);
    let w = &model.updates[i];
    let before = states.clone();
    let mut processed = embed(w, walks, states);
    let mut layers = Vec::with_capacity(w.layers.len());
    for layer in &w.layers {
        let before = processed.clone();
        meta.processor.processor().plain(&mut processed, meta.length, &layer.processor);
        layers.push([before, processed.clone()]);
        swiglu::plain(&mut processed, layer.feed_forward.weights());
    }
    let pool = match meta.consensus {
        Averaging::Softmax => consensus::plain,
        Averaging::Mean => consensus::plain_mean,
    };
    let [node, ty] = w.consensus(meta.consensus);
    pool(&processed, walks.node, &mut states.nodes, node);
    pool(&processed, walks.ty, &mut states.types, ty);
    LayerInputs { states: before, layers, processed }
}

/// Sums table rows and projected states at each position: the input of the sequence processor.
fn embed(w: &UpdateTensors<&[f32]>, walks: Positions<'_>, states: &PlainStates) -> Vec<f32> {
    let project = |states: &[f32], layer: &LinearTensors<&[f32]>| {
        let mut out = vec![0.0; states.len()];
        layer.plain(states, &mut out);
        out
    };
    let (nodes, types) = (project(&states.nodes, &w.from[0]), project(&states.types, &w.from[1]));
    let (marks, width) = (w.marks(), w.width());
    let mut x = vec![0.0; walks.node.len() * width];
    for (p, x) in x.chunks_exact_mut(width).enumerate() {
        let rows = [
            (w.names[0], walks.node_name[p] as usize),
            (w.names[1], walks.type_name[p] as usize),
            (&marks[..], walks.mark[p] as usize),
            (&nodes[..], walks.node[p] as usize),
            (&types[..], walks.ty[p] as usize),
        ];
        for (c, x) in x.iter_mut().enumerate() {
            *x = rows.iter().map(|(table, row)| table[row * width + c]).sum();
        }
    }
    x
}

/// Makes the rows that the head scores, one per candidate (section 6).
pub(crate) fn query_rows(
    model: &ModelTensors<&[f32]>,
    query: &WalkQuery,
    states: &PlainStates,
    candidates: &[u32],
) -> Vec<f32> {
    let width = model.initial[0].len();
    let node = |v: u32| &states.nodes[v as usize * width..][..width];
    let ty = |t: u32| &states.types[t as usize * width..][..width];
    let mut q = Vec::with_capacity(candidates.len() * width);
    match *query {
        WalkQuery::Entity { relation, .. } => {
            for &c in candidates {
                q.extend(node(c).iter().zip(ty(relation)).map(|(a, b)| a + b));
            }
        }
        WalkQuery::Relation { head, tail } => {
            let (mut a, mut b) = (vec![0.0; width], vec![0.0; width]);
            let [of_head, of_tail] = endpoints(model);
            of_head.plain(node(head), &mut a);
            of_tail.plain(node(tail), &mut b);
            for &c in candidates {
                q.extend((0..width).map(|i| a[i] + b[i] + ty(c)[i]));
            }
        }
    }
    q
}

/// Returns the layers that only a relation model has.
pub(super) fn endpoints<T>(model: &ModelTensors<T>) -> &[LinearTensors<T>; 2] {
    model.endpoints.as_ref().expect("a relation query is asked of a relation model")
}

/// Computes the logits of candidates, nodes or types (section 6).
pub fn scores(weights: &Weights, query: &WalkQuery, states: &PlainStates, candidates: &[u32]) -> Vec<f32> {
    let model = weights.views();
    let q = query_rows(&model, query, states, candidates);
    let mut logits = vec![0.0; candidates.len()];
    head::plain(&q, &mut logits, model.head.weights());
    logits
}
