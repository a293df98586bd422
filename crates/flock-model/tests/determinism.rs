//! The same seed gives the same bits at any thread count and in any batch; another seed does not.

use flock_kernels::{Engine, Level, Precision};
use flock_model::bench::synthetic_graph;
use flock_model::checkpoint::{Metadata, Task};
use flock_model::ensemble::{Ask, Asker, Scores};
use flock_model::init::initial_weights;
use flock_model::model::{Model, View};
use flock_walk::WalkQuery;

fn bits(scores: &[Scores]) -> Vec<(u32, u64, u64, u32)> {
    let of = |s: &Scores| {
        let all = s.reached.iter().map(|(id, v)| (*id, v.logit.to_bits(), v.spread.to_bits(), v.visits));
        all.chain([(u32::MAX, s.unreached.logit.to_bits(), s.unreached.spread.to_bits(), 0)]).collect::<Vec<_>>()
    };
    scores.iter().flat_map(of).collect()
}

#[test]
fn threads_and_batches_do_not_change_a_bit() {
    let graph = synthetic_graph(400, 9, 3000, 2);
    for (task, width, heads, layers) in [(Task::Entity, 64, 4, 1), (Task::Relation, 64, 4, 1), (Task::Entity, 96, 6, 2)]
    {
        let meta = Metadata { length: 24, updates: 3, width, heads, layers, ..Metadata::published(task) };
        let checkpoint = initial_weights(meta, 5).unwrap();
        let queries: Vec<WalkQuery> = (0..5)
            .map(|i| match task {
                Task::Entity => WalkQuery::Entity { head: 11 * i, relation: (5 * i) % 18 },
                Task::Relation => WalkQuery::Relation { head: 11 * i, tail: 7 * i + 1 },
            })
            .collect();
        for precision in [Precision::F32, Precision::Bf16] {
            let model = Model::new(&checkpoint, Engine::new(Level::detect().unwrap(), precision).unwrap()).unwrap();
            let run = |threads: usize, batch: usize, seed: u64| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let asker = Asker::new(&model, View { topology: &graph, mask: None }, &pool);
                let ask = Ask { walks: 5, passes: 3, seed, options: model.walk_options() };
                let all: Vec<Scores> = queries.chunks(batch).flat_map(|b| asker.ask(b, ask).unwrap()).collect();
                bits(&all)
            };
            let want = run(1, 5, 9);
            for (threads, batch) in [(1, 1), (2, 5), (2, 2), (7, 5), (7, 1)] {
                assert!(
                    run(threads, batch, 9) == want,
                    "{task} {width} {precision}: {threads} threads, batches of {batch}"
                );
            }
            assert!(run(2, 5, 10) != want, "another seed must draw other walks");
        }
    }
}

#[test]
fn tail_and_head_queries_differ_and_the_wrong_task_is_refused() {
    let graph = synthetic_graph(100, 4, 600, 3);
    let mut meta = Metadata::published(Task::Entity);
    (meta.length, meta.updates) = (16, 2);
    let checkpoint = initial_weights(meta, 1).unwrap();
    let model = Model::new(&checkpoint, Engine::new(Level::Portable, Precision::F32).unwrap()).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let asker = Asker::new(&model, View { topology: &graph, mask: None }, &pool);
    let ask = Ask { walks: 4, passes: 1, seed: 0, options: model.walk_options() };
    let one = |query| asker.ask(&[query], ask).map(|s| bits(&s));
    let tails = one(WalkQuery::Entity { head: 3, relation: 1 }).unwrap();
    let heads = one(WalkQuery::Entity { head: 3, relation: 1 + 4 }).unwrap();
    assert_ne!(tails, heads);
    assert!(one(WalkQuery::Relation { head: 3, tail: 4 }).unwrap_err().to_string().contains("entity model"));
    assert!(one(WalkQuery::Entity { head: 100, relation: 1 }).unwrap_err().to_string().contains("outside the graph"));
    assert!(one(WalkQuery::Entity { head: 0, relation: 8 }).unwrap_err().to_string().contains("type 8"));
}
