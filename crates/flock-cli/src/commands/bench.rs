//! `flock-kg bench`: speed against the peak of this machine.

use std::io::Write;
use std::time::Duration;

use flock_kg::model::bench::{self, BenchOptions};
use flock_kg::model::{Metadata, SizeError, Task};
use flock_kg::records::OutputFormat;

use crate::shared::failure::{Failure, json};
use crate::shared::output::{OutputArgs, facts};
use crate::shared::{models, parse};

/// Arguments of `bench`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  flock-kg bench --threads 1 --seconds 2\n  flock-kg bench --train --json\n  flock-kg bench --width 128 --layers 2"
)]
pub struct BenchArgs {
    /// Measure training steps instead of forward passes
    #[arg(long)]
    pub train: bool,
    /// One JSON object
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = parse::threads)]
    pub threads: Option<usize>,
    /// Time for each row, about
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse::seconds)]
    pub seconds: f64,
    /// Width of the model: 32, 64, 96 or 128
    #[arg(long, value_name = "D", default_value = "64")]
    pub width: usize,
    /// Consensus heads of the model [default: a sixteenth of the width]
    #[arg(long, value_name = "H")]
    pub heads: Option<usize>,
    /// Layers of the model's sequence processor
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub layers: u8,
}

/// Measures.
pub fn run(args: BenchArgs) -> Result<(), Failure> {
    args.output.check()?;
    let published = Metadata::published(Task::Entity);
    let heads = args.heads.unwrap_or(Metadata::default_heads(args.width));
    let model = Metadata { width: args.width, heads, layers: args.layers.into(), ..published };
    SizeError::check(&model).map_err(|e| Failure::Misuse("bench", e.to_string()))?;
    let options = BenchOptions {
        threads: args.threads.unwrap_or_else(models::all_threads),
        time: Duration::from_secs_f64(args.seconds),
        train: args.train,
        forward: bench::FORWARD,
        model,
    };
    let report = bench::run(options, &mut |what| {
        say!("measuring: {what}");
        true
    })?;
    if !args.json && args.output.format() != OutputFormat::Table {
        return facts(&args.output, &report);
    }
    let mut out = args.output.text()?;
    if args.json {
        writeln!(out, "{}", json(&report)?)?;
    } else {
        write!(out, "{report}")?;
    }
    out.finish()
}
