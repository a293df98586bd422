//! What a table or figure costs: useful work, counted before anything is done.

use flock_eval::datasets::registry::RegistryEntry;
use flock_eval::datasets::{DatasetGroup, Split};
use flock_eval::evaluate::Choice;
use flock_model::checkpoint::{Metadata, Task};
use flock_train::TrainConfig;

use super::work::wanted;
use super::{AblationRow, Item, ReproduceOptions};

/// The graphs that an item has, and its useful work on them.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ItemCost {
    /// Graphs to ask that are at hand; all of the item's if no data were named.
    pub graphs: usize,
    /// Graphs to ask in the paper.
    pub of: usize,
    /// Graphs to pretrain on that are at hand or named; all of the item's if no data were named.
    pub train_on: usize,
    /// Useful multiply-adds, at most: questions that repeat are asked once. `None` if they depend on a time.
    pub flops: Option<f64>,
}

impl ItemCost {
    /// Returns the hours at so many useful GFLOP/s.
    pub fn hours(&self, gflops: f64) -> Option<f64> {
        self.flops.map(|flops| flops / (gflops * 1e9) / 3600.0)
    }
}

/// Walks of a question for each base walk.
fn walks(task: Task) -> f64 {
    if task == Task::Entity { 3.0 } else { 4.0 }
}

/// Counts the useful work of an item with models of the published sizes.
pub fn cost(item: Item, options: &ReproduceOptions) -> ItemCost {
    let at_hand = |e: &&RegistryEntry| options.data.as_ref().is_none_or(|data| data.join(e.name).is_dir());
    // A name that is wrong is an error when the work begins.
    let graphs: Vec<&RegistryEntry> =
        wanted(item, &options.graphs).unwrap_or_default().into_iter().filter(at_hand).collect();
    let (task, meta) = (item.task(), Metadata::published(item.task()));
    let per_walk = 2.0 * meta.macs_per_position() as f64 * meta.length as f64 * meta.updates as f64;
    let questions = |e: &RegistryEntry| {
        let counts = if options.split == Split::Valid { e.valid } else { e.test };
        let triples = options.limit.map_or(counts.predicted, |limit| counts.predicted.min(limit as u64));
        let sides = if task == Task::Entity && e.protocol.heads { 2 } else { 1 };
        (triples * sides) as f64
    };
    let passes = |e: &RegistryEntry| match options.passes {
        Choice::Given(passes) => f64::from(passes),
        _ => f64::from(e.passes(task)),
    };
    let n = |e: &RegistryEntry| match options.walks {
        Choice::Given(n) => f64::from(n),
        _ => f64::from(e.n),
    };
    let asked = |e: &RegistryEntry, n: f64, passes: f64| questions(e) * n * walks(task) * passes * per_walk;
    let once: f64 = graphs.iter().map(|e| asked(e, n(e), passes(e))).sum();
    // A step back costs twice the way forward.
    let trained = |steps: u64, batch: usize, n: f64| 3.0 * steps as f64 * batch as f64 * n * walks(task) * per_walk;
    let budget = |published: u64| options.steps.unwrap_or(published);
    let pretraining = || {
        let config = TrainConfig::pretraining(task);
        trained(budget(config.steps), config.data.batch, f64::from(config.walks.n_train))
    };
    let there = |name: &&&str| options.data.as_ref().is_none_or(|data| data.join(name).is_dir());
    let train_on = match options.train_on.len() {
        0 => item.pretrains_on().iter().filter(there).count(),
        named => named,
    };
    let timed = options.minutes.is_some();
    let flops = match item {
        Item::EntityZeroShot | Item::RelationZeroShot | Item::Density => Some(once),
        Item::EntityFineTuned | Item::RelationFineTuned => {
            let of = |e: &&RegistryEntry| {
                let f = e.finetuning(task);
                let triples =
                    if e.group == DatasetGroup::Transductive || e.train[2] == 0 { e.test.triples } else { e.train[2] };
                trained(budget(f.steps(triples as usize)), f.batch, f64::from(e.n))
            };
            (!timed).then(|| once + graphs.iter().map(of).sum::<f64>())
        }
        Item::AdaptiveWalks => {
            let by_rule: f64 = graphs.iter().map(|e| asked(e, f64::from(e.n), passes(e))).sum();
            Some(by_rule + graphs.iter().map(|e| asked(e, 128.0, passes(e))).sum::<f64>())
        }
        Item::Ensemble => Some(f64::from(options.seeds) * graphs.iter().map(|e| asked(e, n(e), 16.0)).sum::<f64>()),
        Item::Ablations => {
            let rows = if options.rows.is_empty() { AblationRow::PAPER } else { options.rows.len() } as f64;
            (!timed).then(|| rows * (once + pretraining()))
        }
        // The paper has no mix of seven graphs.
        Item::PretrainingMix => {
            let mixes = if options.train_on.is_empty() && train_on == item.pretrains_on().len() {
                train_on - 1
            } else {
                train_on
            };
            (!timed).then(|| mixes as f64 * (once + pretraining()))
        }
        Item::Petals => {
            // 220 instances of two questions, five epochs and as many tests of one pass, and one of 16 passes.
            let questions = 2.0 * 220.0 * 16.0 * walks(task) * per_walk;
            Some(questions * (5.0 * (3.0 + 1.0) + 16.0))
        }
        Item::CaseStudy => {
            Some(graphs.iter().map(|e| 8.0 * e.test.relations as f64 * n(e) * walks(task) * passes(e) * per_walk).sum())
        }
        Item::TrainingSpeed
        | Item::InferenceSpeed
        | Item::Statistics
        | Item::Hyperparameters
        | Item::NoiseInjection => Some(0.0),
    };
    ItemCost { graphs: graphs.len(), of: item.num_graphs(), train_on, flops }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_by_hand() {
        // Metafam has 184 test triples, both sides asked; n = 16, P = 16: 3·16 walks of 128 positions in 6 updates.
        let options = ReproduceOptions { graphs: vec!["Metafam".to_string()], ..ReproduceOptions::default() };
        let one = |item| cost(item, &options).flops.unwrap();
        let pass = 2.0 * 111_104.0 * 48.0 * 128.0 * 6.0;
        assert_eq!(one(Item::EntityZeroShot), 368.0 * 16.0 * pass);
        // Relations: one question per triple, four kinds of starts.
        assert_eq!(one(Item::RelationZeroShot), 184.0 * 16.0 * pass * 4.0 / 3.0);
        // Three epochs of 1,728 steps of eight questions, forward and back.
        assert_eq!(one(Item::EntityFineTuned), 368.0 * 16.0 * pass + 3.0 * 5184.0 * 8.0 * pass);
        let timed = ReproduceOptions { minutes: Some(5.0), ..options };
        assert_eq!(cost(Item::Ablations, &timed).flops, None);
        let limited = ReproduceOptions { limit: Some(10), passes: Choice::Given(1), minutes: None, ..timed };
        assert_eq!(cost(Item::EntityZeroShot, &limited).flops, Some(20.0 * pass));
        assert_eq!(cost(Item::EntityZeroShot, &limited).hours(pass * 20.0 / 3600.0 / 1e9), Some(1.0));
    }
}
