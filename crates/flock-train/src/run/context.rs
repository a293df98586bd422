//! What a run works with, and the events that it reports.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use flock_kernels::Engine;

use crate::metrics::LogLine;
use flock_model::checkpoint::{Checkpoint, Task};
use flock_model::step::Gradient;

/// The value of `model.from` that stands for a bundled model.
pub const BUNDLED: &str = "bundled";

/// What a run works with. Nothing here changes the result, except the weights it starts from and the
/// engine's instruction set, which may round differently.
pub struct RunContext<'a> {
    /// Computes gradients.
    pub gradient: &'a mut dyn Gradient,
    /// Engine for the forward passes of validation and tests.
    pub engine: Engine,
    /// Threads for validation and tests.
    pub pool: &'a rayon::ThreadPool,
    /// Multiply-add peak of this machine, if speed is reported as a ratio.
    pub peak_gflops: Option<f64>,
    /// Whether a directory without a state to resume from is an error.
    pub resume: bool,
    /// The models that [`BUNDLED`] stands for, if the program has any.
    pub bundled: Option<fn(Task) -> Checkpoint>,
    /// Weights in memory to start from, in place of those that `model.from` names. A run is resumed
    /// with the same ones. Runs on Petals start from new weights.
    pub start: Option<&'a Checkpoint>,
    /// When set, the run ends after the current step. It can be resumed.
    pub stop: &'a AtomicBool,
    /// Receives the events.
    pub watch: &'a mut dyn FnMut(Event<'_>),
}

/// An event of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run has loaded everything.
    Started {
        /// Description of the run, a line each.
        about: &'a [String],
        /// Steps done before, if the run was resumed.
        resumed: Option<u64>,
    },
    /// A step is done.
    Step(StepProgress),
    /// A part of a validation or test is done.
    Testing {
        /// Questions done.
        done: usize,
        /// Questions in total.
        total: usize,
    },
    /// A line was written to the log.
    Logged(&'a LogLine),
    /// A note for the user.
    Note(&'a str),
}

/// Progress of a run after a step.
#[derive(Copy, Clone, Debug)]
pub struct StepProgress {
    /// Steps done.
    pub step: u64,
    /// Steps in total. An estimate if the run's time is expected to end before its steps.
    pub steps: u64,
    /// Mean loss since the last logged line.
    pub loss: f64,
    /// Recent steps per second.
    pub steps_per_s: f64,
    /// Recent useful multiply-adds over the machine's peak.
    pub ratio: Option<f64>,
    /// Estimated time left.
    pub left: Duration,
}
