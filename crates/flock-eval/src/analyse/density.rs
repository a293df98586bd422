//! The gain over another system against the density of graphs, with the significance of the
//! correlation.

use serde::Serialize;

use super::finding::Finding;
use crate::chart::{self, Axis, LabelledPoint};
use crate::datasets::{DatasetGroup, registry};
use crate::sheet::Sheet;

/// The gain on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Name of the dataset.
    pub dataset: String,
    /// Group of the dataset.
    pub group: DatasetGroup,
    /// |E| / (|V| (|V| − 1)) of the test graph.
    pub density: f64,
    /// Relative gain in MRR: ours / theirs − 1.
    pub gain: f64,
}

/// A straight line fitted to points, and how well they follow it.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Value of the line at 0.
    pub intercept: f64,
    /// Slope of the line.
    pub slope: f64,
    /// Pearson's correlation.
    pub r: f64,
    /// Two-sided p-value of that correlation.
    pub p: f64,
}

/// Computes the gains on the registry's datasets that both lists have. Metafam is left out, as in
/// the paper.
pub fn gains(ours: &[(&str, f64)], theirs: &[(&str, f64)]) -> Vec<Gain> {
    let gain = |(name, mrr): &(&str, f64)| {
        let entry = registry::find(name).filter(|e| e.name != "Metafam")?;
        let (_, other) = theirs.iter().find(|(n, other)| n == name && *other > 0.0)?;
        Some(Gain { dataset: name.to_string(), group: entry.group, density: entry.density(), gain: mrr / other - 1.0 })
    };
    ours.iter().filter_map(gain).collect()
}

/// Puts the gain of `who` over another system beside the density of each graph. `kind` says how the models
/// were trained for a graph: zero-shot or fine-tuned.
pub fn picture(who: &str, ours: &[(&str, f64)], over: &str, theirs: &[(&str, f64)], kind: &str) -> Finding {
    let gains = gains(ours, theirs);
    let fit = fit(&gains.iter().map(|g| (g.density.log10(), g.gain * 100.0)).collect::<Vec<_>>());
    let header = ["dataset", "group", "density", "gain %"].map(String::from).to_vec();
    let row = |g: &Gain| {
        vec![g.dataset.clone(), g.group.to_string(), format!("{:.3e}", g.density), format!("{:+.1}", g.gain * 100.0)]
    };
    let found = fit.map_or("too few graphs for a correlation".to_string(), |f| {
        format!("Pearson r = {:.2}, p = {:.1e}, {} graphs (without Metafam)", f.r, f.p, gains.len())
    });
    // The groups that have a graph, in their order: points and legend have the colours of these places.
    let present: Vec<DatasetGroup> =
        DatasetGroup::ALL.into_iter().filter(|g| gains.iter().any(|x| x.group == *g)).collect();
    let class = |g: DatasetGroup| present.iter().position(|other| *other == g).unwrap_or(0);
    let points: Vec<LabelledPoint> = gains
        .iter()
        .map(|g| LabelledPoint { x: g.density, y: g.gain * 100.0, label: g.dataset.clone(), class: class(g.group) })
        .collect();
    let classes: Vec<String> = present.iter().map(DatasetGroup::to_string).collect();
    let title = format!("Gain of {who} over {over} in {kind} MRR against the density of the graph");
    let label = format!("gain over {over} in MRR, %");
    let powers = || gains.iter().map(|g| g.density.log10());
    let (low, high) = (powers().fold(-3.0, f64::min).ceil() as i32, powers().fold(-3.0, f64::max).floor() as i32);
    let ticks = (low..=high).map(|k| 10f64.powi(k)).collect();
    let x = Axis::log("density |E| / (|V| (|V| − 1))", ticks);
    let line = fit.map(|f| (f.intercept, f.slope));
    Finding {
        sheet: Sheet { header, rows: gains.iter().map(row).collect() },
        picture: chart::points(&title, &found, &x, &Axis::linear(&label), &points, &classes, line),
        note: Some(found),
    }
}

/// Fits a line by least squares. Returns `None` for fewer than three points, or if all have the
/// same x or the same y.
pub fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - mx, p.1 - my)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    if points.len() < 3 || xx <= 0.0 || yy <= 0.0 {
        return None;
    }
    let (slope, r) = (xy / xx, (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0));
    Some(Fit { intercept: my - slope * mx, slope, r, p: two_sided(r, points.len()) })
}

/// Without correlation, r has density ∝ (1 − r²)^((n−4)/2); with r = sin φ that is cos^(n−3) φ,
/// which Simpson's rule sums well.
fn two_sided(r: f64, n: usize) -> f64 {
    let integral = |from: f64| {
        const STEPS: usize = 20_000;
        let width = (std::f64::consts::FRAC_PI_2 - from) / STEPS as f64;
        let f = |k: usize| (from + width * k as f64).cos().max(0.0).powi(n as i32 - 3);
        let inner: f64 = (1..STEPS).map(|k| f(k) * if k % 2 == 1 { 4.0 } else { 2.0 }).sum();
        width / 3.0 * (f(0) + inner + f(STEPS))
    };
    integral(r.abs().asin()) / integral(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_by_hand() {
        // y = 1 + 2x with errors +1, −2, +1 at x = 0, 1, 2: xx = 2, xy = 4, yy = 14.
        let fit = fit(&[(0.0, 2.0), (1.0, 1.0), (2.0, 6.0)]).unwrap();
        assert!((fit.slope - 2.0).abs() < 1e-12 && (fit.intercept - 1.0).abs() < 1e-12);
        assert!((fit.r - 4.0 / 28f64.sqrt()).abs() < 1e-12);
        assert!(super::fit(&[(0.0, 1.0), (1.0, 2.0)]).is_none());
        assert!(super::fit(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]).is_none());
    }

    #[test]
    fn probabilities_are_those_of_the_tables() {
        // Critical values of r, two-sided 5 %: n = 12: 0.5760, n = 32: 0.3494; 1 %: n = 52: 0.3541
        // (any table of Pearson's r).
        for (r, n, p) in [(0.5760, 12, 0.05), (0.3494, 32, 0.05), (0.3541, 52, 0.01)] {
            assert!((two_sided(r, n) - p).abs() < p * 0.005, "{r} {n}: {}", two_sided(r, n));
        }
        // The paper: r = −0.53 over 53 graphs has p = 5.0e-5 (r between −0.525 and −0.535).
        assert!(two_sided(-0.525, 53) > 5.0e-5 && two_sided(-0.535, 53) < 5.0e-5);
    }
}
