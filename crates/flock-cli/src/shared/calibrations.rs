//! The calibrations that a command uses.

use std::path::Path;

use flock_kg::calibrate::Calibrations;

use crate::shared::failure::{Failure, error};

/// The calibrations of a command: those of `--calibration`, else those beside the graph file; none for standard input.
pub fn find(given: Option<&Path>, graph: &Path) -> Result<Calibrations, Failure> {
    match given {
        Some(path) => Calibrations::read_file(path).map_err(error),
        None if graph == Path::new("-") => Ok(Calibrations::default()),
        None => Calibrations::read(graph).map_err(error),
    }
}

/// Says on standard error why calibrations are not used.
pub fn warn_unused(given: Option<&Path>, graph: &Path, why: &str) {
    let file = given.map_or_else(|| Calibrations::path(graph), Path::to_path_buf);
    say!("warning: {}: {why}; hint: flock-kg calibrate with this --model, --walks and --passes", file.display());
}
