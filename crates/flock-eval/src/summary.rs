//! Everything that is counted on one dataset: all ranks, by side, by relation, by kind of question, and how sure a sample is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::{Metrics, Tally};
use crate::questions::{Item, Side};
use crate::rank::{Placed, Rank};
use crate::strata::Strata;

/// A relation's own numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfRelation {
    /// Name of the relation.
    pub relation: String,
    /// Share of its answers that a walk reached.
    pub coverage: f64,
    /// Its ranks.
    #[serde(flatten)]
    pub tally: Tally,
}

/// A 95 % confidence interval of what the whole test set would give, from a sample of its triples.
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

/// Everything that is counted on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// All ranks.
    #[serde(flatten)]
    pub all: Tally,
    /// Share of answers that a walk of some pass reached.
    pub coverage: f64,
    /// Only answers that were reached.
    pub reached: Tally,
    /// Heads, tails or relations.
    pub sides: BTreeMap<Side, Tally>,
    /// Relation task: the same with known relations left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filtered: Option<Tally>,
    /// By relation, the most frequent first.
    pub relations: Vec<OfRelation>,
    /// How sure a sample is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// By kind of question; older results have none.
    #[serde(default)]
    pub strata: Strata,
}

impl Counted {
    /// Counts. `name` gives a relation's name; `total` is the number of triples in the test set, which the items may be a sample of.
    pub fn new(items: &[Item], placed: &[Placed], total: usize, name: impl Fn(u32) -> String) -> Counted {
        // In the order of triples: sums do not depend on how queries were grouped.
        let mut rows: Vec<(&Item, &Placed)> = items.iter().zip(placed).collect();
        rows.sort_by_key(|(item, _)| (item.triple, item.side != Side::Tail));
        let tally = |keep: &dyn Fn(&Item, &Placed) -> bool| {
            let kept: Vec<Rank> = rows.iter().filter(|(i, p)| keep(i, p)).map(|(_, p)| p.rank).collect();
            Tally::new(kept.into_iter())
        };
        let share = |reached: usize, of: usize| if of == 0 { 0.0 } else { reached as f64 / of as f64 };
        let reached = tally(&|_, p| p.reached);
        let mut sides: BTreeMap<Side, Tally> = BTreeMap::new();
        for (item, _) in &rows {
            sides.entry(item.side).or_insert_with(|| tally(&|i, _| i.side == item.side));
        }
        let mut by_relation: BTreeMap<u32, Vec<&Placed>> = BTreeMap::new();
        rows.iter().for_each(|(i, p)| by_relation.entry(i.relation).or_default().push(p));
        let mut relations: Vec<OfRelation> = by_relation
            .into_iter()
            .map(|(relation, placed)| OfRelation {
                relation: name(relation),
                coverage: share(placed.iter().filter(|p| p.reached).count(), placed.len()),
                tally: Tally::new(placed.iter().map(|p| p.rank)),
            })
            .collect();
        relations.sort_by(|a, b| b.tally.queries.cmp(&a.tally.queries).then_with(|| a.relation.cmp(&b.relation)));
        let is_relation = rows.first().is_some_and(|(item, _)| item.side == Side::Relation);
        Counted {
            all: tally(&|_, _| true),
            coverage: share(reached.queries, rows.len()),
            reached,
            sides,
            filtered: is_relation.then(|| Tally::new(rows.iter().map(|(_, p)| p.filtered))),
            relations,
            interval: interval(&rows, total),
            strata: Strata::default(),
        }
    }
}

/// Triples were drawn without replacement, both sides of each together, so a triple's mean over its sides is one draw:
/// mean ± 1.96 · s / √k · √(1 − k/K).
fn interval(rows: &[(&Item, &Placed)], total: usize) -> Option<Interval> {
    let mut triples: Vec<Metrics> = Vec::new();
    for group in rows.chunk_by(|a, b| a.0.triple == b.0.triple) {
        triples.push(Metrics::new(group.iter().map(|(_, p)| p.rank.pessimistic())));
    }
    let count = triples.len();
    if count >= total || count < 2 {
        return None;
    }
    let half = |f: fn(&Metrics) -> f64| {
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
        let item = |triple, side, relation| Item { answer: 0, side, relation, triple };
        let placed = |higher, reached| {
            let rank = Rank { higher, ties: 0 };
            Placed { rank, filtered: rank, reached, score: 0.0, rivals: 9 }
        };
        let items = [item(1, Side::Tail, 7), item(0, Side::Tail, 5), item(0, Side::Head, 5), item(1, Side::Head, 7)];
        let ranks = [placed(0, true), placed(1, true), placed(3, false), placed(0, true)];
        let counted = Counted::new(&items, &ranks, 4, |r| format!("r{r}"));
        // Ranks: triple 0: tail 2, head 4 (not reached); triple 1: tail 1, head 1.
        assert_eq!((counted.all.queries, counted.coverage, counted.reached.queries), (4, 0.75, 3));
        assert!((counted.all.pessimistic.mrr - 2.75 / 4.0).abs() < 1e-15);
        assert!((counted.reached.pessimistic.mrr - 2.5 / 3.0).abs() < 1e-15);
        assert_eq!(counted.sides[&Side::Head].pessimistic.mrr, 0.625);
        assert_eq!(counted.sides[&Side::Tail].pessimistic.mrr, 0.75);
        let of: Vec<_> =
            counted.relations.iter().map(|r| (&*r.relation, r.tally.pessimistic.mrr, r.coverage)).collect();
        assert_eq!(of, [("r5", 0.375, 0.5), ("r7", 1.0, 1.0)]);
        assert_eq!(counted.filtered, None);
        // Two of four triples with MRR 0.375 and 1: deviation² = 0.3125² · 2, times (1/2) · (1 − 1/2).
        let half = 1.96 * (2.0 * 0.3125f64.powi(2) / 2.0 * 0.5).sqrt();
        let interval = counted.interval.unwrap();
        assert!((interval.mrr - half).abs() < 1e-15 && (interval.triples, interval.of) == (2, 4));
        assert_eq!(Counted::new(&items, &ranks, 2, |r| r.to_string()).interval, None);
    }
}
