//! What ships inside the program: a model of each task, and a small graph to try them on.

use flock_graph::{Graph, LoadError, LoadOptions, load_reader};
use flock_model::checkpoint::{Checkpoint, Task};

use crate::calibrate::DefaultCalibrations;

/// Where a bundled model comes from, in answers and settings.
pub const ORIGIN: &str = "bundled";

/// Countries, their capitals, borders, languages: the bundled graph as text.
pub const COUNTRIES: &str = include_str!("../data/countries.tsv");

/// The checkpoint file of a task that is built into the program.
pub fn bundled(task: Task) -> &'static [u8] {
    match task {
        Task::Entity => include_bytes!("../models/flock-entity.safetensors"),
        Task::Relation => include_bytes!("../models/flock-relation.safetensors"),
    }
}

/// The model of a task to use when none is named.
pub fn default_checkpoint(task: Task) -> Checkpoint {
    Checkpoint::from_bytes("bundled model", bundled(task)).expect("the tests read every bundled file")
}

/// The default calibrations of the bundled model of a task. They are of no other model: [`DefaultCalibrations::model`].
pub fn default_calibrations(task: Task) -> DefaultCalibrations {
    let (file, text) = match task {
        Task::Entity => ("flock-entity.calibration.json", include_str!("../models/flock-entity.calibration.json")),
        Task::Relation => {
            ("flock-relation.calibration.json", include_str!("../models/flock-relation.calibration.json"))
        }
    };
    DefaultCalibrations::from_text(file, text).expect("the tests read every bundled file")
}

/// The bundled graph.
///
/// # Errors
/// None: the tests read it.
pub fn graph() -> Result<Graph, LoadError> {
    load_reader("countries.tsv", COUNTRIES.as_bytes(), &LoadOptions::default()).map(|(graph, _)| graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_model_that_has_learnt() {
        for task in [Task::Entity, Task::Relation] {
            let checkpoint = default_checkpoint(task);
            assert_eq!(checkpoint.meta().task, task);
            assert!(checkpoint.meta().steps > 0);
            // Its default calibration is of these weights, for the passes that one asks with.
            let defaults = default_calibrations(task);
            assert_eq!(defaults.model, checkpoint.hash);
            let one = defaults.nearest(1).unwrap();
            assert!(one.passes == 1 && one.graphs.len() >= 10 && one.error_after < one.error_before);
        }
        assert!(graph().unwrap().topology().num_triples() > 100);
    }
}
