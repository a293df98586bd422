//! What several commands use.

#[macro_use]
mod say;

pub mod batch;
pub mod failure;
pub mod load;
pub mod models;
pub mod parse;
pub mod table;
pub mod training;
