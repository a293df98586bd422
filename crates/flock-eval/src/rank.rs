//! The rank of an answer among its rivals: the one definition, for evaluation and for validation in
//! training.
//!
//! Rivals are the candidates that are not known to be true, except the answer itself. Candidates
//! that no walk reached share one score. They are counted, not listed, so no loop here is as long
//! as the graph.

use flock_model::ensemble::NotFinite;
use flock_model::ensemble::Scores;

/// Counts the rivals that score higher than the answer, and those that score the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Rivals with a higher score.
    pub higher: u32,
    /// Rivals with the same score.
    pub ties: u32,
}

impl Rank {
    /// Counts every tie against the answer: `1 + #{s ≥ s_true}`, the published rule.
    pub fn pessimistic(self) -> f64 {
        f64::from(self.higher) + f64::from(self.ties) + 1.0
    }

    /// Takes the mean of the best and the worst rank.
    pub fn realistic(self) -> f64 {
        f64::from(self.higher) + f64::from(self.ties) / 2.0 + 1.0
    }

    /// Counts no tie against the answer.
    pub fn optimistic(self) -> f64 {
        f64::from(self.higher) + 1.0
    }
}

/// The rank of an answer, and what it was ranked by.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AnswerRank {
    /// Under the published protocol: filtered for entities, unfiltered for relations.
    pub rank: Rank,
    /// The filtered rank. For entities it is the same as `rank`.
    pub filtered: Rank,
    /// Whether a walk of some pass reached the answer.
    pub reached: bool,
    /// The answer's mean logit.
    pub score: f64,
    /// Number of candidates that it was ranked among under the published protocol, itself not
    /// counted.
    pub rivals: u32,
}

/// Ranks several true answers of one query among the candidates `0..candidates`. `known`, in
/// ascending order, are those known to be true.
pub fn ranks(
    scores: &Scores,
    known: &[u32],
    candidates: u32,
    answers: impl IntoIterator<Item = u32>,
) -> Result<Vec<Rank>, NotFinite> {
    let shared = scores.unreached.logit;
    if !(shared.is_finite() && scores.reached.iter().all(|(_, s)| s.logit.is_finite())) {
        return Err(NotFinite);
    }
    // Both lists ascend, so one pass over the two leaves out the known ones.
    let mut left = known.iter().copied().peekable();
    let mut rivals = Vec::with_capacity(scores.reached.len());
    for (id, score) in &scores.reached {
        while left.next_if(|k| k < id).is_some() {}
        if left.peek() != Some(id) {
            rivals.push(score.logit);
        }
    }
    let unreached = (candidates as usize).saturating_sub(known.len() + rivals.len()) as u32;
    let rank = |answer: u32| {
        let own = scores.of(answer).logit;
        let mut rank = Rank { higher: 0, ties: 0 };
        for logit in &rivals {
            rank.higher += u32::from(*logit > own);
            rank.ties += u32::from(*logit == own);
        }
        if shared > own {
            rank.higher += unreached;
        } else if shared == own {
            rank.ties += unreached;
        }
        // An answer that is not known was counted as its own rival, with the same score.
        rank.ties -= u32::from(known.binary_search(&answer).is_err());
        rank
    };
    Ok(answers.into_iter().map(rank).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flock_model::ensemble::Score;
    use flock_model::update::Stages;
    use flock_walk::Key;

    fn score(logit: f64) -> Score {
        Score { logit, spread: 0.0, visits: 0 }
    }

    #[test]
    fn ranks_by_hand() {
        // Entities 0..6, known 1, 2, 3. Reached: 1 at 5, 3 at 2, 4 at 2, 5 at −1; all others at 0.
        let reached = vec![(1, score(5.0)), (3, score(2.0)), (4, score(2.0)), (5, score(-1.0))];
        let scores = Scores { reached, unreached: score(0.0), stages: Stages::default() };
        let got = ranks(&scores, &[1, 2, 3], 7, [3, 1, 2, 5]).unwrap();
        let want = [(0, 1), (0, 0), (1, 2), (3, 0)];
        // 3: rivals 0, 4, 5, 6, and 4 ties with it. 1: nothing is above. 2, unreached: 4 is above,
        // 0 and 6 tie. 5 is not known: 4, 0 and 6 are above it, and it is not its own rival.
        assert_eq!(got, want.map(|(higher, ties)| Rank { higher, ties }));
        let rank = Rank { higher: 1, ties: 2 };
        assert_eq!((rank.pessimistic(), rank.realistic(), rank.optimistic()), (4.0, 3.0, 2.0));
        // Unfiltered: 1 is above 3, and 4 ties with it.
        assert_eq!(ranks(&scores, &[], 7, [3]).unwrap(), [Rank { higher: 1, ties: 1 }]);
        let bad = Scores { reached: vec![(0, score(f64::NAN))], unreached: score(0.0), stages: Stages::default() };
        assert!(ranks(&bad, &[], 2, [1]).is_err());
    }

    #[test]
    fn ranks_as_an_explicit_list_does() {
        let mut stream = Key { seed: 4, pass: 0, update: 0, query: 0 }.stream(0);
        for _ in 0..2000 {
            let nodes = 1 + stream.below(10) as u32;
            let mut draw = |one_in: u64| (0..nodes).filter(|_| stream.below(one_in) == 0).collect::<Vec<u32>>();
            let (known, drawn) = (draw(3), draw(2));
            // Few distinct logits, so that ties are common.
            let reached: Vec<(u32, Score)> = drawn.into_iter().map(|v| (v, score(stream.below(4) as f64))).collect();
            let scores = Scores { reached, unreached: score(1.0), stages: Stages::default() };
            for (answer, rank) in (0..nodes).zip(ranks(&scores, &known, nodes, 0..nodes).unwrap()) {
                let own = scores.of(answer).logit;
                let rivals = || (0..nodes).filter(|v| *v != answer && !known.contains(v)).map(|v| scores.of(v).logit);
                let (higher, least) = (rivals().filter(|s| *s > own).count(), rivals().filter(|s| *s >= own).count());
                assert_eq!((rank.optimistic(), rank.pessimistic()), (1.0 + higher as f64, 1.0 + least as f64));
            }
        }
    }
}
