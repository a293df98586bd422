//! Training: questions from graphs, a gradient, a step of the optimiser, and a run that survives
//! being killed.
//!
//! Any [`Gradient`] can be trained with. The rooms:
//!
//! - [`config`]: the config of a run. [`settings`]: values from files and callers, laid over its
//!   defaults.
//! - `finetuning`: the published fine-tuning of a dataset, as a config.
//! - [`data`]: the questions of each step.
//! - `trainer`: pretraining and fine-tuning, [`train()`] and [`train_on`]. `start`: its first weights.
//!   [`petals`](mod@petals): runs on Petals.
//! - `learner`: a step of the optimiser, with [`optimise`]. `validate`: the validation MRR.
//! - `run`: what every run shares. [`state`]: the file from which a killed run resumes.
//! - [`metrics`]: the log of a run. [`curve`]: its chart.

pub mod config;
pub mod curve;
pub mod data;
mod finetuning;
mod learner;
pub mod metrics;
pub mod optimise;
pub mod petals;
mod remedy;
mod run;
pub mod settings;
mod start;
pub mod state;
mod trainer;
mod validate;

pub use config::TrainConfig;
pub use finetuning::{PublishedRun, departures, published_finetuning};
pub use flock_eval::datasets::{DatasetError, Fingerprint, TrainingGraph, training_graph};
pub use flock_model::plain::PlainGradient;
pub use flock_model::step::{BaseLoss, Example, Gradient, Loss, StepInput, StepOutput};
pub use petals::{MARGIN, PetalsConfig, PetalsProtocol, PetalsReport, PetalsTest, petals, test_petals};
pub use remedy::TrainRemedy;
pub use run::{BUNDLED, Event, RunContext, StepProgress, TrainError};
pub use settings::{ConfigError, Settings};
pub use state::StateError;
pub use trainer::{BestValidation, TrainSummary, train, train_on};

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
