//! Reliability: stated probabilities against how often they came true, in bins, as a number and as a picture.

const BINS: usize = 10;

/// The predictions whose probability lies in one tenth of 0 to 1.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Bin {
    /// How many there are.
    pub count: usize,
    /// Their mean probability.
    pub stated: f64,
    /// The share of them that is true.
    pub observed: f64,
}

/// Ten bins of equal width.
pub fn bins(predictions: impl Iterator<Item = (f64, bool)>) -> [Bin; BINS] {
    let mut bins = [Bin::default(); BINS];
    for (p, truth) in predictions {
        let bin = &mut bins[((p * BINS as f64) as usize).min(BINS - 1)];
        bin.count += 1;
        bin.stated += p;
        bin.observed += f64::from(u8::from(truth));
    }
    for bin in &mut bins {
        bin.stated /= bin.count.max(1) as f64;
        bin.observed /= bin.count.max(1) as f64;
    }
    bins
}

/// Expected calibration error: the mean of |stated − observed|, each bin by its count.
pub fn expected_error(bins: &[Bin]) -> f64 {
    let total = bins.iter().map(|b| b.count).sum::<usize>().max(1) as f64;
    bins.iter().map(|b| b.count as f64 / total * (b.stated - b.observed).abs()).sum()
}

/// Draws what was stated across and what was observed up, before and after. The area of a dot is its count.
#[cfg(feature = "eval")]
pub fn svg(title: &str, before: &[Bin], after: &[Bin]) -> String {
    use flock_eval::chart::{Axis, Series, lines};

    let most = before.iter().chain(after).map(|b| b.count).max().unwrap_or(1).max(1) as f64;
    let series = |name: &str, bins: &[Bin]| {
        let filled: Vec<&Bin> = bins.iter().filter(|b| b.count > 0).collect();
        Series {
            name: name.to_string(),
            points: filled.iter().map(|b| (b.stated, b.observed)).collect(),
            sizes: filled.iter().map(|b| (b.count as f64 / most).min(1.0)).collect(),
            ..Series::default()
        }
    };
    let diagonal = Series { points: vec![(0.0, 0.0), (1.0, 1.0)], ..series("as stated", &[]) };
    let errors = [before, after].map(expected_error);
    let subtitle = format!(
        "expected error {:.3} before, {:.3} after; the area of a dot is the number of predictions",
        errors[0], errors[1]
    );
    let (x, y) = (Axis::from_zero_to("stated probability", 1.0), Axis::from_zero_to("share that is true", 1.0));
    lines(title, &subtitle, &x, &y, &[series("after", after), series("before", before), diagonal])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_by_hand() {
        // Two at 0.15, one true: |0.15 − 0.5|; two at 0.95, both true: |0.95 − 1|; mean (0.35 + 0.05) / 2.
        let bins = bins([(0.15, true), (0.15, false), (0.95, true), (0.95, true)].into_iter());
        assert_eq!((bins[1].count, bins[9].count), (2, 2));
        assert!((expected_error(&bins) - 0.2).abs() < 1e-12);
        assert_eq!(expected_error(&super::bins(std::iter::empty())), 0.0);
        // One is in the last bin.
        assert_eq!(super::bins([(1.0, true)].into_iter())[9].count, 1);
    }

    #[test]
    #[cfg(feature = "eval")]
    fn the_picture_has_both_lines() {
        let bins = bins([(0.15, true), (0.15, false), (0.95, true), (0.95, true)].into_iter());
        let picture = svg("a<b", &bins, &super::bins(std::iter::empty()));
        assert!(picture.contains("a&lt;b") && !picture.contains("NaN"));
        // By hand above: an error of 0.2; nothing after.
        assert!(picture.contains("expected error 0.200 before, 0.000 after"), "{picture}");
        // Two bins of two each, the most there are: dots of radius 10.
        assert_eq!(picture.matches("r=\"10\"").count(), 2);
    }
}
