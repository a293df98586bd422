//! Flock: one model that predicts missing links in any knowledge graph.
//!
//! A query goes `walk → record → process → consensus`, six times, and then each candidate gets a score: [`model`] is that
//! story, one short function. [`checkpoint`] has the weights, [`ensemble`] asks several times and averages,
//! [`plain`] is the definition that the fast path is held to.

pub mod answers;
pub mod base_walks;
pub mod bench;
pub mod budget;
pub mod bundled;
pub mod calibrate;
pub mod checkpoint;
pub mod data;
pub mod datasets;
pub mod ensemble;
pub mod eval;
pub mod explain;
pub mod gradient;
pub mod import;
pub mod init;
pub mod model;
pub mod optimise;
pub mod parameters;
pub mod petals;
pub mod plain;
pub mod plain_gradient;
pub mod plot;
pub mod question;
pub mod train;
pub mod update;

pub use flock_graph as graph;
pub use flock_kernels as kernels;
pub use flock_walk as walk;
