//! The summary of all ranks on one dataset: in all, by side, by relation and by kind of question,
//! with the interval of a sample.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::{RankMetrics, TieMetrics};
use crate::questions::{AskedSide, TestAnswer};
use crate::rank::{AnswerRank, Rank};
use crate::strata::Strata;

/// Metrics of one relation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationMetrics {
    /// Name of the relation.
    pub relation: String,
    /// Share of its answers that a walk reached.
    pub coverage: f64,
    /// Metrics of its ranks.
    #[serde(flatten)]
    pub metrics: TieMetrics,
}

/// A 95 % confidence interval for the metrics of the whole test set, from a sample of its triples.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// 0.95.
    pub level: f64,
    /// Triples in the sample.
    pub triples: usize,
    /// Triples in the test set.
    pub of: usize,
    /// Half the width of the interval of each metric, published tie rule.
    pub mrr: f64,
    /// As `mrr`.
    pub hits1: f64,
    /// As `mrr`.
    pub hits3: f64,
    /// As `mrr`.
    pub hits10: f64,
}

/// All metrics of one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankSummary {
    /// Metrics of all ranks.
    #[serde(flatten)]
    pub all: TieMetrics,
    /// Share of answers that a walk of some pass reached.
    pub coverage: f64,
    /// Metrics of the answers that a walk reached.
    pub reached: TieMetrics,
    /// Metrics by side: heads, tails or relations.
    pub sides: BTreeMap<AskedSide, TieMetrics>,
    /// Relation task only: metrics with known relations left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filtered: Option<TieMetrics>,
    /// Metrics by relation, the most frequent first.
    pub relations: Vec<RelationMetrics>,
    /// The interval, if the triples are a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Metrics by kind of question; older results have none.
    #[serde(default)]
    pub strata: Strata,
}

/// Metrics over seeds, under the published tie rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedSummary {
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The mean of each metric.
    pub mean: RankMetrics,
    /// The standard deviation of each metric, with n − 1; 0 for one seed.
    pub deviation: RankMetrics,
}

impl RankSummary {
    /// Summarises the ranks of `answers`. `name` gives the name of a relation. `total` is the
    /// number of triples in the test set, of which the answers may be a sample.
    pub fn new(
        answers: &[TestAnswer],
        ranks: &[AnswerRank],
        total: usize,
        name: impl Fn(u32) -> String,
    ) -> RankSummary {
        // In the order of triples, so that sums do not depend on how queries were grouped.
        let mut rows: Vec<(&TestAnswer, &AnswerRank)> = answers.iter().zip(ranks).collect();
        rows.sort_by_key(|(answer, _)| (answer.triple, answer.side != AskedSide::Tail));
        let metrics = |keep: &dyn Fn(&TestAnswer, &AnswerRank) -> bool| {
            let kept: Vec<Rank> = rows.iter().filter(|(i, p)| keep(i, p)).map(|(_, p)| p.rank).collect();
            TieMetrics::new(kept.into_iter())
        };
        let share = |reached: usize, of: usize| if of == 0 { 0.0 } else { reached as f64 / of as f64 };
        let reached = metrics(&|_, p| p.reached);
        let mut sides: BTreeMap<AskedSide, TieMetrics> = BTreeMap::new();
        for (answer, _) in &rows {
            sides.entry(answer.side).or_insert_with(|| metrics(&|i, _| i.side == answer.side));
        }
        let mut by_relation: BTreeMap<u32, Vec<&AnswerRank>> = BTreeMap::new();
        rows.iter().for_each(|(i, p)| by_relation.entry(i.relation).or_default().push(p));
        let mut relations: Vec<RelationMetrics> = by_relation
            .into_iter()
            .map(|(relation, ranks)| RelationMetrics {
                relation: name(relation),
                coverage: share(ranks.iter().filter(|p| p.reached).count(), ranks.len()),
                metrics: TieMetrics::new(ranks.iter().map(|p| p.rank)),
            })
            .collect();
        relations.sort_by(|a, b| b.metrics.queries.cmp(&a.metrics.queries).then_with(|| a.relation.cmp(&b.relation)));
        let is_relation = rows.first().is_some_and(|(answer, _)| answer.side == AskedSide::Relation);
        RankSummary {
            all: metrics(&|_, _| true),
            coverage: share(reached.queries, rows.len()),
            reached,
            sides,
            filtered: is_relation.then(|| TieMetrics::new(rows.iter().map(|(_, p)| p.filtered))),
            relations,
            interval: interval(&rows, total),
            strata: Strata::default(),
        }
    }
}

/// Triples were drawn without replacement, both sides of each together, so a triple's mean over its
/// sides is one draw: mean ± 1.96 · s / √k · √(1 − k/K).
fn interval(rows: &[(&TestAnswer, &AnswerRank)], total: usize) -> Option<Interval> {
    let mut triples: Vec<RankMetrics> = Vec::new();
    for group in rows.chunk_by(|a, b| a.0.triple == b.0.triple) {
        triples.push(RankMetrics::new(group.iter().map(|(_, p)| p.rank.pessimistic())));
    }
    let count = triples.len();
    if count >= total || count < 2 {
        return None;
    }
    let half = |f: fn(&RankMetrics) -> f64| {
        let mean = triples.iter().map(f).sum::<f64>() / count as f64;
        let variance = triples.iter().map(|m| (f(m) - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
        1.96 * (variance / count as f64 * (1.0 - count as f64 / total as f64)).sqrt()
    };
    Some(Interval {
        level: 0.95,
        triples: count,
        of: total,
        mrr: half(|m| m.mrr),
        hits1: half(|m| m.hits1),
        hits3: half(|m| m.hits3),
        hits10: half(|m| m.hits10),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_sides_relations_and_reached_by_hand() {
        let answer = |triple, side, relation| TestAnswer { answer: 0, side, relation, triple };
        let ranks = |higher, reached| {
            let rank = Rank { higher, ties: 0 };
            AnswerRank { rank, filtered: rank, reached, score: 0.0, rivals: 9 }
        };
        let answers = [
            answer(1, AskedSide::Tail, 7),
            answer(0, AskedSide::Tail, 5),
            answer(0, AskedSide::Head, 5),
            answer(1, AskedSide::Head, 7),
        ];
        let ranks = [ranks(0, true), ranks(1, true), ranks(3, false), ranks(0, true)];
        let summary = RankSummary::new(&answers, &ranks, 4, |r| format!("r{r}"));
        // Ranks: triple 0: tail 2, head 4 (not reached); triple 1: tail 1, head 1.
        assert_eq!((summary.all.queries, summary.coverage, summary.reached.queries), (4, 0.75, 3));
        assert!((summary.all.pessimistic.mrr - 2.75 / 4.0).abs() < 1e-15);
        assert!((summary.reached.pessimistic.mrr - 2.5 / 3.0).abs() < 1e-15);
        assert_eq!(summary.sides[&AskedSide::Head].pessimistic.mrr, 0.625);
        assert_eq!(summary.sides[&AskedSide::Tail].pessimistic.mrr, 0.75);
        let of: Vec<_> =
            summary.relations.iter().map(|r| (&*r.relation, r.metrics.pessimistic.mrr, r.coverage)).collect();
        assert_eq!(of, [("r5", 0.375, 0.5), ("r7", 1.0, 1.0)]);
        assert_eq!(summary.filtered, None);
        // Two of four triples with MRR 0.375 and 1: deviation² = 0.3125² · 2, times (1/2) · (1 −
        // 1/2).
        let half = 1.96 * (2.0 * 0.3125f64.powi(2) / 2.0 * 0.5).sqrt();
        let interval = summary.interval.unwrap();
        assert!((interval.mrr - half).abs() < 1e-15 && (interval.triples, interval.of) == (2, 4));
        assert_eq!(RankSummary::new(&answers, &ranks, 2, |r| r.to_string()).interval, None);
    }
}
