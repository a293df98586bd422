//! Stretches of walks: the part of a walk that joins the query to the answer, as a path of triples.

use flock_graph::{NodeId, Topology, Triple, TypeId};

/// A path from an entity of the query: where it begins, and the triples it goes along, each from either end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// The first entity.
    pub start: NodeId,
    /// The triples in order.
    pub triples: Vec<Triple>,
}

impl Path {
    /// The entities in order, the start included, and whether each triple is walked from its head.
    pub fn steps(&self) -> impl Iterator<Item = (Triple, bool, NodeId)> + '_ {
        self.triples.iter().scan(self.start, |at, &triple| {
            let forward = triple.head == *at;
            *at = if forward { triple.tail } else { triple.head };
            Some((triple, forward, *at))
        })
    }

    /// Its relations in order, each with whether it is walked from the head, and where it begins. Paths of one pattern differ in
    /// the entities between.
    pub fn pattern(&self) -> (NodeId, Vec<(TypeId, bool)>) {
        (self.start, self.steps().map(|(triple, forward, _)| (triple.relation, forward)).collect())
    }

    /// How many steps it has.
    pub fn hops(&self) -> usize {
        self.triples.len()
    }

    /// All entities in order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::once(self.start).chain(self.steps().map(|(_, _, node)| node))
    }
}

/// One raw walk.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub nodes: &'a [NodeId], // (L)
    pub types: &'a [TypeId], // (L): of the step into each position
    pub dirs: &'a [u8],      // (L)
}

impl Walk<'_> {
    /// The triple behind the step into position `at`, if there was a step.
    fn triple(&self, topology: &Topology, at: usize) -> Option<Triple> {
        let (from, to, ty) = (self.nodes[at - 1], self.nodes[at], self.types[at]);
        if ty >= topology.no_type() {
            return None;
        }
        // Direction 0 is the augmented edge (from, ty, to), direction 1 is (to, ty, from); an inverse type turns it around.
        let (head, tail) =
            if (self.dirs[at] == 0) == (ty < topology.num_relations()) { (from, to) } else { (to, from) };
        let relation = if ty < topology.num_relations() { ty } else { topology.inverse(ty) };
        Some(Triple { head, relation, tail })
    }

    /// The part between positions `from` and `to`, walked from `from` (either may come first), without its detours: where it
    /// comes back to an entity, what lies between is left out.
    fn stretch(&self, topology: &Topology, from: usize, to: usize) -> Path {
        let mut nodes = vec![self.nodes[from]];
        let mut triples = Vec::new();
        let mut at = from;
        while at != to {
            // The step between two positions is recorded at the later one.
            let (next, step) = if to > from { (at + 1, at + 1) } else { (at - 1, at) };
            at = next;
            if let Some(before) = nodes.iter().position(|n| *n == self.nodes[at]) {
                nodes.truncate(before + 1);
                triples.truncate(before);
            } else if let Some(triple) = self.triple(topology, step) {
                nodes.push(self.nodes[at]);
                triples.push(triple);
            }
        }
        Path { start: nodes[0], triples }
    }

    /// The stretch from the nearest visit of the query's entity to position `at`.
    pub fn to_node(self, topology: &Topology, query: NodeId, at: usize) -> Option<Path> {
        let near = self.nearest(topology, at, |i| self.nodes[i] == query)?;
        Some(self.stretch(topology, near, at))
    }

    /// The stretch from the nearest visit of either entity of the query to the step into position `at`, that step included.
    pub fn to_step(self, topology: &Topology, query: [NodeId; 2], at: usize) -> Option<Path> {
        let step = self.triple(topology, at)?;
        let near = self.nearest(topology, at, |i| query.contains(&self.nodes[i]))?;
        let mut path = self.stretch(topology, near, if near < at { at - 1 } else { at });
        // The step ends the path. If it leads back to an entity of the path, the path up to there and the step the other way round
        // join the same two, without the loop.
        let nodes: Vec<NodeId> = path.nodes().collect();
        let last = nodes[nodes.len() - 1];
        let next = if last == step.head { step.tail } else { step.head };
        if next != last {
            path.triples.truncate(nodes.iter().position(|node| *node == next).unwrap_or(nodes.len()));
        }
        path.triples.push(step);
        Some(path)
    }

    /// The position nearest to `at` that is one of those looked for, the earlier of two. Where the walk restarted at another
    /// entity, nothing joins what lies before to what comes after.
    fn nearest(&self, topology: &Topology, at: usize, is: impl Fn(usize) -> bool) -> Option<usize> {
        let restarts = |i: &usize| self.types[*i] >= topology.no_type() && self.nodes[*i] != self.nodes[*i - 1];
        let first = (1..=at).rev().find(restarts).unwrap_or(0);
        let end = (at + 1..self.nodes.len()).find(restarts).unwrap_or(self.nodes.len());
        (first..end).filter(|i| is(*i)).min_by_key(|i| (i.abs_diff(at), *i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_does_not_cross_a_restart() {
        let graph = graph();
        // 0 → 1, a restart at 3, 3 → 4, a restart at 0, 0 → 1, a restart at 1, which changes nothing.
        let nodes = [0, 1, 3, 4, 0, 1, 1];
        let none = 2 * R;
        let walk = Walk { nodes: &nodes, types: &[none, 0, none, 0, none, 0, none], dirs: &[3, 0, 3, 0, 3, 0, 3] };
        let path = Path { start: 0, triples: vec![t(0, 0, 1)] };
        assert_eq!(walk.to_node(&graph, 0, 1), Some(path.clone()));
        assert_eq!(walk.to_node(&graph, 0, 2), None);
        assert_eq!(walk.to_node(&graph, 0, 3), None);
        assert_eq!(walk.to_node(&graph, 3, 3), Some(Path { start: 3, triples: vec![t(3, 0, 4)] }));
        assert_eq!([5, 6].map(|at| walk.to_node(&graph, 0, at)), [Some(path.clone()), Some(path.clone())]);
        assert_eq!(walk.to_step(&graph, [0, 2], 5), Some(path));
        assert_eq!(walk.to_step(&graph, [0, 2], 3), None);
        assert_eq!(walk.to_step(&graph, [0, 2], 4), None);
    }

    const R: u32 = 3;

    fn t(head: u32, relation: u32, tail: u32) -> Triple {
        Triple { head, relation, tail }
    }

    fn graph() -> Topology {
        Topology::build(5, R, vec![t(0, 0, 1), t(2, 1, 1), t(2, 2, 3), t(3, 0, 4)]).unwrap()
    }

    #[test]
    fn every_label_of_a_step_names_its_triple() {
        let graph = graph();
        // Triple (2, 1, 1) walked 1 → 2 is (type 1 + R, dir 0) or (type 1, dir 1); walked 2 → 1 (1, 0) or (1 + R, 1).
        for (nodes, ty, dir) in [([1, 2], 1 + R, 0), ([1, 2], 1, 1), ([2, 1], 1, 0), ([2, 1], 1 + R, 1)] {
            let walk = Walk { nodes: &nodes, types: &[2 * R, ty], dirs: &[3, dir] };
            assert_eq!(walk.triple(&graph, 1), Some(t(2, 1, 1)), "{nodes:?} {ty} {dir}");
        }
        let standing = Walk { nodes: &[4, 4], types: &[2 * R, 2 * R], dirs: &[3, 3] };
        assert_eq!(standing.triple(&graph, 1), None);
    }

    #[test]
    fn stretches_by_hand() {
        let graph = graph();
        // 4 ←0— 3 ←2— 2 —1→ 1 ←0— 0, then back to 1 and 2.
        let nodes = [4, 3, 2, 1, 0, 1, 2];
        let types = [2 * R, R, 2 + R, 1, R, 0, 1 + R];
        let dirs = [3, 0, 0, 0, 0, 0, 0];
        let walk = Walk { nodes: &nodes, types: &types, dirs: &dirs };
        let path = walk.to_node(&graph, 0, 1).unwrap();
        assert_eq!(path, Path { start: 0, triples: vec![t(0, 0, 1), t(2, 1, 1), t(2, 2, 3)] });
        assert_eq!(path.nodes().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(path.steps().map(|s| s.1).collect::<Vec<_>>(), [true, false, true]);
        // From 0 at position 4 on to 2 at position 6, and no way at all to what the walk does not meet.
        assert_eq!(walk.to_node(&graph, 0, 6).unwrap().triples, [t(0, 0, 1), t(2, 1, 1)]);
        assert_eq!(walk.to_node(&graph, 9, 6), None);
        // From 4 to the last position: the detour 1, 0, 1 and the way back to 2 are left out.
        assert_eq!(walk.to_node(&graph, 4, 6).unwrap().triples, [t(3, 0, 4), t(2, 2, 3)]);
        // A step: into position 3, seen from 4 (three steps away) and from 0 (one away).
        assert_eq!(walk.to_step(&graph, [4, 4], 3).unwrap().triples, [t(3, 0, 4), t(2, 2, 3), t(2, 1, 1)]);
        let near = walk.to_step(&graph, [4, 0], 3).unwrap();
        assert_eq!((near.start, near.triples), (0, vec![t(0, 0, 1), t(2, 1, 1)]));
    }

    #[test]
    fn a_step_that_closes_a_loop_is_walked_from_where_the_loop_began() {
        // 0 —0→ 1 —1→ 2 —2→ 1, and a self-loop 2 —0→ 2.
        let graph = Topology::build(3, R, vec![t(0, 0, 1), t(1, 1, 2), t(2, 2, 1), t(2, 0, 2)]).unwrap();
        let walk = Walk { nodes: &[0, 1, 2, 1], types: &[2 * R, 0, 1, 2], dirs: &[3, 0, 0, 0] };
        // The step into position 3 leads back to 1: the path is 0 —0→ 1 ←2— 2, without 1 —1→ 2.
        let path = walk.to_step(&graph, [0, 0], 3).unwrap();
        assert_eq!(path.triples, [t(0, 0, 1), t(2, 2, 1)]);
        assert_eq!(path.nodes().collect::<Vec<_>>(), [0, 1, 2]);
        // The step that led to where the walk turns: 0 —0→ 1 and back to 0 is one step, once.
        let back = Walk { nodes: &[0, 1, 0], types: &[2 * R, 0, R], dirs: &[3, 0, 0] };
        assert_eq!(back.to_step(&graph, [0, 0], 2).unwrap().triples, [t(0, 0, 1)]);
        // From 0 (at position 0) along 1, 2 and the self-loop: that is the step itself, so it stays.
        let own = Walk { nodes: &[0, 1, 2, 2], types: &[2 * R, 0, 1, 0], dirs: &[3, 0, 0, 0] };
        let path = own.to_step(&graph, [0, 0], 3).unwrap();
        assert_eq!(path.triples, [t(0, 0, 1), t(1, 1, 2), t(2, 0, 2)]);
    }
}
