//! Losses on logits, with their gradients.
//!
//! - **Binary cross-entropy**: `bce = −ln σ(x)` for a true answer and `−ln σ(−x)` for a false one.
//!   It teaches the model how likely an answer is.
//! - **Cross-entropy** of the softmax. It teaches the model only to rank the true answer first.
//!
//! There are `Q` queries of `C` candidates each. Column 0 is the true answer and the others are
//! false. A batch may come in several calls, down to one query per call. `batch` is the number of
//! queries in the whole batch. The returned losses and the gradients of all calls add up to those
//! of the batch.

/// Computes `ln(1 + eˣ)` without overflow, and without rounding a small result to zero.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the binary cross-entropy of one logit, and its slope.
fn bce(logit: f32, truth: bool) -> (f32, f32) {
    // σ(x) − 1 = −σ(−x), which keeps its digits where σ(x) is close to one.
    if truth { (softplus(-logit), -sigmoid(-logit)) } else { (softplus(logit), sigmoid(logit)) }
}

/// Computes the published loss of both tasks: per query `(bce₀ + Σⱼ wⱼ bceⱼ) / 2`, averaged over
/// the batch. `w = softmax(logits / temperature)` runs over the false answers, so false answers
/// that the model believes in count more. The weights `w` are not differentiated.
///
/// # Panics
/// If the slices differ in length or do not hold a whole number of queries, or if the temperature is not positive.
pub fn self_adversarial(
    logits: &[f32], // (Q, C)
    candidates: usize,
    batch: usize,
    temperature: f32,
    d_logits: &mut [f32], // (Q, C)
) -> f32 {
    assert!(logits.len() == d_logits.len() && logits.len().is_multiple_of(candidates) && temperature > 0.0);
    let share = 0.5 / batch as f32;
    let mut loss = 0.0;
    for (logits, d_logits) in logits.chunks_exact(candidates).zip(d_logits.chunks_exact_mut(candidates)) {
        let (positive, slope) = bce(logits[0], true);
        d_logits[0] += share * slope;
        let false_ones = &logits[1..];
        let max = false_ones.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weight = |logit: f32| ((logit - max) / temperature).exp();
        let total: f32 = false_ones.iter().map(|l| weight(*l)).sum();
        let mut negatives = 0.0;
        for (logit, d_logit) in false_ones.iter().zip(&mut d_logits[1..]) {
            let (negative, slope) = bce(*logit, false);
            let w = weight(*logit) / total;
            negatives += w * negative;
            *d_logit += share * w * slope;
        }
        loss += share * (positive + negatives);
    }
    loss
}

/// Computes the mean binary cross-entropy over all entries, true and false.
///
/// # Panics
/// If the slices differ in length or do not hold a whole number of queries.
pub fn mean_bce(
    logits: &[f32], // (Q, C)
    candidates: usize,
    batch: usize,
    d_logits: &mut [f32], // (Q, C)
) -> f32 {
    assert!(logits.len() == d_logits.len() && logits.len().is_multiple_of(candidates));
    let share = 1.0 / (batch * candidates) as f32;
    let mut loss = 0.0;
    for (i, (logit, d_logit)) in logits.iter().zip(d_logits).enumerate() {
        let (entropy, slope) = bce(*logit, i.is_multiple_of(candidates));
        loss += share * entropy;
        *d_logit += share * slope;
    }
    loss
}

/// Computes the sum of the binary cross-entropies of one query. The first answer is true if `truth`
/// is set. All others are false.
///
/// # Panics
/// If the slices differ in length.
pub fn summed_bce(
    logits: &[f32], // (C)
    truth: bool,
    d_logits: &mut [f32], // (C)
) -> f32 {
    assert_eq!(logits.len(), d_logits.len());
    let mut loss = 0.0;
    for (i, (logit, d_logit)) in logits.iter().zip(d_logits).enumerate() {
        let (entropy, slope) = bce(*logit, truth && i == 0);
        loss += entropy;
        *d_logit += slope;
    }
    loss
}

/// Computes `weight` times the cross-entropy of the softmax over the candidates of each query, `ln
/// Σⱼ eˣʲ − x₀`, averaged over the batch. Adding a constant to all logits of a query does not
/// change it.
///
/// # Panics
/// If the slices differ in length or do not hold a whole number of queries.
pub fn cross_entropy(
    logits: &[f32], // (Q, C)
    candidates: usize,
    batch: usize,
    weight: f32,
    d_logits: &mut [f32], // (Q, C)
) -> f32 {
    assert!(logits.len() == d_logits.len() && logits.len().is_multiple_of(candidates));
    let share = weight / batch as f32;
    let mut loss = 0.0;
    for (logits, d_logits) in logits.chunks_exact(candidates).zip(d_logits.chunks_exact_mut(candidates)) {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let others: f32 = logits[1..].iter().map(|l| (l - max).exp()).sum();
        let total = others + (logits[0] - max).exp();
        loss += share * (total.ln() + max - logits[0]);
        // softmax₀ − 1, from the others' sum: it keeps its digits where softmax₀ is close to one.
        d_logits[0] -= share * others / total;
        for (logit, d_logit) in logits.iter().zip(d_logits).skip(1) {
            *d_logit += share * (logit - max).exp() / total;
        }
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;
    use std::f32::consts::LN_2;

    /// A few units in the last place. Under Miri it is more, because there exp and ln may differ
    /// from call to call, as the language allows.
    const NEAR: f32 = if cfg!(miri) { 2e-6 } else { 1e-7 };

    /// σ(ln 3) = 3/4 and ln(1 + 3) = 2 ln 2.
    fn ln3() -> f32 {
        3f32.ln()
    }

    #[test]
    fn summed_bce_by_hand() {
        // True at 0: ln 2, slope −1/2. False at ln 3: 2 ln 2, slope 3/4. Without a true one, the first is false as well.
        for (truth, slope) in [(true, -0.5), (false, 0.5)] {
            let mut d = [0.0; 2];
            let got = summed_bce(&[0.0, ln3()], truth, &mut d);
            assert!((got - 3.0 * LN_2).abs() < 10.0 * NEAR, "{got}");
            assert_close(&d, &[slope, 0.75], NEAR, "slopes");
        }
    }

    #[test]
    fn self_adversarial_by_hand() {
        // True answer at 0: bce = ln 2, slope −1/2. False at 0 and ln 3: bce = ln 2 and 2 ln 2, slopes 1/2 and 3/4.
        // Temperature 1: weights 1/4 and 3/4, loss (1 + 1/4 + 3/2)/2 ln 2. Temperature 1/2: weights 1/10 and 9/10,
        // loss (1 + 1/10 + 9/5)/2 ln 2.
        let cases = [
            (1.0, 1.375, [-0.25, 0.25 * 0.5 / 2.0, 0.75 * 0.75 / 2.0]),
            (0.5, 1.45, [-0.25, 0.1 * 0.5 / 2.0, 0.9 * 0.75 / 2.0]),
        ];
        for (temperature, loss, slopes) in cases {
            let mut d = [0.0; 3];
            let got = self_adversarial(&[0.0, 0.0, ln3()], 3, 1, temperature, &mut d);
            assert!((got - loss * LN_2).abs() < 10.0 * NEAR, "{got}");
            assert_close(&d, &slopes, NEAR, "slopes");
        }
    }

    #[test]
    fn mean_bce_by_hand() {
        // True at ln 3: ln(4/3), slope −1/4; false at 0 and −ln 3: ln 2 and ln(4/3), slopes 1/2 and 1/4.
        let mut d = [0.0; 3];
        let got = mean_bce(&[ln3(), 0.0, -ln3()], 3, 1, &mut d);
        assert!((got - (2.0 * (4f32 / 3.0).ln() + LN_2) / 3.0).abs() < 10.0 * NEAR, "{got}");
        assert_close(&d, &[-1.0 / 12.0, 1.0 / 6.0, 1.0 / 12.0], NEAR, "slopes");
    }

    #[test]
    fn cross_entropy_by_hand() {
        // e⁰, e^ln 3 and e⁰ add up to 5: the true answer at 0 has a fifth, the false ones three fifths and one.
        let mut d = [0.0; 3];
        let got = cross_entropy(&[0.0, ln3(), 0.0], 3, 1, 0.5, &mut d);
        assert!((got - 0.5 * 5f32.ln()).abs() < 10.0 * NEAR, "{got}");
        assert_close(&d, &[-0.4, 0.3, 0.1], NEAR, "slopes");
    }

    #[test]
    fn a_batch_may_come_in_parts() {
        let logits = [0.3, -1.0, 2.0, 0.1, -0.5, 0.7, 1.5, -2.0];
        type Loss = fn(&[f32], &mut [f32]) -> f32;
        let losses: [Loss; 3] = [
            |l, d| self_adversarial(l, 4, 2, 1.0, d),
            |l, d| mean_bce(l, 4, 2, d),
            |l, d| cross_entropy(l, 4, 2, 0.7, d),
        ];
        for loss in losses {
            // The same operations query by query, so the same slopes to the bit.
            let exact = if cfg!(miri) { NEAR } else { 0.0 };
            let (mut whole, mut parts) = ([0.0; 8], [0.0; 8]);
            let all = loss(&logits, &mut whole);
            let halves = loss(&logits[..4], &mut parts[..4]) + loss(&logits[4..], &mut parts[4..]);
            assert!((all - halves).abs() < NEAR, "{all}, in parts {halves}");
            assert_close(&parts, &whole, exact, "parts");
            loss(&logits, &mut whole); // adds to what is there
            assert_close(&whole, &parts.map(|d| 2.0 * d), NEAR, "twice");
        }
    }

    #[test]
    fn extreme_logits_stay_finite() {
        // A true answer at −10⁴ costs 10⁴, a false one at 10⁴ too; the opposite costs nothing.
        let far = 1e4;
        let mut d = [0.0; 3];
        assert_eq!(self_adversarial(&[-far, far, -far], 3, 1, 1.0, &mut d), far);
        assert_eq!(d, [-0.5, 0.5, 0.0]);
        let mut d = [0.0; 3];
        assert_eq!(self_adversarial(&[far, -far, -far], 3, 1, 1e-3, &mut d), 0.0);
        assert_eq!(d, [0.0; 3]);
        let mut d = [0.0; 4];
        assert_eq!(mean_bce(&[-far, far, -far, far], 4, 1, &mut d), 0.75 * far);
        assert_eq!(d, [-0.25, 0.25, 0.0, 0.25]);
        let mut d = [0.0; 3];
        assert_eq!(cross_entropy(&[-far, far, -far], 3, 1, 1.0, &mut d), 2.0 * far);
        assert_eq!(d, [-1.0, 1.0, 0.0]);
        let mut d = [0.0; 3];
        assert_eq!(cross_entropy(&[far, -far, -far], 3, 1, 1.0, &mut d), 0.0);
        assert_eq!(d, [0.0; 3]);
    }

    #[test]
    fn a_query_without_false_answers_has_half_the_positive_term() {
        let mut d = [0.0];
        let got = self_adversarial(&[0.0], 1, 1, 1.0, &mut d);
        assert!((got - LN_2 / 2.0).abs() < NEAR, "{got}");
        assert_close(&d, &[-0.25], NEAR, "slope");
    }
}
