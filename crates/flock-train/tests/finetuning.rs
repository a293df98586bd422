//! The published fine-tuning of a dataset, and settings laid over it.

use std::path::Path;

use flock_eval::datasets::{Dataset, registry};
use flock_model::checkpoint::Task;
use flock_train::config::{MOST_STEPS, WalkCount};
use flock_train::data::{Hide, Negatives};
use flock_train::{PublishedRun, Settings, TrainConfig, TrainError, published_finetuning};

/// A dataset of the registry's name, with 20 distinct training triples in 21 rows.
fn dataset(data: &Path, name: &str) -> Dataset {
    let dir = data.join(name);
    std::fs::create_dir(&dir).unwrap();
    let mut train: String = (0..20).map(|i| format!("e{i}\tnext\te{}\n", (i + 1) % 20)).collect();
    train += "e0\tnext\te1\n";
    std::fs::write(dir.join("train.txt"), train).unwrap();
    std::fs::write(dir.join("valid.txt"), "e0\tnext\te2\n").unwrap();
    std::fs::write(dir.join("test.txt"), "e0\tnext\te3\n").unwrap();
    Dataset::find(data, name).unwrap()
}

fn departures(run: &PublishedRun) -> Vec<String> {
    run.departures.iter().map(|d| format!("{} {} {}", d.key, d.old, d.new)).collect()
}

#[test]
fn the_config_has_what_the_paper_says() {
    // tab:hyperparameter and tab:hyperparameter-finetune-1, -2.
    let config = |name, task, triples| published_finetuning(registry::get(name).unwrap(), task, triples);
    let fb = config("FB15k237", Task::Entity, 272_115);
    assert_eq!((fb.steps, fb.validation.every, fb.data.batch), (34_015, 34_015, 8));
    assert_eq!((fb.walks.n, fb.validation.n), (WalkCount::Fixed(128), WalkCount::Fixed(128)));
    assert_eq!((fb.data.negatives, fb.loss.temperature), (Negatives::Drawn(256), 1.0));
    assert_eq!((fb.optimiser.rate, fb.optimiser.decay, fb.validation.triples), (5e-4, 0.01, 17_535));
    let nell = config("NELLInductive_v2", Task::Entity, 8_219);
    assert_eq!((nell.steps, nell.validation.every), (3 * 1_028, 1_028));
    let codex = config("CoDExLarge", Task::Relation, 551_193);
    assert_eq!((codex.task, codex.steps, codex.data.batch, codex.optimiser.decay), (Task::Relation, 1_000, 4, 0.0));
    // The paper hides every edge from head to tail. Fine-tuning that is not as published hides what is asked.
    assert_eq!((codex.data.hide, TrainConfig::finetuning(Task::Relation).data.hide), (Hide::Positives, Hide::Asked));
    assert_eq!((fb.data.hide, TrainConfig::finetuning(Task::Entity).data.hide), (Hide::Positives, Hide::Positives));
    // Hetionet is trained with the graph's n. The other one is how the fine-tuned model is asked.
    let hetionet = registry::get("Hetionet").unwrap();
    assert_eq!(config("Hetionet", Task::Entity, 2_025_177).walks.n, WalkCount::Fixed(512));
    let [entity, relation] = [Task::Entity, Task::Relation].map(|task| hetionet.finetuning(task));
    assert_eq!([(entity.passes, entity.n), (relation.passes, relation.n)], [(1, 1_024), (2, 512)]);
    for entry in registry::entries() {
        for task in [Task::Entity, Task::Relation] {
            published_finetuning(entry, task, 1).check().unwrap();
        }
    }
}

#[test]
fn what_is_set_besides_is_named() {
    let data = tempfile::tempdir().unwrap();
    let set = dataset(data.path(), "Metafam");
    let resolve = |pairs: &[&str]| {
        let mut settings = Settings::new();
        pairs.iter().for_each(|pair| settings.set("--set", pair).unwrap());
        PublishedRun::resolve(&set, &settings)
    };
    // 20 distinct triples in batches of 8 are 3 batches; 3 epochs.
    let plain = resolve(&["seed=4", "threads=1", "output.dir=x", "model.from=bundled"]).unwrap();
    assert_eq!((plain.config.steps, plain.config.validation.every), (9, 3));
    assert_eq!((plain.config.seed, &plain.config.data.graphs[..]), (4, &[data.path().join("Metafam")][..]));
    assert!(plain.departures.is_empty(), "{:?}", plain.departures);
    let other = resolve(&["steps=2", "optimiser.rate=1e-4"]).unwrap();
    assert_eq!((other.config.steps, other.config.optimiser.rate), (2, 1e-4));
    assert_eq!(departures(&other), ["optimiser.rate 0.0005 0.0001", "steps 9 2"]);
    // A time alone does not take the end from the published steps, as it does elsewhere.
    let timed = resolve(&["minutes=5"]).unwrap();
    assert_eq!((timed.config.steps, departures(&timed)), (9, vec!["minutes null 5.0".to_string()]));
    let mut settings = Settings::new();
    settings.put("a", "minutes", 5);
    settings.put("a", "data.graphs", vec!["x"]);
    assert_eq!(TrainConfig::resolve(&settings, TrainConfig::finetuning).unwrap().steps, MOST_STEPS);
    // The relation task has settings of its own: they are what it is compared with.
    let relation = resolve(&["task=relation"]).unwrap();
    assert_eq!((relation.config.steps, relation.departures.len()), (1_000, 0));
}

#[test]
fn a_dataset_of_ones_own_has_nothing_published() {
    let data = tempfile::tempdir().unwrap();
    let error = PublishedRun::resolve(&dataset(data.path(), "Metafan"), &Settings::new()).unwrap_err();
    assert_eq!(error.to_string(), "unknown dataset \"Metafan\"; near names: Metafam");
    assert!(matches!(error, TrainError::Dataset(_)) && error.remedy().is_some());
}
