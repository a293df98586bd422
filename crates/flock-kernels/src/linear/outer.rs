//! Weight gradients: `C += Aᵀ B`, summed over rows, in register tiles like those of the forward.
//!
//! Rows come in segments. The accumulators of a tile are read and written once per segment, and the
//! rows of a segment stay in the near caches.

use super::tile::UNROLL;
use crate::simd::{Kernel, Mac, Vector};
use crate::width::tile_vectors;

/// Rows per segment. The number is even, because bf16 multiplies rows in pairs.
pub(crate) const SEGMENT: usize = 48;

/// Returns rows of `f32` as an operand of [`outer`]: the rows themselves, or a staged copy in
/// `room`, and the distance between rows.
///
/// # Safety
/// `from` is valid for `rows` rows of `width` values, `stride` apart. `room` holds as many units,
/// with the row count rounded up to an even number.
#[inline(always)]
pub(crate) unsafe fn operand<M: Mac>(
    from: *const f32,
    stride: usize,
    rows: usize,
    width: usize,
    room: *mut u32,
) -> (*const u32, usize) {
    if M::DIRECT {
        return (from.cast(), stride);
    }
    // SAFETY: the caller's promise; an odd last row is paired with zeros.
    unsafe {
        for row in (0..rows).step_by(M::K_PER) {
            for c in (0..width).step_by(M::V::LANES) {
                let even = M::V::load(from.add(row * stride + c));
                let odd = if row + 1 < rows { M::V::load(from.add((row + 1) * stride + c)) } else { M::V::zero() };
                M::stage_rows(even, odd, room.add(row / M::K_PER * width + c));
            }
        }
    }
    (room, width)
}

/// Computes `c[i][j] += Σ_row a[row][i] · b[row][j]` for `i < m` and `j < n`. `m` is even and `n`
/// is a whole number of `C` vectors.
///
/// # Safety
/// `a` and `b` are operands of `rows` rows, at least `m` and `n` wide. `c` is valid for `m` rows,
/// `c_stride` apart.
#[inline(always)]
pub(crate) unsafe fn outer<M: Mac, const C: usize>(
    rows: usize,
    (a, a_stride): (*const u32, usize),
    m: usize,
    (b, b_stride): (*const u32, usize),
    n: usize,
    c: *mut f32,
    c_stride: usize,
) {
    let steps = rows.div_ceil(M::K_PER);
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i < m {
            let (a, c) = (a.add(i), c.add(i * c_stride));
            let tile = match m - i {
                6.. => 6,
                4.. => 4,
                _ => 2,
            };
            for j in (0..n).step_by(C * M::V::LANES) {
                match tile {
                    6 => outer_tile::<M, 6, C>(steps, a, a_stride, b.add(j), b_stride, c.add(j), c_stride),
                    4 => outer_tile::<M, 4, C>(steps, a, a_stride, b.add(j), b_stride, c.add(j), c_stride),
                    _ => outer_tile::<M, 2, C>(steps, a, a_stride, b.add(j), b_stride, c.add(j), c_stride),
                }
            }
            i += tile;
        }
    }
}

/// Computes the same as [`outer`], with the tile that divides `n`.
///
/// # Safety
/// As for [`outer`].
#[inline(always)]
pub(crate) unsafe fn outer_of<M: Mac>(
    rows: usize,
    a: (*const u32, usize),
    m: usize,
    b: (*const u32, usize),
    n: usize,
    c: *mut f32,
    c_stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if M::V::LANES < 16 {
            return outer::<M, 2>(rows, a, m, b, n, c, c_stride);
        }
        match tile_vectors(16, n) {
            4 => outer::<M, 4>(rows, a, m, b, n, c, c_stride),
            3 => outer::<M, 3>(rows, a, m, b, n, c, c_stride),
            _ => outer::<M, 2>(rows, a, m, b, n, c, c_stride),
        }
    }
}

#[inline(always)]
unsafe fn outer_tile<M: Mac, const R: usize, const C: usize>(
    steps: usize,
    a: *const u32,
    a_stride: usize,
    b: *const u32,
    b_stride: usize,
    c: *mut f32,
    c_stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if M::SHARED {
            M::call(OuterKernel::<R, C> { steps, a, a_stride, b, b_stride, c, c_stride });
        } else {
            outer_tile_inline::<M, R, C>(steps, a, a_stride, b, b_stride, c, c_stride);
        }
    }
}

/// A tile as a function of its own.
struct OuterKernel<const R: usize, const C: usize> {
    steps: usize,
    a: *const u32,
    a_stride: usize,
    b: *const u32,
    b_stride: usize,
    c: *mut f32,
    c_stride: usize,
}

impl<const R: usize, const C: usize> Kernel for OuterKernel<R, C> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        let OuterKernel { steps, a, a_stride, b, b_stride, c, c_stride } = self;
        // SAFETY: `outer_tile` has made the kernel from its own arguments.
        unsafe { outer_tile_inline::<M, R, C>(steps, a, a_stride, b, b_stride, c, c_stride) }
    }
}

#[inline(always)]
unsafe fn outer_tile_inline<M: Mac, const R: usize, const C: usize>(
    steps: usize,
    a: *const u32,
    a_stride: usize,
    b: *const u32,
    b_stride: usize,
    c: *mut f32,
    c_stride: usize,
) {
    let lanes = M::V::LANES;
    // SAFETY: the caller's promise.
    unsafe {
        let mut acc = [[M::V::zero(); C]; R];
        let whole = steps / UNROLL * UNROLL;
        for k0 in (0..whole).step_by(UNROLL) {
            for k in k0..k0 + UNROLL {
                outer_step::<M, R, C>(&mut acc, a.add(k * a_stride), b.add(k * b_stride));
            }
        }
        for k in whole..steps {
            outer_step::<M, R, C>(&mut acc, a.add(k * a_stride), b.add(k * b_stride));
        }
        for r in 0..R {
            for j in 0..C {
                let at = c.add(r * c_stride + j * lanes);
                M::V::load(at).add(acc[r][j]).store(at);
            }
        }
    }
}

/// Adds one row of both operands, or the two rows of a unit.
#[inline(always)]
unsafe fn outer_step<M: Mac, const R: usize, const C: usize>(acc: &mut [[M::V; C]; R], a: *const u32, b: *const u32) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut w = [M::weights(b); C];
        for j in 1..C {
            w[j] = M::weights(b.add(j * M::V::LANES));
        }
        for r in 0..R {
            let x = M::splat(a.add(r));
            for j in 0..C {
                acc[r][j] = M::mac(acc[r][j], w[j], x);
            }
        }
    }
}

/// Computes `out += Σ_row x[row]`.
///
/// # Safety
/// `x` is valid for `rows` rows of `width` values, `stride` apart, and `out` for `width` values.
#[inline(always)]
pub(crate) unsafe fn add_rows<V: Vector>(rows: usize, x: *const f32, stride: usize, width: usize, out: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        for c in (0..width).step_by(V::LANES) {
            let mut sum = V::zero();
            for row in 0..rows {
                sum = sum.add(V::load(x.add(row * stride + c)));
            }
            V::load(out.add(c)).add(sum).store(out.add(c));
        }
    }
}
