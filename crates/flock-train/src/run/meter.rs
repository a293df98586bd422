//! Measures time, work and loss of a run, for progress and log lines.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::context::StepProgress;
use flock_model::bench::MACS_PER_POSITION;

/// The mean loss since the last line of the log. It is part of the state, so that a resumed run
/// logs the same means.
#[derive(Copy, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RunningLoss {
    pub sum: f64,
    pub count: u64,
}

impl RunningLoss {
    pub fn add(&mut self, loss: f64) {
        self.sum += loss;
        self.count += 1;
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

/// Returns the multiply-adds of a training step by the model's definition: forward, and twice that
/// backward.
pub(crate) fn useful_macs(walks: usize, length: usize, updates: usize) -> u64 {
    3 * MACS_PER_POSITION * (walks * length * updates) as u64
}

/// Measures the speed of a run.
pub(crate) struct Meter {
    before: f64, // seconds before the run was resumed
    started: Instant,
    peak_gflops: Option<f64>,
    since_log: MeteredWork,
    recent: MeteredWork, // fading, about the last twenty steps
}

/// Time, steps and multiply-adds.
#[derive(Default)]
struct MeteredWork {
    seconds: f64,
    steps: f64,
    macs: f64,
}

impl Meter {
    pub fn new(before: f64, peak_gflops: Option<f64>) -> Meter {
        Meter {
            before,
            started: Instant::now(),
            peak_gflops,
            since_log: MeteredWork::default(),
            recent: MeteredWork::default(),
        }
    }

    /// Returns the seconds of the run so far.
    pub fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    pub fn step(&mut self, took: Duration, macs: u64) {
        for (work, fade) in [(&mut self.since_log, 1.0), (&mut self.recent, 0.95)] {
            work.seconds = fade * work.seconds + took.as_secs_f64();
            work.steps = fade * work.steps + 1.0;
            work.macs = fade * work.macs + macs as f64;
        }
    }

    fn ratio(&self, work: &MeteredWork) -> Option<f64> {
        self.peak_gflops.filter(|_| work.seconds > 0.0).map(|peak| 2.0 * work.macs / work.seconds / 1e9 / peak)
    }

    pub fn progress(&self, step: u64, steps: u64, loss: f64) -> StepProgress {
        let per_step = self.recent.seconds / self.recent.steps.max(1.0);
        StepProgress {
            step,
            steps,
            loss,
            steps_per_s: if per_step > 0.0 { 1.0 / per_step } else { 0.0 },
            ratio: self.ratio(&self.recent),
            left: Duration::try_from_secs_f64(per_step * (steps - step) as f64).unwrap_or(Duration::MAX),
        }
    }

    /// Returns steps per second and ratio to the peak since the last call.
    pub fn speed(&mut self) -> (Option<f64>, Option<f64>) {
        let work = std::mem::take(&mut self.since_log);
        ((work.seconds > 0.0).then(|| work.steps / work.seconds), self.ratio(&work))
    }
}
