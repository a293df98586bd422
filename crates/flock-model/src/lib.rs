//! The Flock model: weights and how they are kept, forward and backward passes, plain and fast.
//!
//! A query goes `walk → record → process → consensus`, once per update, and then each candidate gets a score: [`model`] is
//! that story, one short function. [`checkpoint`] has the weights on disk, [`ensemble`] asks several times and averages,
//! [`plain`] is the definition that the fast path is held to, [`step`] what training asks for.

pub mod base_walks;
pub mod bench;
pub mod checkpoint;
pub mod ensemble;
pub mod files;
pub mod gradient;
pub mod hide;
pub mod import;
pub mod init;
pub mod model;
mod name;
pub mod parameters;
pub mod plain;
pub mod plain_gradient;
pub mod plain_step;
pub mod step;
pub mod update;

pub use name::ModelName;

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
