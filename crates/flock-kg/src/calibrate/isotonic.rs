//! Isotonic regression: the non-decreasing map from logits to probabilities that fits observed outcomes best.

use serde::{Deserialize, Serialize};

/// The least samples in a group, and the most groups.
const GROUP: usize = 10;
const GROUPS: usize = 40;

/// A non-decreasing map from logit to probability: straight lines between knots, level outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Isotonic {
    knots: Vec<(f64, f64)>, // ascending in both
}

impl Isotonic {
    /// Fits (logit, whether true) pairs, of which there must be some.
    ///
    /// Samples are first put in groups of neighbours with the share (k + ½)/(n + 1) each, so that no single one makes a
    /// certainty; then neighbouring groups that are out of order are pooled until none is.
    pub fn fit(samples: &[(f64, bool)]) -> Isotonic {
        let mut sorted = samples.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let size = sorted.len().div_ceil(GROUPS).max(GROUP);
        let mut blocks: Vec<(f64, f64, f64)> = Vec::new(); // weight, mean logit, probability
        for group in sorted.chunks(size) {
            let n = group.len() as f64;
            let mean = group.iter().map(|s| s.0).sum::<f64>() / n;
            let hits = group.iter().filter(|s| s.1).count() as f64;
            blocks.push((n, mean, (hits + 0.5) / (n + 1.0)));
            while let [.., a, b] = blocks[..]
                && a.2 >= b.2
            {
                let n = a.0 + b.0;
                let pooled = (n, (a.0 * a.1 + b.0 * b.1) / n, (a.0 * a.2 + b.0 * b.2) / n);
                blocks.truncate(blocks.len() - 2);
                blocks.push(pooled);
            }
        }
        Isotonic { knots: blocks.into_iter().map(|(_, logit, p)| (logit, p)).collect() }
    }

    /// The probability at a logit.
    pub fn at(&self, logit: f64) -> f64 {
        let after = self.knots.partition_point(|k| k.0 <= logit);
        match (after.checked_sub(1).and_then(|i| self.knots.get(i)), self.knots.get(after)) {
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (logit - a.0) / (b.0 - a.0),
            (Some(k), None) | (None, Some(k)) => k.1,
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
        // Shares 1.5/11, 5.5/11, 3.5/11, 9.5/11: the middle two are pooled to 4.5/11 at logit 1.5.
        let want = [(0.0, 1.5 / 11.0), (1.5, 4.5 / 11.0), (3.0, 9.5 / 11.0)];
        assert!(map.knots.iter().zip(want).all(|(k, w)| (k.0 - w.0).abs() < 1e-12 && (k.1 - w.1).abs() < 1e-12));
        assert_eq!(map.knots.len(), 3);
        assert!(map.is_sound());
        // Half way between the first two, and level outside.
        assert!((map.at(0.75) - 3.0 / 11.0).abs() < 1e-12);
        assert_eq!((map.at(-9.0), map.at(9.0)), (1.5 / 11.0, 9.5 / 11.0));
    }

    #[test]
    fn refuses_what_is_no_map() {
        let sound = |knots: &[(f64, f64)]| Isotonic { knots: knots.to_vec() }.is_sound();
        assert!(sound(&[(0.0, 0.1), (1.0, 0.1)]));
        assert!(!sound(&[]) && !sound(&[(0.0, 1.1)]) && !sound(&[(f64::NAN, 0.5)]));
        assert!(!sound(&[(1.0, 0.1), (0.0, 0.2)]) && !sound(&[(0.0, 0.3), (1.0, 0.2)]));
    }
}
