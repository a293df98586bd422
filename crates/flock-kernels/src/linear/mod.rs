//! Linear layers, `y = W x + b`, and the register tiles of all matrix products in this crate.

mod backward;
mod fast;
pub(crate) mod outer;
mod tile;

pub use backward::Backward;
pub use fast::Linear;
pub(crate) use tile::{CHUNK, pack_panel, panel_columns, tile};

/// The function applied to the output of a linear layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activation {
    /// No function.
    None,
    /// `max(0, y)`.
    Relu,
}

/// Computes `y[p] = W x[p] + b` for every row. This loop is the definition.
pub fn plain(
    x: &[f32],     // (P, K)
    w: &[f32],     // (N, K)
    b: &[f32],     // (N), or empty for none
    y: &mut [f32], // (P, N)
    k: usize,
) {
    let n = w.len() / k;
    for (x, y) in x.chunks_exact(k).zip(y.chunks_exact_mut(n)) {
        for j in 0..n {
            let dot: f32 = x.iter().zip(&w[j * k..]).map(|(a, b)| a * b).sum();
            y[j] = dot + b.get(j).copied().unwrap_or(0.0);
        }
    }
}

/// Adds the gradients of [`plain`].
pub fn plain_backward(
    x: &[f32],       // (P, K)
    w: &[f32],       // (N, K)
    d_y: &[f32],     // (P, N)
    d_x: &mut [f32], // (P, K)
    d_w: &mut [f32], // (N, K)
    d_b: &mut [f32], // (N), or empty for none
    k: usize,
) {
    let n = w.len() / k;
    for ((x, d_y), d_x) in x.chunks_exact(k).zip(d_y.chunks_exact(n)).zip(d_x.chunks_exact_mut(k)) {
        for j in 0..n {
            for c in 0..k {
                d_x[c] += d_y[j] * w[j * k + c];
                d_w[j * k + c] += d_y[j] * x[c];
            }
        }
        for (d_b, d_y) in d_b.iter_mut().zip(d_y) {
            *d_b += d_y;
        }
    }
}
