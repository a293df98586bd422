//! Consensus: updates the state of each node (or type) with a weighted mean over all positions that
//! visit the node (or show the type).
//!
//! For each group `g` (a node or a type) and head `k`, over the positions `p` of the group:
//! ```text
//! w_p = softmax_p(logit_k(x_p))        state[g][k] += Σ_p w_p · (W x_p + b)[k]
//! ```
//! `[k]` is the k-th slice of 16. The published softmax adds 1e-8 to the denominator.

mod backward;
mod fast;
mod groups;

pub use backward::{Backward, BackwardScratch};
pub use fast::{Consensus, Scratch};
pub use groups::Groups;

use crate::{D, DH, H, SOFTMAX_EPS};

/// Columns of a row of logits: `H` for nodes, then `H` for types.
pub const LOGITS: usize = 2 * H;

/// The kind of states that are updated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Node states.
    Node = 0,
    /// Type states.
    Type = 1,
}

/// Parameters for one kind of states, nodes or types.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// `to_*`, (D, D)
    pub value: &'a [f32],
    /// (D)
    pub value_bias: &'a [f32],
    /// `*_logit`, (H, D)
    pub logit: &'a [f32],
    /// (H)
    pub logit_bias: &'a [f32],
}

impl Weights<'_> {
    /// Checks lengths once: the kernels below use unchecked pointers.
    fn check(&self) {
        assert!(self.value.len() == D * D && self.value_bias.len() == D);
        assert!(self.logit.len() == H * D && self.logit_bias.len() == H);
    }
}

/// Adds the pooled and projected rows of group `g` to `states[g]`. Groups without a row keep their
/// state. This loop is the definition.
pub fn plain(
    x: &[f32],          // (P, D)
    group: &[u32],      // (P)
    states: &mut [f32], // (G, D)
    w: Weights<'_>,
) {
    let rows = group.len();
    let groups = states.len() / D;
    let (mut value, mut logit) = (vec![0.0; rows * D], vec![0.0; rows * H]);
    crate::linear::plain(x, w.value, w.value_bias, &mut value, D);
    crate::linear::plain(x, w.logit, w.logit_bias, &mut logit, D);
    let mut max = vec![f32::NEG_INFINITY; groups * H];
    for p in 0..rows {
        for k in 0..H {
            let m = &mut max[group[p] as usize * H + k];
            *m = m.max(logit[p * H + k]);
        }
    }
    let (mut sum, mut total) = (vec![0.0; groups * D], vec![0.0; groups * H]);
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..H {
            let e = (logit[p * H + k] - max[g * H + k]).exp();
            total[g * H + k] += e;
            for c in k * DH..(k + 1) * DH {
                sum[g * D + c] += e * value[p * D + c];
            }
        }
    }
    for g in 0..groups {
        for c in 0..D {
            states[g * D + c] += sum[g * D + c] / (total[g * H + c / DH] + SOFTMAX_EPS);
        }
    }
}

/// Gradients of the parameters, shaped like [`Weights`].
pub struct Gradients<'a> {
    /// (D, D)
    pub d_value: &'a mut [f32],
    /// (D)
    pub d_value_bias: &'a mut [f32],
    /// (H, D)
    pub d_logit: &'a mut [f32],
    /// (H)
    pub d_logit_bias: &'a mut [f32],
}

/// Computes the weight of each row in the mean of its group, per head.
fn plain_softmax(
    logit: &[f32], // (P, H)
    group: &[u32], // (P)
    groups: usize,
) -> Vec<f32> {
    let at = |i: usize| group[i / H] as usize * H + i % H;
    let (mut max, mut total) = (vec![f32::NEG_INFINITY; groups * H], vec![0.0; groups * H]);
    for i in 0..logit.len() {
        max[at(i)] = max[at(i)].max(logit[i]);
    }
    let e: Vec<f32> = (0..logit.len()).map(|i| (logit[i] - max[at(i)]).exp()).collect();
    for i in 0..logit.len() {
        total[at(i)] += e[i];
    }
    (0..logit.len()).map(|i| e[i] / (total[at(i)] + SOFTMAX_EPS)).collect()
}

/// Adds the gradients of [`plain`]. Recomputes values and weights. The gradient of the states
/// themselves passes unchanged, because [`plain`] adds to them.
///
/// With weights `a`, `∂a_p/∂logit_q = a_p (δ_pq − a_q)` within a group, with or without ε. The
/// subtracted maximum also depends on the logits. That changes `a` by less than ε and is left out.
pub fn plain_backward(
    x: &[f32],     // (P, D)
    group: &[u32], // (P)
    w: Weights<'_>,
    d_states: &[f32], // (G, D)
    d_x: &mut [f32],  // (P, D)
    d_w: &mut Gradients<'_>,
) {
    let rows = group.len();
    let groups = d_states.len() / D;
    let (mut value, mut logit) = (vec![0.0; rows * D], vec![0.0; rows * H]);
    crate::linear::plain(x, w.value, w.value_bias, &mut value, D);
    crate::linear::plain(x, w.logit, w.logit_bias, &mut logit, D);
    let a = plain_softmax(&logit, group, groups);

    let (mut d_value, mut d_a) = (vec![0.0; rows * D], vec![0.0; rows * H]);
    let mut mean_d_a = vec![0.0; groups * H]; // Σ a · d_a over the group
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..H {
            for c in k * DH..(k + 1) * DH {
                d_value[p * D + c] = a[p * H + k] * d_states[g * D + c];
                d_a[p * H + k] += value[p * D + c] * d_states[g * D + c];
            }
            mean_d_a[g * H + k] += a[p * H + k] * d_a[p * H + k];
        }
    }
    let mut d_logit = vec![0.0; rows * H];
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..H {
            d_logit[p * H + k] = a[p * H + k] * (d_a[p * H + k] - mean_d_a[g * H + k]);
        }
    }
    crate::linear::plain_backward(x, w.value, &d_value, d_x, d_w.d_value, d_w.d_value_bias, D);
    crate::linear::plain_backward(x, w.logit, &d_logit, d_x, d_w.d_logit, d_w.d_logit_bias, D);
}

/// Pools with equal weights instead of a softmax: the ablation of section 11. The parameters of the
/// logits are not used.
pub fn plain_mean(
    x: &[f32],          // (P, D)
    group: &[u32],      // (P)
    states: &mut [f32], // (G, D)
    w: Weights<'_>,
) {
    let mut value = vec![0.0; group.len() * D];
    crate::linear::plain(x, w.value, w.value_bias, &mut value, D);
    let share = equal_shares(group, states.len() / D);
    for (p, &g) in group.iter().enumerate() {
        for c in 0..D {
            states[g as usize * D + c] += share[g as usize] * value[p * D + c];
        }
    }
}

/// Adds the gradients of [`plain_mean`]. The gradients of the logit parameters stay as they are.
pub fn plain_mean_backward(
    x: &[f32],     // (P, D)
    group: &[u32], // (P)
    w: Weights<'_>,
    d_states: &[f32], // (G, D)
    d_x: &mut [f32],  // (P, D)
    d_w: &mut Gradients<'_>,
) {
    let mut d_value = vec![0.0; group.len() * D];
    let share = equal_shares(group, d_states.len() / D);
    for (p, &g) in group.iter().enumerate() {
        for c in 0..D {
            d_value[p * D + c] = share[g as usize] * d_states[g as usize * D + c];
        }
    }
    crate::linear::plain_backward(x, w.value, &d_value, d_x, d_w.d_value, d_w.d_value_bias, D);
}

/// Returns 1 / (number of rows) for each group. It is infinite for an empty group, and never read.
fn equal_shares(group: &[u32], groups: usize) -> Vec<f32> {
    let mut count = vec![0.0; groups];
    for &g in group {
        count[g as usize] += 1.0;
    }
    count.into_iter().map(|n: f32| 1.0 / n).collect()
}
