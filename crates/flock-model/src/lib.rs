//! The Flock model: weights and how they are kept, forward and backward passes, plain and fast.
//!
//! A query goes `walk → record → process → consensus`, once per update, and then each candidate gets a score: [`model`] is
//! that story, one short function. [`checkpoint`] has the weights on disk, [`ensemble`] asks several times and averages,
//! [`plain`] is the definition that the fast path is held to, [`step`] what training asks for.

pub mod base_walks;
pub mod bench;
pub mod checkpoint;
pub mod ensemble;
mod fast;
pub mod files;
pub mod hide;
pub mod import;
pub mod init;
mod name;
pub mod parameters;
pub mod plain;
pub mod step;

pub use fast::{backward as gradient, pass as model, update};
pub use name::ModelName;
