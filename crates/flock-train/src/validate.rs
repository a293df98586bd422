//! Validation: the mean reciprocal rank of held-out answers, as in [`flock_eval`]. The MRR of a
//! graph is the mean over its questions; the score of a run is the mean over its graphs.

use crate::config::TrainConfig;
use flock_eval::datasets::TestSet;
use flock_eval::{EvalError, RankSummary, TestQuestions, rank_all};
use flock_model::ensemble::Ask;
use flock_model::model::Model;

/// Measures the MRR of each set, with the name of its graph. `progress` gets questions done and
/// their total after each batch. If it returns false, the rest is not asked and there is no result.
pub(crate) fn mrr(
    model: &Model,
    sets: &[TestSet],
    config: &TrainConfig,
    pool: &rayon::ThreadPool,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Option<Vec<(String, f64)>>, EvalError> {
    let (options, config) = (model.walk_options(), &config.validation);
    let questions: Vec<_> = sets.iter().map(|set| TestQuestions::new(model.meta().task, set)).collect();
    let total = questions.iter().map(|q| q.queries.len()).sum();
    let (mut before, mut result) = (0, Vec::new());
    for (set, questions) in sets.iter().zip(&questions) {
        let topology = set.on.topology();
        let walks = config.n.on(model.meta(), topology.num_nodes(), topology.num_triples());
        let ask = Ask { walks, passes: config.passes, seed: config.seed, options };
        let mut ranks = Vec::new();
        let asked = rank_all(model, set, questions, ask, pool, 0, None, |done, batch| {
            ranks.extend_from_slice(batch);
            if progress(before + done, total) { Ok(()) } else { Err(EvalError::Stopped) }
        });
        match asked {
            Err(EvalError::Stopped) => return Ok(None),
            asked => _ = asked?,
        }
        before += questions.queries.len();
        let relation = |r: u32| set.on.graph().relations().get(r).to_string();
        let summary = RankSummary::new(questions.answers(), &ranks, set.triples.len(), relation);
        // Filtered for relations too: what is known to be true is no mistake.
        let metrics = summary.filtered.unwrap_or(summary.all);
        result.push((set.on.name.clone(), metrics.pessimistic.mrr));
    }
    Ok(Some(result))
}
