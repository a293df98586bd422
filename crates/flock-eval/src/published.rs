//! Published numbers, to stand beside ours.
//!
//! A file of published numbers is a CSV with columns `dataset`, `split` and any number of `system_metric`, such as `flock_mrr` or
//! `ultra_hits10`. The last system is the one that differences are taken from.

use std::path::Path;

use crate::metrics::Metric;

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
    /// Its columns are no published numbers.
    #[error(
        "{file}:1: expected columns dataset, split and system_metric such as flock_mrr or flock_hits10, found {found:?}"
    )]
    Columns {
        /// The file.
        file: String,
        /// The first line.
        found: String,
    },
    /// A row that does not fit the columns.
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

/// Published numbers.
#[derive(Clone, Debug)]
pub struct PublishedNumbers {
    pub(crate) systems: Vec<String>,
    pub(crate) metrics: Vec<Metric>,
    rows: Vec<(String, Vec<Option<f64>>)>, // dataset, (metrics × systems)
}

impl PublishedNumbers {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<PublishedNumbers, PublishedError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| PublishedError::Io { file: file.clone(), source })?;
        PublishedNumbers::parse(&file, &text)
    }

    /// Reads the text of a file, which is called `file` in errors.
    pub fn parse(file: &str, text: &str) -> Result<PublishedNumbers, PublishedError> {
        let file = || file.to_string();
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let columns: Vec<&str> = first.split(',').map(str::trim).collect();
        let bad = || PublishedError::Columns { file: file(), found: first.to_string() };
        let (mut systems, mut metrics): (Vec<String>, Vec<Metric>) = (Vec::new(), Vec::new());
        let mut places = Vec::new(); // column, system, metric
        for (column, name) in columns.iter().enumerate().filter(|(_, name)| !["dataset", "split"].contains(name)) {
            let (system, metric) = name.rsplit_once('_').ok_or_else(bad)?;
            let metric = Metric::parse(metric).ok_or_else(bad)?;
            if !systems.iter().any(|s| s == system) {
                systems.push(system.to_string());
            }
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
            places.push((column, system, metric));
        }
        let dataset = columns.iter().position(|c| *c == "dataset").filter(|_| !places.is_empty()).ok_or_else(bad)?;
        let mut rows = Vec::new();
        for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
            let row = |reason: String| PublishedError::Row { file: file(), line: number, reason };
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if cells.len() != columns.len() {
                return Err(row(format!("expected {} fields, found {}", columns.len(), cells.len())));
            }
            let mut values = vec![None; systems.len() * metrics.len()];
            for (column, system, metric) in &places {
                let cell = cells[*column];
                if !cell.is_empty() {
                    let value: f64 = cell.parse().map_err(|_| row(format!("expected a number, found {cell:?}")))?;
                    let at = |all: usize, of: Option<usize>| of.map_or(0, |i| i * all);
                    let metric = at(systems.len(), metrics.iter().position(|m| m == metric));
                    values[metric + at(1, systems.iter().position(|s| s == system))] = Some(value);
                }
            }
            rows.push((cells[dataset].to_string(), values));
        }
        Ok(PublishedNumbers { systems, metrics, rows })
    }

    /// The systems, in the file's order.
    pub fn systems(&self) -> &[String] {
        &self.systems
    }

    /// The datasets and the numbers of one system's MRR, in the file's order.
    pub fn mrr(&self, system: &str) -> Vec<(&str, f64)> {
        let column =
            self.metrics.iter().position(|m| *m == Metric::Mrr).zip(self.systems.iter().position(|s| s == system));
        let Some((metric, system)) = column else { return Vec::new() };
        let at = metric * self.systems.len() + system;
        self.rows.iter().filter_map(|(name, values)| Some((name.as_str(), values[at]?))).collect()
    }

    pub(crate) fn row(&self, dataset: &str) -> Option<&[Option<f64>]> {
        self.rows.iter().find(|(name, _)| name == dataset).map(|(_, values)| values.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_line_and_rule() {
        let error = |text: &str| PublishedNumbers::parse("p.csv", text).unwrap_err().to_string();
        assert!(error("dataset,mrr\n").starts_with("p.csv:1: expected columns dataset, split and system_metric"));
        assert!(error("").starts_with("p.csv:1:"));
        assert_eq!(error("dataset,a_mrr\nx,0.1\ny\n"), "p.csv:3: expected 2 fields, found 1");
        assert_eq!(error("dataset,a_mrr\nx,high\n"), "p.csv:2: expected a number, found \"high\"");
    }
}
