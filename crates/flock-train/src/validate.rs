//! Validation: mean reciprocal rank of held-out answers, as in [`eval`](flock_eval). A graph's MRR is the mean over its questions,
//! a run's score the mean over its graphs.

use crate::config::TrainConfig;
use flock_eval::datasets::TestSet;
use flock_eval::{Counted, EvalError, Questions, place_all};
use flock_model::ensemble::Ask;
use flock_model::model::Model;

/// The MRR of each set, with the name of its graph. `progress` is told after each part how many questions are done, of how many;
/// if it answers false the rest is left, and there is no result.
pub(crate) fn mrr(
    model: &Model,
    sets: &[TestSet],
    config: &TrainConfig,
    pool: &rayon::ThreadPool,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Option<Vec<(String, f64)>>, EvalError> {
    let (options, config) = (model.walk_options(), &config.validation);
    let questions: Vec<_> = sets.iter().map(|set| Questions::new(model.meta().task, set)).collect();
    let total = questions.iter().map(|q| q.queries.len()).sum();
    let (mut before, mut result) = (0, Vec::new());
    for (set, questions) in sets.iter().zip(&questions) {
        let topology = set.on.topology();
        let walks = config.n.on(model.meta(), topology.num_nodes(), topology.num_triples());
        let ask = Ask { walks, passes: config.passes, seed: config.seed, options };
        let mut placed = Vec::new();
        let asked = place_all(model, set, questions, ask, pool, 0, |done, places| {
            placed.extend_from_slice(places);
            if progress(before + done, total) { Ok(()) } else { Err(EvalError::Stopped) }
        });
        match asked {
            Err(EvalError::Stopped) => return Ok(None),
            asked => _ = asked?,
        }
        before += questions.queries.len();
        let relation = |r: u32| set.on.graph().relations().get(r).to_string();
        let counted = Counted::new(questions.items(), &placed, set.triples.len(), relation);
        // Filtered for relations too: what is known to be true is no mistake.
        let tally = counted.filtered.unwrap_or(counted.all);
        result.push((set.on.name.clone(), tally.pessimistic.mrr));
    }
    Ok(Some(result))
}
