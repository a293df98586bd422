//! `flock-kg import`: weights from a PyTorch file.

use std::io::Write;

use flock_kg::import::import_pth;

use crate::args;
use crate::failure::{Failure, error};
use crate::table::grouped;

/// Imports and writes the checkpoint.
pub fn run(args: args::Import) -> Result<(), Failure> {
    let checkpoint = import_pth(&args.from).map_err(error)?;
    let hash = checkpoint.write(&args.to).map_err(error)?;
    let (meta, to) = (checkpoint.meta(), args.to.display());
    let mut out = std::io::stdout().lock();
    writeln!(out, "{to}: {} model, {} parameters, SHA-256 {hash}", meta.task, grouped(meta.num_parameters()))?;
    Ok(out.flush()?)
}
