//! Linear layers: `y = W x + b`, and the register tile under every matrix product of this crate.
//!
//! A product is computed in tiles of `R` rows by `C` vectors of columns, all accumulators in registers: per step of the
//! inner dimension `C` weight vectors are loaded and `R` activations broadcast for `R · C` multiply-adds. AVX2 (16
//! registers) takes 6×2 vectors, AVX-512 (32 registers) 6×4. Weights are packed once so that the tile reads them in
//! order; a panel of them stays in L1 while a chunk of rows goes by.

mod backward;
pub(crate) mod outer;
pub use backward::Backward;

use crate::Aligned;
use crate::simd::{Engine, Kernel, Mac, Vector};

/// The definition: `y[p] = W x[p] + b` for every row.
pub fn plain(
    x: &[f32],     // (P, K)
    w: &[f32],     // (N, K)
    b: &[f32],     // (N), or empty for none
    y: &mut [f32], // (P, N)
    k: usize,
) {
    let n = w.len() / k;
    for (x, y) in x.chunks_exact(k).zip(y.chunks_exact_mut(n)) {
        for j in 0..n {
            let dot: f32 = x.iter().zip(&w[j * k..]).map(|(a, b)| a * b).sum();
            y[j] = dot + b.get(j).copied().unwrap_or(0.0);
        }
    }
}

/// Backward of [`plain`].
pub fn plain_backward(
    x: &[f32],       // (P, K)
    w: &[f32],       // (N, K)
    d_y: &[f32],     // (P, N)
    d_x: &mut [f32], // (P, K)
    d_w: &mut [f32], // (N, K)
    d_b: &mut [f32], // (N), or empty for none
    k: usize,
) {
    let n = w.len() / k;
    for ((x, d_y), d_x) in x.chunks_exact(k).zip(d_y.chunks_exact(n)).zip(d_x.chunks_exact_mut(k)) {
        for j in 0..n {
            for c in 0..k {
                d_x[c] += d_y[j] * w[j * k + c];
                d_w[j * k + c] += d_y[j] * x[c];
            }
        }
        for (d_b, d_y) in d_b.iter_mut().zip(d_y) {
            *d_b += d_y;
        }
    }
}

/// Steps of a tile's inner loop that are written out: a loop of 64 steps ends in a mispredicted branch, one of 16 does not.
const UNROLL: usize = 4;

/// `acc += A W` on `R × C` accumulators, over `steps` units of the inner dimension, a multiple of [`UNROLL`].
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

/// Rows staged at a time: a panel of weights is read from L1 this many rows long.
pub(crate) const CHUNK: usize = 24;

/// Packs columns `n0..n0 + columns` of `Wᵀ` into one panel: (steps, columns) units. `at(n, k)` is the weight.
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

/// What follows a linear layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activation {
    /// Nothing.
    None,
    /// max(0, ·)
    Relu,
}

/// A linear layer packed for an engine. `K` is 64 or 128, `N` a multiple of 64.
pub struct Linear {
    engine: Engine,
    k: usize,
    n: usize,
    units: Aligned<u32>, // (N / panel, K / per, panel)
    bias: Aligned<f32>,  // (N)
}

impl Linear {
    /// Packs `w` (N, K) and `b` (N).
    pub fn new(engine: Engine, w: &[f32], b: &[f32], k: usize) -> Linear {
        let n = b.len();
        assert!(w.len() == n * k && n.is_multiple_of(64) && (k == 64 || k == 128));
        let panel = panel_columns(engine);
        let mut units = Vec::with_capacity(n * k);
        for n0 in (0..n).step_by(panel) {
            pack_panel(engine, &mut units, k, panel, |j, c| w[(n0 + j) * k + c]);
        }
        Linear { engine, k, n, units: Aligned::from_slice(&units), bias: Aligned::from_slice(b) }
    }

    /// Applies the layer to the rows of `x` that `rows` lists (all rows if `None`): `y[i]` is that of `rows[i]`.
    pub fn forward(
        &self,
        x: &[f32],            // (P, K)
        rows: Option<&[u32]>, // (C), each < P
        y: &mut [f32],        // (C, N)
        activation: Activation,
    ) {
        let count = rows.map_or(x.len() / self.k, <[u32]>::len);
        let last = rows.map_or(count, |r| r.iter().max().map_or(0, |&m| m as usize + 1));
        assert!(x.len() >= last * self.k && y.len() == count * self.n);
        self.engine.run(Forward { layer: self, x, rows, y, count, activation });
    }
}

/// Columns of a packed panel.
pub(crate) fn panel_columns(engine: Engine) -> usize {
    if engine.lanes() == 16 { 64 } else { 16 }
}

struct Forward<'a> {
    layer: &'a Linear,
    x: &'a [f32],
    rows: Option<&'a [u32]>,
    y: &'a mut [f32],
    count: usize,
    activation: Activation,
}

impl Kernel for Forward<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        // SAFETY: `Linear::forward` has checked that every listed row is inside `x` and that `y` has one for each.
        unsafe {
            match (M::V::LANES, self.layer.k) {
                (16, 64) => forward::<M, 4, 64>(self),
                (16, _) => forward::<M, 4, 128>(self),
                (_, 64) => forward::<M, 2, 64>(self),
                (_, _) => forward::<M, 2, 128>(self),
            }
        }
    }
}

/// `K` is a constant so that a tile's rows are a known distance apart.
#[inline(always)]
unsafe fn forward<M: Mac, const C: usize, const K: usize>(job: Forward<'_>) {
    const R: usize = 6;
    let Forward { layer, x, rows, y, count, activation } = job;
    let (n, lanes) = (layer.n, M::V::LANES);
    let steps = K / M::K_PER;
    let mut staged = [[0u32; K]; CHUNK];
    // One pointer to write and to read through: a second borrow would end what the first may do.
    let staged: *mut u32 = staged.as_flattened_mut().as_mut_ptr();
    let row = |i: usize| rows.map_or(i, |r| r[i] as usize);
    // SAFETY: `Linear::forward` has checked `x`, `rows` and `y`; a direct chunk is whole, so its tiles stay inside `x`.
    unsafe {
        for i0 in (0..count).step_by(CHUNK) {
            let chunk = CHUNK.min(count - i0);
            let mut a = staged.cast_const();
            if M::DIRECT && rows.is_none() && chunk == CHUNK {
                a = x.as_ptr().add(i0 * K).cast();
            } else {
                for i in 0..chunk {
                    let from = x.as_ptr().add(row(i0 + i) * K);
                    for c in (0..K).step_by(lanes) {
                        M::stage(M::V::load(from.add(c)), staged.add(i * steps), c);
                    }
                }
            }
            for n0 in (0..n).step_by(C * lanes) {
                let panel = layer.units.as_ptr().add(n0 * steps);
                let mut start = [M::V::zero(); C];
                for c in 0..C {
                    start[c] = M::V::load(layer.bias.as_ptr().add(n0 + c * lanes));
                }
                for i in (0..chunk).step_by(R) {
                    let mut acc = [start; R];
                    tile::<M, R, C>(&mut acc, steps, a.add(i * steps), steps, panel);
                    for r in 0..R.min(chunk - i) {
                        let to = y.as_mut_ptr().add((i0 + i + r) * n + n0);
                        for c in 0..C {
                            let v =
                                if activation == Activation::Relu { acc[r][c].max(M::V::zero()) } else { acc[r][c] };
                            v.store(to.add(c * lanes));
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
    use crate::testing::{assert_close, engines, noise, shapes};

    #[test]
    fn fast_equals_plain_on_odd_row_counts() {
        for engine in engines() {
            for (k, n) in shapes(&[(64, 64), (64, 128), (128, 128), (128, 64)], &[(64, 64)]) {
                let (w, b) = (noise(1, n * k, 0.125), noise(2, n, 1.0));
                let layer = Linear::new(engine, &w, &b, k);
                for p in shapes(&[1, 5, 6, 7, 23, 24, 25, 61], &[1]) {
                    let x = noise(3, p * k, 1.0);
                    let (mut want, mut got) = (vec![0.0; p * n], vec![0.0; p * n]);
                    plain(&x, &w, &b, &mut want, k);
                    layer.forward(&x, None, &mut got, Activation::None);
                    let tolerance = if engine.precision() == Precision::F32 { 1e-5 } else { 3e-2 };
                    assert_close(&got, &want, tolerance, &format!("{engine:?} {p}×{k}×{n}"));
                }
            }
        }
    }

    #[test]
    fn listed_rows_are_gathered() {
        for engine in Engine::all() {
            let (count, listed) = if cfg!(miri) { (3, [2, 0, 1]) } else { (9, [8, 0, 3]) };
            let (w, b, x) = (noise(1, 64 * 64, 0.125), noise(2, 64, 1.0), noise(3, count * 64, 1.0));
            let layer = Linear::new(engine, &w, &b, 64);
            let (mut all, mut some) = (vec![0.0; count * 64], vec![0.0; 3 * 64]);
            layer.forward(&x, None, &mut all, Activation::Relu);
            layer.forward(&x, Some(&listed), &mut some, Activation::Relu);
            assert!(all.iter().all(|v| *v >= 0.0) && all.contains(&0.0));
            for (i, p) in listed.into_iter().enumerate() {
                assert_eq!(some[i * 64..][..64], all[p as usize * 64..][..64], "{engine:?}");
            }
        }
    }
}
