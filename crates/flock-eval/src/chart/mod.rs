//! Small charts as SVG: lines, labelled points, bars. Text is text, so that it can be searched and
//! copied.
//!
//! All of them are drawn on the page and the frame of [`Page`] and [`Frame`]. A chart of several
//! frames, such as the curve of a training run, puts them on one page.

mod frame;

pub use frame::{Axis, Frame, Page};

use frame::{BOTTOM, LEFT, RIGHT, TOP, WIDTH, colour, escape_xml, shorten};

const HEIGHT: f64 = 640.0;
/// A line with more points than this has no dots.
const MOST_DOTS: usize = 40;

/// A line of a chart.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name of the line, which is written at its end.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Points with a ring around them.
    pub rings: Vec<(f64, f64)>,
    /// Whether the line stands out. It is drawn thicker, and over the others.
    pub bold: bool,
    /// Area of each point's dot, from 0 to 1; all are small if empty.
    pub sizes: Vec<f64>,
    /// Half the height of the error bar at each point; no bars if empty.
    pub errors: Vec<f64>,
}

impl Series {
    /// Returns the ends of the error bar at a point.
    fn error_bar(&self, i: usize) -> Option<[(f64, f64); 2]> {
        let (&(x, y), &error) = self.points.get(i).zip(self.errors.get(i))?;
        let bar = [(x, y - error), (x, y + error)];
        (error > 0.0 && bar.iter().all(|p| p.0.is_finite() && p.1.is_finite())).then_some(bar)
    }
}

/// A point with a name.
#[derive(Clone, Debug)]
pub struct LabelledPoint {
    /// Value on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// Its name.
    pub label: String,
    /// Index of its class.
    pub class: usize,
}

/// Draws lines, with their names at their ends.
pub fn lines(title: &str, subtitle: &str, x: &Axis<'_>, y: &Axis<'_>, series: &[Series]) -> String {
    let mut page = Page::new(title, subtitle, HEIGHT);
    lines_in(&mut page, (TOP, HEIGHT - BOTTOM), x, y, series);
    page.finish()
}

/// Draws lines in a frame of their own, between two heights of a page.
pub fn lines_in(page: &mut Page, heights: (f64, f64), x: &Axis<'_>, y: &Axis<'_>, series: &[Series]) {
    let finite = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
    let mut points: Vec<(f64, f64)> =
        series.iter().flat_map(|s| s.points.iter().chain(&s.rings)).filter(finite).copied().collect();
    points.extend(series.iter().flat_map(|s| (0..s.points.len()).filter_map(|i| s.error_bar(i))).flatten());
    let frame = Frame::new(page, heights, x, y, &points);
    let mut order: Vec<(usize, &Series)> = series.iter().enumerate().collect();
    order.sort_by_key(|(_, s)| s.bold);
    let mut ends = Vec::new();
    for (i, s) in order {
        let (colour, width) = (colour(i), if s.bold { 3.0 } else { 1.6 });
        let at: Vec<(f64, f64)> = s.points.iter().filter(finite).map(|p| (frame.across(p.0), frame.up(p.1))).collect();
        let path: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        page.put(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\"/>",
            path.join(" ")
        ));
        // A single point would be no line at all.
        for (i, (x, y)) in at.iter().enumerate().filter(|_| at.len() <= MOST_DOTS) {
            let radius = s.sizes.get(i).map_or(width + 1.0, |size| 2.0 + 8.0 * size.sqrt());
            page.put(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>"));
        }
        for [low, high] in (0..s.points.len()).filter_map(|i| s.error_bar(i)) {
            let (x, y1, y2) = (frame.across(low.0), frame.up(low.1), frame.up(high.1));
            let (left, right) = (x - 4.0, x + 4.0);
            page.put(format_args!(
                "<path d=\"M{left:.1} {y1:.1}H{right:.1}M{x:.1} {y1:.1}V{y2:.1}M{left:.1} {y2:.1}H{right:.1}\" \
                 stroke=\"{colour}\" stroke-width=\"1.2\" fill=\"none\"/>"
            ));
        }
        for p in s.rings.iter().filter(finite) {
            let (x, y) = (frame.across(p.0), frame.up(p.1));
            page.put(format_args!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
            ));
        }
        ends.extend(at.last().filter(|_| !s.name.is_empty()).map(|(_, y)| (*y, colour, s)));
    }
    // Names at the ends of lines, moved apart where they would overlap.
    const APART: f64 = 15.0;
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    for i in 1..ends.len() {
        ends[i].0 = ends[i].0.max(ends[i - 1].0 + APART);
    }
    for (y, colour, s) in ends {
        let weight = if s.bold { " font-weight=\"bold\"" } else { "" };
        page.put(format_args!(
            "<text x=\"{}\" y=\"{:.1}\" fill=\"{colour}\"{weight}>{}</text>",
            WIDTH - RIGHT + 8.0,
            y + 4.0,
            escape_xml(&shorten(&s.name, 26))
        ));
    }
}

/// Draws points with their names beside them. `fit` is a straight line `y = a + b·x` in the scales
/// of the axes (log₁₀ of a logarithmic axis).
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
    let mut page = Page::new(title, subtitle, HEIGHT);
    let frame = Frame::new(&mut page, (TOP, HEIGHT - BOTTOM), x, y, &at);
    if let Some((a, b)) = fit {
        let end = |v: f64| {
            let back = |v: f64, log: bool| if log { 10f64.powf(v) } else { v };
            let y = back((a + b * v).clamp(frame.y.low, frame.y.high), frame.y.log);
            (frame.across(back(v, frame.x.log)), frame.up(y))
        };
        let ((x1, y1), (x2, y2)) = (end(frame.x.low), end(frame.x.high));
        page.put(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#999999\" \
             stroke-dasharray=\"6 4\"/>"
        ));
    }
    let places: Vec<(f64, f64)> = points.iter().map(|p| (frame.across(p.x), frame.up(p.y))).collect();
    for (p, (x, y)) in points.iter().zip(&places) {
        page.put(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{}\"/>", colour(p.class)));
    }
    let names: Vec<String> = points.iter().map(|p| shorten(&p.label, 34)).collect();
    for (i, spot) in spots(&places, &names).into_iter().enumerate() {
        let ((x, y), colour) = (places[i], colour(points[i].class));
        // A name that had to move away keeps a line to its point.
        if (spot.1 - y).hypot((spot.0 - x).clamp(-spot.2, spot.2).min(0.0)) > 16.0 || (spot.0 - x) > 16.0 {
            let near = x.clamp(spot.0, spot.0 + spot.2);
            page.put(format_args!(
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{near:.1}\" y2=\"{:.1}\" stroke=\"#bbbbbb\" \
                 stroke-width=\"0.8\"/>",
                spot.1
            ));
        }
        page.put(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" fill=\"{colour}\">{}</text>",
            spot.0,
            spot.1 + 4.0,
            escape_xml(&names[i])
        ));
    }
    for (i, class) in classes.iter().enumerate() {
        let (x, y, colour) = (WIDTH - RIGHT + 18.0, TOP + 12.0 + 20.0 * i as f64, colour(i));
        page.put(format_args!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            x + 12.0,
            y + 4.0,
            escape_xml(&shorten(class, 24))
        ));
    }
    page.finish()
}

/// Finds for each point a place (left end, middle, width) for its name, as near as possible, that
/// covers no other name and no point.
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

/// Draws bars in groups: for each row a name, and a value per series.
pub fn bars(title: &str, subtitle: &str, label: &str, series: &[String], rows: &[(String, Vec<f64>)]) -> String {
    const BAR: f64 = 16.0;
    let left = 230.0;
    let block = BAR * series.len() as f64 + 14.0;
    let height = TOP + block * rows.len() as f64 + BOTTOM;
    let mut page = Page::new(title, subtitle, height);
    let scale = Axis::from_zero(label).scale(rows.iter().flat_map(|(_, v)| v.iter().copied()));
    let right = WIDTH - RIGHT;
    let across = |v: f64| left + scale.share(v) * (right - left);
    for (t, text) in scale.marks() {
        page.put(format_args!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{b}\" stroke=\"#dddddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            height - BOTTOM + 18.0,
            x = across(t),
            b = height - BOTTOM,
        ));
    }
    page.put(format_args!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        (left + right) / 2.0,
        height - BOTTOM + 42.0,
        escape_xml(label)
    ));
    for (r, (name, values)) in rows.iter().enumerate() {
        let top = TOP + 7.0 + block * r as f64;
        let middle = top + (block - 14.0) / 2.0 + 4.0;
        page.put(format_args!(
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            left - 10.0,
            escape_xml(&shorten(name, 36))
        ));
        for (i, v) in values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            let (a, b) = (across(v.min(0.0)), across(v.max(0.0)));
            let y = top + BAR * i as f64;
            page.put(format_args!(
                "<rect x=\"{a:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\">{v:.3}</text>",
                (b - a).max(0.5),
                BAR - 2.0,
                colour(i),
                b + 5.0,
                y + BAR - 5.0
            ));
        }
    }
    for (i, name) in series.iter().enumerate() {
        let y = TOP + 12.0 + 20.0 * i as f64;
        page.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            right + 40.0,
            y - 5.0,
            colour(i),
            right + 56.0,
            y + 4.0,
            escape_xml(&shorten(name, 20))
        ));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn error_bars_are_inside_the_frame() {
        let series = |errors: Vec<f64>| Series { points: vec![(1.0, 0.5), (2.0, 0.6)], errors, ..Series::default() };
        let draw = |s| lines("t", "", &Axis::linear("x"), &Axis::linear("y"), &[s]);
        assert!(!draw(series(vec![])).contains("<path"));
        let picture = draw(series(vec![0.25, f64::NAN]));
        // One bar: the error of the second point is no number. It reaches from 0.25 to 0.75, so the axis does from 0.2 to 0.8.
        assert_eq!(picture.matches("<path").count(), 1);
        assert!(picture.contains(">0.20<") && picture.contains(">0.80<"), "{picture}");
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
