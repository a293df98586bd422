//! The best missing links so far, of all that questions have scored: a bounded number of them.

use std::collections::HashMap;

use flock_graph::Triple;
use serde::{Deserialize, Serialize};

use super::RankBy;
use crate::column::{Column, SideScore};

/// A missing link and what is known of it.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Head, relation and tail by their ids.
    #[serde(with = "ids")]
    pub triple: Triple,
    /// As the tail of (head, relation, ?).
    pub as_tail: Option<SideScore>,
    /// As the head of (?, relation, tail).
    pub as_head: Option<SideScore>,
}

mod ids {
    use flock_graph::Triple;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(t: &Triple, to: S) -> Result<S::Ok, S::Error> {
        [t.head, t.relation, t.tail].serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Triple, D::Error> {
        let [head, relation, tail] = <[u32; 3]>::deserialize(from)?;
        Ok(Triple { head, relation, tail })
    }
}

impl Candidate {
    fn new(triple: Triple) -> Candidate {
        Candidate { triple, as_tail: None, as_head: None }
    }

    fn sides(&self) -> impl Iterator<Item = &SideScore> {
        [&self.as_tail, &self.as_head].into_iter().flatten()
    }

    fn mean(&self, of: impl Fn(&SideScore) -> f64) -> f64 {
        let count = self.sides().count();
        self.sides().map(of).sum::<f64>() / count.max(1) as f64
    }

    /// The mean logit of the sides that were asked.
    pub fn logit(&self) -> f64 {
        self.mean(|side| side.logit)
    }

    /// The geometric mean of the link's shares in the questions that were asked.
    pub fn specificity(&self) -> f64 {
        self.mean(|side| side.log_share).exp()
    }

    /// What it is ranked by.
    pub fn key(&self, by: RankBy) -> f64 {
        match by {
            RankBy::Score => self.logit(),
            RankBy::Specificity => self.mean(|side| side.log_share),
        }
    }

    /// Whether both ends were asked for.
    pub fn is_two_sided(&self) -> bool {
        self.as_tail.is_some() && self.as_head.is_some()
    }
}

/// A bounded set of candidates.
#[derive(Clone, Debug)]
pub struct Pool {
    by: RankBy,
    capacity: usize,
    candidates: HashMap<Triple, Candidate>,
    floor: f64, // what a new candidate must reach
}

impl Pool {
    /// An empty pool for so many candidates.
    pub fn new(by: RankBy, capacity: usize) -> Pool {
        Pool { by, capacity: capacity.max(1), candidates: HashMap::new(), floor: f64::NEG_INFINITY }
    }

    /// A pool with what another one had, and its floor.
    pub fn with(by: RankBy, capacity: usize, candidates: Vec<Candidate>, floor: Option<f64>) -> Pool {
        let mut pool = Pool::new(by, capacity);
        pool.candidates = candidates.into_iter().map(|c| (c.triple, c)).collect();
        pool.floor = floor.unwrap_or(f64::NEG_INFINITY);
        pool
    }

    /// What a new candidate must reach, if there is a limit already.
    pub fn floor(&self) -> Option<f64> {
        self.floor.is_finite().then_some(self.floor)
    }

    /// Takes in one side of a link that is in the pool, or that is as good as what is in it. Tells whether better ones alone
    /// would fit, so that a question's worse answers need not be offered.
    pub fn offer(&mut self, triple: Triple, is_tail: bool, side: SideScore) -> bool {
        let mut candidate = self.candidates.get(&triple).copied().unwrap_or(Candidate::new(triple));
        *if is_tail { &mut candidate.as_tail } else { &mut candidate.as_head } = Some(side);
        if candidate.key(self.by) >= self.floor || self.candidates.contains_key(&triple) {
            self.candidates.insert(triple, candidate);
            if self.candidates.len() >= 2 * self.capacity {
                self.cut();
            }
            return true;
        }
        false
    }

    /// Updates the links of the pool that a question is about: those that `of` maps to a candidate of the question.
    pub fn update(&mut self, is_tail: bool, column: &Column, of: impl Fn(&Triple) -> Option<u32>) {
        for candidate in self.candidates.values_mut() {
            if let Some(id) = of(&candidate.triple) {
                *if is_tail { &mut candidate.as_tail } else { &mut candidate.as_head } = Some(column.side(id));
            }
        }
    }

    /// Drops all but the best.
    fn cut(&mut self) {
        if self.candidates.len() <= self.capacity {
            return;
        }
        let best = self.best(self.capacity);
        self.floor = best.last().map_or(f64::NEG_INFINITY, |c| c.key(self.by));
        self.candidates = best.into_iter().map(|c| (c.triple, c)).collect();
    }

    /// The best candidates, the best first; equal ones by their ids.
    pub fn best(&self, count: usize) -> Vec<Candidate> {
        let mut all: Vec<(f64, Candidate)> = self.candidates.values().map(|c| (c.key(self.by), *c)).collect();
        let order = |a: &(f64, Candidate), b: &(f64, Candidate)| {
            let ids = |c: &Candidate| (c.triple.relation, c.triple.head, c.triple.tail);
            b.0.total_cmp(&a.0).then(ids(&a.1).cmp(&ids(&b.1)))
        };
        if count < all.len() {
            all.select_nth_unstable_by(count, order);
            all.truncate(count);
        }
        all.sort_unstable_by(order);
        all.into_iter().map(|(_, candidate)| candidate).collect()
    }
}
