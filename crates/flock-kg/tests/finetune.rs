//! Fine-tuning through the library: on a graph in memory, from a model in memory, to the bits of the same run on files.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flock_kg::finetune::{RunOptions, Training, TrainingError};
use flock_kg::model::checkpoint::{Checkpoint, Task};
use flock_kg::train::{Event, Settings, TrainConfig, TrainError, TrainRemedy};
use flock_kg::{AskError, Predictor, bundled};

/// Three small steps on one thread.
fn config(more: &[(&str, &str)]) -> TrainConfig {
    let mut settings = Settings::new();
    settings
        .toml(
            "test.toml",
            "steps = 3\nthreads = 1\n[data]\nbatch = 2\nnegatives = 8\n[walks]\nn = 2\n\
             [validation]\nn = 2\ntriples = 2\n",
        )
        .unwrap();
    more.iter().for_each(|(key, value)| settings.put("test", key, *value));
    TrainConfig::resolve_in_memory(&settings, TrainConfig::finetuning).unwrap()
}

fn weights(dir: &Path, file: &str) -> Vec<f32> {
    Checkpoint::read(dir.join(file)).unwrap().weights.values
}

#[test]
fn memory_and_files_give_the_same_weights() {
    let place = tempfile::tempdir().unwrap();
    let [files, memory] = ["files", "memory"].map(|name| place.path().join(name));
    let mut on_files = config(&[("model.from", bundled::ORIGIN)]);
    on_files.data.graphs = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/data/countries.tsv").into()];
    let one = Training::new(&on_files).run(&files, RunOptions::default()).unwrap();

    let (config, graph) = (config(&[]), bundled::graph().unwrap());
    let predictor = Predictor::builder().threads(1).build().unwrap();
    let start = predictor.checkpoint(Task::Entity).unwrap();
    assert_eq!(start.hash, predictor.model(Task::Entity).unwrap().name.sha256);
    // Stopped after the first step, then resumed.
    let (stop, mut notes) = (AtomicBool::new(false), Vec::new());
    let watch = Box::new(|event: Event<'_>| {
        if let Event::Step(p) = event {
            notes.push((p.step, p.steps));
            stop.store(true, Ordering::Relaxed);
        }
    });
    let training = || Training::new(&config).graph("countries", graph.clone()).start(&start);
    let cut = training().run(&memory, RunOptions { stop: &stop, watch, ..RunOptions::default() }).unwrap();
    assert_eq!((cut.finished, cut.steps, notes), (false, 1, vec![(1, 3)]));
    let two = training().run(&memory, RunOptions { resume: true, ..RunOptions::default() }).unwrap();
    assert_eq!((two.finished, two.resumed_at, &two.graphs), (true, Some(1), &vec!["countries".to_string()]));
    assert_eq!((one.before, one.best), (two.before, two.best));
    for file in ["last.safetensors", "best.safetensors"] {
        assert!(weights(&files, file) == weights(&memory, file), "{file} differs");
    }
    assert!(weights(&memory, "last.safetensors") != start.weights.values);

    // What came of it is a model like any other, and can be the next start.
    let tuned = Predictor::builder().threads(1).model(memory.join("last.safetensors")).build().unwrap();
    let next = tuned.checkpoint(Task::Entity).unwrap();
    assert!(next.weights.values == weights(&memory, "last.safetensors"));
    assert!(matches!(tuned.checkpoint(Task::Relation), Err(AskError::NoModel { task: Task::Relation, .. })));
    // But not of a run that had another.
    let error = Training::new(&config).graph("countries", graph).start(&next).run(&memory, RunOptions::default());
    let error = error.unwrap_err();
    assert!(matches!(&error, TrainingError::Run(TrainError::Changed { key, .. }) if key == "model.from"), "{error}");
    assert_eq!(error.remedy(), Some(TrainRemedy::SameValue));
}

#[test]
fn a_wrong_config_is_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("run");
    let mut wrong = config(&[]);
    wrong.threads = Some(0);
    let without_graphs = config(&[]);
    for (config, key) in [(&wrong, "threads"), (&without_graphs, "data.graphs")] {
        let error = Training::new(config).run(&dir, RunOptions::default()).unwrap_err();
        assert!(matches!(error, TrainingError::Run(TrainError::Config(_))), "{error}");
        assert!(error.to_string().contains(key) && !dir.exists(), "{error}");
    }
}
