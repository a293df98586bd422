//! A graph with edits equals the graph rebuilt with them: every answer of its index and every walk,
//! bit for bit.

use std::collections::BTreeSet;
use std::sync::Arc;

use flock_graph::{Edit, Mask, Topology, Triple};
use flock_walk::{Key, Stream, WalkOptions, WalkQuery, Walks};

fn draw(stream: &mut Stream, nodes: u32, relations: u32) -> Triple {
    let mut below = |bound: u32| stream.below(u64::from(bound)) as u32;
    Triple { head: below(nodes), relation: below(relations), tail: below(nodes) }
}

fn same(edited: &Topology, rebuilt: &Topology) {
    let (nodes, relations) = (rebuilt.num_nodes(), rebuilt.num_relations());
    assert_eq!((edited.num_nodes(), edited.num_relations()), (nodes, relations));
    assert_eq!(edited.num_triples(), rebuilt.num_triples());
    let triples: Vec<Triple> = rebuilt.triples().collect();
    assert_eq!(edited.triples().collect::<Vec<_>>(), triples);
    assert_eq!(edited.relations_in_use(), rebuilt.relations_in_use());
    for (id, &t) in (0..).zip(&triples) {
        assert_eq!((edited.triple(id), edited.triple_id(t)), (t, Some(id)));
        assert_eq!(edited.ends(id as usize), (t.head, t.tail));
    }
    for v in 0..nodes {
        assert!(edited.neighbours(v).eq(rebuilt.neighbours(v)), "{v}");
        assert_eq!(edited.degree(v), rebuilt.degree(v));
        assert_eq!(edited.triples_at(v), rebuilt.triples_at(v));
        for t in 0..=2 * relations {
            assert!(edited.answers(v, t).eq(rebuilt.answers(v, t)), "({v}, {t}, ?)");
        }
        for w in 0..nodes {
            assert_eq!(edited.relations_between(v, w), rebuilt.relations_between(v, w));
            assert_eq!(edited.contains(v, 0, w), rebuilt.contains(v, 0, w));
        }
    }
}

fn same_walks(edited: &Topology, rebuilt: &Topology, stream: &mut Stream) {
    let nodes = u64::from(rebuilt.num_nodes());
    let hidden: Vec<Triple> = rebuilt.triples().filter(|_| stream.below(4) == 0).collect();
    let masks = [Mask::new(edited, &hidden), Mask::new(rebuilt, &hidden)];
    for seed in if cfg!(miri) { 3..4 } else { 0..4 } {
        let (head, tail) = (stream.below(nodes) as u32, stream.below(nodes) as u32);
        for query in [WalkQuery::Entity { head, relation: 1 }, WalkQuery::Relation { head, tail }] {
            let options = WalkOptions { length: 12, backtrack: seed == 3, ..WalkOptions::default() };
            let key = Key { seed, pass: 0, update: 1, query: 7 };
            let walk = |t: &Topology, mask| Walks::sample(t, mask, &query, 6, key, &options);
            assert_eq!(walk(edited, None), walk(rebuilt, None));
            assert_eq!(walk(edited, Some(&masks[0])), walk(rebuilt, Some(&masks[1])));
        }
    }
}

#[test]
fn edits_give_the_rebuilt_graph() {
    let mut stream = Key { seed: 11, pass: 0, update: 0, query: 0 }.stream(0);
    // Miri is slow, so it gets one round, with everything in it.
    for round in if cfg!(miri) { 1..2 } else { 0..60 } {
        // Small and dense, so that parallel triples, self-loops, repeats and emptied nodes are all common.
        let (nodes, relations) = (2 + stream.below(7) as u32, 1 + stream.below(3) as u32);
        let mut truth: BTreeSet<Triple> = (0..stream.below(20)).map(|_| draw(&mut stream, nodes, relations)).collect();
        let base = Topology::build(nodes, relations, truth.iter().copied().collect()).unwrap();
        let mut edited = Arc::new(base);
        for step in 0..6 {
            // Sometimes adds a new node and a new relation, with or without an edge.
            let nodes = edited.num_nodes() + u32::from(step == 2);
            let relations = edited.num_relations() + u32::from(step == 4);
            let edits: Vec<Edit> = (0..1 + stream.below(5))
                .map(|_| Edit { triple: draw(&mut stream, nodes, relations), present: stream.below(2) == 0 })
                .collect();
            for edit in &edits {
                if edit.present {
                    truth.insert(edit.triple);
                } else {
                    truth.remove(&edit.triple);
                }
            }
            edited = Arc::new(edited.edited(nodes, relations, &edits).unwrap());
            let rebuilt = Topology::build(nodes, relations, truth.iter().copied().collect()).unwrap();
            same(&edited, &rebuilt);
            same_walks(&edited, &rebuilt, &mut stream);
            if round % 2 == 1 && step == 3 {
                edited = Arc::new(edited.flattened().unwrap());
                assert_eq!((edited.num_edits(), edited.patch_slots()), (0, 0));
                same(&edited, &rebuilt);
            }
        }
    }
}

#[test]
fn edits_out_of_range_are_refused_and_undone_edits_leave_nothing() {
    let t = |head, relation, tail| Triple { head, relation, tail };
    let base = Arc::new(Topology::build(3, 1, vec![t(0, 0, 1), t(1, 0, 2)]).unwrap());
    let add = |triple| Edit { triple, present: true };
    assert!(base.edited(3, 1, &[add(t(0, 0, 3))]).is_err());
    assert!(base.edited(3, 1, &[add(t(0, 1, 2))]).is_err());
    let edited = Arc::new(base.edited(3, 1, &[add(t(2, 0, 0)), Edit { triple: t(0, 0, 1), present: false }]).unwrap());
    assert_eq!(edited.num_edits(), 2);
    let back = edited.edited(3, 1, &[add(t(0, 0, 1)), Edit { triple: t(2, 0, 0), present: false }]).unwrap();
    assert_eq!((back.num_edits(), back.patch_slots()), (0, 0));
    same(&back, &base);
}
