//! `flock-kg finetune`: a trained model, made better on one graph.

use std::path::{Path, PathBuf};

use flock_kg::bundled;
use flock_kg::eval::datasets::Dataset;
use flock_kg::model::checkpoint::Checkpoint;
use flock_kg::train::{PublishedRun, Settings, TrainConfig, TrainError};

use crate::shared::failure::{Failure, error};
use crate::shared::protocol::find_dataset;
use crate::shared::training::{TrainArgs, put, run as train};

/// Arguments of `finetune`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg finetune --graph data/countries.tsv
  flock-kg finetune --graph DATA/WDsinger --task relation --steps 500 --batch 8
  flock-kg finetune Metafam --data DATA --published
  flock-kg finetune --graph more.tsv --model runs/finetune-countries-entity/best.safetensors

Of a graph file 5 % of the triples are kept for validation (--set data.holdout=0 for none); a dataset directory has its own. \
Everything else is as in pretrain, and any value of configs/finetune.toml can be set.

With --published a dataset of the paper is trained on as the paper says: its epochs, batches and batch size, its base walk count, and \
a validation after each epoch on all of its validation triples. What is set besides is laid over that, and standard error says what \
is no longer as published.")]
pub struct FinetuneArgs {
    /// Dataset by name in --data or by path, or a graph file; the same as --graph
    #[arg(value_name = "DATASET", conflicts_with = "graph")]
    pub dataset: Option<String>,
    /// Directory with a directory per dataset
    #[arg(long, value_name = "DIR", requires = "dataset")]
    pub data: Option<PathBuf>,
    /// Train as published for this dataset and task
    #[arg(long, requires = "dataset", conflicts_with = "graph")]
    pub published: bool,
    /// Checkpoint to start from [default: the built-in model of the task]
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// What is predicted: entity or relation [default: what the model given predicts, else entity]
    #[arg(long)]
    pub task: Option<String>,
    #[command(flatten)]
    pub train: TrainArgs,
}

/// Trains.
pub fn run(args: FinetuneArgs) -> Result<(), Failure> {
    let mut settings = args.train.settings()?;
    put(&mut settings, "--task", "task", args.task);
    put(&mut settings, "--model", "model.from", args.model.map(|p| p.display().to_string()));
    match settings.get("model.from").and_then(|v| v.as_str()).map(PathBuf::from) {
        Some(model) if settings.get("task").is_none() && model != Path::new(bundled::ORIGIN) => {
            let task = Checkpoint::read(&model).map_err(error)?.meta().task;
            settings.put("--model", "task", task.to_string());
        }
        Some(_) => {}
        None => settings.put("the default", "model.from", bundled::ORIGIN),
    }
    let config = match &args.dataset {
        Some(name) if args.published => published(&find_dataset(args.data.as_deref(), name)?, &settings)?,
        dataset => {
            if let Some(name) = dataset {
                let path = match Path::new(name).is_file() {
                    true => PathBuf::from(name),
                    false => find_dataset(args.data.as_deref(), name)?.dir,
                };
                settings.put("DATASET", "data.graphs", vec![path.display().to_string()]);
            }
            TrainConfig::resolve(&settings, TrainConfig::finetuning).map_err(|e| error(TrainError::from(e)))?
        }
    };
    let name = config.data.graphs[0].file_stem().map_or_else(Default::default, |n| n.to_string_lossy().into_owned());
    train(&args.train.run, &config, PathBuf::from(format!("runs/finetune-{name}-{}", config.task)))
}

/// The published fine-tuning of a dataset. Says what the settings make different.
fn published(dataset: &Dataset, settings: &Settings) -> Result<TrainConfig, Failure> {
    let run = PublishedRun::resolve(dataset, settings).map_err(error)?;
    for d in &run.departures {
        let old = if d.old.is_null() { "off".to_string() } else { d.old.to_string() };
        say!("note: not as published: {} = {}, published is {old}", d.key, d.new);
    }
    Ok(run.config)
}
