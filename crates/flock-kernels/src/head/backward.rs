//! The SIMD backward of the head, beside [`plain_backward`](super::plain_backward).

use super::{Gradients, Weights};
use crate::simd::Engine;
use crate::{AlignedVec, linear};

/// The head's transposed weights, packed for an engine.
pub struct Backward {
    width: usize,
    first: linear::Backward,
    second: linear::Backward,
    last: Vec<f32>, // (2D)
}

impl Backward {
    /// Packs the head.
    pub fn new(engine: Engine, w: Weights<'_>) -> Backward {
        let width = w.width();
        Backward {
            width,
            first: linear::Backward::new(engine, w.w0, width),
            second: linear::Backward::new(engine, w.w2, w.b0.len()),
            last: w.w4.to_vec(),
        }
    }

    /// Writes the gradient of the rows and adds those of the parameters. `hidden` comes from
    /// [`Head::forward_kept`](super::Head::forward_kept) and is overwritten.
    pub fn run(
        &self,
        q: &[f32],                         // (C, D)
        hidden: &mut [AlignedVec<f32>; 2], // (C, 2D) each
        d_logits: &[f32],                  // (C)
        d_q: &mut [f32],                   // (C, D)
        d_w: &mut Gradients<'_>,
    ) {
        let [a, b] = hidden;
        let hidden = self.last.len();
        assert!(a.len() == d_logits.len() * hidden && b.len() == a.len() && q.len() == d_logits.len() * self.width);
        // Turns `b` into its own gradient. Each row is read before it is written.
        for (b, &d) in b.chunks_exact_mut(hidden).zip(d_logits) {
            d_w.d_b4[0] += d;
            for ((b, d_w4), w4) in b.iter_mut().zip(d_w.d_w4.iter_mut()).zip(&self.last) {
                *d_w4 += d * *b;
                *b = if *b > 0.0 { d * w4 } else { 0.0 };
            }
        }
        let mut d_a = AlignedVec::<f32>::zeros(a.len());
        self.second.run(a, b, &mut d_a, d_w.d_w2, d_w.d_b2);
        d_a.iter_mut().zip(a.iter()).filter(|(_, a)| **a <= 0.0).for_each(|(d, _)| *d = 0.0);
        self.first.run(q, &d_a, d_q, d_w.d_w0, d_w.d_b0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Head, hidden_width, plain_backward};
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, shapes, widths};

    #[test]
    fn fast_gradients_equal_plain_ones() {
        let rms = [0.125, 0.3, 0.09, 0.3, 0.09, 1.0];
        for (d, engine) in widths().into_iter().flat_map(|d| engines().into_iter().map(move |e| (d, e))) {
            let h = hidden_width(d);
            let sizes = [h * d, h, h * h, h, h, 1];
            let parts: Vec<Vec<f32>> = sizes.iter().zip(rms).map(|(n, rms)| noise(*n as u64, *n, rms)).collect();
            let [w0, b0, w2, b2, w4, b4] = &parts[..] else { unreachable!() };
            let w = Weights { w0, b0, w2, b2, w4, b4 };
            for rows in shapes(&[1, 7, 101], &[1]) {
                let (q, d_logits) = (noise(9, rows * d, 1.0), noise(10, rows, 1.0));
                let mut gradients = [(); 2].map(|()| sizes.map(|n| vec![0.0; n]));
                let mut d_q = [vec![0.0; q.len()], vec![0.0; q.len()]];
                for (fast, (grads, d_q)) in gradients.iter_mut().zip(&mut d_q).enumerate() {
                    let [d_w0, d_b0, d_w2, d_b2, d_w4, d_b4] = grads.each_mut().map(|g| &mut g[..]);
                    let mut d_w = Gradients { d_w0, d_b0, d_w2, d_b2, d_w4, d_b4 };
                    if fast == 0 {
                        plain_backward(&q, w, &d_logits, d_q, &mut d_w);
                    } else {
                        let (mut hidden, mut logits) = (Default::default(), vec![0.0; rows]);
                        Head::new(engine, w).forward_kept(&q, &mut hidden, &mut logits);
                        Backward::new(engine, w).run(&q, &mut hidden, &d_logits, d_q, &mut d_w);
                    }
                }
                let pairs = gradients[1].iter().zip(&gradients[0]).chain([(&d_q[1], &d_q[0])]);
                for (part, (got, want)) in pairs.enumerate() {
                    let what = format!("{engine:?} width {d} rows {rows} part {part}");
                    if engine.precision() == Precision::F32 {
                        assert_close(got, want, 3e-5, &what);
                    } else {
                        // A hidden value near zero may round to the other side of the kink. Its
                        // whole share is then wrong, but few values do this.
                        let norm = |v: &mut dyn Iterator<Item = f32>| v.map(|x| x * x).sum::<f32>().sqrt();
                        let off = norm(&mut got.iter().zip(want).map(|(g, w)| g - w));
                        assert!(off <= 0.3 * norm(&mut want.iter().copied()), "{what}: off by {off}");
                    }
                }
            }
        }
    }
}
