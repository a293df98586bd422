//! What ships inside the program: a model of each task, and two small graphs to try them on.

use flock_graph::{Graph, LoadError, LoadOptions, load_reader};
use flock_model::checkpoint::{Checkpoint, Task};

use crate::calibrate::DefaultCalibrations;

/// Where a bundled model comes from, in answers and settings.
pub const ORIGIN: &str = "bundled";

/// Countries, their capitals, borders, languages: the smaller bundled graph as text.
pub const COUNTRIES: &str = include_str!("../data/countries.tsv");

/// Medicines, what they treat, act on and cause: the richer bundled graph as text. An example, not medical advice.
pub const MEDICINES: &str = include_str!("../data/medicines.tsv");

/// True links that were taken out of [`MEDICINES`], as text in the same form.
pub const MEDICINES_WITHHELD: &str = include_str!("../data/medicines-withheld.tsv");

// Statics, so that a program has them once: a constant stands in every crate that it is inlined into.
static ENTITY: &[u8] = include_bytes!("../models/flock-entity.safetensors");
static RELATION: &[u8] = include_bytes!("../models/flock-relation.safetensors");

/// The checkpoint file of a task that is built into the program.
pub fn bundled(task: Task) -> &'static [u8] {
    match task {
        Task::Entity => ENTITY,
        Task::Relation => RELATION,
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

/// The smaller bundled graph: [countries](COUNTRIES).
///
/// # Errors
/// None: the tests read it.
pub fn graph() -> Result<Graph, LoadError> {
    load_reader("countries.tsv", COUNTRIES.as_bytes(), &LoadOptions::default()).map(|(graph, _)| graph)
}

/// The richer bundled graph: [medicines](MEDICINES) with diseases, proteins and side effects.
///
/// Some true links are [missing on purpose](withheld_from_medicines).
///
/// # Errors
/// None: the tests read it.
pub fn medicines() -> Result<Graph, LoadError> {
    load_reader("medicines.tsv", MEDICINES.as_bytes(), &LoadOptions::default()).map(|(graph, _)| graph)
}

/// The links that were taken out of [`medicines`]: head, relation, tail.
///
/// A rule on the text of a link chose them, not what a model finds. They show how many true links a list has.
pub fn withheld_from_medicines() -> impl Iterator<Item = [&'static str; 3]> {
    MEDICINES_WITHHELD.lines().filter_map(|line| {
        let mut parts = line.split('\t');
        Some([parts.next()?, parts.next()?, parts.next()?])
    })
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
        assert!(medicines().unwrap().topology().num_triples() > 1000);
    }

    #[test]
    fn every_withheld_line_is_a_link() {
        assert_eq!(withheld_from_medicines().count(), MEDICINES_WITHHELD.lines().count());
    }
}
