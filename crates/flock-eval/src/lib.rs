//! Evaluation: filtered ranks of held-out answers under the published protocol
//! (`docs/reference/model.md`, section 9).
//!
//! The way from a dataset to a result:
//!
//! 1. [`datasets`] loads a graph with its test triples, a [`TestSet`](datasets::TestSet).
//! 2. [`questions`] collects the distinct queries, and [`ask`] asks them and ranks the answers
//!    ([`rank`]).
//! 3. [`summary`] computes [`metrics`], in all and by kind of question ([`strata`]).
//! 4. [`evaluate`](mod@evaluate) runs all of this, and [`results`] keeps the metrics with the whole
//!    protocol. [`partial`] keeps the ranks on disk, so that a killed run can be resumed.
//!
//! [`seeds`] repeats it with several seeds: the mean, and how far the walks scatter it.
//! [`holdout`] does the same for any graph: it hides some of the graph's own triples.
//!
//! Then: [`ranks`] writes a row per question, from which [`bootstrap`] compares two models.
//! [`published`] has published numbers, and [`compare`](mod@compare) puts them beside ours.
//! [`analyse`] has the paper's analyses, and [`chart`] draws them.

pub mod analyse;
pub mod ask;
pub mod bootstrap;
pub mod chart;
pub mod compare;
pub mod datasets;
pub mod difference;
pub mod error;
pub mod evaluate;
pub mod holdout;
pub mod metrics;
pub mod partial;
pub mod published;
pub mod questions;
pub mod rank;
pub mod ranks;
pub mod remedy;
pub mod results;
mod rows;
pub mod seeds;
pub mod sheet;
pub mod strata;
pub mod summary;

pub use ask::{rank_all, rank_query};
pub use error::{EvalError, HoldoutError};
pub use evaluate::{EvalSettings, RankedEvaluation, evaluate, evaluate_ranked};
pub use holdout::{HoldoutReport, HoldoutSettings, evaluate_holdout};
pub use metrics::{RankMetrics, TieMetrics};
pub use questions::{AskedSide, TestAnswer, TestQuestions};
pub use rank::{AnswerRank, Rank};
pub use remedy::EvalRemedy;
pub use results::{Evaluation, FullProtocol};
pub use seeds::{SeedEvaluations, SeedSummary, evaluate_seeds};
pub use summary::RankSummary;

#[cfg(test)]
pub(crate) mod testing {
    //! Results made up for tests.

    use super::rank::AnswerRank;
    use super::results::Evaluation;
    use super::summary::RankSummary;
    use super::{AskedSide, Rank, TestAnswer};
    use crate::datasets::registry;

    /// Entity results of a dataset with this MRR and Hits@10.
    pub fn evaluation(dataset: &str, mrr: f64, hits10: f64) -> Evaluation {
        let item = TestAnswer { answer: 0, side: AskedSide::Tail, relation: 0, triple: 0 };
        let rank = Rank { higher: 0, ties: 0 };
        let placed = AnswerRank { rank, filtered: rank, reached: true, score: 0.0, rivals: 1 };
        let mut summary = RankSummary::new(&[item], &[placed], 1, |_| "r".to_string());
        (summary.all.pessimistic.mrr, summary.all.pessimistic.hits10) = (mrr, hits10);
        let rest = serde_json::json!({
            "dataset": dataset, "task": "entity", "split": "test",
            "group": registry::find(dataset).map_or(crate::datasets::DatasetGroup::Other, |e| e.group),
            "asked": 1, "seconds": 1.0, "gflops": 1.0, "overhead": 0.0, "threads": 1, "time": "", "model": "m", "differences": [],
            "protocol": {
                "version": "", "checkpoint": "", "precision": "f32", "simd": "", "seed": 0, "n": 16, "passes": 1, "length": 128,
                "backtrack": false, "all_at_query": false, "balanced_on_query_relation": false, "inverses": true,
                "ties": "pessimistic", "filtered": true, "filter": ["train"], "sides": ["tail"], "walked": "train",
                "graph": "", "predicted": "", "entities": 1, "relations": 1, "triples": 1, "sampled": 1, "of": 1, "dropped": 0
            }
        });
        // As results.json has it: the numbers stand beside the rest.
        let mut all = serde_json::to_value(&summary).unwrap();
        all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let read: Evaluation = serde_json::from_value(all).unwrap();
        assert_eq!(read.summary, summary);
        read
    }
}

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
