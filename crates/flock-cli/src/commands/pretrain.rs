//! `flock-kg pretrain`: a model from its beginnings.

use std::path::PathBuf;

use flock_kg::train::{TrainConfig, TrainError};

use crate::shared::failure::{Failure, error};
use crate::shared::training::{TrainArgs, put, run as train};

/// Arguments of `pretrain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg pretrain --config configs/pretrain-entity.toml
  flock-kg pretrain --config configs/pretrain-entity.toml --steps 2000 --set data.subgraph=[200,800]
  flock-kg pretrain --graph data/countries.tsv --set data.holdout=0.1 --steps 100 --walks 16 --out runs/countries

Relative paths in a config are seen from the current directory. The directory of the run gets last.safetensors, \
best.safetensors (by validation MRR), ema.safetensors (if weights are averaged), metrics.jsonl, curve.svg, and state, \
from which a run goes on after a crash, a full disk or Ctrl-C as if nothing had happened: run the same command again.")]
pub struct PretrainArgs {
    #[command(flatten)]
    pub train: TrainArgs,
    /// What the model learns to predict: entity or relation [default: entity]
    #[arg(long)]
    pub task: Option<String>,
}

/// Trains.
pub fn run(args: PretrainArgs) -> Result<(), Failure> {
    let mut settings = args.train.settings()?;
    put(&mut settings, "--task", "task", args.task);
    let config = TrainConfig::resolve(&settings, TrainConfig::pretraining).map_err(|e| error(TrainError::from(e)))?;
    let dir = PathBuf::from(format!("runs/pretrain-{}", config.task));
    train(&args.train.run, &config, dir)
}
