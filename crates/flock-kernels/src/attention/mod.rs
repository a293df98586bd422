//! The first half of a transformer layer, which can replace the GRU (section 11 of the
//! specification). It adds learnt positions and then `x += Σ_h O_h a_h`. Head `h` of [`HEADS`]
//! attends over all positions of a walk, in both directions, on `y = RMSNorm(x)`:
//! ```text
//! x_i += p_i      a_h,i = Σ_t softmax_t(q_i · k_t / √D) v_t      q = Q_h y    k = K_h y    v = V_h y
//! ```
//! Heads are as wide as the model. The feed-forward that follows is the same as after the GRU,
//! [`swiglu`](crate::swiglu).

mod backward;
mod fast;

pub use backward::{Backward, BackwardScratch};
pub use fast::{Attention, Scratch};

use crate::{linear, rmsnorm};

/// Number of heads, each `D` wide. With three heads and its positions the layer has about as many
/// parameters as the GRU.
pub const HEADS: usize = 3;

/// Parameters of the layer.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// (L, D)
    pub position: &'a [f32],
    /// (D)
    pub norm: &'a [f32],
    /// (HEADS · D, D)
    pub q: &'a [f32],
    /// (HEADS · D, D)
    pub k: &'a [f32],
    /// (HEADS · D, D)
    pub v: &'a [f32],
    /// (D, HEADS · D)
    pub out: &'a [f32],
}

/// Gradients of the layer's parameters, shaped like [`Weights`].
pub struct Gradients<'a> {
    /// (L, D)
    pub d_position: &'a mut [f32],
    /// (D)
    pub d_norm: &'a mut [f32],
    /// (HEADS · D, D)
    pub d_q: &'a mut [f32],
    /// (HEADS · D, D)
    pub d_k: &'a mut [f32],
    /// (HEADS · D, D)
    pub d_v: &'a mut [f32],
    /// (D, HEADS · D)
    pub d_out: &'a mut [f32],
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn scale(width: usize) -> f32 {
    1.0 / (width as f32).sqrt()
}

/// The intermediate values of one walk.
struct PlainWalk {
    x: Vec<f32>,        // (L, D), with positions
    y: Vec<f32>,        // (L, D)
    qkv: [Vec<f32>; 3], // (L, HEADS · D)
    weights: Vec<f32>,  // (HEADS, L, L): query, key
    attended: Vec<f32>, // (L, HEADS · D)
}

fn plain_walk(x: &[f32], w: Weights<'_>) -> PlainWalk {
    let d = w.norm.len();
    let (length, all) = (x.len() / d, HEADS * d);
    let mut x = x.to_vec();
    add(&mut x, w.position);
    let mut y = vec![0.0; x.len()];
    rmsnorm::plain(&x, w.norm, &mut y);
    let qkv = [w.q, w.k, w.v].map(|m| {
        let mut out = vec![0.0; length * all];
        linear::plain(&y, m, &[], &mut out, d);
        out
    });
    let (mut weights, mut attended) = (Vec::with_capacity(HEADS * length * length), vec![0.0; length * all]);
    for h in 0..HEADS {
        let row = |m: usize, i: usize| &qkv[m][i * all + h * d..][..d];
        for i in 0..length {
            let scores: Vec<f32> = (0..length).map(|t| dot(row(0, i), row(1, t)) * scale(d)).collect();
            let max = scores.iter().fold(f32::NEG_INFINITY, |m, s| m.max(*s));
            let e: Vec<f32> = scores.iter().map(|s| (s - max).exp()).collect();
            let total: f32 = e.iter().sum();
            for t in 0..length {
                let a = e[t] / total;
                weights.push(a);
                for c in 0..d {
                    attended[i * all + h * d + c] += a * row(2, t)[c];
                }
            }
        }
    }
    PlainWalk { x, y, qkv, weights, attended }
}

/// Runs the layer in place. This is the definition.
pub fn plain(
    x: &mut [f32], // (W, L, D)
    length: usize,
    w: Weights<'_>,
) {
    let d = w.norm.len();
    for x in x.chunks_exact_mut(length * d) {
        let walk = plain_walk(x, w);
        linear::plain(&walk.attended, w.out, &[], x, HEADS * d);
        add(x, &walk.x);
    }
}

/// Adds the gradients of [`plain`] to `d_w`. Recomputes everything from the input of the layer.
/// `d_x` holds the gradient of the output before the call, and the gradient of the input after it.
/// The residual branch needs no work: both of its gradients are equal.
pub fn plain_backward(
    x: &[f32], // (W, L, D), before the layer
    length: usize,
    w: Weights<'_>,
    d_x: &mut [f32], // (W, L, D)
    d_w: &mut Gradients<'_>,
) {
    let d = w.norm.len();
    let all = HEADS * d;
    for (x, d_x) in x.chunks_exact(length * d).zip(d_x.chunks_exact_mut(length * d)) {
        let walk = plain_walk(x, w);
        let mut d_attended = vec![0.0; length * all];
        linear::plain_backward(&walk.attended, w.out, d_x, &mut d_attended, d_w.d_out, &mut [], all);
        let mut d_qkv = [0, 1, 2].map(|_| vec![0.0; length * all]);
        for h in 0..HEADS {
            for i in 0..length {
                let at = |p: usize| p * all + h * d..p * all + (h + 1) * d;
                let a = &walk.weights[(h * length + i) * length..][..length];
                let d_i = &d_attended[at(i)];
                let d_a: Vec<f32> = (0..length).map(|t| dot(d_i, &walk.qkv[2][at(t)])).collect();
                let mean = dot(a, &d_a);
                for t in 0..length {
                    let d_score = a[t] * (d_a[t] - mean) * scale(d);
                    for c in 0..d {
                        d_qkv[0][at(i)][c] += d_score * walk.qkv[1][at(t)][c];
                        d_qkv[1][at(t)][c] += d_score * walk.qkv[0][at(i)][c];
                        d_qkv[2][at(t)][c] += a[t] * d_i[c];
                    }
                }
            }
        }
        let mut d_y = vec![0.0; length * d];
        let tables = [(w.q, &mut *d_w.d_q), (w.k, &mut *d_w.d_k), (w.v, &mut *d_w.d_v)];
        for ((m, d_m), d_out) in tables.into_iter().zip(&d_qkv) {
            linear::plain_backward(&walk.y, m, d_out, &mut d_y, d_m, &mut [], d);
        }
        rmsnorm::plain_backward(&walk.x, w.norm, &d_y, d_x, d_w.d_norm);
        add(d_w.d_position, d_x);
    }
}
