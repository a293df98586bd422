//! The same evaluation with several seeds: how much do the walks change?
//!
//! Seeds are consecutive. A sample of triples is that of the first seed, so that only the walks
//! differ. The mean and the standard deviation over seeds (with n − 1) are taken per dataset. For a
//! mean over datasets, the mean of each seed comes first.

use std::sync::atomic::AtomicBool;

use crate::datasets::Dataset;
use crate::error::EvalError;
use crate::evaluate::{EvalProgress, EvalSettings, RankedEvaluation, evaluate_run};
use crate::metrics::RankMetrics;
use crate::partial::PartialRun;
use crate::results::Evaluation;
pub use crate::summary::SeedSummary;
use flock_model::ModelName;
use flock_model::model::Model;

impl SeedSummary {
    /// Summarises runs of one dataset, or of several, which then count alike for each seed. `None`
    /// if there are no runs, or not the same number of them with each seed: a mean over datasets
    /// would then be one over other datasets for each seed.
    pub fn new(runs: &[&Evaluation]) -> Option<SeedSummary> {
        let mut seeds: Vec<u64> = runs.iter().map(|e| e.protocol.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let of = |seed: u64| -> Vec<RankMetrics> {
            runs.iter().filter(|e| e.protocol.seed == seed).map(|e| e.summary.all.pessimistic).collect()
        };
        let by_seed: Vec<Vec<RankMetrics>> = seeds.iter().map(|seed| of(*seed)).collect();
        let first = by_seed.first()?.len();
        if by_seed.iter().any(|runs| runs.len() != first) {
            return None;
        }
        let means: Vec<RankMetrics> = by_seed.iter().map(|runs| RankMetrics::mean(runs)).collect();
        Some(SeedSummary { seeds, mean: RankMetrics::mean(&means), deviation: RankMetrics::deviation(&means) })
    }
}

/// The evaluations of a dataset with several seeds.
#[derive(Clone, Debug)]
pub struct SeedEvaluations {
    /// One for each seed, in their order. With more than one seed each has the summary.
    pub runs: Vec<Evaluation>,
    /// Mean and standard deviation.
    pub summary: SeedSummary,
}

/// Evaluates a model with the seeds `settings.seed`, `settings.seed + 1`, …: `seeds` of them, and at
/// least one. A run with one of them gives the same ranks, unless it draws a sample: that is always
/// the sample of the first seed.
///
/// `partial` keeps the ranks of every seed on disk. `watch` gets the seed and how far it is after
/// each batch, and stops the run by returning false; so does `stop`, between two passes. `done` gets
/// each seed's ranks as soon as they are complete.
pub fn evaluate_seeds(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &EvalSettings,
    seeds: u32,
    pool: &rayon::ThreadPool,
    mut partial: Option<&mut PartialRun>,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(u64, EvalProgress) -> bool,
    done: &mut dyn FnMut(&RankedEvaluation),
) -> Result<SeedEvaluations, EvalError> {
    let (seeds, first) = (seeds.max(1), settings.seed);
    let mut runs = Vec::new();
    for run in 0..seeds {
        let seed = first.wrapping_add(u64::from(run));
        let settings = EvalSettings { seed, ..*settings };
        let mut watch = |progress| watch(seed, progress);
        let (place, partial) = ((run, first), partial.as_deref_mut());
        let mut ranked = evaluate_run(dataset, model, name, &settings, place, pool, partial, stop, &mut watch)?;
        ranked.names_seed = seeds > 1;
        done(&ranked);
        runs.push(ranked.evaluation);
    }
    let summary = SeedSummary::new(&runs.iter().collect::<Vec<_>>()).expect("a run for each seed");
    if seeds > 1 {
        runs.iter_mut().for_each(|run| run.over_seeds = Some(summary.clone()));
    }
    Ok(SeedEvaluations { runs, summary })
}

/// Collects the runs of each dataset, task and split, in the order in which they first appear.
pub fn by_dataset<'a>(results: &[&'a Evaluation]) -> Vec<Vec<&'a Evaluation>> {
    let mut all: Vec<Vec<&Evaluation>> = Vec::new();
    for e in results {
        let same = |runs: &Vec<&Evaluation>| {
            (&runs[0].dataset, runs[0].task, runs[0].split) == (&e.dataset, e.task, e.split)
                && runs.iter().all(|run| run.protocol.seed != e.protocol.seed)
        };
        match all.iter_mut().find(|runs| same(runs)) {
            Some(runs) => runs.push(e),
            None => all.push(vec![e]),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::evaluation;

    fn run(dataset: &str, seed: u64, mrr: f64, hits10: f64) -> Evaluation {
        let mut e = evaluation(dataset, mrr, hits10);
        e.protocol.seed = seed;
        e
    }

    #[test]
    fn mean_and_deviation_by_hand() {
        let runs = [run("a", 7, 0.2, 0.5), run("a", 8, 0.5, 0.5), run("a", 9, 0.5, 0.8)];
        let summary = SeedSummary::new(&runs.iter().collect::<Vec<_>>()).unwrap();
        // MRR: mean 0.4, squares 0.04 + 0.01 + 0.01 = 0.06, /2 = 0.03. Hits@10: mean 0.6, 0.06 too.
        assert_eq!(summary.seeds, [7, 8, 9]);
        assert!((summary.mean.mrr - 0.4).abs() < 1e-12 && (summary.mean.hits10 - 0.6).abs() < 1e-12);
        let deviation = 0.03f64.sqrt();
        assert!((summary.deviation.mrr - deviation).abs() < 1e-12, "{}", summary.deviation.mrr);
        assert!((summary.deviation.hits10 - deviation).abs() < 1e-12);
        let one = SeedSummary::new(&[&runs[0]]).unwrap();
        assert_eq!((one.mean.mrr, one.deviation.mrr), (0.2, 0.0));
        assert_eq!(SeedSummary::new(&[]), None);
    }

    #[test]
    fn datasets_are_averaged_within_a_seed_first() {
        // Seed 1: (0.2 + 0.6) / 2 = 0.4; seed 2: (0.4 + 0.4) / 2 = 0.4. What the two datasets gain
        // and lose cancels out: the deviation of the mean is 0, those of the datasets are not.
        let runs = [run("a", 1, 0.2, 0.0), run("a", 2, 0.4, 0.0), run("b", 1, 0.6, 0.0), run("b", 2, 0.4, 0.0)];
        let all: Vec<&Evaluation> = runs.iter().collect();
        let group = SeedSummary::new(&all).unwrap();
        assert!((group.mean.mrr - 0.4).abs() < 1e-12 && group.deviation.mrr < 1e-12, "{group:?}");
        let datasets = by_dataset(&all);
        assert_eq!(datasets.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        // (0.2, 0.4): mean 0.3, 2 · 0.1² / 1.
        let a = SeedSummary::new(&datasets[0]).unwrap();
        assert!((a.deviation.mrr - 0.02f64.sqrt()).abs() < 1e-12);
        assert_eq!(SeedSummary::new(&all[..3]), None);
    }
}
