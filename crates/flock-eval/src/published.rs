//! Published numbers, to put beside ours: a built-in table, or a file.
//!
//! The built-in table, `published.csv`, has the results of ULTRA, TRIX and Flock on each graph, for
//! both tasks, zero-shot and fine-tuned, as the Flock paper prints them.
//!
//! A file is a CSV with columns `dataset`, `split` and any number of `system_metric`, such as
//! `flock_mrr` or `ultra_hits10`. The last system is the one that differences are taken from.

use std::path::Path;

use crate::datasets::DatasetGroup;
use crate::metrics::Metric;
use crate::rows::{Separator, rows};
use flock_model::checkpoint::Task;

/// The built-in table: task, setting, dataset, metric, then a column for each system.
const BUILT_IN: &str = include_str!("published.csv");

/// Why a file of published numbers cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishedError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The columns are not those of published numbers.
    #[error(
        "{file}:1: expected columns dataset, split and system_metric such as flock_mrr or flock_hits10, found {found:?}"
    )]
    Columns {
        /// The file.
        file: String,
        /// The first row.
        found: String,
    },
    /// A row does not fit the columns.
    #[error("{file}:{line}: {reason}")]
    Row {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

/// How the systems of a published table were trained for a graph.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PublishedSetting {
    /// One model for all graphs, which has not seen the graph.
    ZeroShot,
    /// The model was fine-tuned on the graph.
    FineTuned,
}

impl PublishedSetting {
    /// Returns the word in the built-in table.
    fn word(self) -> &'static str {
        match self {
            PublishedSetting::ZeroShot => "zero_shot",
            PublishedSetting::FineTuned => "fine_tuned",
        }
    }
}

/// The means of tab:main-entity-result and tab:main_relation_prediction as they are printed: system, then MRR and Hits (@10 for
/// entities, @1 for relations) of the groups inductive e,r, inductive e and transductive, of all but the pretraining graphs, and of
/// the pretraining graphs.
type PrintedMeans = [(&'static str, [Option<[f64; 2]>; 5]); 3];

const ENTITY_ZERO_SHOT: PrintedMeans = [
    ("ultra", [Some([0.345, 0.513]), Some([0.431, 0.566]), Some([0.312, 0.458]), Some([0.366, 0.518]), None]),
    ("trix", [Some([0.368, 0.540]), Some([0.455, 0.592]), Some([0.339, 0.500]), Some([0.390, 0.548]), None]),
    ("flock", [Some([0.369, 0.554]), Some([0.456, 0.604]), Some([0.340, 0.509]), Some([0.391, 0.560]), None]),
];

const ENTITY_FINE_TUNED: PrintedMeans = [
    (
        "ultra",
        [Some([0.397, 0.556]), Some([0.440, 0.582]), Some([0.379, 0.543]), Some([0.408, 0.562]), Some([0.407, 0.568])],
    ),
    (
        "trix",
        [Some([0.401, 0.556]), Some([0.459, 0.595]), Some([0.390, 0.558]), Some([0.418, 0.569]), Some([0.415, 0.564])],
    ),
    (
        "flock",
        [Some([0.417, 0.576]), Some([0.473, 0.619]), Some([0.383, 0.544]), Some([0.427, 0.582]), Some([0.415, 0.561])],
    ),
];

const RELATION_ZERO_SHOT: PrintedMeans = [
    ("ultra", [Some([0.785, 0.691]), Some([0.714, 0.590]), Some([0.629, 0.507]), Some([0.724, 0.613]), None]),
    ("trix", [Some([0.842, 0.770]), Some([0.756, 0.611]), Some([0.752, 0.647]), Some([0.792, 0.687]), None]),
    ("flock", [Some([0.898, 0.846]), Some([0.864, 0.782]), Some([0.873, 0.813]), Some([0.881, 0.817]), None]),
];

const RELATION_FINE_TUNED: PrintedMeans = [
    (
        "ultra",
        [Some([0.823, 0.741]), Some([0.716, 0.591]), Some([0.707, 0.608]), Some([0.759, 0.659]), Some([0.876, 0.817])],
    ),
    (
        "trix",
        [Some([0.850, 0.785]), Some([0.759, 0.615]), Some([0.785, 0.693]), Some([0.804, 0.706]), Some([0.879, 0.797])],
    ),
    (
        "flock",
        [Some([0.929, 0.889]), Some([0.887, 0.808]), Some([0.897, 0.844]), Some([0.907, 0.851]), Some([0.977, 0.959])],
    ),
];

/// Returns the mean of a system over the graphs of a group, or over all but the pretraining graphs, as the paper prints it: MRR, and
/// Hits@10 for entities or Hits@1 for relations.
pub fn printed_mean(
    task: Task,
    setting: PublishedSetting,
    system: &str,
    group: Option<DatasetGroup>,
) -> Option<[f64; 2]> {
    let table = match (task, setting) {
        (Task::Entity, PublishedSetting::ZeroShot) => &ENTITY_ZERO_SHOT,
        (Task::Entity, PublishedSetting::FineTuned) => &ENTITY_FINE_TUNED,
        (Task::Relation, PublishedSetting::ZeroShot) => &RELATION_ZERO_SHOT,
        (Task::Relation, PublishedSetting::FineTuned) => &RELATION_FINE_TUNED,
    };
    let column = match group {
        Some(DatasetGroup::InductiveEr) => 0,
        Some(DatasetGroup::InductiveE) => 1,
        Some(DatasetGroup::Transductive) => 2,
        None => 3,
        Some(DatasetGroup::Pretraining) => 4,
        Some(DatasetGroup::Other) => return None,
    };
    table.iter().find(|(name, _)| *name == system).and_then(|(_, means)| means[column])
}

/// Published numbers of several systems on many datasets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedNumbers {
    pub(crate) systems: Vec<String>,
    pub(crate) metrics: Vec<Metric>,
    rows: Vec<(String, Vec<Option<f64>>)>, // dataset, (metrics × systems)
}

impl PublishedNumbers {
    /// Returns the built-in numbers of a task.
    pub fn built_in(task: Task, setting: PublishedSetting) -> PublishedNumbers {
        let (task, setting) = (task.to_string(), setting.word());
        let mut numbers = PublishedNumbers::default();
        let mut cells = Vec::new();
        for (number, row) in rows(BUILT_IN, Separator::Comma).enumerate() {
            let fields: Vec<&str> = row.fields.iter().collect();
            let [of_task, of_setting, dataset, metric, values @ ..] = &fields[..] else { continue };
            if number == 0 {
                numbers.systems = values.iter().map(|s| s.to_string()).collect();
            } else if *of_task == task && *of_setting == setting {
                // A test reads every row.
                let Some(metric) = Metric::parse(metric) else { continue };
                if !numbers.metrics.contains(&metric) {
                    numbers.metrics.push(metric);
                }
                for (system, value) in values.iter().enumerate() {
                    cells.push((dataset.to_string(), metric, system, value.parse().ok()));
                }
            }
        }
        for (dataset, metric, system, value) in cells {
            // The rows of a dataset stand together.
            if numbers.rows.last().is_none_or(|(name, _)| *name != dataset) {
                numbers.rows.push((dataset, numbers.empty_row()));
            }
            let place = numbers.place(metric, system);
            if let Some((_, values)) = numbers.rows.last_mut() {
                values[place] = value;
            }
        }
        numbers
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<PublishedNumbers, PublishedError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| PublishedError::Io { file: file.clone(), source })?;
        PublishedNumbers::parse(&file, &text)
    }

    /// Parses the text of a file. Errors call it `file`.
    pub fn parse(file: &str, text: &str) -> Result<PublishedNumbers, PublishedError> {
        let mut rows = rows(text, Separator::Comma);
        let header = rows.next().map(|row| row.fields).unwrap_or_default();
        let columns: Vec<&str> = header.iter().map(str::trim).collect();
        let bad = || PublishedError::Columns { file: file.to_string(), found: columns.join(",") };
        let mut numbers = PublishedNumbers::default();
        let mut places = Vec::new(); // column, metric, system
        for (column, name) in columns.iter().enumerate().filter(|(_, name)| !["dataset", "split"].contains(name)) {
            let (system, metric) = name.rsplit_once('_').ok_or_else(bad)?;
            let metric = Metric::parse(metric).ok_or_else(bad)?;
            let known = numbers.systems.iter().position(|s| s == system);
            let system = known.unwrap_or_else(|| {
                numbers.systems.push(system.to_string());
                numbers.systems.len() - 1
            });
            if !numbers.metrics.contains(&metric) {
                numbers.metrics.push(metric);
            }
            places.push((column, metric, system));
        }
        let dataset = columns.iter().position(|c| *c == "dataset").filter(|_| !places.is_empty()).ok_or_else(bad)?;
        for row in rows {
            let cells: Vec<&str> = row.fields.iter().map(str::trim).collect();
            // A line of blanks.
            if cells == [""] {
                continue;
            }
            let wrong = |reason: String| PublishedError::Row { file: file.to_string(), line: row.line, reason };
            if cells.len() != columns.len() {
                return Err(wrong(format!("expected {} fields, found {}", columns.len(), cells.len())));
            }
            let mut values = numbers.empty_row();
            for (column, metric, system) in &places {
                let cell = cells[*column];
                if !cell.is_empty() {
                    let value = cell.parse().map_err(|_| wrong(format!("expected a number, found {cell:?}")))?;
                    values[numbers.place(*metric, *system)] = Some(value);
                }
            }
            numbers.rows.push((cells[dataset].to_string(), values));
        }
        Ok(numbers)
    }

    /// Makes a row without values.
    fn empty_row(&self) -> Vec<Option<f64>> {
        vec![None; self.metrics.len() * self.systems.len()]
    }

    /// Returns where a row has the value of a metric and a system. The metric must be one of the
    /// table's.
    fn place(&self, metric: Metric, system: usize) -> usize {
        self.metrics.iter().position(|m| *m == metric).map_or(0, |m| m * self.systems.len()) + system
    }

    /// Returns the systems, in the order of the table.
    pub fn systems(&self) -> &[String] {
        &self.systems
    }

    /// Returns the MRR of one system on each dataset that it has one for, in the order of the
    /// table.
    pub fn mrr(&self, system: &str) -> Vec<(&str, f64)> {
        let column =
            self.metrics.iter().position(|m| *m == Metric::Mrr).zip(self.systems.iter().position(|s| s == system));
        let Some((metric, system)) = column else { return Vec::new() };
        let at = metric * self.systems.len() + system;
        self.rows.iter().filter_map(|(name, values)| Some((name.as_str(), values[at]?))).collect()
    }

    /// Returns the metrics, in the order of the table.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Returns the datasets, in the order of the table.
    pub fn datasets(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the values of a dataset: for each metric, those of each system.
    pub(crate) fn row(&self, dataset: &str) -> Option<&[Option<f64>]> {
        self.rows.iter().find(|(name, _)| name == dataset).map(|(_, values)| values.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::{DatasetGroup, registry};

    #[test]
    fn errors_name_line_and_rule() {
        let error = |text: &str| PublishedNumbers::parse("p.csv", text).unwrap_err().to_string();
        assert!(error("dataset,mrr\n").starts_with("p.csv:1: expected columns dataset, split and system_metric"));
        assert!(error("").starts_with("p.csv:1:"));
        assert_eq!(error("dataset,a_mrr\nx,0.1\ny\n"), "p.csv:3: expected 2 fields, found 1");
        assert_eq!(error("dataset,a_mrr\nx,high\n"), "p.csv:2: expected a number, found \"high\"");
    }

    #[test]
    fn names_in_quotes_may_have_commas() {
        let numbers = PublishedNumbers::parse("p.csv", "dataset,a_mrr\n\"x, y\",0.25\nz,\n").unwrap();
        assert_eq!(numbers.mrr("a"), [("x, y", 0.25)]);
    }

    const ALL: [(Task, PublishedSetting, &str); 4] = [
        (Task::Entity, PublishedSetting::ZeroShot, "entity_zeroshot"),
        (Task::Entity, PublishedSetting::FineTuned, "entity_finetuned"),
        (Task::Relation, PublishedSetting::ZeroShot, "relation_zeroshot"),
        (Task::Relation, PublishedSetting::FineTuned, "relation_finetuned"),
    ];

    #[test]
    fn every_built_in_number_is_there_and_of_a_known_graph() {
        for (task, setting, name) in ALL {
            let numbers = PublishedNumbers::built_in(task, setting);
            assert_eq!(numbers.systems, ["ultra", "trix", "flock"]);
            // The paper prints MRR with Hits@10 for entities and with Hits@1 for relations.
            let second = if task == Task::Entity { Metric::Hits10 } else { Metric::Hits1 };
            assert_eq!(numbers.metrics, [Metric::Mrr, second], "{name}");
            // 54 graphs to evaluate on. The 3 pretraining graphs have no zero-shot numbers.
            let graphs = |e: &&registry::RegistryEntry| {
                setting == PublishedSetting::FineTuned || e.group != DatasetGroup::Pretraining
            };
            let mut want: Vec<&str> = registry::entries().iter().filter(graphs).map(|e| e.name).collect();
            let mut have: Vec<&str> = numbers.rows.iter().map(|(dataset, _)| dataset.as_str()).collect();
            want.sort_unstable();
            have.sort_unstable();
            assert_eq!(have, want, "{name}");
            let share = |v: &Option<f64>| v.is_some_and(|v| (0.0..=1.0).contains(&v));
            assert!(numbers.rows.iter().all(|(_, values)| values.len() == 6 && values.iter().all(share)), "{name}");
        }
        // By task and setting: 54 and 57 graphs, two metrics each, for two tasks; and the header.
        assert_eq!(rows(BUILT_IN, Separator::Comma).count(), 1 + 2 * 2 * (54 + 57));
    }

    #[test]
    fn built_in_numbers_are_the_published_ones() {
        let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/published"));
        if !shared.is_dir() {
            eprintln!("skipped: ../shared/published not found");
            return;
        }
        for (task, setting, name) in ALL {
            let file = PublishedNumbers::read(&shared.join(format!("{name}.csv"))).unwrap();
            assert_eq!(PublishedNumbers::built_in(task, setting), file, "{name}");
        }
    }
}
