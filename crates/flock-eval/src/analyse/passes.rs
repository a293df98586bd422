//! MRR against the number of passes and against other settings, such as the base walk count.

use serde::Serialize;

use crate::ask::{batch_size, place, place_all};
use crate::datasets::TestSet;
use crate::error::EvalError;
use crate::metrics::Metrics;
use crate::questions::Questions;
use crate::rank::Placed;
use crate::summary::Counted;
use flock_model::ensemble::{Ask, Asker, combine};
use flock_model::model::{Model, View};

/// A setting and what it gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Passes, walks, or the name of a variant.
    pub setting: String,
    /// Published tie rule.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Share of answers that a walk reached.
    pub coverage: f64,
}

fn tried(setting: String, questions: &Questions, placed: &[Placed]) -> Tried {
    let counted = Counted::new(questions.items(), placed, 0, |r| r.to_string());
    Tried { setting, metrics: counted.all.pessimistic, coverage: counted.coverage }
}

/// MRR after each of `counts` passes (ascending). The first `p` of many passes are the passes of an ensemble of `p`, so one run
/// with the most passes gives all.
pub fn passes(
    model: &Model,
    set: &TestSet,
    ask: Ask,
    counts: &[u32],
    pool: &rayon::ThreadPool,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Vec<Tried>, EvalError> {
    let questions = Questions::new(model.meta().task, set);
    let ask = Ask { passes: counts.iter().copied().max().unwrap_or(1), ..ask };
    let asker = Asker::new(model, View { topology: set.on.topology(), mask: None }, pool);
    let mut placed: Vec<Vec<Placed>> = vec![Vec::new(); counts.len()];
    let total = questions.queries.len();
    let mut at = 0;
    while at < total {
        let end = total.min(at + batch_size(&ask));
        for (query, passes) in (at..end).zip(asker.ask_passes(&questions.queries[at..end], ask)?) {
            let items = &questions.items()[questions.range(query..query + 1)];
            for (count, placed) in counts.iter().zip(&mut placed) {
                let scores = combine(&passes[..*count as usize]);
                placed.extend(place(set, &questions.queries[query], items, &scores)?);
            }
        }
        at = end;
        if !watch(at, total) {
            return Err(EvalError::Stopped);
        }
    }
    Ok(counts.iter().zip(&placed).map(|(count, placed)| tried(count.to_string(), &questions, placed)).collect())
}

/// MRR of one setting.
pub fn once(
    setting: String,
    model: &Model,
    set: &TestSet,
    ask: Ask,
    pool: &rayon::ThreadPool,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Tried, EvalError> {
    let questions = Questions::new(model.meta().task, set);
    let total = questions.queries.len();
    let mut placed = Vec::new();
    place_all(model, set, &questions, ask, pool, 0, |done, places| {
        placed.extend_from_slice(places);
        if watch(done, total) { Ok(()) } else { Err(EvalError::Stopped) }
    })?;
    Ok(tried(setting, &questions, &placed))
}
