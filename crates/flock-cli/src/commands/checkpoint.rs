//! `flock-kg checkpoint`: a checkpoint made from others, averaged, in half precision, or with another base walk rule.

use std::path::PathBuf;

use flock_kg::model::Checkpoint;

use crate::shared::failure::{Failure, error};
use crate::shared::models::report_written;

/// Arguments of `checkpoint`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Several models of one run, averaged, are often better than each of them. In half precision a file has half the size; answers \
change by rounding only.

Examples:
  flock-kg checkpoint runs/entity/ema.safetensors --half --out flock-entity.safetensors
  flock-kg checkpoint a.safetensors b.safetensors c.safetensors --out soup.safetensors
  flock-kg checkpoint model.safetensors --least-walks 32 --walks-per-degree 2 --out model-32.safetensors")]
pub struct CheckpointArgs {
    /// Checkpoints of the same sizes and switches; the weights of several are averaged
    #[arg(value_name = "MODEL", required = true)]
    pub models: Vec<PathBuf>,
    /// Checkpoint to write; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write the weights in half precision
    #[arg(long)]
    pub half: bool,
    /// The least base walk count n that the model's rule gives, from 16 to 512
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=512))]
    pub least_walks: Option<u32>,
    /// Base walks that the model's rule gives for each unit of a graph's mean degree, up to n = 128; 0 for none
    #[arg(long, value_name = "C", value_parser = per_degree)]
    pub walks_per_degree: Option<f64>,
}

fn per_degree(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(c) if (0.0..=64.0).contains(&c) => Ok(c),
        _ => Err("expected a number from 0 to 64".to_string()),
    }
}

/// Makes and writes the checkpoint.
pub fn run(args: CheckpointArgs) -> Result<(), Failure> {
    let models = args.models.iter().map(Checkpoint::read).collect::<Result<Vec<_>, _>>().map_err(error)?;
    let mut made = Checkpoint::average(&models).map_err(error)?;
    if let Some(least) = args.least_walks {
        made.weights.meta.n_least = least;
    }
    if let Some(c) = args.walks_per_degree {
        made.weights.meta.n_per_degree = c;
    }
    let hash = if args.half { made.write_half(&args.out) } else { made.write(&args.out) }.map_err(error)?;
    report_written(&made, &args.out, &hash)
}
