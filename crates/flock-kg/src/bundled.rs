//! What ships inside the program: a model of each task, and a small graph to try them on.

use flock_graph::{Graph, LoadError, LoadOptions, load_reader};
use flock_model::checkpoint::{Checkpoint, Task};

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
        }
        assert!(graph().unwrap().topology().num_triples() > 100);
    }
}
