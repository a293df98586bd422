//! MRR, Hits@k and mean rank, under three rules for ties.

use serde::{Deserialize, Serialize};

use crate::rank::Rank;

/// Metrics of a list of ranks under one tie rule. All are 0 for an empty list.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankMetrics {
    /// Mean reciprocal rank.
    pub mrr: f64,
    /// Share of ranks that are 1.
    pub hits1: f64,
    /// Share of ranks up to 3.
    pub hits3: f64,
    /// Share of ranks up to 10.
    pub hits10: f64,
    /// Mean of the ranks.
    pub mean_rank: f64,
}

impl RankMetrics {
    /// Computes the metrics of some ranks, summed in this order.
    pub fn new(ranks: impl IntoIterator<Item = f64>) -> RankMetrics {
        let (mut sum, mut count) = (RankMetrics::default(), 0.0);
        for rank in ranks {
            count += 1.0;
            sum.mrr += 1.0 / rank;
            sum.hits1 += f64::from(u8::from(rank <= 1.0));
            sum.hits3 += f64::from(u8::from(rank <= 3.0));
            sum.hits10 += f64::from(u8::from(rank <= 10.0));
            sum.mean_rank += rank;
        }
        sum.map(|x| if count > 0.0 { x / count } else { 0.0 })
    }

    /// Averages several, each with the same weight, as the paper averages over datasets.
    pub fn mean(all: &[RankMetrics]) -> RankMetrics {
        let mut sum = RankMetrics::default();
        for m in all {
            sum = RankMetrics {
                mrr: sum.mrr + m.mrr,
                hits1: sum.hits1 + m.hits1,
                hits3: sum.hits3 + m.hits3,
                hits10: sum.hits10 + m.hits10,
                mean_rank: sum.mean_rank + m.mean_rank,
            };
        }
        sum.map(|x| x / all.len().max(1) as f64)
    }

    /// Computes the standard deviation of each metric, with n − 1; 0 for one or none.
    pub fn deviation(all: &[RankMetrics]) -> RankMetrics {
        let mean = RankMetrics::mean(all);
        let square = |x: f64, mean: f64| (x - mean) * (x - mean);
        let squares: Vec<RankMetrics> = all
            .iter()
            .map(|m| RankMetrics {
                mrr: square(m.mrr, mean.mrr),
                hits1: square(m.hits1, mean.hits1),
                hits3: square(m.hits3, mean.hits3),
                hits10: square(m.hits10, mean.hits10),
                mean_rank: square(m.mean_rank, mean.mean_rank),
            })
            .collect();
        let (count, below) = (all.len() as f64, all.len().saturating_sub(1).max(1) as f64);
        RankMetrics::mean(&squares).map(|x| (x * count / below).sqrt())
    }

    fn map(self, f: impl Fn(f64) -> f64) -> RankMetrics {
        RankMetrics {
            mrr: f(self.mrr),
            hits1: f(self.hits1),
            hits3: f(self.hits3),
            hits10: f(self.hits10),
            mean_rank: f(self.mean_rank),
        }
    }
}

/// A metric by name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Mean reciprocal rank.
    Mrr,
    /// Share of ranks that are 1.
    Hits1,
    /// Share of ranks up to 3.
    Hits3,
    /// Share of ranks up to 10.
    Hits10,
}

impl Metric {
    /// Parses the name that files use: `mrr`, `hits1`, `hits3` or `hits10`.
    pub fn parse(name: &str) -> Option<Metric> {
        Some(match name {
            "mrr" => Metric::Mrr,
            "hits1" => Metric::Hits1,
            "hits3" => Metric::Hits3,
            "hits10" => Metric::Hits10,
            _ => return None,
        })
    }

    /// Returns the name that tables use, such as `Hits@10`.
    pub fn title(self) -> &'static str {
        match self {
            Metric::Mrr => "MRR",
            Metric::Hits1 => "Hits@1",
            Metric::Hits3 => "Hits@3",
            Metric::Hits10 => "Hits@10",
        }
    }

    /// Picks the metric's value.
    pub fn of(self, metrics: &RankMetrics) -> f64 {
        match self {
            Metric::Mrr => metrics.mrr,
            Metric::Hits1 => metrics.hits1,
            Metric::Hits3 => metrics.hits3,
            Metric::Hits10 => metrics.hits10,
        }
    }
}

/// Metrics of the same ranks under the three tie rules. The published rule is *pessimistic*.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TieMetrics {
    /// Number of ranks.
    pub queries: usize,
    /// Ties count against the answer.
    #[serde(flatten)]
    pub pessimistic: RankMetrics,
    /// The mean of best and worst rank.
    pub realistic: RankMetrics,
    /// Ties count for the answer.
    pub optimistic: RankMetrics,
}

impl TieMetrics {
    /// Computes the metrics of some ranks, summed in this order.
    pub fn new(ranks: impl Iterator<Item = Rank> + Clone) -> TieMetrics {
        TieMetrics {
            queries: ranks.clone().count(),
            pessimistic: RankMetrics::new(ranks.clone().map(Rank::pessimistic)),
            realistic: RankMetrics::new(ranks.clone().map(Rank::realistic)),
            optimistic: RankMetrics::new(ranks.map(Rank::optimistic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_by_hand() {
        let m = RankMetrics::new([1.0, 2.0, 4.0, 20.0]);
        // (1 + 1/2 + 1/4 + 1/20) / 4 = 0.45; one is 1, two are up to 3, three up to 10; 27 / 4.
        assert!((m.mrr - 0.45).abs() < 1e-15);
        assert_eq!((m.hits1, m.hits3, m.hits10, m.mean_rank), (0.25, 0.5, 0.75, 6.75));
        assert_eq!(RankMetrics::new([]), RankMetrics::default());
        let mean = RankMetrics::mean(&[m, RankMetrics::new([1.0])]);
        // A dataset counts once, whatever its size.
        assert!((mean.mrr - 0.725).abs() < 1e-15 && mean.hits3 == 0.75 && mean.mean_rank == 3.875);
        let ties = TieMetrics::new([Rank { higher: 0, ties: 2 }, Rank { higher: 3, ties: 0 }].into_iter());
        // Pessimistic 3 and 4, realistic 2 and 4, optimistic 1 and 4.
        assert!((ties.pessimistic.mrr - (1.0 / 3.0 + 0.25) / 2.0).abs() < 1e-15);
        assert_eq!((ties.realistic.mrr, ties.optimistic.mrr, ties.queries), (0.375, 0.625, 2));
        assert_eq!((ties.pessimistic.hits1, ties.optimistic.hits1, ties.realistic.hits3), (0.0, 0.5, 0.5));
    }
}
