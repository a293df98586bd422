//! The models that ship inside the program: the files of `models/`, where each has a card.

use flock_model::checkpoint::{Checkpoint, Task};

/// Where a bundled model comes from, in answers and settings.
pub const ORIGIN: &str = "bundled";

/// The checkpoint file of a task that is built into the program.
pub fn bundled(task: Task) -> &'static [u8] {
    match task {
        Task::Entity => include_bytes!("../../../models/flock-entity.safetensors"),
        Task::Relation => include_bytes!("../../../models/flock-relation.safetensors"),
    }
}

/// The model of a task to use when none is named.
pub fn default_checkpoint(task: Task) -> Checkpoint {
    Checkpoint::from_bytes("bundled model", bundled(task)).expect("the tests read every bundled file")
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
            // Whoever has the file and whoever has the program have the same model.
            let file = format!("{}/../../models/flock-{task}.safetensors", env!("CARGO_MANIFEST_DIR"));
            assert_eq!(Checkpoint::read(file).unwrap().hash, checkpoint.hash);
        }
    }
}
