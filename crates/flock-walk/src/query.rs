//! The query that walks are drawn for, and the walk options of section 11 of docs/reference/model.md.

use flock_graph::{NodeId, TypeId};

/// A question to the graph, as far as walks are concerned.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum WalkQuery {
    /// (head, relation, ?). Draws `n` walks from the head, `n` from random nodes and `n` from
    /// balanced edges, in this order.
    Entity {
        /// The query's node.
        head: NodeId,
        /// The type of the query. An inverse type asks for heads.
        relation: TypeId,
    },
    /// (head, ?, tail). Draws `n` walks each from the head, the tail, random nodes and balanced
    /// edges, in this order.
    Relation {
        /// The query's first node.
        head: NodeId,
        /// The query's second node.
        tail: NodeId,
    },
}

impl WalkQuery {
    /// Returns the number of walks for base count `n`: `3n` for an entity query, `4n` for a
    /// relation query.
    pub fn num_walks(&self, n: u32) -> usize {
        n as usize
            * match self {
                WalkQuery::Entity { .. } => 3,
                WalkQuery::Relation { .. } => 4,
            }
    }
}

/// Settings for drawing walks. The defaults are those of the published model.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WalkOptions {
    /// Number of positions `L` of a walk, including the start.
    pub length: usize,
    /// Number of updates in a pass. Balanced starts take edges without replacement over all updates
    /// and passes of a query, so they need to know how many updates came before.
    pub updates: u32,
    /// Whether a walk may step straight back even if the node has another neighbour.
    pub backtrack: bool,
    /// Whether all walks start at the query's nodes: `3n` at the head, or `2n` each at head and
    /// tail, in turns of `n`.
    pub all_at_query: bool,
    /// Whether balanced walks start only on edges of the query's own type. This has no effect on
    /// relation queries, or if the type has no edge.
    pub balanced_on_query_relation: bool,
    /// Whether walks use both types of a relation. Without them each relation has one name, whether
    /// a step goes along it or against it, and balanced walks start along that name only: its
    /// inverse type if the query's own type is one (a question about a head), else the relation. The
    /// published Petals protocol asks for this.
    pub inverses: bool,
    /// Chance, in parts of 1024, that a walk restarts instead of making a move. It restarts at a
    /// new start of its own kind and forgets the node it just left. So a walk from the query's
    /// nodes stays near them. The published walks have 0.
    pub restart: u32,
    /// Which walks may restart: every walk (1), every second walk (2), and so on. The others never
    /// restart.
    pub restart_period: u32,
    /// Which walks that would start at a uniform node start at the query's nodes instead: every one
    /// (1), every second one (2), and so on, or none (0). In a relation query they take head and tail
    /// in turns. The published walks have 0.
    pub query_start_period: u32,
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
            query_start_period: 0,
        }
    }
}
