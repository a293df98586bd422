//! Small pictures as SVG: lines over a scale, labelled points, bars. Text is text, so that it can be searched and copied.

use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 640.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0; // room for names
const TOP: f64 = 64.0;
const BOTTOM: f64 = 60.0;
/// Colours that most eyes can tell apart.
pub const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#666666"];

/// How an axis runs.
#[derive(Clone, Debug)]
pub struct Axis<'a> {
    /// What it shows.
    pub label: &'a str,
    /// By powers instead of sums; all values must be positive then.
    pub log: bool,
    /// Where it is marked; empty for round numbers.
    pub ticks: Vec<f64>,
}

impl<'a> Axis<'a> {
    /// From least to greatest, marked at round numbers.
    pub fn linear(label: &'a str) -> Axis<'a> {
        Axis { label, log: false, ticks: Vec::new() }
    }

    /// By powers, marked at these values.
    pub fn log(label: &'a str, ticks: Vec<f64>) -> Axis<'a> {
        Axis { label, log: true, ticks }
    }

    /// The range that holds all values and ticks, and where it is marked.
    fn range(&self, values: impl Iterator<Item = f64>) -> (f64, f64, Vec<f64>) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.chain(self.ticks.iter().copied()).map(|v| self.place(v)).filter(|v| v.is_finite()) {
            (low, high) = (low.min(v), high.max(v));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if self.log || !self.ticks.is_empty() {
            let margin = 0.04 * (high - low).max(1e-6);
            return (low - margin, high + margin, self.ticks.clone());
        }
        let step = nice((high - low).max(high.abs().max(1e-9) * 0.02) / 6.0);
        (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        if high - low < step {
            high = low + step;
        }
        let count = ((high - low) / step).round() as usize;
        (low, high, (0..=count).map(|k| low + k as f64 * step).collect())
    }

    fn place(&self, v: f64) -> f64 {
        if self.log { v.log10() } else { v }
    }
}

/// A line, or a cloud of points.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Points with a ring around them.
    pub rings: Vec<(f64, f64)>,
    /// Drawn to be seen first.
    pub bold: bool,
}

/// A point with a name.
#[derive(Clone, Debug)]
pub struct LabelledPoint {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Its name.
    pub label: String,
    /// Which of the classes it is of.
    pub class: usize,
}

/// The frame of a picture: the plain in it, and what leads there.
struct Frame {
    out: String,
    x: (f64, f64, bool),
    y: (f64, f64, bool),
}

impl Frame {
    fn new(title: &str, subtitle: &str, x: &Axis<'_>, y: &Axis<'_>, points: &[(f64, f64)]) -> Frame {
        let (x_low, x_high, x_ticks) = x.range(points.iter().map(|p| p.0));
        let (y_low, y_high, y_ticks) = y.range(points.iter().map(|p| p.1));
        let mut frame =
            Frame { out: head(title, subtitle, HEIGHT), x: (x_low, x_high, x.log), y: (y_low, y_high, y.log) };
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let text = |ticks: &[f64], log: bool| -> Vec<String> {
            let step = ticks.windows(2).map(|w| (w[1] - w[0]).abs()).fold(f64::INFINITY, f64::min);
            ticks.iter().map(|t| if log || !step.is_finite() { power(*t) } else { tick(*t, step) }).collect()
        };
        for (t, label) in y_ticks.iter().zip(text(&y_ticks, y.log)) {
            let at = frame.up(*t);
            let _ = writeln!(
                frame.out,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                at + 4.0
            );
        }
        for (t, label) in x_ticks.iter().zip(text(&x_ticks, x.log)) {
            let at = frame.across(*t);
            let _ = writeln!(
                frame.out,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{}\" stroke=\"#888888\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 5.0,
                bottom + 20.0
            );
        }
        let middle = (TOP + bottom) / 2.0;
        let _ = writeln!(
            frame.out,
            "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888888\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text x=\"18\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle})\">{}</text>",
            right - LEFT,
            bottom - TOP,
            (LEFT + right) / 2.0,
            bottom + 44.0,
            escape(x.label),
            escape(y.label)
        );
        frame
    }

    fn across(&self, v: f64) -> f64 {
        let v = if self.x.2 { v.log10() } else { v };
        LEFT + (v - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - RIGHT - LEFT)
    }

    fn up(&self, v: f64) -> f64 {
        let v = if self.y.2 { v.log10() } else { v };
        HEIGHT - BOTTOM - (v - self.y.0) / (self.y.1 - self.y.0) * (HEIGHT - BOTTOM - TOP)
    }

    fn end(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

fn head(title: &str, subtitle: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{LEFT}\" y=\"46\" fill=\"#555555\">{}</text>\n",
        escape(&shorten(title, 96)),
        escape(&shorten(subtitle, 125))
    )
}

/// Lines with their names at their ends.
pub fn lines(title: &str, subtitle: &str, x: &Axis<'_>, y: &Axis<'_>, series: &[Series]) -> String {
    let finite = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
    let points: Vec<(f64, f64)> =
        series.iter().flat_map(|s| s.points.iter().chain(&s.rings)).filter(finite).copied().collect();
    let mut frame = Frame::new(title, subtitle, x, y, &points);
    let mut ends = Vec::new();
    for (i, s) in series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let width = if s.bold { 3.0 } else { 1.6 };
        let at: Vec<(f64, f64)> = s.points.iter().filter(finite).map(|p| (frame.across(p.0), frame.up(p.1))).collect();
        let path: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            frame.out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"/>",
            path.join(" ")
        );
        for (x, y) in &at {
            let _ =
                writeln!(frame.out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{}\" fill=\"{colour}\"/>", width + 1.0);
        }
        for p in s.rings.iter().filter(finite) {
            let (x, y) = (frame.across(p.0), frame.up(p.1));
            let _ = writeln!(
                frame.out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
            );
        }
        ends.extend(at.last().map(|(_, y)| (*y, colour, s)));
    }
    // Names at the ends of lines, pushed apart where they would overlap.
    const APART: f64 = 15.0;
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    for i in 1..ends.len() {
        ends[i].0 = ends[i].0.max(ends[i - 1].0 + APART);
    }
    for (y, colour, s) in ends {
        let weight = if s.bold { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            frame.out,
            "<text x=\"{}\" y=\"{:.1}\" fill=\"{colour}\"{weight}>{}</text>",
            WIDTH - RIGHT + 8.0,
            y + 4.0,
            escape(&shorten(&s.name, 26))
        );
    }
    frame.end()
}

/// Points with their names beside them; `fit` is a straight line `y = a + b·x` in the scales of the axes (log₁₀ of a log axis).
pub fn points(
    title: &str,
    subtitle: &str,
    x: &Axis<'_>,
    y: &Axis<'_>,
    points: &[LabelledPoint],
    classes: &[String],
    fit: Option<(f64, f64)>,
) -> String {
    let at: Vec<(f64, f64)> = points.iter().map(|p| (p.x, p.y)).collect();
    let mut frame = Frame::new(title, subtitle, x, y, &at);
    if let Some((a, b)) = fit {
        let (low, high) = (frame.x.0, frame.x.1);
        let end = |v: f64| {
            let back = |v: f64, log: bool| if log { 10f64.powf(v) } else { v };
            let y = back((a + b * v).clamp(frame.y.0, frame.y.1), frame.y.2);
            (frame.across(back(v, frame.x.2)), frame.up(y))
        };
        let ((x1, y1), (x2, y2)) = (end(low), end(high));
        let _ = writeln!(
            frame.out,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#999999\" stroke-dasharray=\"6 4\"/>"
        );
    }
    let places: Vec<(f64, f64)> = points.iter().map(|p| (frame.across(p.x), frame.up(p.y))).collect();
    for (p, (x, y)) in points.iter().zip(&places) {
        let colour = COLOURS[p.class % COLOURS.len()];
        let _ = writeln!(frame.out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>");
    }
    let names: Vec<String> = points.iter().map(|p| shorten(&p.label, 34)).collect();
    for (i, spot) in spots(&places, &names).into_iter().enumerate() {
        let ((x, y), colour) = (places[i], COLOURS[points[i].class % COLOURS.len()]);
        // A name that had to move away keeps a thread to its point.
        if (spot.1 - y).hypot((spot.0 - x).clamp(-spot.2, spot.2).min(0.0)) > 16.0 || (spot.0 - x) > 16.0 {
            let near = x.clamp(spot.0, spot.0 + spot.2);
            let _ = writeln!(
                frame.out,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{near:.1}\" y2=\"{:.1}\" stroke=\"#bbbbbb\" stroke-width=\"0.8\"/>",
                spot.1
            );
        }
        let _ = writeln!(
            frame.out,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" fill=\"{colour}\">{}</text>",
            spot.0,
            spot.1 + 4.0,
            escape(&names[i])
        );
    }
    for (i, class) in classes.iter().enumerate() {
        let y = TOP + 12.0 + 20.0 * i as f64;
        let (x, colour) = (WIDTH - RIGHT + 18.0, COLOURS[i % COLOURS.len()]);
        let _ = writeln!(
            frame.out,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            x + 12.0,
            y + 4.0,
            escape(&shorten(class, 24))
        );
    }
    frame.end()
}

/// For each point a place (left end, middle, width) for its name that covers no other name and no point, as near as can be had.
fn spots(places: &[(f64, f64)], names: &[String]) -> Vec<(f64, f64, f64)> {
    const HIGH: f64 = 12.0;
    let mut taken: Vec<(f64, f64, f64)> = places.iter().map(|(x, y)| (x - 4.0, *y, 8.0)).collect();
    let mut out = Vec::new();
    for ((x, y), name) in places.iter().zip(names) {
        let width = 6.3 * name.chars().count() as f64;
        let fits = |spot: &(f64, f64, f64), taken: &[(f64, f64, f64)]| {
            let inside = spot.0 > LEFT + 2.0
                && spot.0 + width < WIDTH - 2.0
                && spot.1 > TOP + 6.0
                && spot.1 < HEIGHT - BOTTOM - 6.0;
            let free = |t: &(f64, f64, f64)| spot.0 > t.0 + t.2 || spot.0 + width < t.0 || (spot.1 - t.1).abs() > HIGH;
            inside && taken.iter().all(free)
        };
        let mut spot = (x + 7.0, *y, width);
        // To the right, to the left, above, below; then round and round, further out.
        'search: for turn in 0..40 {
            let out = f64::from(turn) * 7.0;
            let tries = [
                (x + 7.0 + out, *y),
                (x - 7.0 - out - width, *y),
                (x - width / 2.0, y - 13.0 - out),
                (x - width / 2.0, y + 13.0 + out),
                (x + 5.0 + out, y - 9.0 - out),
                (x + 5.0 + out, y + 9.0 + out),
                (x - 5.0 - out - width, y - 9.0 - out),
                (x - 5.0 - out - width, y + 9.0 + out),
            ];
            for (sx, sy) in tries {
                if fits(&(sx, sy, width), &taken) {
                    spot = (sx, sy, width);
                    break 'search;
                }
            }
        }
        taken.push(spot);
        out.push(spot);
    }
    out
}

/// Bars in groups: for each row a name and a value per series.
pub fn bars(title: &str, subtitle: &str, label: &str, series: &[String], rows: &[(String, Vec<f64>)]) -> String {
    const BAR: f64 = 16.0;
    let left = 230.0;
    let block = BAR * series.len() as f64 + 14.0;
    let height = TOP + block * rows.len() as f64 + BOTTOM;
    let mut out = head(title, subtitle, height);
    let values = rows.iter().flat_map(|(_, v)| v.iter().copied());
    let (low, high, ticks) = Axis::linear(label).range(values.chain([0.0]));
    let right = WIDTH - RIGHT;
    let across = |v: f64| left + (v - low) / (high - low) * (right - left);
    let step = ticks.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    for t in &ticks {
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{b}\" stroke=\"#dddddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            height - BOTTOM + 18.0,
            tick(*t, step),
            x = across(*t),
            b = height - BOTTOM,
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        (left + right) / 2.0,
        height - BOTTOM + 42.0,
        escape(label)
    );
    for (r, (name, values)) in rows.iter().enumerate() {
        let top = TOP + 7.0 + block * r as f64;
        let middle = top + (block - 14.0) / 2.0 + 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            left - 10.0,
            escape(&shorten(name, 36))
        );
        for (i, v) in values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            let (a, b) = (across(v.min(0.0)), across(v.max(0.0)));
            let y = top + BAR * i as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{a:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\">{v:.3}</text>",
                (b - a).max(0.5),
                BAR - 2.0,
                COLOURS[i % COLOURS.len()],
                b + 5.0,
                y + BAR - 5.0
            );
        }
    }
    for (i, name) in series.iter().enumerate() {
        let y = TOP + 12.0 + 20.0 * i as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            right + 40.0,
            y - 5.0,
            COLOURS[i % COLOURS.len()],
            right + 56.0,
            y + 4.0,
            escape(&shorten(name, 20))
        );
    }
    out.push_str("</svg>\n");
    out
}

/// 1, 2 or 5 times a power of ten, at least `x`.
pub fn nice(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let power = if power.is_finite() && power > 0.0 { power } else { 1.0 };
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|n| *n >= x * 0.999).unwrap_or(10.0 * power)
}

/// A value of an axis that is marked every `step`.
pub fn tick(v: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{v:.digits$}")
}

/// A value of a logarithmic axis.
fn power(v: f64) -> String {
    if (0.01..1e6).contains(&v) || v == 0.0 { format!("{v}") } else { format!("{v:e}") }
}

/// At most so many characters.
pub fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_string(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Text for SVG.
pub fn escape(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).collect();
    clean.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!([0.03, 0.7, 1.0, 23.0, 160.0].map(nice), [0.05, 1.0, 1.0, 50.0, 200.0]);
        assert_eq!((tick(0.35, 0.05), tick(1500.0, 500.0)), ("0.35".to_string(), "1500".to_string()));
        assert_eq!((power(16.0), power(1e-5)), ("16".to_string(), "1e-5".to_string()));
    }

    #[test]
    fn any_values_make_a_picture_without_nan() {
        let series =
            |points: &[(f64, f64)]| Series { name: "a<b&c".to_string(), points: points.to_vec(), ..Series::default() };
        let cases = [
            vec![],
            vec![series(&[])],
            vec![series(&[(1.0, 0.3)])],
            vec![series(&[(1.0, f64::NAN), (2.0, 0.5), (4.0, 0.5)])],
        ];
        for case in cases {
            let picture = lines("t <&>", "", &Axis::log("P", vec![1.0, 2.0]), &Axis::linear("MRR"), &case);
            assert!(picture.ends_with("</svg>\n") && !picture.contains("NaN") && !picture.contains("inf"), "{picture}");
            assert!(!picture.contains("a<b"));
        }
        let point = |x, y| LabelledPoint { x, y, label: "same".to_string(), class: 9 };
        let axes = (Axis::linear("x"), Axis::linear("y"));
        let picture = points("t", "", &axes.0, &axes.1, &[point(0.0, 0.0), point(0.0, 0.0)], &[], Some((0.0, 1.0)));
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        assert!(!bars("t", "", "MRR", &["a".to_string()], &[("r".to_string(), vec![f64::NAN])]).contains("NaN"));
    }

    #[test]
    fn names_do_not_cover_each_other() {
        // Thirty points on one spot.
        let places = vec![(300.0, 250.0); 30];
        let names = vec!["fatherOf".to_string(); 30];
        let spots = spots(&places, &names);
        for (i, a) in spots.iter().enumerate() {
            for b in &spots[..i] {
                assert!((a.1 - b.1).abs() > 11.0 || a.0 >= b.0 + b.2 || b.0 >= a.0 + a.2, "{a:?} {b:?}");
            }
        }
    }
}
