//! What several commands use.

#[macro_use]
mod say;

pub mod batch;
pub mod calibrations;
pub mod failure;
pub mod interrupt;
pub mod load;
pub mod models;
pub mod output;
pub mod parse;
pub mod progress;
pub mod protocol;
pub mod published;
pub mod sheet;
pub mod table;
pub mod training;
