//! Ensembles: `P` independent passes, and the mean of their logits (`docs/reference/model.md`, section 6), with the spread over passes kept.

use std::collections::HashMap;
use std::sync::Mutex;

use flock_graph::Mask;
use flock_walk::WalkQuery;
use rayon::prelude::*;

use crate::fast::pass::{Model, PassBuffers, PassScores};
use crate::fast::update::{Parallelism, Stages};
use crate::input::{Draw, ModelError, View};

/// How a query is asked.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Base walk count `n`.
    pub walks: u32,
    /// Ensemble passes `P`.
    pub passes: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// Switches for ablations; the length is the model's.
    pub options: flock_walk::WalkOptions,
}

/// The score of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Mean logit over the passes.
    pub logit: f64,
    /// Standard deviation of the logit over the passes; 0 for one pass.
    pub spread: f64,
    /// Positions at which the candidate stood, over all passes and updates (0 for relations).
    pub visits: u32,
}

impl Score {
    /// Computes σ(logit).
    pub fn probability(&self) -> f64 {
        1.0 / (1.0 + (-self.logit).exp())
    }
}

/// The scores of one query.
#[derive(Clone, Debug)]
pub struct Scores {
    /// Candidates that a walk of some pass reached, and their scores, by ascending id.
    pub reached: Vec<(u32, Score)>,
    /// The score of every other candidate.
    pub unreached: Score,
    /// Where the time went, summed over passes (and threads).
    pub stages: Stages,
}

impl Scores {
    /// Returns the score of a candidate.
    pub fn of(&self, id: u32) -> Score {
        self.reached.binary_search_by_key(&id, |(c, _)| *c).map_or(self.unreached, |i| self.reached[i].1)
    }
}

/// A model whose scores are not numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model gave scores that are infinite or no numbers; hint: its weights are damaged or too large")]
pub struct NotFinite;

/// Asks queries of one model on one graph, keeping buffers from query to query.
pub struct Asker<'a> {
    model: &'a Model,
    view: View<'a>,
    pool: &'a rayon::ThreadPool,
    buffers: Mutex<Vec<PassBuffers>>,
}

impl<'a> Asker<'a> {
    /// Makes an asker that works on the threads of `pool`.
    pub fn new(model: &'a Model, view: View<'a>, pool: &'a rayon::ThreadPool) -> Asker<'a> {
        Asker { model, view, pool, buffers: Mutex::default() }
    }

    /// Answers a batch. The result depends on each query and `ask` alone, not on the batch or the number of threads.
    pub fn ask(&self, queries: &[WalkQuery], ask: Ask) -> Result<Vec<Scores>, ModelError> {
        Ok(self.ask_passes(queries, ask)?.iter().map(|passes| combine(passes)).collect())
    }

    /// As [`ask`](Asker::ask), with the scores of each pass apart: the first `p` are the passes of an ensemble of `p`.
    pub fn ask_passes(&self, queries: &[WalkQuery], ask: Ask) -> Result<Vec<Vec<PassScores>>, ModelError> {
        self.ask_passes_while(queries, ask, &|| true)
    }

    /// As [`ask_passes`](Asker::ask_passes), as long as `go_on`: it is looked at before each pass.
    ///
    /// # Errors
    /// A query that does not fit, or [`ModelError::Stopped`].
    pub fn ask_passes_while(
        &self,
        queries: &[WalkQuery],
        ask: Ask,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<PassScores>>, ModelError> {
        self.ask_views(queries, |_| self.view, ask, go_on)
    }

    /// As [`ask_passes_while`](Asker::ask_passes_while), with edges hidden from some queries: those of the mask in the query's place.
    ///
    /// # Errors
    /// A query that does not fit, or [`ModelError::Stopped`].
    ///
    /// # Panics
    /// If there are fewer masks than queries.
    pub fn ask_masked_while(
        &self,
        queries: &[WalkQuery],
        masks: &[Option<Mask>],
        ask: Ask,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<PassScores>>, ModelError> {
        let view = |i: usize| match &masks[i] {
            Some(mask) => View { mask: Some(mask), ..self.view },
            None => self.view,
        };
        self.ask_views(queries, view, ask, go_on)
    }

    fn ask_views<'v>(
        &self,
        queries: &[WalkQuery],
        view: impl Fn(usize) -> View<'v> + Sync,
        ask: Ask,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<PassScores>>, ModelError>
    where
        'a: 'v,
    {
        for query in queries {
            self.model.check(self.view.topology, query)?;
        }
        let passes = ask.passes.max(1) as usize;
        let jobs = queries.len() * passes;
        let run = |job: usize, parallelism: Parallelism| {
            if !go_on() {
                return Err(ModelError::Stopped);
            }
            let draw =
                Draw { walks: ask.walks.max(1), seed: ask.seed, pass: (job % passes) as u32, options: ask.options };
            let mut buffers = self.lock().pop().unwrap_or_default();
            let (view, query) = (view(job / passes), &queries[job / passes]);
            let scores = self.model.pass(view, query, draw, &mut buffers, parallelism);
            self.lock().push(buffers);
            Ok(scores)
        };
        // A job to each thread while there are as many; what is left over is shared out inside each job.
        let threads = self.pool.current_num_threads();
        let whole = if threads > 1 { jobs / threads * threads } else { jobs };
        let mut scores: Vec<PassScores> = self.pool.install(|| {
            let mut scores: Vec<PassScores> = (0..whole)
                .into_par_iter()
                .with_max_len(1)
                .map(|job| run(job, Parallelism::OneThread))
                .collect::<Result<_, _>>()?;
            for job in whole..jobs {
                scores.push(run(job, Parallelism::Pool)?);
            }
            Ok(scores)
        })?;
        Ok(queries.iter().map(|_| scores.drain(..passes).collect()).collect())
    }

    /// Runs one pass of a query, with all threads. Passes in order, put in a [`Tally`], give what [`Asker::ask`] gives.
    pub fn pass(&self, query: &WalkQuery, ask: Ask, pass: u32) -> Result<PassScores, ModelError> {
        self.model.check(self.view.topology, query)?;
        let draw = Draw { walks: ask.walks.max(1), seed: ask.seed, pass, options: ask.options };
        let mut buffers = self.lock().pop().unwrap_or_default();
        let parallelism = if self.pool.current_num_threads() > 1 { Parallelism::Pool } else { Parallelism::OneThread };
        let scores = self.pool.install(|| self.model.pass(self.view, query, draw, &mut buffers, parallelism));
        self.lock().push(buffers);
        Ok(scores)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<PassBuffers>> {
        // A poisoned lock means a panic elsewhere; buffers hold nothing that a panic could leave half done.
        self.buffers.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Averages over passes. A candidate that a pass did not reach has that pass's unreached score there.
pub fn combine(passes: &[PassScores]) -> Scores {
    if let [pass] = passes {
        let one = |logit: f32, visits| Score { logit: f64::from(logit), spread: 0.0, visits };
        let scored = pass.logits.iter().zip(&pass.visits).map(|(l, v)| one(*l, *v));
        let mut reached: Vec<(u32, Score)> = pass.ids.iter().copied().zip(scored).collect();
        reached.sort_unstable_by_key(|(id, _)| *id);
        return Scores { reached, unreached: one(pass.unreached, 0), stages: pass.stages };
    }
    let mut tally = Tally::default();
    passes.iter().for_each(|pass| tally.add(pass));
    tally.scores()
}

/// Passes added up one by one, for those who want to know the mean before the last is done.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    passes: u32,
    unreached: Sums,
    above: HashMap<u32, (Sums, u32)>, // what reached candidates have beyond the unreached, and visits
    stages: Stages,
}

/// Sums of logits and of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    logits: f64,
    squares: f64,
}

impl Tally {
    /// Adds a pass. The order matters to the last bit.
    pub fn add(&mut self, pass: &PassScores) {
        let shared = f64::from(pass.unreached);
        self.passes += 1;
        self.unreached.logits += shared;
        self.unreached.squares += shared * shared;
        self.stages.add(&pass.stages);
        for ((&id, &logit), &visits) in pass.ids.iter().zip(&pass.logits).zip(&pass.visits) {
            let logit = f64::from(logit);
            let (sums, count) = self.above.entry(id).or_default();
            sums.logits += logit - shared;
            sums.squares += logit * logit - shared * shared;
            *count += visits;
        }
    }

    /// Returns how many passes were added.
    pub fn passes(&self) -> u32 {
        self.passes
    }

    /// Computes the scores of all passes added so far.
    pub fn scores(&self) -> Scores {
        let count = f64::from(self.passes.max(1));
        let score = |above: Sums, visits| {
            let logit = (self.unreached.logits + above.logits) / count;
            let variance = (self.unreached.squares + above.squares) / count - logit * logit;
            let spread = if self.passes > 1 { variance.max(0.0).sqrt() } else { 0.0 };
            Score { logit, spread, visits }
        };
        let mut reached: Vec<(u32, Score)> =
            self.above.iter().map(|(id, (sums, visits))| (*id, score(*sums, *visits))).collect();
        reached.sort_unstable_by_key(|(id, _)| *id);
        Scores { reached, unreached: score(Sums::default(), 0), stages: self.stages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combines_passes_by_hand() {
        let pass = |ids: &[u32], logits: &[f32], unreached| PassScores {
            ids: ids.to_vec(),
            logits: logits.to_vec(),
            visits: vec![2; ids.len()],
            unreached,
            stages: Stages::default(),
        };
        let scores = combine(&[pass(&[7, 3], &[1.0, -1.0], 0.5), pass(&[3], &[2.0], -0.5)]);
        // 7: (1 + (−½)) / 2 = ¼, deviation ¾; 3: (−1 + 2) / 2 = ½, deviation 1½; others: 0, deviation ½.
        let close = |s: Score, logit: f64, spread: f64, visits| {
            assert!((s.logit - logit).abs() < 1e-12 && (s.spread - spread).abs() < 1e-7 && s.visits == visits, "{s:?}");
        };
        close(scores.of(7), 0.25, 0.75, 2);
        close(scores.of(3), 0.5, 1.5, 4);
        close(scores.of(99), 0.0, 0.5, 0);
        assert_eq!(scores.reached.iter().map(|r| r.0).collect::<Vec<_>>(), [3, 7]);
        assert!((scores.of(3).probability() - 0.622_459_331).abs() < 1e-8);
    }
}
