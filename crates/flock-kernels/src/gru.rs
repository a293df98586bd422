//! The sequence processor's first half: `x += W_out [→h; ←h]`, where `→h` and `←h` are a GRU run over each walk from
//! its start and from its end, on `RMSNorm(x)`, from zero states.
//!
//! Cell (gates in the order r, z, n):
//! ```text
//! r = σ(W_ir y + b_ir + W_hr h + b_hr)        z = σ(W_iz y + b_iz + W_hz h + b_hz)
//! n = tanh(W_in y + b_in + r ⊙ (W_hn h + b_hn))
//! h' = (1 − z) ⊙ n + z ⊙ h
//! ```
//!
//! # The fast version
//! * A block of at most 12 walks goes through together, rows time-major: step `t` of all walks is contiguous.
//! * Weights are packed in panels of one vector of hidden units, all three gates side by side; a tile of 3 rows (AVX2)
//!   or 6 rows (AVX-512) keeps r, z and n of a panel in registers while it runs over `y` and then over `h`.
//! * −log₂e (r, z) and −2·log₂e (n) are folded into the weights, so that a gate needs `2^x` and no multiplication.
//! * With `a = e^(−z̃)` and `b = e^(−2ñ)`: `h' = (a(1 − b) + h(1 + b)) / ((1 + a)(1 + b))`, one division for z and n.

use crate::linear::{pack_panel, tile, CHUNK};
use crate::rmsnorm::{self, scale_of};
use crate::simd::{Engine, Kernel, Mac, Vector};
use crate::{Aligned, BLOCK, D};

/// Parameters of one direction, as in the checkpoint.
#[derive(Clone, Copy)]
pub struct Direction<'a> {
    /// (3D, D)
    pub w_ih: &'a [f32],
    /// (3D, D)
    pub w_hh: &'a [f32],
    /// (3D)
    pub b_ih: &'a [f32],
    /// (3D)
    pub b_hh: &'a [f32],
}

/// Parameters of the layer.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// (D)
    pub norm: &'a [f32],
    /// From the start of the walk, and from its end.
    pub directions: [Direction<'a>; 2],
    /// (D, 2D)
    pub out: &'a [f32],
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The definition of one cell: `h` becomes `h'`.
pub fn cell(
    y: &[f32],     // (D)
    h: &mut [f32], // (D)
    w: Direction<'_>,
) {
    let dot = |m: &[f32], row: usize, v: &[f32]| -> f32 { m[row * D..][..D].iter().zip(v).map(|(a, b)| a * b).sum() };
    let old = h.to_vec();
    for j in 0..D {
        let gate = |g: usize| {
            let row = g * D + j;
            (dot(w.w_ih, row, y) + w.b_ih[row], dot(w.w_hh, row, &old) + w.b_hh[row])
        };
        let ((ir, hr), (iz, hz), (n, hn)) = (gate(0), gate(1), gate(2));
        let (r, z) = (sigmoid(ir + hr), sigmoid(iz + hz));
        h[j] = (1.0 - z) * (n + r * hn).tanh() + z * old[j];
    }
}

/// The definition of both directions: the concatenated states at each position.
pub fn plain_states(
    y: &[f32],       // (W, L, D), normed
    out: &mut [f32], // (W, L, 2D)
    length: usize,
    directions: [Direction<'_>; 2],
) {
    for (y, out) in y.chunks_exact(length * D).zip(out.chunks_exact_mut(length * 2 * D)) {
        for (side, w) in directions.into_iter().enumerate() {
            let mut h = [0.0; D];
            for step in 0..length {
                let t = if side == 0 { step } else { length - 1 - step };
                cell(&y[t * D..][..D], &mut h, w);
                out[t * 2 * D + side * D..][..D].copy_from_slice(&h);
            }
        }
    }
}

/// The definition of the layer, in place.
pub fn plain(
    x: &mut [f32], // (W, L, D)
    length: usize,
    w: Weights<'_>,
) {
    let mut y = vec![0.0; x.len()];
    rmsnorm::plain(x, w.norm, &mut y);
    let mut states = vec![0.0; 2 * x.len()];
    plain_states(&y, &mut states, length, w.directions);
    crate::linear::plain(&states, w.out, &[], &mut y, 2 * D);
    for (x, y) in x.iter_mut().zip(&y) {
        *x += y;
    }
}

/// The layer packed for an engine.
pub struct Gru {
    engine: Engine,
    norm: Aligned<f32>,       // (D)
    gates: [Aligned<u32>; 2], // (D / lanes, [y, h], D / per, [r, z, n], lanes)
    biases: [Aligned<f32>; 2], // (D / lanes, [r, z, n of y, n of h], lanes)
    out: Aligned<u32>,        // (D / panel, [→, ←], D / per, panel)
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    states: [Aligned<u32>; 2], // (L, walks, D / per), and rows to spare for the last tile
    scales: Vec<f32>,          // (L, walks)
    y: Aligned<u32>,           // (BLOCK, D / per)
    h: Aligned<f32>,           // (BLOCK, D)
    zero: Aligned<u32>,        // (BLOCK, D / per)
}

impl Gru {
    /// Packs the layer.
    pub fn new(engine: Engine, w: Weights<'_>) -> Gru {
        const LOG2E: f32 = std::f32::consts::LOG2_E;
        const FOLD: [f32; 3] = [-LOG2E, -LOG2E, -2.0 * LOG2E];
        let lanes = engine.lanes();
        let pack = |d: Direction<'_>| {
            let mut units = Vec::with_capacity(6 * D * D);
            let mut biases = Vec::with_capacity(4 * D);
            for j0 in (0..D).step_by(lanes) {
                for m in [d.w_ih, d.w_hh] {
                    pack_panel(engine, &mut units, D, 3 * lanes, |column, k| {
                        let (gate, j) = (column / lanes, j0 + column % lanes);
                        m[(gate * D + j) * D + k] * FOLD[gate]
                    });
                }
                let sums: [&dyn Fn(usize) -> f32; 4] = [
                    &|j| FOLD[0] * (d.b_ih[j] + d.b_hh[j]),
                    &|j| FOLD[1] * (d.b_ih[D + j] + d.b_hh[D + j]),
                    &|j| FOLD[2] * d.b_ih[2 * D + j],
                    &|j| FOLD[2] * d.b_hh[2 * D + j],
                ];
                for sum in sums {
                    biases.extend((j0..j0 + lanes).map(sum));
                }
            }
            (Aligned::from_slice(&units), Aligned::from_slice(&biases))
        };
        let [(gates0, biases0), (gates1, biases1)] = w.directions.map(pack);
        let panel = if lanes == 16 { 64 } else { 16 };
        let mut out = Vec::with_capacity(2 * D * D);
        for n0 in (0..D).step_by(panel) {
            for side in 0..2 {
                pack_panel(engine, &mut out, D, panel, |n, k| w.out[(n0 + n) * 2 * D + side * D + k]);
            }
        }
        Gru {
            engine,
            norm: Aligned::from_slice(w.norm),
            gates: [gates0, gates1],
            biases: [biases0, biases1],
            out: Aligned::from_slice(&out),
        }
    }

    /// Runs the layer in place on one block of `walks` (at most [`BLOCK`]), rows time-major.
    pub fn forward(
        &self,
        x: &mut [f32], // (L, walks, D)
        walks: usize,
        scratch: &mut Scratch,
    ) {
        assert!(walks <= BLOCK && (walks == 0 || x.len() % (walks * D) == 0));
        if !x.is_empty() {
            self.engine.run(Forward { layer: self, x, walks, scratch });
        }
    }
}

struct Forward<'a> {
    layer: &'a Gru,
    x: &'a mut [f32],
    walks: usize,
    scratch: &'a mut Scratch,
}

impl Kernel for Forward<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        let Forward { layer, x, walks, scratch } = self;
        let units = D / M::K_PER;
        let rows = x.len() / D;
        for states in &mut scratch.states {
            states.resize((rows + BLOCK) * units);
        }
        scratch.y.resize(BLOCK * units);
        scratch.zero.resize(BLOCK * units);
        scratch.h.resize(BLOCK * D);
        scratch.scales.clear();
        // SAFETY: `x` has `rows` rows; the state buffers have BLOCK rows more, so that a last tile may read and
        // compute past the block's walks. What it computes there is not stored.
        unsafe {
            for p in 0..rows {
                scratch.scales.push(scale_of::<M::V>(x.as_ptr().add(p * D)));
            }
            for side in 0..2 {
                if M::V::LANES == 16 {
                    direction::<M, 6>(layer, side, x, walks, scratch);
                } else {
                    direction::<M, 3>(layer, side, x, walks, scratch);
                }
            }
            if M::V::LANES == 16 {
                project::<M, 4>(layer, x, scratch);
            } else {
                project::<M, 2>(layer, x, scratch);
            }
        }
    }
}

/// One direction over all steps: fills `scratch.states[side]`.
#[inline(always)]
unsafe fn direction<M: Mac, const R: usize>(layer: &Gru, side: usize, x: &[f32], walks: usize, scratch: &mut Scratch) {
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    let length = x.len() / (walks * D);
    let gates = layer.gates[side].as_ptr();
    let biases = layer.biases[side].as_ptr();
    let states = scratch.states[side].as_mut_ptr();
    let h = scratch.h.as_mut_ptr();
    let y = scratch.y.as_mut_ptr();
    scratch.h.fill(0.0);
    unsafe {
        let mut before = scratch.zero.as_ptr();
        for step in 0..length {
            let t = if side == 0 { step } else { length - 1 - step };
            for b in 0..walks {
                let p = t * walks + b;
                let scale = M::V::splat(scratch.scales[p]);
                for c in (0..D).step_by(lanes) {
                    let g = M::V::load(layer.norm.as_ptr().add(c));
                    let v = M::V::load(x.as_ptr().add(p * D + c)).mul(scale).mul(g);
                    M::stage(v, y.add(b * units), c);
                }
            }
            let now = states.add(t * walks * units);
            for j in (0..D).step_by(lanes) {
                let panel = gates.add(j * 6 * units);
                let bias = biases.add(j * 4);
                for b in (0..walks).step_by(R) {
                    gates_tile::<M, R>(
                        panel,
                        bias,
                        y.add(b * units),
                        before.add(b * units),
                        h.add(b * D + j),
                        now.add(b * units),
                        j,
                        R.min(walks - b),
                    );
                }
            }
            before = now;
        }
    }
}

/// One step of `R` walks and one vector of hidden units.
#[inline(always)]
unsafe fn gates_tile<M: Mac, const R: usize>(
    panel: *const u32,  // ([y, h], D / per, 3, lanes)
    bias: *const f32,   // (4, lanes)
    y: *const u32,      // (R, D / per)
    before: *const u32, // (R, D / per)
    h: *mut f32,        // (R, D), this vector's columns
    now: *mut u32,      // (R, D / per)
    column: usize,
    rows: usize, // of R, how many are walks
) {
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    unsafe {
        let b = |i: usize| M::V::load(bias.add(i * lanes));
        let mut acc = [[b(0), b(1), b(2)]; R];
        tile::<M, R, 3>(&mut acc, units, y, units, panel);
        let mut n_of_y = [M::V::zero(); R];
        for i in 0..R {
            n_of_y[i] = acc[i][2];
            acc[i][2] = b(3);
        }
        tile::<M, R, 3>(&mut acc, units, before, units, panel.add(3 * lanes * units));
        let one = M::V::splat(1.0);
        for i in 0..R {
            if i >= rows {
                break;
            }
            // Beyond ±40 a gate is closed or open to the last bit; the bound keeps (1 + a)(1 + b) finite.
            let r = acc[i][0].clamp(-40.0, 40.0).exp2().add(one).recip();
            let a = acc[i][1].clamp(-40.0, 40.0).exp2();
            let b = r.mul_add(acc[i][2], n_of_y[i]).clamp(-40.0, 40.0).exp2();
            let b1 = b.add(one);
            let old = M::V::load(h.add(i * D));
            let top = a.mul_add(one.sub(b), old.mul(b1));
            let new = top.mul(a.add(one).mul(b1).recip());
            new.store(h.add(i * D));
            M::stage(new, now.add(i * units), column);
        }
    }
}

/// `x += W_out [→h; ←h]`.
#[inline(always)]
unsafe fn project<M: Mac, const C: usize>(layer: &Gru, x: &mut [f32], scratch: &Scratch) {
    const R: usize = 6;
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    let rows = x.len() / D;
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
mod tests {
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, noise};

    struct Owned(Vec<Vec<f32>>);
    impl Owned {
        fn new() -> Owned {
            // Uniform ±1/√D as at initialisation, twice as wide to reach into the gates' curves.
            let scale = 2.0 / (D as f32).sqrt() / 1.732;
            let mut parts: Vec<Vec<f32>> = Vec::new();
            for side in 0..2u64 {
                for (i, n) in [3 * D * D, 3 * D * D, 3 * D, 3 * D].into_iter().enumerate() {
                    parts.push(noise(10 + side * 4 + i as u64, n, scale));
                }
            }
            parts.push(noise(30, D, 1.0));
            parts.push(noise(31, 2 * D * D, scale));
            Owned(parts)
        }
        fn weights(&self) -> Weights<'_> {
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
        let owned = Owned::new();
        for engine in Engine::all() {
            let layer = Gru::new(engine, owned.weights());
            let mut scratch = Scratch::default();
            for (walks, length) in [(1, 1), (1, 9), (3, 5), (4, 8), (5, 7), (7, 16), (11, 3), (12, 33)] {
                let walk_major = noise(40 + walks as u64, walks * length * D, 1.5);
                let transpose = |from: &[f32], out: &mut [f32], back: bool| {
                    for w in 0..walks {
                        for t in 0..length {
                            let (wm, tm) = ((w * length + t) * D, (t * walks + w) * D);
                            let (i, o) = if back { (tm, wm) } else { (wm, tm) };
                            out[o..o + D].copy_from_slice(&from[i..i + D]);
                        }
                    }
                };
                let mut want = walk_major.clone();
                plain(&mut want, length, owned.weights());
                let mut x = vec![0.0; walk_major.len()];
                transpose(&walk_major, &mut x, false);
                layer.forward(&mut x, walks, &mut scratch);
                let mut got = vec![0.0; x.len()];
                transpose(&x, &mut got, true);
                let tolerance = if engine.precision() == Precision::F32 { 1e-5 } else { 5e-2 };
                assert_close(&got, &want, tolerance, &format!("{engine:?} walks {walks} length {length}"));
            }
        }
    }

    #[test]
    fn saturated_gates_stay_finite() {
        let owned = Owned(Owned::new().0.into_iter().map(|v| v.iter().map(|x| x * 1e4).collect()).collect());
        for engine in Engine::all() {
            let mut x = noise(1, 4 * 3 * D, 1e3);
            Gru::new(engine, owned.weights()).forward(&mut x, 3, &mut Scratch::default());
            assert!(x.iter().all(|v| v.is_finite()), "{engine:?}");
        }
    }
}
