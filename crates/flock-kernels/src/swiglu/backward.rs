//! The SIMD backward of the feed-forward, beside [`plain_backward`](super::plain_backward).
//!
//! For each segment of rows it computes `d_gated = d_x W₂`, from it `d_u` and `d_v` element by
//! element, then `d_y = d_u W₁ + d_v W₃`, then the gradient of the norm. The three weight gradients
//! are computed while the rows are still in the near caches.

use super::{FACTOR, Gradients, Weights};
use crate::AlignedVec;
use crate::linear::outer::{SEGMENT, operand, outer};
use crate::linear::{pack_panel, panel_columns, tile};
use crate::rmsnorm::{row_backward, scale_of};
use crate::simd::{Engine, Mac, Vector, prefetch};
use crate::width::WidthKernel;

/// The layer's transposed weights, packed for an engine.
pub struct Backward {
    engine: Engine,
    width: usize,
    norm: AlignedVec<f32>, // (D)
    w2: AlignedVec<u32>,   // (F / panel, D / per, panel)
    w13: AlignedVec<u32>,  // (D / panel, 2F / per, panel)
}

/// Working memory of one thread.
#[derive(Default)]
pub struct BackwardScratch {
    d_out: AlignedVec<u32>,       // (SEGMENT, D / per)
    d_uv: AlignedVec<u32>,        // (SEGMENT, 2F / per), if not in `rows`
    rows: AlignedVec<f32>,        // (SEGMENT, [gated F, d_u F, d_v F])
    y: AlignedVec<f32>,           // (SEGMENT, D)
    d_y: AlignedVec<f32>,         // (SEGMENT, D)
    staged: [AlignedVec<u32>; 3], // operands of the weight gradients
}

impl Backward {
    /// Packs the layer.
    pub fn new(engine: Engine, w: Weights<'_>) -> Backward {
        let d = w.check();
        // Panels of F columns are those of D columns: tiles are chosen by the width.
        let (f, panel) = (FACTOR * d, panel_columns(engine, d));
        let (mut w2, mut w13) = (Vec::with_capacity(f * d), Vec::with_capacity(2 * f * d));
        for n0 in (0..f).step_by(panel) {
            pack_panel(engine, &mut w2, d, panel, |n, k| w.w2[k * f + n0 + n]);
        }
        for n0 in (0..d).step_by(panel) {
            pack_panel(engine, &mut w13, 2 * f, panel, |n, k| {
                let (m, k) = if k < f { (w.w1, k) } else { (w.w3, k - f) };
                m[k * d + n0 + n]
            });
        }
        Backward {
            engine,
            width: d,
            norm: AlignedVec::from_slice(w.norm),
            w2: AlignedVec::from_slice(&w2),
            w13: AlignedVec::from_slice(&w13),
        }
    }

    /// Takes the gradient of the output in `d_x` and replaces it with the gradient of the input.
    /// Adds the gradients of the weights to `d_w`.
    pub fn run(
        &self,
        x: &[f32],       // (P, D), before the layer
        uv: &[f32],      // (P, 2F), from `SwiGlu::forward_cached`
        d_x: &mut [f32], // (P, D)
        d_w: &mut Gradients<'_>,
        scratch: &mut BackwardScratch,
    ) {
        let d = self.width;
        assert!(x.len() == d_x.len() && x.len().is_multiple_of(d) && uv.len() == x.len() * 2 * FACTOR);
        let tables = [&*d_w.d_w1, &*d_w.d_w2, &*d_w.d_w3];
        assert!(d_w.d_norm.len() == d && tables.iter().all(|w| w.len() == FACTOR * d * d));
        self.engine.run_at(d, BackwardKernel { layer: self, x, uv, d_x, d_w, scratch });
    }
}

struct BackwardKernel<'a, 'w> {
    layer: &'a Backward,
    x: &'a [f32],
    uv: &'a [f32],
    d_x: &'a mut [f32],
    d_w: &'a mut Gradients<'w>,
    scratch: &'a mut BackwardScratch,
}

impl WidthKernel for BackwardKernel<'_, '_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) {
        let f = FACTOR * D;
        let s = &mut *self.scratch;
        s.d_out.resize(SEGMENT * D);
        s.d_uv.resize(if M::DIRECT { 0 } else { SEGMENT * 2 * f });
        s.rows.resize(SEGMENT * 3 * f);
        s.y.resize(SEGMENT * D);
        s.d_y.resize(SEGMENT * D);
        for (room, width) in s.staged.iter_mut().zip([3 * f, D, D]) {
            room.resize(SEGMENT * width);
        }
        let parts = self.x.chunks(SEGMENT * D).zip(self.uv.chunks(SEGMENT * 2 * f));
        for ((x, uv), d_x) in parts.zip(self.d_x.chunks_mut(SEGMENT * D)) {
            // SAFETY: a segment has at most SEGMENT rows, a whole number of tiles, for which the scratch has room.
            unsafe {
                segment::<M, D, C>(self.layer, x, uv, d_x, self.d_w, s);
            }
        }
    }
}

#[inline(always)]
unsafe fn segment<M: Mac, const D: usize, const C: usize>(
    layer: &Backward,
    x: &[f32],
    uv: &[f32],
    d_x: &mut [f32],
    d_w: &mut Gradients<'_>,
    s: &mut BackwardScratch,
) {
    const R: usize = 6;
    let lanes = M::V::LANES;
    let hidden = FACTOR * D;
    let (d_units, f_units) = (D / M::K_PER, 2 * hidden / M::K_PER);
    let count = x.len() / D;
    // SAFETY: `BackwardKernel::run` has sized the scratch for SEGMENT rows; `x`, `uv` and `d_x` have `count`.
    unsafe {
        let (y, d_y, rows) = (s.y.as_mut_ptr(), s.d_y.as_mut_ptr(), s.rows.as_mut_ptr());
        for p in 0..count {
            let scale = M::V::splat(scale_of::<M::V, D>(x.as_ptr().add(p * D)));
            for c in (0..D).step_by(lanes) {
                let g = M::V::load(layer.norm.as_ptr().add(c));
                M::V::load(x.as_ptr().add(p * D + c)).mul(scale).mul(g).store(y.add(p * D + c));
                M::stage(M::V::load(d_x.as_ptr().add(p * D + c)), s.d_out.as_mut_ptr().add(p * d_units), c);
            }
        }
        let one = M::V::splat(1.0);
        let minus_log2e = M::V::splat(-std::f32::consts::LOG2_E);
        for f0 in (0..hidden).step_by(C * lanes) {
            let panel = layer.w2.as_ptr().add(f0 * d_units);
            for p in (0..count).step_by(R) {
                let mut acc = [[M::V::zero(); C]; R];
                tile::<M, R, C>(&mut acc, d_units, s.d_out.as_ptr().add(p * d_units), d_units, panel);
                // Prefetch the rows of the next segment, a share with each tile.
                let share = R * 2 * hidden / (hidden / (C * lanes));
                let ahead = (SEGMENT + p) * 2 * hidden + f0 / (C * lanes) * share;
                for line in (0..share).step_by(16) {
                    prefetch(uv.as_ptr().wrapping_add(ahead + line));
                }
                for i in 0..R.min(count - p) {
                    for c in 0..C {
                        let f = f0 + c * lanes;
                        let at = uv.as_ptr().add((p + i) * 2 * hidden + f);
                        let (u, v, d_gated) = (M::V::load(at), M::V::load(at.add(hidden)), acc[i][c]);
                        let sigmoid = u.mul(minus_log2e).clamp(-100.0, 100.0).exp2().add(one).recip();
                        let silu = u.mul(sigmoid);
                        let slope = sigmoid.mul(u.mul_add(one.sub(sigmoid), one));
                        let (d_u, d_v) = (d_gated.mul(v).mul(slope), d_gated.mul(silu));
                        let row = rows.add((p + i) * 3 * hidden + f);
                        silu.mul(v).store(row);
                        d_u.store(row.add(hidden));
                        d_v.store(row.add(2 * hidden));
                        if !M::DIRECT {
                            let staged = s.d_uv.as_mut_ptr().add((p + i) * f_units);
                            M::stage(d_u, staged, f);
                            M::stage(d_v, staged, hidden + f);
                        }
                    }
                }
            }
        }
        // The weight gradients come first, because `d_x` changes below.
        let [room_rows, room_y, room_d] = &mut s.staged;
        let (wide, wide_stride) = operand::<M>(rows, 3 * hidden, count, 3 * hidden, room_rows.as_mut_ptr());
        let y_rows = operand::<M>(y, D, count, D, room_y.as_mut_ptr());
        let d_rows = operand::<M>(d_x.as_ptr(), D, count, D, room_d.as_mut_ptr());
        outer::<M, C>(count, d_rows, D, (wide, wide_stride), hidden, d_w.d_w2.as_mut_ptr(), hidden);
        outer::<M, C>(count, (wide.add(hidden), wide_stride), hidden, y_rows, D, d_w.d_w1.as_mut_ptr(), D);
        outer::<M, C>(count, (wide.add(2 * hidden), wide_stride), hidden, y_rows, D, d_w.d_w3.as_mut_ptr(), D);

        let (d_uv, d_uv_stride): (*const u32, usize) =
            if M::DIRECT { (rows.add(hidden).cast_const().cast(), 3 * hidden) } else { (s.d_uv.as_ptr(), f_units) };
        for n0 in (0..D).step_by(C * lanes) {
            let panel = layer.w13.as_ptr().add(n0 * f_units);
            for p in (0..count).step_by(R) {
                let mut acc = [[M::V::zero(); C]; R];
                tile::<M, R, C>(&mut acc, f_units, d_uv.add(p * d_uv_stride), d_uv_stride, panel);
                for i in 0..R {
                    for c in 0..C {
                        acc[i][c].store(d_y.add((p + i) * D + n0 + c * lanes));
                    }
                }
            }
        }
        for p in 0..count {
            let at = p * D;
            row_backward::<M::V, D>(
                x.as_ptr().add(at),
                layer.norm.as_ptr(),
                d_y.add(at),
                d_x.as_mut_ptr().add(at),
                d_w.d_norm.as_mut_ptr(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scratch, SwiGlu, plain_backward};
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, scale, shapes, widths};

    #[test]
    fn fast_gradients_equal_plain_ones() {
        for (d, engine) in widths().into_iter().flat_map(|d| engines().into_iter().map(move |e| (d, e))) {
            let f = FACTOR * d;
            let (norm, w1, w3) = (noise(1, d, 1.0), noise(2, f * d, 0.2 * scale(d)), noise(3, f * d, 0.2 * scale(d)));
            let w2 = noise(4, f * d, 0.1 * scale(d));
            let w = Weights { norm: &norm, w1: &w1, w3: &w3, w2: &w2 };
            let zeros = || [d, f * d, f * d, f * d].map(|n| vec![0.0; n]);
            for rows in shapes(&[1, 7, 48, 101], &[1]) {
                let (x, d_out) = (noise(5, rows * d, 1.5), noise(6, rows * d, 1.0));
                let (mut want_x, mut want) = (d_out.clone(), zeros());
                let [a, b, c, e] = &mut want;
                plain_backward(&x, w, &mut want_x, &mut Gradients { d_norm: a, d_w1: b, d_w3: c, d_w2: e });
                let (mut out, mut uv) = (x.clone(), vec![0.0; rows * 2 * f]);
                SwiGlu::new(engine, w).forward_cached(&mut out, &mut uv, &mut Scratch::default());
                let (mut got_x, mut got) = (d_out.clone(), zeros());
                let [a, b, c, e] = &mut got;
                let mut d_w = Gradients { d_norm: a, d_w1: b, d_w3: c, d_w2: e };
                Backward::new(engine, w).run(&x, &uv, &mut got_x, &mut d_w, &mut BackwardScratch::default());
                // Weight gradients sum over rows: errors grow with them.
                let tolerance = if engine.precision() == Precision::F32 { 1e-5 } else { 3e-2 };
                assert_close(&got_x, &want_x, 10.0 * tolerance, &format!("{engine:?} width {d} {rows} rows: d_x"));
                for (i, (g, w)) in got.iter().zip(&want).enumerate() {
                    let largest = w.iter().fold(0f32, |m, v| m.max(v.abs()));
                    assert_close(g, w, tolerance * largest, &format!("{engine:?} width {d} {rows} rows: weight {i}"));
                }
            }
        }
    }
}
