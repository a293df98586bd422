//! Ranks by arithmetic against ranks by brute force over every candidate, on random scores full of ties.

use flock_kg::model::ensemble::NotFinite;
use flock_kg::model::ensemble::{Score, Scores};
use flock_kg::model::update::Stages;
use flock_kg::ranking::{Listing, Ranking};
use flock_kg::walk::{Key, Stream};

fn score(logit: f64) -> Score {
    Score { logit, spread: 0.25, visits: 3 }
}

fn scores(reached: &[(u32, f64)], unreached: f64) -> Scores {
    let reached = reached.iter().map(|&(id, logit)| (id, score(logit))).collect();
    Scores { reached, unreached: Score { logit: unreached, spread: 0.25, visits: 0 }, stages: Stages::default() }
}

/// Rank, id, logit, reached, known.
type Row = (u32, u32, f64, bool, bool);

/// A row for every candidate, each found by comparing it with all others; and the number of
/// candidates.
fn brute_force(scores: &Scores, num_candidates: u32, known: &[u32], listing: &Listing<'_>) -> (Vec<Row>, u32) {
    let is_candidate =
        |id: &u32| listing.among.is_none_or(|a| a.contains(id)) && !(listing.only_new && known.contains(id));
    let candidates: Vec<u32> = (0..num_candidates).filter(is_candidate).collect();
    let logit = |id: u32| scores.of(id).logit;
    let mut all: Vec<_> = candidates
        .iter()
        .map(|&id| {
            let rank = 1 + candidates.iter().filter(|&&other| logit(other) > logit(id)).count() as u32;
            let reached = scores.reached.iter().any(|r| r.0 == id);
            (rank, id, logit(id), reached, known.contains(&id))
        })
        .collect();
    all.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.1.cmp(&b.1)));
    (all, candidates.len() as u32)
}

fn subset(stream: &mut Stream, count: u32, out_of_eight: u64) -> Vec<u32> {
    (0..count).filter(|_| stream.draw() >> 61 < out_of_eight).collect()
}

#[test]
fn equals_brute_force() {
    let mut stream = Key { seed: 1, pass: 0, update: 0, query: 0 }.stream(0);
    for case in 0..4000 {
        let count = 1 + (stream.draw() >> 60) as u32 + (stream.draw() >> 60) as u32;
        // Logits from five values, the shared one among them: ties everywhere.
        let value = |stream: &mut Stream| (stream.draw() % 5) as f64 - 2.0;
        let share = case % 9;
        let reached: Vec<(u32, f64)> =
            subset(&mut stream, count, share).into_iter().map(|id| (id, value(&mut stream))).collect();
        let unreached = value(&mut stream);
        let scores = scores(&reached, unreached);
        let known = subset(&mut stream, count, 2);
        let among = subset(&mut stream, count, 4);
        for novel in [false, true] {
            for among in [None, Some(&among[..])] {
                for top in [0, 1, 3, 100] {
                    let listing = Listing { top, only_new: novel, among };
                    let ranking = Ranking::new(&scores, count, &known, &listing).unwrap();
                    let (all, candidates) = brute_force(&scores, count, &known, &listing);
                    let listed = all.iter().filter(|a| among.is_some() || a.3).copied();
                    let want: Vec<_> = listed.take(if top == 0 { usize::MAX } else { top }).collect();
                    let got: Vec<_> =
                        ranking.answers.iter().map(|a| (a.rank, a.id, a.score.logit, a.reached, a.known)).collect();
                    assert_eq!(got, want, "case {case}, {listing:?}");
                    assert_eq!(ranking.candidates, candidates);
                    let left: Vec<_> = all.iter().filter(|a| !a.3).collect();
                    assert_eq!(ranking.unreached.count, left.len() as u32, "case {case}, {listing:?}");
                    assert_eq!(ranking.unreached.logit, unreached);
                    for one in &left {
                        assert_eq!(ranking.unreached.rank, one.0, "case {case}, {listing:?}");
                    }
                    let coverage = (candidates - left.len() as u32) as f64 / f64::from(candidates.max(1));
                    assert_eq!(ranking.coverage(), coverage);
                }
            }
        }
    }
}

#[test]
fn ranks_jump_over_the_unreached() {
    // Ten candidates; 2, 5, 7 reached with +1, −1, −1; the other seven share 0: ranks 1, then 2 (the seven), then 9, 9.
    let scores = scores(&[(2, 1.0), (5, -1.0), (7, -1.0)], 0.0);
    let ranking = Ranking::new(&scores, 10, &[5], &Listing::default()).unwrap();
    let ranks: Vec<_> = ranking.answers.iter().map(|a| (a.rank, a.id, a.known)).collect();
    assert_eq!(ranks, [(1, 2, false), (9, 5, true), (9, 7, false)]);
    assert_eq!((ranking.unreached.count, ranking.unreached.rank), (7, 2));
    assert_eq!(ranking.unreached.probability, 0.5);
    assert_eq!(ranking.coverage(), 0.3);

    // Without the known 5 there are nine candidates, and 7 keeps rank 9 (1 + one reached + seven unreached).
    let novel = Listing { only_new: true, ..Listing::default() };
    let ranking = Ranking::new(&scores, 10, &[5], &novel).unwrap();
    assert_eq!(ranking.answers.iter().map(|a| (a.rank, a.id)).collect::<Vec<_>>(), [(1, 2), (9, 7)]);
    assert_eq!(ranking.candidates, 9);
}

#[test]
fn refuses_scores_that_are_no_numbers() {
    for bad in [f64::NAN, f64::INFINITY] {
        let listing = Listing::default();
        assert_eq!(Ranking::new(&scores(&[(0, bad)], 0.0), 3, &[], &listing), Err(NotFinite));
        assert_eq!(Ranking::new(&scores(&[(0, 1.0)], bad), 3, &[], &listing), Err(NotFinite));
    }
}
