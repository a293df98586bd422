//! The paper's analyses.
//!
//! - [`passes`](mod@passes): MRR against passes and against walks.
//! - [`variants`]: ablations that need no retraining.
//! - [`embedding`]: relation embeddings in a plane.
//! - [`density`]: gain over another system against the density of graphs.

pub mod density;
pub mod embedding;
pub mod passes;
pub mod variants;

pub use passes::{Trial, once, passes};
pub use variants::{Variant, shortened, unweighted};
