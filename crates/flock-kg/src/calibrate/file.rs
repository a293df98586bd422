//! Calibrations beside the graph they were made on: `GRAPH.calibration.json`, one for each task.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Calibration;
use crate::error::CalibrationError;
use flock_model::checkpoint::Task;
use flock_model::files::write_atomically;

const VERSION: u32 = 1;

/// The calibrations of one graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibrations {
    version: u32,
    /// Of an entity model.
    pub entity: Option<Calibration>,
    /// Of a relation model.
    pub relation: Option<Calibration>,
}

impl Default for Calibrations {
    fn default() -> Calibrations {
        Calibrations { version: VERSION, entity: None, relation: None }
    }
}

impl Calibrations {
    /// Where the calibrations of a graph file are.
    pub fn path(graph: &Path) -> PathBuf {
        let mut name = graph.as_os_str().to_owned();
        name.push(".calibration.json");
        PathBuf::from(name)
    }

    /// Reads what is beside a graph file; nothing if there is no such file.
    pub fn read(graph: &Path) -> Result<Calibrations, CalibrationError> {
        match Calibrations::read_file(&Calibrations::path(graph)) {
            Err(CalibrationError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Calibrations::default())
            }
            read => read,
        }
    }

    /// Reads a file of calibrations, wherever it is.
    pub fn read_file(path: &Path) -> Result<Calibrations, CalibrationError> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| CalibrationError::Io { file: file.clone(), source })?;
        Calibrations::from_text(&file, &text)
    }

    /// Reads the text of a file. `file` is its name in errors.
    pub fn from_text(file: &str, text: &str) -> Result<Calibrations, CalibrationError> {
        let wrong = |what: String| CalibrationError::Format { file: file.to_string(), what };
        let read: Calibrations = serde_json::from_str(text).map_err(|e| wrong(format!("found {e}")))?;
        if read.version != VERSION {
            return Err(wrong(format!("found version {}", read.version)));
        }
        if ![&read.entity, &read.relation].into_iter().flatten().all(|c| c.map.is_sound()) {
            return Err(wrong("found a map that is not ascending within 0 and 1".to_string()));
        }
        Ok(read)
    }

    /// The text of a file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("string keys and plain values are always JSON") + "\n"
    }

    /// Writes a file, whole or not at all: under a temporary name, flushed, renamed.
    pub fn write(&self, path: &Path) -> Result<(), CalibrationError> {
        write_atomically(path, self.to_text().as_bytes())
            .map_err(|source| CalibrationError::Io { file: path.display().to_string(), source })
    }

    /// The calibration of a task.
    pub fn of(&self, task: Task) -> Option<&Calibration> {
        self.slot(task).as_ref()
    }

    /// Keeps a calibration of a task in place of an older one.
    pub fn set(&mut self, task: Task, calibration: Calibration) {
        match task {
            Task::Entity => self.entity = Some(calibration),
            Task::Relation => self.relation = Some(calibration),
        }
    }

    fn slot(&self, task: Task) -> &Option<Calibration> {
        match task {
            Task::Entity => &self.entity,
            Task::Relation => &self.relation,
        }
    }
}
