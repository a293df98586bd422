//! The weights an explanation shows are those the engine used.

use super::*;
use flock_kernels::{Engine, Level, Precision};
use flock_model::checkpoint::{Metadata, Task};
use flock_model::init::initial_weights;

fn t(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

/// Ten nodes on a ring with chords.
fn graph() -> Topology {
    let ring = (0..10).map(|v| t(v, 0, (v + 1) % 10));
    Topology::build(10, 3, ring.chain((0..5).map(|v| t(v, 1 + v % 2, v + 4))).collect()).unwrap()
}

#[test]
fn weights_give_the_states_the_engine_computed() {
    let graph = graph();
    for (task, query, side, id, width, heads) in [
        (Task::Entity, WalkQuery::Entity { head: 0, relation: 1 }, Side::Node, 4, 64, 4),
        (Task::Relation, WalkQuery::Relation { head: 0, tail: 4 }, Side::Type, 1, 64, 4),
        // Six heads: two of eight slots are empty.
        (Task::Relation, WalkQuery::Relation { head: 0, tail: 4 }, Side::Type, 1, 96, 6),
    ] {
        let meta = Metadata { updates: 3, length: 16, width, heads, ..Metadata::published(task) };
        let checkpoint = initial_weights(meta, 3).unwrap();
        let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
        let model = Model::new(&checkpoint, engine).unwrap();
        let name = if side == Side::Node { "node" } else { "type" };
        let mut before = checkpoint.tensor(&format!("{name}_init")).unwrap().to_vec();
        let (mut seen, mut buffers) = (0, PassBuffers::default());
        let draw = Draw { walks: 3, seed: 1, pass: 0, options: model.walk_options() };
        let view = View { topology: &graph, mask: None };
        model.pass_watched(view, &query, draw, &mut buffers, Parallelism::OneThread, &mut |update, buffers| {
            let (states, recorder) = buffers.states();
            let (rows, local) = match side {
                Side::Node => (&states.nodes, recorder.local_node(id).unwrap()),
                Side::Type => (&states.types, recorder.local_type(id).unwrap()),
            };
            let after = &rows[local as usize * width..][..width];
            let weights = buffers.weights(&model, side, id);
            // Each head's weights are a distribution over the positions at the answer.
            for k in 0..heads {
                let total: f32 = weights.iter().map(|(_, w)| w[k]).sum();
                assert!((total - 1.0).abs() < 1e-5, "head {k}: {total}");
            }
            let (nodes, types, _) = buffers.walks();
            let here = |at: usize| if side == Side::Node { nodes[at] } else { types[at] };
            assert!(weights.iter().all(|(at, _)| here(*at) == id));
            // Section 5: state += Σ w · (W x + b), each head its own slice of 16.
            let value = checkpoint.tensor(&format!("to_{name}.{update}.weight")).unwrap();
            let bias = checkpoint.tensor(&format!("to_{name}.{update}.bias")).unwrap();
            let x = buffers.group_rows(side, local);
            for c in 0..width {
                let project = |x: &[f32]| bias[c] + (0..width).map(|j| value[c * width + j] * x[j]).sum::<f32>();
                let head = c / (width / heads);
                let pooled: f32 = weights.iter().zip(&x).map(|((_, w), x)| w[head] * project(x)).sum();
                assert!((after[c] - before[c] - pooled).abs() < 1e-4, "update {update} column {c}");
            }
            before = after.to_vec();
            seen += weights.len();
        });
        assert!(seen > 20, "{seen} positions");
    }
}

#[test]
fn shares_are_parts_of_one() {
    let graph = graph();
    let meta = Metadata { updates: 3, length: 16, ..Metadata::published(Task::Entity) };
    let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
    let model = Model::new(&initial_weights(meta, 3).unwrap(), engine).unwrap();
    let query = WalkQuery::Entity { head: 0, relation: 1 };
    let ask = Ask { walks: 4, passes: 3, seed: 5, options: model.walk_options() };
    let view = View { topology: &graph, mask: None };
    let found = evidence(&|| true, &model, view, &query, ask, &[4, 7], &ExplainOptions::default()).unwrap();
    for ((score, evidence), answer) in found.answers.iter().zip([4, 7]) {
        let sum: f64 = evidence.reasons.iter().map(|r| r.share).sum();
        assert!(
            (sum + evidence.longer_share - evidence.joined).abs() < 1e-9
                && evidence.joined <= 1.0 + 1e-5
                && evidence.joined > 0.3
        );
        let weight = |r: &Reason| r.share / r.path.hops() as f64;
        assert!(evidence.reasons.windows(2).all(|w| weight(&w[0]) >= weight(&w[1])));
        let listed: usize = evidence.reasons.iter().map(|r| r.paths().count()).sum();
        assert_eq!(listed + evidence.longer, evidence.paths);
        let counted: u32 = evidence.reasons.iter().map(|r| r.count).sum();
        assert!(counted <= evidence.positions && evidence.positions <= score.visits);
        for reason in &evidence.reasons {
            for path in reason.paths() {
                assert_eq!((path.start, path.nodes().last()), (0, Some(answer)));
                assert!(path.triples.iter().all(|t| graph.triple_id(*t).is_some()));
                assert!(path.hops() <= MAX_HOPS && path.pattern() == reason.path.pattern());
                let mut nodes: Vec<u32> = path.nodes().collect();
                nodes.sort_unstable();
                assert!(nodes.windows(2).all(|w| w[0] < w[1]), "{path:?} has a loop");
            }
        }
    }
    // The scores are those of the same question asked plainly.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let scores = flock_model::ensemble::Asker::new(&model, view, &pool).ask(&[query], ask).unwrap();
    assert_eq!(found.answers[0].0, scores[0].of(4));
}

#[test]
fn what_nobody_waits_for_stops_at_the_next_pass() {
    let graph = graph();
    let checkpoint =
        initial_weights(Metadata { updates: 2, length: 8, ..Metadata::published(Task::Entity) }, 3).unwrap();
    let model = Model::new(&checkpoint, Engine::new(Level::detect().unwrap(), Precision::F32).unwrap()).unwrap();
    let query = WalkQuery::Entity { head: 0, relation: 1 };
    let ask = Ask { walks: 2, passes: 5, seed: 1, options: model.walk_options() };
    let view = View { topology: &graph, mask: None };
    let asked = std::sync::atomic::AtomicU32::new(0);
    let twice = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2;
    let found = evidence(&twice, &model, view, &query, ask, &[4], &ExplainOptions::default());
    assert!(matches!(found, Err(ModelError::Stopped)) && asked.into_inner() == 3);
    let (score, found) =
        evidence(&|| true, &model, view, &query, ask, &[4], &ExplainOptions::default()).unwrap().answers.remove(0);
    let never =
        delete(&|| false, &model, &graph, &query, ask, (4, score), &found.reasons, &[], &ExplainOptions::default());
    assert!(matches!(never, Err(ModelError::Stopped)));
}

#[test]
fn reasons_by_hand() {
    // Patterns from 0 to 9: 0·1 through 2, 3 and 4, one of them often; 2 straight; 0·0·1 through 2 and 5; and five hops.
    let path = |triples: &[Triple]| Path { start: 0, triples: triples.to_vec() };
    let through = |v: u32| path(&[t(0, 0, v), t(v, 1, 9)]);
    let long = path(&[t(0, 0, 2), t(3, 0, 2), t(3, 0, 4), t(5, 0, 4), t(5, 1, 9)]);
    let found = vec![
        (through(2), (0.10, 3)),
        (through(3), (0.16, 4)),
        (through(4), (0.02, 1)),
        (path(&[t(9, 2, 0)]), (0.15, 2)),
        (path(&[t(0, 0, 2), t(2, 0, 5), t(5, 1, 9)]), (0.30, 5)),
        (long.clone(), (0.20, 6)),
    ];
    let evidence = merge(found.clone(), 4);
    // By share over hops: 0.15/1, (0.10 + 0.16 + 0.02)/2 = 0.14, 0.30/3 = 0.10. By share alone it would be the other way round.
    let shares: Vec<f64> = evidence.reasons.iter().map(|r| (r.share * 100.0).round()).collect();
    assert_eq!(shares, [15.0, 28.0, 30.0]);
    // Three paths are one reason: the weightiest is the example, positions are added.
    let merged = &evidence.reasons[1];
    assert_eq!((&merged.path, merged.count), (&through(3), 8));
    assert_eq!(merged.others, [through(2), through(4)]);
    // What has five hops is counted, and its share.
    assert_eq!((evidence.paths, evidence.longer, evidence.longer_share), (6, 1, 0.20));
    assert!((evidence.joined - 0.93).abs() < 1e-12);
    // Unless one asks for more hops: 0.20/5 is the least.
    let all = merge(found, 5);
    assert_eq!((all.reasons.len(), all.longer, &all.reasons[3].path), (4, 0, &long));
    // If there is nothing shorter, the shortest there is: better than no reason at all.
    let six = path(&[t(0, 0, 1), t(1, 0, 2), t(2, 0, 3), t(3, 0, 4), t(4, 0, 5), t(5, 0, 9)]);
    let only_long = merge(vec![(six, (0.5, 1)), (long.clone(), (0.1, 1))], 4);
    assert_eq!((only_long.reasons.len(), only_long.longer), (1, 1));
    assert_eq!(only_long.reasons[0].path, long);
    assert_eq!(merge(Vec::new(), 4), Evidence::default());
}
