//! The register tile of all matrix products in this crate, and the panels of weights that it reads.
//!
//! A tile is `R` rows by `C` vectors of columns, with all accumulators in registers. Each step of
//! the inner dimension loads `C` weight vectors and broadcasts `R` activations for `R · C`
//! multiply-adds. AVX2 (16 registers) has tiles of 6×2 vectors and AVX-512 (32 registers) of 6×4,
//! or of 6×3 or 6×2 where four vectors do not divide the columns ([`tile_vectors`]).
//!
//! Weights are packed once, in the order in which tiles read them. One panel of weights stays in L1
//! while a chunk of rows goes by.

use crate::simd::{Engine, Kernel, Mac, Vector};
use crate::width::tile_vectors;

/// Steps of a tile's inner loop that are unrolled. A loop of 64 steps ends in a mispredicted
/// branch, a loop of 16 does not.
pub(super) const UNROLL: usize = 4;

/// Computes `acc += A W` on `R × C` accumulators. `steps` counts units of the inner dimension and
/// is a multiple of [`UNROLL`].
///
/// # Safety
/// `a` reaches `R` rows `stride` units apart, `w` holds `steps` rows of `C` vectors.
#[inline(always)]
pub(crate) unsafe fn tile<M: Mac, const R: usize, const C: usize>(
    acc: &mut [[M::V; C]; R],
    steps: usize,
    a: *const u32,
    stride: usize,
    w: *const u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if M::SHARED {
            let acc = std::ptr::from_mut(acc).cast();
            M::call(TileKernel::<R, C> { acc, steps, a, stride, w });
        } else {
            tile_inline::<M, R, C>(acc, steps, a, stride, w);
        }
    }
}

/// A tile as a function of its own.
struct TileKernel<const R: usize, const C: usize> {
    acc: *mut f32, // (R, C) vectors
    steps: usize,
    a: *const u32,
    stride: usize,
    w: *const u32,
}

impl<const R: usize, const C: usize> Kernel for TileKernel<R, C> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        // SAFETY: `tile` has made the kernel from its own arguments, for the vectors of this `M`.
        unsafe {
            // A copy stays in registers: nothing else can point to it.
            let kept = self.acc.cast::<[[M::V; C]; R]>();
            let mut acc = *kept;
            tile_inline::<M, R, C>(&mut acc, self.steps, self.a, self.stride, self.w);
            *kept = acc;
        }
    }
}

#[inline(always)]
unsafe fn tile_inline<M: Mac, const R: usize, const C: usize>(
    acc: &mut [[M::V; C]; R],
    steps: usize,
    a: *const u32,
    stride: usize,
    w: *const u32,
) {
    let lanes = M::V::LANES;
    // SAFETY: the caller's promise covers every address formed here.
    unsafe {
        for k0 in (0..steps).step_by(UNROLL) {
            for k in k0..k0 + UNROLL {
                let mut wk = [M::weights(w.add(k * C * lanes)); C];
                for c in 1..C {
                    wk[c] = M::weights(w.add((k * C + c) * lanes));
                }
                for r in 0..R {
                    let ak = M::splat(a.add(r * stride + k));
                    for c in 0..C {
                        acc[r][c] = M::mac(acc[r][c], wk[c], ak);
                    }
                }
            }
        }
    }
}

/// Rows that are staged together. A panel of weights in L1 serves this many rows.
pub(crate) const CHUNK: usize = 24;

/// Packs columns of `Wᵀ` into one panel of (steps, columns) units. `at(n, k)` is the weight of
/// column `n` and inner element `k`.
pub(crate) fn pack_panel(
    engine: Engine,
    units: &mut Vec<u32>,
    k: usize,
    columns: usize,
    at: impl Fn(usize, usize) -> f32,
) {
    let (storage, per) = (engine.storage(), engine.k_per());
    for step in 0..k / per {
        for n in 0..columns {
            let k0 = step * per;
            units.push(storage.unit(at(n, k0), if per == 2 { at(n, k0 + 1) } else { 0.0 }));
        }
    }
}

/// Returns the number of columns of a packed panel, for a product of `n` columns.
pub(crate) fn panel_columns(engine: Engine, n: usize) -> usize {
    engine.lanes() * tile_vectors(engine.lanes(), n)
}
