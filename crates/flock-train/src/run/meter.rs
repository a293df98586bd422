//! Time, work and loss of a run: what progress and log lines are made from.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::context::Progress;
use flock_model::bench::MACS_PER_POSITION;

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
