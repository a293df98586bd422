//! Isotonic regression: the non-decreasing map from logits to probabilities that fits observed outcomes best.

use serde::{Deserialize, Serialize};

/// The least samples in a group, and the most groups.
const GROUP: usize = 10;
const GROUPS: usize = 40;
/// Mean logits that are nearer than this are equal: sums of weighted logits are not exact.
const ROUNDING: f64 = 1e-9;

/// An ascending map from logit to probability. Between knots it is a straight line. Above the highest knot it is level: more
/// than was seen to be true is not claimed. Below the lowest knot it goes on falling as σ does: the log-odds fall by one with
/// each unit of the logit. Held-out edges hardly ever reach down there, and a level map would lift every impossible answer
/// to the share of the lowest group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Isotonic {
    knots: Vec<(f64, f64)>, // ascending in both
}

/// Neighbouring samples.
#[derive(Copy, Clone)]
struct Block {
    count: f64,
    logits: f64, // sum
    hits: f64,
}

impl Block {
    /// Its mean logit.
    fn logit(&self) -> f64 {
        self.logits / self.count
    }

    /// The share of hits, so that no single one makes a certainty (the mean of Jeffreys' posterior).
    fn share(&self) -> f64 {
        (self.hits + 0.5) / (self.count + 1.0)
    }
}

/// Pools neighbours until `share` ascends. Blocks of one logit are one knot, or the map would have two values there.
fn pool(blocks: impl Iterator<Item = Block>, share: impl Fn(&Block) -> f64) -> Vec<Block> {
    let mut pooled: Vec<Block> = Vec::new();
    for block in blocks {
        pooled.push(block);
        while let [.., a, b] = pooled[..]
            && (share(&a) >= share(&b) || b.logit() - a.logit() < ROUNDING)
        {
            pooled.truncate(pooled.len() - 2);
            pooled.push(Block { count: a.count + b.count, logits: a.logits + b.logits, hits: a.hits + b.hits });
        }
    }
    pooled
}

impl Isotonic {
    /// Fits (logit, whether true) pairs, of which there must be some.
    ///
    /// Samples are first put in groups of neighbours. Groups whose shares k/n are out of order or equal are pooled, counts with
    /// counts, until all ascend. Each then has the share (k + ½)/(n + 1), and what that puts out of order is pooled again. The
    /// half is added last, so that a hundred samples without a hit make ½/101, not the ½/11 of each of ten groups.
    pub fn fit(samples: &[(f64, bool)]) -> Isotonic {
        Isotonic::fit_weighted(samples.iter().map(|&(logit, truth)| (logit, truth, 1.0)).collect())
    }

    /// As [`Isotonic::fit`], where each sample counts as often as its weight says. Weights are positive and have the mean 1, so
    /// that they move samples against each other and not against the half that is added.
    pub fn fit_weighted(mut samples: Vec<(f64, bool, f64)>) -> Isotonic {
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        let size = samples.len().div_ceil(GROUPS).max(GROUP);
        let groups = samples.chunks(size).map(|group| Block {
            count: group.iter().map(|s| s.2).sum(),
            logits: group.iter().map(|s| s.0 * s.2).sum(),
            hits: group.iter().filter(|s| s.1).map(|s| s.2).sum(),
        });
        let ascending = pool(groups, |block| block.hits / block.count);
        let blocks = pool(ascending.into_iter(), Block::share);
        Isotonic { knots: blocks.iter().map(|b| (b.logit(), b.share())).collect() }
    }

    /// The probability at a logit.
    pub fn at(&self, logit: f64) -> f64 {
        let after = self.knots.partition_point(|k| k.0 <= logit);
        match (after.checked_sub(1).and_then(|i| self.knots.get(i)), self.knots.get(after)) {
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (logit - a.0) / (b.0 - a.0),
            (Some(k), None) => k.1,
            // σ(ln(p / (1 − p)) + logit − knot), written so that p = 0 and p = 1 need no care.
            (None, Some((knot, p))) => {
                let fall = (logit - knot).exp();
                p * fall / (1.0 - p + p * fall)
            }
            (None, None) => 0.5,
        }
    }

    /// Whether the map is one: ascending, finite, within 0 and 1.
    pub fn is_sound(&self) -> bool {
        let knot = |k: &(f64, f64)| k.0.is_finite() && (0.0..=1.0).contains(&k.1);
        !self.knots.is_empty()
            && self.knots.iter().all(knot)
            && self.knots.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_by_hand() {
        // Four groups of ten at logits 0, 1, 2, 3 with 1, 5, 3 and 9 hits.
        let hits = [1, 5, 3, 9];
        let samples: Vec<(f64, bool)> = (0..40).map(|i| ((i / 10) as f64, i % 10 < hits[i / 10])).collect();
        let map = Isotonic::fit(&samples);
        // Shares 1.5/11, 5.5/11, 3.5/11, 9.5/11: the middle two are pooled to 8 of 20, 8.5/21, at logit 1.5.
        let want = [(0.0, 1.5 / 11.0), (1.5, 8.5 / 21.0), (3.0, 9.5 / 11.0)];
        assert!(map.knots.iter().zip(want).all(|(k, w)| (k.0 - w.0).abs() < 1e-12 && (k.1 - w.1).abs() < 1e-12));
        assert_eq!(map.knots.len(), 3);
        assert!(map.is_sound());
        // Half way between the first two, and level above.
        assert!((map.at(0.75) - (1.5 / 11.0 + 8.5 / 21.0) / 2.0).abs() < 1e-12);
        assert_eq!((map.at(0.0), map.at(9.0)), (1.5 / 11.0, 9.5 / 11.0));
        // Below: the odds of 1.5/11 are 3/19, and three units of the logit lower they are e³ times less.
        let odds = 3.0 / 19.0 * (-3f64).exp();
        assert!((map.at(-3.0) - odds / (1.0 + odds)).abs() < 1e-12);
    }

    #[test]
    fn weights_count_as_copies() {
        // Ten at logit 0 with two hits, ten at 2 with five: each of the second ten counts half as often again.
        let samples: Vec<(f64, bool, f64)> =
            (0..20).map(|i| if i < 10 { (0.0, i < 2, 0.8) } else { (2.0, i < 15, 1.2) }).collect();
        let map = Isotonic::fit_weighted(samples.clone());
        // 2 × 0.8 of 8, and 5 × 1.2 of 12, with the half.
        assert!((map.at(0.0) - 2.1 / 9.0).abs() < 1e-12 && (map.at(2.0) - 6.5 / 13.0).abs() < 1e-12, "{map:?}");
        let plain: Vec<(f64, bool)> = samples.iter().map(|s| (s.0, s.1)).collect();
        let alike = samples.iter().map(|s| (s.0, s.1, 1.0)).collect();
        assert_eq!(Isotonic::fit(&plain), Isotonic::fit_weighted(alike));
    }

    #[test]
    fn one_logit_has_one_value() {
        // Ties are sorted as they come: ten misses, ten hits, all at logit 1. Together 10 of 20.
        let tied: Vec<(f64, bool)> = (0..20).map(|i| (1.0, i >= 10)).collect();
        let map = Isotonic::fit(&tied);
        assert!(map.is_sound() && map.at(1.0) == 10.5 / 21.0, "{map:?}");
    }

    #[test]
    fn there_is_no_floor() {
        // A hundred samples at logits −5 to −4 without a hit, then ten at 0 with five: knots at −4.505 and at 0.
        let none = (0..100).map(|i| (-5.0 + f64::from(i) / 100.0, false));
        let half = (0..10).map(|i| (0.0, i % 2 == 0));
        let map = Isotonic::fit(&none.chain(half).collect::<Vec<_>>());
        assert!((map.at(-4.505) - 0.5 / 101.0).abs() < 1e-12, "{}", map.at(-4.505));
        // The odds 0.5/100.5, e^15.495 times less: 9.3e-10.
        assert!((map.at(-20.0) / 9.283e-10 - 1.0).abs() < 1e-3, "{}", map.at(-20.0));
        // Strictly ascending up to the last knot, and nowhere a jump.
        let steps: Vec<f64> = (-4000..=0).map(|i| map.at(f64::from(i) / 100.0)).collect();
        assert!(steps.windows(2).all(|w| w[0] < w[1] && w[1] - w[0] < 0.002));
        assert!(map.at(f64::NEG_INFINITY) == 0.0 && map.at(-1e6) >= 0.0);
    }

    /// Held-out samples of a known truth, σ(0.8 x − 1.5): shares stated for 20,000 fresh logits against those probabilities.
    #[test]
    fn held_out_samples_are_met() {
        let mut state = 7u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let truth = |x: f64| 1.0 / (1.0 + (1.5 - 0.8 * x).exp());
        let mut draw = |n: usize| -> Vec<(f64, bool)> {
            let sample = |_| {
                let x = 10.0 * unit() - 6.0;
                (x, unit() < truth(x))
            };
            (0..n).map(sample).collect()
        };
        let (seen, fresh) = (draw(2_000), draw(20_000));
        let map = Isotonic::fit(&seen);
        let error = |p: &dyn Fn(f64) -> f64| {
            super::super::expected_error(&super::super::bins(fresh.iter().map(|(x, t)| (p(*x), *t))))
        };
        // Each bin has some 200 of the samples that were seen: a share is known to about 0.03 at worst, and to less where it is
        // small, as most are. σ itself is off by 0.1.
        assert!(error(&|x| map.at(x)) < 0.02, "{}", error(&|x| map.at(x)));
        assert!(error(&|x| 1.0 / (1.0 + (-x).exp())) > 0.05);
        // Where nothing was seen it stays on the falling side of what was.
        assert!(map.at(-12.0) < map.at(-6.0) && map.at(-12.0) < 1e-3);
    }

    #[test]
    fn refuses_what_is_no_map() {
        let sound = |knots: &[(f64, f64)]| Isotonic { knots: knots.to_vec() }.is_sound();
        assert!(sound(&[(0.0, 0.1), (1.0, 0.1)]));
        assert!(!sound(&[]) && !sound(&[(0.0, 1.1)]) && !sound(&[(f64::NAN, 0.5)]));
        assert!(!sound(&[(1.0, 0.1), (0.0, 0.2)]) && !sound(&[(0.0, 0.3), (1.0, 0.2)]));
    }
}
