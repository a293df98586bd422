//! The part of a graph around some nodes, small enough to draw.

use super::{NodeId, Topology, Triple};
use std::collections::HashSet;

impl Topology {
    /// Returns up to `limit` nodes around `centres`, and all triples among them. The centres come
    /// first, then nearer nodes before farther ones. If a node has too many neighbours, a selection
    /// spread evenly over all of them is taken.
    pub fn neighbourhood(&self, centres: &[NodeId], limit: usize) -> (Vec<NodeId>, Vec<Triple>) {
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut met: HashSet<NodeId> = HashSet::new();
        nodes.extend(centres.iter().filter(|v| **v < self.num_nodes() && met.insert(**v)));
        nodes.truncate(limit.max(1));
        let mut from = 0;
        while from < nodes.len() && nodes.len() < limit {
            let ring = nodes.len();
            // Each node of the ring gets an equal share of the remaining room.
            for i in from..ring {
                let share = (limit.saturating_sub(nodes.len()) / (ring - i)).max(1);
                let fresh: Vec<NodeId> = self.neighbours(nodes[i]).filter(|v| !met.contains(v)).collect();
                let every = fresh.len().div_ceil(share).max(1);
                let room = limit.saturating_sub(nodes.len());
                nodes.extend(fresh.into_iter().step_by(every).take(room).inspect(|v| {
                    met.insert(*v);
                }));
            }
            from = ring;
        }
        let mut triples = Vec::new();
        for &head in &nodes {
            for &tail in &nodes {
                let between = self.relations_between(head, tail).into_iter();
                triples.extend(between.map(|relation| Triple { head, relation, tail }));
            }
        }
        (nodes, triples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_and_its_tail_by_hand() {
        // 0 is joined to 1..=9, 1 to 10, 10 to 11. 12 is isolated.
        let mut triples: Vec<Triple> = (1..10).map(|tail| Triple { head: 0, relation: 0, tail }).collect();
        triples.push(Triple { head: 10, relation: 1, tail: 1 });
        triples.push(Triple { head: 10, relation: 0, tail: 11 });
        let graph = Topology::build(13, 2, triples).unwrap();
        let (nodes, edges) = graph.neighbourhood(&[10], 4);
        assert_eq!(nodes, [10, 1, 11, 0]);
        let t = |head, relation, tail| Triple { head, relation, tail };
        assert_eq!(edges, [t(10, 1, 1), t(10, 0, 11), t(0, 0, 1)]);
        // 10 is known already and takes no room: of the neighbours of 1 only 0 is new.
        assert_eq!(graph.neighbourhood(&[11], 4).0, [11, 10, 1, 0]);
        // There is room for five of nine neighbours: every second one.
        assert_eq!(graph.neighbourhood(&[0], 6).0, [0, 1, 3, 5, 7, 9]);
        assert_eq!(graph.neighbourhood(&[12, 99], 5), (vec![12], vec![]));
        assert_eq!(graph.neighbourhood(&[0], 100).0.len(), 12);
    }
}
