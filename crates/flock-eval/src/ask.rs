//! Asks the model every question and ranks the true answers, a batch of queries at a time.
//!
//! What stays in memory is two ranks per answer, whatever the number of candidates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flock_walk::WalkQuery;

use crate::datasets::TestSet;
use crate::error::EvalError;
use crate::questions::{TestAnswer, TestQuestions};
use crate::rank::{AnswerRank, Rank, ranks};
use flock_model::ensemble::{Ask, Asker, NotFinite, Scores, combine};
use flock_model::model::{Model, ModelError, View};

/// Returns how many queries are asked at once: enough to keep all threads busy, few enough to show
/// progress and to lose little when a run is killed.
pub(crate) fn batch_size(ask: &Ask) -> usize {
    const WALKS: u32 = 1024;
    (WALKS / ask.walks.max(1) / ask.passes.max(1)).clamp(4, 256) as usize
}

/// Asks all queries from number `first` on and ranks their answers, a batch at a time.
///
/// After each batch, `done` gets the number of queries done so far and the ranks of the batch's
/// answers, in the order of [`TestQuestions::answers`]. If `done` fails, the rest is not asked. If
/// `stop` is set, the run ends between two passes, without the batch. Returns the time that the model
/// took.
pub fn rank_all(
    model: &Model,
    set: &TestSet,
    questions: &TestQuestions,
    ask: Ask,
    pool: &rayon::ThreadPool,
    first: usize,
    stop: Option<&AtomicBool>,
    mut done: impl FnMut(usize, &[AnswerRank]) -> Result<(), EvalError>,
) -> Result<Duration, EvalError> {
    let asker = Asker::new(model, View { topology: set.on.topology(), mask: None }, pool);
    let (mut at, mut asking) = (first, Duration::ZERO);
    while at < questions.queries.len() {
        let end = questions.queries.len().min(at + batch_size(&ask));
        let clock = Instant::now();
        let go_on = || !stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let passes = asker.ask_passes_while(&questions.queries[at..end], ask, &go_on).map_err(|e| match e {
            ModelError::Stopped => EvalError::Stopped,
            e => e.into(),
        })?;
        asking += clock.elapsed();
        let batch = passes.iter().map(|passes| combine(passes));
        let mut ranks = Vec::with_capacity(end - at);
        for (query, scores) in (at..end).zip(batch) {
            ranks.extend(rank_query(set, &questions.queries[query], questions.answers_of(query), &scores)?);
        }
        done(end, &ranks)?;
        at = end;
    }
    Ok(asking)
}

/// Ranks the answers of one query.
pub fn rank_query(
    set: &TestSet,
    query: &WalkQuery,
    answers: &[TestAnswer],
    scores: &Scores,
) -> Result<Vec<AnswerRank>, NotFinite> {
    let ids = || answers.iter().map(|a| a.answer);
    let (known, candidates) = match *query {
        WalkQuery::Entity { head, relation } => {
            (set.known.answers(head, relation).collect::<Vec<u32>>(), set.known.num_nodes())
        }
        WalkQuery::Relation { head, tail } => {
            let mut known = set.known.relations_between(head, tail);
            known.sort_unstable();
            (known, set.known.num_relations())
        }
    };
    let filtered = ranks(scores, &known, candidates, ids())?;
    let published = match query {
        WalkQuery::Entity { .. } => filtered.clone(),
        WalkQuery::Relation { .. } => ranks(scores, &[], candidates, ids())?,
    };
    // The answer itself is one of the known.
    let rivals = match query {
        WalkQuery::Entity { .. } => candidates.saturating_sub(known.len() as u32),
        WalkQuery::Relation { .. } => candidates.saturating_sub(1),
    };
    let rank = |((rank, filtered), a): ((Rank, Rank), &TestAnswer)| {
        let reached = scores.reached.binary_search_by_key(&a.answer, |r| r.0).is_ok();
        AnswerRank { rank, filtered, reached, score: scores.of(a.answer).logit, rivals }
    };
    Ok(published.into_iter().zip(filtered).zip(answers).map(rank).collect())
}
