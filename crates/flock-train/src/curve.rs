//! The curve of a run as an SVG picture: the loss above, validation MRR below.

use std::fmt::Write;

use crate::metrics::LogLine;
use flock_eval::chart::{COLOURS, escape, nice, shorten, tick};

const WIDTH: f64 = 800.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0; // room for the graphs' names
const TOP: f64 = 58.0;
const PANEL: f64 = 220.0;
const GAP: f64 = 56.0;

/// A line to draw.
struct Line<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
    colour: &'a str,
    width: f64,
}

/// A picture of what a run has logged; panels without a point are left out.
pub fn svg(title: &str, records: &[LogLine]) -> String {
    let losses = records.iter().filter_map(|r| Some((r.step as f64, r.loss?))).collect();
    let loss = vec![Line { name: "", points: losses, colour: COLOURS[0], width: 1.5 }];
    let mut names: Vec<&str> = records.iter().flat_map(|r| r.graphs.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let mut mrr = Vec::new();
    // One graph's line is the mean itself.
    if names.len() > 1 {
        for (i, name) in names.iter().enumerate() {
            let points = records.iter().filter_map(|r| Some((r.step as f64, *r.graphs.get(*name)?))).collect();
            mrr.push(Line { name, points, colour: COLOURS[1 + i % (COLOURS.len() - 1)], width: 1.2 });
        }
    }
    let mean = records.iter().filter_map(|r| Some((r.step as f64, r.mrr?))).collect();
    let name = if names.len() > 1 { "mean" } else { names.first().copied().unwrap_or("") };
    mrr.push(Line { name, points: mean, colour: COLOURS[0], width: 2.4 });

    let panels = [("loss", loss), ("validation MRR", mrr)];
    let panels: Vec<_> = panels.into_iter().filter(|(_, lines)| lines.iter().any(|l| !l.points.is_empty())).collect();
    let last_step = records.iter().map(|r| r.step).max().unwrap_or(1).max(1) as f64;
    let height = TOP + panels.len().max(1) as f64 * (PANEL + GAP);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escape(&shorten(title, 90))
    );
    for (i, (label, lines)) in panels.iter().enumerate() {
        panel(&mut out, label, lines, last_step, TOP + i as f64 * (PANEL + GAP));
    }
    out.push_str("</svg>\n");
    out
}

fn panel(out: &mut String, label: &str, lines: &[Line<'_>], last_step: f64, top: f64) {
    let values = || lines.iter().flat_map(|l| l.points.iter().map(|p| p.1)).filter(|v| v.is_finite());
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let step = nice((high - low).max(high.abs().max(1e-9) * 0.02) / 5.0);
    let (low, high) =
        ((low / step).floor() * step, ((high / step).ceil() * step).max((low / step).floor() * step + step));
    let right = WIDTH - RIGHT;
    let x = |s: f64| LEFT + s / last_step * (right - LEFT);
    let y = |v: f64| top + (high - v) / (high - low) * PANEL;

    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{label}</text>", top - 8.0);
    for k in 0..=((high - low) / step).round() as usize {
        let v = low + k as f64 * step;
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y(v) + 4.0,
            tick(v, step),
            at = y(v),
        );
    }
    let across = nice(last_step / 6.0).max(1.0);
    for k in 0..=(last_step / across) as usize {
        let s = k as f64 * across;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(s),
            top + PANEL + 18.0,
            tick(s, across)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\" fill=\"#666666\">step</text>\
         <rect x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{PANEL}\" fill=\"none\" stroke=\"#888888\"/>",
        top + PANEL + 36.0,
        right - LEFT
    );
    for line in lines {
        let points: Vec<(f64, f64)> =
            line.points.iter().filter(|p| p.1.is_finite()).map(|p| (x(p.0), y(p.1))).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"/>",
            path.join(" "),
            line.colour,
            line.width
        );
        // Few points are marked: one alone would be no line at all.
        if points.len() <= 40 {
            for (x, y) in &points {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{}\"/>",
                    1.0 + line.width,
                    line.colour
                );
            }
        }
    }
    labels(out, lines, right, &y);
}

/// The names of lines at their ends, pushed apart where they would overlap.
fn labels(out: &mut String, lines: &[Line<'_>], right: f64, y: &dyn Fn(f64) -> f64) {
    const APART: f64 = 15.0;
    let end = |l: &Line<'_>| l.points.iter().rev().map(|p| p.1).find(|v| v.is_finite());
    let mut ends: Vec<(f64, &Line<'_>)> =
        lines.iter().filter(|l| !l.name.is_empty()).filter_map(|l| Some((y(end(l)?), l))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    for i in 1..ends.len() {
        ends[i].0 = ends[i].0.max(ends[i - 1].0 + APART);
    }
    for (at, line) in ends {
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" fill=\"{}\">{}</text>",
            right + 8.0,
            at + 4.0,
            line.colour,
            escape(&shorten(line.name, 20))
        );
    }
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
