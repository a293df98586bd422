//! What every kind of run shares: its directory, what it is given to work with, what it tells while it works, how it fails.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use flock_eval::difference::difference;
use flock_kernels::Engine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Gradient;
use crate::data::DataError;
use crate::metrics::Record;
use crate::settings::{lay_over, to_json};
use crate::state::StateError;
use flock_eval::EvalError;
use flock_eval::datasets::DatasetError;
use flock_model::bench::MACS_PER_POSITION;
use flock_model::checkpoint::{Checkpoint, CheckpointError, Task, TensorError};
use flock_model::model::ModelError;

/// The value of `model.from` that names a bundled model.
pub const BUNDLED: &str = "bundled";

/// What a run works with. None of it changes the result but the engine's instruction set, which rounds in its own way.
pub struct RunContext<'a> {
    /// Whoever computes gradients.
    pub gradient: &'a mut dyn Gradient,
    /// For the forward passes of validation and tests.
    pub engine: Engine,
    /// Their threads.
    pub pool: &'a rayon::ThreadPool,
    /// This machine's multiply-add peak, if speed is to be told as a ratio.
    pub peak_gflops: Option<f64>,
    /// A run without a state to go on from is an error.
    pub resume: bool,
    /// The models that ship with the program, if it has some: what [`BUNDLED`] names.
    pub bundled: Option<fn(Task) -> Checkpoint>,
    /// Set from outside, it ends the run after the step at hand; the run can be resumed.
    pub stop: &'a AtomicBool,
    /// Told what happens.
    pub watch: &'a mut dyn FnMut(Event<'_>),
}

/// What happens in a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Everything is loaded.
    Started {
        /// What the run is, a line each.
        about: &'a [String],
        /// The steps that a state had done.
        resumed: Option<u64>,
    },
    /// A step was done.
    Step(Progress),
    /// A validation or test goes on.
    Testing {
        /// Questions done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// A line was logged.
    Logged(&'a Record),
    /// Something worth saying.
    Note(&'a str),
}

/// How far a run is.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Of so many.
    pub steps: u64,
    /// Mean loss since the last logged line.
    pub loss: f64,
    /// Steps per second, lately.
    pub steps_per_s: f64,
    /// Useful multiply-adds over the machine's peak, lately.
    pub ratio: Option<f64>,
    /// Time left at this speed.
    pub left: Duration,
}

/// Why a run cannot start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Graphs with nothing to ask.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A model that does not fit.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A validation.
    #[error("validation: {0}")]
    Eval(#[from] EvalError),
    /// A checkpoint to start from, or to write.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Weights that no checkpoint can hold.
    #[error(transparent)]
    Tensors(#[from] TensorError),
    /// A training state.
    #[error(transparent)]
    State(#[from] StateError),
    /// A checkpoint to start from that contradicts the config.
    #[error("{file}: {reason}")]
    Start {
        /// The checkpoint.
        file: String,
        /// What does not fit.
        reason: String,
    },
    /// Some other file of the run.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// NaN or infinity.
    #[error(
        "step {step}: the {what} of {query} on {graph} is NaN or infinite; nothing after step {before} is kept; \
         hint: a lower optimiser.rate, or optimiser.clip = 1", before = step - 1
    )]
    NotFinite {
        /// The step, counted from 1.
        step: u64,
        /// "loss" or "gradient".
        what: &'static str,
        /// The graph.
        graph: String,
        /// The question that caused it.
        query: String,
    },
    /// The config is not the one that the state was made with.
    #[error(
        "{dir}: the run there has {key} = {old}, this one {key} = {new}; hint: the same value to go on with it, \
         or another directory (--out)"
    )]
    Changed {
        /// The run's directory.
        dir: String,
        /// The first key that differs.
        key: String,
        /// Its value in the state.
        old: Value,
        /// Its value now.
        new: Value,
    },
    /// A training graph is not the one that the state was made with.
    #[error(
        "{dir}: the run there was trained on {old}, now there is {new}; hint: the same graphs, or another directory (--out)"
    )]
    OtherGraph {
        /// The run's directory.
        dir: String,
        /// The graphs of the state.
        old: String,
        /// The graphs now.
        new: String,
    },
    /// Nothing to resume.
    #[error("{dir}: no training state to resume; hint: leave out --resume to start a run there")]
    NoState {
        /// The run's directory.
        dir: String,
    },
    /// Files that a run would overwrite.
    #[error("{dir} has {file} but no training state: it belongs to something else; hint: another directory (--out)")]
    Foreign {
        /// The run's directory.
        dir: String,
        /// The file.
        file: &'static str,
    },
    /// Another process works there.
    #[error("{dir}: another run is writing there; hint: wait for it, or another directory (--out)")]
    Locked {
        /// The run's directory.
        dir: String,
    },
}

/// Error of a file of the run.
pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> TrainError {
    let file = path.display().to_string();
    move |source| TrainError::Io { file, source }
}

/// The directory of a run, locked for as long as this value lives.
pub(crate) struct RunDir {
    path: PathBuf,
    _lock: File,
}

impl RunDir {
    /// Makes the directory if need be, and clears away what a killed run was writing.
    pub fn open(path: &Path, resume: bool) -> Result<RunDir, TrainError> {
        let dir = path.display().to_string();
        if resume && !path.join("state").is_file() {
            return Err(TrainError::NoState { dir });
        }
        fs::create_dir_all(path).map_err(io_error(path))?;
        let lock_path = path.join(".lock");
        let lock = File::create(&lock_path).map_err(io_error(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TrainError::Locked { dir }),
            Err(TryLockError::Error(e)) => return Err(io_error(&lock_path)(e)),
        }
        let run = RunDir { path: path.to_path_buf(), _lock: lock };
        for entry in fs::read_dir(path).map_err(io_error(path))?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') && name.ends_with(".tmp") {
                let _ = fs::remove_file(entry.path());
            }
        }
        if !run.has_state() {
            for file in ["best.safetensors", "last.safetensors", "ema.safetensors", "metrics.jsonl"] {
                // An empty log is what a run leaves that could not write its first state.
                if fs::metadata(run.file(file)).is_ok_and(|m| m.len() > 0) {
                    return Err(TrainError::Foreign { dir, file });
                }
            }
        }
        Ok(run)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.file("state")
    }

    pub fn has_state(&self) -> bool {
        self.state().is_file()
    }

    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Refuses a config that differs from the state's in a key that is not `free`. A state from before a key existed was made
    /// with that key's default.
    pub fn check_config<C: Serialize + Default>(&self, old: &Value, new: &C, free: &[&str]) -> Result<(), TrainError> {
        let mut filled = to_json(&C::default());
        lay_over(&mut filled, old);
        match difference(&filled, &to_json(new), free) {
            None => Ok(()),
            Some((key, old, new)) => Err(TrainError::Changed { dir: self.name(), key, old, new }),
        }
    }
}

/// Losses since the last logged line. Part of the state, so that a resumed run logs the same means.
#[derive(Copy, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub sum: f64,
    pub count: u64,
}

impl Pending {
    pub fn add(&mut self, loss: f64) {
        self.sum += loss;
        self.count += 1;
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

/// Multiply-adds of a training step, forward and twice that backward, by the model's definition.
pub(crate) fn useful_macs(walks: usize, length: usize, updates: usize) -> u64 {
    3 * MACS_PER_POSITION * (walks * length * updates) as u64
}

/// Time and work.
pub(crate) struct Meter {
    before: f64, // seconds of earlier sittings
    started: Instant,
    peak_gflops: Option<f64>,
    since_log: Work,
    lately: Work, // fading, about the last twenty steps
}

#[derive(Default)]
struct Work {
    seconds: f64,
    steps: f64,
    macs: f64,
}

impl Meter {
    pub fn new(before: f64, peak_gflops: Option<f64>) -> Meter {
        Meter { before, started: Instant::now(), peak_gflops, since_log: Work::default(), lately: Work::default() }
    }

    /// Seconds of the run so far.
    pub fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    pub fn step(&mut self, took: Duration, macs: u64) {
        for (work, fade) in [(&mut self.since_log, 1.0), (&mut self.lately, 0.95)] {
            work.seconds = fade * work.seconds + took.as_secs_f64();
            work.steps = fade * work.steps + 1.0;
            work.macs = fade * work.macs + macs as f64;
        }
    }

    fn ratio(&self, work: &Work) -> Option<f64> {
        self.peak_gflops.filter(|_| work.seconds > 0.0).map(|peak| 2.0 * work.macs / work.seconds / 1e9 / peak)
    }

    pub fn progress(&self, step: u64, steps: u64, loss: f64) -> Progress {
        let per_step = self.lately.seconds / self.lately.steps.max(1.0);
        Progress {
            step,
            steps,
            loss,
            steps_per_s: if per_step > 0.0 { 1.0 / per_step } else { 0.0 },
            ratio: self.ratio(&self.lately),
            left: Duration::try_from_secs_f64(per_step * (steps - step) as f64).unwrap_or(Duration::MAX),
        }
    }

    /// Speed since the last call.
    pub fn speed(&mut self) -> (Option<f64>, Option<f64>) {
        let work = std::mem::take(&mut self.since_log);
        ((work.seconds > 0.0).then(|| work.steps / work.seconds), self.ratio(&work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PetalsConfig;

    #[test]
    fn a_key_that_came_later_had_its_default() {
        let place = tempfile::tempdir().unwrap();
        let dir = RunDir::open(place.path(), false).unwrap();
        let mut old = to_json(&PetalsConfig::default());
        old.as_object_mut().unwrap().remove("inverses");
        old["optimiser"].as_object_mut().unwrap().remove("precision");
        dir.check_config(&old, &PetalsConfig::default(), &[]).unwrap();
        let new = PetalsConfig { inverses: true, ..PetalsConfig::default() };
        let error = dir.check_config(&old, &new, &[]).unwrap_err().to_string();
        assert!(error.contains("the run there has inverses = false, this one inverses = true"), "{error}");
        dir.check_config(&old, &new, &["inverses"]).unwrap();
    }
}
