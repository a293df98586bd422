//! Consensus: updates the state of each node (or type) with a weighted mean over all positions that
//! visit the node (or show the type).
//!
//! For each group `g` (a node or a type) and head `k`, over the positions `p` of the group:
//! ```text
//! w_p = softmax_p(logit_k(x_p))        state[g][k] += Σ_p w_p · (W x_p + b)[k]
//! ```
//! `[k]` is the k-th slice of `D / H` = 16 or 32. The published softmax adds 1e-8 to the denominator.
//!
//! The fast version lays the logits of a row out in slots: `S` for nodes, then `S` for types, where
//! `S` is `H` rounded up to a power of two. So heads repeat within a vector of any length. A row has
//! [`logit_columns`] columns, a whole vector. Slots without a head have the logit 0.

mod backward;
mod fast;
mod groups;

pub use backward::{Backward, BackwardScratch};
pub use fast::{Consensus, Scratch};
pub use groups::Groups;

use crate::SOFTMAX_EPS;

/// Returns the number of slots `S` for the heads of one side in a row of logits.
pub fn logit_slots(heads: usize) -> usize {
    heads.next_power_of_two()
}

/// Returns the number of columns of a row of logits: the slots of both sides, at least eight.
pub const fn logit_columns(heads: usize) -> usize {
    if heads <= 4 { 8 } else { 16 }
}

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
    /// Returns the sizes `D` and `H`.
    fn sizes(&self) -> (usize, usize) {
        (self.value_bias.len(), self.logit_bias.len())
    }

    /// Checks lengths once: the kernels below use unchecked pointers. Returns the sizes `D` and `H`.
    fn check(&self) -> (usize, usize) {
        let (d, h) = self.sizes();
        assert!(crate::has_heads(d, h) && self.value.len() == d * d && self.logit.len() == h * d);
        (d, h)
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
    let (d, h) = w.sizes();
    let slice = d / h;
    let rows = group.len();
    let groups = states.len() / d;
    let (mut value, mut logit) = (vec![0.0; rows * d], vec![0.0; rows * h]);
    crate::linear::plain(x, w.value, w.value_bias, &mut value, d);
    crate::linear::plain(x, w.logit, w.logit_bias, &mut logit, d);
    let mut max = vec![f32::NEG_INFINITY; groups * h];
    for p in 0..rows {
        for k in 0..h {
            let m = &mut max[group[p] as usize * h + k];
            *m = m.max(logit[p * h + k]);
        }
    }
    let (mut sum, mut total) = (vec![0.0; groups * d], vec![0.0; groups * h]);
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..h {
            let e = (logit[p * h + k] - max[g * h + k]).exp();
            total[g * h + k] += e;
            for c in k * slice..(k + 1) * slice {
                sum[g * d + c] += e * value[p * d + c];
            }
        }
    }
    for g in 0..groups {
        for c in 0..d {
            states[g * d + c] += sum[g * d + c] / (total[g * h + c / slice] + SOFTMAX_EPS);
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
    h: usize,
) -> Vec<f32> {
    let at = |i: usize| group[i / h] as usize * h + i % h;
    let (mut max, mut total) = (vec![f32::NEG_INFINITY; groups * h], vec![0.0; groups * h]);
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
    let (d, h) = w.sizes();
    let slice = d / h;
    let rows = group.len();
    let groups = d_states.len() / d;
    let (mut value, mut logit) = (vec![0.0; rows * d], vec![0.0; rows * h]);
    crate::linear::plain(x, w.value, w.value_bias, &mut value, d);
    crate::linear::plain(x, w.logit, w.logit_bias, &mut logit, d);
    let a = plain_softmax(&logit, group, groups, h);

    let (mut d_value, mut d_a) = (vec![0.0; rows * d], vec![0.0; rows * h]);
    let mut mean_d_a = vec![0.0; groups * h]; // Σ a · d_a over the group
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..h {
            for c in k * slice..(k + 1) * slice {
                d_value[p * d + c] = a[p * h + k] * d_states[g * d + c];
                d_a[p * h + k] += value[p * d + c] * d_states[g * d + c];
            }
            mean_d_a[g * h + k] += a[p * h + k] * d_a[p * h + k];
        }
    }
    let mut d_logit = vec![0.0; rows * h];
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..h {
            d_logit[p * h + k] = a[p * h + k] * (d_a[p * h + k] - mean_d_a[g * h + k]);
        }
    }
    crate::linear::plain_backward(x, w.value, &d_value, d_x, d_w.d_value, d_w.d_value_bias, d);
    crate::linear::plain_backward(x, w.logit, &d_logit, d_x, d_w.d_logit, d_w.d_logit_bias, d);
}

/// Pools with equal weights instead of a softmax: the ablation of section 11. The parameters of the
/// logits are not used.
pub fn plain_mean(
    x: &[f32],          // (P, D)
    group: &[u32],      // (P)
    states: &mut [f32], // (G, D)
    w: Weights<'_>,
) {
    let (d, _) = w.sizes();
    let mut value = vec![0.0; group.len() * d];
    crate::linear::plain(x, w.value, w.value_bias, &mut value, d);
    let share = equal_shares(group, states.len() / d);
    for (p, &g) in group.iter().enumerate() {
        for c in 0..d {
            states[g as usize * d + c] += share[g as usize] * value[p * d + c];
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
    let (d, _) = w.sizes();
    let mut d_value = vec![0.0; group.len() * d];
    let share = equal_shares(group, d_states.len() / d);
    for (p, &g) in group.iter().enumerate() {
        for c in 0..d {
            d_value[p * d + c] = share[g as usize] * d_states[g as usize * d + c];
        }
    }
    crate::linear::plain_backward(x, w.value, &d_value, d_x, d_w.d_value, d_w.d_value_bias, d);
}

/// Returns 1 / (number of rows) for each group. It is infinite for an empty group, and never read.
fn equal_shares(group: &[u32], groups: usize) -> Vec<f32> {
    let mut count = vec![0.0; groups];
    for &g in group {
        count[g as usize] += 1.0;
    }
    count.into_iter().map(|n: f32| 1.0 / n).collect()
}
