//! MRR against the number of passes and against other settings, such as the base walk count.

use serde::{Deserialize, Serialize};

use crate::ask::{batch_size, rank_all, rank_query};
use crate::datasets::TestSet;
use crate::error::EvalError;
use crate::metrics::RankMetrics;
use crate::questions::TestQuestions;
use crate::rank::AnswerRank;
use crate::summary::RankSummary;
use flock_model::ensemble::{Ask, Asker, combine};
use flock_model::model::{Model, View};

/// The metrics under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The setting: passes, walks, or the name of a variant.
    pub setting: String,
    /// Metrics under the published tie rule.
    #[serde(flatten)]
    pub metrics: RankMetrics,
    /// Share of answers that a walk reached.
    pub coverage: f64,
}

fn summarise(setting: String, questions: &TestQuestions, ranks: &[AnswerRank]) -> Trial {
    let summary = RankSummary::new(questions.answers(), ranks, 0, |r| r.to_string());
    Trial { setting, metrics: summary.all.pessimistic, coverage: summary.coverage }
}

/// Measures the metrics after each of `counts` passes, which ascend. The first `p` of many passes
/// are an ensemble of `p`, so one run with the most passes gives all. `watch` gets queries done and
/// their total after each batch, and stops the run by returning false.
pub fn passes(
    model: &Model,
    set: &TestSet,
    ask: Ask,
    counts: &[u32],
    pool: &rayon::ThreadPool,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Vec<Trial>, EvalError> {
    let questions = TestQuestions::new(model.meta().task, set);
    let ask = Ask { passes: counts.iter().copied().max().unwrap_or(1), ..ask };
    let asker = Asker::new(model, View { topology: set.on.topology(), mask: None }, pool);
    let mut ranks: Vec<Vec<AnswerRank>> = vec![Vec::new(); counts.len()];
    let total = questions.queries.len();
    let mut at = 0;
    while at < total {
        let end = total.min(at + batch_size(&ask));
        for (query, passes) in (at..end).zip(asker.ask_passes(&questions.queries[at..end], ask)?) {
            let answers = questions.answers_of(query);
            for (count, ranks) in counts.iter().zip(&mut ranks) {
                let scores = combine(&passes[..*count as usize]);
                ranks.extend(rank_query(set, &questions.queries[query], answers, &scores)?);
            }
        }
        at = end;
        if !watch(at, total) {
            return Err(EvalError::Stopped);
        }
    }
    Ok(counts.iter().zip(&ranks).map(|(count, ranks)| summarise(count.to_string(), &questions, ranks)).collect())
}

/// Measures the metrics under one setting. `watch` is as in [`passes()`].
pub fn once(
    setting: String,
    model: &Model,
    set: &TestSet,
    ask: Ask,
    pool: &rayon::ThreadPool,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Trial, EvalError> {
    let questions = TestQuestions::new(model.meta().task, set);
    let total = questions.queries.len();
    let mut ranks = Vec::new();
    rank_all(model, set, &questions, ask, pool, 0, None, |done, batch| {
        ranks.extend_from_slice(batch);
        if watch(done, total) { Ok(()) } else { Err(EvalError::Stopped) }
    })?;
    Ok(summarise(setting, &questions, &ranks))
}
