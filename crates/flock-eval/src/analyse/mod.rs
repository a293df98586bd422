//! The paper's analyses.
//!
//! - [`passes`](mod@passes): MRR against passes and against walks.
//! - [`variants`]: ablations that need no retraining.
//! - [`embedding`]: relation embeddings in a plane.
//! - [`density`]: gain over another system against the density of graphs.
//! - [`frontier`]: MRR against time, beside other systems.
//!
//! What they find is a [`Finding`]: a table and a picture.

pub mod density;
pub mod embedding;
pub mod finding;
pub mod frontier;
pub mod passes;
pub mod variants;

pub use finding::{Finding, Trials, curves, trial_sheet, variant_bars};
pub use passes::{Trial, once, passes};
pub use variants::{Variant, shortened, unweighted};
