//! Compares recording with a plain map and with values worked out by hand.

use flock_graph::{Topology, Triple};
use flock_walk::{Key, Recorder, Records, WalkOptions, WalkQuery, Walks};

/// Two walks of four positions on types 0..2 with "no type" 2. Worked out by hand.
#[test]
fn by_hand() {
    let query = WalkQuery::Entity { head: 7, relation: 1 };
    let (mut recorder, mut out) = (Recorder::new(), Records::default());
    recorder.begin(&query, 2);
    recorder.record(4, &[7, 9, 7, 5, 5, 5, 9, 5], &[2, 1, 0, 1, 2, 2, 0, 0], &[3, 0, 1, 0, 3, 3, 1, 0], &mut out);
    assert_eq!(out.node, [0, 1, 0, 2, 2, 2, 1, 2]);
    assert_eq!(out.ty, [0, 1, 2, 1, 0, 0, 2, 2]);
    assert_eq!(out.node_name, [0, 1, 0, 2, 0, 0, 1, 0]);
    assert_eq!(out.type_name, [4, 0, 1, 0, 4, 4, 0, 0]);
    assert_eq!(out.mark, [3 + 4, 8, 1 + 4, 8, 3, 3, 1, 0]);
    assert_eq!((recorder.nodes(), recorder.types()), (&[7, 9, 5][..], &[2, 1, 0][..]));

    // A second update continues the local ids, and names start again.
    recorder.record(2, &[5, 8], &[2, 0], &[3, 1], &mut out);
    assert_eq!((&out.node[..], &out.node_name[..]), (&[2, 3][..], &[0, 1][..]));
    assert_eq!((&out.ty[..], &out.type_name[..]), (&[0, 2][..], &[2, 0][..]));
    assert_eq!((recorder.local_node(8), recorder.local_node(6), recorder.local_type(1)), (Some(3), None, Some(1)));

    // A new query forgets the local ids and has its own flags.
    recorder.begin(&WalkQuery::Relation { head: 8, tail: 5 }, 2);
    assert_eq!((recorder.nodes().len(), recorder.types().len(), recorder.local_node(7)), (0, 0, None));
    recorder.record(3, &[5, 8, 5], &[2, 0, 1], &[3, 1, 0], &mut out);
    assert_eq!(out.mark, [3 + 8, 1 + 4, 8]);
    assert_eq!(recorder.nodes(), [5, 8]);
}

/// Records with linear searches: the definition of section 3.
fn plain(length: usize, ids: &[u32], unnamed: Option<u32>) -> Vec<u16> {
    let mut names = Vec::new();
    for walk in ids.chunks(length) {
        let mut seen: Vec<u32> = Vec::new();
        for &id in walk {
            if Some(id) == unnamed {
                names.push(length as u16);
                continue;
            }
            let name = seen.iter().position(|&x| x == id).unwrap_or_else(|| {
                seen.push(id);
                seen.len() - 1
            });
            names.push(name as u16);
        }
    }
    names
}

/// Thousands of nodes make the tables grow, and small and large queries in turn reuse them.
#[test]
fn against_linear_search() {
    let mut stream = Key { seed: 4, pass: 0, update: 0, query: 0 }.stream(0);
    let mut draw = |bound: u32| stream.below(u64::from(bound)) as u32;
    let (nodes, relations) = (30_000, 900);
    let triples = (0..100_000).map(|_| Triple { head: draw(nodes), relation: draw(relations), tail: draw(nodes) });
    let g = Topology::build(nodes, relations, triples.collect()).unwrap();
    let (mut recorder, mut out) = (Recorder::new(), Records::default());
    for (number, n) in [1, 40, 3, 100, 2].into_iter().enumerate() {
        let query = WalkQuery::Entity { head: number as u32, relation: 3 };
        recorder.begin(&query, g.no_type());
        let (mut met_nodes, mut met_types): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for update in 0..3 {
            let key = Key { seed: 1, pass: 0, update, query: number as u64 };
            let options = WalkOptions { length: 50, ..WalkOptions::default() };
            let walks = Walks::sample(&g, None, &query, n, key, &options);
            recorder.record(50, &walks.nodes, &walks.types, &walks.dirs, &mut out);
            assert_eq!(out.node_name, plain(50, &walks.nodes, None));
            assert_eq!(out.type_name, plain(50, &walks.types, Some(g.no_type())));
            for (met, ids) in [(&mut met_nodes, &walks.nodes), (&mut met_types, &walks.types)] {
                for &id in ids {
                    if !met.contains(&id) {
                        met.push(id);
                    }
                }
            }
            assert_eq!((recorder.nodes(), recorder.types()), (&met_nodes[..], &met_types[..]));
            assert!(walks.nodes.iter().zip(&out.node).all(|(&v, &local)| recorder.local_node(v) == Some(local)));
            assert!(walks.types.iter().zip(&out.ty).all(|(&t, &local)| recorder.local_type(t) == Some(local)));
        }
    }
}
