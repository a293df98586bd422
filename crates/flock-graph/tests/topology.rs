//! Compares the index and the mask with values worked out by hand and with plain sets.

use flock_graph::mask::nth_kept;
use flock_graph::{Mask, Topology, TopologyError, Triple};
use std::collections::{BTreeMap, BTreeSet};

fn t(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

/// Parallel edges both ways between 0 and 1, a plain edge 1-2, a node of degree one (3), an isolated node (4), a loop on a connected
/// node (2), two loops on a node with nothing else (5), and one repeated triple.
fn small() -> Vec<Triple> {
    vec![t(0, 1, 1), t(0, 0, 1), t(1, 0, 0), t(1, 2, 2), t(2, 0, 2), t(3, 1, 0), t(5, 0, 5), t(5, 2, 5), t(0, 0, 1)]
}

#[test]
fn hand_worked_graph() {
    let g = Topology::build(6, 3, small()).unwrap();
    assert_eq!((g.num_nodes(), g.num_relations(), g.num_types(), g.no_type(), g.num_triples()), (6, 3, 6, 6, 8));
    let order = [t(0, 0, 1), t(1, 0, 0), t(2, 0, 2), t(5, 0, 5), t(0, 1, 1), t(3, 1, 0), t(1, 2, 2), t(5, 2, 5)];
    assert_eq!(g.triples().len(), 8);
    assert_eq!(g.triples().collect::<Vec<_>>(), order);
    for (id, &triple) in order.iter().enumerate() {
        assert_eq!(g.triple(id as u32), triple);
        assert_eq!(g.triple_id(triple), Some(id as u32));
        assert_eq!(g.ends(id), (triple.head, triple.tail));
    }
    assert_eq!(g.triple_id(t(1, 1, 0)), None);
    assert_eq!((0..7).map(|x| g.inverse(x)).collect::<Vec<_>>(), [3, 4, 5, 0, 1, 2, 6]);
    assert_eq!((0..6).map(|v| g.degree(v)).collect::<Vec<_>>(), [2, 2, 1, 1, 0, 0]);
    assert_eq!(g.neighbours(0).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(g.neighbours(2).collect::<Vec<_>>(), [1]);
    assert_eq!(g.neighbours(5).count(), 0);
    assert_eq!(g.answers(0, 0).collect::<Vec<_>>(), [1]);
    assert_eq!(g.answers(0, 3).collect::<Vec<_>>(), [1]); // who has relation 0 to node 0
    assert_eq!(g.answers(0, 4).collect::<Vec<_>>(), [3]);
    assert_eq!(g.answers(5, 5).collect::<Vec<_>>(), [5]);
    assert_eq!(g.answers(0, 6).len(), 0);
    assert_eq!(g.relations_between(0, 1), [0, 1]);
    assert_eq!(g.relations_between(1, 0), [0]);
    assert_eq!(g.relations_between(2, 2), [0]);
    assert_eq!(g.relations_between(5, 5), [0, 2]);
    assert!(g.relations_between(0, 3).is_empty());
    assert!(g.contains(1, 4, 0) && g.contains(0, 1, 1) && !g.contains(1, 1, 0) && !g.contains(0, 6, 1));
    assert_eq!(g.relations_in_use(), [0, 1, 2]);
}

#[test]
fn unknown_ids_have_no_edges() {
    let g = Topology::build(6, 3, small()).unwrap();
    for v in [6, 1000, u32::MAX] {
        assert_eq!((g.degree(v), g.neighbours(v).len(), g.answers(v, 0).len(), g.answers(v, 3).len()), (0, 0, 0, 0));
        assert!(g.relations_between(v, 0).is_empty() && g.relations_between(0, v).is_empty());
        assert!(g.relations_between(v, v).is_empty() && !g.contains(0, v, 1));
        assert_eq!(g.answers(0, v).len(), 0);
    }
    let empty = Topology::build(0, 0, Vec::new()).unwrap();
    assert_eq!((empty.num_nodes(), empty.num_triples(), empty.no_type()), (0, 0, 0));
    assert_eq!((empty.degree(0), empty.answers(0, 0).len(), empty.triples().len()), (0, 0, 0));
}

#[test]
fn bad_ids_are_named() {
    let error = Topology::build(2, 1, vec![t(0, 0, 1), t(0, 0, 2)]).unwrap_err();
    assert_eq!(error.to_string(), "triple (0, 0, 2) names a node outside 0..2");
    let error = Topology::build(2, 1, vec![t(0, 1, 1)]).unwrap_err();
    assert_eq!(error.to_string(), "triple (0, 1, 1) names a relation outside 0..1");
    let error = Topology::build(2, (1 << 30) + 1, Vec::new()).unwrap_err();
    assert_eq!(error, TopologyError::TooManyRelations { found: (1 << 30) + 1 });
    assert_eq!(error.to_string(), "1073741825 relations; at most 1073741824 (2^30) can be indexed");
}

/// A small random generator, so that the tests do not depend on the code they test.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
    fn graph(&mut self, nodes: u32, relations: u32, triples: u32) -> Vec<Triple> {
        (0..triples).map(|_| t(self.below(nodes), self.below(relations), self.below(nodes))).collect()
    }
}

#[test]
fn random_graphs_against_sets() {
    let mut random = Lcg(1);
    for (nodes, relations, triples) in [(1, 1, 3), (5, 2, 30), (9, 4, 12), (12, 3, 200), (30, 7, 150)] {
        let list = random.graph(nodes, relations, triples);
        let set: BTreeSet<Triple> = list.iter().copied().collect();
        let g = Topology::build(nodes, relations, list).unwrap();
        assert_eq!(g.num_triples(), set.len());
        assert_eq!(g.triples().collect::<BTreeSet<_>>(), set);
        for v in 0..nodes {
            let around: BTreeSet<u32> =
                set.iter().filter(|x| (x.head == v) != (x.tail == v)).map(|x| x.head + x.tail - v).collect();
            assert_eq!(g.neighbours(v).collect::<Vec<_>>(), around.into_iter().collect::<Vec<_>>());
            for w in 0..nodes {
                let between: Vec<u32> = (0..relations).filter(|&r| set.contains(&t(v, r, w))).collect();
                assert_eq!(g.relations_between(v, w), between);
                for r in 0..relations {
                    assert_eq!(g.contains(v, r, w), set.contains(&t(v, r, w)));
                    assert_eq!(g.contains(v, r + relations, w), set.contains(&t(w, r, v)));
                }
            }
            for r in 0..relations {
                let tails: Vec<u32> = (0..nodes).filter(|&w| set.contains(&t(v, r, w))).collect();
                assert_eq!(g.answers(v, r).collect::<Vec<_>>(), tails);
                let heads: Vec<u32> = (0..nodes).filter(|&w| set.contains(&t(w, r, v))).collect();
                assert_eq!(g.answers(v, r + relations).collect::<Vec<_>>(), heads);
            }
        }
    }
}

/// Lists all steps from `v` that the index holds and the mask allows: neighbour -> half-steps. The
/// self-loop is under `v`.
fn ways_out(g: &Topology, mask: Option<&Mask>, v: u32) -> BTreeMap<u32, Vec<u32>> {
    let record = g.record(v);
    let hidden = mask.and_then(|m| m.node(v).map(|h| (m, h)));
    let (gone, loops_gone) = hidden.map_or((&[][..], 0), |(m, h)| (m.gone_slots(h), h.loops_gone()));
    let kept = record.degree() - gone.len() as u32 + record.loops() - loops_gone;
    let mut ways = BTreeMap::new();
    for index in 0..kept {
        let position = nth_kept(gone, index);
        let slot = g.slot(record.first() + position);
        let step = slot.step();
        let steps = g.half_steps(&step);
        let hidden_steps = hidden.map_or(&[][..], |(m, h)| m.hidden_steps(h, position));
        let rest: Vec<u32> =
            (0..(steps.len() - hidden_steps.len()) as u32).map(|i| steps[nth_kept(hidden_steps, i) as usize]).collect();
        assert!(ways.insert(slot.neighbour(), rest).is_none(), "a neighbour has one slot");
    }
    ways
}

/// A masked graph offers exactly what the graph rebuilt without the hidden triples offers: at nodes, in relations, among relations.
#[test]
fn masked_is_rebuilt() {
    let mut random = Lcg(2);
    let shapes = [(6, 3, 40, 1), (6, 3, 40, 25), (4, 2, 30, 400), (40, 5, 100, 30), (200, 1, 900, 500), (3, 9, 60, 20)];
    // Miri is slow, so it gets the smallest two.
    for &(nodes, relations, triples, hidden) in if cfg!(miri) { &shapes[..2] } else { &shapes[..] } {
        let list = random.graph(nodes, relations, triples);
        // Some hidden triples are in the graph, some are not, some come twice.
        let mut hide: Vec<Triple> = (0..hidden).map(|_| list[random.below(triples) as usize]).collect();
        hide.extend(random.graph(nodes, relations, 5));
        hide.push(t(nodes + 3, 0, 0));
        hide.push(t(0, relations, 0));
        let set: BTreeSet<Triple> = list.iter().copied().collect();
        let gone: BTreeSet<Triple> = hide.iter().copied().filter(|x| set.contains(x)).collect();
        let g = Topology::build(nodes, relations, list).unwrap();
        let mask = Mask::new(&g, &hide);
        let rest: Vec<Triple> = set.difference(&gone).copied().collect();
        let rebuilt = Topology::build(nodes, relations, rest).unwrap();

        assert_eq!(mask.len(), gone.len());
        for (id, triple) in g.triples().enumerate() {
            assert_eq!(mask.hides(id as u32), gone.contains(&triple));
        }
        for v in 0..nodes {
            assert_eq!(ways_out(&g, Some(&mask), v), ways_out(&rebuilt, None, v));
        }
        for r in 0..relations {
            let range = g.relation_range(r);
            let hidden = mask.hidden_in_relation(r);
            let kept: Vec<(u32, u32)> = (0..(range.len() - hidden.len()) as u32)
                .map(|i| g.ends(range.start + nth_kept(hidden, i) as usize))
                .collect();
            assert_eq!(kept, rebuilt.relation_range(r).map(|id| rebuilt.ends(id)).collect::<Vec<_>>());
        }
        let in_use: Vec<u32> = (0..(g.relations_in_use().len() - mask.gone_relations().len()) as u32)
            .map(|i| g.relations_in_use()[nth_kept(mask.gone_relations(), i) as usize])
            .collect();
        assert_eq!(in_use, rebuilt.relations_in_use());
    }
}

#[test]
fn empty_masks() {
    let g = Topology::build(6, 3, small()).unwrap();
    for mask in [Mask::default(), Mask::new(&g, &[]), Mask::new(&g, &[t(4, 0, 4), t(9, 9, 9)])] {
        assert!(mask.is_empty() && mask.node(0).is_none() && mask.node(u32::MAX).is_none());
    }
    assert!(Mask::new(&g, &[t(0, 0, 1)]).node(u32::MAX).is_none());
}

#[test]
fn nth_kept_by_hand() {
    // kept: 0 3 4 6 7 8 ...
    let positions: Vec<u32> = (0..6).map(|i| nth_kept(&[1, 2, 5], i)).collect();
    assert_eq!(positions, [0, 3, 4, 6, 7, 8]);
    assert_eq!(nth_kept(&[0, 1, 2], 0), 3);
    assert_eq!(nth_kept(&[], 7), 7);
}

/// Checks the memory: 8 bytes per edge, 4 for its place by tail, two slots of 8, and 8 per node.
/// The rest does not grow with the graph.
#[test]
fn memory_is_28_bytes_a_triple() {
    let g = Topology::build(5000, 10, Lcg(3).graph(5000, 10, 50_000)).unwrap();
    let bound = 28 * g.num_triples() + 8 * 5000;
    // Parallel triples trade slots for list entries: 16 bytes for two slots of two triples become 8 + 12.
    assert!(g.memory_bytes() <= bound + 1024, "{} > {bound}", g.memory_bytes());
}
