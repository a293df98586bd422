//! The definition of the model in plain loops: slow, simple, and what the fast one is held to.

pub mod backward;
pub mod forward;
pub mod step;

pub use forward::*;
pub use step::PlainGradient;
