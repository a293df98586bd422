//! The passes of a question: counted, added up, and stopped by their number, by the clock, or by a ranking that has settled.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flock_model::ensemble::{Scores, Tally, combine};
use flock_model::model::PassScores;
use serde::Serialize;

/// Says, between passes, whether anybody still waits.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// The order at the top counts as settled once it has stayed the same for so many passes, and for half of all.
pub const STEADY: u32 = 4;

/// Why no further pass was made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub enum StopReason {
    /// Another pass would not have been done in time.
    Time,
    /// The top of the ranking had stopped changing.
    Steady,
    /// As many passes as were allowed.
    Passes,
}

/// Watches the top of a ranking from pass to pass.
#[derive(Clone, Debug, Default)]
pub struct Steadiness {
    top: Vec<u32>,
    since: u32,
}

impl Steadiness {
    /// Whether the top has settled, given its ids in order after so many passes.
    pub fn settled(&mut self, passes: u32, top: Vec<u32>) -> bool {
        if top != self.top || self.since == 0 {
            (self.top, self.since) = (top, passes);
        }
        let same = passes - self.since;
        same >= STEADY && 2 * same >= passes
    }
}

/// Passes of one question, added up in their order as they come, until enough are there.
///
/// Passes may come in any order: those before their turn wait. What follows depends on the passes alone, and with a budget on the
/// clock.
#[derive(Debug)]
pub struct Passes {
    most: u32,
    budget: Option<Duration>,
    begin: Instant,
    early: BTreeMap<u32, PassScores>, // passes that came before their turn
    tally: Tally,
    first: Option<PassScores>, // as long as it is the only one: its scores are exact
    steadiness: Steadiness,
    end: Option<Option<StopReason>>,
}

impl Passes {
    /// Waits for at most so many passes. A budget is counted from `begin`.
    pub fn new(most: u32, budget: Option<Duration>, begin: Instant) -> Passes {
        Passes {
            most: most.max(1),
            budget,
            begin,
            early: BTreeMap::new(),
            tally: Tally::default(),
            first: None,
            steadiness: Steadiness::default(),
            end: None,
        }
    }

    /// Adds pass number `pass`, and those after it that wait for it. `top` names the best ids, in order; it is asked only if there is
    /// a budget. Returns how many passes were added. After the end nothing is added.
    pub fn add(&mut self, pass: u32, scores: PassScores, mut top: impl FnMut(&Scores) -> Vec<u32>) -> u32 {
        let before = self.count();
        if self.has_ended() {
            return 0;
        }
        self.early.insert(pass, scores);
        while self.end.is_none()
            && let Some(next) = self.early.remove(&self.count())
        {
            self.tally.add(&next);
            self.first = (self.count() == 1).then_some(next);
            self.end = match self.budget {
                Some(time) => self.stopped(time, &mut top).map(Some),
                None => (self.count() >= self.most).then_some(None),
            };
        }
        self.count() - before
    }

    /// A ranking that has settled is the best reason to stop; the last pass that is allowed comes before the time it took.
    fn stopped(&mut self, time: Duration, top: &mut impl FnMut(&Scores) -> Vec<u32>) -> Option<StopReason> {
        let (count, spent) = (self.count(), self.begin.elapsed());
        let top = top(&self.scores());
        if self.steadiness.settled(count, top) {
            Some(StopReason::Steady)
        } else if count >= self.most {
            Some(StopReason::Passes)
        } else if spent + spent / count > time {
            Some(StopReason::Time)
        } else {
            None
        }
    }

    /// Takes the passes out once they have ended. What stays behind has ended as well, and takes no more.
    pub fn take(&mut self) -> Passes {
        let mut rest = Passes::new(self.most, self.budget, self.begin);
        rest.end = self.end;
        std::mem::replace(self, rest)
    }

    /// How many passes were added.
    pub fn count(&self) -> u32 {
        self.tally.passes()
    }

    /// Whether no further pass is needed.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Why no further pass is needed, if there is a budget.
    pub fn reason(&self) -> Option<StopReason> {
        self.end.flatten()
    }

    /// The mean over the passes so far.
    pub fn scores(&self) -> Scores {
        match &self.first {
            Some(pass) => combine(std::slice::from_ref(pass)),
            None => self.tally.scores(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settles_after_four_equal_passes_and_half_of_all() {
        let run = |tops: &[&[u32]]| {
            let mut steadiness = Steadiness::default();
            (1..).zip(tops).find(|(passes, top)| steadiness.settled(*passes, top.to_vec())).map(|(passes, _)| passes)
        };
        // Since pass 1: 4 more equal ones are pass 5.
        assert_eq!(run(&[&[1, 2][..]; 9]), Some(5));
        // Changed at pass 3: 4 more are pass 7, and 4 ≥ 7/2.
        assert_eq!(run(&[&[1], &[2], &[3], &[3], &[3], &[3], &[3], &[3]]), Some(7));
        // Order counts.
        assert_eq!(run(&[&[1, 2], &[2, 1], &[1, 2], &[2, 1], &[1, 2], &[2, 1]]), None);
        // Changed at pass 6: same for 4 at pass 10 is less than half; 6 at pass 12 is half.
        let mut tops: Vec<&[u32]> = vec![&[1], &[2], &[1], &[2], &[1]];
        tops.extend([&[3u32][..]; 9]);
        assert_eq!(run(&tops), Some(12));
        // No answers at all settle as well.
        assert_eq!(run(&[&[][..]; 6]), Some(5));
    }

    fn pass(logit: f32) -> PassScores {
        PassScores { ids: vec![7], logits: vec![logit], visits: vec![1], unreached: -1.0, ..PassScores::default() }
    }

    #[test]
    fn passes_count_in_their_order_however_they_come() {
        let mut passes = Passes::new(3, None, Instant::now());
        let none = |_: &Scores| Vec::new();
        assert_eq!((passes.add(1, pass(2.0), none), passes.count(), passes.has_ended()), (0, 0, false));
        assert_eq!((passes.add(0, pass(1.0), none), passes.count(), passes.has_ended()), (2, 2, false));
        // (1 + 2) / 2, then (1 + 2 + 6) / 3.
        assert_eq!(passes.scores().of(7).logit, 1.5);
        assert_eq!((passes.add(2, pass(6.0), none), passes.has_ended(), passes.reason()), (1, true, None));
        assert_eq!((passes.scores().of(7).logit, passes.add(3, pass(9.0), none)), (3.0, 0));
    }

    #[test]
    fn the_reason_to_stop_is_the_best_one_there_is() {
        let stop = |most: u32, time: Duration, tops: fn(u32) -> Vec<u32>| {
            let mut passes = Passes::new(most, Some(time), Instant::now());
            for p in 0.. {
                passes.add(p, pass(0.0), |_| tops(p));
                if passes.has_ended() {
                    return (passes.count(), passes.reason());
                }
            }
            unreachable!("passes end")
        };
        let (none, ages) = (Duration::ZERO, Duration::from_secs(3600));
        // The last pass that is allowed also uses up the time: it is the number of passes that ends it.
        assert_eq!(stop(1, none, |p| vec![p]), (1, Some(StopReason::Passes)));
        assert_eq!(stop(2, none, |p| vec![p]), (1, Some(StopReason::Time)));
        assert_eq!(stop(9, ages, |p| vec![p]), (9, Some(StopReason::Passes)));
        assert_eq!(stop(9, ages, |_| vec![1]), (5, Some(StopReason::Steady)));
        assert_eq!(stop(5, ages, |_| vec![1]), (5, Some(StopReason::Steady)));
    }
}
