//! The SIMD backward of attention, beside [`plain_backward`](super::plain_backward). It recomputes
//! the values of the forward.
//!
//! With `a` the weights of a head and `d` the gradient of its output, and both score matrices
//! stored with a row per key:
//! ```text
//! d_v = a d      d_s = a ⊙ (v dᵀ − mean) / √D      d_q = d_sᵀ k      d_k = d_s q
//! ```
//! For each query, `mean` is the average of its column of `v dᵀ` under its weights.

use super::fast::{
    AttendKernel, Attention, Scratch, WalkScratch, columns, gather, gather_transposed, padded, product, project,
    scatter,
};
use super::{Gradients, HEADS, Weights, add, scale};
use crate::simd::{Engine, Mac, Vector};
use crate::width::WidthKernel;
use crate::{AlignedVec, linear, rmsnorm};

/// The layer, and its transposed weights, packed for an engine.
pub struct Backward {
    forward: Attention,
    heads: Vec<[linear::Backward; 4]>, // (HEADS): q, k, v, out
}

/// Working memory of one thread.
#[derive(Default)]
pub struct BackwardScratch {
    forward: Scratch,
    x: Vec<f32>,                 // (P, D), with positions
    d_qkv: [AlignedVec<f32>; 3], // (P, D), of one head
    d_attended: AlignedVec<f32>, // (P, D), of one head
    d_part: AlignedVec<f32>,     // (P, D)
    d_y: Vec<f32>,               // (P, D)
    walk: WalkBackwardScratch,
}

/// Buffers for one walk of one head, in addition to [`WalkScratch`].
#[derive(Default)]
struct WalkBackwardScratch {
    q: AlignedVec<f32>,            // (L, D)
    k: AlignedVec<f32>,            // (L, D)
    v_transposed: AlignedVec<f32>, // (D, padded)
    d: AlignedVec<f32>,            // (L, D)
    d_transposed: AlignedVec<f32>, // (D, padded)
    d_scores: AlignedVec<f32>,     // (padded, padded): key, query
    transposed: AlignedVec<f32>,   // (padded, padded): query, key
    out: AlignedVec<f32>,          // (padded, D)
}

impl Backward {
    /// Packs the layer.
    pub fn new(engine: Engine, w: Weights<'_>) -> Backward {
        let d = w.norm.len();
        let head = |h: usize| {
            let rows = |m: &[f32]| linear::Backward::new(engine, &m[h * d * d..][..d * d], d);
            [rows(w.q), rows(w.k), rows(w.v), linear::Backward::new(engine, &columns(w.out, h, d), d)]
        };
        Backward { forward: Attention::new(engine, w), heads: (0..HEADS).map(head).collect() }
    }

    /// Takes the gradient of the output in `d_x` and replaces it with the gradient of the input.
    /// Adds the gradients of the weights to `d_w`.
    pub fn run(
        &self,
        x: &[f32], // (L, walks, D), before the layer
        walks: usize,
        d_x: &mut [f32], // (L, walks, D)
        d_w: &mut Gradients<'_>,
        scratch: &mut BackwardScratch,
    ) {
        let layer = &self.forward;
        let width = layer.width();
        assert!(x.len() == d_x.len() && x.len() == layer.position.len() * walks);
        assert!(d_w.d_position.len() == layer.position.len() && d_w.d_norm.len() == width);
        let tables = [&*d_w.d_q, &*d_w.d_k, &*d_w.d_v, &*d_w.d_out];
        assert!(tables.iter().all(|d| d.len() == HEADS * width * width));
        let BackwardScratch { forward, x: with_positions, d_qkv, d_attended, d_part, d_y, walk: back } = scratch;
        with_positions.clear();
        with_positions.extend_from_slice(x);
        layer.start(with_positions, walks, &mut forward.y);
        let Scratch { y, qkv, attended, walk, .. } = forward;
        for buffer in d_qkv.iter_mut().chain([&mut *attended, &mut *d_attended, &mut *d_part]) {
            buffer.resize(x.len());
        }
        d_y.clear();
        d_y.resize(x.len(), 0.0);
        let (mut no_bias, mut d_out) = (vec![0.0; width], vec![0.0; width * width]);
        for (h, (layers, backward)) in layer.heads.iter().zip(&self.heads).enumerate() {
            project(layers, y, qkv);
            layer.engine.run_at(width, AttendKernel { qkv, walks, out: attended, walk });
            d_out.fill(0.0);
            backward[3].run(attended, d_x, d_attended, &mut d_out, &mut no_bias);
            for (row, d) in d_w.d_out.chunks_exact_mut(HEADS * width).zip(d_out.chunks_exact(width)) {
                add(&mut row[h * width..][..width], d);
            }
            layer.engine.run_at(width, AttendBackwardKernel { qkv, d_attended, walks, d_qkv, walk, back });
            let tables = [&mut *d_w.d_q, &mut *d_w.d_k, &mut *d_w.d_v];
            for ((layer, d_table), d) in backward.iter().zip(tables).zip(&*d_qkv) {
                layer.run(y, d, d_part, &mut d_table[h * width * width..][..width * width], &mut no_bias);
                add(d_y, d_part);
            }
        }
        rmsnorm::plain_backward(with_positions, &layer.norm, d_y, d_x, d_w.d_norm);
        for (d_x, d_p) in d_x.chunks_exact((walks * width).max(1)).zip(d_w.d_position.chunks_exact_mut(width)) {
            d_x.chunks_exact(width).for_each(|d| add(d_p, d));
        }
    }
}

/// The backward of one head over every walk of a block.
struct AttendBackwardKernel<'a> {
    qkv: &'a [AlignedVec<f32>; 3], // (L, walks, D)
    d_attended: &'a [f32],         // (L, walks, D)
    walks: usize,
    d_qkv: &'a mut [AlignedVec<f32>; 3], // (L, walks, D)
    walk: &'a mut WalkScratch,
    back: &'a mut WalkBackwardScratch,
}

impl WidthKernel for AttendBackwardKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) {
        let AttendBackwardKernel { qkv: [q, k, v], d_attended, walks, d_qkv: [d_q, d_k, d_v], walk, back: s } = self;
        let length = q.len() / (walks * D).max(1);
        let (padded, even) = (padded(length), length.next_multiple_of(2));
        for w in 0..walks {
            walk.take::<D>(q, k, v, w, walks);
            gather::<D>(q, w, walks, &mut s.q);
            gather::<D>(k, w, walks, &mut s.k);
            gather_transposed::<D>(v, w, walks, &mut s.v_transposed);
            gather::<D>(d_attended, w, walks, &mut s.d);
            gather_transposed::<D>(d_attended, w, walks, &mut s.d_transposed);
            for buffer in [&mut s.d_scores, &mut s.transposed] {
                buffer.resize(padded * padded);
            }
            s.out.resize(padded * D);
            // SAFETY: all buffers have `padded` columns, or `length` rows or `padded` rows of D.
            unsafe {
                walk.attend::<M::Full, D>();
                transpose(&walk.weights, length, padded, &mut s.transposed);
                product::<M::Full>(length, (&s.transposed, padded), even, (&s.d, D), D, &mut s.out);
                scatter::<D>(&s.out, w, walks, d_v);

                let d_scores = &mut s.d_scores;
                product::<M::Full>(D, (&s.v_transposed, padded), even, (&s.d_transposed, padded), padded, d_scores);
                softmax_backward::<M::V>(&walk.weights, d_scores, length, padded, scale(D));
                product::<M::Full>(length, (d_scores, padded), even, (&s.k, D), D, &mut s.out);
                scatter::<D>(&s.out, w, walks, d_q);
                transpose(d_scores, length, padded, &mut s.transposed);
                product::<M::Full>(length, (&s.transposed, padded), even, (&s.q, D), D, &mut s.out);
                scatter::<D>(&s.out, w, walks, d_k);
            }
        }
    }
}

/// Transposes the first `length` rows and columns, and fills the rest of each row with zeros.
fn transpose(from: &[f32], length: usize, padded: usize, to: &mut [f32]) {
    for i in 0..length {
        let to = &mut to[i * padded..][..padded];
        for (t, to) in to[..length].iter_mut().enumerate() {
            *to = from[t * padded + i];
        }
        to[length..].fill(0.0);
    }
}

/// Turns `d` from the gradient of the weights `a` into the gradient of the unscaled scores, column
/// by column.
///
/// # Safety
/// The rules of [`Vector`]. Both have `length` rows of `width` values, a multiple of 64.
#[inline(always)]
unsafe fn softmax_backward<V: Vector>(a: &[f32], d: &mut [f32], length: usize, width: usize, scale: f32) {
    let (a, d) = (a.as_ptr(), d.as_mut_ptr());
    // SAFETY: the caller's promise.
    unsafe {
        for i in (0..width).step_by(V::LANES) {
            let mut mean = V::zero();
            for t in 0..length {
                mean = V::load(a.add(t * width + i)).mul_add(V::load(d.add(t * width + i)), mean);
            }
            let scale = V::splat(scale);
            for t in 0..length {
                let at = d.add(t * width + i);
                V::load(at).sub(mean).mul(V::load(a.add(t * width + i))).mul(scale).store(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_backward;
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, shapes, widths};

    fn gradients(parts: &mut [Vec<f32>; 6]) -> Gradients<'_> {
        let [d_position, d_norm, d_q, d_k, d_v, d_out] = parts;
        Gradients { d_position, d_norm, d_q, d_k, d_v, d_out }
    }

    #[test]
    fn fast_gradients_equal_plain_ones() {
        let all = shapes(&[(1, 1), (3, 7), (2, 65)], &[(1, 2)]);
        for (d, (walks, length)) in widths().into_iter().flat_map(|d| all.iter().map(move |shape| (d, *shape))) {
            let table = HEADS * d * d;
            let sizes = [length * d, d, table, table, table, table];
            let rms = [1.0, 1.0, 0.2, 0.2, 0.125, 0.08];
            let p: Vec<Vec<f32>> = (0..6).map(|i| noise(20 + i as u64, sizes[i], rms[i])).collect();
            let w = Weights { position: &p[0], norm: &p[1], q: &p[2], k: &p[3], v: &p[4], out: &p[5] };
            let (x, d_out) = (noise(1, walks * length * d, 1.0), noise(2, walks * length * d, 1.0));
            let (mut want_x, mut want) = (d_out.clone(), sizes.map(|n| vec![0.0; n]));
            plain_backward(&x, length, w, &mut want_x, &mut gradients(&mut want));
            let time_major = |x: &[f32]| -> Vec<f32> {
                let rows = (0..length).flat_map(|l| (0..walks).map(move |w| w * length + l));
                rows.flat_map(|row| x[row * d..][..d].iter().copied()).collect()
            };
            for engine in engines() {
                let (mut got_x, mut got) = (time_major(&d_out), sizes.map(|n| vec![0.0; n]));
                let mut scratch = BackwardScratch::default();
                let layer = Backward::new(engine, w);
                layer.run(&time_major(&x), walks, &mut got_x, &mut gradients(&mut got), &mut scratch);
                let tolerance = if engine.precision() == Precision::F32 { 1e-4 } else { 0.1 };
                let close = |got: &[f32], want: &[f32], what: &str| {
                    let largest = want.iter().fold(0f32, |m, v| m.max(v.abs()));
                    assert_close(
                        got,
                        want,
                        tolerance * largest.max(0.1),
                        &format!("{engine:?} width {d} {walks}×{length}: {what}"),
                    );
                };
                close(&got_x, &time_major(&want_x), "d_x");
                for (i, what) in ["position", "norm", "q", "k", "v", "out"].into_iter().enumerate() {
                    close(&got[i], &want[i], what);
                }
            }
        }
    }
}
