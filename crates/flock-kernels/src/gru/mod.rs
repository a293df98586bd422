//! The first half of the sequence processor: `x += W_out [→h; ←h]`. The states `→h` and `←h` come
//! from two GRUs over `RMSNorm(x)`. One reads each walk from its start, the other from its end.
//! Both begin with zero states.
//!
//! Cell (gates in the order r, z, n):
//! ```text
//! r = σ(W_ir y + b_ir + W_hr h + b_hr)        z = σ(W_iz y + b_iz + W_hz h + b_hz)
//! n = tanh(W_in y + b_in + r ⊙ (W_hn h + b_hn))
//! h' = (1 − z) ⊙ n + z ⊙ h
//! ```

mod backward;
mod fast;

pub use backward::{Backward, BackwardScratch};
pub use fast::{Gru, Scratch};

use crate::rmsnorm;

/// Rows of width `D` that the forward keeps for the backward, per row and direction: h', r, z, n and
/// `W_hn h + b_hn`.
pub const CACHED: usize = 5;

/// Parameters of one direction, named and shaped as in the checkpoint.
#[derive(Clone, Copy)]
pub struct Direction<'a> {
    /// (3D, D)
    pub w_ih: &'a [f32],
    /// (3D, D)
    pub w_hh: &'a [f32],
    /// (3D)
    pub b_ih: &'a [f32],
    /// (3D)
    pub b_hh: &'a [f32],
}

impl Direction<'_> {
    fn width(&self) -> usize {
        self.b_ih.len() / 3
    }
}

/// Parameters of the layer.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// (D)
    pub norm: &'a [f32],
    /// From the start of the walk, then from its end.
    pub directions: [Direction<'a>; 2],
    /// (D, 2D)
    pub out: &'a [f32],
}

impl Weights<'_> {
    /// Checks lengths once: the kernels below use unchecked pointers. Returns the width.
    fn check(&self) -> usize {
        let d = self.norm.len();
        assert!(crate::has_width(d) && self.out.len() == 2 * d * d);
        for w in &self.directions {
            assert!(w.w_ih.len() == 3 * d * d && w.w_hh.len() == 3 * d * d);
            assert!(w.b_ih.len() == 3 * d && w.b_hh.len() == 3 * d);
        }
        d
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Runs one cell: `h` becomes `h'`. This loop is the definition.
pub fn cell(
    y: &[f32],     // (D)
    h: &mut [f32], // (D)
    w: Direction<'_>,
) {
    let d = h.len();
    let dot = |m: &[f32], row: usize, v: &[f32]| -> f32 { m[row * d..][..d].iter().zip(v).map(|(a, b)| a * b).sum() };
    let old = h.to_vec();
    for j in 0..d {
        let gate = |g: usize| {
            let row = g * d + j;
            (dot(w.w_ih, row, y) + w.b_ih[row], dot(w.w_hh, row, &old) + w.b_hh[row])
        };
        let ((ir, hr), (iz, hz), (n, hn)) = (gate(0), gate(1), gate(2));
        let (r, z) = (sigmoid(ir + hr), sigmoid(iz + hz));
        h[j] = (1.0 - z) * (n + r * hn).tanh() + z * old[j];
    }
}

/// Runs both directions and writes their states side by side at each position. This loop is the
/// definition.
pub fn plain_states(
    y: &[f32],       // (W, L, D), normed
    out: &mut [f32], // (W, L, 2D)
    length: usize,
    directions: [Direction<'_>; 2],
) {
    let d = directions[0].width();
    for (y, out) in y.chunks_exact(length * d).zip(out.chunks_exact_mut(length * 2 * d)) {
        for (side, w) in directions.into_iter().enumerate() {
            let mut h = vec![0.0; d];
            for step in 0..length {
                let t = if side == 0 { step } else { length - 1 - step };
                cell(&y[t * d..][..d], &mut h, w);
                out[t * 2 * d + side * d..][..d].copy_from_slice(&h);
            }
        }
    }
}

/// Runs the layer in place. This is the definition.
pub fn plain(
    x: &mut [f32], // (W, L, D)
    length: usize,
    w: Weights<'_>,
) {
    let mut y = vec![0.0; x.len()];
    rmsnorm::plain(x, w.norm, &mut y);
    let mut states = vec![0.0; 2 * x.len()];
    plain_states(&y, &mut states, length, w.directions);
    crate::linear::plain(&states, w.out, &[], &mut y, 2 * w.norm.len());
    for (x, y) in x.iter_mut().zip(&y) {
        *x += y;
    }
}

/// Gradients of one direction's parameters, shaped like [`Direction`].
pub struct DirectionGradients<'a> {
    /// (3D, D)
    pub d_w_ih: &'a mut [f32],
    /// (3D, D)
    pub d_w_hh: &'a mut [f32],
    /// (3D)
    pub d_b_ih: &'a mut [f32],
    /// (3D)
    pub d_b_hh: &'a mut [f32],
}

/// Gradients of the layer's parameters, shaped like [`Weights`].
pub struct Gradients<'a> {
    /// (D)
    pub d_norm: &'a mut [f32],
    /// From the start of the walk, then from its end.
    pub d_directions: [DirectionGradients<'a>; 2],
    /// (D, 2D)
    pub d_out: &'a mut [f32],
}

/// Adds the gradients of [`cell`]. Recomputes the gates.
pub fn cell_backward(
    y: &[f32], // (D)
    h: &[f32], // (D), before the cell
    w: Direction<'_>,
    d_new: &[f32],   // (D), of h'
    d_y: &mut [f32], // (D)
    d_h: &mut [f32], // (D)
    d_w: &mut DirectionGradients<'_>,
) {
    let d = h.len();
    let (mut i, mut g) = (vec![0.0; 3 * d], vec![0.0; 3 * d]); // W_i y + b_i and W_h h + b_h, gates r, z, n
    crate::linear::plain(y, w.w_ih, w.b_ih, &mut i, d);
    crate::linear::plain(h, w.w_hh, w.b_hh, &mut g, d);
    let (mut d_i, mut d_g) = (vec![0.0; 3 * d], vec![0.0; 3 * d]);
    for j in 0..d {
        let (jr, jz, jn) = (j, d + j, 2 * d + j);
        let (r, z) = (sigmoid(i[jr] + g[jr]), sigmoid(i[jz] + g[jz]));
        let n = (i[jn] + r * g[jn]).tanh();
        // Gradients before the activations: σ' = σ (1 − σ), tanh' = 1 − tanh².
        let d_n = d_new[j] * (1.0 - z) * (1.0 - n * n);
        let d_z = d_new[j] * (h[j] - n) * z * (1.0 - z);
        let d_r = d_n * g[jn] * r * (1.0 - r);
        (d_i[jr], d_i[jz], d_i[jn]) = (d_r, d_z, d_n);
        (d_g[jr], d_g[jz], d_g[jn]) = (d_r, d_z, d_n * r);
        d_h[j] += d_new[j] * z;
    }
    crate::linear::plain_backward(y, w.w_ih, &d_i, d_y, d_w.d_w_ih, d_w.d_b_ih, d);
    crate::linear::plain_backward(h, w.w_hh, &d_g, d_h, d_w.d_w_hh, d_w.d_b_hh, d);
}

/// Adds the gradients of [`plain_states`]. Goes through each direction from its last step to its
/// first.
pub fn plain_states_backward(
    y: &[f32],      // (W, L, D), normed
    states: &[f32], // (W, L, 2D), from the forward
    length: usize,
    directions: [Direction<'_>; 2],
    d_states: &[f32], // (W, L, 2D)
    d_y: &mut [f32],  // (W, L, D)
    d_directions: &mut [DirectionGradients<'_>; 2],
) {
    let d = directions[0].width();
    let zeros = vec![0.0; d];
    for walk in 0..y.len() / (length * d) {
        for (side, d_w) in d_directions.iter_mut().enumerate() {
            let position = |step: usize| walk * length + if side == 0 { step } else { length - 1 - step };
            let state_at = |p: usize| p * 2 * d + side * d..p * 2 * d + (side + 1) * d;
            let mut d_h = zeros.clone();
            for step in (0..length).rev() {
                let p = position(step);
                let h = if step == 0 { &zeros[..] } else { &states[state_at(position(step - 1))] };
                // Two readers use a state: the output layer and the next step.
                let mut d_new = std::mem::replace(&mut d_h, zeros.clone());
                d_new.iter_mut().zip(&d_states[state_at(p)]).for_each(|(d, s)| *d += s);
                let (y, d_y) = (&y[p * d..][..d], &mut d_y[p * d..][..d]);
                cell_backward(y, h, directions[side], &d_new, d_y, &mut d_h, d_w);
            }
        }
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
    let mut y = vec![0.0; x.len()];
    rmsnorm::plain(x, w.norm, &mut y);
    let mut states = vec![0.0; 2 * x.len()];
    plain_states(&y, &mut states, length, w.directions);
    let (mut d_states, mut d_y) = (vec![0.0; states.len()], vec![0.0; y.len()]);
    crate::linear::plain_backward(&states, w.out, d_x, &mut d_states, d_w.d_out, &mut [], 2 * w.norm.len());
    plain_states_backward(&y, &states, length, w.directions, &d_states, &mut d_y, &mut d_w.d_directions);
    rmsnorm::plain_backward(x, w.norm, &d_y, d_x, d_w.d_norm);
}
