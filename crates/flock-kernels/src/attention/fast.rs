//! The SIMD forward of attention, beside [`plain`](super::plain).
//!
//! The projections are [`Linear`] layers over a block of walks, with time-major rows. Attention
//! goes walk by walk in `f32`. All its products use the register tiles of the weight gradients.
//! Scores are stored transposed, with a row per key, so that the softmax runs down the columns for
//! a whole vector of queries.

use super::{HEADS, Weights, add, scale};
use crate::linear::outer::outer_of;
use crate::linear::{Activation, Linear};
use crate::simd::{Engine, Mac, Vector};
use crate::width::WidthKernel;
use crate::{AlignedVec, rmsnorm};

/// Copies head `h` of the output layer: (D, D) out of (D, HEADS · D).
pub(super) fn columns(out: &[f32], h: usize, width: usize) -> Vec<f32> {
    out.chunks_exact(HEADS * width).flat_map(|row| row[h * width..][..width].iter().copied()).collect()
}

/// The layer packed for an engine.
pub struct Attention {
    pub(super) engine: Engine,
    pub(super) position: Vec<f32>,      // (L, D)
    pub(super) norm: Vec<f32>,          // (D)
    pub(super) heads: Vec<[Linear; 4]>, // (HEADS): q, k, v, out
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    pub(super) y: AlignedVec<f32>,        // (P, D)
    pub(super) qkv: [AlignedVec<f32>; 3], // (P, D), of one head
    pub(super) attended: AlignedVec<f32>, // (P, D), of one head
    projected: AlignedVec<f32>,           // (P, D)
    pub(super) walk: WalkScratch,
}

/// Buffers for one walk of one head. `padded` is the length rounded up to a whole number of tiles.
#[derive(Default)]
pub(super) struct WalkScratch {
    q: AlignedVec<f32>,                  // (D, padded)
    k: AlignedVec<f32>,                  // (D, padded)
    v: AlignedVec<f32>,                  // (L, D)
    pub(super) weights: AlignedVec<f32>, // (padded, padded): key, query
    out: AlignedVec<f32>,                // (padded, D)
}

impl Attention {
    /// Packs the layer.
    pub fn new(engine: Engine, w: Weights<'_>) -> Attention {
        let d = w.norm.len();
        let no_bias = vec![0.0; d];
        let head = |h: usize| {
            let rows = |m: &[f32]| Linear::new(engine, &m[h * d * d..][..d * d], &no_bias, d);
            [rows(w.q), rows(w.k), rows(w.v), Linear::new(engine, &columns(w.out, h, d), &no_bias, d)]
        };
        Attention {
            engine,
            position: w.position.to_vec(),
            norm: w.norm.to_vec(),
            heads: (0..HEADS).map(head).collect(),
        }
    }

    /// Runs the layer in place on the walks of a block.
    pub fn forward(
        &self,
        x: &mut [f32], // (L, walks, D)
        walks: usize,
        scratch: &mut Scratch,
    ) {
        assert!(x.len() == self.position.len() * walks);
        self.start(x, walks, &mut scratch.y);
        let Scratch { y, qkv, attended, projected, walk } = scratch;
        attended.resize(x.len());
        projected.resize(x.len());
        for layers in &self.heads {
            project(layers, y, qkv);
            self.engine.run_at(self.width(), AttendKernel { qkv, walks, out: attended, walk });
            layers[3].forward(attended, None, projected, Activation::None);
            add(x, projected);
        }
    }

    pub(super) fn width(&self) -> usize {
        self.norm.len()
    }

    /// Adds the positions to `x` and writes the normed rows to `y`.
    pub(super) fn start(&self, x: &mut [f32], walks: usize, y: &mut AlignedVec<f32>) {
        let d = self.width();
        for (x, p) in x.chunks_exact_mut((walks * d).max(1)).zip(self.position.chunks_exact(d)) {
            x.chunks_exact_mut(d).for_each(|x| add(x, p));
        }
        y.resize(x.len());
        rmsnorm::plain(x, &self.norm, y);
    }
}

/// Computes the queries, keys and values of one head.
pub(super) fn project(layers: &[Linear; 4], y: &[f32], qkv: &mut [AlignedVec<f32>; 3]) {
    for (layer, out) in layers.iter().zip(qkv) {
        out.resize(y.len());
        layer.forward(y, None, out, Activation::None);
    }
}

/// The attention of one head over every walk of a block.
pub(super) struct AttendKernel<'a> {
    pub(super) qkv: &'a [AlignedVec<f32>; 3], // (L, walks, D)
    pub(super) walks: usize,
    pub(super) out: &'a mut [f32], // (L, walks, D)
    pub(super) walk: &'a mut WalkScratch,
}

impl WidthKernel for AttendKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) {
        let AttendKernel { qkv: [q, k, v], walks, out, walk } = self;
        for w in 0..walks {
            walk.take::<D>(q, k, v, w, walks);
            // SAFETY: `take` has sized the scratch.
            unsafe { walk.attend::<M::Full, D>() };
            scatter::<D>(&walk.out, w, walks, out);
        }
    }
}

/// Rounds a length up to a whole number of tiles, at every vector length.
pub(super) fn padded(length: usize) -> usize {
    length.next_multiple_of(64)
}

impl WalkScratch {
    /// Reads walk `w` of a block and sizes the buffers for it.
    pub(super) fn take<const D: usize>(&mut self, q: &[f32], k: &[f32], v: &[f32], w: usize, walks: usize) {
        gather_transposed::<D>(q, w, walks, &mut self.q);
        gather_transposed::<D>(k, w, walks, &mut self.k);
        gather::<D>(v, w, walks, &mut self.v);
        let padded = padded(self.v.len() / D);
        self.weights.resize(padded * padded);
        self.out.resize(padded * D);
    }

    /// Fills `weights` and `out`.
    ///
    /// # Safety
    /// The rules of [`Vector`]. [`WalkScratch::take`] has been called.
    #[inline(always)]
    pub(super) unsafe fn attend<M: Mac, const D: usize>(&mut self) {
        let length = self.v.len() / D;
        let padded = padded(length);
        let even = length.next_multiple_of(2);
        // SAFETY: `take` has given every buffer `padded` columns, or rows, or `length` rows of `v`.
        unsafe {
            product::<M>(D, (&self.k, padded), even, (&self.q, padded), padded, &mut self.weights);
            softmax::<M::V>(&mut self.weights, length, padded, scale(D));
            product::<M>(length, (&self.weights, padded), even, (&self.v, D), D, &mut self.out);
        }
    }
}

/// Computes `c = Aᵀ B` over `rows` rows. `c` has `m` rows (an even number) of `n` columns.
///
/// # Safety
/// The rules of [`Vector`]. Operands have `rows` rows of at least `m` and `n` values; `n` is a width of the model
/// or a multiple of 64.
#[inline(always)]
pub(super) unsafe fn product<M: Mac>(
    rows: usize,
    (a, a_stride): (&[f32], usize),
    m: usize,
    (b, b_stride): (&[f32], usize),
    n: usize,
    c: &mut [f32],
) {
    debug_assert!(a.len() >= rows * a_stride && b.len() >= rows * b_stride && c.len() >= m * n);
    debug_assert!(a_stride >= m && b_stride >= n);
    c[..m * n].fill(0.0);
    let (a, b) = ((a.as_ptr().cast(), a_stride), (b.as_ptr().cast(), b_stride));
    // SAFETY: the caller's promise.
    unsafe {
        outer_of::<M>(rows, a, m, b, n, c.as_mut_ptr(), n);
    }
}

/// Scales the scores and runs a softmax down each column of the first `length` rows.
///
/// # Safety
/// The rules of [`Vector`]. `s` has `length` rows of `width` values, a multiple of 64.
#[inline(always)]
unsafe fn softmax<V: Vector>(s: &mut [f32], length: usize, width: usize, scale: f32) {
    let s = s.as_mut_ptr();
    // SAFETY: the caller's promise.
    unsafe {
        let log2e = V::splat(std::f32::consts::LOG2_E * scale);
        for i in (0..width).step_by(V::LANES) {
            let mut max = V::load(s.add(i));
            for t in 1..length {
                max = max.max(V::load(s.add(t * width + i)));
            }
            let mut total = V::zero();
            for t in 0..length {
                let at = s.add(t * width + i);
                let e = V::load(at).sub(max).mul(log2e).clamp(-126.0, 0.0).exp2();
                e.store(at);
                total = total.add(e);
            }
            let share = total.recip();
            for t in 0..length {
                let at = s.add(t * width + i);
                V::load(at).mul(share).store(at);
            }
        }
    }
}

/// Copies walk `w` of a block as (L, D).
pub(super) fn gather<const D: usize>(from: &[f32], w: usize, walks: usize, to: &mut AlignedVec<f32>) {
    to.resize(from.len() / walks);
    for (to, from) in to.chunks_exact_mut(D).zip(from.chunks_exact(walks * D)) {
        to.copy_from_slice(&from[w * D..][..D]);
    }
}

/// Copies walk `w` of a block as (D, padded), with zeros past its length.
pub(super) fn gather_transposed<const D: usize>(from: &[f32], w: usize, walks: usize, to: &mut AlignedVec<f32>) {
    let padded = padded(from.len() / (walks * D));
    to.resize(D * padded);
    to.fill(0.0);
    for (l, from) in from.chunks_exact(walks * D).enumerate() {
        for (c, x) in from[w * D..][..D].iter().enumerate() {
            to[c * padded + l] = *x;
        }
    }
}

/// Copies the rows of walk `w` back into the block.
pub(super) fn scatter<const D: usize>(from: &[f32], w: usize, walks: usize, to: &mut [f32]) {
    for (from, to) in from.chunks_exact(D).zip(to.chunks_exact_mut(walks * D)) {
        to[w * D..][..D].copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, shapes, widths};

    #[test]
    fn fast_equals_plain_on_odd_shapes() {
        let rms = [1.0, 0.25, 0.25, 0.125, 0.08]; // scores of rms 4 at width 64: no softmax is flat
        let all = shapes(&[(1, 1), (5, 7), (12, 24), (2, 65)], &[(1, 2)]);
        for (d, (walks, length)) in widths().into_iter().flat_map(|d| all.iter().map(move |shape| (d, *shape))) {
            let table = HEADS * d * d;
            let sizes = [d, table, table, table, table];
            let position = noise(9, length * d, 1.0);
            let p: Vec<Vec<f32>> = (0..5).map(|i| noise(20 + i as u64, sizes[i], rms[i])).collect();
            let w = Weights { position: &position, norm: &p[0], q: &p[1], k: &p[2], v: &p[3], out: &p[4] };
            let x = noise(1, walks * length * d, 1.0);
            let mut want = x.clone();
            plain(&mut want, length, w);
            // From walk-major to time-major, and back.
            let row = |wk: usize, l: usize| (wk * length + l, l * walks + wk);
            let all: Vec<_> = (0..walks).flat_map(|wk| (0..length).map(move |l| row(wk, l))).collect();
            for engine in engines() {
                let (mut block, mut got) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                all.iter().for_each(|(a, b)| block[b * d..][..d].copy_from_slice(&x[a * d..][..d]));
                Attention::new(engine, w).forward(&mut block, walks, &mut Scratch::default());
                all.iter().for_each(|(a, b)| got[a * d..][..d].copy_from_slice(&block[b * d..][..d]));
                let tolerance = if engine.precision() == Precision::F32 { 3e-5 } else { 0.15 };
                assert_close(&got, &want, tolerance, &format!("{engine:?} width {d} {walks}×{length}"));
            }
        }
    }
}
