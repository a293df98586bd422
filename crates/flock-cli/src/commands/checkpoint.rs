//! `flock-kg checkpoint`: a checkpoint made from others, averaged, in half precision, with another base walk rule, or wider.

use std::path::PathBuf;

use flock_kg::kernels::has_width;
use flock_kg::model::Checkpoint;

use crate::shared::failure::{Failure, error};
use crate::shared::models::report_written;

/// Arguments of `checkpoint`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Several models of one run, averaged, are often better than each of them. In half precision a file has half the size; answers \
change by rounding only. A wider model answers as the narrow one does until it is trained further.

Examples:
  flock-kg checkpoint runs/entity/ema.safetensors --half --out flock-entity.safetensors
  flock-kg checkpoint a.safetensors b.safetensors c.safetensors --out soup.safetensors
  flock-kg checkpoint model.safetensors --least-walks 32 --walks-per-degree 2 --out model-32.safetensors
  flock-kg checkpoint model.safetensors --width 96 --out wide.safetensors")]
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
    /// Widen the model to this width: 64, 96 or 128. It answers the same, and has more to learn with
    #[arg(long, value_name = "D", value_parser = width)]
    pub width: Option<usize>,
    /// Seed of the weights that --width adds
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "width")]
    pub seed: u64,
}

fn width(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|d| has_width(*d)).ok_or_else(|| "expected 32, 64, 96 or 128".to_string())
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
    if let Some(width) = args.width {
        made.weights = made.weights.widened(width, args.seed).map_err(error)?;
    }
    let hash = if args.half { made.write_half(&args.out) } else { made.write(&args.out) }.map_err(error)?;
    report_written(&made, &args.out, &hash)
}
