//! The curve of a run as an SVG chart: the loss above, validation MRR below.

use crate::metrics::LogLine;
use flock_eval::chart::{Axis, Page, Series, lines_in};

/// Height of the title.
const TOP: f64 = 44.0;
/// Height of a frame, and of its axis and the gap below.
const FRAME: f64 = 220.0;
const GAP: f64 = 62.0;

/// Draws what a run has logged. A frame without a point is left out.
pub fn svg(title: &str, log: &[LogLine]) -> String {
    let series = |name: &str, bold: bool, value: &dyn Fn(&LogLine) -> Option<f64>| {
        let points = log.iter().filter_map(|line| Some((line.step as f64, value(line)?))).collect();
        Series { name: name.to_string(), points, bold, ..Series::default() }
    };
    let mut names: Vec<&str> = log.iter().flat_map(|line| line.graphs.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    // The line of a single graph is the mean itself.
    let (mean, names) = match &names[..] {
        [] => ("", vec![]),
        [name] => (*name, vec![]),
        _ => ("mean", names),
    };
    let mut mrr = vec![series(mean, true, &|line| line.mrr)];
    mrr.extend(names.iter().map(|name| series(name, false, &|line| line.graphs.get(*name).copied())));

    let frames = [("loss", vec![series("", false, &|line| line.loss)]), ("validation MRR", mrr)];
    let frames: Vec<_> = frames.into_iter().filter(|(_, all)| all.iter().any(|s| !s.points.is_empty())).collect();
    let last = log.iter().map(|line| line.step).max().unwrap_or(1).max(1) as f64;
    let mut page = Page::new(title, "", TOP + frames.len().max(1) as f64 * (FRAME + GAP));
    // Both frames have the same steps, from 0 to the last.
    let steps = Axis::from_zero_to("step", last);
    for (i, (label, all)) in frames.iter().enumerate() {
        let top = TOP + i as f64 * (FRAME + GAP);
        lines_in(&mut page, (top, top + FRAME), &steps, &Axis::linear(label), all);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn any_records_make_a_picture_without_nan() {
        let loss = |step, loss| LogLine { step, loss: Some(loss), ..LogLine::default() };
        let graphs = BTreeMap::from([("a<b".to_string(), 0.2), ("c&d".to_string(), 0.4)]);
        let mrr = LogLine { step: 10, mrr: Some(0.3), graphs, ..LogLine::default() };
        let cases = [
            vec![],
            vec![loss(1, 0.5)],
            vec![loss(1, 0.5), loss(2, 0.5)],
            vec![loss(1, 0.0), mrr.clone()],
            vec![mrr],
            vec![loss(1, f64::INFINITY), loss(2, 0.3)],
        ];
        for records in cases {
            let picture = svg("t <&>", &records);
            assert!(picture.ends_with("</svg>\n") && !picture.contains("NaN") && !picture.contains("inf"), "{picture}");
            assert!(!picture.contains("a<b") && !picture.contains("c&d"));
        }
    }
}
