//! What an analysis found: a table, a picture of it, and what the numbers amount to.

use crate::chart::{self, Axis, Series};
use crate::sheet::Sheet;

use super::passes::Trial;

/// What an analysis found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The numbers.
    pub sheet: Sheet,
    /// The picture, SVG.
    pub picture: String,
    /// What the numbers amount to, where one sentence says it.
    pub note: Option<String>,
}

/// The trials on each dataset, in their order.
pub type Trials = [(String, Vec<Trial>)];

/// Lists trials: a row per dataset and setting. `label` says what the setting is.
pub fn trial_sheet(label: &str, all: &Trials) -> Sheet {
    let header = ["dataset", label, "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank", "coverage"];
    let row = |name: &String, t: &Trial| {
        let (m, digits) = (&t.metrics, |x: f64| format!("{x:.4}"));
        let mut row = vec![name.clone(), t.setting.clone()];
        row.extend([m.mrr, m.hits1, m.hits3, m.hits10].map(digits));
        row.extend([format!("{:.1}", m.mean_rank), digits(t.coverage)]);
        row
    };
    let rows = all.iter().flat_map(|(name, tried)| tried.iter().map(move |t| row(name, t))).collect();
    Sheet { header: header.map(String::from).to_vec(), rows }
}

/// Draws the MRR of trials whose settings are counts: a line per dataset, and their mean. `rings` marks a
/// point of each line.
pub fn curves(title: &str, subtitle: &str, label: &str, all: &Trials, rings: &[Option<(f64, f64)>]) -> Finding {
    // A setting of one dataset may be none of another's.
    let mut counts: Vec<u32> = all.iter().flat_map(|(_, tried)| tried).filter_map(|t| t.setting.parse().ok()).collect();
    counts.sort_unstable();
    counts.dedup();
    let at = |t: &Trial| (t.setting.parse::<f64>().unwrap_or(f64::NAN), t.metrics.mrr);
    let mut series: Vec<Series> = all
        .iter()
        .enumerate()
        .map(|(i, (name, tried))| Series {
            name: name.clone(),
            points: tried.iter().map(at).collect(),
            rings: rings.get(i).copied().flatten().into_iter().collect(),
            ..Series::default()
        })
        .collect();
    if all.len() > 1 {
        let mean = |count: &u32| {
            let of = |tried: &Vec<Trial>| tried.iter().find(|t| t.setting == count.to_string()).map(|t| t.metrics.mrr);
            let values: Option<Vec<f64>> = all.iter().map(|(_, tried)| of(tried)).collect();
            values.map(|v| (f64::from(*count), v.iter().sum::<f64>() / v.len() as f64))
        };
        let points = counts.iter().filter_map(mean).collect();
        series.push(Series { name: "mean".to_string(), points, bold: true, ..Series::default() });
    }
    let ticks = counts.iter().map(|c| f64::from(*c)).collect();
    let picture = chart::lines(title, subtitle, &Axis::log(label, ticks), &Axis::linear("MRR"), &series);
    Finding { sheet: trial_sheet(label, all), picture, note: None }
}

/// Draws the MRR of trials whose settings are names: bars for each setting, one per dataset and one for
/// their mean. Every dataset has the same settings, in the same order.
pub fn variant_bars(title: &str, subtitle: &str, all: &Trials) -> Finding {
    let settings = all.first().map_or(0, |(_, tried)| tried.len());
    let rows: Vec<(String, Vec<f64>)> = (0..settings)
        .map(|i| {
            let mut values: Vec<f64> = all.iter().map(|(_, tried)| tried[i].metrics.mrr).collect();
            if values.len() > 1 {
                values.push(values.iter().sum::<f64>() / values.len() as f64);
            }
            (all[0].1[i].setting.clone(), values)
        })
        .collect();
    let mut names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    if names.len() > 1 {
        names.push("mean".to_string());
    }
    let picture = chart::bars(title, subtitle, "MRR", &names, &rows);
    Finding { sheet: trial_sheet("variant", all), picture, note: None }
}
