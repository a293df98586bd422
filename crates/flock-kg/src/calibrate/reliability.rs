//! Reliability: stated probabilities against how often they came true, in bins, as a number and as a picture.

use std::fmt::Write;

const BINS: usize = 10;

/// The predictions whose probability lies in one tenth of 0 to 1.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Bin {
    /// How many there are.
    pub count: usize,
    /// Their mean probability.
    pub stated: f64,
    /// The share of them that is true.
    pub observed: f64,
}

/// Ten bins of equal width.
pub fn bins(predictions: impl Iterator<Item = (f64, bool)>) -> [Bin; BINS] {
    let mut bins = [Bin::default(); BINS];
    for (p, truth) in predictions {
        let bin = &mut bins[((p * BINS as f64) as usize).min(BINS - 1)];
        bin.count += 1;
        bin.stated += p;
        bin.observed += f64::from(u8::from(truth));
    }
    for bin in &mut bins {
        bin.stated /= bin.count.max(1) as f64;
        bin.observed /= bin.count.max(1) as f64;
    }
    bins
}

/// Expected calibration error: the mean of |stated − observed|, each bin by its count.
pub fn expected_error(bins: &[Bin]) -> f64 {
    let total = bins.iter().map(|b| b.count).sum::<usize>().max(1) as f64;
    bins.iter().map(|b| b.count as f64 / total * (b.stated - b.observed).abs()).sum()
}

/// The diagram: what was stated across, what was observed up, before and after; the area of a dot is its count.
pub fn svg(title: &str, before: &[Bin], after: &[Bin]) -> String {
    const SIZE: f64 = 360.0;
    const LEFT: f64 = 60.0;
    const TOP: f64 = 64.0;
    let (x, y) = (|p: f64| LEFT + SIZE * p, |p: f64| TOP + SIZE * (1.0 - p));
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 480 490\" width=\"480\" height=\"490\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    );
    for tick in 0..=5 {
        let p = f64::from(tick) / 5.0;
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{1}\" y2=\"{1}\" stroke=\"#dddddd\"/>\
             <text x=\"{2}\" y=\"{3}\" text-anchor=\"end\">{p:.1}</text>\
             <text x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">{p:.1}</text>",
            x(1.0),
            y(p),
            LEFT - 8.0,
            y(p) + 4.0,
            x(p),
            y(0.0) + 18.0
        );
    }
    let _ = writeln!(
        out,
        "<path d=\"M{} {}L{} {}\" stroke=\"#888888\" stroke-dasharray=\"5 4\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">stated probability</text>\
         <text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">share that is true</text>",
        x(0.0),
        y(0.0),
        x(1.0),
        y(1.0),
        x(0.5),
        y(0.0) + 38.0,
        y(0.5)
    );
    let most = before.iter().chain(after).map(|b| b.count).max().unwrap_or(1).max(1) as f64;
    for (place, (name, colour, bins)) in
        [("before", "#d55e00", before), ("after", "#0072b2", after)].into_iter().enumerate()
    {
        let filled: Vec<&Bin> = bins.iter().filter(|b| b.count > 0).collect();
        let points: Vec<String> = filled.iter().map(|b| format!("{:.1},{:.1}", x(b.stated), y(b.observed))).collect();
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"46\" fill=\"{colour}\">● {name}: error {:.3}</text>\
             <polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            LEFT + 170.0 * place as f64,
            expected_error(bins),
            points.join(" ")
        );
        for b in filled {
            let radius = 2.0 + 8.0 * (b.count as f64 / most).sqrt();
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{colour}\" fill-opacity=\"0.6\">\
                 <title>{} predictions</title></circle>",
                x(b.stated),
                y(b.observed),
                b.count
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_by_hand() {
        // Two at 0.15, one true: |0.15 − 0.5|; two at 0.95, both true: |0.95 − 1|; mean (0.35 + 0.05) / 2.
        let bins = bins([(0.15, true), (0.15, false), (0.95, true), (0.95, true)].into_iter());
        assert_eq!((bins[1].count, bins[9].count), (2, 2));
        assert!((expected_error(&bins) - 0.2).abs() < 1e-12);
        assert_eq!(expected_error(&super::bins(std::iter::empty())), 0.0);
        // One is in the last bin.
        assert_eq!(super::bins([(1.0, true)].into_iter())[9].count, 1);
        let picture = svg("a<b", &bins, &super::bins(std::iter::empty()));
        assert!(picture.contains("a&lt;b") && !picture.contains("NaN"));
    }
}
