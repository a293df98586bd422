//! Evaluation: filtered ranks of held-out answers under the published protocol (section 9 of the specification).
//!
//! A [`TestSet`] becomes [`questions`]; each is asked once, and its answers are placed among their rivals ([`rank`]); what was
//! placed is counted ([`metrics`]) and told with the whole protocol ([`results`]). Queries are asked some at a time: what stays in
//! memory is two ranks per answer, whatever the number of candidates. [`record`] keeps them on disk, so that a killed run goes on.
//! [`strata`] tells kinds of questions apart; [`rank_rows`] keeps a row per question, by which [`bootstrap`] compares two models.
//! [`compare`] puts published numbers beside ours; [`analyse`], [`embedding`] and [`density`] are the paper's analyses.

pub mod analyse;
pub mod bootstrap;
pub mod chart;
pub mod compare;
pub mod datasets;
pub mod density;
pub mod difference;
pub mod embedding;
pub mod metrics;
pub mod questions;
pub mod rank;
pub mod rank_rows;
pub mod record;
pub mod results;
pub mod strata;

use std::time::{Duration, Instant};

use flock_walk::WalkQuery;

use crate::datasets::{DatasetError, TestSet};
use flock_model::ensemble::NotFinite;
use flock_model::ensemble::{Ask, Asker, Scores};
use flock_model::model::{Model, ModelError, View};
pub use metrics::{Counted, Metrics, Placed, Tally};
pub use questions::{Item, Questions, Side};
pub use rank::{Rank, ranks};
pub use results::{Evaluation, Ranked, Settings, Stated, evaluate, evaluate_ranked};

/// Why an evaluation stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The model does not fit, or a query does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's scores are no numbers.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// What a killed run left cannot be gone on with.
    #[error(transparent)]
    Record(#[from] record::RecordError),
    /// The dataset cannot be loaded.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Some other file.
    #[error("{file}: {source}")]
    File {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not a list of results.
    #[error("{file}: not results of flock-kg eval: {reason}")]
    Results {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// Not a file of ranks.
    #[error("{file}:{line}: {reason}")]
    Ranks {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Told to stop.
    #[error("stopped")]
    Stopped,
}

/// So many queries are asked at once: enough to keep all threads busy, and little enough to show progress and to lose little.
fn batch_size(ask: &Ask) -> usize {
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

#[cfg(test)]
pub(crate) mod testing {
    //! Results made up for tests.

    use super::metrics::{Counted, Placed};
    use super::results::Evaluation;
    use super::{Item, Rank, Side};
    use crate::datasets::registry;

    /// Entity results of a dataset with this MRR and Hits@10.
    pub fn evaluation(dataset: &str, mrr: f64, hits10: f64) -> Evaluation {
        let item = Item { answer: 0, side: Side::Tail, relation: 0, triple: 0 };
        let rank = Rank { higher: 0, ties: 0 };
        let placed = Placed { rank, filtered: rank, reached: true, score: 0.0, rivals: 1 };
        let mut counted = Counted::new(&[item], &[placed], 1, |_| "r".to_string());
        (counted.all.pessimistic.mrr, counted.all.pessimistic.hits10) = (mrr, hits10);
        let rest = serde_json::json!({
            "dataset": dataset, "task": "entity", "split": "test",
            "group": registry::find(dataset).map_or(crate::datasets::Group::Other, |e| e.group),
            "asked": 1, "seconds": 1.0, "gflops": 1.0, "overhead": 0.0, "threads": 1, "time": "", "model": "m", "differences": [],
            "protocol": {
                "version": "", "checkpoint": "", "precision": "f32", "simd": "", "seed": 0, "n": 16, "passes": 1, "length": 128,
                "backtrack": false, "all_at_query": false, "balanced_on_query_relation": false, "inverses": true,
                "ties": "pessimistic", "filtered": true, "filter": ["train"], "sides": ["tail"], "walked": "train",
                "graph": "", "predicted": "", "entities": 1, "relations": 1, "triples": 1, "sampled": 1, "of": 1, "dropped": 0
            }
        });
        // As results.json has it: the numbers stand beside the rest.
        let mut all = serde_json::to_value(&counted).unwrap();
        all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let read: Evaluation = serde_json::from_value(all).unwrap();
        assert_eq!(read.counted, counted);
        read
    }
}

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
