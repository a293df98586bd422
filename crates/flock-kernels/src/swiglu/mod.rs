//! The second half of the sequence processor: `x += W₂ (silu(W₁ y) ⊙ W₃ y)` with `y = RMSNorm(x)`
//! and `silu(u) = u σ(u)`.

mod backward;
mod fast;

pub use backward::{Backward, BackwardScratch};
pub use fast::{Scratch, SwiGlu};

use crate::rmsnorm;

/// The hidden width `F` of the fast layer is `FACTOR · D`. The plain one takes any.
pub const FACTOR: usize = 3;

/// Parameters of the layer.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// (D)
    pub norm: &'a [f32],
    /// (F, D)
    pub w1: &'a [f32],
    /// (F, D)
    pub w3: &'a [f32],
    /// (D, F)
    pub w2: &'a [f32],
}

impl Weights<'_> {
    /// Checks lengths once: the kernels below use unchecked pointers. Returns the width.
    fn check(&self) -> usize {
        let d = self.norm.len();
        assert!(crate::has_width(d) && [self.w1, self.w3, self.w2].iter().all(|w| w.len() == FACTOR * d * d));
        d
    }
}

/// Runs the layer in place. This is the definition.
pub fn plain(
    x: &mut [f32], // (P, D)
    w: Weights<'_>,
) {
    let (d, f) = (w.norm.len(), w.w1.len() / w.norm.len());
    let rows = x.len() / d;
    let mut y = vec![0.0; rows * d];
    rmsnorm::plain(x, w.norm, &mut y);
    let (mut u, mut v) = (vec![0.0; rows * f], vec![0.0; rows * f]);
    crate::linear::plain(&y, w.w1, &[], &mut u, d);
    crate::linear::plain(&y, w.w3, &[], &mut v, d);
    for (u, v) in u.iter_mut().zip(&v) {
        *u = *u / (1.0 + (-*u).exp()) * v;
    }
    crate::linear::plain(&u, w.w2, &[], &mut y, f);
    for (x, y) in x.iter_mut().zip(&y) {
        *x += y;
    }
}

/// Gradients of the layer's parameters, shaped like [`Weights`].
pub struct Gradients<'a> {
    /// (D)
    pub d_norm: &'a mut [f32],
    /// (F, D)
    pub d_w1: &'a mut [f32],
    /// (F, D)
    pub d_w3: &'a mut [f32],
    /// (D, F)
    pub d_w2: &'a mut [f32],
}

/// Adds the gradients of [`plain`] to `d_w`. Recomputes everything from the input of the layer.
/// `d_x` holds the gradient of the output before the call, and the gradient of the input after it.
/// The residual branch needs no work: both of its gradients are equal.
pub fn plain_backward(
    x: &[f32], // (P, D), before the layer
    w: Weights<'_>,
    d_x: &mut [f32], // (P, D)
    d_w: &mut Gradients<'_>,
) {
    let (d, f) = (w.norm.len(), w.w1.len() / w.norm.len());
    let rows = x.len() / d;
    let mut y = vec![0.0; rows * d];
    rmsnorm::plain(x, w.norm, &mut y);
    let (mut u, mut v) = (vec![0.0; rows * f], vec![0.0; rows * f]);
    crate::linear::plain(&y, w.w1, &[], &mut u, d);
    crate::linear::plain(&y, w.w3, &[], &mut v, d);
    let sigmoid = |u: f32| 1.0 / (1.0 + (-u).exp());
    let gated: Vec<f32> = u.iter().zip(&v).map(|(u, v)| u * sigmoid(*u) * v).collect();

    let mut d_gated = vec![0.0; rows * f];
    crate::linear::plain_backward(&gated, w.w2, d_x, &mut d_gated, d_w.d_w2, &mut [], f);
    let (mut d_u, mut d_v) = (vec![0.0; rows * f], vec![0.0; rows * f]);
    for i in 0..rows * f {
        let s = sigmoid(u[i]);
        d_v[i] = d_gated[i] * u[i] * s;
        d_u[i] = d_gated[i] * v[i] * s * (1.0 + u[i] * (1.0 - s));
    }
    let mut d_y = vec![0.0; rows * d];
    crate::linear::plain_backward(&y, w.w1, &d_u, &mut d_y, d_w.d_w1, &mut [], d);
    crate::linear::plain_backward(&y, w.w3, &d_v, &mut d_y, d_w.d_w3, &mut [], d);
    rmsnorm::plain_backward(x, w.norm, &d_y, d_x, d_w.d_norm);
}
