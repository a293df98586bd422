//! Measures time, work and loss of a run, for progress and log lines.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::context::StepProgress;
use flock_model::checkpoint::Metadata;

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
pub(crate) fn useful_macs(meta: &Metadata, walks: usize) -> u64 {
    3 * meta.macs_per_position() * (walks * meta.length * meta.updates) as u64
}

/// Measures the speed of a run.
pub(crate) struct Meter {
    before: f64, // seconds before the run was resumed
    started: Instant,
    limit: Option<f64>, // seconds after which the run ends
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
    pub fn new(before: f64, limit: Option<f64>, peak_gflops: Option<f64>) -> Meter {
        Meter {
            before,
            started: Instant::now(),
            limit,
            peak_gflops,
            since_log: MeteredWork::default(),
            recent: MeteredWork::default(),
        }
    }

    /// Returns the seconds of the run so far.
    pub fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    /// Returns whether the time of the run is used up.
    pub fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.seconds() >= limit)
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
        let time = self.limit.map_or(f64::INFINITY, |limit| (limit - self.seconds()).max(0.0));
        let left = (per_step * (steps - step) as f64).min(time);
        let steps = match left < time {
            true => steps,
            false => steps.min(step + (time / per_step).ceil() as u64),
        };
        StepProgress {
            step,
            steps,
            loss,
            steps_per_s: if per_step > 0.0 { 1.0 / per_step } else { 0.0 },
            ratio: self.ratio(&self.recent),
            left: Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX),
        }
    }

    /// Returns steps per second and ratio to the peak since the last call.
    pub fn speed(&mut self) -> (Option<f64>, Option<f64>) {
        let work = std::mem::take(&mut self.since_log);
        ((work.seconds > 0.0).then(|| work.steps / work.seconds), self.ratio(&work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_which_end_comes_first() {
        let meter = |before, limit| {
            let mut meter = Meter::new(before, limit, None);
            meter.step(Duration::from_secs(1000), 1);
            meter
        };
        // A step takes 1000 s, and 9 are left.
        let progress = meter(0.0, None).progress(1, 10, 0.0);
        assert_eq!((progress.steps, progress.left.as_secs()), (10, 9000));
        let progress = meter(0.0, Some(1e9)).progress(1, 10, 0.0);
        assert_eq!((progress.steps, progress.left.as_secs()), (10, 9000));
        // 4500 s are left, which the fifth step from here uses up; the test itself does not take 500.
        let progress = meter(500.0, Some(5000.0)).progress(1, 10, 0.0);
        assert_eq!(progress.steps, 6);
        assert!(progress.left <= Duration::from_secs(4500) && !meter(500.0, Some(5000.0)).is_over());
        // The time is over: this was the last step.
        let over = meter(500.0, Some(500.0));
        let progress = over.progress(1, 10, 0.0);
        assert!(over.is_over() && progress.steps == 1 && progress.left.is_zero());
    }
}
