//! Synthetic worlds: what they are made of, that their questions follow from rules, and that training feeds on them.

use std::collections::{BTreeMap, HashSet};

use flock_graph::{Topology, Triple};
use flock_model::checkpoint::Task;
use flock_train::data::world::Rule;
use flock_train::data::{DataConfig, Feed, Negatives, Origin, Weighting, World};
use flock_walk::Key;

fn world(number: u64) -> World {
    World::new(Key { seed: 5, pass: 0, update: 0, query: number }, 8)
}

fn holds(known: &HashSet<Triple>, head: u32, relation: u32, tail: u32) -> bool {
    known.contains(&Triple { head, relation, tail })
}

/// Whether a rule's body holds for a fact, whatever its confidence.
fn follows(rule: &Rule, fact: Triple, known: &HashSet<Triple>, entities: u32) -> bool {
    let Triple { head: x, relation, tail: y } = fact;
    match rule {
        Rule::Hierarchy { body, head, .. } => *head == relation && holds(known, x, *body, y),
        Rule::Inversion { body, head, .. } => *head == relation && holds(known, y, *body, x),
        Rule::Symmetry { head, .. } => *head == relation && holds(known, y, *head, x),
        Rule::Composition { body, head, .. } if *head == relation => {
            let mut at: HashSet<u32> = HashSet::from([x]);
            for r in body {
                at = (0..entities).filter(|e| at.iter().any(|from| holds(known, *from, *r, *e))).collect();
            }
            at.contains(&y)
        }
        _ => false,
    }
}

#[test]
fn worlds_are_what_they_should_be() {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut sizes, mut relations, mut degrees) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..200 {
        let w = world(number);
        assert_eq!(w, world(number), "the key alone decides");
        sizes.push(w.entities);
        relations.push(w.relations);
        degrees.push(w.facts.len() as f64 / f64::from(w.entities));
        assert!(w.relations <= 64 && w.entities <= 2_000 && w.types.len() == w.entities as usize);
        assert!(w.types.iter().all(|t| *t < 16));
        let seen: HashSet<Triple> = w.facts.iter().copied().collect();
        let asked: HashSet<Triple> = w.questions.iter().copied().collect();
        assert_eq!((seen.len(), asked.len()), (w.facts.len(), w.questions.len()), "each fact once");
        assert!(asked.is_disjoint(&seen));
        // Nothing is asked about an entity or a relation of which nothing is known.
        let entities: HashSet<u32> = seen.iter().flat_map(|t| [t.head, t.tail]).collect();
        let used: HashSet<u32> = seen.iter().map(|t| t.relation).collect();
        assert_eq!((entities.len(), used.len()), (w.entities as usize, w.relations as usize));
        assert!(asked.iter().all(|t| t.head != t.tail && entities.contains(&t.head) && used.contains(&t.relation)));
        for rule in &w.rules {
            let (kind, confidence) = match rule {
                Rule::Hierarchy { confidence, .. } => ("hierarchy", *confidence),
                Rule::Inversion { confidence, .. } => ("inversion", *confidence),
                Rule::Symmetry { confidence, .. } => ("symmetry", *confidence),
                Rule::Composition { body, confidence, .. } if body.len() == 2 => ("composition of 2", *confidence),
                Rule::Composition { confidence, .. } => ("composition of 3", *confidence),
                Rule::Exclusion { one, other } => {
                    let both = seen.iter().chain(&asked).filter(|t| t.relation == *one);
                    let clash = |t: &&Triple| {
                        let other = Triple { relation: *other, ..**t };
                        seen.contains(&other) || asked.contains(&other)
                    };
                    assert_eq!(both.filter(clash).count(), 0, "exclusive relations never hold together");
                    ("exclusion", 100)
                }
            };
            assert!((50..=100).contains(&confidence));
            *kinds.entry(kind).or_default() += 1;
        }
    }
    println!("{kinds:?}");
    assert!(kinds.len() == 6 && kinds.values().all(|count| *count > 50), "{kinds:?}");
    // Log-uniform from 100 to 2,000: the median is √(100 · 2000) = 447. Entities without a fact are gone, so somewhat less.
    sizes.sort_unstable();
    println!("entities {} {} {}", sizes[0], sizes[100], sizes[199]);
    assert!((250..550).contains(&sizes[100]) && sizes[0] < 150 && sizes[199] > 1_500, "{sizes:?}");
    // Uniform from 8 to 64, some of them without a fact.
    relations.sort_unstable();
    assert!((25..42).contains(&relations[100]) && relations[0] >= 4, "{relations:?}");
    degrees.sort_by(f64::total_cmp);
    println!("facts an entity {:.1} {:.1} {:.1}", degrees[0], degrees[100], degrees[199]);
    assert!((2.0..9.0).contains(&degrees[100]) && degrees[199] <= 20.0, "{degrees:?}");
    // Popular entities and relations: the first tenth of entities has more than its share, far more than chance gives.
    let w = (0..200).map(world).find(|w| w.entities > 500).unwrap();
    let mut degree = vec![0usize; w.entities as usize];
    w.facts.iter().for_each(|t| [t.head, t.tail].into_iter().for_each(|e| degree[e as usize] += 1));
    degree.sort_unstable_by(|a, b| b.cmp(a));
    let top: usize = degree[..degree.len() / 10].iter().sum();
    let share = top as f64 / degree.iter().sum::<usize>() as f64;
    assert!((0.25..0.9).contains(&share), "{share}");
}

#[test]
fn questions_follow_from_a_rule() {
    let (mut questions, mut from_seen_alone) = (0, 0);
    for number in 0..40 {
        let w = world(number);
        if w.entities > 400 {
            continue; // the check tries all entities in the middle
        }
        assert!(w.questions.len() >= 8);
        let seen: HashSet<Triple> = w.facts.iter().copied().collect();
        let all: HashSet<Triple> = seen.iter().chain(&w.questions).copied().collect();
        for question in &w.questions {
            let by = |known: &HashSet<Triple>| w.rules.iter().any(|rule| follows(rule, *question, known, w.entities));
            assert!(by(&all), "{question:?} follows from nothing");
            questions += 1;
            from_seen_alone += usize::from(by(&seen));
        }
    }
    println!("{from_seen_alone} of {questions} questions follow from one rule and what is seen");
    assert!(questions > 500 && from_seen_alone * 10 > questions * 5, "{from_seen_alone} of {questions}");
}

#[test]
fn a_share_of_the_steps_runs_on_worlds() {
    let ring = |len: u32| {
        let triples = (0..len).map(|v| Triple { head: v, relation: 0, tail: (v + 1) % len }).collect();
        Topology::build(len, 1, triples).unwrap()
    };
    let (small, large) = (ring(20), ring(2_000));
    let config =
        DataConfig { batch: 6, negatives: Negatives::Drawn(9), worlds: 15, ..DataConfig::published(Task::Entity) };
    let feed = Feed::new(&[&small, &large], config, 1).unwrap();
    let plain = Feed::new(&[&small, &large], DataConfig { worlds: 0, ..config }, 1).unwrap();
    let worlds = (0..4_000).filter(|step| feed.origin(*step) == Origin::World).count();
    // 15 % of 4,000 are 600; a standard deviation is 23.
    assert!((500..700).contains(&worlds), "{worlds}");
    let mut state = feed.start();
    let mut asked = 0;
    for step in 0..60 {
        let batch = feed.batch(&state).unwrap();
        match batch.origin {
            Origin::Graph(_) => assert_eq!(feed.origin(step), plain.origin(step), "other steps stay as they were"),
            Origin::World => {
                asked += 1;
                let piece = batch.subgraph.as_ref().unwrap();
                assert_eq!((batch.triples.len(), batch.candidates[0].len()), (6, 10));
                let seen: HashSet<Triple> = piece.topology.triples().collect();
                assert!(batch.triples.iter().all(|t| !seen.contains(t)), "walks do not see what is asked");
            }
        }
        feed.advance(&mut state).unwrap();
    }
    assert!(asked >= 3);
    assert_eq!(state, feed.state_at(60));
    // Weights: 20 and 2,000 triples, so 1 : 100, 1 : 10 or 1 : 1.
    for (weighting, share) in
        [(Weighting::Triples, 1.0f64 / 101.0), (Weighting::Root, 1.0 / 11.0), (Weighting::Even, 0.5)]
    {
        let feed = Feed::new(&[&small, &large], DataConfig { weighting, worlds: 0, ..config }, 1).unwrap();
        let first = (0..10_000).filter(|step| feed.origin(*step) == Origin::Graph(0)).count() as f64;
        let deviation = (10_000.0 * share * (1.0 - share)).sqrt();
        assert!((first - 10_000.0 * share).abs() < 5.0 * deviation, "{weighting:?}: {first}");
    }
}
