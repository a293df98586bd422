//! Strict negatives: entities that are not known answers of a query, i.i.d. uniform.
//!
//! With `a` known answers among `V` entities, no list of the other `V − a` is made. While at most half of the entities are
//! answers, draws that hit one are rejected (two draws a negative at most, on average); above that the draw is an index into the
//! gaps between the sorted answers, in O(a) once and O(log a) a negative. Both are exactly uniform.

use flock_graph::mask::nth_kept;
use flock_graph::{NodeId, Topology, TypeId};
use flock_walk::Stream;
use serde::{Deserialize, Serialize};

/// How many negatives an entity question has: a number, or `"all"` for every entity that is no known answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or \"all\"")]
pub enum Negatives {
    /// So many, drawn.
    Drawn(usize),
    /// Every one there is, once: for pieces, whose entities are few.
    Every(All),
}

/// The word that stands for every negative.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// Every entity that is no known answer.
    All,
}

impl Negatives {
    /// Every entity that is no known answer.
    pub const ALL: Negatives = Negatives::Every(All::All);

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

/// Appends `count` entities that are no known answers of (head, type, ?) to `out`; none if every entity is one.
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
