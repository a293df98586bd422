//! One training step's questions: which triples, what is hidden from the walks, and against whom each answer is held.
//!
//! - **Entity task.** The first half of the batch asks for tails, (h, r, ?), the rest for heads as (t, r⁻¹, ?). An odd batch asks
//!   for one head more. Negatives are [strict](super::negatives). Hidden: the batch's triples, or all edges between their ends.
//! - **Relation task.** (h, ?, t) against all other relations of the graph. Hidden: every edge from h to t.

use super::Origin;
use super::negatives::Negatives;
use flock_graph::Subgraph;
use flock_graph::{Mask, Topology, Triple};
use flock_model::checkpoint::Task;
use flock_walk::{Stream, WalkQuery};

/// The questions of one step. All ids are those of [`Batch::topology`].
#[derive(Clone, Debug)]
pub struct Batch {
    /// Where the questions come from.
    pub origin: Origin,
    /// The piece of the graph that the step runs on, if steps run on pieces, or a world.
    pub subgraph: Option<Subgraph>,
    /// The positive triples.
    pub triples: Vec<Triple>,
    /// The edges that the walks must not see.
    pub mask: Mask,
    /// One question a triple, in the same order.
    pub queries: Vec<WalkQuery>,
    /// The candidates of each question: the positive, then the negatives. Only the positive where no negative exists.
    pub candidates: Vec<Vec<u32>>,
}

impl Batch {
    /// The graph to walk on: the subgraph, or `whole`, which must be the training graph drawn.
    pub fn topology<'a>(&'a self, whole: &'a Topology) -> &'a Topology {
        self.subgraph.as_ref().map_or(whole, |s| &s.topology)
    }

    /// The question about a triple, and its candidates. `ask_head`: an entity question asks for the head.
    pub(super) fn question(
        topology: &Topology,
        t: Triple,
        task: Task,
        ask_head: bool,
        negatives: Negatives,
        stream: &mut Stream,
    ) -> (WalkQuery, Vec<u32>) {
        match task {
            Task::Entity => {
                let (head, relation, answer) = if ask_head {
                    (t.tail, topology.inverse(t.relation), t.head)
                } else {
                    (t.head, t.relation, t.tail)
                };
                let mut candidates = vec![answer];
                negatives.of(topology, head, relation, stream, &mut candidates);
                (WalkQuery::Entity { head, relation }, candidates)
            }
            Task::Relation => {
                let others = (0..topology.num_relations()).filter(|&r| r != t.relation);
                let candidates = std::iter::once(t.relation).chain(others).collect();
                (WalkQuery::Relation { head: t.head, tail: t.tail }, candidates)
            }
        }
    }
}
