//! A widened model answers as the narrow one does, and its gradient reaches all that is new.

use flock_kernels::{Engine, Level, Precision};
use flock_model::bench::synthetic_graph;
use flock_model::checkpoint::{Checkpoint, Metadata, ProcessorKind, Task, Weights};
use flock_model::ensemble::{Ask, Asker, Scores};
use flock_model::gradient::FastGradient;
use flock_model::init::initial_weights;
use flock_model::model::{Model, View};
use flock_model::step::{BaseLoss, Example, Gradient, Loss, StepInput};
use flock_walk::WalkQuery;

fn narrow(task: Task, width: usize, layers: usize) -> Weights {
    let heads = Metadata::default_heads(width);
    let meta = Metadata { length: 16, updates: 3, width, heads, layers, ..Metadata::published(task) };
    initial_weights(meta, 5).unwrap().weights
}

fn query(task: Task, i: u32) -> WalkQuery {
    match task {
        Task::Entity => WalkQuery::Entity { head: 11 * i, relation: (5 * i) % 18 },
        Task::Relation => WalkQuery::Relation { head: 11 * i, tail: 7 * i + 1 },
    }
}

fn answers(weights: &Weights) -> Vec<Scores> {
    let graph = synthetic_graph(200, 9, 1500, 2);
    let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
    let model = Model::new(&Checkpoint::new(weights.clone()).unwrap(), engine).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let ask = Ask { walks: 5, passes: 1, seed: 9, options: model.walk_options() };
    let queries: Vec<WalkQuery> = (0..4).map(|i| query(weights.meta.task, i)).collect();
    Asker::new(&model, View { topology: &graph, mask: None }, &pool).ask(&queries, ask).unwrap()
}

#[test]
fn answers_stay_the_same() {
    for (task, width, layers, wider) in [
        (Task::Entity, 64, 1, 96),
        (Task::Entity, 32, 2, 64),
        (Task::Relation, 64, 1, 128),
        (Task::Relation, 64, 2, 96),
        (Task::Entity, 64, 1, 64),
    ] {
        let weights = narrow(task, width, layers);
        let wide = weights.widened(wider, 3).unwrap();
        assert_eq!((wide.meta.width, wide.meta.heads), (wider, wider / 16));
        let mut largest = 0f64;
        for (a, b) in answers(&weights).iter().zip(&answers(&wide)) {
            let logits = |s: &Scores| -> Vec<(u32, f64)> { s.reached.iter().map(|(id, v)| (*id, v.logit)).collect() };
            let (a, b) = ((logits(a), a.unreached.logit), (logits(b), b.unreached.logit));
            assert_eq!(a.0.len(), b.0.len());
            for ((i, a), (j, b)) in a.0.iter().chain([&(u32::MAX, a.1)]).zip(b.0.iter().chain([&(u32::MAX, b.1)])) {
                assert_eq!(i, j);
                largest = largest.max((a - b).abs());
            }
        }
        // Sums of other lengths round in another order. (Measured: 5e-7.)
        assert!(largest < 1e-5, "{task} {width} to {wider}: {largest}");
    }
}

#[test]
fn the_gradient_reaches_what_is_new() {
    let graph = synthetic_graph(60, 5, 240, 4);
    for task in [Task::Entity, Task::Relation] {
        let wide = narrow(task, 64, 1).widened(96, 3).unwrap();
        let candidates = |i: u32| (0..5).map(|c| (c + i) % 5).collect();
        let examples: Vec<Example> = (0..4)
            .map(|i| match task {
                Task::Entity => Example::new(WalkQuery::Entity { head: 3 * i, relation: 2 * i }, candidates(i)),
                Task::Relation => Example::new(WalkQuery::Relation { head: 3 * i, tail: 5 * i + 1 }, candidates(i)),
            })
            .collect();
        let input = StepInput {
            view: View { topology: &graph, mask: None },
            examples: &examples,
            walks: 4,
            seed: 1,
            step: 0,
            options: wide.meta.walk_options(),
            loss: Loss { base: BaseLoss::MeanBce, softmax: 0.5 },
        };
        let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
        let mut gradient = vec![0.0; wide.values.len()];
        FastGradient::new(engine, 2).unwrap().gradient(&wide, &input, &mut gradient).unwrap();
        // Old rows with new columns, or new rows: zero now, and not after a step.
        for (name, columns, rows, new) in [
            ("node_init", 1, 64..96, 0..1),
            ("type_init", 1, 64..96, 0..1),
            ("emb_direction.0.weight", 96, 0..4, 64..96),
            ("from_node.1.weight", 96, 64..96, 0..96),
            ("from_type.1.bias", 1, 64..96, 0..1),
            ("net.0.gru.weight_hh_l0", 96, 0..64, 64..96),
            ("net.0.gru.weight_hh_l0_reverse", 96, 192..256, 64..96),
            ("net.1.gru_out.weight", 192, 0..64, 64..96),
            ("net.1.gru_out.weight", 192, 0..64, 160..192),
            ("net.1.gru_out.weight", 192, 64..96, 0..192),
            ("net.2.feed_forward.w2.weight", 288, 0..64, 192..288),
            ("net.2.feed_forward.w2.weight", 288, 64..96, 0..288),
            ("to_node.1.weight", 96, 64..96, 0..96),
            ("to_type.1.weight", 96, 64..96, 0..96),
            ("head.2.weight", 192, 0..128, 128..192),
            ("head.4.weight", 192, 0..1, 128..192),
        ] {
            let range = wide.table().get(name).unwrap().range();
            let part = |values: &[f32]| -> Vec<f32> {
                let rows = values[range.clone()].chunks(columns).skip(rows.start).take(rows.len());
                rows.flat_map(|row| row[new.clone()].to_vec()).collect()
            };
            assert!(part(&wide.values).iter().all(|v| *v == 0.0), "{name}: not zero");
            assert!(part(&gradient).iter().any(|d| *d != 0.0), "{task} {name}: no gradient");
        }
    }
}

#[test]
fn only_what_can_be_wider_is_widened() {
    let weights = narrow(Task::Entity, 64, 1);
    for (width, told) in [(32, "width is 32; it must be at least the model's"), (72, "width is 72; it must be")] {
        let error = weights.widened(width, 0).unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
    let meta = Metadata { processor: ProcessorKind::Transformer, length: 8, ..Metadata::published(Task::Entity) };
    let error = initial_weights(meta, 1).unwrap().weights.widened(96, 0).unwrap_err().to_string();
    assert_eq!(error, "processor is transformer; it must be gru for a model to be widened");
}
