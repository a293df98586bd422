//! What the walks must not see: the edges that would give an answer away.

use flock_graph::{Topology, Triple};
use serde::{Deserialize, Serialize};

use crate::metadata::Task;

/// What a batch hides from the walks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hide {
    /// As published. Entity task: the batch's triples. Relation task: every edge from head to tail.
    #[default]
    Positives,
    /// Entity task: every edge between the two ends of a batch's triple, whatever its relation and
    /// direction. Relation task: every edge from head to tail.
    Endpoints,
    /// The batch's triples alone, in both tasks. So the relation model sees the other relations from
    /// head to tail, as it does when it is asked.
    Asked,
}

/// Lists the triples to hide from the walks when these triples are asked about.
pub fn hidden(topology: &Topology, triples: &[Triple], task: Task, hide: Hide) -> Vec<Triple> {
    let along = |head, tail| {
        let relations = topology.relations_between(head, tail);
        relations.into_iter().map(move |relation| Triple { head, relation, tail })
    };
    match (task, hide) {
        (Task::Entity, Hide::Positives) | (_, Hide::Asked) => triples.to_vec(),
        (Task::Entity, Hide::Endpoints) => {
            triples.iter().flat_map(|t| along(t.head, t.tail).chain(along(t.tail, t.head))).collect()
        }
        (Task::Relation, _) => triples.iter().flat_map(|t| along(t.head, t.tail)).collect(),
    }
}
