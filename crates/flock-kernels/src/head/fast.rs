//! The SIMD forward of the head, beside [`plain`](super::plain).

use super::{Weights, hidden_width};
use crate::AlignedVec;
use crate::linear::{Activation, Linear};
use crate::simd::{Engine, Kernel, Mac, Vector};

/// The head packed for an engine.
pub struct Head {
    engine: Engine,
    width: usize,
    hidden: usize,
    first: Linear,
    second: Linear,
    last: AlignedVec<f32>, // (2D)
    bias: f32,
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    a: AlignedVec<f32>,
    b: AlignedVec<f32>,
}

impl Head {
    /// Packs the head.
    pub fn new(engine: Engine, w: Weights<'_>) -> Head {
        let width = w.width();
        let hidden = hidden_width(width);
        assert!([w.b0, w.b2, w.w4].iter().all(|part| part.len() == hidden));
        Head {
            engine,
            width,
            hidden,
            first: Linear::new(engine, w.w0, w.b0, width),
            second: Linear::new(engine, w.w2, w.b2, hidden),
            last: AlignedVec::from_slice(w.w4),
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
        const ROWS: usize = 96; // 48 KB each for `a` and `b` at width 64
        assert!(q.len() == logits.len() * self.width);
        scratch.a.resize(ROWS * self.hidden);
        scratch.b.resize(ROWS * self.hidden);
        for (q, logits) in q.chunks(ROWS * self.width).zip(logits.chunks_mut(ROWS)) {
            let hidden = logits.len() * self.hidden;
            self.layers(q, &mut scratch.a[..hidden], &mut scratch.b[..hidden], logits);
        }
    }

    /// Scores rows and keeps the hidden layers for [`Backward`](super::Backward).
    pub fn forward_kept(
        &self,
        q: &[f32],                         // (C, D)
        hidden: &mut [AlignedVec<f32>; 2], // (C, 2D) each
        logits: &mut [f32],                // (C)
    ) {
        assert!(q.len() == logits.len() * self.width);
        hidden.iter_mut().for_each(|h| h.resize(logits.len() * self.hidden));
        let [a, b] = hidden;
        self.layers(q, a, b, logits);
    }

    fn layers(&self, q: &[f32], a: &mut [f32], b: &mut [f32], logits: &mut [f32]) {
        self.first.forward(q, None, a, Activation::Relu);
        self.second.forward(a, None, b, Activation::Relu);
        self.engine.run(LastLayerKernel { head: self, x: b, logits });
    }
}

struct LastLayerKernel<'a> {
    head: &'a Head,
    x: &'a [f32],
    logits: &'a mut [f32],
}

impl Kernel for LastLayerKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        let hidden = self.head.hidden;
        for (x, logit) in self.x.chunks_exact(hidden).zip(self.logits) {
            // SAFETY: a row has `hidden` values, a whole number of vectors, and so has the weight.
            unsafe {
                let mut sum = M::V::zero();
                for c in (0..hidden).step_by(M::V::LANES) {
                    sum = M::V::load(x.as_ptr().add(c)).mul_add(M::V::load(self.head.last.as_ptr().add(c)), sum);
                }
                *logit = sum.sum() + self.head.bias;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, shapes, widths};

    #[test]
    fn fast_equals_plain() {
        for (d, engine) in widths().into_iter().flat_map(|d| engines().into_iter().map(move |e| (d, e))) {
            let h = hidden_width(d);
            let parts = [(h * d, 0.125), (h, 0.3), (h * h, 0.09), (h, 0.3), (h, 0.09), (1, 1.0)]
                .map(|(n, rms)| noise(n as u64, n, rms));
            let [w0, b0, w2, b2, w4, b4] = &parts;
            let w = Weights { w0, b0, w2, b2, w4, b4 };
            let head = Head::new(engine, w);
            for rows in shapes(&[1, 7, 96, 101], &[1]) {
                let q = noise(9, rows * d, 1.0);
                let (mut want, mut got) = (vec![0.0; rows], vec![0.0; rows]);
                plain(&q, &mut want, w);
                head.forward(&q, &mut got, &mut Scratch::default());
                let tolerance = if engine.precision() == Precision::F32 { 1e-5 } else { 3e-2 };
                assert_close(&got, &want, tolerance, &format!("{engine:?} width {d} rows {rows}"));
            }
        }
    }
}
