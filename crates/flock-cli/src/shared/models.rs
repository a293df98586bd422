//! The models a command uses, those of `--model` or the built-in ones, and the threads they run on.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use flock_kg::Predictor;
use flock_kg::kernels::{Engine, Precision};
use flock_kg::model::Checkpoint;
use flock_kg::predictor;
pub use flock_kg::predictor::all_threads;

use crate::shared::failure::{Failure, error};
use crate::shared::parse;
use crate::shared::table::grouped;

const MODEL: &str = "Model";

/// The model and how it runs.
#[derive(clap::Args, Debug)]
pub struct ModelArgs {
    /// Checkpoint (.safetensors); may be given twice, one for entities and one for relations [default: the
    /// built-in model]
    #[arg(long, help_heading = MODEL, value_name = "FILE")]
    pub model: Vec<PathBuf>,
    /// Threads [default: all]
    #[arg(long, help_heading = MODEL, value_name = "N", value_parser = parse::threads)]
    pub threads: Option<usize>,
    /// Precision of multiplications: f32 or bf16 [default: bf16 where the processor has it, else f32]
    #[arg(long, help_heading = MODEL, value_parser = PossibleValuesParser::new(["f32", "bf16"])
        .try_map(|s| s.parse::<Precision>()))]
    pub precision: Option<Precision>,
}

impl ModelArgs {
    /// The models, and the threads they run on.
    pub fn predictor(&self) -> Result<Predictor, Failure> {
        let builder = self.model.iter().fold(Predictor::builder().precision(self.precision), |b, file| b.model(file));
        match self.threads {
            Some(threads) => builder.threads(threads),
            None => builder,
        }
        .build()
        .map_err(error)
    }
}

/// The engine for a precision, or the faster one, at the level of `FLOCK_SIMD`, or else the best of this machine.
pub fn engine(precision: impl Into<Option<Precision>>) -> Result<Engine, Failure> {
    predictor::engine(precision).map_err(error)
}

/// Says on standard output what was written.
pub fn report_written(checkpoint: &Checkpoint, to: &Path, hash: &str) -> Result<(), Failure> {
    let (meta, to) = (checkpoint.meta(), to.display());
    let mut out = std::io::stdout().lock();
    writeln!(out, "{to}: {} model, {} parameters, SHA-256 {hash}", meta.task, grouped(meta.num_parameters()))?;
    Ok(out.flush()?)
}

/// A pool of so many threads, or all.
pub fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool, Failure> {
    predictor::pool(threads.unwrap_or_else(all_threads)).map_err(error)
}
