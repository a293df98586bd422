//! The models that ship inside the program, and what stands in for one that does not exist yet.

use std::fmt;

use crate::checkpoint::{Checkpoint, Metadata, Task};
use crate::init::initial_weights;

/// Where a default model comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Trained, and shipped with the program.
    Bundled,
    /// Seeded initial weights: they make the whole path run, but have learnt nothing.
    Untrained {
        /// Seed of the weights.
        seed: u64,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Bundled => f.write_str("bundled"),
            Origin::Untrained { seed } => write!(f, "untrained, seed {seed}"),
        }
    }
}

/// The checkpoint file of a task that is built into the program, if there is one.
pub fn bundled(task: Task) -> Option<&'static [u8]> {
    match task {
        Task::Entity | Task::Relation => None,
    }
}

/// The model of a task to use when none is named: the bundled one, else initial weights of seed 0.
pub fn default_checkpoint(task: Task) -> (Checkpoint, Origin) {
    match bundled(task) {
        Some(bytes) => {
            let checkpoint = Checkpoint::from_bytes("bundled model", bytes);
            (checkpoint.expect("the tests read every bundled file"), Origin::Bundled)
        }
        None => {
            let checkpoint = initial_weights(Metadata::published(task), 0);
            (checkpoint.expect("published sizes are sound"), Origin::Untrained { seed: 0 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_default_of_its_own() {
        for task in [Task::Entity, Task::Relation] {
            let (checkpoint, origin) = default_checkpoint(task);
            assert_eq!(checkpoint.meta.task, task);
            assert_eq!(origin == Origin::Bundled, bundled(task).is_some());
        }
    }
}
