//! The commands, a file for each: its arguments and what it does with them.

pub mod analyse;
pub mod calibrate;
pub mod datasets;
pub mod doctor;
pub mod eval;
pub mod explain;
pub mod finetune;
pub mod import;
pub mod info;
pub mod petals;
pub mod predict;
pub mod pretrain;
pub mod serve;
pub mod world;
