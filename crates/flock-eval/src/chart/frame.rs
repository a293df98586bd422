//! What every chart is drawn on: a page with a title, and frames on it with axes and scales.

use std::fmt::{Arguments, Write};

/// Width of a page.
pub(crate) const WIDTH: f64 = 860.0;
/// Left edge of the plot area.
pub(crate) const LEFT: f64 = 70.0;
/// Room for names to the right of the plot area.
pub(crate) const RIGHT: f64 = 190.0;
/// Room for the title above the plot area.
pub(crate) const TOP: f64 = 64.0;
/// Room for the axis below the plot area.
pub(crate) const BOTTOM: f64 = 60.0;
/// Colours that most people can tell apart.
pub(crate) const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#666666"];

/// Returns the colour of a series or class.
pub(crate) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// An axis of a chart.
#[derive(Clone, Debug)]
pub struct Axis<'a> {
    /// What it shows.
    pub label: &'a str,
    /// Whether it is logarithmic. All values must be positive then.
    pub log: bool,
    /// Where it has marks; round numbers if empty.
    pub ticks: Vec<f64>,
    /// Values that the axis must include, besides those of the points.
    pub include: Vec<f64>,
}

impl<'a> Axis<'a> {
    /// Makes a linear axis with marks at round numbers.
    pub fn linear(label: &'a str) -> Axis<'a> {
        Axis { label, log: false, ticks: Vec::new(), include: Vec::new() }
    }

    /// Makes a linear axis that starts at 0, or below if there are negative values.
    pub fn from_zero(label: &'a str) -> Axis<'a> {
        Axis { include: vec![0.0], ..Axis::linear(label) }
    }

    /// Makes a linear axis from 0 to at least this value.
    pub fn from_zero_to(label: &'a str, last: f64) -> Axis<'a> {
        Axis { include: vec![0.0, last], ..Axis::linear(label) }
    }

    /// Makes a logarithmic axis with marks at these values.
    pub fn log(label: &'a str, ticks: Vec<f64>) -> Axis<'a> {
        Axis { label, log: true, ticks, include: Vec::new() }
    }

    /// Finds the range that holds all values and marks.
    pub(crate) fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        let place = |v: f64| if self.log { v.log10() } else { v };
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let values = values.chain(self.ticks.iter().copied()).chain(self.include.iter().copied());
        for v in values.map(place).filter(|v| v.is_finite()) {
            (low, high) = (low.min(v), high.max(v));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if self.log || !self.ticks.is_empty() {
            let margin = 0.04 * (high - low).max(1e-6);
            return Scale { low: low - margin, high: high + margin, log: self.log, ticks: self.ticks.clone() };
        }
        let step = nice((high - low).max(high.abs().max(1e-9) * 0.02) / 6.0);
        (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        if high - low < step {
            high = low + step;
        }
        let count = ((high - low) / step).round() as usize;
        Scale { low, high, log: false, ticks: (0..=count).map(|k| low + k as f64 * step).collect() }
    }
}

/// The range of an axis and its marks.
pub(crate) struct Scale {
    /// The least value; its logarithm on a logarithmic axis.
    pub low: f64,
    /// The greatest value; its logarithm on a logarithmic axis.
    pub high: f64,
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// The marks.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// Returns where a value lies between the ends of the axis, from 0 to 1.
    pub fn share(&self, v: f64) -> f64 {
        let v = if self.log { v.log10() } else { v };
        (v - self.low) / (self.high - self.low)
    }

    /// Returns each mark with its text.
    pub fn marks(&self) -> Vec<(f64, String)> {
        let step = self.ticks.windows(2).map(|w| (w[1] - w[0]).abs()).fold(f64::INFINITY, f64::min);
        let text = |t: f64| if self.log || !step.is_finite() { power(t) } else { tick(t, step) };
        self.ticks.iter().map(|t| (*t, text(*t))).collect()
    }
}

/// An SVG document with a title.
pub struct Page {
    out: String,
}

impl Page {
    /// Starts a page. The subtitle may be empty.
    pub fn new(title: &str, subtitle: &str, height: f64) -> Page {
        let mut page = Page { out: String::new() };
        page.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>",
            escape_xml(&shorten(title, 96))
        ));
        if !subtitle.is_empty() {
            let subtitle = escape_xml(&shorten(subtitle, 125));
            page.put(format_args!("<text x=\"{LEFT}\" y=\"46\" fill=\"#555555\">{subtitle}</text>"));
        }
        page
    }

    /// Adds a line of SVG.
    pub(crate) fn put(&mut self, svg: Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "{svg}");
    }

    /// Ends the page and returns the document.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// A plot area with two axes. It maps values to places on the page.
pub struct Frame {
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    /// Draws a frame between two heights of the page, with axes that hold all points.
    pub fn new(page: &mut Page, (top, bottom): (f64, f64), x: &Axis<'_>, y: &Axis<'_>, points: &[(f64, f64)]) -> Frame {
        let (xs, ys) = (points.iter().map(|p| p.0), points.iter().map(|p| p.1));
        let frame = Frame { x: x.scale(xs), y: y.scale(ys), top, bottom };
        let right = WIDTH - RIGHT;
        for (t, label) in frame.y.marks() {
            let at = frame.up(t);
            page.put(format_args!(
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                at + 4.0
            ));
        }
        for (t, label) in frame.x.marks() {
            let at = frame.across(t);
            page.put(format_args!(
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{}\" stroke=\"#888888\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 5.0,
                bottom + 20.0
            ));
        }
        let middle = (top + bottom) / 2.0;
        page.put(format_args!(
            "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888888\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text x=\"18\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle})\">{}</text>",
            right - LEFT,
            bottom - top,
            (LEFT + right) / 2.0,
            bottom + 44.0,
            escape_xml(x.label),
            escape_xml(y.label)
        ));
        frame
    }

    /// Returns the x coordinate of a value.
    pub fn across(&self, v: f64) -> f64 {
        LEFT + self.x.share(v) * (WIDTH - RIGHT - LEFT)
    }

    /// Returns the y coordinate of a value.
    pub fn up(&self, v: f64) -> f64 {
        self.bottom - self.y.share(v) * (self.bottom - self.top)
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
pub(crate) fn nice(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let power = if power.is_finite() && power > 0.0 { power } else { 1.0 };
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|n| *n >= x * 0.999).unwrap_or(10.0 * power)
}

/// Writes a value of an axis that has a mark every `step`.
pub(crate) fn tick(v: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{v:.digits$}")
}

/// Writes a value of a logarithmic axis.
fn power(v: f64) -> String {
    if (0.01..1e6).contains(&v) || v == 0.0 { format!("{v}") } else { format!("{v:e}") }
}

/// Cuts a text to at most this many characters.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_string(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Escapes a text for SVG, and drops control characters.
pub(crate) fn escape_xml(text: &str) -> String {
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
}
