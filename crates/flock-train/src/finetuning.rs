//! The published fine-tuning of a dataset: what the paper's tables say, as a config.
//!
//! The registry has epochs, batches and batch size of every graph and task
//! ([`RegistryEntry::finetuning`]). Rate, decay, negatives and loss are the same everywhere
//! ([`TrainConfig::finetuning`]).

use std::path::PathBuf;

use crate::config::{TrainConfig, WalkCount};
use crate::data::Hide;
use crate::run::TrainError;
use crate::settings::{Settings, to_json};
use flock_eval::datasets::{Dataset, DatasetError, RegistryEntry, registry, training_triples};
use flock_eval::difference::{Difference, differences};
use flock_model::checkpoint::Task;

/// Keys that say where a run works and with what, not how it trains.
const FREE: [&str; 9] = [
    "seed",
    "threads",
    "model.from",
    "model.note",
    "data.graphs",
    "output.dir",
    "output.log_every",
    "output.save_seconds",
    "validation.seed",
];

/// Lists where a config departs from the published one. Seeds, threads, graphs and where a run works are free.
pub fn departures(published: &TrainConfig, config: &TrainConfig) -> Vec<Difference> {
    differences(&to_json(published), &to_json(config), &FREE)
}

/// Returns the config of the published fine-tuning on a dataset whose training graph has so many
/// triples. `data.graphs` and `model.from` are for the caller to set.
///
/// - An epoch is the published number of batches, or as many as it takes to see every triple once.
/// - Walks of training and validation have the graph's published base count.
/// - The start and every epoch are validated on all validation triples that the registry counts,
///   and the best checkpoint is kept.
///
/// How the fine-tuned model is then asked is in [`RegistryEntry::finetuning`] too.
///
/// ```
/// use flock_eval::datasets::registry;
/// use flock_model::checkpoint::Task;
/// use flock_train::published_finetuning;
///
/// let metafam = registry::get("Metafam")?;
/// let config = published_finetuning(metafam, Task::Entity, 13_821);
/// // 3 epochs of 13,821 / 8 batches each.
/// assert_eq!((config.steps, config.validation.every, config.data.batch), (5_184, 1_728, 8));
/// # Ok::<(), flock_eval::datasets::UnknownDataset>(())
/// ```
pub fn published_finetuning(entry: &RegistryEntry, task: Task, num_triples: usize) -> TrainConfig {
    let published = entry.finetuning(task);
    let mut config = TrainConfig::finetuning(task);
    config.steps = published.steps(num_triples);
    config.data.batch = published.batch;
    config.data.hide = Hide::Positives;
    config.walks.n = WalkCount::Fixed(entry.n);
    config.validation.n = WalkCount::Fixed(entry.n);
    config.validation.every = published.epoch_steps(num_triples);
    config.validation.triples = entry.valid.predicted.max(1) as usize;
    config
}

/// The config of a published fine-tuning, and where settings make it another one.
#[derive(Clone, Debug)]
pub struct PublishedRun {
    /// The config: settings laid over what is published.
    pub config: TrainConfig,
    /// What is no longer as published: the published value and the one that was set.
    pub departures: Vec<Difference>,
}

impl PublishedRun {
    /// Lays settings over the published fine-tuning of a dataset, whose training triples are
    /// counted.
    ///
    /// # Errors
    /// A dataset that the registry does not have, a training graph that cannot be read, or settings
    /// that make no config.
    pub fn resolve(dataset: &Dataset, settings: &Settings) -> Result<PublishedRun, TrainError> {
        let entry = registry::get(&dataset.name).map_err(DatasetError::from)?;
        let num_triples = training_triples(dataset)?;
        let graphs = vec![PathBuf::from(&dataset.dir)];
        let published = |task| {
            let mut config = published_finetuning(entry, task, num_triples);
            config.data.graphs = graphs.clone();
            config
        };
        let mut config = TrainConfig::resolve(settings, published)?;
        let published = published(config.task);
        // A time ends the run earlier. It does not make the published run longer.
        if config.minutes.is_some() && settings.get("steps").is_none() {
            config.steps = published.steps;
        }
        let departures = departures(&published, &config);
        Ok(PublishedRun { config, departures })
    }
}
