//! The small graph that the reasons of an answer form, as an SVG picture: the query at the left, the answer at the right.

use std::collections::HashMap;
use std::fmt::Write;

use super::{Explanation, ReasonReport};

const COLUMN: f64 = 230.0;
const ROW: f64 = 76.0;
const MARGIN: f64 = 110.0;
const TOP: f64 = 70.0;
/// Half of a box.
const BOX_X: f64 = 84.0;
const BOX_Y: f64 = 15.0;

struct Node<'a> {
    name: &'a str,
    column: usize,
    row: f64,
}

/// Draws the reasons listed in an explanation; `show` says how a name is written.
pub fn svg(explanation: &Explanation<'_>, show: impl Fn(&str) -> String) -> String {
    let (nodes, height) = place(&explanation.reasons);
    let columns = nodes.values().map(|n| n.column).max().unwrap_or(0);
    let (width, height) = (2.0 * MARGIN + columns as f64 * COLUMN, TOP + height * ROW + 20.0);
    let at = |n: &Node<'_>| (MARGIN + n.column as f64 * COLUMN, TOP + (n.row + 0.5) * ROW);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <defs><marker id=\"a\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path d=\"M0 0 10 5 0 10z\" fill=\"#555\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>\n\
         <text x=\"16\" y=\"46\" fill=\"#555\">{} · logit {:+.3}</text>\n",
        escape(&explanation.query.map(|n| shorten(&show(n), 30)).join("  ")),
        escape(&shorten(&show(explanation.answer), 40)),
        explanation.logit
    );
    // Each edge once, as wide as the shares of the ways it is on.
    let mut edges: Vec<((&str, &str, &str), f64)> = Vec::new();
    for reason in &explanation.reasons {
        let mut from = reason.start;
        for step in &reason.steps {
            let ends = if step.forward { (from, step.relation, step.to) } else { (step.to, step.relation, from) };
            from = step.to;
            match edges.iter_mut().find(|(e, _)| *e == ends) {
                Some((_, share)) => *share += reason.share,
                None => edges.push((ends, reason.share)),
            }
        }
    }
    for (i, ((head, relation, tail), share)) in edges.iter().enumerate() {
        let (Some(a), Some(b)) = (nodes.get(head), nodes.get(tail)) else { continue };
        let (a, b) = (at(a), at(b));
        let (start, end) = (border(a, b), border(b, a));
        // Edges between the same two are bent apart.
        let twins =
            |e: &&((&str, &str, &str), f64)| (e.0.0, e.0.2) == (*head, *tail) || (e.0.2, e.0.0) == (*head, *tail);
        let bend = edges[..i].iter().filter(twins).count() as f64 * 26.0;
        let middle = ((start.0 + end.0) / 2.0, (start.1 + end.1) / 2.0 - bend);
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\" fill=\"none\" stroke=\"#555\" stroke-width=\"{:.1}\" \
             marker-end=\"url(#a)\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#0a5a8a\" stroke=\"#fff\" \
             stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
            start.0,
            start.1,
            middle.0,
            middle.1 - bend,
            end.0,
            end.1,
            1.0 + 5.0 * share.clamp(0.0, 1.0),
            middle.0,
            middle.1 - 5.0,
            escape(&shorten(&show(relation), 24))
        );
    }
    let mut boxes: Vec<&Node<'_>> = nodes.values().collect();
    boxes.sort_by(|a, b| a.column.cmp(&b.column).then(a.row.total_cmp(&b.row)));
    for node in boxes {
        let (x, y) = at(node);
        let asked = explanation.query.contains(&node.name);
        let fill = if node.name == explanation.answer {
            "#ffe0b3"
        } else if asked {
            "#cfe8fc"
        } else {
            "#f3f3f3"
        };
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\" rx=\"7\" fill=\"{fill}\" stroke=\"#555\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x - BOX_X,
            y - BOX_Y,
            2.0 * BOX_X,
            2.0 * BOX_Y,
            y + 4.0,
            escape(&shorten(&show(node.name), 24))
        );
    }
    if nodes.is_empty() {
        let _ = writeln!(out, "<text x=\"16\" y=\"{:.0}\">no walk joins the query to this answer</text>", TOP + 20.0);
    }
    out.push_str("</svg>\n");
    out
}

/// A column for each entity, its greatest distance along a reason (ends go last), and a row in it; the height in rows.
fn place<'a>(reasons: &[ReasonReport<'a>]) -> (HashMap<&'a str, Node<'a>>, f64) {
    let mut column: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    let last = reasons.iter().map(|r| r.steps.len()).max().unwrap_or(0);
    for reason in reasons {
        let names = std::iter::once(reason.start).chain(reason.steps.iter().map(|s| s.to));
        for (i, name) in names.enumerate() {
            let at = if i > 0 && i == reason.steps.len() { last } else { i };
            let known = column.entry(name).or_insert_with(|| {
                order.push(name);
                at
            });
            *known = (*known).max(at);
        }
    }
    let mut filled = vec![0.0; last + 1];
    let mut nodes = HashMap::new();
    for name in order {
        let column = column[name];
        nodes.insert(name, Node { name, column, row: filled[column] });
        filled[column] += 1.0;
    }
    let height = filled.iter().fold(1.0, |a: f64, b| a.max(*b));
    for node in nodes.values_mut() {
        node.row += (height - filled[node.column]) / 2.0;
    }
    (nodes, height)
}

/// Where the line from box `a` towards `b` leaves the box.
fn border(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (gap_x, gap_y) = (BOX_X + 2.0, BOX_Y + 2.0);
    let scale = f64::max(dx.abs() / gap_x, dy.abs() / gap_y);
    if scale == 0.0 { (a.0, a.1 - gap_y) } else { (a.0 + dx / scale, a.1 + dy / scale) }
}

fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_string(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Safe in text and attributes; control characters, which XML forbids, become a replacement mark.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
