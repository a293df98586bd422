//! Root-mean-square norm: `y = x / √(mean(x²) + 1e-5) · g`, over each row of width `D`.

use crate::RMS_EPS;
use crate::simd::Vector;

/// Norms each row. This loop is the definition.
pub fn plain(
    x: &[f32],     // (P, D)
    g: &[f32],     // (D)
    y: &mut [f32], // (P, D)
) {
    let d = g.len();
    for (x, y) in x.chunks_exact(d).zip(y.chunks_exact_mut(d)) {
        let mean = x.iter().map(|v| v * v).sum::<f32>() / d as f32;
        let scale = 1.0 / (mean + RMS_EPS).sqrt();
        for c in 0..d {
            y[c] = x[c] * scale * g[c];
        }
    }
}

/// Adds the gradients of [`plain`]. With `s = 1 / √(mean(x²) + ε)`: `∂s/∂x = −s³ x / D`.
pub fn plain_backward(
    x: &[f32],       // (P, D)
    g: &[f32],       // (D)
    d_y: &[f32],     // (P, D)
    d_x: &mut [f32], // (P, D)
    d_g: &mut [f32], // (D)
) {
    let d = g.len();
    for ((x, d_y), d_x) in x.chunks_exact(d).zip(d_y.chunks_exact(d)).zip(d_x.chunks_exact_mut(d)) {
        let mean = x.iter().map(|v| v * v).sum::<f32>() / d as f32;
        let scale = 1.0 / (mean + RMS_EPS).sqrt();
        let d_scale: f32 = (0..d).map(|c| d_y[c] * g[c] * x[c]).sum();
        for c in 0..d {
            d_g[c] += d_y[c] * x[c] * scale;
            d_x[c] += scale * (d_y[c] * g[c] - d_scale * scale * scale * x[c] / d as f32);
        }
    }
}

/// Returns `1 / √(mean(x²) + ε)` of the row at `x`. The fast layers scale a row with it while they
/// stage the row.
///
/// # Safety
/// `x` points to a row of `D` values; see [`Vector`].
#[inline(always)]
pub(crate) unsafe fn scale_of<V: Vector, const D: usize>(x: *const f32) -> f32 {
    // SAFETY: the caller's row has D values.
    unsafe {
        let mut sum = [V::zero(); 2];
        for c in (0..D).step_by(2 * V::LANES) {
            for (j, s) in sum.iter_mut().enumerate() {
                let v = V::load(x.add(c + j * V::LANES));
                *s = v.mul_add(v, *s);
            }
        }
        1.0 / (sum[0].add(sum[1]).sum() / D as f32 + RMS_EPS).sqrt()
    }
}

/// Adds the gradients of one row to `d_x` and `d_g`: the fast version of [`plain_backward`].
///
/// # Safety
/// All pointers reach a row of `D` values; see [`Vector`].
#[inline(always)]
pub(crate) unsafe fn row_backward<V: Vector, const D: usize>(
    x: *const f32,
    g: *const f32,
    d_y: *const f32,
    d_x: *mut f32,
    d_g: *mut f32,
) {
    // SAFETY: the caller's rows have D values.
    unsafe {
        let s = scale_of::<V, D>(x);
        let mut dot = V::zero();
        for c in (0..D).step_by(V::LANES) {
            let (x, y) = (V::load(x.add(c)), V::load(d_y.add(c)).mul(V::load(g.add(c))));
            dot = x.mul_add(y, dot);
        }
        let (scale, back) = (V::splat(s), V::splat(-dot.sum() * s * s * s / D as f32));
        for c in (0..D).step_by(V::LANES) {
            let (x, y) = (V::load(x.add(c)), V::load(d_y.add(c)));
            let to = d_x.add(c);
            let through = y.mul(V::load(g.add(c))).mul_add(scale, V::load(to));
            x.mul_add(back, through).store(to);
            y.mul(x).mul_add(scale, V::load(d_g.add(c))).store(d_g.add(c));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Mac;
    use crate::testing::{engines, noise, widths};
    use crate::width::WidthKernel;

    struct Scale<'a>(&'a [f32]);
    impl WidthKernel for Scale<'_> {
        type Out = f32;
        #[inline(always)]
        unsafe fn run<M: Mac, const D: usize, const C: usize>(self) -> f32 {
            // SAFETY: the row has D values.
            unsafe { scale_of::<M::V, D>(self.0.as_ptr()) }
        }
    }

    #[test]
    fn fast_scale_is_the_plain_one() {
        for (d, rms) in widths().into_iter().flat_map(|d| [1e-4, 1.0, 300.0].map(|rms| (d, rms))) {
            let x = noise(5, d, rms);
            let mut y = vec![0.0; d];
            plain(&x, &vec![1.0; d], &mut y);
            for engine in engines() {
                let got = engine.run_at(d, Scale(&x));
                assert!((got * x[0] / y[0] - 1.0).abs() < 1e-6, "{engine:?} width {d}");
            }
        }
    }
}
