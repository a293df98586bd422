//! `metrics.jsonl`: one JSON object per line, in the order of steps. A resumed run first removes
//! the lines that were logged after its state.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use flock_model::files::write_atomically;

/// A line of the log: an interval of training, or a validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// Steps done.
    pub step: u64,
    /// Seconds of the run so far, over all starts and resumptions.
    pub seconds: f64,
    /// Mean loss since the last such line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Learning rate of the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Norm of the last step's gradient, before clipping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm: Option<f64>,
    /// Steps per second of training since the last such line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_per_s: Option<f64>,
    /// Useful multiply-adds over the machine's peak, in the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Validation MRR, mean over graphs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mrr: Option<f64>,
    /// Validation MRR of each graph.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub graphs: BTreeMap<String, f64>,
}

/// The log, open for more lines.
pub(crate) struct MetricsLog {
    file: File,
    /// Number of lines, which a state keeps.
    pub lines: usize,
}

impl MetricsLog {
    /// Opens the log and drops all lines after the first `lines`, which are those that the state
    /// knows.
    pub fn resume(path: &Path, lines: usize) -> io::Result<MetricsLog> {
        let kept: Vec<LogLine> = read(path)?.into_iter().take(lines).collect();
        let text = kept.iter().map(line).collect::<io::Result<String>>()?;
        write_atomically(path, text.as_bytes())?;
        Ok(MetricsLog { file: OpenOptions::new().append(true).open(path)?, lines: kept.len() })
    }

    pub fn append(&mut self, entry: &LogLine) -> io::Result<()> {
        self.file.write_all(line(entry)?.as_bytes())?;
        self.lines += 1;
        Ok(())
    }

    /// Flushes to disk what has been appended, before a state refers to it.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn line(entry: &LogLine) -> io::Result<String> {
    Ok(serde_json::to_string(entry)? + "\n")
}

/// Reads all lines up to the first that cannot be parsed, such as one that a full disk cut short.
/// Without a file there are none.
pub fn read(path: &Path) -> io::Result<Vec<LogLine>> {
    match std::fs::read(path) {
        // Bytes: the cut may be inside a character.
        Ok(bytes) => {
            let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            Ok(lines.map_while(|line| serde_json::from_slice(line).ok()).collect())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_the_state_and_broken_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let record = |step| LogLine { step, loss: Some(0.5), ..LogLine::default() };
        let mut metrics = MetricsLog::resume(&path, 0).unwrap();
        (1..=5).for_each(|step| metrics.append(&record(step)).unwrap());
        let mut metrics = MetricsLog::resume(&path, 3).unwrap();
        assert_eq!(read(&path).unwrap(), [1, 2, 3].map(record));
        metrics.append(&record(4)).unwrap();
        metrics.file.write_all(b"{\"step\":5,\"lo").unwrap();
        let mut metrics = MetricsLog::resume(&path, 9).unwrap();
        assert_eq!(read(&path).unwrap(), [1, 2, 3, 4].map(record));
        metrics.file.write_all(b"{\"step\":5,\"graphs\":{\"gr\xc3").unwrap();
        MetricsLog::resume(&path, 9).unwrap();
        assert_eq!(read(&path).unwrap(), [1, 2, 3, 4].map(record));
    }
}
