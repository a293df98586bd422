//! From scores to ranks.
//!
//! **Candidates** are all entities (or all raw relations), the query's own entity among them, as in the published
//! protocol; or the ids of [`Listing::among`]. With [`Listing::only_new`] the known answers are no candidates.
//!
//! **Rank** = 1 + the number of candidates with a strictly higher logit. Candidates of equal logit share the best rank.
//! Candidates that no walk reached share one logit, and so one rank; they count in the ranks of all others.
//!
//! The list has the candidates that were reached, or every id of `among`. Those not reached are counted, never
//! enumerated: the cost is that of the reached, whatever the size of the graph.

use flock_model::ensemble::{NotFinite, Score, Scores};
use serde::Serialize;

/// Which candidates count, and how many are listed.
#[derive(Copy, Clone, Debug, Default)]
pub struct Listing<'a> {
    /// At most so many answers are listed; 0 = all that were reached (or all of `among`).
    pub top: usize,
    /// Leaves the known answers out.
    pub only_new: bool,
    /// The only candidates: distinct ids.
    pub among: Option<&'a [u32]>,
}

/// One candidate in its place.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RankedCandidate {
    /// 1 + the number of candidates with a strictly higher logit.
    pub rank: u32,
    /// The entity or raw relation.
    pub id: u32,
    /// Its score.
    pub score: Score,
    /// Whether a walk of some pass reached it.
    pub reached: bool,
    /// Whether the graph already has it.
    pub known: bool,
}

/// The candidates that no walk reached: all have the same score.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreachedCandidates {
    /// How many there are.
    pub count: u32,
    /// The logit they share.
    pub logit: f64,
    /// What the reply's `probability_from` makes of that logit: σ of it, or a calibrated probability.
    pub probability: f64,
    /// The rank they share.
    pub rank: u32,
}

/// A ranked list.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// By descending logit; equal ones by ascending id.
    pub answers: Vec<RankedCandidate>,
    /// How many candidates there are, listed or not.
    pub candidates: u32,
    /// Those that no walk reached.
    pub unreached: UnreachedCandidates,
}

impl Ranking {
    /// Ranks `num_candidates` candidates, `known` of them (ascending) known to be true.
    pub fn new(
        scores: &Scores,
        num_candidates: u32,
        known: &[u32],
        listing: &Listing<'_>,
    ) -> Result<Ranking, NotFinite> {
        let finite = |s: &Score| s.logit.is_finite() && s.spread.is_finite();
        if !(finite(&scores.unreached) && scores.reached.iter().all(|(_, s)| finite(s))) {
            return Err(NotFinite);
        }
        let find = |id: u32| scores.reached.binary_search_by_key(&id, |r| r.0).ok().map(|i| scores.reached[i].1);
        let candidate = |id: u32, found: Option<Score>| {
            let (reached, score) = (found.is_some(), found.unwrap_or(scores.unreached));
            RankedCandidate { rank: 0, id, score, reached, known: known.binary_search(&id).is_ok() }
        };
        let mut answers: Vec<RankedCandidate> = match listing.among {
            Some(among) => among.iter().map(|&id| candidate(id, find(id))).collect(),
            None => scores.reached.iter().map(|&(id, score)| candidate(id, Some(score))).collect(),
        };
        if listing.only_new {
            answers.retain(|a| !a.known);
        }
        let reached = answers.iter().filter(|a| a.reached).count() as u32;
        // What is a candidate but not in `answers`: counted here, and nowhere else.
        let (candidates, unlisted) = match listing.among {
            Some(_) => (answers.len() as u32, 0),
            None => {
                let candidates = num_candidates - if listing.only_new { known.len() as u32 } else { 0 };
                (candidates, candidates - reached)
            }
        };
        let shared = scores.unreached.logit;
        let higher = answers.iter().filter(|a| a.score.logit > shared).count() as u32;
        let unreached = UnreachedCandidates {
            count: candidates - reached,
            logit: shared,
            probability: scores.unreached.probability(),
            rank: 1 + higher,
        };

        let order =
            |a: &RankedCandidate, b: &RankedCandidate| b.score.logit.total_cmp(&a.score.logit).then(a.id.cmp(&b.id));
        if listing.top > 0 && listing.top < answers.len() {
            answers.select_nth_unstable_by(listing.top, order);
            answers.truncate(listing.top);
        }
        answers.sort_unstable_by(order);
        for i in 0..answers.len() {
            let logit = answers[i].score.logit;
            answers[i].rank = match i.checked_sub(1).map(|before| answers[before]) {
                Some(before) if before.score.logit == logit => before.rank,
                _ => 1 + i as u32 + if shared > logit { unlisted } else { 0 },
            };
        }
        Ok(Ranking { answers, candidates, unreached })
    }

    /// The share of candidates that a walk of some pass reached; 0 if there are no candidates.
    pub fn coverage(&self) -> f64 {
        f64::from(self.candidates - self.unreached.count) / f64::from(self.candidates.max(1))
    }
}
