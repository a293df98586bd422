//! Training: questions from graphs, a gradient, a step of the optimiser, and a run that survives being killed.
//!
//! What one step is made of stands here; whoever can compute a [`Gradient`] can train. Around it:
//!
//! - [`config`]: what a run is; [`settings`]: from files and flags to a config.
//! - [`train`]: pretraining and fine-tuning; [`petals`]: the Petals protocol.
//! - `learner`: a step of the optimiser; `validate`: MRR, as in [`eval`](flock_eval).
//! - [`state`]: what a killed run goes on from; [`metrics`] and [`curve`]: what it tells.

pub mod config;
pub mod curve;
pub mod data;
mod learner;
pub mod metrics;
pub mod optimise;
pub mod petals;
mod run;
pub mod settings;
pub mod state;
mod trainer;
mod validate;

pub use config::{PetalsConfig, PetalsProtocol, TrainConfig};
pub use flock_eval::datasets::{DatasetError, Fingerprint};
pub use flock_model::plain_step::PlainGradient;
pub use flock_model::step::{BaseLoss, Example, Gradient, Loss, StepInput, StepOutput};
pub use petals::{MARGIN, PetalsReport, petals};
pub use run::{BUNDLED, Event, Progress, RunContext, TrainError};
pub use settings::{ConfigError, Settings};
pub use state::StateError;
pub use trainer::{Best, Summary, train};

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
