//! The SIMD forward of the feed-forward, beside [`plain`](super::plain).
//!
//! Each chunk of rows is normed and staged once. `W₁` and `W₃` are packed side by side, so that a
//! tile has both factors of a hidden unit in registers and writes only their product.

use super::{FACTOR, Weights};
use crate::AlignedVec;
use crate::linear::{CHUNK, pack_panel, panel_columns, tile};
use crate::rmsnorm::scale_of;
use crate::simd::{Engine, Mac, Vector, prefetch};
use crate::width::WidthKernel;

/// The layer packed for an engine.
pub struct SwiGlu {
    engine: Engine,
    width: usize,
    norm: AlignedVec<f32>, // (D)
    w13: AlignedVec<u32>,  // (F / half, D / per, [w1, w3], half): half a tile's columns each
    w2: AlignedVec<u32>,   // (D / panel, F / per, panel)
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    y: AlignedVec<u32>, // (CHUNK, D / per)
    u: AlignedVec<u32>, // (CHUNK, F / per)
}

impl SwiGlu {
    /// Packs the layer.
    pub fn new(engine: Engine, w: Weights<'_>) -> SwiGlu {
        let d = w.check();
        let f = FACTOR * d;
        let (mut w13, mut w2) = (Vec::with_capacity(2 * f * d), Vec::with_capacity(f * d));
        let panel = panel_columns(engine, 2 * f);
        let half = panel / 2;
        for f0 in (0..f).step_by(half) {
            pack_panel(engine, &mut w13, d, panel, |n, k| {
                let m = if n < half { w.w1 } else { w.w3 };
                m[(f0 + n % half) * d + k]
            });
        }
        let panel = panel_columns(engine, d);
        for n0 in (0..d).step_by(panel) {
            pack_panel(engine, &mut w2, f, panel, |n, k| w.w2[(n0 + n) * f + k]);
        }
        SwiGlu {
            engine,
            width: d,
            norm: AlignedVec::from_slice(w.norm),
            w13: AlignedVec::from_slice(&w13),
            w2: AlignedVec::from_slice(&w2),
        }
    }

    /// Runs the layer in place.
    pub fn forward(
        &self,
        x: &mut [f32], // (P, D)
        scratch: &mut Scratch,
    ) {
        assert!(x.len().is_multiple_of(self.width));
        self.engine.run_at(self.width, ForwardKernel::<false> { layer: self, x, uv: &mut [], scratch });
    }

    /// Does the same as [`SwiGlu::forward`], and keeps `W₁ y` and `W₃ y` of each row for the
    /// backward.
    pub fn forward_cached(
        &self,
        x: &mut [f32],  // (P, D)
        uv: &mut [f32], // (P, 2F)
        scratch: &mut Scratch,
    ) {
        assert!(x.len().is_multiple_of(self.width) && uv.len() == x.len() * 2 * FACTOR);
        self.engine.run_at(self.width, ForwardKernel::<true> { layer: self, x, uv, scratch });
    }
}

struct ForwardKernel<'a, const CACHE: bool> {
    layer: &'a SwiGlu,
    x: &'a mut [f32],
    uv: &'a mut [f32], // (P, 2F) if CACHE
    scratch: &'a mut Scratch,
}

impl<const CACHE: bool> WidthKernel for ForwardKernel<'_, CACHE> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) {
        self.scratch.y.resize(CHUNK * D / M::K_PER);
        self.scratch.u.resize(CHUNK * FACTOR * D / M::K_PER);
        let mut uv = self.uv.as_mut_ptr();
        for x in self.x.chunks_mut(CHUNK * D) {
            // SAFETY: the chunk has at most CHUNK rows, for which the scratch has room, and `uv` a row for each of `x`.
            unsafe {
                if M::V::LANES == 16 {
                    gated::<M, D, 4, 2, CACHE>(self.layer, x, uv, self.scratch);
                } else {
                    gated::<M, D, 2, 1, CACHE>(self.layer, x, uv, self.scratch);
                }
                project::<M, D, C>(self.layer, x, self.scratch);
            }
            uv = uv.wrapping_add(x.len() * 2 * FACTOR);
        }
    }
}

/// Computes the hidden units of one chunk of rows, `u = silu(W₁ y) ⊙ W₃ y`. A tile has `C` vectors
/// of columns, `HALF` of them for each factor.
#[inline(always)]
unsafe fn gated<M: Mac, const D: usize, const C: usize, const HALF: usize, const CACHE: bool>(
    layer: &SwiGlu,
    x: &[f32],
    uv: *mut f32,
    scratch: &mut Scratch,
) {
    const R: usize = 6;
    let lanes = M::V::LANES;
    let f = FACTOR * D;
    let (d_units, f_units) = (D / M::K_PER, f / M::K_PER);
    let rows = x.len() / D;
    let (y, u) = (scratch.y.as_mut_ptr(), scratch.u.as_mut_ptr());
    // SAFETY: the scratch holds CHUNK rows, a whole number of tiles; `uv` gets only `x`'s own rows.
    unsafe {
        for p in 0..rows {
            let from = x.as_ptr().add(p * D);
            let scale = M::V::splat(scale_of::<M::V, D>(from));
            for c in (0..D).step_by(lanes) {
                let g = M::V::load(layer.norm.as_ptr().add(c));
                M::stage(M::V::load(from.add(c)).mul(scale).mul(g), y.add(p * d_units), c);
            }
        }
        let one = M::V::splat(1.0);
        let minus_log2e = M::V::splat(-std::f32::consts::LOG2_E);
        for f0 in (0..f).step_by(HALF * lanes) {
            let panel = layer.w13.as_ptr().add(2 * f0 * d_units);
            for p in (0..rows).step_by(R) {
                let mut acc = [[M::V::zero(); C]; R];
                tile::<M, R, C>(&mut acc, d_units, y.add(p * d_units), d_units, panel);
                if CACHE {
                    // Prefetch the rows that the next chunk writes, a share with each tile.
                    let share = R * 2 * f / (f / (HALF * lanes));
                    let ahead = (CHUNK + p) * 2 * f + f0 / (HALF * lanes) * share;
                    for line in (0..share).step_by(16) {
                        prefetch(uv.wrapping_add(ahead + line));
                    }
                }
                for i in 0..R {
                    for c in 0..HALF {
                        let (a, b) = (acc[i][c], acc[i][HALF + c]);
                        if CACHE && p + i < rows {
                            let at = uv.add((p + i) * 2 * f + f0 + c * lanes);
                            a.store(at);
                            b.store(at.add(f));
                        }
                        // At the bound σ(a) is 2^-100, so the product is too small to change any
                        // sum.
                        let e = a.mul(minus_log2e).clamp(-100.0, 100.0).exp2();
                        let v = a.mul(b).mul(e.add(one).recip());
                        M::stage(v, u.add((p + i) * f_units), f0 + c * lanes);
                    }
                }
            }
        }
    }
}

/// Computes `x += W₂ u` for one chunk of rows.
#[inline(always)]
unsafe fn project<M: Mac, const D: usize, const C: usize>(layer: &SwiGlu, x: &mut [f32], scratch: &Scratch) {
    const R: usize = 6;
    let (f_units, lanes) = (FACTOR * D / M::K_PER, M::V::LANES);
    let rows = x.len() / D;
    let u = scratch.u.as_ptr();
    // SAFETY: the scratch holds CHUNK rows, a whole number of tiles; only `x`'s own rows are stored.
    unsafe {
        for n0 in (0..D).step_by(C * lanes) {
            let panel = layer.w2.as_ptr().add(n0 * f_units);
            for p in (0..rows).step_by(R) {
                let mut acc = [[M::V::zero(); C]; R];
                tile::<M, R, C>(&mut acc, f_units, u.add(p * f_units), f_units, panel);
                for i in 0..R.min(rows - p) {
                    for c in 0..C {
                        let to = x.as_mut_ptr().add((p + i) * D + n0 + c * lanes);
                        M::V::load(to).add(acc[i][c]).store(to);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, scale, shapes, widths};

    #[test]
    fn fast_equals_plain_on_odd_row_counts() {
        for (d, engine) in widths().into_iter().flat_map(|d| engines().into_iter().map(move |e| (d, e))) {
            let f = FACTOR * d;
            let (norm, w1, w3) = (noise(1, d, 1.0), noise(2, f * d, 0.2 * scale(d)), noise(3, f * d, 0.2 * scale(d)));
            let w2 = noise(4, f * d, 0.1 * scale(d));
            let w = Weights { norm: &norm, w1: &w1, w3: &w3, w2: &w2 };
            let layer = SwiGlu::new(engine, w);
            for rows in shapes(&[1, 6, 7, 23, 24, 25, 49], &[1]) {
                let x = noise(5, rows * d, 2.0);
                let (mut want, mut got) = (x.clone(), x.clone());
                plain(&mut want, w);
                layer.forward(&mut got, &mut Scratch::default());
                let tolerance = if engine.precision() == Precision::F32 { 3e-5 } else { 1e-1 };
                assert_close(&got, &want, tolerance, &format!("{engine:?} width {d} rows {rows}"));
            }
        }
    }
}
