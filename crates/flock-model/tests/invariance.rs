//! Invariance in probability: on a graph and on its renamed copy, a query's logits have the same distribution.
//!
//! The walks differ from seed to seed, so no two logits are equal; what must agree is how they are distributed. Two samples
//! of 200 logits each (disjoint seeds) are held against each other by the two-sample Kolmogorov-Smirnov test, at level 1e-3 for
//! all candidates of a model together. The same test rejects a model that sees real ids, and tells one candidate from another.

use flock_graph::{Topology, Triple};
use flock_kernels::{Engine, Level, Precision};
use flock_model::bench::synthetic_graph;
use flock_model::checkpoint::{Metadata, Task};
use flock_model::init::initial_weights;
use flock_model::model::{Draw, Model, PassBuffers, PassScores, View};
use flock_model::update::{Parallelism, Stages, States, Workspace};
use flock_walk::{Key, Recorder, Records, WalkQuery, Walks};

const NODES: u32 = 16;
const RELATIONS: u32 = 4;
const LENGTH: usize = 16; // names have as many rows, so that a real id is a row, too
const WALKS: u32 = 3;
const SEEDS: u64 = 200;
const LEVEL: f64 = 1e-3;

/// A graph, or a copy of it, with what was asked and what is scored.
struct Setting {
    graph: Topology,
    query: WalkQuery,
    candidates: Vec<u32>,
}

/// The graph with node `v` called `nodes(v)` and relation `r` called `relations(r)`.
fn setting(task: Task, nodes: impl Fn(u32) -> u32, relations: impl Fn(u32) -> u32) -> Setting {
    let renamed = |t: Triple| Triple { head: nodes(t.head), relation: relations(t.relation), tail: nodes(t.tail) };
    let triples = synthetic_graph(NODES, RELATIONS, 40, 3).triples().map(renamed).collect();
    let graph = Topology::build(NODES, RELATIONS, triples).unwrap();
    let (query, candidates) = match task {
        Task::Entity => {
            (WalkQuery::Entity { head: nodes(2), relation: relations(1) }, [2, 5, 9, 14].map(&nodes).to_vec())
        }
        Task::Relation => {
            (WalkQuery::Relation { head: nodes(2), tail: nodes(9) }, (0..RELATIONS).map(&relations).collect())
        }
    };
    Setting { graph, query, candidates }
}

/// The graph as it is, and renamed: 5 and 3 have no factor in common with 16 and 4.
fn pair(task: Task) -> [Setting; 2] {
    [setting(task, |v| v, |r| r), setting(task, |v| (5 * v + 7) % NODES, |r| (3 * r + 2) % RELATIONS)]
}

fn model(task: Task) -> Model {
    let meta = Metadata { length: LENGTH, updates: 2, ..Metadata::published(task) };
    let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
    Model::new(&initial_weights(meta, 6).unwrap(), engine).unwrap()
}

fn of(scores: &PassScores, candidates: &[u32]) -> Vec<f32> {
    let of = |c: &u32| scores.ids.iter().position(|id| id == c).map_or(scores.unreached, |i| scores.logits[i]);
    candidates.iter().map(of).collect()
}

/// The model's own pass.
fn honest(model: &Model, s: &Setting, seed: u64) -> Vec<f32> {
    let draw = Draw { walks: WALKS, seed, pass: 0, options: model.walk_options() };
    let view = View { topology: &s.graph, mask: None };
    of(&model.pass(view, &s.query, draw, &mut PassBuffers::default(), Parallelism::OneThread), &s.candidates)
}

/// The same pass step by step, where a node's and a type's name may be its id in the graph.
fn step_by_step(model: &Model, s: &Setting, seed: u64, sees_ids: bool) -> Vec<f32> {
    let (mut recorder, mut records) = (Recorder::new(), Records::default());
    let (mut states, mut work) = (States::default(), Workspace::default());
    recorder.begin(&s.query, s.graph.no_type());
    let number = match s.query {
        WalkQuery::Entity { head, relation } => u64::from(head) << 32 | u64::from(relation),
        WalkQuery::Relation { head, tail } => !(u64::from(head) << 32 | u64::from(tail)),
    };
    for (i, update) in model.updates().iter().enumerate() {
        let key = Key { seed, pass: 0, update: i as u32, query: number };
        let walks = Walks::sample(&s.graph, None, &s.query, WALKS, key, &model.walk_options());
        recorder.record(LENGTH, &walks.nodes, &walks.types, &walks.dirs, &mut records);
        if sees_ids {
            records.node_name = walks.nodes.iter().map(|v| *v as u16).collect();
            records.type_name = walks.types.iter().map(|t| *t as u16).collect();
        }
        let met = [recorder.nodes().len(), recorder.types().len()];
        let refresh = model.refresh(i, &s.query, &recorder);
        update.run(
            &records,
            met,
            &refresh,
            &mut states,
            &mut work,
            Parallelism::OneThread,
            &mut Stages::default(),
            None,
        );
    }
    let mut buffers = PassBuffers::with_states(recorder, states);
    of(&model.score(RELATIONS, &s.query, &mut buffers, Parallelism::OneThread), &s.candidates)
}

/// Per candidate, its logits over [`SEEDS`] seeds from `first` on, in ascending order.
fn sample(first: u64, logits: impl Fn(u64) -> Vec<f32>) -> Vec<Vec<f32>> {
    let mut columns: Vec<Vec<f32>> = Vec::new();
    for seed in first..first + SEEDS {
        let row = logits(seed);
        columns.resize(row.len(), Vec::new());
        columns.iter_mut().zip(row).for_each(|(column, logit)| column.push(logit));
    }
    columns.iter_mut().for_each(|c| c.sort_by(f32::total_cmp));
    columns
}

/// The greatest distance between two empirical distribution functions; both samples ascending.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let up_to = |s: &[f32], x: f32| s.partition_point(|v| *v <= x) as f64 / s.len() as f64;
    a.iter().chain(b).map(|x| (up_to(a, *x) - up_to(b, *x)).abs()).fold(0.0, f64::max)
}

/// The distance that samples of one distribution exceed with probability `level`: c √((n + m) / nm), c² = −ln(level / 2) / 2.
fn critical(level: f64, n: f64, m: f64) -> f64 {
    (-(level / 2.0).ln() / 2.0).sqrt() * ((n + m) / (n * m)).sqrt()
}

/// The greatest distance over the candidates, and the critical one if [`LEVEL`] is shared among them.
fn test(a: &[Vec<f32>], b: &[Vec<f32>]) -> (f64, f64) {
    let greatest = a.iter().zip(b).map(|(a, b)| distance(a, b)).fold(0.0, f64::max);
    (greatest, critical(LEVEL / a.len() as f64, SEEDS as f64, SEEDS as f64))
}

#[test]
fn the_distance_is_that_of_the_textbook() {
    // F of {1, 2, 3, 4} and {3, 4, 5, 6}: at 2 they are 1/2 and 0.
    assert_eq!(distance(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 6.0]), 0.5);
    assert_eq!(distance(&[1.0, 1.0, 2.0], &[1.0, 1.0, 2.0]), 0.0);
    // Level 0.05, 200 and 200: 1.3581 · √(1/100), from any table.
    assert!((critical(0.05, 200.0, 200.0) - 0.13581).abs() < 1e-5);
}

#[test]
fn logits_of_a_renamed_graph_have_the_same_distribution() {
    for task in [Task::Entity, Task::Relation] {
        let model = model(task);
        let [graph, copy] = pair(task);
        let a = sample(0, |seed| honest(&model, &graph, seed));
        let b = sample(SEEDS, |seed| honest(&model, &copy, seed));
        for logits in &a {
            // The test could not tell anything of logits that hardly vary.
            assert!(logits[SEEDS as usize - 1] - logits[0] > 0.01, "{task}: {logits:?}");
        }
        let (greatest, critical) = test(&a, &b);
        println!("{task}: distance {greatest:.3}, critical {critical:.3}");
        assert!(greatest < critical, "{task}: distance {greatest}, critical {critical}");
        // It has power: one candidate's logits are not another's.
        let mut shifted = b.clone();
        shifted.rotate_left(1);
        let (greatest, _) = test(&a, &shifted);
        println!("{task}: against the next candidate {greatest:.3}");
        assert!(greatest > critical, "{task}: against other candidates only {greatest}");
    }
}

#[test]
fn a_model_that_sees_real_ids_is_found_out() {
    for task in [Task::Entity, Task::Relation] {
        let model = model(task);
        let [graph, copy] = pair(task);
        for s in [&graph, &copy] {
            assert_eq!(step_by_step(&model, s, 1, false), honest(&model, s, 1), "{task}: the steps are not the pass");
        }
        let a = sample(0, |seed| step_by_step(&model, &graph, seed, true));
        let b = sample(SEEDS, |seed| step_by_step(&model, &copy, seed, true));
        let (greatest, critical) = test(&a, &b);
        println!("{task}: distance {greatest:.3}, critical {critical:.3}");
        assert!(greatest > critical, "{task}: distance {greatest}, critical {critical}");
        // It is the renaming that it notices: on the same graph its logits are as equal as they should be.
        let again = sample(SEEDS, |seed| step_by_step(&model, &graph, seed, true));
        let (greatest, _) = test(&a, &again);
        assert!(greatest < critical, "{task}: distance {greatest} to itself");
    }
}
