//! What time buys: MRR against milliseconds a question, for several base walk counts and numbers of passes,
//! beside other systems whose times are given.
//!
//! A point is dominated if another one is at least as fast and at least as good. The frontier is what is
//! left.

use std::path::Path;
use std::time::Instant;

use super::finding::Finding;
use super::passes::{Trial, passes};
use crate::chart::{self, Axis, Series};
use crate::datasets::TestSet;
use crate::error::EvalError;
use crate::published::PublishedError;
use crate::rows::{Separator, rows};
use crate::sheet::Sheet;
use flock_model::ensemble::Ask;
use flock_model::model::Model;

/// One way to ask: its time and its quality.
#[derive(Clone, Debug, PartialEq)]
pub struct CostPoint {
    /// Base walk count `n`.
    pub walks: u32,
    /// Ensemble passes `P`.
    pub passes: u32,
    /// Milliseconds a question.
    pub ms: f64,
    /// Metrics.
    pub trial: Trial,
}

impl CostPoint {
    fn place(&self) -> (f64, f64) {
        (self.ms, self.trial.metrics.mrr)
    }
}

/// Asks once with the most passes of `counts`, which ascend, and measures the metrics and the time of each
/// number of passes. Passes cost the same, so `p` of them have their share of the time. `watch` is as in
/// [`passes()`].
///
/// # Errors
/// The model cannot be asked, or `watch` stopped the run.
pub fn points(
    model: &Model,
    set: &TestSet,
    ask: Ask,
    counts: &[u32],
    pool: &rayon::ThreadPool,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Vec<CostPoint>, EvalError> {
    let mut questions = 0;
    let begun = Instant::now();
    let trials = passes(model, set, ask, counts, pool, &mut |done, total| {
        questions = total;
        watch(done, total)
    })?;
    let passed = f64::from(counts.iter().copied().max().unwrap_or(1)) * questions.max(1) as f64;
    let ms_of_pass = begun.elapsed().as_secs_f64() * 1e3 / passed;
    let point = |(passes, trial): (&u32, Trial)| CostPoint {
        walks: ask.walks,
        passes: *passes,
        ms: ms_of_pass * f64::from(*passes),
        trial,
    };
    Ok(counts.iter().zip(trials).map(point).collect())
}

/// Another system on a dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Its name.
    pub system: String,
    /// The dataset.
    pub dataset: String,
    /// Milliseconds a question, on the same machine.
    pub ms: f64,
    /// Its MRR.
    pub mrr: f64,
}

impl Peer {
    /// Reads a CSV file with the columns `system`, `dataset`, `ms` and `mrr`.
    ///
    /// # Errors
    /// The file cannot be read, or a row does not fit.
    pub fn read(path: &Path) -> Result<Vec<Peer>, PublishedError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| PublishedError::Io { file: file.clone(), source })?;
        Peer::parse(&file, &text)
    }

    /// Parses the text of such a file. Errors call it `file`.
    ///
    /// # Errors
    /// A row does not fit.
    pub fn parse(file: &str, text: &str) -> Result<Vec<Peer>, PublishedError> {
        let mut peers = Vec::new();
        for (number, row) in rows(text, Separator::Comma).enumerate() {
            let cells: Vec<&str> = row.fields.iter().map(str::trim).collect();
            let wrong = |reason: String| PublishedError::Row { file: file.to_string(), line: row.line, reason };
            if cells == [""] || number == 0 && cells == ["system", "dataset", "ms", "mrr"] {
                continue;
            }
            let [system, dataset, ms, mrr] = cells[..] else {
                return Err(wrong(format!("expected system,dataset,ms,mrr, found {} fields", cells.len())));
            };
            let positive = |cell: &str| {
                let value = cell.parse().ok().filter(|v: &f64| v.is_finite() && *v > 0.0);
                value.ok_or_else(|| wrong(format!("expected a number above 0, found {cell:?}")))
            };
            let (ms, mrr) = (positive(ms)?, positive(mrr)?);
            peers.push(Peer { system: system.to_string(), dataset: dataset.to_string(), ms, mrr });
        }
        Ok(peers)
    }
}

/// Returns the places that no other one dominates, the fastest first. A place is a time and an MRR.
pub fn undominated(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted = places.to_vec();
    // Of equally fast places the best comes first.
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut best = f64::NEG_INFINITY;
    sorted.retain(|(_, mrr)| {
        let better = *mrr > best;
        best = best.max(*mrr);
        better
    });
    sorted
}

/// Puts the points of one dataset beside other systems.
pub fn picture(dataset: &str, subtitle: &str, ours: &[CostPoint], peers: &[Peer]) -> Finding {
    let peers: Vec<&Peer> = peers.iter().filter(|p| p.dataset == dataset).collect();
    let places: Vec<(f64, f64)> = ours.iter().map(CostPoint::place).collect();
    let frontier = undominated(&places);
    let above = |p: &&&Peer| !places.iter().any(|(ms, mrr)| *ms <= p.ms && *mrr >= p.mrr);
    let behind: Vec<&str> = peers.iter().filter(above).map(|p| p.system.as_str()).collect();

    let header = ["system", "n", "P", "ms / question", "MRR", "Hits@1", "Hits@10", "on the frontier"];
    let row = |p: &CostPoint| {
        let (m, digits) = (&p.trial.metrics, |x: f64| format!("{x:.4}"));
        let mut row = vec!["ours".to_string(), p.walks.to_string(), p.passes.to_string(), format!("{:.1}", p.ms)];
        row.extend([m.mrr, m.hits1, m.hits10].map(digits));
        row.push(if frontier.contains(&p.place()) { "yes" } else { "no" }.to_string());
        row
    };
    let none = || "–".to_string();
    let peer = |p: &&Peer| {
        let (ms, mrr) = (format!("{:.1}", p.ms), format!("{:.4}", p.mrr));
        vec![p.system.clone(), none(), none(), ms, mrr, none(), none(), none()]
    };
    let sheet = Sheet {
        header: header.map(String::from).to_vec(),
        rows: ours.iter().map(row).chain(peers.iter().map(peer)).collect(),
    };

    let mut counts: Vec<u32> = ours.iter().map(|p| p.walks).collect();
    counts.dedup();
    let of_count = |n: &u32| Series {
        name: format!("ours, n = {n}"),
        points: ours.iter().filter(|p| p.walks == *n).map(CostPoint::place).collect(),
        ..Series::default()
    };
    let mut series: Vec<Series> = counts.iter().map(of_count).collect();
    series.push(Series { name: "ours, best".to_string(), points: frontier, bold: true, ..Series::default() });
    series.extend(peers.iter().map(|p| Series {
        name: p.system.clone(),
        points: vec![(p.ms, p.mrr)],
        rings: vec![(p.ms, p.mrr)],
        ..Series::default()
    }));
    let times = || places.iter().map(|p| p.0).chain(peers.iter().map(|p| p.ms)).map(f64::log10);
    let (low, high) = (times().fold(1.0, f64::min).floor() as i32, times().fold(1.0, f64::max).ceil() as i32);
    let x = Axis::log("milliseconds a question", (low..=high).map(|k| 10f64.powi(k)).collect());
    let title = format!("MRR on {dataset} against time");
    let note = match (&peers[..], &behind[..]) {
        ([], _) => None,
        (_, []) => Some("no other system is both faster and better than all of our points".to_string()),
        (_, behind) => Some(format!("not reached at their time: {}", behind.join(", "))),
    };
    Finding { sheet, picture: chart::lines(&title, subtitle, &x, &Axis::linear("MRR"), &series), note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slower_and_not_better_is_dominated() {
        let places = [(4.0, 0.3), (1.0, 0.1), (2.0, 0.3), (3.0, 0.2), (2.0, 0.25), (8.0, 0.4)];
        assert_eq!(undominated(&places), [(1.0, 0.1), (2.0, 0.3), (8.0, 0.4)]);
        assert!(undominated(&[]).is_empty());
    }

    #[test]
    fn peers_are_read_by_column() {
        let text = "system,dataset,ms,mrr\nULTRA,Toy,4.7,0.498\n\nTRIX,Other,5,0.5\n";
        let peers = Peer::parse("p.csv", text).unwrap();
        assert_eq!(peers.len(), 2);
        assert_eq!((peers[0].system.as_str(), peers[0].ms, peers[0].mrr), ("ULTRA", 4.7, 0.498));
        let error = |text: &str| Peer::parse("p.csv", text).unwrap_err().to_string();
        assert_eq!(error("ULTRA,Toy,4.7"), "p.csv:1: expected system,dataset,ms,mrr, found 3 fields");
        assert_eq!(error("a,b,1,1\nULTRA,Toy,0,0.5"), "p.csv:2: expected a number above 0, found \"0\"");
    }
}
