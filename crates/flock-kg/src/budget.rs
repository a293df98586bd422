//! Passes against the clock: they are added until time is up, or until the top of the ranking has stopped changing.

use std::time::{Duration, Instant};

use flock_walk::WalkQuery;

use flock_model::ensemble::{Ask, Asker, Scores, Tally};
use flock_model::model::ModelError;

/// The order at the top counts as settled once it has stayed the same for so many passes, and for half of all.
pub const STEADY: u32 = 4;

/// Why no further pass was made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// Another pass would not have been done in time.
    Time,
    /// The top of the ranking had stopped changing.
    Steady,
    /// As many passes as were allowed.
    Passes,
}

impl Stopped {
    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            Stopped::Time => "time",
            Stopped::Steady => "steady",
            Stopped::Passes => "passes",
        }
    }
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

/// Asks one query for as long as `time` allows: at least one pass, at most `ask.passes`. `top` names the best ids, in order.
/// Returns the scores, how many passes they took, and why there were no more.
pub fn ask_within(
    asker: &Asker<'_>,
    query: &WalkQuery,
    ask: Ask,
    time: Duration,
    mut top: impl FnMut(&Scores) -> Vec<u32>,
) -> Result<(Scores, u32, Stopped), ModelError> {
    let begin = Instant::now();
    let (mut tally, mut steadiness) = (Tally::default(), Steadiness::default());
    loop {
        tally.add(&asker.pass(query, ask, tally.passes())?);
        let (passes, scores) = (tally.passes(), tally.scores());
        let spent = begin.elapsed();
        let stopped = if steadiness.settled(passes, top(&scores)) {
            Stopped::Steady
        } else if passes >= ask.passes.max(1) {
            Stopped::Passes
        } else if spent + spent / passes > time {
            Stopped::Time
        } else {
            continue;
        };
        return Ok((scores, passes, stopped));
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
}
