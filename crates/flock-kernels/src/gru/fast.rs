//! The SIMD forward of the GRU, beside [`plain`](super::plain).
//!
//! * A block of at most 12 walks goes through together. Rows are time-major: step `t` of all walks
//!   is contiguous.
//! * Weights are packed in panels of hidden units, gate by gate. Each gate of a panel is a 6-row
//!   tile over `y` and then over `h`. (Gate n keeps these two sums apart.) The sums wait in L1
//!   until all four of the panel are there.
//! * The factors −log₂e (r, z) and −2·log₂e (n) are multiplied into the weights, so that a gate
//!   needs `2^x` and no multiplication.
//! * With `a = e^(−z̃)` and `b = e^(−2ñ)`, `h' = (a(1 − b) + h(1 + b)) / ((1 + a)(1 + b))`: one
//!   division for z and n.

use super::{CACHED, Direction, Weights};
use crate::linear::{CHUNK, pack_panel, panel_columns, tile};
use crate::rmsnorm::scale_of;
use crate::simd::{Engine, Mac, Vector, prefetch_row};
use crate::width::WidthKernel;
use crate::{AlignedVec, BLOCK};

/// The layer packed for an engine.
pub struct Gru {
    engine: Engine,
    width: usize,
    norm: AlignedVec<f32>,        // (D)
    gates: [AlignedVec<u32>; 2],  // (D / panel, [r, z, n], [y, h], D / per, panel)
    biases: [AlignedVec<f32>; 2], // ([r, z, n of y, n of h], D)
    out: AlignedVec<u32>,         // (D / panel, [→, ←], D / per, panel)
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    states: [AlignedVec<u32>; 2], // (L, walks, D / per), and rows to spare for the last tile
    scales: Vec<f32>,             // (L, walks)
    y: AlignedVec<u32>,           // (BLOCK, D / per)
    h: AlignedVec<f32>,           // (BLOCK, D)
    sums: AlignedVec<f32>,        // ([r, z, n of y, n of h], BLOCK, panel)
    zero: AlignedVec<u32>,        // (BLOCK, D / per)
}

impl Gru {
    /// Packs the layer.
    pub fn new(engine: Engine, w: Weights<'_>) -> Gru {
        let width = w.check();
        let panel = panel_columns(engine, width);
        let pack = |d: Direction<'_>| {
            let mut units = Vec::with_capacity(6 * width * width);
            for j0 in (0..width).step_by(panel) {
                for gate in 0..3 {
                    for m in [d.w_ih, d.w_hh] {
                        let at = |j: usize, k: usize| m[(gate * width + j0 + j) * width + k] * FOLD[gate];
                        pack_panel(engine, &mut units, width, panel, at);
                    }
                }
            }
            let both = move |row: usize| d.b_ih[row] + d.b_hh[row];
            let sum = |gate: usize| (0..width).map(move |j| FOLD[gate] * both(gate * width + j));
            let own = |b: &'_ [f32]| b[2 * width..].iter().map(|v| FOLD[2] * v).collect::<Vec<f32>>();
            let biases: Vec<f32> = sum(0).chain(sum(1)).chain(own(d.b_ih)).chain(own(d.b_hh)).collect();
            (AlignedVec::from_slice(&units), AlignedVec::from_slice(&biases))
        };
        let [(gates0, biases0), (gates1, biases1)] = w.directions.map(pack);
        let mut out = Vec::with_capacity(2 * width * width);
        for n0 in (0..width).step_by(panel) {
            for side in 0..2 {
                pack_panel(engine, &mut out, width, panel, |n, k| w.out[(n0 + n) * 2 * width + side * width + k]);
            }
        }
        Gru {
            engine,
            width,
            norm: AlignedVec::from_slice(w.norm),
            gates: [gates0, gates1],
            biases: [biases0, biases1],
            out: AlignedVec::from_slice(&out),
        }
    }

    /// Returns the width `D`.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Runs the layer in place on one block of `walks`, at most [`BLOCK`]. Rows are time-major.
    pub fn forward(
        &self,
        x: &mut [f32], // (L, walks, D)
        walks: usize,
        scratch: &mut Scratch,
    ) {
        assert!(walks <= BLOCK && (walks == 0 || x.len().is_multiple_of(walks * self.width)));
        if !x.is_empty() {
            let kernel = ForwardKernel::<false> { layer: self, x, walks, kept: [&mut [], &mut []], scratch };
            self.engine.run_at(self.width, kernel);
        }
    }

    /// Does the same as [`Gru::forward`], and keeps what the backward needs for each direction and
    /// row: h', r, z, n and `W_hn h + b_hn`.
    pub fn forward_cached(
        &self,
        x: &mut [f32], // (L, walks, D)
        walks: usize,
        kept: [&mut [f32]; 2], // (L, walks, CACHED, D)
        scratch: &mut Scratch,
    ) {
        assert!(walks <= BLOCK && (walks == 0 || x.len().is_multiple_of(walks * self.width)));
        assert!(kept.iter().all(|k| k.len() == x.len() * CACHED));
        if !x.is_empty() {
            self.engine.run_at(self.width, ForwardKernel::<true> { layer: self, x, walks, kept, scratch });
        }
    }
}

struct ForwardKernel<'a, const CACHE: bool> {
    layer: &'a Gru,
    x: &'a mut [f32],
    walks: usize,
    kept: [&'a mut [f32]; 2], // (L, walks, CACHED, D) if CACHE
    scratch: &'a mut Scratch,
}

impl<const CACHE: bool> WidthKernel for ForwardKernel<'_, CACHE> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) {
        let ForwardKernel { layer, x, walks, kept, scratch } = self;
        let units = D / M::K_PER;
        let rows = x.len() / D;
        for states in &mut scratch.states {
            states.resize((rows + BLOCK) * units);
        }
        scratch.y.resize(BLOCK * units);
        scratch.zero.resize(BLOCK * units);
        scratch.h.resize(BLOCK * D);
        scratch.sums.resize(4 * GATE);
        scratch.scales.clear();
        // SAFETY: `x` has `rows` rows; the state buffers have BLOCK rows more, so that a last tile may read and
        // compute past the block's walks. What it computes there is not stored.
        unsafe {
            for p in 0..rows {
                scratch.scales.push(scale_of::<M::V, D>(x.as_ptr().add(p * D)));
            }
            for (side, kept) in kept.into_iter().enumerate() {
                direction::<M, D, C, CACHE>(layer, side, x, walks, kept.as_mut_ptr(), scratch);
            }
            project::<M, D, C>(layer, x, scratch);
        }
    }
}

/// Runs one direction over all steps and fills `scratch.states[side]`.
#[inline(always)]
unsafe fn direction<M: Mac, const D: usize, const C: usize, const CACHE: bool>(
    layer: &Gru,
    side: usize,
    x: &[f32],
    walks: usize,
    kept: *mut f32,
    scratch: &mut Scratch,
) {
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    let length = x.len() / (walks * D);
    let gates = layer.gates[side].as_ptr();
    let biases = layer.biases[side].as_ptr();
    scratch.h.fill(0.0); // before its pointer is taken, because a later borrow would invalidate the pointer
    let states = scratch.states[side].as_mut_ptr();
    let h = scratch.h.as_mut_ptr();
    let y = scratch.y.as_mut_ptr();
    let sums = scratch.sums.as_mut_ptr();
    // SAFETY: `ForwardKernel::run` has sized every buffer; rows past the block's walks are spare ones.
    unsafe {
        let mut before = scratch.zero.as_ptr();
        for step in 0..length {
            let t = if side == 0 { step } else { length - 1 - step };
            for b in 0..walks {
                let p = t * walks + b;
                if CACHE {
                    // Prefetch the rows that the next step writes. The products below hide the
                    // wait.
                    let next = if side == 0 { p + walks } else { p.wrapping_sub(walks) };
                    for k in 0..CACHED {
                        prefetch_row::<D>(kept.wrapping_add(next.wrapping_mul(CACHED * D)).wrapping_add(k * D));
                    }
                }
                let scale = M::V::splat(scratch.scales[p]);
                for c in (0..D).step_by(lanes) {
                    let g = M::V::load(layer.norm.as_ptr().add(c));
                    let v = M::V::load(x.as_ptr().add(p * D + c)).mul(scale).mul(g);
                    M::stage(v, y.add(b * units), c);
                }
            }
            let now = states.add(t * walks * units);
            for j in (0..D).step_by(C * lanes) {
                let panel = gates.add(j * 6 * units);
                let next = C * lanes * units;
                gate::<M, D, C>(panel, Some(panel.add(next)), biases.add(j), y, before, walks, sums);
                let panel = panel.add(2 * next);
                gate::<M, D, C>(panel, Some(panel.add(next)), biases.add(D + j), y, before, walks, sums.add(GATE));
                let panel = panel.add(2 * next);
                gate::<M, D, C>(panel, None, biases.add(2 * D + j), y, before, walks, sums.add(2 * GATE));
                gate::<M, D, C>(panel.add(next), None, biases.add(3 * D + j), before, y, walks, sums.add(3 * GATE));
                for b in 0..walks {
                    for c in 0..C {
                        let at = sums.add(b * C * lanes + c * lanes);
                        let sum = |gate: usize| M::V::load(at.add(gate * GATE));
                        let column = j + c * lanes;
                        let (sums, old) = ([sum(0), sum(1), sum(2), sum(3)], M::V::load(h.add(b * D + column)));
                        let new = if CACHE {
                            let kept = kept.add((t * walks + b) * CACHED * D + column);
                            blend_cached::<M::V, D>(sums, old, kept)
                        } else {
                            blend(sums, old)
                        };
                        new.store(h.add(b * D + column));
                        M::stage(new, now.add(b * units), column);
                    }
                }
            }
            before = now;
        }
    }
}

/// Factors of the gates' weights and biases.
const FOLD: [f32; 3] = {
    const LOG2E: f32 = std::f32::consts::LOG2_E;
    [-LOG2E, -LOG2E, -2.0 * LOG2E]
};

/// Size of the buffer for the sums of one gate: BLOCK rows of the widest panel, which has 64 columns.
const GATE: usize = BLOCK * 64;

/// Computes one gate of one panel for all walks: `sums[b] = bias + W a[b] (+ W₂ a₂[b])`.
#[inline(always)]
unsafe fn gate<M: Mac, const D: usize, const C: usize>(
    w: *const u32,
    w2: Option<*const u32>,
    bias: *const f32,
    a: *const u32,  // (walks, D / per)
    a2: *const u32, // (walks, D / per)
    walks: usize,
    sums: *mut f32, // (walks, C vectors)
) {
    const R: usize = 6;
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    // SAFETY: the caller's pointers reach `walks` rows, rounded up to a whole tile, of the stated shapes.
    unsafe {
        let mut start = [M::V::zero(); C];
        for c in 0..C {
            start[c] = M::V::load(bias.add(c * lanes));
        }
        for b in (0..walks).step_by(R) {
            let mut acc = [start; R];
            tile::<M, R, C>(&mut acc, units, a.add(b * units), units, w);
            if let Some(w2) = w2 {
                tile::<M, R, C>(&mut acc, units, a2.add(b * units), units, w2);
            }
            for r in 0..R {
                for c in 0..C {
                    acc[r][c].store(sums.add((b + r) * C * lanes + c * lanes));
                }
            }
        }
    }
}

/// Computes the new state from the old state and the scaled sums of r, z, n over `y`, and n over
/// `h`.
#[inline(always)]
unsafe fn blend<V: Vector>([r, z, n_of_y, n_of_h]: [V; 4], old: V) -> V {
    // SAFETY: elementwise; see `Vector`.
    unsafe {
        let one = V::splat(1.0);
        // Beyond ±40 a gate is fully closed or open in `f32`. The bound keeps (1 + a)(1 + b)
        // finite.
        let r = r.clamp(-40.0, 40.0).exp2().add(one).recip();
        let a = z.clamp(-40.0, 40.0).exp2();
        let b = r.mul_add(n_of_h, n_of_y).clamp(-40.0, 40.0).exp2();
        let b1 = b.add(one);
        let top = a.mul_add(one.sub(b), old.mul(b1));
        top.mul(a.add(one).mul(b1).recip())
    }
}

/// Computes the same as [`blend`], and writes h', r, z, n and `W_hn h + b_hn` to `kept`: five
/// vectors, `D` apart.
///
/// # Safety
/// The rules of [`Vector`]. `kept` is valid for `CACHED` rows of `D` values.
#[inline(always)]
unsafe fn blend_cached<V: Vector, const D: usize>([r, z, n_of_y, n_of_h]: [V; 4], old: V, kept: *mut f32) -> V {
    // SAFETY: the caller's row.
    unsafe {
        let one = V::splat(1.0);
        let r = r.clamp(-40.0, 40.0).exp2().add(one).recip();
        let z = z.clamp(-40.0, 40.0).exp2().add(one).recip();
        let b = r.mul_add(n_of_h, n_of_y).clamp(-40.0, 40.0).exp2();
        let n = one.sub(b).mul(one.add(b).recip());
        let new = z.mul_add(old.sub(n), n);
        for (i, v) in [new, r, z, n, n_of_h.mul(V::splat(1.0 / FOLD[2]))].into_iter().enumerate() {
            v.store(kept.add(i * D));
        }
        new
    }
}

/// Computes `x += W_out [→h; ←h]`.
#[inline(always)]
unsafe fn project<M: Mac, const D: usize, const C: usize>(layer: &Gru, x: &mut [f32], scratch: &Scratch) {
    const R: usize = 6;
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    let rows = x.len() / D;
    // SAFETY: the state buffers have spare rows for the last tile, and only `x`'s own rows are stored.
    unsafe {
        for p0 in (0..rows).step_by(CHUNK) {
            for n0 in (0..D).step_by(C * lanes) {
                let panel = layer.out.as_ptr().add(n0 * 2 * units);
                for p in (p0..rows.min(p0 + CHUNK)).step_by(R) {
                    let mut acc = [[M::V::zero(); C]; R];
                    for side in 0..2 {
                        let from = scratch.states[side].as_ptr().add(p * units);
                        tile::<M, R, C>(&mut acc, units, from, units, panel.add(side * C * lanes * units));
                    }
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
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::plain;
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, shapes, widths};

    pub(in crate::gru) struct TestWeights(Vec<Vec<f32>>);
    impl TestWeights {
        pub(in crate::gru) fn new(d: usize) -> TestWeights {
            // Uniform ±1/√D as at initialisation, but twice as wide, to reach the curved parts of
            // the gates.
            let scale = 2.0 / (d as f32).sqrt() / 1.732;
            let mut parts: Vec<Vec<f32>> = Vec::new();
            for side in 0..2u64 {
                for (i, n) in [3 * d * d, 3 * d * d, 3 * d, 3 * d].into_iter().enumerate() {
                    parts.push(noise(10 + side * 4 + i as u64, n, scale));
                }
            }
            parts.push(noise(30, d, 1.0));
            parts.push(noise(31, 2 * d * d, scale));
            TestWeights(parts)
        }
        pub(in crate::gru) fn view(&self) -> Weights<'_> {
            let d = |i: usize| Direction {
                w_ih: &self.0[4 * i],
                w_hh: &self.0[4 * i + 1],
                b_ih: &self.0[4 * i + 2],
                b_hh: &self.0[4 * i + 3],
            };
            Weights { norm: &self.0[8], directions: [d(0), d(1)], out: &self.0[9] }
        }
    }

    #[test]
    fn fast_equals_plain_on_odd_blocks() {
        for (d, engine) in widths().into_iter().flat_map(|d| engines().into_iter().map(move |e| (d, e))) {
            let weights = TestWeights::new(d);
            let layer = Gru::new(engine, weights.view());
            let mut scratch = Scratch::default();
            let all = [(1, 1), (1, 9), (3, 5), (4, 8), (5, 7), (7, 16), (11, 3), (12, 33)];
            for (walks, length) in shapes(&all, &[(1, 2)]) {
                let walk_major = noise(40 + walks as u64, walks * length * d, 1.5);
                let transpose = |from: &[f32], out: &mut [f32], back: bool| {
                    for w in 0..walks {
                        for t in 0..length {
                            let (wm, tm) = ((w * length + t) * d, (t * walks + w) * d);
                            let (i, o) = if back { (tm, wm) } else { (wm, tm) };
                            out[o..o + d].copy_from_slice(&from[i..i + d]);
                        }
                    }
                };
                let mut want = walk_major.clone();
                plain(&mut want, length, weights.view());
                let mut x = vec![0.0; walk_major.len()];
                transpose(&walk_major, &mut x, false);
                layer.forward(&mut x, walks, &mut scratch);
                let mut got = vec![0.0; x.len()];
                transpose(&x, &mut got, true);
                let tolerance = if engine.precision() == Precision::F32 { 1e-5 } else { 5e-2 };
                assert_close(&got, &want, tolerance, &format!("{engine:?} width {d} walks {walks} length {length}"));
            }
        }
    }

    #[test]
    fn saturated_gates_stay_finite() {
        let d = 64;
        let weights =
            TestWeights(TestWeights::new(d).0.into_iter().map(|v| v.iter().map(|x| x * 1e4).collect()).collect());
        for engine in engines() {
            let mut x = noise(1, 4 * 3 * d, 1e3);
            Gru::new(engine, weights.view()).forward(&mut x, 3, &mut Scratch::default());
            assert!(x.iter().all(|v| v.is_finite()), "{engine:?}");
        }
    }
}
