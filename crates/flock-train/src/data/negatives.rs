//! Strict negatives: entities that are not known answers of a query, i.i.d. uniform.
//!
//! With `a` known answers among `V` entities, the other `V − a` are never listed. While at most
//! half of the entities are answers, draws that hit one are rejected: at most two draws per
//! negative on average. Above that, a draw is an index into the gaps between the sorted answers:
//! O(a) once and O(log a) per negative. Both are exactly uniform.

use flock_graph::mask::nth_kept;
use flock_graph::{NodeId, Topology, TypeId};
use flock_walk::Stream;
use serde::{Deserialize, Serialize};

/// The number of negatives of an entity question, or `"all"` for every entity that is not a known
/// answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or \"all\"")]
pub enum Negatives {
    /// This many random draws.
    Drawn(usize),
    /// Every one, once. For pieces, which have few entities.
    Every(AllWord),
}

/// The word `all` in a config file.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AllWord {
    /// Every entity that is not a known answer.
    All,
}

impl Negatives {
    /// Every entity that is not a known answer.
    pub const ALL: Negatives = Negatives::Every(AllWord::All);

    /// Appends the negatives of (head, type, ?) to `out`.
    pub(super) fn of(self, topology: &Topology, head: NodeId, t: TypeId, stream: &mut Stream, out: &mut Vec<NodeId>) {
        match self {
            Negatives::Drawn(count) => strict_negatives(topology, head, t, count, stream, out),
            Negatives::Every(_) => {
                let mut answers = topology.answers(head, t).peekable();
                out.extend((0..topology.num_nodes()).filter(|v| answers.next_if_eq(v).is_none()));
            }
        }
    }
}

/// Appends `count` entities that are not known answers of (head, type, ?) to `out`. None if every
/// entity is a known answer.
pub fn strict_negatives(
    topology: &Topology,
    head: NodeId,
    t: TypeId,
    count: usize,
    stream: &mut Stream,
    out: &mut Vec<NodeId>,
) {
    let all = topology.num_nodes();
    let answers = topology.answers(head, t);
    let others = all - answers.len() as u32;
    if others == 0 {
        return;
    }
    if others >= all - others {
        let wanted = out.len() + count;
        while out.len() < wanted {
            let v = stream.below(u64::from(all)) as NodeId;
            if !topology.contains(head, t, v) {
                out.push(v);
            }
        }
    } else {
        let answers: Vec<NodeId> = answers.collect();
        out.extend((0..count).map(|_| nth_kept(&answers, stream.below(u64::from(others)) as u32)));
    }
}
