//! Mixed precision: with multiplications in bf16, and sums, weights and moments in f32, the loss goes the way it goes in f32.
//!
//! A fixed small task: two rings of twelve whose relations are inverse to each other, the same batches and walks for both
//! precisions. Rounded operands differ by up to 2⁻⁹ of their size; what they add up to over a run is measured here.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use flock_kernels::{Engine, Level, Precision};
use flock_model::gradient::FastGradient;
use flock_train::{RunContext, Settings, TrainConfig, metrics, train};

const STEPS: u64 = 120;
/// Steps of which the mean loss is compared.
const EVERY: u64 = 10;

/// The mean loss of every [`EVERY`] steps.
fn curve(dir: &Path, precision: Precision) -> Vec<f64> {
    let mut text = String::new();
    for ring in ["a", "b"] {
        for i in 0..12 {
            let j = (i + 1) % 12;
            text += &format!("{ring}{i}\tnext\t{ring}{j}\n{ring}{j}\tback\t{ring}{i}\n");
        }
    }
    let graph = dir.join("rings.tsv");
    std::fs::write(&graph, text).unwrap();
    let mut settings = Settings::new();
    settings.put("test", "data.graphs", vec![graph.display().to_string()]);
    let values = ["data.batch=8", "data.negatives=8", "walks.n=2", "model.length=12", "model.updates=2"];
    let every = [format!("steps={STEPS}"), format!("output.log_every={EVERY}"), "validation.every=0".to_string()];
    for set in values.into_iter().chain(every.iter().map(String::as_str)) {
        settings.set("--set", set).unwrap();
    }
    settings.put("test", "optimiser.precision", precision.to_string());
    let config = TrainConfig::resolve(&settings, TrainConfig::pretraining).unwrap();

    let level = Level::detect().unwrap();
    let engine = |precision| Engine::new(level, precision).unwrap();
    let asked = config.optimiser.precision.into();
    assert_eq!(asked, precision, "what the config names is what the gradient gets");
    let out = dir.join(precision.to_string());
    let context = RunContext {
        bundled: None,
        start: None,
        gradient: &mut FastGradient::new(engine(asked), 2).unwrap(),
        engine: engine(Precision::F32),
        pool: &rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap(),
        peak_gflops: None,
        resume: false,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
    };
    train(&config, &out, context).unwrap();
    let records = metrics::read(&out.join("metrics.jsonl")).unwrap();
    records.iter().filter_map(|r| r.loss).collect()
}

#[test]
fn the_loss_in_bf16_follows_that_in_f32() {
    let dir = tempfile::tempdir().unwrap();
    let (full, mixed) = (curve(dir.path(), Precision::F32), curve(dir.path(), Precision::Bf16));
    assert_eq!((full.len() as u64, mixed.len()), (STEPS / EVERY, full.len()));
    let mut greatest = 0f64;
    for (i, (f, m)) in full.iter().zip(&mixed).enumerate() {
        println!("steps to {:4}: f32 {f:.4}, bf16 {m:.4}, difference {:+.4}", EVERY * (i as u64 + 1), m - f);
        greatest = greatest.max((m - f).abs());
    }
    let fall = full[0] - full[full.len() - 1];
    println!("greatest difference {greatest:.4}, fall of the loss {fall:.4}");
    assert!(fall > 0.15, "nothing was learnt: {full:?}");
    assert!(greatest > 0.0, "bf16 rounded nothing");
    assert!(greatest < 0.02, "{full:?}\n{mixed:?}");
}
