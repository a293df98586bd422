//! The fast model: packed weights, blocks of walks, every instruction set; forward and back. Held to
//! [`plain`](crate::plain).

pub mod backward;
pub mod pass;
pub mod update;
