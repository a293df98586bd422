//! The scores of one question as a column in which any candidate has its place: rank, percentile, share of the odds.

use flock_model::ensemble::{NotFinite, Scores};
use serde::{Deserialize, Serialize};

use crate::ranking::{Listing, Ranking};

/// What one question says about a link.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideScore {
    /// The logit of the link's other end.
    pub logit: f64,
    /// Its rank among all candidates that the graph does not have.
    pub rank: u32,
    /// How many candidates there are.
    pub candidates: u32,
    /// The logarithm of its share of all odds: the logit less the logarithm of the sum of e^logit over all candidates.
    pub log_share: f64,
}

/// Where a triple stands among its alternatives on one side.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Standing {
    /// Mean logit over the passes.
    pub logit: f64,
    /// 1 + the number of alternatives with a strictly higher logit.
    pub rank: u32,
    /// How many there are, itself among them.
    pub candidates: u32,
    /// The share of the others that score lower, in percent; those that score the same count half.
    pub percentile: f64,
    /// Whether a walk reached it. All that no walk reached have the same logit.
    pub reached: bool,
}

/// The scores of one question, ready to place any candidate.
pub struct Column {
    scores: Scores,
    ranking: Ranking,
    log_sum: f64,
}

impl Column {
    /// Ranks the candidates that are not `known` (ascending) to be true.
    pub fn new(scores: Scores, candidates: u32, known: &[u32]) -> Result<Column, NotFinite> {
        let listing = Listing { top: 0, only_new: true, among: None };
        let ranking = Ranking::new(&scores, candidates, known, &listing)?;
        let shared = scores.unreached.logit;
        let highest = ranking.answers.first().map_or(shared, |a| a.score.logit.max(shared));
        let odds = |logit: f64| (logit - highest).exp();
        let sum: f64 = ranking.answers.iter().map(|a| odds(a.score.logit)).sum();
        let log_sum = highest + (sum + f64::from(ranking.unreached.count) * odds(shared)).ln();
        Ok(Column { scores, ranking, log_sum })
    }

    /// What the question says about a candidate.
    pub fn side(&self, id: u32) -> SideScore {
        let logit = self.scores.of(id).logit;
        let higher = self.ranking.answers.partition_point(|a| a.score.logit > logit) as u32;
        let unreached = &self.ranking.unreached;
        let before = if unreached.logit > logit { unreached.count } else { 0 };
        SideScore {
            logit,
            rank: 1 + higher + before,
            candidates: self.ranking.candidates,
            log_share: logit - self.log_sum,
        }
    }

    /// Where a candidate stands. It must not be one of those known to be true.
    pub fn standing(&self, id: u32) -> Standing {
        let SideScore { logit, rank, candidates, .. } = self.side(id);
        let listed = &self.ranking.answers;
        let equal =
            listed.partition_point(|a| a.score.logit >= logit) - listed.partition_point(|a| a.score.logit > logit);
        let unreached = &self.ranking.unreached;
        let equal = equal as u32 + if unreached.logit == logit { unreached.count } else { 0 };
        let lower = candidates + 1 - rank - equal;
        let others = f64::from(candidates.saturating_sub(1).max(1));
        let percentile = 100.0 * (f64::from(lower) + f64::from(equal.saturating_sub(1)) / 2.0) / others;
        let reached = self.scores.reached.binary_search_by_key(&id, |r| r.0).is_ok();
        Standing { logit, rank, candidates, percentile, reached }
    }

    /// The candidates that were reached, the best first.
    pub fn best(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranking.answers.iter().map(|a| a.id)
    }
}
