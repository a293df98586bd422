//! The scoring head: `logit(q) = w₄ · relu(W₂ relu(W₀ q + b₀) + b₂) + b₄`, widths 64 → 128 → 128 → 1.

mod backward;
pub use backward::Backward;

use crate::linear::{Activation, Linear};
use crate::simd::{Engine, Kernel, Mac, Vector};
use crate::{Aligned, D};

/// Hidden width.
pub const HIDDEN: usize = 128;

/// Parameters of the head.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// (HIDDEN, D)
    pub w0: &'a [f32],
    /// (HIDDEN)
    pub b0: &'a [f32],
    /// (HIDDEN, HIDDEN)
    pub w2: &'a [f32],
    /// (HIDDEN)
    pub b2: &'a [f32],
    /// (1, HIDDEN)
    pub w4: &'a [f32],
    /// (1)
    pub b4: &'a [f32],
}

/// The definition.
pub fn plain(
    q: &[f32],          // (C, D)
    logits: &mut [f32], // (C)
    w: Weights<'_>,
) {
    let relu = |v: &mut [f32]| v.iter_mut().for_each(|x| *x = x.max(0.0));
    let mut a = vec![0.0; logits.len() * HIDDEN];
    let mut b = a.clone();
    crate::linear::plain(q, w.w0, w.b0, &mut a, D);
    relu(&mut a);
    crate::linear::plain(&a, w.w2, w.b2, &mut b, HIDDEN);
    relu(&mut b);
    crate::linear::plain(&b, w.w4, w.b4, logits, HIDDEN);
}

/// Gradients of the head's parameters, shaped like [`Weights`].
pub struct Gradients<'a> {
    /// (HIDDEN, D)
    pub d_w0: &'a mut [f32],
    /// (HIDDEN)
    pub d_b0: &'a mut [f32],
    /// (HIDDEN, HIDDEN)
    pub d_w2: &'a mut [f32],
    /// (HIDDEN)
    pub d_b2: &'a mut [f32],
    /// (1, HIDDEN)
    pub d_w4: &'a mut [f32],
    /// (1)
    pub d_b4: &'a mut [f32],
}

/// Backward of [`plain`]; the hidden layers are computed anew. The slope of relu at zero is zero.
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
    let mut a = vec![0.0; d_logits.len() * HIDDEN];
    let mut b = a.clone();
    crate::linear::plain(q, w.w0, w.b0, &mut a, D);
    relu(&mut a);
    crate::linear::plain(&a, w.w2, w.b2, &mut b, HIDDEN);
    relu(&mut b);

    let (mut d_a, mut d_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    crate::linear::plain_backward(&b, w.w4, d_logits, &mut d_b, d_w.d_w4, d_w.d_b4, HIDDEN);
    through(&mut d_b, &b);
    crate::linear::plain_backward(&a, w.w2, &d_b, &mut d_a, d_w.d_w2, d_w.d_b2, HIDDEN);
    through(&mut d_a, &a);
    crate::linear::plain_backward(q, w.w0, &d_a, d_q, d_w.d_w0, d_w.d_b0, D);
}

/// The head packed for an engine.
pub struct Head {
    engine: Engine,
    first: Linear,
    second: Linear,
    last: Aligned<f32>, // (HIDDEN)
    bias: f32,
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    a: Aligned<f32>,
    b: Aligned<f32>,
}

impl Head {
    /// Packs the head.
    pub fn new(engine: Engine, w: Weights<'_>) -> Head {
        assert!(w.w4.len() == HIDDEN && w.b0.len() == HIDDEN && w.b2.len() == HIDDEN);
        Head {
            engine,
            first: Linear::new(engine, w.w0, w.b0, D),
            second: Linear::new(engine, w.w2, w.b2, HIDDEN),
            last: Aligned::from_slice(w.w4),
            bias: w.b4[0],
        }
    }

    /// Scores rows.
    pub fn forward(
        &self,
        q: &[f32],          // (C, D)
        logits: &mut [f32], // (C)
        scratch: &mut Scratch,
    ) {
        const ROWS: usize = 96; // 48 KB each for `a` and `b`
        assert!(q.len() == logits.len() * D);
        scratch.a.resize(ROWS * HIDDEN);
        scratch.b.resize(ROWS * HIDDEN);
        for (q, logits) in q.chunks(ROWS * D).zip(logits.chunks_mut(ROWS)) {
            let hidden = logits.len() * HIDDEN;
            self.layers(q, &mut scratch.a[..hidden], &mut scratch.b[..hidden], logits);
        }
    }

    /// Scores rows and keeps the hidden layers for [`Backward`].
    pub fn forward_kept(
        &self,
        q: &[f32],                      // (C, D)
        hidden: &mut [Aligned<f32>; 2], // (C, HIDDEN) each
        logits: &mut [f32],             // (C)
    ) {
        assert!(q.len() == logits.len() * D);
        hidden.iter_mut().for_each(|h| h.resize(logits.len() * HIDDEN));
        let [a, b] = hidden;
        self.layers(q, a, b, logits);
    }

    fn layers(&self, q: &[f32], a: &mut [f32], b: &mut [f32], logits: &mut [f32]) {
        self.first.forward(q, None, a, Activation::Relu);
        self.second.forward(a, None, b, Activation::Relu);
        self.engine.run(Last { head: self, x: b, logits });
    }
}

struct Last<'a> {
    head: &'a Head,
    x: &'a [f32],
    logits: &'a mut [f32],
}

impl Kernel for Last<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        for (x, logit) in self.x.chunks_exact(HIDDEN).zip(self.logits) {
            // SAFETY: a row has HIDDEN values, and so has the weight.
            unsafe {
                let mut sum = M::V::zero();
                for c in (0..HIDDEN).step_by(M::V::LANES) {
                    sum = M::V::load(x.as_ptr().add(c)).mul_add(M::V::load(self.head.last.as_ptr().add(c)), sum);
                }
                *logit = sum.sum() + self.head.bias;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, shapes};

    #[test]
    fn fast_equals_plain() {
        let parts =
            [(HIDDEN * D, 0.125), (HIDDEN, 0.3), (HIDDEN * HIDDEN, 0.09), (HIDDEN, 0.3), (HIDDEN, 0.09), (1, 1.0)]
                .map(|(n, rms)| noise(n as u64, n, rms));
        let [w0, b0, w2, b2, w4, b4] = &parts;
        let w = Weights { w0, b0, w2, b2, w4, b4 };
        for engine in engines() {
            let head = Head::new(engine, w);
            for rows in shapes(&[1, 7, 96, 101], &[1]) {
                let q = noise(9, rows * D, 1.0);
                let (mut want, mut got) = (vec![0.0; rows], vec![0.0; rows]);
                plain(&q, &mut want, w);
                head.forward(&q, &mut got, &mut Scratch::default());
                let tolerance = if engine.precision() == Precision::F32 { 1e-5 } else { 3e-2 };
                assert_close(&got, &want, tolerance, &format!("{engine:?} rows {rows}"));
            }
        }
    }
}
