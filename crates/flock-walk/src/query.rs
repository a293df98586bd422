//! What is asked, and the switches of section 11 that concern walks.

use flock_graph::{NodeId, TypeId};

/// A question to the graph.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WalkQuery {
    /// (head, relation, ?): `n` walks from the head, `n` from random nodes, `n` from balanced edges, in this order.
    Entity {
        /// The query's node.
        head: NodeId,
        /// The query's type; an inverse type asks for heads.
        relation: TypeId,
    },
    /// (head, ?, tail): `n` walks each from the head, the tail, random nodes and balanced edges, in this order.
    Relation {
        /// The query's first node.
        head: NodeId,
        /// The query's second node.
        tail: NodeId,
    },
}

impl WalkQuery {
    /// How many walks base count `n` means: `3n` for an entity query, `4n` for a relation query.
    pub fn num_walks(&self, n: u32) -> usize {
        n as usize
            * match self {
                WalkQuery::Entity { .. } => 3,
                WalkQuery::Relation { .. } => 4,
            }
    }
}

/// How walks are drawn. The default is the published model's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WalkOptions {
    /// Positions `L` of a walk, the start included.
    pub length: usize,
    /// Updates of a pass. Balanced starts take edges without replacement over the updates and passes of a query, so they need
    /// to know how many updates came before this one.
    pub updates: u32,
    /// Whether a walk may step straight back although another neighbour exists.
    pub backtrack: bool,
    /// All walks start at the query's nodes: `3n` at the head, or `2n` each at head and tail, in turns of `n`.
    pub all_at_query: bool,
    /// Balanced walks start on edges of the query's own type only. Without such an edge, and in relation queries, no change.
    pub balanced_on_query_relation: bool,
    /// Whether the walked graph has its inverse types. Without them a step is named by its relation alone, along or against
    /// it, and balanced walks start along relations only: what the published Petals protocol asks for.
    pub inverses: bool,
    /// Chance, in parts of 1024, that a walk begins anew instead of making a move: at a new start of its own kind, with no memory
    /// of the node just left. A walk from the query's nodes so stays near them. The published walks have 0.
    pub restart: u32,
    /// Restarts are for every walk (1), every second one (2), and so on; the others never begin anew.
    pub restart_period: u32,
}

impl Default for WalkOptions {
    fn default() -> WalkOptions {
        WalkOptions {
            length: 128,
            updates: 6,
            backtrack: false,
            all_at_query: false,
            balanced_on_query_relation: false,
            inverses: true,
            restart: 0,
            restart_period: 1,
        }
    }
}
