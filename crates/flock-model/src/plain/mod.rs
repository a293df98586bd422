//! The definition of the model in plain loops: slow, simple, and what the fast one is held to.

mod backward;
mod forward;
mod step;

pub use backward::backward;
pub(crate) use backward::{add, query_rows_backward};
pub(crate) use forward::query_rows;
pub use forward::{ForwardCache, LayerInputs, PlainStates, forward, initial_states, scores, update};
pub use step::PlainGradient;
