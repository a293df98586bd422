//! Helpers of this crate's tests.

/// `n` reproducible values, roughly uniform in ±√3·`rms`.
pub fn noise(seed: u64, n: usize, rms: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * 1.732 * rms
        })
        .collect()
}

/// Fails, naming `what`, where two slices differ by more than `tolerance`.
pub fn assert_close(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance, "{what}: [{i}] = {g}, expected {w}, tolerance {tolerance}");
    }
}
