//! One training step's questions: which triples, what is hidden from the walks, and against whom each answer is held.
//!
//! - **Entity task.** The first half of the batch asks for tails, (h, r, ?), the rest for heads as (t, r⁻¹, ?). An odd batch asks
//!   for one head more. Negatives are [strict](super::negatives). Hidden: the batch's triples, or all edges between their ends.
//! - **Relation task.** (h, ?, t) against all other relations of the graph. Hidden: every edge from h to t.

use super::Origin;
use super::negatives::Negatives;
use super::subgraph::Subgraph;
use crate::checkpoint::Task;
use flock_graph::{Mask, Topology, Triple};
use flock_walk::{Stream, WalkQuery};
use serde::{Deserialize, Serialize};

/// What the entity task hides from the walks. The relation task always hides every edge from head to tail.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hide {
    /// The batch's triples, as published.
    #[default]
    Positives,
    /// Every edge between the two ends of a batch's triple, whatever its relation and direction.
    Endpoints,
}

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

    /// The triples to hide.
    pub(crate) fn hidden(topology: &Topology, triples: &[Triple], task: Task, hide: Hide) -> Vec<Triple> {
        let along = |head, tail| {
            let relations = topology.relations_between(head, tail);
            relations.into_iter().map(move |relation| Triple { head, relation, tail })
        };
        match (task, hide) {
            (Task::Entity, Hide::Positives) => triples.to_vec(),
            (Task::Entity, Hide::Endpoints) => {
                triples.iter().flat_map(|t| along(t.head, t.tail).chain(along(t.tail, t.head))).collect()
            }
            (Task::Relation, _) => triples.iter().flat_map(|t| along(t.head, t.tail)).collect(),
        }
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
