//! The Flock model: weights and how they are kept, forward and backward passes, plain and fast.
//!
//! A query goes `walk → record → process → consensus`, once per update, and then each candidate gets a
//! score: [`model`] is that story, one short function. [`tensors`] is the table of a model's tensors,
//! [`weights`] their values, [`checkpoint`] both on disk. [`processor`] has what reads a walk,
//! [`ensemble`] asks several times and averages, [`plain`] is the definition that the fast path is held
//! to, [`step`] what training asks for. Modules depend on each other one way only, from the bottom:
//!
//! ```text
//! processor ← metadata ← tensors ← weights ← checkpoint ← import, init ← widen
//!             input ← step ← plain ← fast (model, update, gradient) ← ensemble ← bench
//! ```

pub mod base_walks;
pub mod bench;
pub mod checkpoint;
pub mod ensemble;
mod fast;
pub mod files;
mod half;
pub mod hide;
pub mod import;
pub mod init;
mod initialiser;
pub mod input;
pub mod metadata;
mod name;
pub mod plain;
pub mod processor;
pub mod step;
pub mod tensors;
pub mod weights;
mod widen;

pub use checkpoint::Checkpoint;
pub use fast::pass::{Model, PassBuffers, PassScores};
pub use fast::{backward as gradient, pass as model, update};
pub use input::{Draw, ModelError, SizeError, View};
pub use metadata::{Averaging, Metadata, ProcessorKind, Task};
pub use name::ModelName;
pub use update::Parallelism;
pub use weights::Weights;

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
