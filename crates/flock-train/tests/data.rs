//! Batches: drawn as they should be, the same after a resume, hiding what they must, with fair negatives and fair pieces.
//!
//! Seeds are fixed. Chi-square tests are at level 1e-4 (the Wilson-Hilferty approximation of the critical value).

use flock_graph::{LoadOptions, Topology, Triple, load};
use flock_model::bench::synthetic_graph;
use flock_model::checkpoint::Task;
use flock_train::data::{
    DataConfig, DataError, DataState, Feed, Hide, Negatives, Order, Origin, Shares, Sizes, Subgraph, strict_negatives,
};
use flock_walk::{Key, WalkOptions, WalkQuery, Walks};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/kg");

fn t(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

fn key(query: u64) -> Key {
    Key { seed: 11, pass: 0, update: 0, query }
}

/// The value that a chi-square variable exceeds with probability 1e-4: Wilson and Hilferty, with z = 3.719.
fn critical(degrees: usize) -> f64 {
    let d = degrees as f64;
    d * (1.0 - 2.0 / (9.0 * d) + 3.719 * (2.0 / (9.0 * d)).sqrt()).powi(3)
}

/// Chi-square of counts against equal chances over `kinds` outcomes.
fn chi_uniform<K: Ord>(counts: &BTreeMap<K, u64>, kinds: usize) -> f64 {
    let expected = counts.values().sum::<u64>() as f64 / kinds as f64;
    let seen: f64 = counts.values().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
    seen + (kinds - counts.len()) as f64 * expected
}

fn assert_uniform<K: Ord>(what: &str, counts: &BTreeMap<K, u64>, kinds: usize) {
    let chi = chi_uniform(counts, kinds);
    assert!(counts.len() <= kinds && chi < critical(kinds - 1), "{what}: chi-square {chi} over {kinds} outcomes");
}

// The order.

#[test]
fn orders_are_permutations() {
    for len in (1..70).chain([127, 128, 129, 1000, 4096, 4097, 65_536, 100_003]) {
        let order = Order::new(key(len), len);
        let all: BTreeSet<u64> = (0..len).map(|k| order.get(k)).collect();
        assert_eq!(all, (0..len).collect(), "length {len}");
        assert_eq!(order.get(len), order.get(0), "positions count modulo the length");
    }
    assert_eq!(Order::new(key(0), 0).get(5), 0);
    // The longest graph there can be.
    let order = Order::new(key(0), 1 << 30);
    let some: HashSet<u64> = (0..10_000).map(|k| order.get(k)).collect();
    assert!(some.len() == 10_000 && some.iter().all(|&x| x < 1 << 30));
}

/// All orders of 2, 3 and 5 elements are equally frequent over keys, as is each pair of neighbours in longer ones.
#[test]
fn orders_are_uniform() {
    for (len, orders, keys) in [(2, 2, 50_000), (3, 6, 60_000), (5, 120, 240_000)] {
        let mut counts = BTreeMap::new();
        for k in 0..keys {
            let order = Order::new(key(k), len);
            *counts.entry((0..len).map(|i| order.get(i)).collect::<Vec<_>>()).or_default() += 1;
        }
        assert_uniform(&format!("orders of {len}"), &counts, orders);
    }
    for len in [17, 64, 100] {
        let mut counts = BTreeMap::new();
        for k in 0..200_000 {
            let order = Order::new(key(k), len);
            let place = k % (len - 1);
            *counts.entry((order.get(place), order.get(place + 1))).or_default() += 1;
        }
        assert_uniform(&format!("neighbours among {len}"), &counts, (len * (len - 1)) as usize);
    }
}

// The feed.

fn three_graphs() -> [Topology; 3] {
    [synthetic_graph(60, 5, 300, 1), synthetic_graph(40, 3, 100, 2), synthetic_graph(80, 7, 600, 3)]
}

fn config(task: Task) -> DataConfig {
    DataConfig { batch: 6, negatives: Negatives::Drawn(10), ..DataConfig::published(task) }
}

#[test]
fn graphs_are_drawn_by_their_triples() {
    let graphs = three_graphs();
    let empty = Topology::build(5, 1, vec![]).unwrap();
    let feed = Feed::new(&[&graphs[0], &empty, &graphs[1], &graphs[2]], config(Task::Entity), 5).unwrap();
    let mut counts = [0u32; 4];
    for step in 0..100_000 {
        let Origin::Graph(graph) = feed.origin(step) else { panic!("no worlds were asked for") };
        counts[graph] += 1;
    }
    assert_eq!(counts[1], 0, "a graph without triples has no turn");
    let expected = [30_000.0, 0.0, 10_000.0, 60_000.0];
    let chi: f64 = [0, 2, 3].iter().map(|&i| (f64::from(counts[i]) - expected[i]).powi(2) / expected[i]).sum();
    assert!(chi < critical(2), "{counts:?}");
}

/// What a batch is, in a form that can be compared.
fn print(feed: &Feed, state: &DataState) -> String {
    let batch = feed.batch(state).unwrap();
    let piece = batch.subgraph.as_ref().map(|s| (s.nodes.clone(), s.relations.clone()));
    format!(
        "{:?} {piece:?} {:?} {:?} {:?} {:?}",
        batch.origin, batch.triples, batch.mask, batch.queries, batch.candidates
    )
}

/// A run, the same run stopped and resumed from the state's JSON at every step, and states counted from the start: all alike.
#[test]
fn a_resumed_run_asks_the_same() {
    let graphs = three_graphs();
    let refs: Vec<&Topology> = graphs.iter().collect();
    for task in [Task::Entity, Task::Relation] {
        let (pieces, shares) = (Some(Sizes { low: 8, high: 20 }), Some(Shares { low: 10, high: 60 }));
        for (subgraph, keep, drop) in
            [(None, None, None), (pieces, None, None), (pieces, shares, None), (pieces, shares, shares)]
        {
            let config = DataConfig { subgraph, keep, drop, ..config(task) };
            let feed = Feed::new(&refs, config, 9).unwrap();
            let mut state = feed.start();
            let mut run = Vec::new();
            for _ in 0..60 {
                run.push((state.clone(), print(&feed, &state)));
                feed.advance(&mut state).unwrap();
            }
            // Backwards and with another feed, so that nothing can be carried along.
            for (step, (state, printed)) in run.iter().enumerate().rev() {
                let feed = Feed::new(&refs, config, 9).unwrap();
                let json = serde_json::to_string(state).unwrap();
                let read: DataState = serde_json::from_str(&json).unwrap();
                assert_eq!(print(&feed, &read), *printed);
                assert_eq!(feed.state_at(step as u64), read);
            }
            let other = Feed::new(&refs, config, 10).unwrap();
            assert!((0..60).all(|step| print(&other, &other.state_at(step)) != run[step as usize].1));
        }
    }
    let state = DataState { step: 3, draws: vec![1, 2] };
    assert_eq!(serde_json::to_string(&state).unwrap(), r#"{"step":3,"draws":[1,2]}"#);
}

/// 100 triples in batches of 6: each triple once in draws 0..100, once more in 100..200, in another order, and so on.
#[test]
fn an_epoch_has_each_triple_once() {
    let graphs = three_graphs();
    let refs: Vec<&Topology> = graphs.iter().collect();
    let feed = Feed::new(&refs, config(Task::Entity), 4).unwrap();
    let mut state = feed.start();
    let mut drawn: [Vec<Triple>; 3] = Default::default();
    while drawn[1].len() < 300 {
        let batch = feed.batch(&state).unwrap();
        assert_eq!(batch.triples.len(), 6);
        let Origin::Graph(graph) = batch.origin else { panic!("no worlds were asked for") };
        drawn[graph].extend(&batch.triples);
        feed.advance(&mut state).unwrap();
        assert_eq!(state.draws[graph], drawn[graph].len() as u64);
    }
    for (graph, drawn) in graphs.iter().zip(&drawn) {
        let all: BTreeSet<Triple> = graph.triples().collect();
        for epoch in drawn.chunks_exact(graph.num_triples()) {
            assert_eq!(epoch.iter().copied().collect::<BTreeSet<_>>(), all);
        }
        assert!(drawn.len() >= 2 * graph.num_triples(), "{} draws are two epochs at least", drawn.len());
        assert_ne!(drawn[..graph.num_triples()], drawn[graph.num_triples()..2 * graph.num_triples()]);
    }
}

#[test]
fn bad_configs_and_states_are_refused() {
    let graphs = three_graphs();
    let refs: Vec<&Topology> = graphs.iter().collect();
    let good = config(Task::Entity);
    assert_eq!(Feed::new(&[], good, 0).unwrap_err(), DataError::NoTriples { graphs: 0 });
    let empty = Topology::build(3, 1, vec![]).unwrap();
    assert_eq!(Feed::new(&[&empty], good, 0).unwrap_err(), DataError::NoTriples { graphs: 1 });
    assert_eq!(Feed::new(&refs, DataConfig { batch: 0, ..good }, 0).unwrap_err(), DataError::EmptyBatch);
    for (low, high) in [(1, 5), (6, 5)] {
        let config = DataConfig { subgraph: Some(Sizes { low, high }), ..good };
        assert_eq!(Feed::new(&refs, config, 0).unwrap_err(), DataError::Sizes { low, high });
    }
    let pieces = DataConfig { subgraph: Some(Sizes { low: 5, high: 5 }), ..good };
    for (from, low, high) in [(pieces, 0, 5), (pieces, 6, 5), (pieces, 50, 101), (good, 20, 50)] {
        let shares = Some(Shares { low, high });
        for config in [DataConfig { keep: shares, ..from }, DataConfig { drop: shares, ..from }] {
            assert_eq!(Feed::new(&refs, config, 0).unwrap_err(), DataError::Shares { low, high });
        }
    }
    let feed = Feed::new(&refs, good, 0).unwrap();
    let mut state = DataState { step: 0, draws: vec![0; 2] };
    assert_eq!(feed.batch(&state).unwrap_err(), DataError::State { found: 2, expected: 3 });
    assert_eq!(feed.advance(&mut state).unwrap_err(), DataError::State { found: 2, expected: 3 });
    // Beyond the last counts, and at them.
    let far = DataState { step: u64::MAX, draws: vec![u64::MAX; 3] };
    assert_eq!(feed.batch(&far).unwrap_err(), DataError::Counts);
    assert_eq!(feed.advance(&mut far.clone()).unwrap_err(), DataError::Counts);
    let last = DataState { step: 1 << 63, draws: vec![1 << 63; 3] };
    assert!(feed.batch(&last).is_ok() && feed.advance(&mut last.clone()).is_ok());
}

// The batch.

/// 0 ⇄ 1 by several relations, one loop, and others.
fn multi() -> Topology {
    let triples = vec![
        t(0, 0, 1),
        t(0, 1, 1),
        t(1, 2, 0),
        t(1, 0, 2),
        t(2, 0, 3),
        t(2, 1, 3),
        t(3, 2, 3),
        t(3, 1, 4),
        t(4, 0, 0),
        t(4, 2, 5),
    ];
    Topology::build(6, 3, triples).unwrap()
}

#[test]
fn entity_batches() {
    let graph = multi();
    let config = DataConfig { batch: 5, negatives: Negatives::Drawn(7), ..DataConfig::published(Task::Entity) };
    let feed = Feed::new(&[&graph], config, 3).unwrap();
    for step in 0..200 {
        let batch = feed.batch(&feed.state_at(step)).unwrap();
        assert_eq!((batch.triples.len(), batch.queries.len(), batch.candidates.len()), (5, 5, 5));
        assert!(batch.subgraph.is_none() && std::ptr::eq(batch.topology(&graph), &graph));
        for (place, &x) in batch.triples.iter().enumerate() {
            let (head, relation, answer) =
                if place < 2 { (x.head, x.relation, x.tail) } else { (x.tail, x.relation + 3, x.head) };
            assert_eq!(batch.queries[place], WalkQuery::Entity { head, relation });
            let candidates = &batch.candidates[place];
            assert_eq!((candidates.len(), candidates[0]), (8, answer));
            assert!(graph.contains(head, relation, answer));
            assert!(candidates[1..].iter().all(|&v| v < 6 && !graph.contains(head, relation, v)));
        }
        let hidden: BTreeSet<Triple> = batch.triples.iter().copied().collect();
        for id in 0..10 {
            assert_eq!(batch.mask.hides(id), hidden.contains(&graph.triple(id)));
        }
    }
}

/// Worked out by hand on `multi`: what goes with each triple.
#[test]
fn hidden_edges() {
    let graph = multi();
    let cases = [
        (t(0, 1, 1), vec![t(0, 0, 1), t(0, 1, 1), t(1, 2, 0)], vec![t(0, 0, 1), t(0, 1, 1)]),
        (t(1, 2, 0), vec![t(0, 0, 1), t(0, 1, 1), t(1, 2, 0)], vec![t(1, 2, 0)]),
        (t(2, 0, 3), vec![t(2, 0, 3), t(2, 1, 3)], vec![t(2, 0, 3), t(2, 1, 3)]),
        (t(3, 2, 3), vec![t(3, 2, 3)], vec![t(3, 2, 3)]),
        (t(4, 2, 5), vec![t(4, 2, 5)], vec![t(4, 2, 5)]),
    ];
    let mut met = 0;
    let base = DataConfig { batch: 1, negatives: Negatives::Drawn(1), ..DataConfig::published(Task::Entity) };
    let asked = [(Task::Entity, Hide::Asked), (Task::Relation, Hide::Asked)];
    for (task, hide) in [(Task::Entity, Hide::Endpoints), (Task::Relation, Hide::Positives)].into_iter().chain(asked) {
        let feed = Feed::new(&[&graph], DataConfig { task, hide, ..base }, 1).unwrap();
        for step in 0..10 {
            let batch = feed.batch(&feed.state_at(step)).unwrap();
            let hidden: Vec<Triple> =
                graph.triples().enumerate().filter(|(id, _)| batch.mask.hides(*id as u32)).map(|(_, x)| x).collect();
            if let Some((_, endpoints, along)) = cases.iter().find(|c| c.0 == batch.triples[0]) {
                let mut expected = match (task, hide) {
                    (_, Hide::Asked) => batch.triples.clone(),
                    (Task::Entity, _) => endpoints.clone(),
                    (Task::Relation, _) => along.clone(),
                };
                expected.sort_unstable_by_key(|x| (x.relation, x.head, x.tail));
                assert_eq!(hidden, expected);
                met += 1;
            }
        }
    }
    assert_eq!(met, 4 * cases.len(), "an epoch meets them all");
}

#[test]
fn relation_batches() {
    let graph = multi();
    let config = DataConfig { batch: 4, ..DataConfig::published(Task::Relation) };
    let feed = Feed::new(&[&graph], config, 3).unwrap();
    for step in 0..50 {
        let batch = feed.batch(&feed.state_at(step)).unwrap();
        for ((query, candidates), x) in batch.queries.iter().zip(&batch.candidates).zip(&batch.triples) {
            assert_eq!(*query, WalkQuery::Relation { head: x.head, tail: x.tail });
            let expected = [[0, 1, 2], [1, 0, 2], [2, 0, 1]][x.relation as usize];
            assert_eq!(*candidates, expected);
        }
    }
}

/// No walk of a batch steps along a hidden edge.
#[test]
fn walks_do_not_see_the_answers() {
    let graph = synthetic_graph(50, 4, 300, 8);
    for (task, hide) in [
        (Task::Entity, Hide::Positives),
        (Task::Entity, Hide::Endpoints),
        (Task::Relation, Hide::Positives),
        (Task::Relation, Hide::Asked),
    ] {
        for subgraph in [None, Some(Sizes { low: 15, high: 15 })] {
            let feed = Feed::new(&[&graph], DataConfig { hide, subgraph, ..config(task) }, 2).unwrap();
            for step in 0..20 {
                let batch = feed.batch(&feed.state_at(step)).unwrap();
                let g = batch.topology(&graph);
                for query in &batch.queries {
                    let walks = Walks::sample(g, Some(&batch.mask), query, 8, key(step), &WalkOptions::default());
                    for (i, pair) in walks.nodes.windows(2).enumerate().filter(|(i, _)| (i + 1) % 128 != 0) {
                        let (ty, dir) = (walks.types[i + 1], walks.dirs[i + 1]);
                        if dir == 3 {
                            continue;
                        }
                        // A loop's type says nothing of its direction, nor needs to.
                        let (from, to) = if dir == 0 { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
                        let raw = ty % g.num_relations();
                        let step = if ty == raw { t(from, raw, to) } else { t(to, raw, from) };
                        let id = g.triple_id(step).expect("an edge of the graph");
                        assert!(!batch.mask.hides(id), "{step:?} is hidden");
                    }
                }
            }
        }
    }
}

// Negatives.

/// One head with answers of every share: draws are uniform over exactly the others, by rejection and by index arithmetic.
#[test]
fn negatives_are_uniform_over_the_others() {
    let entities = 60;
    for answers in [0, 1, 7, 29, 30, 31, 45, 58, 59] {
        // Answers spread over the ids, and another head to be left out of account.
        let known: BTreeSet<u32> = (0..entities).map(|i| (i * 37 + 5) % entities).take(answers).collect();
        let mut triples: Vec<Triple> = known.iter().map(|&v| t(3, 1, v)).collect();
        triples.extend((0..entities).map(|v| t(4, 1, v)).chain((0..entities).map(|v| t(3, 0, v))));
        let forward = Topology::build(entities, 2, triples.clone()).unwrap();
        let flipped = triples.iter().map(|x| t(x.tail, x.relation, x.head)).collect();
        let backward = Topology::build(entities, 2, flipped).unwrap();
        for (graph, ty) in [(&forward, 1), (&backward, 1 + 2)] {
            let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
            for query in 0..200 {
                let mut drawn = vec![99];
                strict_negatives(graph, 3, ty, 500, &mut key(query).stream(0), &mut drawn);
                assert_eq!((drawn.len(), drawn[0]), (501, 99), "appended");
                drawn[1..].iter().for_each(|&v| *counts.entry(v).or_default() += 1);
            }
            assert!(counts.keys().all(|v| !known.contains(v) && *v < entities));
            let others = entities as usize - answers;
            assert_eq!(counts.len(), others);
            if others > 1 {
                assert_uniform(&format!("{answers} answers"), &counts, others);
            }
        }
    }
}

/// Two draws of one query are independent: each pair of the 6 others, with repeats, equally often.
#[test]
fn negatives_are_drawn_with_replacement() {
    for answers in [2, 10] {
        let graph = Topology::build(answers + 6, 1, (0..answers).map(|v| t(0, 0, v)).collect()).unwrap();
        let mut counts = BTreeMap::new();
        for query in 0..72_000 {
            let mut drawn = Vec::new();
            strict_negatives(&graph, 0, 0, 2, &mut key(query).stream(0), &mut drawn);
            *counts.entry((drawn[0], drawn[1])).or_default() += 1;
        }
        assert_uniform("pairs", &counts, 36);
    }
}

#[test]
fn nobody_is_left_when_all_are_answers() {
    let graph = Topology::build(4, 1, (0..4).map(|v| t(0, 0, v)).collect()).unwrap();
    let mut drawn = Vec::new();
    strict_negatives(&graph, 0, 0, 5, &mut key(0).stream(0), &mut drawn);
    assert!(drawn.is_empty());
    let config = DataConfig { batch: 2, negatives: Negatives::Drawn(5), ..DataConfig::published(Task::Entity) };
    let feed = Feed::new(&[&graph], config, 0).unwrap();
    for step in 0..4 {
        let batch = feed.batch(&feed.state_at(step)).unwrap();
        assert_eq!(batch.candidates[0], [batch.triples[0].tail], "only the positive");
        assert_eq!(batch.candidates[1].len(), 6);
    }
}

// Pieces.

fn is_connected(g: &Topology) -> bool {
    let (mut seen, mut queue) = (HashSet::from([0]), vec![0]);
    while let Some(v) = queue.pop() {
        queue.extend(g.neighbours(v).filter(|&w| seen.insert(w)));
    }
    seen.len() as u32 == g.num_nodes()
}

/// Right size, connected, induced, dense ids that lead back, anchor first.
fn check_piece(whole: &Topology, anchor: Triple, size: usize, piece: &Subgraph) {
    assert_eq!(piece.nodes.len(), size);
    assert_eq!(piece.topology.num_nodes() as usize, size);
    assert!(is_connected(&piece.topology));
    assert_eq!(piece.nodes[0], anchor.head);
    assert!(anchor.head == anchor.tail || piece.nodes[1] == anchor.tail);
    let chosen: HashSet<u32> = piece.nodes.iter().copied().collect();
    assert_eq!(chosen.len(), size);
    let induced: BTreeSet<Triple> =
        whole.triples().filter(|x| chosen.contains(&x.head) && chosen.contains(&x.tail)).collect();
    let kept: BTreeSet<Triple> = piece.topology.triples().map(|x| piece.to_global(x)).collect();
    assert_eq!(kept, induced);
    assert_eq!(kept.len(), piece.topology.num_triples());
    let used: BTreeSet<u32> = induced.iter().map(|x| x.relation).collect();
    assert_eq!(used.into_iter().collect::<Vec<_>>(), piece.relations, "every relation that occurs, and no other");
    assert_eq!(piece.topology.num_relations() as usize, piece.relations.len());
    assert_eq!(piece.topology.relations_in_use().len(), piece.relations.len());
}

#[test]
fn pieces_are_connected_induced_and_of_the_size_asked() {
    // Loops and parallel edges included; some nodes are hubs to small pieces, none to large ones.
    let graph = synthetic_graph(300, 6, 2500, 4);
    for query in 0..60 {
        let mut stream = key(query).stream(0);
        let anchor = graph.triple(stream.below(2500) as u32);
        let size = 2 + stream.below(150) as usize;
        let piece = Subgraph::around(&graph, anchor, size, &mut |b| stream.below(b)).unwrap();
        check_piece(&graph, anchor, size.max(if anchor.head == anchor.tail { 1 } else { 2 }), &piece);
    }
}

/// A component smaller than the size asked for is taken whole, also where it hangs together by one hub.
#[test]
fn small_components_are_taken_whole() {
    let star = (1..50).map(|v| t(0, 0, v));
    let chain = (60..70).map(|v| t(v, 1, v + 1));
    let graph = Topology::build(80, 2, star.chain(chain).collect()).unwrap();
    for query in 0..20 {
        let mut stream = key(query).stream(0);
        let mut below = |b| stream.below(b);
        check_piece(&graph, t(0, 0, 7), 50, &Subgraph::around(&graph, t(0, 0, 7), 60, &mut below).unwrap());
        check_piece(&graph, t(65, 1, 66), 11, &Subgraph::around(&graph, t(65, 1, 66), 60, &mut below).unwrap());
        check_piece(&graph, t(65, 1, 66), 5, &Subgraph::around(&graph, t(65, 1, 66), 5, &mut below).unwrap());
    }
    assert!(Subgraph::around(&graph, t(0, 0, 80), 5, &mut |_| 0).is_err(), "no such node");
    // In a feed another anchor is tried: 59 triples, 10 of them in the chain, which is too small for 40 entities.
    let config = DataConfig { subgraph: Some(Sizes { low: 40, high: 40 }), ..config(Task::Entity) };
    let feed = Feed::new(&[&graph], config, 0).unwrap();
    let full = (0..59).filter(|&s| feed.batch(&feed.state_at(s)).unwrap().subgraph.unwrap().nodes.len() == 40);
    assert_eq!(full.count(), 59);
}

/// Sizes of a feed's pieces are uniform on the range, and its triples are distinct ones of the piece.
#[test]
fn feed_on_pieces() {
    let graph = synthetic_graph(200, 6, 1500, 4);
    let config = DataConfig { subgraph: Some(Sizes { low: 10, high: 14 }), ..config(Task::Entity) };
    let feed = Feed::new(&[&graph], config, 6).unwrap();
    let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
    let mut anchors = HashSet::new();
    let mut state = feed.start();
    for _ in 0..1500 {
        let batch = feed.batch(&state).unwrap();
        let piece = batch.subgraph.as_ref().unwrap();
        *sizes.entry(piece.nodes.len()).or_default() += 1;
        anchors.insert((piece.nodes[0], piece.nodes[1]));
        assert_eq!(batch.triples.len(), 6.min(piece.topology.num_triples()));
        assert_eq!(batch.triples.iter().collect::<HashSet<_>>().len(), batch.triples.len());
        assert!(batch.triples.iter().all(|&x| piece.topology.triple_id(x).is_some()));
        assert_eq!(batch.mask.len(), batch.triples.len());
        // Known answers of the piece are those of the graph.
        for (query, candidates) in batch.queries.iter().zip(&batch.candidates) {
            let WalkQuery::Entity { head, relation } = *query else { panic!("{query:?}") };
            let raw = relation % piece.topology.num_relations();
            let ty = piece.relations[raw as usize] + if raw == relation { 0 } else { graph.num_relations() };
            let known = |&v: &u32| graph.contains(piece.nodes[head as usize], ty, piece.nodes[v as usize]);
            assert!(known(&candidates[0]) && !candidates[1..].iter().any(known));
        }
        feed.advance(&mut state).unwrap();
    }
    assert_uniform("sizes", &sizes, 5);
    assert_eq!(state.draws, [1500], "one anchor a step");
    let pairs: HashSet<(u32, u32)> = graph.triples().map(|x| (x.head, x.tail)).filter(|(h, t)| h != t).collect();
    assert!(pairs.is_subset(&anchors), "an epoch of steps has an anchor at every triple");
}

/// A thinned piece asks what the whole piece would ask, holds as many triples as the share says, and what is left out stays an answer.
#[test]
fn thinned_pieces_keep_questions_and_answers() {
    let graph = synthetic_graph(200, 6, 1500, 4);
    for task in [Task::Entity, Task::Relation] {
        let whole =
            DataConfig { subgraph: Some(Sizes { low: 40, high: 60 }), negatives: Negatives::ALL, ..config(task) };
        let thin = DataConfig { keep: Some(Shares { low: 11, high: 20 }), ..whole };
        let [whole, thin] = [whole, thin].map(|config| Feed::new(&[&graph], config, 6).unwrap());
        let mut shares: BTreeMap<u64, u64> = BTreeMap::new();
        for step in 0..400 {
            let state = whole.state_at(step);
            let (all, some) = (whole.batch(&state).unwrap(), thin.batch(&state).unwrap());
            assert_eq!((&all.triples, &all.queries, &all.candidates), (&some.triples, &some.queries, &some.candidates));
            let (all, piece) = (all.subgraph.unwrap(), some.subgraph.unwrap());
            assert_eq!((&all.nodes, &all.relations), (&piece.nodes, &piece.relations));
            let [of, kept] = [&all, &piece].map(|p| p.topology.num_triples() as u64);
            assert!(piece.topology.triples().all(|x| all.topology.triple_id(x).is_some()));
            // Hidden are the batch's triples, or what joins their ends as far as it was kept: nothing that is not there.
            assert!(some.triples.iter().all(|&x| some.mask.hides(piece.topology.triple_id(x).unwrap())));
            if kept > some.triples.len() as u64 {
                let share = (11..=20).find(|share| (of * share).div_ceil(100) == kept);
                *shares.entry(share.unwrap_or_else(|| panic!("{kept} of {of}"))).or_default() += 1;
            }
        }
        assert!(shares.len() == 10 && shares.values().all(|&n| n > 10), "{shares:?}");
    }
}

/// Of a piece with dropped relations all triples of the others are left, asked-about relations among them; its questions are those
/// of the whole piece, and of the relations that could go, the share goes that was asked for.
#[test]
fn dropped_relations_are_whole_and_never_asked_about() {
    let graph = synthetic_graph(200, 40, 1500, 4);
    for task in [Task::Entity, Task::Relation] {
        let whole =
            DataConfig { subgraph: Some(Sizes { low: 40, high: 60 }), negatives: Negatives::ALL, ..config(task) };
        let sparse = DataConfig { drop: Some(Shares { low: 30, high: 50 }), ..whole };
        let [whole, sparse] = [whole, sparse].map(|config| Feed::new(&[&graph], config, 6).unwrap());
        let (mut gone, mut free) = (0, 0);
        for step in 0..400 {
            let state = whole.state_at(step);
            let (all, some) = (whole.batch(&state).unwrap(), sparse.batch(&state).unwrap());
            assert_eq!((&all.triples, &all.queries, &all.candidates), (&some.triples, &some.queries, &some.candidates));
            let asked: BTreeSet<u32> = all.triples.iter().map(|t| t.relation).collect();
            let [all, left] = [all, some].map(|b| b.subgraph.unwrap().topology);
            let of = |topology: &Topology| topology.triples().map(|t| t.relation).collect::<BTreeSet<u32>>();
            let kept = of(&left);
            assert!(kept.is_superset(&asked));
            let expected: Vec<Triple> = all.triples().filter(|t| kept.contains(&t.relation)).collect();
            assert_eq!(left.triples().collect::<Vec<_>>(), expected);
            free += of(&all).len() - asked.len();
            gone += of(&all).len() - kept.len();
        }
        // 0.40 of thousands, the chance of each step uniform in 0.30 to 0.50: a standard error below 0.005.
        let share = gone as f64 / free as f64;
        assert!(free > 10_000 && (share - 0.40).abs() < 0.02, "{gone} of {free}");
    }
}

/// Pieces of 12 around random anchors: counts of (triples kept, largest degree in the piece).
fn shapes(
    graph: &Topology,
    seed: u64,
    below: impl Fn(&mut flock_walk::Stream, u64) -> u64,
) -> BTreeMap<(usize, u32), u64> {
    let mut counts = BTreeMap::new();
    for query in 0..40_000 {
        let mut stream = Key { seed, pass: 0, update: 0, query }.stream(0);
        let anchor = graph.triple(stream.below(graph.num_triples() as u64) as u32);
        let piece = Subgraph::around(graph, anchor, 12, &mut |b| below(&mut stream, b)).unwrap();
        let hub = (0..12).map(|v| piece.topology.degree(v)).max().unwrap();
        *counts.entry((piece.topology.num_triples() / 2, hub)).or_default() += 1;
    }
    counts
}

/// Chi-square of two samples of equal size from, it is claimed, one distribution, and its degrees of freedom. Rare outcomes, fewer
/// than 20 in both together, are made one.
fn two_samples<K: Ord + Copy>(a: &BTreeMap<K, u64>, b: &BTreeMap<K, u64>) -> (f64, usize) {
    let keys: BTreeSet<K> = a.keys().chain(b.keys()).copied().collect();
    let (mut chi, mut cells, mut rare) = (0.0, 0, (0.0, 0.0));
    let mut add = |x: f64, y: f64| {
        chi += (x - y).powi(2) / (x + y);
        cells += 1;
    };
    for k in keys {
        let (x, y) = (*a.get(&k).unwrap_or(&0) as f64, *b.get(&k).unwrap_or(&0) as f64);
        if x + y >= 20.0 { add(x, y) } else { rare = (rare.0 + x, rare.1 + y) }
    }
    if rare.0 + rare.1 > 0.0 {
        add(rare.0, rare.1);
    }
    (chi, cells - 1)
}

/// Renaming the graph does not change how pieces look: a graph in which low ids are well connected, the same graph with ids
/// reversed, and with ids shuffled. A sampler that prefers low ids, made by drawing the lesser of two, is caught.
#[test]
fn pieces_do_not_depend_on_names() {
    let graph = synthetic_graph(400, 5, 1600, 21);
    let renamed = |rename: &dyn Fn(u32) -> u32| {
        let triples = graph.triples().map(|x| t(rename(x.head), (x.relation + 2) % 5, rename(x.tail))).collect();
        Topology::build(400, 5, triples).unwrap()
    };
    let reversed = renamed(&|v| 399 - v);
    let shuffle = Order::new(key(0), 400);
    let shuffled = renamed(&|v| shuffle.get(u64::from(v)) as u32);

    let fair = |s: &mut flock_walk::Stream, b: u64| s.below(b);
    let low = |s: &mut flock_walk::Stream, b: u64| s.below(b).min(s.below(b));
    let reference = shapes(&graph, 1, fair);
    for (what, other) in [("reversed", &reversed), ("shuffled", &shuffled)] {
        let (chi, degrees) = two_samples(&reference, &shapes(other, 2, fair));
        assert!(degrees > 30, "the statistic has many outcomes: {degrees}");
        assert!(chi < critical(degrees), "{what}: chi-square {chi}, {degrees} degrees");
    }
    let (chi, degrees) = two_samples(&shapes(&graph, 1, low), &shapes(&reversed, 2, low));
    assert!(
        chi > 2.0 * critical(degrees),
        "a sampler that prefers low ids passes: chi-square {chi}, {degrees} degrees"
    );
}

/// The time of a piece is that of the piece: on a graph 64 times as large, with a hub of 64 times the neighbours, draws stay the same in number.
#[test]
fn the_cost_does_not_grow_with_the_graph() {
    let draws = |leaves: u32| {
        let ring = (0..leaves).map(|v| t(1 + v, 0, 1 + (v + 1) % leaves));
        let graph = Topology::build(leaves + 1, 2, ring.chain((0..leaves).map(|v| t(0, 1, 1 + v))).collect()).unwrap();
        let (mut stream, mut count) = (key(1).stream(0), 0u32);
        for i in 0..50 {
            let mut below = |b| {
                count += 1;
                stream.below(b)
            };
            let piece = Subgraph::around(&graph, graph.triple(i), 100, &mut below).unwrap();
            assert_eq!(piece.nodes.len(), 100);
        }
        count
    };
    let (small, large) = (draws(2_000), draws(128_000));
    assert!(large < small + small / 2, "{small} draws on the small graph, {large} on the large one");
}

/// On the pretraining graphs: batches are full, and pieces are connected and of the size asked for.
#[test]
fn benchmark_graphs() {
    if !Path::new(SHARED).exists() {
        eprintln!("skipped: ../shared not found");
        return;
    }
    for name in ["FB15k237", "WN18RR", "CoDExMedium"] {
        let (graph, _) = load(&Path::new(SHARED).join(name).join("train.txt"), &LoadOptions::default()).unwrap();
        let graph = graph.topology();
        for (task, subgraph) in
            [(Task::Entity, None), (Task::Relation, None), (Task::Entity, Some(Sizes { low: 200, high: 1000 }))]
        {
            let config = DataConfig { task, subgraph, ..DataConfig::published(task) };
            let feed = Feed::new(&[graph], config, 1).unwrap();
            for step in 0..20 {
                let batch = feed.batch(&feed.state_at(step)).unwrap();
                assert_eq!(batch.triples.len(), 8);
                if let Some(piece) = &batch.subgraph {
                    assert!((200..=1000).contains(&piece.nodes.len()) && is_connected(&piece.topology));
                }
            }
        }
    }
}

/// Other ways to choose the entities of a piece, and how near the pieces come to their graph: the tables of `docs/notes/2026-11-15-choosing-pieces.md`.
///
/// `cargo test -p flock-kg --test data -- --ignored --nocapture subgraph_table`
mod table {
    use flock_graph::{LoadOptions, Topology, Triple, load};
    use flock_graph::{Subgraph, grow};
    use flock_walk::{Key, Stream, WalkOptions, WalkQuery, Walks};
    use std::collections::HashSet;
    use std::path::Path;

    const GRAPHS: [&str; 3] = ["FB15k237", "WN18RR", "CoDExMedium"];
    /// Pieces a row.
    const PIECES: u64 = 400;

    /// Chooses entities around a triple.
    type Choose = fn(&Topology, Triple, usize, &mut Stream) -> Vec<u32>;

    const METHODS: [(&str, Choose); 9] = [
        ("snowball, fan-out 2", |g, a, n, s| snowball(g, a, n, s, 2)),
        ("snowball, fan-out 4", |g, a, n, s| snowball(g, a, n, s, 4)),
        ("snowball, fan-out 8", |g, a, n, s| snowball(g, a, n, s, 8)),
        ("snowball, fan-out 16", |g, a, n, s| snowball(g, a, n, s, 16)),
        ("snowball, fan-out 64", |g, a, n, s| snowball(g, a, n, s, 64)),
        ("snowball, unbounded", |g, a, n, s| snowball(g, a, n, s, 1 << 20)),
        ("walk with restarts (1/8)", |g, a, n, s| walk(g, a, n, s, 8, false)),
        ("Metropolis walk", |g, a, n, s| walk(g, a, n, s, 0, true)),
        ("neighbour expansion", |g, a, n, s| grow(g, a, n, &mut |b| s.below(b))),
    ];

    /// Entities in the order they were chosen.
    struct Chosen {
        nodes: Vec<u32>,
        seen: HashSet<u32>,
    }

    impl Chosen {
        fn new(anchor: Triple) -> Chosen {
            let mut chosen = Chosen { nodes: Vec::new(), seen: HashSet::new() };
            chosen.add(anchor.head);
            chosen.add(anchor.tail);
            chosen
        }

        fn add(&mut self, v: u32) {
            if self.seen.insert(v) {
                self.nodes.push(v);
            }
        }
    }

    /// A random walk that goes back to the anchor once in `restart` moves (never if 0); `level`: hubs are entered less often, so that
    /// in the long run each entity is visited equally often.
    fn walk(g: &Topology, anchor: Triple, size: usize, s: &mut Stream, restart: u64, level: bool) -> Vec<u32> {
        let mut chosen = Chosen::new(anchor);
        let mut at = anchor.head;
        for _ in 0..1000 * size {
            if chosen.nodes.len() == size {
                break;
            }
            if restart > 0 && s.below(restart) == 0 {
                at = if s.below(2) == 0 { anchor.head } else { anchor.tail };
            }
            let degree = u64::from(g.degree(at));
            let next = g.neighbours(at).nth(s.below(degree) as usize).unwrap_or(at);
            if !level || s.below(u64::from(g.degree(next))) < degree {
                at = next;
            }
            chosen.add(at);
        }
        chosen.nodes
    }

    /// From the anchor outwards, each entity in its turn brings in `fan_out` random neighbours; if that runs dry, again with twice as many.
    fn snowball(g: &Topology, anchor: Triple, size: usize, s: &mut Stream, mut fan_out: usize) -> Vec<u32> {
        let mut chosen = Chosen::new(anchor);
        // A round may run dry before the piece is full; the next one brings in twice as many.
        while chosen.nodes.len() < size {
            let before = chosen.nodes.len();
            let mut longest = 0;
            let mut turn = 0;
            while turn < chosen.nodes.len() && chosen.nodes.len() < size {
                let v = chosen.nodes[turn];
                longest = longest.max(g.degree(v) as usize);
                for w in some_neighbours(g, v, fan_out, s) {
                    if chosen.nodes.len() < size {
                        chosen.add(w);
                    }
                }
                turn += 1;
            }
            if chosen.nodes.len() == before && fan_out >= longest {
                break; // everyone brought in everyone: the component ends here
            }
            fan_out *= 2;
        }
        chosen.nodes
    }

    /// At most `count` distinct neighbours of `v`, uniform and in uniform order, in O(count).
    fn some_neighbours(g: &Topology, v: u32, count: usize, s: &mut Stream) -> Vec<u32> {
        let degree = g.degree(v) as usize;
        let mut picked = Vec::with_capacity(count.min(degree));
        if degree <= 2 * count {
            // Few: the beginning of a shuffle.
            picked.extend(g.neighbours(v));
            for i in 0..count.min(degree) {
                let j = i + s.below((degree - i) as u64) as usize;
                picked.swap(i, j);
            }
            picked.truncate(count);
        } else {
            // Many: at least half of the draws are new.
            let first = g.record(v).first();
            while picked.len() < count {
                let w = g.slot(first + s.below(degree as u64) as u32).neighbour();
                if !picked.contains(&w) {
                    picked.push(w);
                }
            }
        }
        picked
    }

    /// What is compared between a piece and its graph.
    struct Measures {
        degree: f64,          // mean number of distinct neighbours
        triples: f64,         // per entity
        relations: f64,       // in use
        unvisited: f64,       // share of entities without a visit, at 4 visits an entity on average
        top: f64,             // share of visits to the most visited hundredth
        cumulative: Vec<f64>, // (128): share of entities of at most this degree
    }

    impl Measures {
        fn new() -> Measures {
            let cumulative = vec![0.0; 128];
            Measures { degree: 0.0, triples: 0.0, relations: 0.0, unvisited: 0.0, top: 0.0, cumulative }
        }

        /// Adds a piece's share to the mean.
        fn add(&mut self, one: &Measures) {
            let share = 1.0 / PIECES as f64;
            self.degree += share * one.degree;
            self.triples += share * one.triples;
            self.relations += share * one.relations;
            self.unvisited += share * one.unvisited;
            self.top += share * one.top;
            self.cumulative.iter_mut().zip(&one.cumulative).for_each(|(sum, x)| *sum += share * x);
        }
    }

    fn measure(g: &Topology, key: Key) -> Measures {
        let nodes = f64::from(g.num_nodes());
        let mut m = Measures::new();
        m.relations = g.relations_in_use().len() as f64;
        m.triples = g.num_triples() as f64 / nodes;
        for v in 0..g.num_nodes() {
            m.degree += f64::from(g.degree(v)) / nodes;
            for share in &mut m.cumulative[(g.degree(v) as usize).min(127)..] {
                *share += 1.0 / nodes;
            }
        }
        let t = g.triple(key.stream(7).below(g.num_triples() as u64) as u32);
        let n = (4.0 * nodes / (3.0 * 128.0)).round().max(1.0) as u32;
        let query = WalkQuery::Entity { head: t.head, relation: t.relation };
        let walks = Walks::sample(g, None, &query, n, key, &WalkOptions::default());
        let mut visits = vec![0u32; g.num_nodes() as usize];
        for &v in &walks.nodes {
            visits[v as usize] += 1;
        }
        visits.sort_unstable_by(|a, b| b.cmp(a));
        m.unvisited = visits.iter().filter(|&&c| c == 0).count() as f64 / nodes;
        let most = (visits.len() / 100).max(1);
        m.top = visits[..most].iter().map(|&c| f64::from(c)).sum::<f64>() / walks.nodes.len() as f64;
        m
    }

    #[test]
    #[ignore = "prints the tables of docs/notes/2026-11-15-choosing-pieces.md; takes minutes"]
    fn subgraph_table() {
        if !Path::new(super::SHARED).exists() {
            eprintln!("skipped: ../shared not found");
            return;
        }
        for size in [300, 1000, 3000] {
            for seed in [6, 7] {
                print_table(size, seed);
            }
        }
    }

    fn print_table(size: usize, seed: u64) {
        println!("\n{size} entities, seed {seed}\n");
        println!("| graph | entities by | degree | triples per entity | relations | degree KS | unvisited | top 1 % |");
        println!("|---|---|---|---|---|---|---|---|");
        let mut distance = [0.0; METHODS.len()];
        for name in GRAPHS {
            let path = Path::new(super::SHARED).join(name).join("train.txt");
            let (graph, _) = load(&path, &LoadOptions::default()).unwrap();
            let g = graph.topology();
            let whole = measure(g, Key { seed: 5, pass: 0, update: 0, query: 0 });
            let Measures { degree, triples, relations, unvisited, top, .. } = whole;
            let entities = g.num_nodes();
            println!(
                "| {name} | whole graph ({entities}) | {degree:.1} | {triples:.1} | {relations} | 0 | {unvisited:.2} | {top:.2} |"
            );
            for ((method, choose), distance) in METHODS.iter().zip(&mut distance) {
                let mut m = Measures::new();
                for piece in 0..PIECES {
                    let key = Key { seed, pass: 0, update: 0, query: piece };
                    let mut stream = key.stream(1);
                    let anchor = g.triple(stream.below(g.num_triples() as u64) as u32);
                    let nodes = choose(g, anchor, size, &mut stream);
                    assert_eq!(nodes.len(), size, "{method} on {name}");
                    m.add(&measure(&Subgraph::induced(g, &nodes).unwrap().topology, key));
                }
                let ks = m.cumulative.iter().zip(&whole.cumulative).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                *distance += ks + (m.degree / whole.degree).ln().abs() + (m.unvisited - whole.unvisited).abs();
                let kept = 100.0 * m.relations / whole.relations;
                println!(
                    "| | {method} | {:.1} | {:.1} | {:.0} ({kept:.0} %) | {ks:.2} | {:.2} | {:.2} |",
                    m.degree, m.triples, m.relations, m.unvisited, m.top
                );
            }
        }
        for ((method, _), distance) in METHODS.iter().zip(distance) {
            println!("{method}: {distance:.2}");
        }
    }
}

/// `"all"`: every entity that is no answer, once, in order.
#[test]
fn all_negatives_are_all_that_are_no_answers() {
    let t = |head, relation, tail| Triple { head, relation, tail };
    let graph = Topology::build(6, 2, vec![t(2, 0, 0), t(2, 0, 3), t(2, 0, 5), t(1, 1, 3)]).unwrap();
    let config = DataConfig { batch: 4, negatives: Negatives::ALL, ..DataConfig::published(Task::Entity) };
    let feed = Feed::new(&[&graph], config, 3).unwrap();
    let batch = feed.batch(&feed.start()).unwrap();
    assert_eq!(batch.queries.len(), 4);
    for ((query, candidates), triple) in batch.queries.iter().zip(&batch.candidates).zip(&batch.triples) {
        let WalkQuery::Entity { head, relation } = *query else { panic!("an entity question") };
        let (answer, others): (u32, &[u32]) = match (head, relation) {
            (2, 0) => (triple.tail, &[1, 2, 4]),
            (1, 1) => (3, &[0, 1, 2, 4, 5]),
            (3, 3) => (1, &[0, 2, 3, 4, 5]),
            (tail, 2) if tail == triple.tail => (2, &[0, 1, 3, 4, 5]),
            other => panic!("{other:?} is no question of this graph"),
        };
        assert_eq!((candidates[0], &candidates[1..]), (answer, others));
    }
}
