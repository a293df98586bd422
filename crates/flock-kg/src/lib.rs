//! Flock: one model that predicts missing links in any knowledge graph.

pub mod answers;
pub mod budget;
#[cfg(feature = "bundled")]
pub mod bundled;
pub mod calibrate;
pub mod explain;
pub mod question;

#[cfg(feature = "eval")]
pub use flock_eval as eval;
#[cfg(feature = "eval")]
pub use flock_eval::{chart as plot, datasets};
pub use flock_graph as graph;
pub use flock_kernels as kernels;
pub use flock_model::{base_walks, bench, checkpoint, ensemble, gradient, import, init, model, plain, update, weights};
#[cfg(feature = "train")]
pub use flock_train as train;
#[cfg(feature = "train")]
pub use flock_train::{data, petals};
pub use flock_walk as walk;
