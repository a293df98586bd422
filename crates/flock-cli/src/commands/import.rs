//! `flock-kg import`: weights from a PyTorch file.

use std::path::PathBuf;

use flock_kg::model::import::import_pth;

use crate::shared::failure::{Failure, error};
use crate::shared::models::report_written;

/// Arguments of `import`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file is read without Python and nothing in it is executed.

Example:
  flock-kg import flock-entity.pth flock-entity.safetensors")]
pub struct ImportArgs {
    /// File written by torch.save
    #[arg(value_name = "PTH")]
    pub from: PathBuf,
    /// Checkpoint to write; an existing file is replaced
    #[arg(value_name = "SAFETENSORS")]
    pub to: PathBuf,
}

/// Imports and writes the checkpoint.
pub fn run(args: ImportArgs) -> Result<(), Failure> {
    let checkpoint = import_pth(&args.from).map_err(error)?;
    let hash = checkpoint.write(&args.to).map_err(error)?;
    report_written(&checkpoint, &args.to, &hash)
}
