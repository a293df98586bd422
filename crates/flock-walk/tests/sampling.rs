//! Properties that hold exactly: the same bits however the work is cut, masks equal to rebuilt
//! graphs, the options, and the pinned stream.

use flock_graph::{Mask, Topology, Triple};
use flock_walk::{Key, Starts, Stream, WalkOptions, WalkQuery, Walks, sample, sample_from};
use std::ops::Range;

const KEY: Key = Key { seed: 5, pass: 2, update: 1, query: 77 };

/// A random graph with parallel edges, self-loops and isolated nodes.
fn triples(nodes: u32, relations: u32, count: usize) -> Vec<Triple> {
    let mut stream = Key { seed: 99, pass: 0, update: 0, query: 0 }.stream(0);
    let mut draw = |bound: u32| stream.below(u64::from(bound)) as u32;
    (0..count).map(|_| Triple { head: draw(nodes), relation: draw(relations), tail: draw(nodes) }).collect()
}

fn queries() -> [WalkQuery; 3] {
    [
        WalkQuery::Entity { head: 3, relation: 1 },
        WalkQuery::Entity { head: 3, relation: 7 },
        WalkQuery::Relation { head: 4, tail: 20 },
    ]
}

fn options(length: usize) -> WalkOptions {
    WalkOptions { length, ..WalkOptions::default() }
}

/// Cuts all walks at `cuts` and samples each piece on its own thread.
fn in_pieces(g: &Topology, mask: Option<&Mask>, query: &WalkQuery, n: u32, o: &WalkOptions, cuts: &[usize]) -> Walks {
    let walks = query.num_walks(n);
    let (mut nodes, mut types, mut dirs) =
        (vec![9; walks * o.length], vec![9; walks * o.length], vec![9; walks * o.length]);
    let starts = Starts::prepare(g, mask, query, n, KEY, o);
    std::thread::scope(|scope| {
        let (mut v, mut t, mut d) = (&mut nodes[..], &mut types[..], &mut dirs[..]);
        for (piece, bounds) in cuts.windows(2).enumerate() {
            let range: Range<usize> = bounds[0]..bounds[1];
            let entries = range.len() * o.length;
            let (a, b, c);
            (a, v) = v.split_at_mut(entries);
            (b, t) = t.split_at_mut(entries);
            (c, d) = d.split_at_mut(entries);
            let starts = &starts;
            scope.spawn(move || {
                if piece % 2 == 0 {
                    sample_from(starts, g, mask, o, range, a, b, c);
                } else {
                    sample(g, mask, query, n, KEY, o, range, a, b, c);
                }
            });
        }
    });
    Walks { length: o.length, nodes, types, dirs }
}

#[test]
fn same_bits_for_any_threads_and_any_cut() {
    let g = Topology::build(60, 5, triples(55, 5, 150)).unwrap();
    let hidden: Vec<Triple> = g.triples().step_by(4).collect();
    let mask = Mask::new(&g, &hidden);
    // Miri is slow, so it gets fewer walks, but still more than one block.
    let (n, length, cuts) = if cfg!(miri) { (6, 5, 1) } else { (23, 19, 20) };
    let o = options(length);
    for query in queries() {
        for mask in [None, Some(&mask)] {
            let whole = Walks::sample(&g, mask, &query, n, KEY, &o);
            let walks = query.num_walks(n);
            for threads in [1, 2, 7, walks] {
                let cuts: Vec<usize> = (0..=threads).map(|i| i * walks / threads).collect();
                assert_eq!(in_pieces(&g, mask, &query, n, &o, &cuts), whole, "{threads} threads");
            }
            let mut stream = Stream::default();
            for _ in 0..cuts {
                let mut cuts: Vec<usize> = (0..6).map(|_| stream.below(walks as u64 + 1) as usize).collect();
                cuts.extend([0, walks]);
                cuts.sort_unstable();
                assert_eq!(in_pieces(&g, mask, &query, n, &o, &cuts), whole, "cut at {cuts:?}");
            }
        }
    }
}

/// With one name for each relation, a question about a head is the question about a tail on the
/// reversed graph. (Balanced starts are left out: their edges come in an order that depends on the
/// type. No relation joins two nodes in both directions: the order of the labels would differ.)
#[test]
fn head_questions_are_tail_questions_on_the_reversed_graph() {
    let forward = triples(40, 5, 150).into_iter().filter(|t| t.head < t.tail).collect::<Vec<_>>();
    let backward = forward.iter().map(|t| Triple { head: t.tail, tail: t.head, ..*t }).collect();
    let [g, reversed] = [forward, backward].map(|triples| Topology::build(40, 5, triples).unwrap());
    let o = WalkOptions { inverses: false, ..options(30) };
    let n = 20;
    let walks = |g, relation| Walks::sample(g, None, &WalkQuery::Entity { head: 3, relation }, n, KEY, &o);
    let (heads, tails) = (walks(&g, 7), walks(&reversed, 2));
    let all = 2 * n as usize * o.length;
    assert_eq!((&heads.nodes[..all], &heads.dirs[..all]), (&tails.nodes[..all], &tails.dirs[..all]));
    for (&of_heads, &of_tails) in heads.types[..all].iter().zip(&tails.types) {
        assert_eq!(of_heads, if of_tails == g.no_type() { of_tails } else { of_tails + 5 });
    }
}

/// Hiding edges gives the walks of the graph rebuilt without them, bit for bit.
#[test]
fn masked_walks_are_those_of_the_rebuilt_graph() {
    let (sizes, steps, n, length) = if cfg!(miri) {
        (&[(12, 60)][..], &[2][..], 6, 8)
    } else {
        (&[(12, 60), (60, 150), (200, 300)][..], &[1, 2, 3, 10][..], 30, 40)
    };
    for &(nodes, count) in sizes {
        let g = Topology::build(nodes + 5, 5, triples(nodes, 5, count)).unwrap();
        for &step in steps {
            let hidden: Vec<Triple> = g.triples().step_by(step).collect();
            let mask = Mask::new(&g, &hidden);
            let rest = g.triples().filter(|x| !hidden.contains(x)).collect();
            let rebuilt = Topology::build(nodes + 5, 5, rest).unwrap();
            for query in queries() {
                for o in [
                    options(length),
                    WalkOptions { backtrack: true, ..options(length) },
                    WalkOptions { balanced_on_query_relation: true, ..options(length) },
                    WalkOptions { inverses: false, query_start_period: 2, restart: 100, ..options(length) },
                ] {
                    assert_eq!(
                        Walks::sample(&g, Some(&mask), &query, n, KEY, &o),
                        Walks::sample(&rebuilt, None, &query, n, KEY, &o),
                        "{nodes} nodes, every {step}th triple hidden"
                    );
                }
            }
        }
    }
}

#[test]
fn every_part_of_the_key_matters() {
    let g = Topology::build(60, 5, triples(60, 5, 300)).unwrap();
    let query = queries()[0];
    let with = |key| Walks::sample(&g, None, &query, 16, key, &options(32));
    let walks = with(KEY);
    for other in [
        Key { seed: 6, ..KEY },
        Key { pass: 3, ..KEY },
        Key { update: 2, ..KEY },
        Key { query: 78, ..KEY },
        Key { pass: KEY.update, update: KEY.pass, ..KEY },
    ] {
        assert_ne!(with(other).nodes, walks.nodes);
        let tickets = |key| Starts::prepare(&g, None, &query, 4, key, &options(32)).tickets().collect::<Vec<_>>();
        assert_ne!(tickets(other), tickets(KEY));
    }
}

#[test]
fn switches() {
    let g = Topology::build(60, 5, triples(60, 5, 150)).unwrap();
    let n = 10;
    for length in [1, 2, 3, 17, 128] {
        let walks = Walks::sample(&g, None, &queries()[0], n, KEY, &options(length));
        assert_eq!(walks.nodes.len(), 3 * 10 * length);
        // Shorter walks are the beginnings of longer ones.
        let long = Walks::sample(&g, None, &queries()[0], n, KEY, &options(130));
        for (short, long) in walks.nodes.chunks(length).zip(long.nodes.chunks(130)) {
            assert_eq!(short, &long[..length]);
        }
    }
    assert!(Walks::sample(&g, None, &queries()[0], n, KEY, &options(0)).nodes.is_empty());
    assert!(Walks::sample(&g, None, &queries()[0], 0, KEY, &options(8)).nodes.is_empty());

    let turns_back = |o: &WalkOptions| {
        let walks = Walks::sample(&g, None, &queries()[0], n, KEY, o);
        let walks = walks.nodes.chunks(o.length);
        walks.flat_map(|w| w.windows(3).map(|w| w[0] == w[2] && g.degree(w[1]) > 1)).filter(|&x| x).count()
    };
    assert_eq!(turns_back(&options(128)), 0);
    assert!(turns_back(&WalkOptions { backtrack: true, ..options(128) }) > 100);

    let at_query = WalkOptions { all_at_query: true, ..options(5) };
    let starts = |query| -> Vec<u32> {
        Walks::sample(&g, None, &query, 2, KEY, &at_query).nodes.chunks(5).map(|w| w[0]).collect()
    };
    assert_eq!(starts(queries()[0]), [3; 6]);
    assert_eq!(starts(queries()[2]), [4, 4, 20, 20, 4, 4, 20, 20]);

    // Every second random start is at the query's nodes, in turns; the other walks stay as they were.
    let half = WalkOptions { query_start_period: 2, ..options(5) };
    let changed = |query, options| {
        let [before, after] = [&self::options(5), options].map(|o| Walks::sample(&g, None, &query, 6, KEY, o));
        let pairs = before.nodes.chunks(5).zip(after.nodes.chunks(5)).enumerate();
        pairs.filter(|(_, (before, after))| before != after).map(|(i, (_, after))| (i, after[0])).collect::<Vec<_>>()
    };
    assert_eq!(changed(queries()[0], &half), [(6, 3), (8, 3), (10, 3)]);
    assert_eq!(changed(queries()[2], &half), [(12, 4), (14, 20), (16, 4)]);
    // Such a walk restarts at the query too.
    let again = WalkOptions { restart: 512, ..half };
    let walks = Walks::sample(&g, None, &queries()[0], 6, KEY, &again);
    let restarts = walks.dirs.iter().zip(&walks.nodes).enumerate().filter(|(_, (dir, _))| **dir == 3);
    let restarts: Vec<_> = restarts.filter(|(at, _)| [6, 8, 10].contains(&(at / 5))).map(|(_, (_, v))| *v).collect();
    assert!(restarts.len() > 3 && restarts.iter().all(|&v| v == 3), "{restarts:?}");
    let every = WalkOptions { query_start_period: 1, ..options(5) };
    assert_eq!(changed(queries()[0], &every).iter().map(|x| x.0).collect::<Vec<_>>(), [6, 7, 8, 9, 10, 11]);

    let own = WalkOptions { balanced_on_query_relation: true, ..options(2) };
    let walks = Walks::sample(&g, None, &queries()[1], n, KEY, &own);
    assert!(walks.types.chunks(2).skip(20).all(|types| types == [10, 7]));
}

/// On graphs without edges, and from unknown ids, walks stay where they are.
#[test]
fn nowhere_to_go() {
    let empty = Topology::build(0, 0, Vec::new()).unwrap();
    let walks = Walks::sample(&empty, None, &queries()[0], 2, KEY, &options(4));
    assert_eq!((walks.nodes, walks.types, walks.dirs), (vec![3; 24], vec![0; 24], vec![3; 24]));

    let edgeless = Topology::build(3, 2, Vec::new()).unwrap();
    let walks = Walks::sample(&edgeless, None, &queries()[2], 5, KEY, &options(4));
    assert!(walks.nodes.chunks(4).all(|w| w.iter().all(|&v| v == w[0])));
    assert!(walks.types.iter().all(|&t| t == 4) && walks.dirs.iter().all(|&d| d == 3));
    assert!(walks.nodes[40..].iter().all(|&v| v < 3)); // uniform, in place of balanced edges

    let pair = vec![Triple { head: 0, relation: 0, tail: 1 }];
    let g = Topology::build(2, 2, pair.clone()).unwrap();
    let unknown = WalkQuery::Entity { head: u32::MAX, relation: 99 };
    let own = WalkOptions { balanced_on_query_relation: true, ..options(3) };
    let walks = Walks::sample(&g, Some(&Mask::new(&g, &pair)), &unknown, 2, KEY, &own);
    assert_eq!(walks.nodes[..6], [u32::MAX; 6]);
    let walks = Walks::sample(&g, None, &unknown, 1, KEY, &own); // no edge of the query's relation: all relations
    assert_eq!(walks.nodes[6] + walks.nodes[7], 1);
}

/// Pins the sampled integers, so that no refactoring and no platform changes the stream unnoticed.
/// The value is FNV-1a over nodes, types and directions. This test computed the values on code
/// whose statistics the other tests check.
#[test]
fn pinned_stream() {
    let g = Topology::build(60, 5, triples(55, 5, 200)).unwrap();
    let hidden: Vec<Triple> = g.triples().step_by(3).collect();
    let mask = Mask::new(&g, &hidden);
    let mut hashes = Vec::new();
    for query in queries() {
        for mask in [None, Some(&mask)] {
            let walks = Walks::sample(&g, mask, &query, 16, KEY, &options(64));
            let mut hash = 0xcbf2_9ce4_8422_2325_u64;
            let dirs = walks.dirs.iter().map(|&d| u32::from(d));
            for word in walks.nodes.iter().chain(&walks.types).copied().chain(dirs) {
                for byte in word.to_le_bytes() {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
                }
            }
            hashes.push(hash);
        }
    }
    let pinned = [
        16452588442842685131,
        119780034017648688,
        16452588442842685131, // the query's relation does not matter to the walks
        119780034017648688,
        723883030669125344,
        7710368647045508065,
    ];
    assert_eq!(hashes, pinned);
}
