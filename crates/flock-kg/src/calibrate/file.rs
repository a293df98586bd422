//! Calibrations beside the graph they were made on: `GRAPH.calibration.json`, one for each task.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flock_graph::Topology;
use serde::{Deserialize, Serialize};

use super::Calibration;
use crate::answers::NotFinite;
use crate::checkpoint::Task;
use crate::model::ModelError;

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

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The graph gives too little to go by.
    #[error(
        "{found} candidates from held-out triples, expected at least {expected}: the graph has only {triples} triples; \
         hint: --queries, --top"
    )]
    TooFew {
        /// Candidates seen.
        found: usize,
        /// Candidates needed.
        expected: usize,
        /// Triples of the graph.
        triples: usize,
    },
    /// The question does not fit the model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's scores are no numbers.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error(
        "{file}: {what}, expected a calibration of version {VERSION}; hint: run calibrate again, or remove the file"
    )]
    Format {
        /// The file.
        file: String,
        /// What was found.
        what: String,
    },
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
        let path = Calibrations::path(graph);
        let file = path.display().to_string();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Calibrations::default()),
            Err(source) => return Err(CalibrationError::Io { file, source }),
        };
        let wrong = |what: String| CalibrationError::Format { file: file.clone(), what };
        let read: Calibrations = serde_json::from_str(&text).map_err(|e| wrong(format!("found {e}")))?;
        if read.version != VERSION {
            return Err(wrong(format!("found version {}", read.version)));
        }
        if ![&read.entity, &read.relation].into_iter().flatten().all(|c| c.map.is_sound()) {
            return Err(wrong("found a map that is not ascending within 0 and 1".to_string()));
        }
        Ok(read)
    }

    /// Writes the file beside a graph file, under a temporary name first.
    pub fn write(&self, graph: &Path) -> Result<PathBuf, CalibrationError> {
        let path = Calibrations::path(graph);
        let temporary = path.with_extension("json.tmp");
        let file = path.display().to_string();
        let io_error = |source| CalibrationError::Io { file: file.clone(), source };
        let text = serde_json::to_string_pretty(self).map_err(|e| io_error(e.into()))?;
        fs::write(&temporary, text + "\n").and_then(|()| fs::rename(&temporary, &path)).map_err(io_error)?;
        Ok(path)
    }

    /// The calibration of a task.
    pub fn of(&self, task: Task) -> Option<&Calibration> {
        self.slot(task).as_ref()
    }

    /// The calibration of a task, if it is of this model (by hash) and of about this graph.
    pub fn fitting(&self, task: Task, model: &str, topology: &Topology) -> Option<&Calibration> {
        self.of(task).filter(|c| c.model == model && c.is_of(topology))
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
