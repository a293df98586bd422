//! Compares sampled frequencies with exact probabilities, worked out by brute force from the text
//! of the specification.
//!
//! Seeds are fixed. Each chi-square test is at level 1e-4 (with the Wilson-Hilferty approximation
//! of the critical value), over at least 2e5 samples per graph. Outcomes of probability zero must
//! not occur at all.

use flock_graph::{Mask, Topology, Triple};
use flock_walk::{Key, Starts, WalkOptions, WalkQuery, Walks};
use std::collections::{BTreeMap, BTreeSet};

const RELATIONS: u32 = 3;

fn t(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

/// Parallel edges in one direction and in both, loops on connected nodes (2 with one, 4 with two), a node of degree one (5), an
/// isolated node (6), an isolated node with two loops (7) and with one (8), a pair joined by nothing else (9, 10).
fn graph() -> (u32, Vec<Triple>) {
    let triples = vec![
        t(0, 0, 1),
        t(0, 1, 1),
        t(1, 1, 0),
        t(1, 2, 2),
        t(2, 0, 3),
        t(3, 0, 2),
        t(0, 2, 3),
        t(2, 1, 2),
        t(4, 0, 0),
        t(4, 1, 2),
        t(4, 2, 4),
        t(4, 0, 4),
        t(3, 1, 4),
        t(5, 0, 4),
        t(7, 1, 7),
        t(7, 2, 7),
        t(8, 0, 8),
        t(9, 2, 10),
    ];
    (11, triples)
}

/// Hidden: a whole pair (0-3), one of two parallel edges (2-3), two of three (0-1), one of two loops (4), an only loop (8), and
/// the only edge of a node (5).
fn hidden() -> Vec<Triple> {
    vec![t(0, 2, 3), t(3, 0, 2), t(0, 0, 1), t(1, 1, 0), t(4, 0, 4), t(8, 0, 8), t(5, 0, 4)]
}

fn without(triples: &[Triple], hidden: &[Triple]) -> Vec<Triple> {
    triples.iter().copied().filter(|x| !hidden.contains(x)).collect()
}

type Outcome = (u32, u32, u8); // next node, type, direction

/// The edges that name the moves of a question: of both types, of the relation, or of its inverse.
fn named(triples: &[Triple], inverses: bool, relation: u32) -> Vec<(u32, u32, u32)> {
    let along = triples.iter().map(|x| (x.head, x.relation, x.tail));
    let against = triples.iter().map(|x| (x.tail, x.relation + RELATIONS, x.head));
    match (inverses, relation < RELATIONS) {
        (true, _) => along.chain(against).collect(),
        (false, true) => along.collect(),
        (false, false) => against.collect(),
    }
}

/// Lists all next positions and their probabilities, as section 2 defines them, on a graph with
/// these edges.
fn moves(edges: &[(u32, u32, u32)], v: u32, left: Option<u32>, balanced: bool) -> BTreeMap<Outcome, f64> {
    let has_loop = edges.iter().any(|&(a, _, b)| a == v && b == v);
    let undirected = edges.iter().flat_map(|&(a, _, b)| [(a, b), (b, a)]);
    let mut next: BTreeSet<u32> = undirected.filter(|&(a, b)| a == v && b != v).map(|(_, b)| b).collect();
    if has_loop && (balanced || next.is_empty()) {
        next.insert(v);
    }
    if next.is_empty() {
        return BTreeMap::from([((v, 2 * RELATIONS, 3), 1.0)]);
    }
    if let (Some(left), true) = (left, next.len() > 1) {
        next.remove(&left);
    }
    let mut outcomes = BTreeMap::new();
    for &w in &next {
        let mut labels = Vec::new();
        for &(a, s, b) in edges {
            if w == v {
                labels.extend((a == v && b == v).then_some((s, 1)));
            } else {
                labels.extend((a == v && b == w).then_some((s, 0)));
                labels.extend((a == w && b == v).then_some((s, 1)));
            }
        }
        for &(s, dir) in &labels {
            *outcomes.entry((w, s, dir)).or_insert(0.0) += 1.0 / (next.len() * labels.len()) as f64;
        }
    }
    outcomes
}

/// Panics unless the counts fit the probabilities at level 1e-4. Cells that expect less than 5 are pooled.
fn fits<T: Ord + std::fmt::Debug>(what: &str, counts: &BTreeMap<T, u64>, probabilities: &BTreeMap<T, f64>) {
    let total: u64 = counts.values().sum();
    assert!((probabilities.values().sum::<f64>() - 1.0).abs() < 1e-9);
    for outcome in counts.keys() {
        assert!(probabilities.contains_key(outcome), "{what}: {outcome:?} is impossible");
    }
    let (mut chi, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
    let mut add = |seen: f64, expected: f64| {
        chi += (seen - expected).powi(2) / expected;
        cells += 1;
    };
    for (outcome, p) in probabilities {
        let seen = *counts.get(outcome).unwrap_or(&0) as f64;
        let expected = p * total as f64;
        if expected >= 5.0 {
            add(seen, expected);
        } else {
            rest = (rest.0 + seen, rest.1 + expected);
        }
    }
    if rest.1 > 0.0 {
        add(rest.0, rest.1);
    }
    if cells > 1 {
        let df = f64::from(cells - 1);
        let critical = df * (1.0 - 2.0 / (9.0 * df) + 3.719 * (2.0 / (9.0 * df)).sqrt()).powi(3);
        assert!(
            chi < critical,
            "{what}: chi-square {chi:.1} over {df} (critical {critical:.1})\n{counts:?}\n{probabilities:?}"
        );
    }
}

fn key(query: u64) -> Key {
    Key { seed: 11, pass: 1, update: 2, query }
}

/// Compares every state that a walk of a question can be in with its exact table of next moves.
fn check_moves_of(relation: u32, g: &Topology, mask: Option<&Mask>, rest: &[Triple], options: WalkOptions) {
    let (length, backtrack) = (24, options.backtrack);
    let options = WalkOptions { length, ..options };
    let n = 8;
    let mut counts: BTreeMap<(u32, Option<u32>, bool), BTreeMap<Outcome, u64>> = BTreeMap::new();
    let mut samples = 0;
    for query in 0..1100 {
        let head = (query % u64::from(g.num_nodes())) as u32;
        let walks = Walks::sample(g, mask, &WalkQuery::Entity { head, relation }, n, key(query), &options);
        for walk in 0..3 * n as usize {
            let balanced = walk >= 2 * n as usize;
            let at = |k: usize| {
                let i = walk * length + k;
                (walks.nodes[i], walks.types[i], walks.dirs[i])
            };
            assert_eq!((at(0).1, at(0).2), (g.no_type(), 3));
            // A balanced walk's first move is its start, checked elsewhere.
            for k in 1 + usize::from(balanced)..length {
                let left = (k > 1 && !backtrack).then(|| at(k - 2).0);
                *counts.entry((at(k - 1).0, left, balanced)).or_default().entry(at(k)).or_default() += 1;
                samples += 1;
            }
        }
    }
    assert!(samples > 200_000 && counts.len() > if backtrack { 20 } else { 40 });
    let edges = named(rest, options.inverses, relation);
    for ((v, left, balanced), counts) in &counts {
        let exact = moves(&edges, *v, *left, *balanced);
        fits(&format!("from {v} after {left:?}, balanced {balanced}"), counts, &exact);
    }
}

fn check_moves(g: &Topology, mask: Option<&Mask>, rest: &[Triple], options: WalkOptions) {
    check_moves_of(0, g, mask, rest, options);
}

#[test]
fn moves_and_labels() {
    let (nodes, triples) = graph();
    let g = Topology::build(nodes, RELATIONS, triples.clone()).unwrap();
    check_moves(&g, None, &triples, WalkOptions::default());
}

#[test]
fn moves_with_backtracking() {
    let (nodes, triples) = graph();
    let g = Topology::build(nodes, RELATIONS, triples.clone()).unwrap();
    check_moves(&g, None, &triples, WalkOptions { backtrack: true, ..WalkOptions::default() });
}

/// The masked graph and the rebuilt one have the same exact tables by construction of `moves`. Both
/// samplers must fit them.
#[test]
fn masked_moves() {
    let (nodes, triples) = graph();
    let rest = without(&triples, &hidden());
    let g = Topology::build(nodes, RELATIONS, triples).unwrap();
    let options = WalkOptions::default();
    check_moves(&g, Some(&Mask::new(&g, &hidden())), &rest, options);
    check_moves(&Topology::build(nodes, RELATIONS, rest.clone()).unwrap(), None, &rest, options);
}

#[test]
fn moves_without_inverses() {
    let (nodes, triples) = graph();
    let rest = without(&triples, &hidden());
    let g = Topology::build(nodes, RELATIONS, triples.clone()).unwrap();
    let options = WalkOptions { inverses: false, ..WalkOptions::default() };
    // Type 4 is the inverse of relation 1: a question about a head.
    for relation in [0, 4] {
        check_moves_of(relation, &g, None, &triples, options);
        check_moves_of(relation, &g, Some(&Mask::new(&g, &hidden())), &rest, options);
    }
}

/// A hub with most neighbours hidden: index arithmetic over many hidden slots.
#[test]
fn masked_hub() {
    let triples: Vec<Triple> = (1..40).map(|v| t(0, v % 3, v)).chain([t(3, 1, 8), t(8, 0, 17), t(0, 0, 17)]).collect();
    let hidden: Vec<Triple> = (1..40).filter(|v| v % 4 != 1 && *v != 8).map(|v| t(0, v % 3, v)).collect();
    let rest = without(&triples, &hidden);
    let g = Topology::build(40, RELATIONS, triples).unwrap();
    check_moves(&g, Some(&Mask::new(&g, &hidden)), &rest, WalkOptions::default());
}

#[test]
fn starts_at_nodes() {
    let (nodes, triples) = graph();
    let g = Topology::build(nodes, RELATIONS, triples).unwrap();
    let options = WalkOptions { length: 2, ..WalkOptions::default() };
    let n = 50;
    let mut uniform: [BTreeMap<u32, u64>; 2] = Default::default();
    for query in 0..4100 {
        let entity = Walks::sample(&g, None, &WalkQuery::Entity { head: 5, relation: 1 }, n, key(query), &options);
        let relation = Walks::sample(&g, None, &WalkQuery::Relation { head: 5, tail: 9 }, n, key(query), &options);
        for walk in 0..n as usize {
            let from = |walks: &Walks, group: usize| walks.nodes[2 * (group * n as usize + walk)];
            assert_eq!((from(&entity, 0), from(&relation, 0), from(&relation, 1)), (5, 5, 9));
            *uniform[0].entry(from(&entity, 1)).or_default() += 1;
            *uniform[1].entry(from(&relation, 2)).or_default() += 1;
        }
    }
    let exact = (0..nodes).map(|v| (v, 1.0 / f64::from(nodes))).collect();
    fits("uniform start, entity", &uniform[0], &exact);
    fits("uniform start, relation", &uniform[1], &exact);
}

/// Lists all ways to keep `n` of the tickets of `m` types in use, out of a vocabulary of `types`:
/// number of tickets of each type -> probability. Too few tickets are repeated: whole rounds, and a
/// choice of them for the rest.
fn ticket_table(m: usize, types: usize, n: usize) -> BTreeMap<Vec<u32>, f64> {
    let each = n / types + 1;
    let total = m * each;
    let (rounds, rest) = (n / total, n % total);
    let mut table = BTreeMap::new();
    let subsets: Vec<u32> = (0..1u32 << total).filter(|s| s.count_ones() as usize == rest).collect();
    for &subset in &subsets {
        let mut counts = vec![(rounds * each) as u32; m];
        for ticket in (0..total).filter(|&x| subset >> x & 1 == 1) {
            counts[ticket / each] += 1;
        }
        *table.entry(counts).or_insert(0.0) += 1.0 / subsets.len() as f64;
    }
    table
}

/// n below, at and above the number of types in use, with and without a mask that empties a relation.
#[test]
fn balanced_tickets() {
    let triples = vec![t(0, 0, 1), t(1, 0, 2), t(2, 2, 3), t(3, 2, 3), t(3, 1, 0)];
    let gone = [t(2, 2, 3), t(3, 2, 3)];
    let g = Topology::build(4, RELATIONS, triples).unwrap();
    let mask = Mask::new(&g, &gone);
    for (mask, inverses, types) in [
        (None, true, vec![0, 1, 2, 3, 4, 5]),
        (Some(&mask), true, vec![0, 1, 3, 4]),
        (None, false, vec![0, 1, 2]),
        (Some(&mask), false, vec![0, 1]),
    ] {
        let options = WalkOptions { inverses, ..WalkOptions::default() };
        let m = types.len();
        let vocabulary = if inverses { 2 * RELATIONS } else { RELATIONS } as usize;
        for n in [1, 3, m - 1, m, m + 1, 2 * m + 1] {
            let mut counts: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
            for query in 0..200_000 {
                let asked = WalkQuery::Entity { head: 0, relation: 0 };
                let starts = Starts::prepare(&g, mask, &asked, n as u32, key(query), &options);
                assert_eq!(starts.tickets().len(), n);
                let per_type = types.iter().map(|ty| starts.tickets().filter(|x| x == ty).count() as u32);
                *counts.entry(per_type.collect()).or_default() += 1;
            }
            fits(&format!("tickets, n = {n}, m = {m}"), &counts, &ticket_table(m, vocabulary, n));
        }
    }
}

/// Given its ticket, a balanced walk starts along a uniform edge of that type, self-loops included, with direction 0.
fn check_edges(g: &Topology, mask: Option<&Mask>, rest: &[Triple], options: &WalkOptions, relation: Option<u32>) {
    let n = 20;
    let options = WalkOptions { length: 2, ..*options };
    let mut counts: BTreeMap<u32, BTreeMap<(u32, u32), u64>> = BTreeMap::new();
    for query in 0..10_500 {
        let asked = WalkQuery::Entity { head: 0, relation: relation.unwrap_or(0) };
        let walks = Walks::sample(g, mask, &asked, n, key(query), &options);
        for i in (2 * n as usize..3 * n as usize).map(|walk| 2 * walk) {
            assert_eq!(walks.dirs[i + 1], 0);
            let edges = counts.entry(walks.types[i + 1]).or_default();
            *edges.entry((walks.nodes[i], walks.nodes[i + 1])).or_default() += 1;
        }
    }
    for (&ty, counts) in &counts {
        let edges: Vec<(u32, u32)> = rest
            .iter()
            .filter(|x| x.relation == ty % RELATIONS)
            .map(|x| if ty < RELATIONS { (x.head, x.tail) } else { (x.tail, x.head) })
            .collect();
        let exact = edges.iter().map(|&e| (e, 1.0 / edges.len() as f64)).collect();
        fits(&format!("edges of type {ty}"), counts, &exact);
    }
    match relation {
        None => assert_eq!(counts.len() as u32, if options.inverses { 2 * RELATIONS } else { RELATIONS }),
        Some(relation) => assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [relation]),
    }
}

#[test]
fn balanced_edges() {
    let (nodes, triples) = graph();
    let rest = without(&triples, &hidden());
    let g = Topology::build(nodes, RELATIONS, triples.clone()).unwrap();
    let mask = Mask::new(&g, &hidden());
    let options = WalkOptions::default();
    check_edges(&g, None, &triples, &options, None);
    check_edges(&g, Some(&mask), &rest, &options, None);
    let own = WalkOptions { balanced_on_query_relation: true, ..options };
    check_edges(&g, None, &triples, &own, Some(4));
    check_edges(&g, Some(&mask), &rest, &own, Some(2));
    let raw = WalkOptions { inverses: false, ..options };
    check_edges(&g, None, &triples, &raw, None);
    check_edges(&g, Some(&mask), &rest, &raw, None);
    let own = WalkOptions { inverses: false, ..own };
    check_edges(&g, None, &triples, &own, Some(4));
    check_edges(&g, Some(&mask), &rest, &own, Some(2));
    // A question about a head: all walks start along inverse types.
    let query = WalkQuery::Entity { head: 0, relation: 4 };
    let tickets: BTreeSet<u32> = Starts::prepare(&g, None, &query, 20, key(0), &raw).tickets().collect();
    assert_eq!(tickets, BTreeSet::from([3, 4, 5]));
}

/// Section 2: edges are drawn without replacement over the updates and passes of a query. On the query's own relation every
/// round of its edges holds each of them once, wherever updates and passes begin and end.
#[test]
fn starts_on_the_query_relation_use_every_edge_before_one_again() {
    let edges = 7;
    let triples: Vec<Triple> = (0..edges).map(|i| t(i, 0, i + 1)).chain([t(0, 1, 5)]).collect();
    let g = Topology::build(edges + 1, RELATIONS, triples).unwrap();
    let options = WalkOptions { length: 2, updates: 3, balanced_on_query_relation: true, ..WalkOptions::default() };
    let n = 4;
    let mut rounds = BTreeSet::new();
    for query in 0..200 {
        let mut drawn = Vec::new();
        for (pass, update) in (0..7).flat_map(|pass| (0..3).map(move |update| (pass, update))) {
            let key = Key { seed: 2, pass, update, query };
            let walks = Walks::sample(&g, None, &WalkQuery::Entity { head: 0, relation: 0 }, n, key, &options);
            drawn.extend(walks.nodes.chunks(2).skip(2 * n as usize).map(|walk| walk[0]));
        }
        assert_eq!(drawn.len(), 7 * 3 * 4); // twelve rounds of seven
        for round in drawn.chunks(edges as usize) {
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), edges as usize, "{round:?}");
            rounds.insert(round.to_vec());
        }
    }
    // 2,400 rounds of 5,040 equally likely orders: 5,040 (1 − e^(−2400/5040)) = 1,909 different ones, give or take 6 · 21.
    assert!((1_780..2_040).contains(&rounds.len()), "{} orders", rounds.len());
}

/// With tickets for all types, a type has one place per update, and within a round of places no
/// edge comes twice.
#[test]
fn balanced_starts_do_not_repeat_an_edge_within_a_round() {
    let edges = 6;
    let triples: Vec<Triple> = (0..edges).flat_map(|i| [t(i, 0, i + 1), t(i, 2, (i + 2) % edges)]).collect();
    let g = Topology::build(edges + 1, RELATIONS, triples).unwrap();
    let options = WalkOptions { length: 2, updates: 6, ..WalkOptions::default() };
    let (mut starts, mut repeats_in_other_rounds) = (0, 0);
    for query in 0..300 {
        let mut seen: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new(); // by type, by round
        for (pass, update) in (0..2).flat_map(|pass| (0..6).map(move |update| (pass, update))) {
            let key = Key { seed: 9, pass, update, query };
            let walks = Walks::sample(&g, None, &WalkQuery::Entity { head: 0, relation: 1 }, 3, key, &options);
            for (nodes, types) in walks.nodes.chunks(2).zip(walks.types.chunks(2)).skip(6) {
                let rounds = seen.entry(types[1]).or_insert_with(|| vec![Vec::new(); 2]);
                // A type is on its first node's relation or its inverse: the triple's head names the edge.
                let edge = if types[1] < RELATIONS { nodes[0] } else { nodes[1] };
                rounds[pass as usize].push(edge);
                starts += 1;
            }
        }
        for rounds in seen.values() {
            for round in rounds {
                assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), round.len(), "{round:?}");
            }
            repeats_in_other_rounds += rounds[0].iter().filter(|e| rounds[1].contains(e)).count();
        }
    }
    assert_eq!(starts, 300 * 12 * 3);
    assert!(repeats_in_other_rounds > 1_000, "{repeats_in_other_rounds}"); // so rounds do differ
}

/// Finds the restarts: positions with no step, except the first, on a graph where every node has a
/// neighbour.
fn restarted(walks: &Walks, walk: usize) -> Vec<usize> {
    let at = walk * walks.length;
    (1..walks.length).filter(|k| walks.dirs[at + k] == 3).collect()
}

#[test]
fn walks_begin_anew_as_often_as_told_and_where_their_kind_begins() {
    let triples: Vec<Triple> = (0..40).flat_map(|v| [t(v, 0, (v + 1) % 40), t(v, v % 3, (v + 7) % 40)]).collect();
    let g = Topology::build(40, RELATIONS, triples.clone()).unwrap();
    let (n, length, chance) = (8, 50, 102); // 102 / 1024 is a tenth, nearly
    let plain = WalkOptions { length, ..WalkOptions::default() };
    let all = WalkOptions { restart: chance, ..plain };
    let half = WalkOptions { restart_period: 2, ..all };
    let query = WalkQuery::Entity { head: 5, relation: 1 };
    let (mut moves, mut restarts) = (0, 0);
    let mut uniform: BTreeMap<u32, u64> = BTreeMap::new();
    for number in 0..400 {
        let walks = Walks::sample(&g, None, &query, n, key(number), &all);
        let without = Walks::sample(&g, None, &query, n, key(number), &plain);
        let alternating = Walks::sample(&g, None, &query, n, key(number), &half);
        for walk in 0..3 * n as usize {
            let at = walk * length;
            let anew = restarted(&walks, walk);
            // Until its first restart, a walk equals the one without restarts.
            let until = anew.first().copied().unwrap_or(length);
            assert_eq!(walks.nodes[at..at + until], without.nodes[at..at + until]);
            assert_eq!(walks.types[at..at + until], without.types[at..at + until]);
            // Every second walk never restarts.
            match walk % 2 {
                0 => assert_eq!(alternating.nodes[at..at + length], without.nodes[at..at + length]),
                _ => assert_eq!(alternating.nodes[at..at + length], walks.nodes[at..at + length]),
            }
            for k in anew {
                assert_eq!(walks.types[at + k], g.no_type());
                match walk / n as usize {
                    0 => assert_eq!(walks.nodes[at + k], 5),
                    1 => *uniform.entry(walks.nodes[at + k]).or_default() += 1,
                    _ if k + 1 < length => {
                        // An edge of the walk's own type, along it.
                        let (from, to, ty) = (walks.nodes[at + k], walks.nodes[at + k + 1], walks.types[at + k + 1]);
                        assert_eq!((ty, walks.dirs[at + k + 1]), (walks.types[at + 1], 0));
                        let edge = if ty < RELATIONS { t(from, ty, to) } else { t(to, ty - RELATIONS, from) };
                        assert!(triples.contains(&edge), "{edge:?}");
                    }
                    _ => {}
                }
                // A restart forgets the node just left. So the next move may go anywhere, and the
                // one after that not straight back.
                if walk < 2 * n as usize && k + 2 < length && walks.dirs[at + k + 1] != 3 && walks.dirs[at + k + 2] != 3
                {
                    assert_ne!(walks.nodes[at + k], walks.nodes[at + k + 2]);
                }
            }
            if walk < 2 * n as usize {
                moves += length - 1;
                restarts += restarted(&walks, walk).len();
            }
        }
    }
    // 16 walks of 49 moves, 400 times, are 313,600 moves. A share of 102 / 1024 = 0.0996 of them
    // restarts, with a deviation of 0.0005.
    let share = restarts as f64 / moves as f64;
    assert!((share - 102.0 / 1024.0).abs() < 0.0027, "{share}");
    fits("new starts", &uniform, &(0..40).map(|v| (v, 1.0 / 40.0)).collect());
}
