//! The SIMD backward of the GRU, beside [`plain_backward`](super::plain_backward).
//!
//! With `d` the gradient of h', per hidden unit:
//! ```text
//! d_z̃ = d (h − n) z (1 − z)      d_ñ = d (1 − z)(1 − n²)      d_r̃ = d_ñ · hn · r (1 − r)      d_hn = d_ñ · r
//! d_h = d z + W_hrᵀ d_r̃ + W_hzᵀ d_z̃ + W_hnᵀ d_hn             d_y = W_irᵀ d_r̃ + W_izᵀ d_z̃ + W_inᵀ d_ñ
//! ```
//! Only `d_h` has to go step by step, from the last step of the forward to the first. `d_y` and the
//! weight gradients follow for a few steps of all walks together, while their rows are still in the
//! near caches.

use super::{CACHED, Gradients, Weights};
use crate::linear::outer::{SEGMENT, add_rows, operand, outer};
use crate::linear::{pack_panel, panel_columns, tile};
use crate::rmsnorm::{row_backward, scale_of};
use crate::simd::{Engine, Mac, Vector, prefetch_row};
use crate::width::WidthKernel;
use crate::{AlignedVec, BLOCK};

/// Number of gate gradients: r̃, z̃, hn, ñ. Each has a buffer of its own for a segment, so that its
/// rows are close together. In one row for all four they would be a kilobyte apart and compete for
/// the same few cache sets.
const GATES: usize = 4;
/// Returns where the rows of a gate begin. A row has `units` units.
const fn gate_at(gate: usize, units: usize) -> usize {
    gate * SEGMENT * units
}

/// The layer's transposed weights, packed for an engine.
pub struct Backward {
    engine: Engine,
    width: usize,
    norm: AlignedVec<f32>,      // (D)
    out: AlignedVec<u32>,       // (2D / panel, D / per, panel)
    w_ih: [AlignedVec<u32>; 2], // (D / panel, 3D / per, panel)
    w_hh: [AlignedVec<u32>; 2], // (D / panel, 3D / per, panel)
}

/// Working memory of one thread.
#[derive(Default)]
pub struct BackwardScratch {
    d_states: AlignedVec<f32>,   // (rows, 2D)
    d_y: AlignedVec<f32>,        // (rows, D)
    y: AlignedVec<f32>,          // (rows, D)
    d_out: AlignedVec<u32>,      // (SEGMENT, D / per)
    d_gates: AlignedVec<f32>,    // (GATES, SEGMENT, D)
    staged: AlignedVec<u32>,     // (GATES, SEGMENT, D / per), if not the same
    before: AlignedVec<f32>,     // (SEGMENT, D), h before each step
    carry: AlignedVec<f32>,      // (BLOCK, D)
    rooms: [AlignedVec<u32>; 3], // operands of the weight gradients
}

impl Backward {
    /// Packs the layer.
    pub fn new(engine: Engine, w: Weights<'_>) -> Backward {
        let d = w.check();
        let pack = |columns: usize, k: usize, at: &dyn Fn(usize, usize) -> f32| {
            // Panels of 2D columns are those of D columns: tiles are chosen by the width.
            let panel = panel_columns(engine, d);
            let mut units = Vec::with_capacity(columns * k);
            for n0 in (0..columns).step_by(panel) {
                pack_panel(engine, &mut units, k, panel, |n, k| at(n0 + n, k));
            }
            AlignedVec::from_slice(&units)
        };
        let transposed = |m: &[f32]| pack(d, 3 * d, &|n, k| m[k * d + n]);
        Backward {
            engine,
            width: d,
            norm: AlignedVec::from_slice(w.norm),
            out: pack(2 * d, d, &|n, k| w.out[k * 2 * d + n]),
            w_ih: w.directions.map(|d| transposed(d.w_ih)),
            w_hh: w.directions.map(|d| transposed(d.w_hh)),
        }
    }

    /// Runs one block. Takes the gradient of the output in `d_x` and replaces it with the gradient
    /// of the input. Adds the gradients of the weights to `d_w`.
    pub fn run(
        &self,
        x: &[f32], // (L, walks, D), before the layer
        walks: usize,
        kept: [&[f32]; 2], // (L, walks, CACHED, D), from `Gru::forward_cached`
        d_x: &mut [f32],   // (L, walks, D)
        d_w: &mut Gradients<'_>,
        scratch: &mut BackwardScratch,
    ) {
        let width = self.width;
        assert!(walks <= BLOCK && x.len() == d_x.len() && (walks == 0 || x.len().is_multiple_of(walks * width)));
        assert!(kept.iter().all(|k| k.len() == x.len() * CACHED));
        assert!(d_w.d_norm.len() == width && d_w.d_out.len() == 2 * width * width);
        for d in &d_w.d_directions {
            assert!(d.d_w_ih.len() == 3 * width * width && d.d_w_hh.len() == 3 * width * width);
            assert!(d.d_b_ih.len() == 3 * width && d.d_b_hh.len() == 3 * width);
        }
        if !x.is_empty() {
            self.engine.run_at(width, BackwardKernel { layer: self, x, walks, kept, d_x, d_w, scratch });
        }
    }
}

struct BackwardKernel<'a, 'w> {
    layer: &'a Backward,
    x: &'a [f32],
    walks: usize,
    kept: [&'a [f32]; 2],
    d_x: &'a mut [f32],
    d_w: &'a mut Gradients<'w>,
    scratch: &'a mut BackwardScratch,
}

impl WidthKernel for BackwardKernel<'_, '_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) {
        let rows = self.x.len() / D;
        let s = &mut *self.scratch;
        s.d_states.resize(rows * 2 * D);
        s.d_y.resize(rows * D);
        s.y.resize(rows * D);
        s.d_out.resize(SEGMENT * D);
        s.d_gates.resize(GATES * SEGMENT * D);
        s.staged.resize(if M::DIRECT { 0 } else { GATES * SEGMENT * D });
        s.before.resize(SEGMENT * D);
        s.carry.resize(BLOCK * D);
        for (room, width) in s.rooms.iter_mut().zip([D, 2 * D, D]) {
            room.resize(SEGMENT * width);
        }
        s.d_y.fill(0.0);
        // SAFETY: `Backward::run` has checked the arguments, and the scratch is sized for them.
        unsafe { back::<M, D, C>(self) }
    }
}

#[inline(always)]
unsafe fn back<M: Mac, const D: usize, const C: usize>(job: BackwardKernel<'_, '_>) {
    let BackwardKernel { layer, x, walks, kept, d_x, d_w, scratch: s } = job;
    let rows = x.len() / D;
    // SAFETY: `BackwardKernel::run` has sized the scratch for these rows.
    unsafe {
        for p in 0..rows {
            let scale = M::V::splat(scale_of::<M::V, D>(x.as_ptr().add(p * D)));
            for c in (0..D).step_by(M::V::LANES) {
                let g = M::V::load(layer.norm.as_ptr().add(c));
                M::V::load(x.as_ptr().add(p * D + c)).mul(scale).mul(g).store(s.y.as_mut_ptr().add(p * D + c));
            }
        }
        project_back::<M, D, C>(layer, d_x, kept, d_w.d_out, s);
        for side in 0..2 {
            direction_back::<M, D, C>(layer, side, walks, kept[side], d_w, s);
        }
        for p in 0..rows {
            let at = p * D;
            row_backward::<M::V, D>(
                x.as_ptr().add(at),
                layer.norm.as_ptr(),
                s.d_y.as_ptr().add(at),
                d_x.as_mut_ptr().add(at),
                d_w.d_norm.as_mut_ptr(),
            );
        }
    }
}

/// Goes back through the output layer: `d_states = d_x W_out`, `d_W_out += d_xᵀ [→h; ←h]`.
#[inline(always)]
unsafe fn project_back<M: Mac, const D: usize, const C: usize>(
    layer: &Backward,
    d_x: &[f32],
    kept: [&[f32]; 2],
    d_out: &mut [f32],
    s: &mut BackwardScratch,
) {
    const R: usize = 6;
    let (units, lanes, cached) = (D / M::K_PER, M::V::LANES, CACHED * D);
    let rows = d_x.len() / D;
    // SAFETY: segments have at most SEGMENT rows, a whole number of tiles; only real rows are stored.
    unsafe {
        for p0 in (0..rows).step_by(SEGMENT) {
            let count = SEGMENT.min(rows - p0);
            for p in 0..count {
                for c in (0..D).step_by(lanes) {
                    let v = M::V::load(d_x.as_ptr().add((p0 + p) * D + c));
                    M::stage(v, s.d_out.as_mut_ptr().add(p * units), c);
                }
            }
            for n0 in (0..2 * D).step_by(C * lanes) {
                let panel = layer.out.as_ptr().add(n0 * units);
                for p in (0..count).step_by(R) {
                    let mut acc = [[M::V::zero(); C]; R];
                    tile::<M, R, C>(&mut acc, units, s.d_out.as_ptr().add(p * units), units, panel);
                    for i in 0..R.min(count - p) {
                        for c in 0..C {
                            let to = s.d_states.as_mut_ptr().add((p0 + p + i) * 2 * D + n0 + c * lanes);
                            acc[i][c].store(to);
                        }
                    }
                }
            }
            let [_, room_h, room_d] = &mut s.rooms;
            let d_rows = operand::<M>(d_x.as_ptr().add(p0 * D), D, count, D, room_d.as_mut_ptr());
            for (side, kept) in kept.iter().enumerate() {
                let h = operand::<M>(kept.as_ptr().add(p0 * cached), cached, count, D, room_h.as_mut_ptr());
                outer::<M, C>(count, d_rows, D, h, D, d_out.as_mut_ptr().add(side * D), 2 * D);
            }
        }
    }
}

/// Goes back through one direction. Adds to `d_y` and to the weight gradients of the direction.
#[inline(always)]
unsafe fn direction_back<M: Mac, const D: usize, const C: usize>(
    layer: &Backward,
    side: usize,
    walks: usize,
    kept: &[f32],
    d_w: &mut Gradients<'_>,
    s: &mut BackwardScratch,
) {
    const R: usize = 6;
    let (units, lanes, cached) = (D / M::K_PER, M::V::LANES, CACHED * D);
    let length = kept.len() / (walks * cached);
    let at_once = SEGMENT / BLOCK;
    let d_w = &mut d_w.d_directions[side];
    s.carry.fill(0.0);
    let d_gates = s.d_gates.as_mut_ptr();
    let staged: *mut u32 = if M::DIRECT { d_gates.cast() } else { s.staged.as_mut_ptr() };
    // SAFETY: a segment is at most `at_once` steps of at most BLOCK walks, a whole number of tiles within each gate's SEGMENT rows;
    // tiles that reach past its rows read what an earlier segment left there, and only real rows are stored.
    unsafe {
        for first in (0..length).step_by(at_once) {
            let steps = at_once.min(length - first);
            let count = steps * walks;
            for i in 0..steps {
                // The last step of the forward comes first.
                let step = length - 1 - (first + i);
                let (t, before) =
                    if side == 0 { (step, step.wrapping_sub(1)) } else { (length - 1 - step, length - step) };
                for b in 0..walks {
                    let (p, row) = (t * walks + b, i * walks + b);
                    let kept_now = kept.as_ptr().add(p * cached);
                    // Prefetch what the next iteration reads. The product below hides the wait.
                    let next =
                        kept.as_ptr().wrapping_add(before.wrapping_mul(walks).wrapping_add(b).wrapping_mul(cached));
                    for k in 1..CACHED {
                        prefetch_row::<D>(next.wrapping_add(k * D));
                    }
                    let after =
                        if side == 0 { next.wrapping_sub(walks * cached) } else { next.wrapping_add(walks * cached) };
                    prefetch_row::<D>(after);
                    for c in (0..D).step_by(lanes) {
                        let old = match step {
                            0 => M::V::zero(),
                            _ => M::V::load(kept.as_ptr().add((before * walks + b) * cached + c)),
                        };
                        old.store(s.before.as_mut_ptr().add(row * D + c));
                        let [r, z, n, hn] = [1, 2, 3, 4].map(|k| M::V::load(kept_now.add(k * D + c)));
                        let carry = s.carry.as_mut_ptr().add(b * D + c);
                        let d = M::V::load(s.d_states.as_ptr().add(p * 2 * D + side * D + c)).add(M::V::load(carry));
                        let one = M::V::splat(1.0);
                        let d_n = d.mul(one.sub(z)).mul(one.sub(n.mul(n)));
                        let d_r = d_n.mul(hn).mul(r).mul(one.sub(r));
                        let d_z = d.mul(old.sub(n)).mul(z).mul(one.sub(z));
                        let d_hn = d_n.mul(r);
                        d.mul(z).store(carry);
                        for (gate, v) in [d_r, d_z, d_hn, d_n].into_iter().enumerate() {
                            v.store(d_gates.add(gate_at(gate, D) + row * D + c));
                            if !M::DIRECT {
                                M::stage(v, staged.add(gate_at(gate, units) + row * units), c);
                            }
                        }
                    }
                }
                for n0 in (0..D).step_by(C * lanes) {
                    let panel = layer.w_hh[side].as_ptr().add(n0 * 3 * D / M::K_PER);
                    for b in (0..walks).step_by(R) {
                        let mut acc = [[M::V::zero(); C]; R];
                        for gate in 0..3 {
                            let from = staged.add(gate_at(gate, units) + (i * walks + b) * units);
                            tile::<M, R, C>(&mut acc, units, from, units, panel.add(gate * units * C * lanes));
                        }
                        for r in 0..R.min(walks - b) {
                            for c in 0..C {
                                let to = s.carry.as_mut_ptr().add((b + r) * D + n0 + c * lanes);
                                M::V::load(to).add(acc[r][c]).store(to);
                            }
                        }
                    }
                }
            }
            // The rows of the segment are steps `first..first + steps`, counted from the last step
            // of the forward. Row r is position `row_at(r)` of the block.
            let row_at = |row: usize| {
                let step = length - 1 - (first + row / walks);
                let t = if side == 0 { step } else { length - 1 - step };
                t * walks + row % walks
            };
            for n0 in (0..D).step_by(C * lanes) {
                let panel = layer.w_ih[side].as_ptr().add(n0 * 3 * D / M::K_PER);
                for p in (0..count).step_by(R) {
                    let mut acc = [[M::V::zero(); C]; R];
                    for (i, gate) in [0, 1, 3].into_iter().enumerate() {
                        let from = staged.add(gate_at(gate, units) + p * units);
                        tile::<M, R, C>(&mut acc, units, from, units, panel.add(i * units * C * lanes));
                    }
                    for r in 0..R.min(count - p) {
                        for c in 0..C {
                            let to = s.d_y.as_mut_ptr().add(row_at(p + r) * D + n0 + c * lanes);
                            M::V::load(to).add(acc[r][c]).store(to);
                        }
                    }
                }
            }
            // The normed inputs in the segment's order. They overwrite the gradients of the output
            // layer, which are no longer needed.
            let y = s.d_out.as_mut_ptr().cast::<f32>();
            for row in 0..count {
                std::ptr::copy_nonoverlapping(s.y.as_ptr().add(row_at(row) * D), y.add(row * D), D);
            }
            let [room_g, room_h, room_y] = &mut s.rooms;
            let y_rows = operand::<M>(y, D, count, D, room_y.as_mut_ptr());
            let h_rows = operand::<M>(s.before.as_ptr(), D, count, D, room_h.as_mut_ptr());
            // The rows of W_i and of W_h that the gradient of a gate belongs to.
            for (gate, of_y, of_h) in
                [(0, Some(0), Some(0)), (1, Some(1), Some(1)), (2, None, Some(2)), (3, Some(2), None)]
            {
                let from = d_gates.add(gate_at(gate, D));
                let rows = operand::<M>(from, D, count, D, room_g.as_mut_ptr());
                if let Some(k) = of_y {
                    outer::<M, C>(count, rows, D, y_rows, D, d_w.d_w_ih.as_mut_ptr().add(k * D * D), D);
                    add_rows::<M::V>(count, from, D, D, d_w.d_b_ih.as_mut_ptr().add(k * D));
                }
                if let Some(k) = of_h {
                    outer::<M, C>(count, rows, D, h_rows, D, d_w.d_w_hh.as_mut_ptr().add(k * D * D), D);
                    add_rows::<M::V>(count, from, D, D, d_w.d_b_hh.as_mut_ptr().add(k * D));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fast::tests::TestWeights;
    use super::super::{DirectionGradients, Gru, Scratch, plain_backward};
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, shapes, widths};

    /// Reorders walk-major rows to time-major ones, or back.
    fn transpose(from: &[f32], walks: usize, length: usize, back: bool) -> Vec<f32> {
        let mut out = vec![0.0; from.len()];
        let d = from.len() / (walks * length);
        for w in 0..walks {
            for t in 0..length {
                let (wm, tm) = ((w * length + t) * d, (t * walks + w) * d);
                let (i, o) = if back { (tm, wm) } else { (wm, tm) };
                out[o..o + d].copy_from_slice(&from[i..i + d]);
            }
        }
        out
    }

    fn gradients(parts: &mut [Vec<f32>]) -> Gradients<'_> {
        let [norm, out, a, b, c, d, e, f, g, h] = parts else { panic!("ten tensors") };
        let first = DirectionGradients { d_w_ih: a, d_w_hh: b, d_b_ih: c, d_b_hh: d };
        let second = DirectionGradients { d_w_ih: e, d_w_hh: f, d_b_ih: g, d_b_hh: h };
        Gradients { d_norm: norm, d_directions: [first, second], d_out: out }
    }

    #[test]
    fn fast_gradients_equal_plain_ones() {
        for (d, engine) in widths().into_iter().flat_map(|d| engines().into_iter().map(move |e| (d, e))) {
            let weights = TestWeights::new(d);
            let direction = [3 * d * d, 3 * d * d, 3 * d, 3 * d];
            let sizes = [&[d, 2 * d * d][..], &direction, &direction].concat();
            let zeros = || -> Vec<Vec<f32>> { sizes.iter().map(|n| vec![0.0; *n]).collect() };
            let (forward, layer) = (Gru::new(engine, weights.view()), Backward::new(engine, weights.view()));
            let mut scratch = BackwardScratch::default();
            for (walks, length) in shapes(&[(1, 1), (3, 5), (5, 7), (12, 9)], &[(1, 2)]) {
                let rows = walks * length;
                let (x, d_out) = (noise(50, rows * d, 1.5), noise(51, rows * d, 1.0));
                let (mut want_x, mut want) = (d_out.clone(), zeros());
                plain_backward(&x, length, weights.view(), &mut want_x, &mut gradients(&mut want));

                let x = transpose(&x, walks, length, false);
                let (mut out, mut kept) = (x.clone(), [vec![0.0; rows * CACHED * d], vec![0.0; rows * CACHED * d]]);
                let [a, b] = &mut kept;
                forward.forward_cached(&mut out, walks, [a, b], &mut Scratch::default());
                let (mut got_x, mut got) = (transpose(&d_out, walks, length, false), zeros());
                let kept = [&kept[0][..], &kept[1][..]];
                layer.run(&x, walks, kept, &mut got_x, &mut gradients(&mut got), &mut scratch);
                let got_x = transpose(&got_x, walks, length, true);

                let what = format!("{engine:?} width {d} walks {walks} length {length}");
                let tolerance = if engine.precision() == Precision::F32 { 3e-5 } else { 1e-1 };
                assert_close(&got_x, &want_x, tolerance, &format!("{what}: d_x"));
                for (i, (g, w)) in got.iter().zip(&want).enumerate() {
                    let largest = w.iter().fold(0f32, |m, v| m.max(v.abs()));
                    assert_close(g, w, tolerance * largest.max(1.0), &format!("{what}: weight {i}"));
                }
            }
        }
    }
}
