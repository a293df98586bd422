//! The SIMD backward of a linear layer, beside [`plain_backward`](super::plain_backward).

use super::outer::{SEGMENT, operand, outer_of};
use super::{Activation, Linear};
use crate::AlignedVec;
use crate::simd::{Engine, Kernel, Mac};

/// A layer's transposed weights, packed for an engine.
pub struct Backward {
    engine: Engine,
    transposed: Linear,
}

impl Backward {
    /// Packs `w` (N, K), sizes as for [`Linear::new`].
    pub fn new(engine: Engine, w: &[f32], k: usize) -> Backward {
        let n = w.len() / k;
        let mut transposed = vec![0.0; w.len()];
        for j in 0..n {
            for c in 0..k {
                transposed[c * n + j] = w[j * k + c];
            }
        }
        Backward { engine, transposed: Linear::new(engine, &transposed, &vec![0.0; k], n) }
    }

    /// Writes `d_x = d_y W`, adds `d_w += d_yᵀ x` and `d_b += Σ d_y`.
    pub fn run(
        &self,
        x: &[f32],       // (P, K)
        d_y: &[f32],     // (P, N)
        d_x: &mut [f32], // (P, K)
        d_w: &mut [f32], // (N, K)
        d_b: &mut [f32], // (N)
    ) {
        let (n, k) = (self.transposed.k, self.transposed.n);
        assert!(x.len().is_multiple_of(k) && d_y.len() == x.len() / k * n && d_w.len() == n * k && d_b.len() == n);
        self.transposed.forward(d_y, None, d_x, Activation::None);
        self.engine.run(WeightGradientKernel { x, d_y, d_w, d_b, k });
    }
}

struct WeightGradientKernel<'a> {
    x: &'a [f32],
    d_y: &'a [f32],
    d_w: &'a mut [f32],
    d_b: &'a mut [f32],
    k: usize,
}

impl Kernel for WeightGradientKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        let WeightGradientKernel { x, d_y, d_w, d_b, k } = self;
        let n = d_b.len();
        let mut rooms = [AlignedVec::<u32>::zeros(SEGMENT * k), AlignedVec::<u32>::zeros(SEGMENT * n)];
        for (x, d_y) in x.chunks(SEGMENT * k).zip(d_y.chunks(SEGMENT * n)) {
            let rows = x.len() / k;
            // SAFETY: a segment has at most SEGMENT rows, for which the rooms are made.
            unsafe {
                let xs = operand::<M>(x.as_ptr(), k, rows, k, rooms[0].as_mut_ptr());
                let ds = operand::<M>(d_y.as_ptr(), n, rows, n, rooms[1].as_mut_ptr());
                outer_of::<M>(rows, ds, n, xs, k, d_w.as_mut_ptr(), k);
                super::outer::add_rows::<M::V>(rows, d_y.as_ptr(), n, n, d_b.as_mut_ptr());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WIDTHS;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, scale, shapes};

    #[test]
    fn fast_gradients_equal_plain_ones() {
        for engine in engines() {
            let all: Vec<_> = WIDTHS
                .iter()
                .flat_map(|&d| [(d, d, 1), (d, d, 101), (d, 2 * d, 49), (2 * d, d, 25), (2 * d, 2 * d, 7)])
                .collect();
            for (k, n, rows) in shapes(&all, &[(64, 64, 7)]) {
                let (w, x, d_y) = (noise(1, n * k, 0.125 * scale(n)), noise(2, rows * k, 1.0), noise(3, rows * n, 1.0));
                let (mut want_x, mut want_w, mut want_b) = (vec![0.0; rows * k], vec![0.0; n * k], vec![0.0; n]);
                super::super::plain_backward(&x, &w, &d_y, &mut want_x, &mut want_w, &mut want_b, k);
                let (mut d_x, mut d_w, mut d_b) = (vec![0.0; rows * k], vec![0.0; n * k], vec![0.0; n]);
                Backward::new(engine, &w, k).run(&x, &d_y, &mut d_x, &mut d_w, &mut d_b);
                let tolerance = if engine.precision() == Precision::F32 { 1e-5 } else { 3e-2 };
                let what = format!("{engine:?} {rows}×{k}×{n}");
                assert_close(&d_x, &want_x, tolerance, &what);
                assert_close(&d_w, &want_w, 4.0 * tolerance, &what);
                assert_close(&d_b, &want_b, 1e-4, &what);
            }
        }
    }
}
