//! Asks the model every question and ranks the true answers, a batch of queries at a time.

use std::time::{Duration, Instant};

use flock_walk::WalkQuery;

use crate::datasets::TestSet;
use crate::error::EvalError;
use crate::questions::{Item, Questions};
use crate::rank::{Placed, Rank, ranks};
use flock_model::ensemble::{Ask, Asker, NotFinite, Scores};
use flock_model::model::{Model, View};

/// So many queries are asked at once: enough to keep all threads busy, and little enough to show progress and to lose little.
pub(crate) fn batch_size(ask: &Ask) -> usize {
    const WALKS: u32 = 1024;
    (WALKS / ask.walks.max(1) / ask.passes.max(1)).clamp(4, 256) as usize
}

/// Asks all queries from the `first` on and hands the places of their answers on, some queries at a time: `done` gets the number
/// of queries done and the places of the answers that came since it was last called, in the order of [`Questions::items`].
/// If `done` fails, the rest is left. Returns the time that the model took.
pub fn place_all(
    model: &Model,
    set: &TestSet,
    questions: &Questions,
    ask: Ask,
    pool: &rayon::ThreadPool,
    first: usize,
    mut done: impl FnMut(usize, &[Placed]) -> Result<(), EvalError>,
) -> Result<Duration, EvalError> {
    let asker = Asker::new(model, View { topology: set.on.topology(), mask: None }, pool);
    let (mut at, mut asking) = (first, Duration::ZERO);
    while at < questions.queries.len() {
        let end = questions.queries.len().min(at + batch_size(&ask));
        let clock = Instant::now();
        let answered = asker.ask(&questions.queries[at..end], ask)?;
        asking += clock.elapsed();
        let mut placed = Vec::with_capacity(end - at);
        for (query, scores) in (at..end).zip(answered) {
            let items = &questions.items()[questions.range(query..query + 1)];
            placed.extend(place(set, &questions.queries[query], items, &scores)?);
        }
        done(end, &placed)?;
        at = end;
    }
    Ok(asking)
}

/// Places the answers of one query.
pub fn place(set: &TestSet, query: &WalkQuery, items: &[Item], scores: &Scores) -> Result<Vec<Placed>, NotFinite> {
    let answers = || items.iter().map(|item| item.answer);
    let reached = |item: &Item| scores.reached.binary_search_by_key(&item.answer, |r| r.0).is_ok();
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
    let filtered = ranks(scores, &known, candidates, answers())?;
    let published = match query {
        WalkQuery::Entity { .. } => filtered.clone(),
        WalkQuery::Relation { .. } => ranks(scores, &[], candidates, answers())?,
    };
    // The answer itself is one of the known.
    let rivals = match query {
        WalkQuery::Entity { .. } => candidates.saturating_sub(known.len() as u32),
        WalkQuery::Relation { .. } => candidates.saturating_sub(1),
    };
    let places = published.into_iter().zip(filtered).zip(items);
    let placed = |((rank, filtered), item): ((Rank, Rank), &Item)| {
        let score = scores.of(item.answer).logit;
        Placed { rank, filtered, reached: reached(item), score, rivals }
    };
    Ok(places.map(placed).collect())
}
