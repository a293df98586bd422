//! The learning rate schedule, gradient clipping, and the moving average of the weights.
//!
//! The optimiser's step itself is [`flock_kernels::adamw`].

use serde::{Deserialize, Serialize};

/// The learning rate over the steps of a run, as a factor on the base rate.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The base rate throughout, as published.
    #[default]
    Constant,
    /// Rises linearly for `warmup` steps, then falls along half a cosine to `floor` at step
    /// `total`, and stays there.
    WarmupCosine {
        /// Steps of the rise. The last of them has the base rate.
        warmup: u64,
        /// Steps of the run.
        total: u64,
        /// The factor at the end.
        floor: f64,
    },
}

impl Schedule {
    /// Returns the factor of step `t`, counted from 1.
    pub fn factor(&self, t: u64) -> f64 {
        match *self {
            Schedule::Constant => 1.0,
            Schedule::WarmupCosine { warmup, .. } if t <= warmup => t as f64 / warmup.max(1) as f64,
            Schedule::WarmupCosine { warmup, total, floor } => {
                let way = (t - warmup) as f64 / total.saturating_sub(warmup).max(1) as f64;
                floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * way.min(1.0)).cos())
            }
        }
    }
}

/// Scales all gradients together so that their norm is at most `max_norm`. Returns the norm before
/// scaling. If that is not finite, the gradients are left unchanged, and the caller should drop the
/// step.
pub fn clip(gradients: &mut [&mut [f32]], max_norm: f64) -> f64 {
    let square: f64 = gradients.iter().flat_map(|g| g.iter()).map(|d| f64::from(*d) * f64::from(*d)).sum();
    let norm = square.sqrt();
    if norm.is_finite() && norm > max_norm {
        let scale = (max_norm / norm) as f32;
        gradients.iter_mut().flat_map(|g| g.iter_mut()).for_each(|d| *d *= scale);
    }
    norm
}

/// Updates the exponential moving average of the weights: `average ← decay · average + (1 − decay)
/// · weights`.
pub fn average(average: &mut [f32], weights: &[f32], decay: f32) {
    for (a, w) in average.iter_mut().zip(weights) {
        // Written as a difference, so that an average equal to the weights keeps its bits.
        *a += (1.0 - decay) * (w - *a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warmup_then_cosine() {
        // Warm-up of 4, total 12, floor 0.2: quarters up; then 0.2 + 0.4 (1 + cos(π k / 8)) at step
        // 4 + k: k = 4 is halfway, 0.6; k = 2 has cos(π/4) = 0.70710678: 0.88284271; k = 8 is the
        // floor.
        let s = Schedule::WarmupCosine { warmup: 4, total: 12, floor: 0.2 };
        let cases = [
            (1, 0.25),
            (2, 0.5),
            (4, 1.0),
            (6, 0.882_842_71),
            (8, 0.6),
            (10, 0.317_157_29),
            (12, 0.2),
            (13, 0.2),
            (u64::MAX, 0.2),
        ];
        for (t, factor) in cases {
            assert!((s.factor(t) - factor).abs() < 1e-8, "step {t}: {}", s.factor(t));
        }
        assert_eq!([1, 1000].map(|t| Schedule::Constant.factor(t)), [1.0, 1.0]);
    }

    #[test]
    fn odd_schedules_stay_between_floor_and_one() {
        // No warm-up: the first step is already on the cosine. A run that ends in its warm-up drops
        // to the floor after.
        let none = Schedule::WarmupCosine { warmup: 0, total: 2, floor: 0.0 };
        assert!((none.factor(1) - 0.5).abs() < 1e-12 && none.factor(2).abs() < 1e-12);
        let short = Schedule::WarmupCosine { warmup: 10, total: 5, floor: 0.1 };
        assert_eq!([short.factor(5), short.factor(10)], [0.5, 1.0]);
        assert!((short.factor(11) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn clips_by_the_norm_of_all_tensors_together() {
        // √(2² + 3² + 6²) = 7.
        let (mut a, mut b) = ([2.0, -3.0], [6.0]);
        assert_eq!(clip(&mut [&mut a, &mut b], 7.0), 7.0);
        assert_eq!((a, b), ([2.0, -3.0], [6.0]));
        assert_eq!(clip(&mut [&mut a, &mut b], 3.5), 7.0);
        assert_eq!((a, b), ([1.0, -1.5], [3.0]));
    }

    #[test]
    fn a_gradient_that_is_not_finite_is_reported_and_left() {
        let mut a = [f32::INFINITY, 1.0];
        assert!(!clip(&mut [&mut a], 1.0).is_finite());
        assert_eq!(a, [f32::INFINITY, 1.0]);
        // Squares of f32 gradients do not overflow: 10³⁰ twice has norm √2 · 10³⁰.
        let mut a = [1e30, 1e30];
        let norm = clip(&mut [&mut a], 1.0);
        assert!((norm / 2f64.sqrt() / 1e30 - 1.0).abs() < 1e-6);
        assert!(a.iter().all(|d| (d - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-6));
        assert_eq!(clip(&mut [&mut [0.0, 0.0]], 1.0), 0.0);
    }

    #[test]
    fn average_follows_the_weights() {
        // From 0 towards 8 with decay 3/4: 2, then 2 + (8 − 2)/4 = 3.5.
        let mut a = [0.0, 5.0];
        average(&mut a, &[8.0, 5.0], 0.75);
        assert_eq!(a, [2.0, 5.0]);
        average(&mut a, &[8.0, 5.0], 0.75);
        assert_eq!(a, [3.5, 5.0]);
    }
}
