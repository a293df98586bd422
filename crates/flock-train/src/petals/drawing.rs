//! A drawing of one Petals graph: the stem to the right, the petals around `b₀`, a colour for each
//! relation.
//!
//! The petal that is asked about comes first above the stem, so that the dashed candidate links
//! cross no other petal.

use super::{PetalsInstance, STEM_RELATION};
use flock_graph::{NodeId, Triple};
use std::f64::consts::PI;
use std::fmt::Write;

/// `r₀` first. Readable for colour-blind people and on white.
const COLOURS: [&str; 8] = ["#009e73", "#0072b2", "#d55e00", "#cc79a7", "#b58900", "#56b4e9", "#6c4ab6", "#777777"];

const NODE: f64 = 13.0; // radius of a node
const GAP: f64 = 58.0; // between nodes along a petal
const STEM_GAP: f64 = 95.0;
const HALF_WIDTH: f64 = 40.0; // of a petal that has room
const MARGIN: f64 = 35.0;
const LINE: f64 = 26.0; // height of a line of title or legend

type Position = (f64, f64);

/// Draws an instance as an SVG document.
pub fn svg(instance: &PetalsInstance) -> String {
    let places = places(instance);
    let (mut low, mut high) = ((0.0f64, 0.0f64), (0.0f64, 0.0f64));
    for &(x, y) in &places {
        low = (low.0.min(x), low.1.min(y));
        high = (high.0.max(x), high.1.max(y));
    }
    let question = format!(
        "Which dashed link holds, ({}, {}, ?)? Renaming {} gives the same graph.",
        Label("b", instance.head),
        Label("r", instance.relation),
        cycle(&instance.permutation)
    );
    let top = low.1 - MARGIN - 2.0 * LINE;
    let text_width = 40.0 + 7.6 * question.chars().count() as f64;
    let width = (high.0 - low.0 + 2.0 * MARGIN).max(text_width);
    let left = (low.0 + high.0 - width) / 2.0;
    let height = high.1 + MARGIN + 2.0 * LINE - top;

    let mut out = Svg(String::new());
    out.line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="{left:.1} {top:.1} {width:.1} {height:.1}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="12">"#
    ));
    out.line(format_args!(
        r##"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" fill="#fff"/>"##
    ));
    out.line(format_args!("<defs>"));
    for (i, colour) in COLOURS.iter().enumerate() {
        out.line(format_args!(
            r#"<marker id="arrow{i}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1 10 5 0 9z" fill="{colour}"/></marker>"#
        ));
    }
    out.line(format_args!("</defs>"));
    let PetalsInstance { assignment, stem, petal_length, .. } = instance;
    let (count, x, y) = (instance.petals.len(), left + 20.0, top + 1.2 * LINE);
    out.line(format_args!(
        r#"<text x="{x:.1}" y="{y:.1}" font-size="15" font-weight="bold">Petals, assignment {assignment}: {count} petals of length {petal_length}, stem of length {stem}</text>"#
    ));
    out.line(format_args!(
        r##"<text x="{x:.1}" y="{:.1}" font-size="13" fill="#333">{question}</text>"##,
        y + 0.9 * LINE
    ));
    for t in &instance.triples {
        edge(&mut out, places[t.head as usize], places[t.tail as usize], t.relation);
    }
    for link in candidate_links(instance, &places) {
        out.line(format_args!("{link}"));
    }
    for (v, &at) in places.iter().enumerate() {
        node(&mut out, instance, v as NodeId, at);
    }
    legend(&mut out, instance, x, top + height - 1.7 * LINE);
    out.line(format_args!("</svg>"));
    out.0
}

struct Svg(String);

impl Svg {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{text}");
    }
}

/// Places each node. `b₀` is the origin; `y` grows downwards.
fn places(instance: &PetalsInstance) -> Vec<Position> {
    let c = instance.petals.len() as u32;
    let l = instance.petal_length;
    let mut places = vec![(0.0, 0.0); instance.num_nodes as usize];
    for i in 0..=instance.stem {
        places[i as usize] = (f64::from(i) * STEM_GAP, 0.0);
    }
    let share = 2.0 * PI / f64::from(c + 1); // the stem has one too
    // Half of the share is the petal's, so that the nodes next to b₀ stand evenly around it, and
    // far enough not to touch.
    let slope = (share / 4.0).tan();
    let first = (1.45 * NODE / slope).max(GAP);
    for i in 0..c {
        let turn = (i + c - instance.petal) % c + 1;
        let angle = share * f64::from(turn);
        let (axis, side) = ((angle.cos(), -angle.sin()), (angle.sin(), angle.cos()));
        let mut put = |k: u32, along: f64, across: f64| {
            places[instance.petal_node(i, k) as usize] =
                (along * axis.0 + across * side.0, along * axis.1 + across * side.1);
        };
        for j in 1..=l {
            let along = first + f64::from(j - 1) * GAP;
            let across = (along * slope).min(HALF_WIDTH);
            put(2 * j - 1, along, -across);
            put(2 * j, along, across);
        }
        put(2 * l + 1, first + (f64::from(l) - 0.2) * GAP, 0.0);
    }
    places
}

fn edge(out: &mut Svg, from: Position, to: Position, relation: u32) {
    let ((x1, y1), (x2, y2)) = (move_towards(from, to, NODE), move_towards(to, from, NODE + 1.0));
    let colour = COLOURS[relation as usize % COLOURS.len()];
    out.line(format_args!(
        r#"<path d="M{x1:.1} {y1:.1} {x2:.1} {y2:.1}" stroke="{colour}" stroke-width="2.2" marker-end="url(#arrow{relation})"/>"#
    ));
    let (x, y) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0);
    out.line(format_args!(
        r##"<text x="{x:.1}" y="{:.1}" text-anchor="middle" font-size="10" fill="{colour}" stroke="#fff" stroke-width="3" paint-order="stroke">{}</text>"##,
        y + 3.5,
        Label("r", relation)
    ));
}

/// Draws the two dashed links that are asked about. Each is bent so that it avoids other nodes and
/// the labels of edges; the second also avoids the first.
fn candidate_links(instance: &PetalsInstance, places: &[Position]) -> [String; 2] {
    let head = instance.head;
    let middle = |t: &Triple| {
        let (a, b) = (places[t.head as usize], places[t.tail as usize]);
        (((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0), 2.5)
    };
    // A label is smaller than a node: a distance from it counts for more.
    let mut obstacles: Vec<(Position, f64)> = instance.triples.iter().map(middle).collect();
    [instance.target_true, instance.target_false].map(|target| {
        let (from, to) = (places[head as usize], places[target as usize]);
        let others = places.iter().enumerate().filter(|(v, _)| *v != head as usize && *v != target as usize);
        obstacles.extend(others.map(|(_, &at)| (at, 1.0)));
        let clearance = |control: Position| {
            let points = (4..16).map(|i| on_curve(from, control, to, f64::from(i) / 16.0));
            let to_nearest = |p: Position| obstacles.iter().map(|(o, scale)| scale * (p.0 - o.0).hypot(p.1 - o.1)).fold(f64::MAX, f64::min);
            points.map(to_nearest).fold(f64::MAX, f64::min)
        };
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut best, mut control) = (f64::MIN, to);
        // A link beside an edge between the same two nodes needs a bow to be seen.
        let joined = instance.triples.iter().any(|t| t.head == head && t.tail == target);
        for bend in (-12..=12).map(|i| f64::from(i) / 24.0).filter(|b| !joined || b.abs() > 0.4) {
            let bent = ((from.0 + to.0) / 2.0 + bend * dy, (from.1 + to.1) / 2.0 - bend * dx);
            // Clear enough is enough; then the straighter the better.
            let worth = clearance(bent).min(2.0 * NODE) - 20.0 * bend.abs();
            if worth > best {
                (best, control) = (worth, bent);
            }
        }
        obstacles.extend((6..16).map(|i| (on_curve(from, control, to, f64::from(i) / 16.0), 1.0)));
        let ((x1, y1), (x2, y2)) = (move_towards(from, control, NODE + 5.0), move_towards(to, control, NODE + 6.0));
        format!(
            r#"<path d="M{x1:.1} {y1:.1}Q{:.1} {:.1} {x2:.1} {y2:.1}" fill="none" stroke="{}" stroke-width="2" stroke-dasharray="6 5" marker-end="url(#arrow{STEM_RELATION})"/>"#,
            control.0, control.1, COLOURS[STEM_RELATION as usize]
        )
    })
}

/// Returns the point at `u`, from 0 to 1, of a quadratic curve.
fn on_curve(from: Position, control: Position, to: Position, u: f64) -> Position {
    let mix = |a: f64, b: f64, c: f64| (1.0 - u) * (1.0 - u) * a + 2.0 * u * (1.0 - u) * b + u * u * c;
    (mix(from.0, control.0, to.0), mix(from.1, control.1, to.1))
}

/// Marks of special nodes: fill, ring, the path of a badge, and the words in the legend.
const HEAD: Mark = Mark("#fff3c4", "#000", "M-2 -1.5a2 2 0 1 1 3 1.7q-1 .6 -1 1.5M0 3.4v.6", "head of the query");
const TRUE: Mark = Mark("#e2f4e2", "#008000", "M-3 0 -1 2.5 3 -2.5", "true target");
const FALSE: Mark = Mark("#fbe3e3", "#c00000", "M-2.5 -2.5 2.5 2.5M-2.5 2.5 2.5 -2.5", "false target");

struct Mark(&'static str, &'static str, &'static str, &'static str);

impl Mark {
    fn ring(&self, out: &mut Svg, (x, y): Position, radius: f64) {
        let Mark(_, colour, badge, _) = self;
        out.line(format_args!(
            r#"<circle class="ring" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="none" stroke="{colour}" stroke-width="2.5"/>"#
        ));
        let (x, y) = (x + 0.75 * radius, y - 0.75 * radius);
        out.line(format_args!(
            r##"<g transform="translate({x:.1} {y:.1})"><circle class="badge" r="6.5" fill="{colour}"/><path d="{badge}" fill="none" stroke="#fff" stroke-width="1.8"/></g>"##
        ));
    }
}

fn node(out: &mut Svg, instance: &PetalsInstance, v: NodeId, (x, y): Position) {
    let mark = match v {
        _ if v == instance.target_true => Some(TRUE),
        _ if v == instance.target_false => Some(FALSE),
        _ if v == instance.head => Some(HEAD),
        _ => None,
    };
    let fill = mark.as_ref().map_or("#fff", |m| m.0);
    out.line(format_args!(
        r##"<circle class="node" cx="{x:.1}" cy="{y:.1}" r="{NODE}" fill="{fill}" stroke="#333" stroke-width="1.2"/>"##
    ));
    if let Some(mark) = mark {
        mark.ring(out, (x, y), NODE + 3.5);
    }
    let label = match v.checked_sub(instance.stem + 1) {
        None => Label("b", v),
        Some(place) => Label("a", place % (2 * instance.petal_length + 1) + 1),
    };
    out.line(format_args!(r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#, y + 4.0));
}

/// Writes the permutation of the petal relations in cycle notation, from relation 1.
fn cycle(permutation: &[u32]) -> String {
    let mut text = Label("r", 1).to_string();
    let mut r = permutation[1];
    while r != 1 {
        let _ = write!(text, "→{}", Label("r", r));
        r = permutation[r as usize];
    }
    text + "→" + &Label("r", 1).to_string()
}

fn legend(out: &mut Svg, instance: &PetalsInstance, x: f64, y: f64) {
    for relation in 0..instance.num_relations {
        let x = x + 62.0 * f64::from(relation);
        let colour = COLOURS[relation as usize % COLOURS.len()];
        out.line(format_args!(
            r#"<path d="M{x:.1} {:.1}h26" stroke="{colour}" stroke-width="2.5" marker-end="url(#arrow{relation})"/><text x="{:.1}" y="{y:.1}">{}</text>"#,
            y - 4.0,
            x + 31.0,
            Label("r", relation)
        ));
    }
    for (mark, right) in [(HEAD, 8.0), (TRUE, 170.0), (FALSE, 295.0)] {
        let (x, y) = (x + right, y + LINE);
        mark.ring(out, (x, y - 4.0), 8.0);
        out.line(format_args!(r#"<text x="{:.1}" y="{y:.1}">{}</text>"#, x + 18.0, mark.3));
    }
}

/// Returns the point at `distance` from `a` towards `b`.
fn move_towards(a: Position, b: Position, distance: f64) -> Position {
    let length = (b.0 - a.0).hypot(b.1 - a.1).max(1e-9);
    (a.0 + (b.0 - a.0) * distance / length, a.1 + (b.1 - a.1) * distance / length)
}

/// A letter with an index below the line.
struct Label(&'static str, u32);

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)?;
        self.1.to_string().bytes().try_for_each(|digit| {
            // U+2080 is subscript zero.
            f.write_char(char::from_u32(0x2080 + u32::from(digit - b'0')).unwrap_or('?'))
        })
    }
}
