//! The models inside the program have learnt something: they predict triples held out of the bundled graph, which they were
//! not trained on, and initial weights of the same sizes do not.

use std::path::Path;

use flock_kg::ModelName;
use flock_kg::bundled::default_checkpoint;
use flock_kg::eval::datasets::{Dataset, Part, Split};
use flock_kg::eval::evaluate::{Choice, EvalSettings, evaluate};
use flock_kg::kernels::{Engine, Level, Precision};
use flock_kg::model::Model;
use flock_kg::model::checkpoint::{Checkpoint, Task};
use flock_kg::model::init::initial_weights;

/// Every tenth triple is held out, the others are the graph.
fn hold_out(dir: &Path) -> Dataset {
    let text = include_str!("../data/countries.tsv");
    let part = |held: bool| -> String {
        let lines = text.lines().enumerate().filter(|(i, _)| (i % 10 == 4) == held);
        lines.map(|(_, line)| format!("{line}\n")).collect()
    };
    std::fs::write(dir.join(Part::Train.file()), part(false)).unwrap();
    for split in [Part::Valid, Part::Test] {
        std::fs::write(dir.join(split.file()), part(true)).unwrap();
    }
    Dataset::open(dir).unwrap()
}

fn mrr(dataset: &Dataset, checkpoint: &Checkpoint) -> f64 {
    let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
    let model = Model::new(checkpoint, engine).unwrap();
    assert_eq!(model.walk_options().balanced_on_query_relation, checkpoint.meta().balanced_on_query_relation);
    let task = checkpoint.meta().task;
    let name =
        ModelName { task, origin: "test".to_string(), sha256: checkpoint.hash.clone(), precision: "f32".to_string() };
    let (walks, passes) = (Choice::Given(8), Choice::Given(1));
    let settings = EvalSettings { split: Split::Test, walks, passes, seed: 0, limit: None };
    let pool = rayon::ThreadPoolBuilder::new().build().unwrap();
    evaluate(dataset, &model, &name, &settings, &pool, None, &mut |_| true).unwrap().summary.all.pessimistic.mrr
}

#[test]
fn bundled_models_predict_what_initial_weights_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = hold_out(dir.path());
    for (task, least) in [(Task::Entity, 0.5), (Task::Relation, 0.5)] {
        let bundled = default_checkpoint(task);
        assert_eq!(
            bundled.meta().balanced_on_query_relation,
            task == Task::Entity,
            "as configs/flock-{task}.toml says"
        );
        let untrained = initial_weights(bundled.meta().clone(), 0).unwrap();
        let [bundled, untrained] = [&bundled, &untrained].map(|checkpoint| mrr(&dataset, checkpoint));
        println!("{task}: MRR {bundled:.3}, untrained {untrained:.3}");
        assert!(bundled > least && untrained < bundled - 0.2, "{task}: MRR {bundled:.3}, untrained {untrained:.3}");
    }
}
