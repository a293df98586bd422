//! What a pass is given: a graph to walk on and how walks are drawn; and why it may not fit.

use flock_graph::{Mask, Topology};
use flock_kernels::{HEAD_WIDTHS, WIDTHS, has_heads, has_width};
use flock_walk::{WalkOptions, WalkQuery};

use crate::metadata::{Metadata, Task};

/// Why a checkpoint or a query does not fit the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Sizes the kernels are not compiled for.
    #[error("{0}")]
    Size(SizeError),
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

/// A size that no kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// The width.
    #[error("the model has width {found}; this build runs widths {}", listed(&WIDTHS))]
    Width {
        /// The width it has.
        found: usize,
    },
    /// The consensus heads.
    #[error(
        "the model has {found} consensus heads, slices of {}; at width {width} this build runs {} heads (slices of {})",
        *width as f64 / *found as f64,
        listed(&HEAD_WIDTHS.map(|slice| width / slice)),
        listed(&HEAD_WIDTHS)
    )]
    Heads {
        /// The heads it has.
        found: usize,
        /// The width it has.
        width: usize,
    },
}

impl SizeError {
    /// Refuses sizes that no kernel is compiled for.
    pub fn check(meta: &Metadata) -> Result<(), SizeError> {
        let (width, found) = (meta.width, meta.heads);
        if !has_width(width) {
            return Err(SizeError::Width { found: width });
        }
        if !has_heads(width, found) {
            return Err(SizeError::Heads { found, width });
        }
        Ok(())
    }
}

/// Lists numbers in words: "1, 2 or 3".
fn listed(numbers: &[usize]) -> String {
    let words: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
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
