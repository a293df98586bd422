//! Evaluation: filtered ranks of held-out answers under the published protocol (section 9 of the specification).
//!
//! A [`TestSet`] becomes [`questions`]; each is asked once, and its answers are placed among their rivals ([`rank`]); what was
//! placed is counted ([`metrics`]) and told with the whole protocol ([`results`]). Queries are asked some at a time: what stays in
//! memory is two ranks per answer, whatever the number of candidates. [`partial`] keeps them on disk, so that a killed run goes on.
//! [`strata`] tells kinds of questions apart; [`ranks`] keeps a row per question, by which [`bootstrap`] compares two models.
//! [`compare`] puts published numbers beside ours; [`analyse`], and its rooms are the paper's analyses.

pub mod analyse;
pub mod ask;
pub mod bootstrap;
pub mod chart;
pub mod compare;
pub mod datasets;
pub mod difference;
pub mod error;
pub mod evaluate;
pub mod metrics;
pub mod partial;
pub mod published;
pub mod questions;
pub mod rank;
pub mod ranks;
pub mod results;
pub mod sheet;
pub mod strata;
pub mod summary;

pub use ask::{place, place_all};
pub use error::EvalError;
pub use evaluate::{Ranked, Settings, evaluate, evaluate_ranked};
pub use metrics::{Metrics, Tally};
pub use questions::{Item, Questions, Side};
pub use rank::{Placed, Rank};
pub use results::{Evaluation, Stated};
pub use summary::Counted;

#[cfg(test)]
pub(crate) mod testing {
    //! Results made up for tests.

    use super::rank::Placed;
    use super::results::Evaluation;
    use super::summary::Counted;
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
