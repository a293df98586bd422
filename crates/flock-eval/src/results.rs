//! `results.json`: the metrics of each dataset, with the whole protocol behind them.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::datasets::{DatasetGroup, Part, Split};
use crate::error::EvalError;
use crate::questions::AskedSide;
use crate::summary::{RankSummary, SeedSummary};
use flock_model::checkpoint::Task;
use flock_model::files::write_atomically;

/// Everything that the metrics of an evaluation depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullProtocol {
    /// Version of this program.
    pub version: String,
    /// SHA-256 of the checkpoint.
    pub checkpoint: String,
    /// Precision of multiplications.
    pub precision: String,
    /// Instruction set of the kernels.
    pub simd: String,
    /// Seed of walks and sample.
    pub seed: u64,
    /// Seed of the sample, if it is not that of the walks: several seeds share the first one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_seed: Option<u64>,
    /// Base walk count.
    pub n: u32,
    /// Ensemble passes.
    pub passes: u32,
    /// Walk length.
    pub length: usize,
    /// Whether walks may step straight back.
    pub backtrack: bool,
    /// Whether all walks start at the query.
    pub all_at_query: bool,
    /// Whether balanced walks start on edges of the query's relation.
    pub balanced_on_query_relation: bool,
    /// Whether walks use both types of a relation.
    pub inverses: bool,
    /// Chance that a walk restarts, in parts of 1024; older results have none.
    #[serde(default)]
    pub restart: u32,
    /// Which walks may restart: every one (1), every second one (2), …; older results have none.
    #[serde(default)]
    pub restart_period: u32,
    /// Which random starts are at the query's nodes: every one (1), every second one (2), …, none (0); older results have none.
    #[serde(default)]
    pub query_start_period: u32,
    /// Tie rule of the main metrics.
    pub ties: String,
    /// Whether the main metrics are filtered.
    pub filtered: bool,
    /// Files whose triples count as known.
    pub filter: Vec<Part>,
    /// The parts of a triple that are asked for.
    pub sides: Vec<AskedSide>,
    /// The file that is walked.
    pub walked: Part,
    /// SHA-256 of that file.
    pub graph: String,
    /// SHA-256 of the file with the triples to predict.
    pub predicted: String,
    /// SHA-256 over the hashes of all existing files of `filter`; older results have none.
    #[serde(default)]
    pub known: String,
    /// Entities of the walked graph: the candidates.
    pub entities: u32,
    /// Relations of the walked graph.
    pub relations: u32,
    /// Distinct triples of the walked graph.
    pub triples: usize,
    /// Triples predicted. If this is less than `of`, they are a sample.
    pub sampled: usize,
    /// Triples in the split.
    pub of: usize,
    /// Triples left out because the walked graph lacks a name.
    pub dropped: usize,
}

/// One object of `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Name of the dataset.
    pub dataset: String,
    /// The task.
    pub task: Task,
    /// The split.
    pub split: Split,
    /// The group it is averaged in.
    pub group: DatasetGroup,
    /// The metrics; the main ones under the published tie rule.
    #[serde(flatten)]
    pub summary: RankSummary,
    /// Distinct queries asked.
    pub asked: usize,
    /// Seconds that asking and ranking took, without loading.
    pub seconds: f64,
    /// Useful multiply-adds per second, in GFLOP/s.
    pub gflops: f64,
    /// Share of the time since the start or the last resumption that the model did not use:
    /// ranking, filtering, files, progress.
    pub overhead: f64,
    /// Threads.
    pub threads: usize,
    /// When the evaluation finished, UTC.
    pub time: String,
    /// Name of the model.
    pub model: String,
    /// Mean and standard deviation over all seeds, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_seeds: Option<SeedSummary>,
    /// Differences between the dataset and the registry.
    pub differences: Vec<String>,
    /// Everything that the metrics depend on.
    pub protocol: FullProtocol,
}

impl Evaluation {
    /// Returns the MRR under the published tie rule.
    pub fn mrr(&self) -> f64 {
        self.summary.all.pessimistic.mrr
    }

    /// Returns Hits@10 under the published tie rule.
    pub fn hits10(&self) -> f64 {
        self.summary.all.pessimistic.hits10
    }
}

/// Writes a list of results as JSON. The file appears whole or not at all.
pub fn write(path: &Path, results: &[Evaluation]) -> Result<(), EvalError> {
    let mut text = serde_json::to_string_pretty(results).expect("string keys and plain values");
    text.push('\n');
    write_text(path, &text)
}

/// Writes a text file. It appears whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), EvalError> {
    let file = || path.display().to_string();
    write_atomically(path, text.as_bytes()).map_err(|source| EvalError::File { file: file(), source })
}

/// Reads what [`write()`] wrote.
pub fn read(path: &Path) -> Result<Vec<Evaluation>, EvalError> {
    let file = || path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| EvalError::File { file: file(), source })?;
    serde_json::from_slice(&bytes).map_err(|e| EvalError::Results { file: file(), reason: e.to_string() })
}

/// Formats a time in UTC: `2026-01-31T12:00:00Z`.
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{:02}Z", month + 1, days + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn tells_the_time() {
        // date -u -d @… +%FT%TZ
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_000_000, "2026-11-18T11:06:40Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
