//! Helpers for the tests of this crate.

use crate::{Engine, WIDTHS};

/// Lists the engines that a test compares: all that run here. Miri is thousands of times slower, so
/// it gets one engine: the best one that rounds nothing. What differs between engines has tests of
/// its own (`simd`, and `linear` with all engines).
pub fn engines() -> Vec<Engine> {
    let all = Engine::all();
    if !cfg!(miri) {
        return all;
    }
    all.into_iter().rfind(|e| e.lanes() == 8 && !e.is_emulated()).into_iter().collect()
}

/// Lists the shapes that a test goes through: `all`, or `small` under Miri. Whole chunks of rows
/// would take minutes there.
pub fn shapes<T: Copy>(all: &[T], small: &[T]) -> Vec<T> {
    if cfg!(miri) { small } else { all }.to_vec()
}

/// Lists the widths that a test goes through: all, or the published one under Miri. There the
/// others would take as long again, and differ only in the lengths of loops.
pub fn widths() -> Vec<usize> {
    shapes(&WIDTHS, &[64])
}

/// Lists widths with their numbers of heads: all, or the published ones under Miri.
pub fn widths_and_heads() -> Vec<(usize, usize)> {
    let all: Vec<_> = WIDTHS.iter().flat_map(|d| crate::HEAD_WIDTHS.map(|slice| (*d, d / slice))).collect();
    shapes(&all, &[(64, 4)])
}

/// Returns the factor by which weights of `inputs` inputs are smaller than those of 64, so that sums
/// have the same size at every width.
pub fn scale(inputs: usize) -> f32 {
    8.0 / (inputs as f32).sqrt()
}

/// Returns `n` reproducible values, roughly uniform in ±√3·`rms`.
pub fn noise(seed: u64, n: usize, rms: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * 1.732 * rms
    };
    // Miri repeats the first few values. Their number is prime, so that no two rows are the same.
    let fresh = if cfg!(miri) { n.min(251) } else { n };
    let mut values: Vec<f32> = (0..fresh).map(|_| next()).collect();
    while values.len() < n {
        values.extend_from_within(..fresh.min(n - values.len()));
    }
    values
}

/// Fails, and names `what`, if two slices differ by more than `tolerance`.
pub fn assert_close(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance, "{what}: [{i}] = {g}, expected {w}, tolerance {tolerance}");
    }
}
