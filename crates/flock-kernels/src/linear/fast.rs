//! The SIMD forward of a linear layer, beside [`plain`](super::plain).

use super::{Activation, CHUNK, pack_panel, panel_columns, tile};
use crate::simd::{Engine, Kernel, Mac, Shared, Vector};
use crate::width::tile_vectors;
use crate::{AlignedVec, has_width};

/// A linear layer packed for an engine. `K` and `N` are `D` or `2D` each, for the same one of
/// [`WIDTHS`](crate::WIDTHS).
pub struct Linear {
    engine: Engine,
    pub(super) k: usize,
    pub(super) n: usize,
    units: AlignedVec<u32>, // (N / panel, K / per, panel)
    bias: AlignedVec<f32>,  // (N)
}

impl Linear {
    /// Packs `w` (N, K) and `b` (N).
    pub fn new(engine: Engine, w: &[f32], b: &[f32], k: usize) -> Linear {
        let n = b.len();
        let d = if k == n && !has_width(k) { k / 2 } else { k.min(n) };
        assert!(w.len() == n * k && has_width(d) && [k, n].iter().all(|side| *side == d || *side == 2 * d));
        let panel = panel_columns(engine, n);
        let mut units = Vec::with_capacity(n * k);
        for n0 in (0..n).step_by(panel) {
            pack_panel(engine, &mut units, k, panel, |j, c| w[(n0 + j) * k + c]);
        }
        Linear { engine, k, n, units: AlignedVec::from_slice(&units), bias: AlignedVec::from_slice(b) }
    }

    /// Applies the layer to the rows of `x` that `rows` lists, or to all rows if it is `None`.
    /// `y[i]` belongs to `rows[i]`.
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
        let job = Job { layer: self, x, rows, y, count, activation };
        match self.k {
            32 => self.engine.run(ForwardKernel::<32>(job)),
            64 => self.engine.run(ForwardKernel::<64>(job)),
            96 => self.engine.run(ForwardKernel::<96>(job)),
            128 => self.engine.run(ForwardKernel::<128>(job)),
            192 => self.engine.run(ForwardKernel::<192>(job)),
            _ => self.engine.run(ForwardKernel::<256>(job)),
        }
    }
}

struct Job<'a> {
    layer: &'a Linear,
    x: &'a [f32],
    rows: Option<&'a [u32]>,
    y: &'a mut [f32],
    count: usize,
    activation: Activation,
}

/// The layer at one `K`.
struct ForwardKernel<'a, const K: usize>(Job<'a>);

impl<const K: usize> Kernel for ForwardKernel<'_, K> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        // A width of 32 has products of 32 and 64 columns, and so on: no other tiles are needed.
        let (thirds, halves, published) = (K.is_multiple_of(48), K <= 64, K == 64 || K == 128);
        // SAFETY: `Linear::forward` has checked that every listed row is inside `x` and that `y` has one for each.
        // `Linear::new` has packed panels of as many columns as the tile has.
        unsafe {
            match tile_vectors(M::V::LANES, self.0.layer.n) {
                3 if M::V::LANES == 16 && thirds => forward::<Shared<M>, 3, K>(self.0),
                2 if M::V::LANES == 16 && halves => forward::<Shared<M>, 2, K>(self.0),
                4 if M::V::LANES == 16 && published => forward::<M, 4, K>(self.0),
                4 if M::V::LANES == 16 => forward::<Shared<M>, 4, K>(self.0),
                2 if M::V::LANES == 8 && published => forward::<M, 2, K>(self.0),
                2 if M::V::LANES == 8 => forward::<Shared<M>, 2, K>(self.0),
                c => unreachable!("a tile of {c} vectors for {K} inputs"),
            }
        }
    }
}

/// Computes the rows of a job. `K` is a constant, so that the distance between rows is known at
/// compile time.
#[inline(always)]
unsafe fn forward<M: Mac, const C: usize, const K: usize>(job: Job<'_>) {
    const R: usize = 6;
    let Job { layer, x, rows, y, count, activation } = job;
    let (n, lanes) = (layer.n, M::V::LANES);
    let steps = K / M::K_PER;
    let mut staged = [[0u32; K]; CHUNK];
    // Writes and reads go through one pointer. A second borrow would invalidate it.
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
    use super::super::plain;
    use super::*;
    use crate::WIDTHS;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, scale, shapes};

    #[test]
    fn fast_equals_plain_on_odd_row_counts() {
        for engine in engines() {
            let all: Vec<_> = WIDTHS.iter().flat_map(|&d| [(d, d), (d, 2 * d), (2 * d, 2 * d), (2 * d, d)]).collect();
            for (k, n) in shapes(&all, &[(64, 64)]) {
                let (w, b) = (noise(1, n * k, 0.125 * scale(k)), noise(2, n, 1.0));
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
