//! `flock-kg finetune`: a trained model, made better on one graph.

use std::path::PathBuf;

use flock_kg::checkpoint::Checkpoint;
use flock_kg::train::TrainConfig;

use crate::failure::{Failure, error};
use crate::train::{Flags, put, run as train};

/// Arguments of `finetune`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg finetune --model flock-entity.safetensors --graph data/countries.tsv
  flock-kg finetune --model flock-entity.safetensors --graph ../shared/kg/WDsinger --steps 500 --batch 8

Of a graph file 5 % of the triples are kept for validation (--set data.holdout=0 for none); a dataset directory has its own. \
Everything else is as in pretrain, and any value of configs/finetune.toml can be set.")]
pub struct Args {
    /// Checkpoint to start from
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    #[command(flatten)]
    pub flags: Flags,
}

/// Trains.
pub fn run(args: Args) -> Result<(), Failure> {
    let mut settings = args.flags.settings()?;
    put(&mut settings, "--model", "model.from", args.model.map(|p| p.display().to_string()));
    let Some(model) = settings.get("model.from").and_then(|v| v.as_str()).map(PathBuf::from) else {
        return Err(Failure::Error("nothing to start from; hint: --model FILE, or flock-kg pretrain".to_string()));
    };
    if settings.get("task").is_none() {
        let task = Checkpoint::read(&model).map_err(error)?.meta.task;
        settings.put("--model", "task", task.to_string());
    }
    let config = TrainConfig::resolve(&settings, TrainConfig::finetuning).map_err(error)?;
    let name = config.data.graphs[0].file_stem().map_or_else(Default::default, |n| n.to_string_lossy().into_owned());
    train(&args.flags.common, &config, PathBuf::from(format!("runs/finetune-{name}")))
}
