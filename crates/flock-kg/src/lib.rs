//! Flock: one model that predicts missing links in any knowledge graph.

pub mod base_walks;
pub mod checkpoint;
pub mod import;
