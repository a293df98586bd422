//! A question ready to be asked: what to ask, which model answers, with how many walks and passes, and how answers are listed.
//!
//! A plan owns all it needs but the graph. Whoever schedules passes by itself, such as a server with many questions at once, runs
//! them one by one with [`Plan::pass`], adds them to [`Passes`], and gets the answers from [`Plan::answers`]. Others let
//! [`Inquiry`](crate::Inquiry) do that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flock_graph::Graph;
use flock_model::ensemble::{Ask, Scores};
use flock_model::model::{Draw, PassBuffers, PassScores, View};
use flock_model::update::Parallelism;

use crate::answers::Answers;
use crate::calibrate::{Calibration, Probabilities, UnreachedScore};
use crate::candidates::FoundCandidates;
use crate::error::AskError;
use crate::explain::{ExplainOptions, evidence};
use crate::passes::Passes;
use crate::predictor::NamedModel;
use crate::question::Question;
use crate::ranking::{Listing, Ranking};

/// The most passes that reasons are looked for in: they hardly change after.
const EXPLAINED_PASSES: u32 = 4;

/// A question to one graph, with everything decided.
#[derive(Clone)]
pub struct Plan {
    pub(crate) question: Question,
    pub(crate) model: Arc<NamedModel>,
    pub(crate) ask: Ask,
    pub(crate) budget: Option<Duration>,
    pub(crate) top: usize,
    pub(crate) only_new: bool,
    pub(crate) among: Option<Arc<FoundCandidates>>,
    pub(crate) calibration: Option<Arc<Calibration>>,
    pub(crate) reasons: bool,
    pub(crate) show_ids: bool,
    pub(crate) max_hops: usize,
}

impl Plan {
    /// What is asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Who answers.
    pub fn model(&self) -> &Arc<NamedModel> {
        &self.model
    }

    /// Base walk count `n`.
    pub fn walks(&self) -> u32 {
        self.ask.walks
    }

    /// The number of passes, or the most if there is a budget.
    pub fn most_passes(&self) -> u32 {
        self.ask.passes.max(1)
    }

    /// The time after which no pass is added.
    pub fn budget(&self) -> Option<Duration> {
        self.budget
    }

    /// Walk positions of one pass: walks × length × updates. The time of a pass grows with them.
    pub fn positions(&self) -> u64 {
        let walks = self.question.query.num_walks(self.ask.walks);
        (walks * self.ask.options.length * self.model.model.meta().updates) as u64
    }

    /// Walk positions of looking for reasons after so many passes; 0 if none are wanted.
    pub fn reason_positions(&self) -> u64 {
        u64::from(if self.reasons { self.most_passes().min(EXPLAINED_PASSES) } else { 0 }) * self.positions()
    }

    /// Begins to count passes; a budget is counted from `begin`.
    pub fn start(&self, begin: Instant) -> Passes {
        Passes::new(self.most_passes(), self.budget, begin)
    }

    /// Runs one pass. The graph must be the one of the plan, or a later state of it that has all of its names.
    pub fn pass(&self, graph: &Graph, pass: u32, buffers: &mut PassBuffers, parallelism: Parallelism) -> PassScores {
        let view = View { topology: graph.topology(), mask: None };
        let draw = Draw { walks: self.ask.walks, seed: self.ask.seed, pass, options: self.ask.options };
        self.model.model.pass(view, &self.question.query, draw, buffers, parallelism)
    }

    /// Adds a pass to those before. Returns how many passes were added.
    pub fn add(&self, graph: &Graph, passes: &mut Passes, pass: u32, scores: PassScores) -> u32 {
        passes.add(pass, scores, |scores| self.top_ids(graph, scores))
    }

    fn listing(&self) -> Listing<'_> {
        Listing { top: self.top, only_new: self.only_new, among: self.among.as_ref().map(|found| &found.ids[..]) }
    }

    /// The ids that would be listed, in order. What cannot be ranked is reported with the answers.
    fn top_ids(&self, graph: &Graph, scores: &Scores) -> Vec<u32> {
        let (question, topology) = (&self.question, graph.topology());
        let known = question.known(topology);
        let ranking = Ranking::new(scores, question.num_candidates(topology), &known, &self.listing());
        ranking.map_or_else(|_| Vec::new(), |r| r.answers.iter().map(|a| a.id).collect())
    }

    /// How logits become probabilities after so many passes: by the calibration of the graph, by that of the model, or not at all.
    pub fn probabilities(&self, graph: &Graph, passes: u32) -> Probabilities<'_> {
        self.model.probabilities(self.calibration.as_deref(), graph, self.ask.walks, passes)
    }

    /// The candidates that no walk of these scores reached, whichever are ranked.
    pub fn unreached(&self, graph: &Graph, scores: &Scores) -> UnreachedScore {
        let reached = scores.reached.len() as u32;
        let count = self.question.num_candidates(graph.topology()).saturating_sub(reached);
        UnreachedScore { logit: scores.unreached.logit, count }
    }

    /// The answers after the passes so far, with probabilities as [`Plan::probabilities`] says.
    ///
    /// # Errors
    /// Scores that are no numbers.
    pub fn answers<'g>(&self, graph: &'g Graph, passes: &Passes) -> Result<Answers<'g>, AskError> {
        let answers = self.named(graph, passes)?;
        Ok(answers.with_shown_names(graph, self.show_ids))
    }

    /// As [`Plan::answers`], with a reason for each answer if the plan asks for reasons. Reasons take passes of their own, at most
    /// four; setting `cancel` gives up between two of them. Runs on the threads of the current pool.
    ///
    /// # Errors
    /// Scores that are no numbers, or someone has cancelled.
    pub fn answers_with_reasons<'g>(
        &self,
        graph: &'g Graph,
        passes: &Passes,
        cancel: Option<&AtomicBool>,
    ) -> Result<Answers<'g>, AskError> {
        let mut answers = self.named(graph, passes)?;
        if self.reasons {
            let ids: Vec<u32> = answers.answers.iter().map(|a| a.id).collect();
            let view = View { topology: graph.topology(), mask: None };
            let ask = Ask { passes: passes.count().min(EXPLAINED_PASSES), ..self.ask };
            let go_on = || !cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
            let (query, options) =
                (&self.question.query, ExplainOptions { max_hops: self.max_hops, ..ExplainOptions::default() });
            let found = evidence(&go_on, &self.model.model, view, query, ask, &ids, &options)?;
            let found: Vec<_> = found.answers.into_iter().map(|(_, evidence)| evidence).collect();
            answers = answers.with_reasons(graph, &found);
        }
        Ok(answers.with_shown_names(graph, self.show_ids))
    }

    fn named<'g>(&self, graph: &'g Graph, passes: &Passes) -> Result<Answers<'g>, AskError> {
        let ask = Ask { passes: passes.count(), ..self.ask };
        let (scores, name) = (passes.scores(), &self.model.name);
        let mut answers = Answers::new(graph, &self.question, &scores, &self.listing(), &ask, name)?;
        answers.stopped = passes.reason();
        answers.unknown_candidates = self.among.as_ref().and_then(|found| found.unknown.clone());
        // Without a budget the last count is known, so that interim answers are calibrated if the last ones are.
        let count = if self.budget.is_some() { ask.passes } else { self.most_passes() };
        Ok(answers.with_probabilities(&self.probabilities(graph, count), self.unreached(graph, &scores)))
    }
}
