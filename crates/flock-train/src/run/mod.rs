//! What every kind of run shares: its directory, what it works with, what it tells, how it is
//! measured and how it fails.

mod context;
mod error;
mod meter;
mod run_dir;

pub use context::{BUNDLED, Event, RunContext, StepProgress};
pub use error::TrainError;
pub(crate) use error::io_error;
pub(crate) use meter::{Meter, RunningLoss, useful_macs};
pub(crate) use run_dir::RunDir;
