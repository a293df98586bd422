//! The questions of one training step: triples, edges hidden from the walks, and candidates.
//!
//! - **Entity task.** The first half of the batch asks for tails, (h, r, ?), the rest for heads as
//!   (t, r⁻¹, ?). An odd batch asks for one head more. Negatives are [strict](super::negatives).
//!   Hidden: the batch's triples, or all edges between their ends.
//! - **Relation task.** (h, ?, t) against all other relations of the graph. Hidden: every edge from
//!   h to t, or the batch's triples alone.

use super::Origin;
use super::negatives::Negatives;
use flock_graph::Subgraph;
use flock_graph::{Mask, Topology, Triple};
use flock_model::checkpoint::Task;
use flock_walk::{Stream, WalkQuery};

/// The questions of one step. All ids are those of [`TrainingBatch::topology`].
#[derive(Clone, Debug)]
pub struct TrainingBatch {
    /// The source of the questions.
    pub origin: Origin,
    /// The piece or world that the step runs on, if it does not run on a whole graph.
    pub subgraph: Option<Subgraph>,
    /// The positive triples.
    pub triples: Vec<Triple>,
    /// The edges that the walks must not see.
    pub mask: Mask,
    /// One question per triple, in the same order.
    pub queries: Vec<WalkQuery>,
    /// The candidates of each question: the positive, then the negatives, if there are any.
    pub candidates: Vec<Vec<u32>>,
}

impl TrainingBatch {
    /// Returns the graph to walk on: the subgraph, or `whole`, which must be the graph that was
    /// drawn.
    pub fn topology<'a>(&'a self, whole: &'a Topology) -> &'a Topology {
        self.subgraph.as_ref().map_or(whole, |s| &s.topology)
    }

    /// Makes the question about a triple, and its candidates. With `ask_head`, an entity question
    /// asks for the head.
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
