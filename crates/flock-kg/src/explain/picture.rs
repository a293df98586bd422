//! The reasons of an answer as an SVG picture: a lane for each path, the query at the left, the answer at the right.
//!
//! Each path has its own boxes in a lane of its own, so an arrow meets no box but those at its ends, and each gap between columns is
//! as wide as its longest label. Where all paths begin (or end) at the same entity, one tall box stands for it.

use std::fmt::Write;

use super::{Explanation, ReasonReport};

const LANE: f64 = 58.0;
const TOP: f64 = 64.0;
/// Left of the boxes: room for the shares and how many paths they are of.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 20.0;
/// Height of a box: two lines.
const BOX: f64 = 38.0;
const LINE: f64 = 14.0;
/// Longer names are cut; the whole name shows when the mouse is over it.
const MOST: usize = 60;

/// A box of one lane, or of all.
struct Entity<'a> {
    name: &'a str,
    lines: Vec<String>,
    x: f64, // left
    y: f64, // top
    width: f64,
    height: f64,
}

/// A step of a path: a level line between two boxes.
struct Arrow<'a> {
    relation: &'a str,
    label: String,
    forward: bool,
    from: f64,
    to: f64,
    y: f64,
    /// Where the middle of the label is: in the gap that was made wide enough for it.
    middle: f64,
    share: f64,
}

struct Layout<'a> {
    boxes: Vec<Entity<'a>>,
    arrows: Vec<Arrow<'a>>,
    shares: Vec<(f64, f64, usize)>, // y, share, paths
    width: f64,
    height: f64,
}

/// Draws the reasons listed in an explanation; `show` says how a name is written.
pub fn svg(explanation: &Explanation<'_>, show: impl Fn(&str) -> String) -> String {
    let layout = place(&explanation.reasons, &show);
    let title = explanation.query.map(|n| shorten(&show(n), MOST)).join("  ");
    let subtitle = format!(
        "{} · logit {:+.3} · {} {:.4}",
        shorten(&show(explanation.answer), MOST),
        explanation.logit,
        explanation.probability_from.title(),
        explanation.probability
    );
    // The title is set in 15 points, bold.
    let wide = f64::max(1.4 * text_width(&title), text_width(&subtitle)) + 32.0;
    let (width, height) = (layout.width.max(wide).ceil(), layout.height);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <defs><marker id=\"a\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path d=\"M0 0 10 5 0 10z\" fill=\"#555\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>\n\
         <text x=\"16\" y=\"46\" fill=\"#555\">{}</text>\n",
        escape(&title),
        escape(&subtitle)
    );
    for (y, share, paths) in &layout.shares {
        // One line in the middle of the lane, or two around it.
        let first = if *paths > 1 { y - 3.0 } else { y + 4.0 };
        let _ = writeln!(out, "<text x=\"16\" y=\"{first:.1}\" fill=\"#555\">{share:.3}</text>");
        if *paths > 1 {
            let second = first + LINE;
            let _ =
                writeln!(out, "<text x=\"16\" y=\"{second:.1}\" fill=\"#555\" font-size=\"10\">{paths} paths</text>");
        }
    }
    for arrow in &layout.arrows {
        let y = arrow.y;
        let end = if arrow.forward { "marker-end" } else { "marker-start" };
        let _ = writeln!(
            out,
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#555\" stroke-width=\"{:.1}\" \
             {end}=\"url(#a)\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#0a5a8a\">\
             <title>{}</title>{}</text>",
            arrow.from,
            arrow.to,
            1.0 + 5.0 * arrow.share.clamp(0.0, 1.0),
            arrow.middle,
            y - 6.0,
            escape(&show(arrow.relation)),
            escape(&arrow.label)
        );
    }
    for node in &layout.boxes {
        let fill = if node.name == explanation.answer {
            "#ffe0b3"
        } else if explanation.query.contains(&node.name) {
            "#cfe8fc"
        } else {
            "#f3f3f3"
        };
        let Entity { x, y, width, height, .. } = node;
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"7\" fill=\"{fill}\" \
             stroke=\"#555\"><title>{}</title></rect>",
            escape(&show(node.name))
        );
        let first = y + height / 2.0 + 4.0 - LINE * (node.lines.len() as f64 - 1.0) / 2.0;
        for (i, line) in node.lines.iter().enumerate() {
            let (x, y) = (x + width / 2.0, first + LINE * i as f64);
            let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escape(line));
        }
        out.push('\n');
    }
    if layout.boxes.is_empty() {
        let _ = writeln!(out, "<text x=\"16\" y=\"{:.0}\">no walk joins the query to this answer</text>", TOP + 20.0);
    }
    out.push_str("</svg>\n");
    out
}

/// Boxes in columns, one lane for each path that has a step. An end that all paths share is in the last column.
fn place<'a>(reasons: &[ReasonReport<'a>], show: &impl Fn(&str) -> String) -> Layout<'a> {
    let paths: Vec<&ReasonReport<'a>> = reasons.iter().filter(|r| !r.steps.is_empty()).collect();
    let last = paths.iter().map(|r| r.steps.len()).max().unwrap_or(0);
    let height = TOP + LANE * paths.len().max(1) as f64 + 10.0;
    let mut layout = Layout { boxes: Vec::new(), arrows: Vec::new(), shares: Vec::new(), width: LEFT + RIGHT, height };
    if paths.is_empty() {
        return layout;
    }
    let name = |path: &ReasonReport<'a>, i: usize| if i == 0 { path.start } else { path.steps[i - 1].to };
    let all_same = |of: &dyn Fn(&ReasonReport<'a>) -> &'a str| paths.iter().all(|path| of(path) == of(paths[0]));
    let one_start = all_same(&|path| path.start);
    let one_end = all_same(&|path| name(path, path.steps.len()));
    let column = |path: &ReasonReport<'_>, i: usize| if one_end && i == path.steps.len() { last } else { i };

    let (mut widths, mut gaps) = (vec![40.0f64; last + 1], vec![0.0f64; last]);
    for path in &paths {
        for i in 0..=path.steps.len() {
            for line in lines(&show(name(path, i))) {
                let column = &mut widths[column(path, i)];
                *column = column.max(text_width(&line) + 20.0);
            }
        }
        for (i, step) in path.steps.iter().enumerate() {
            gaps[i] = gaps[i].max(text_width(&shorten(&show(step.relation), MOST)) + 36.0);
        }
    }
    let lefts: Vec<f64> =
        (0..=last).map(|c| LEFT + widths[..c].iter().sum::<f64>() + gaps[..c].iter().sum::<f64>()).collect();
    layout.width = lefts[last] + widths[last] + RIGHT;

    let mut add = |name: &'a str, column: usize, y: f64, height: f64| {
        let lines = lines(&show(name));
        layout.boxes.push(Entity { name, lines, x: lefts[column], y, width: widths[column], height });
    };
    let tall = LANE * (paths.len() as f64 - 1.0) + BOX;
    let middle_of = |lane: usize| TOP + LANE * (lane as f64 + 0.5);
    let top = middle_of(0) - BOX / 2.0;
    if one_start {
        add(paths[0].start, 0, top, tall);
    }
    if one_end {
        add(name(paths[0], paths[0].steps.len()), last, top, tall);
    }
    for (lane, path) in paths.iter().enumerate() {
        for i in 0..=path.steps.len() {
            let drawn = if i == 0 { one_start } else { i == path.steps.len() && one_end };
            if !drawn {
                add(name(path, i), column(path, i), middle_of(lane) - BOX / 2.0, BOX);
            }
        }
    }
    for (lane, path) in paths.iter().enumerate() {
        let y = middle_of(lane);
        layout.shares.push((y, path.share, path.paths));
        for (i, step) in path.steps.iter().enumerate() {
            let (from, to) = (lefts[i] + widths[i] + 2.0, lefts[column(path, i + 1)] - 2.0);
            layout.arrows.push(Arrow {
                relation: step.relation,
                label: shorten(&show(step.relation), MOST),
                forward: step.forward,
                from,
                to,
                y,
                middle: from - 2.0 + gaps[i] / 2.0,
                share: path.share,
            });
        }
    }
    layout
}

/// A name on one line, or on two if it is long: broken at the space (or `_`) nearest its middle.
fn lines(name: &str) -> Vec<String> {
    const ONE_LINE: usize = 20;
    let name = shorten(name, MOST);
    let count = name.chars().count();
    let breaks = name.char_indices().enumerate().filter(|(_, (_, c))| *c == ' ' || *c == '_');
    let nearest = breaks.min_by_key(|(i, _)| (2 * i).abs_diff(count)).map(|(_, at)| at);
    match nearest {
        Some((at, c)) if count > ONE_LINE && at > 0 => {
            // An underscore is part of the name and stays, at the end of the first line.
            let (first, second) = name.split_at(at + usize::from(c == '_'));
            vec![first.to_string(), second.trim_start().to_string()]
        }
        _ => vec![name],
    }
}

/// About how wide a text is in 12 points, on the wide side: which font there will be is not known here.
fn text_width(text: &str) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | 'f' | 't' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '(' | ')' => 5.2,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 12.2,
        c if c.is_ascii_uppercase() => 9.6,
        c if u32::from(c) < 0x1100 => 7.9,
        _ => 13.0, // ideographs and pictures are square
    };
    text.chars().map(of).sum()
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

#[cfg(test)]
mod tests {
    use super::super::StepReport;
    use super::*;

    const START: &str = "Lisinopril dihydrate oral tablet formulation";
    const END: &str = "Essential hypertension of unknown origin";

    fn path<'a>(start: &'a str, steps: &[(&'a str, bool, &'a str)]) -> ReasonReport<'a> {
        let steps = steps.iter().map(|&(relation, forward, to)| StepReport { relation, forward, to }).collect();
        ReasonReport { share: 0.2, count: 1, paths: 1, start, steps }
    }

    /// Of one, two and four steps, with long names, and one path that only stands where it begins.
    fn paths() -> Vec<ReasonReport<'static>> {
        let inhibits = "inhibits strongly and selectively";
        vec![
            path(START, &[("treats", true, END)]),
            path(START, &[(inhibits, true, "Angiotensin-converting enzyme (ACE)"), ("血压调节", false, END)]),
            path(
                START,
                &[
                    (inhibits, true, "Angiotensin-converting enzyme (ACE)"),
                    (inhibits, false, "Enalapril_maleate_and_other_prodrugs"),
                    ("treats", true, "Congestive heart failure"),
                    ("is a complication of", true, END),
                ],
            ),
            path(START, &[]),
        ]
    }

    /// Whether something from (x0, y0) to (x1, y1) and a box have an inner point in common.
    fn meets(b: &Entity<'_>, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> bool {
        x1 > b.x && x0 < b.x + b.width && y1 > b.y && y0 < b.y + b.height
    }

    fn check(layout: &Layout<'_>) {
        for b in &layout.boxes {
            assert!(b.x >= LEFT && b.x + b.width <= layout.width && b.y + b.height <= layout.height);
            assert!(b.lines.iter().all(|line| text_width(line) < b.width), "{:?} in {}", b.lines, b.width);
            for other in &layout.boxes {
                assert!(
                    std::ptr::eq(b, other)
                        || !meets(b, (other.x, other.y), (other.x + other.width, other.y + other.height))
                );
            }
            for a in &layout.arrows {
                assert!(!meets(b, (a.from, a.y), (a.to, a.y)), "{} runs through {}", a.label, b.name);
                let half = text_width(&a.label) / 2.0;
                let (from, to) = ((a.middle - half, a.y - 18.0), (a.middle + half, a.y - 2.0));
                assert!(!meets(b, from, to), "the label {} is on {}", a.label, b.name);
            }
        }
        for a in &layout.arrows {
            assert!(a.from + 20.0 < a.to && a.from < a.middle && a.middle < a.to);
        }
    }

    #[test]
    fn no_arrow_runs_through_a_box_and_every_label_has_room() {
        let plain = |name: &str| name.to_string();
        let layout = place(&paths(), &plain);
        check(&layout);
        // One box for the start, one for the end, and those between: none, one, three.
        assert_eq!((layout.boxes.len(), layout.arrows.len(), layout.shares.len()), (6, 7, 3));
        assert_eq!(layout.boxes.iter().filter(|b| b.name == END).count(), 1);
        // Ways from both ends of a relation, to different entities: each lane has all of its own.
        let relation = [path("a", &[("r", true, "b")]), path("c", &[("s", false, "d"), ("t", true, "e")])];
        let layout = place(&relation, &plain);
        check(&layout);
        assert_eq!((layout.boxes.len(), layout.arrows.len()), (5, 3));
        assert!(place(&[path("a", &[])], &plain).boxes.is_empty());
    }

    #[test]
    fn long_names_have_two_lines() {
        assert_eq!(lines("Portugal"), ["Portugal"]);
        assert_eq!(lines("Angiotensin-converting enzyme (ACE)"), ["Angiotensin-converting", "enzyme (ACE)"]);
        assert_eq!(lines("Enalapril_maleate_and_other_prodrugs"), ["Enalapril_maleate_", "and_other_prodrugs"]);
        assert_eq!(lines("Unbreakablenamewithoutanyspace"), ["Unbreakablenamewithoutanyspace"]);
        assert_eq!(lines(&"x".repeat(80))[0].chars().count(), MOST + 1);
    }
}
