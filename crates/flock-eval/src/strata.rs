//! Kinds of questions. Models differ more between these kinds than between graphs.
//!
//! - **Half-link.** The answer already has an edge of the question's relation on the asked side:
//!   for (h, r, ?) the walked graph has some (x, r, t). The role of such an answer already suggests
//!   it.
//! - **Distance** from the question's entity to the answer in the walked graph, following edges
//!   both ways. For (h, ?, t): from h to t.

use std::collections::{BTreeMap, HashSet};

use flock_graph::{Topology, Triple};
use serde::{Deserialize, Serialize};

use crate::metrics::TieMetrics;
use crate::questions::{AskedSide, TestAnswer};
use crate::rank::AnswerRank;

/// The greatest distance that is measured. What is farther counts like no path at all.
pub const FARTHEST: u32 = 4;
/// Upper limit on the entities that one side of a search visits.
const MOST_MET: usize = 200_000;

/// The kind of one question.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// Entity questions: whether the answer has an edge of the relation on the asked side.
    pub half_link: Option<bool>,
    /// 0 to [`FARTHEST`], or `None` for farther, or no path.
    pub distance: Option<u32>,
}

impl Stratum {
    /// Determines the kind of the question that asks for `answer` of `triple`, on the walked graph.
    pub fn of(topology: &Topology, triple: Triple, answer: &TestAnswer) -> Stratum {
        let Triple { head, relation, tail } = triple;
        let half_link = match answer.side {
            AskedSide::Tail => Some(topology.answers(tail, topology.inverse(relation)).next().is_some()),
            AskedSide::Head => Some(topology.answers(head, relation).next().is_some()),
            AskedSide::Relation => None,
        };
        Stratum { half_link, distance: distance(topology, head, tail) }
    }
}

/// Measures the shortest path up to [`FARTHEST`], by a search from both ends in turns.
pub fn distance(topology: &Topology, from: u32, to: u32) -> Option<u32> {
    if from == to {
        return Some(0);
    }
    let mut met = [HashSet::from([from]), HashSet::from([to])];
    let mut edge = [vec![from], vec![to]];
    for length in 1..=FARTHEST {
        let side = usize::from(edge[1].len() < edge[0].len());
        let mut next = Vec::new();
        for v in std::mem::take(&mut edge[side]) {
            for w in topology.neighbours(v) {
                if met[1 - side].contains(&w) {
                    return Some(length);
                }
                if met[side].len() < MOST_MET && met[side].insert(w) {
                    next.push(w);
                }
            }
        }
        if next.is_empty() {
            return None;
        }
        edge[side] = next;
    }
    None
}

/// Metrics of each kind of question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Strata {
    /// By half-link: `half_link` and `new_link`. Entity questions only.
    pub half_link: BTreeMap<String, TieMetrics>,
    /// By distance: `0` to `4`, and `farther`.
    pub distance: BTreeMap<String, TieMetrics>,
}

impl Strata {
    /// Computes the metrics. `strata` has the kind of each rank.
    pub fn new(strata: &[Stratum], ranks: &[AnswerRank]) -> Strata {
        let group = |name: &dyn Fn(&Stratum) -> Option<String>| {
            let mut groups: BTreeMap<String, Vec<&AnswerRank>> = BTreeMap::new();
            for (stratum, ranks) in strata.iter().zip(ranks) {
                if let Some(name) = name(stratum) {
                    groups.entry(name).or_default().push(ranks);
                }
            }
            groups.into_iter().map(|(name, of)| (name, TieMetrics::new(of.iter().map(|p| p.rank)))).collect()
        };
        Strata {
            half_link: group(&|s| s.half_link.map(|half| if half { "half_link" } else { "new_link" }.to_string())),
            distance: group(&|s| Some(s.distance.map_or("farther".to_string(), |d| d.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(head: u32, relation: u32, tail: u32) -> Triple {
        Triple { head, relation, tail }
    }

    #[test]
    fn kinds_by_hand() {
        // A path 0 → 1 → 2 → 3 → 4 → 5 of relation 0, a spur 6 ← 2 of relation 1, and 7 alone.
        let path = (0..5).map(|v| t(v, 0, v + 1));
        let g = Topology::build(8, 2, path.chain([t(2, 1, 6)]).collect()).unwrap();
        let of = |triple, side| Stratum::of(&g, triple, &TestAnswer { answer: 0, side, relation: 0, triple: 0 });
        // 3 is the tail of (2, 0, 3); 0 is nobody's tail; 6 is a tail of relation 1 only.
        assert_eq!(of(t(0, 0, 3), AskedSide::Tail), Stratum { half_link: Some(true), distance: Some(3) });
        assert_eq!(of(t(3, 0, 0), AskedSide::Tail).half_link, Some(false));
        assert_eq!(of(t(1, 0, 6), AskedSide::Tail), Stratum { half_link: Some(false), distance: Some(2) });
        // 5 is nobody's head.
        assert_eq!(of(t(5, 0, 0), AskedSide::Head), Stratum { half_link: Some(false), distance: None });
        assert_eq!(of(t(4, 0, 0), AskedSide::Head), Stratum { half_link: Some(true), distance: Some(4) });
        assert_eq!(of(t(0, 0, 1), AskedSide::Relation), Stratum { half_link: None, distance: Some(1) });
        assert_eq!((distance(&g, 7, 0), distance(&g, 2, 2)), (None, Some(0)));
    }
}
