//! What a pass is given: a graph to walk on and how walks are drawn; and why it may not fit.

use flock_graph::{Mask, Topology};
use flock_walk::{WalkOptions, WalkQuery};

use crate::metadata::Task;

/// Why a checkpoint or a query does not fit the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Sizes the kernels are not compiled for.
    #[error("the model has {name} {found}, this build runs {expected} only")]
    Size {
        /// What has the wrong size.
        name: &'static str,
        /// In the checkpoint.
        found: usize,
        /// In this build.
        expected: usize,
    },
    /// A relation query to an entity model, or the reverse.
    #[error("this is {article} {found} model: it cannot answer {asked}",
        article = if *.found == Task::Entity { "an" } else { "a" },
        asked = if *.found == Task::Entity { "(head, ?, tail)" } else { "(head, relation, ?)" })]
    Task {
        /// The model's task.
        found: Task,
    },
    /// A node or relation outside the graph.
    #[error("{what} {id} is outside the graph, which has {count}")]
    OutOfRange {
        /// "entity" or "type".
        what: &'static str,
        /// The id.
        id: u32,
        /// How many there are.
        count: u32,
    },
    /// Whoever asked has gone.
    #[error("stopped")]
    Stopped,
}

/// A graph to walk on, some of its edges perhaps hidden.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The graph.
    pub topology: &'a Topology,
    /// What is hidden from the walks.
    pub mask: Option<&'a Mask>,
}

/// How the walks of a pass are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Base walk count `n`.
    pub walks: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// Which pass of the ensemble.
    pub pass: u32,
    /// Switches; the length is the model's.
    pub options: WalkOptions,
}

/// Returns a number for a query that depends on nothing but the query: its walks are the same in any batch.
pub fn query_number(query: &WalkQuery) -> u64 {
    match *query {
        WalkQuery::Entity { head, relation } => u64::from(head) << 32 | u64::from(relation),
        WalkQuery::Relation { head, tail } => !(u64::from(head) << 32 | u64::from(tail)),
    }
}
