//! The scoring head: `logit(q) = w₄ · relu(W₂ relu(W₀ q + b₀) + b₂) + b₄`, widths `D → 2D → 2D → 1`.

mod backward;
mod fast;

pub use backward::Backward;
pub use fast::{Head, Scratch};

/// Hidden width of the head of a model.
pub fn hidden_width(width: usize) -> usize {
    2 * width
}

/// Parameters of the head.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// (2D, D)
    pub w0: &'a [f32],
    /// (2D)
    pub b0: &'a [f32],
    /// (2D, 2D)
    pub w2: &'a [f32],
    /// (2D)
    pub b2: &'a [f32],
    /// (1, 2D)
    pub w4: &'a [f32],
    /// (1)
    pub b4: &'a [f32],
}

impl Weights<'_> {
    /// Returns the width `D`.
    fn width(&self) -> usize {
        self.w0.len() / self.b0.len()
    }
}

/// Scores each row. This is the definition.
pub fn plain(
    q: &[f32],          // (C, D)
    logits: &mut [f32], // (C)
    w: Weights<'_>,
) {
    let relu = |v: &mut [f32]| v.iter_mut().for_each(|x| *x = x.max(0.0));
    let (d, hidden) = (w.width(), w.b0.len());
    let mut a = vec![0.0; logits.len() * hidden];
    let mut b = a.clone();
    crate::linear::plain(q, w.w0, w.b0, &mut a, d);
    relu(&mut a);
    crate::linear::plain(&a, w.w2, w.b2, &mut b, hidden);
    relu(&mut b);
    crate::linear::plain(&b, w.w4, w.b4, logits, hidden);
}

/// Gradients of the head's parameters, shaped like [`Weights`].
pub struct Gradients<'a> {
    /// (2D, D)
    pub d_w0: &'a mut [f32],
    /// (2D)
    pub d_b0: &'a mut [f32],
    /// (2D, 2D)
    pub d_w2: &'a mut [f32],
    /// (2D)
    pub d_b2: &'a mut [f32],
    /// (1, 2D)
    pub d_w4: &'a mut [f32],
    /// (1)
    pub d_b4: &'a mut [f32],
}

/// Adds the gradients of [`plain`]. Recomputes the hidden layers. The slope of relu at zero is
/// zero.
pub fn plain_backward(
    q: &[f32], // (C, D)
    w: Weights<'_>,
    d_logits: &[f32], // (C)
    d_q: &mut [f32],  // (C, D)
    d_w: &mut Gradients<'_>,
) {
    let relu = |v: &mut [f32]| v.iter_mut().for_each(|x| *x = x.max(0.0));
    let through = |d: &mut [f32], after: &[f32]| {
        d.iter_mut().zip(after).filter(|(_, a)| **a <= 0.0).for_each(|(d, _)| *d = 0.0);
    };
    let (d, hidden) = (w.width(), w.b0.len());
    let mut a = vec![0.0; d_logits.len() * hidden];
    let mut b = a.clone();
    crate::linear::plain(q, w.w0, w.b0, &mut a, d);
    relu(&mut a);
    crate::linear::plain(&a, w.w2, w.b2, &mut b, hidden);
    relu(&mut b);

    let (mut d_a, mut d_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    crate::linear::plain_backward(&b, w.w4, d_logits, &mut d_b, d_w.d_w4, d_w.d_b4, hidden);
    through(&mut d_b, &b);
    crate::linear::plain_backward(&a, w.w2, &d_b, &mut d_a, d_w.d_w2, d_w.d_b2, hidden);
    through(&mut d_a, &a);
    crate::linear::plain_backward(q, w.w0, &d_a, d_q, d_w.d_w0, d_w.d_b0, d);
}
