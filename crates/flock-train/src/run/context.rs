//! What a run is given to work with, and what it tells while it works.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use flock_kernels::Engine;

use crate::metrics::Record;
use flock_model::checkpoint::{Checkpoint, Task};
use flock_model::step::Gradient;

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
