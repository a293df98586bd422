//! Asking about one graph: options as builder methods, then questions, one, many or pass by pass.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use flock_graph::{Graph, Mask};
use flock_model::checkpoint::Task;
use flock_model::ensemble::{Ask, Asker};
use flock_model::model::{ModelError, View};

use crate::answers::{Answer, Answers};
use crate::calibrate::{
    CalibrateOptions, Calibration, CalibrationError, CalibrationReport, Calibrations, HeldOut, Probabilities, hold_out,
};
use crate::candidates::{CandidateError, Candidates, FoundCandidates};
use crate::error::AskError;
use crate::explain::{ExplainOptions, Explanation, MAX_HOPS, explain};
use crate::passes::Passes;
use crate::plan::Plan;
use crate::predictor::{NamedModel, Predictor};
use crate::question::{Blank, Question};
use crate::shown::{ShownNames, shown_ids, shown_names};

/// The most passes of a question that has a budget and names no number.
pub const MOST_PASSES: u32 = 4096;
/// Passes of a stream that has no budget and names no number.
pub const STREAM_PASSES: u32 = 16;
/// Passes of an explanation that names no number.
pub const EXPLAIN_PASSES: u32 = 4;

impl Predictor {
    /// Asks about a graph. Options follow as builder methods of [`Inquiry`].
    pub fn on<'a>(&'a self, graph: &'a Graph) -> Inquiry<'a> {
        Inquiry::new(self, graph)
    }
}

/// A predictor, a graph, and how to ask. Made by [`Predictor::on`]; may be kept and asked many times.
pub struct Inquiry<'a> {
    pub(crate) predictor: &'a Predictor,
    pub(crate) graph: &'a Graph,
    walks: Option<u32>,
    passes: Option<u32>,
    pass_limit: u32,
    pub(crate) seed: u64,
    budget: Option<Duration>,
    top: usize,
    only_new: bool,
    among: Option<Candidates>,
    found: [OnceLock<Result<Arc<FoundCandidates>, CandidateError>>; 2], // of `among`, by task
    pub(crate) reasons: bool,
    pub(crate) show_ids: bool,
    pub(crate) max_hops: usize,
    pub(crate) calibrations: [Option<Arc<Calibration>>; 2],
    pub(crate) cancel: Option<&'a AtomicBool>,
    near_limit: Option<usize>,
    near_used: AtomicUsize,
    askers: [OnceLock<Asker<'a>>; 2],
}

impl<'a> Inquiry<'a> {
    pub(crate) fn new(predictor: &'a Predictor, graph: &'a Graph) -> Inquiry<'a> {
        Inquiry {
            predictor,
            graph,
            walks: None,
            passes: None,
            pass_limit: u32::MAX,
            seed: 0,
            budget: None,
            top: 0,
            only_new: false,
            among: None,
            found: Default::default(),
            reasons: false,
            show_ids: false,
            max_hops: MAX_HOPS,
            calibrations: [None, None],
            cancel: None,
            near_limit: None,
            near_used: AtomicUsize::new(0),
            askers: Default::default(),
        }
    }

    /// The same settings for further questions, without candidates, list length and budget.
    pub(crate) fn copy(&self) -> Inquiry<'a> {
        Inquiry {
            walks: self.walks,
            passes: self.passes,
            pass_limit: self.pass_limit,
            seed: self.seed,
            reasons: self.reasons,
            show_ids: self.show_ids,
            max_hops: self.max_hops,
            calibrations: self.calibrations.clone(),
            cancel: self.cancel,
            ..Inquiry::new(self.predictor, self.graph)
        }
    }

    /// Sets the base walk count `n`; by default the model's rule decides, by the size of the graph.
    pub fn walks(mut self, walks: u32) -> Self {
        self.walks = Some(walks.max(1));
        self
    }

    /// Asks so many times with fresh walks and takes the mean of the logits. By default once; with a budget up to
    /// [`MOST_PASSES`] times, in a stream [`STREAM_PASSES`] times, for an explanation [`EXPLAIN_PASSES`] times.
    pub fn passes(mut self, passes: u32) -> Self {
        self.passes = Some(passes.max(1));
        self
    }

    /// Makes at most so many passes, whatever the default would be.
    pub fn pass_limit(mut self, most: u32) -> Self {
        self.pass_limit = most.max(1);
        self
    }

    /// Sets the seed of the walks; 0 by default. The same seed gives the same answers, on any number of threads.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Adds passes to each question until so much time is up or the listed answers stop changing places.
    pub fn budget(mut self, time: Duration) -> Self {
        self.budget = Some(time);
        self
    }

    /// Lists at most so many answers; by default all that a walk reached. 0 is the default.
    pub fn top(mut self, answers: usize) -> Self {
        self.top = answers;
        self
    }

    /// Leaves out answers that the graph already has.
    pub fn only_new(mut self, only_new: bool) -> Self {
        self.only_new = only_new;
        self
    }

    /// Ranks only these names, and all of them that the graph has. Like all `among_…` methods it adds a condition: a candidate must
    /// fit all of them.
    pub fn among<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.among_candidates(Candidates::new(names))
    }

    /// Ranks only entities x with (x, `relation`, `value`) in the graph.
    pub fn among_type(self, relation: impl Into<String>, value: impl Into<String>) -> Self {
        self.among_candidates(Candidates::of_type(relation, value))
    }

    /// Ranks only entities that the graph has as a tail of the relation.
    pub fn among_range(self, relation: impl Into<String>) -> Self {
        self.among_candidates(Candidates::of_range(relation))
    }

    /// Ranks only entities that the graph has as a head of the relation.
    pub fn among_domain(self, relation: impl Into<String>) -> Self {
        self.among_candidates(Candidates::of_domain(relation))
    }

    /// As [`Inquiry::among`], for candidates that were read from a file or put together before.
    pub fn among_candidates(mut self, candidates: Candidates) -> Self {
        self.among = Some(match self.among {
            Some(before) => before.and(candidates),
            None => candidates,
        });
        self.found = Default::default();
        self
    }

    /// Gives each answer its best reason.
    pub fn reasons(mut self, reasons: bool) -> Self {
        self.reasons = reasons;
        self
    }

    /// Shows ids instead of labels in [`Answers::shown`] and [`Explanation::shown`]. IRIs keep their prefixes.
    pub fn show_ids(mut self, ids: bool) -> Self {
        self.show_ids = ids;
        self
    }

    /// Lists paths of at most so many hops as reasons of answers; 4 by default. If all are longer, the shortest is listed. For
    /// explanations [`ExplainOptions::max_hops`] says it.
    pub fn max_hops(mut self, hops: usize) -> Self {
        self.max_hops = hops.max(1);
        self
    }

    /// Uses calibrations of this graph for probabilities, where they were made as the question is asked. Otherwise the default
    /// calibration of the model makes them, and where there is none they are scores: [`Answers::probability_from`] says which.
    pub fn calibrations(mut self, calibrations: &Calibrations) -> Self {
        self.calibrations =
            [Task::Entity, Task::Relation].map(|task| calibrations.of(task).map(|c| Arc::new(c.clone())));
        self
    }

    /// Gives up soon after `cancel` becomes true, between two passes: questions then fail with [`AskError::Cancelled`].
    pub fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Looks up near names for so many unknown names only: for each, all names of the graph are compared.
    pub fn near_names(mut self, limit: usize) -> Self {
        self.near_limit = Some(limit);
        self
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// The walks and passes of a question; `default` is the number of passes if none is named.
    pub(crate) fn ask_settings(&self, named: &NamedModel, default: u32) -> Ask {
        Ask {
            walks: self.walks.unwrap_or_else(|| named.base_walks(self.graph)),
            passes: self.passes.unwrap_or(default).min(self.pass_limit),
            seed: self.seed,
            options: named.model.walk_options(),
        }
    }

    fn parse(&self, texts: [&str; 3]) -> Result<Question, AskError> {
        let Some(limit) = self.near_limit else { return Question::parse(self.graph, texts) };
        if self.near_used.load(Ordering::Relaxed) >= limit {
            return Question::parse_exactly(self.graph, texts, limit);
        }
        let question = Question::parse(self.graph, texts);
        // No near names are looked up for a name that fits several.
        if let Err(AskError::Unknown(unknown)) = &question
            && unknown.fits.is_empty()
        {
            self.near_used.fetch_add(1, Ordering::Relaxed);
        }
        question
    }

    fn candidates(&self, task: Task) -> Result<Option<Arc<FoundCandidates>>, AskError> {
        let Some(among) = &self.among else { return Ok(None) };
        if among.is_empty() {
            return Err(AskError::NoCandidates);
        }
        let found = self.found[task as usize].get_or_init(|| among.find(self.graph, task).map(Arc::new));
        Ok(Some(found.clone()?))
    }

    /// Reads a question and decides how it will be asked.
    ///
    /// # Errors
    /// Not one `?`, a name that the graph does not have, or no model for this kind of question.
    pub fn plan(&self, question: [&str; 3]) -> Result<Plan, AskError> {
        self.plan_passes(question, if self.budget.is_some() { MOST_PASSES } else { 1 })
    }

    /// As [`Inquiry::plan`], for a question that is answered pass by pass.
    ///
    /// # Errors
    /// As [`Inquiry::plan`].
    pub fn stream_plan(&self, question: [&str; 3]) -> Result<Plan, AskError> {
        self.plan_passes(question, if self.budget.is_some() { MOST_PASSES } else { STREAM_PASSES })
    }

    fn plan_passes(&self, question: [&str; 3], default: u32) -> Result<Plan, AskError> {
        let plan = self.bare_plan(self.parse(question)?, default)?;
        Ok(Plan {
            budget: self.budget,
            top: self.top,
            only_new: self.only_new,
            among: self.candidates(plan.question.task())?,
            reasons: self.reasons,
            ..plan
        })
    }

    /// A plan that ranks all candidates, without a budget and without reasons.
    fn bare_plan(&self, question: Question, default_passes: u32) -> Result<Plan, AskError> {
        let task = question.task();
        let model = self.predictor.model(task)?.clone();
        Ok(Plan {
            question,
            ask: self.ask_settings(&model, default_passes),
            model,
            budget: None,
            top: 0,
            only_new: false,
            among: None,
            calibration: self.calibrations[task as usize].clone(),
            reasons: false,
            show_ids: self.show_ids,
            max_hops: self.max_hops,
        })
    }

    /// How names are shown, by their labels or by their ids.
    pub(crate) fn shown<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> ShownNames<'n> {
        if self.show_ids { shown_ids(self.graph, names) } else { shown_names(self.graph, names) }
    }

    /// How logits become probabilities, for questions that are asked in this way.
    pub(crate) fn probabilities<'c>(&'c self, named: &'c NamedModel, ask: &Ask) -> Probabilities<'c> {
        let own = self.calibrations[named.name.task as usize].as_deref();
        named.probabilities(own, self.graph, ask.walks, ask.passes)
    }

    pub(crate) fn asker(&self, task: Task) -> Result<&Asker<'a>, AskError> {
        let slot = &self.askers[task as usize];
        if let Some(asker) = slot.get() {
            return Ok(asker);
        }
        let model = &self.predictor.model(task)?.model;
        let view = View { topology: self.graph.topology(), mask: None };
        Ok(slot.get_or_init(|| Asker::new(model, view, self.predictor.pool())))
    }

    /// Answers a question: head, relation and tail, one of them `?`.
    ///
    /// # Errors
    /// Not one `?`, a name that the graph does not have, or no model for this kind of question.
    pub fn ask<S: AsRef<str>>(&self, question: [S; 3]) -> Result<Answers<'a>, AskError> {
        let plan = self.plan(question.each_ref().map(AsRef::as_ref))?;
        let passes = self.run(std::slice::from_ref(&plan)).pop().unwrap_or(Err(AskError::Cancelled))?;
        self.answers(&plan, &passes)
    }

    /// Answers several questions with all threads, in their order. Each fails or is answered on its own.
    pub fn ask_many<S: AsRef<str>>(&self, questions: &[[S; 3]]) -> Vec<Result<Answers<'a>, AskError>> {
        let plans: Vec<Result<Plan, AskError>> =
            questions.iter().map(|q| self.plan(q.each_ref().map(AsRef::as_ref))).collect();
        let good: Vec<Plan> = plans.iter().filter_map(|p| p.as_ref().ok()).cloned().collect();
        let mut passes = self.run(&good).into_iter();
        let answer = |plan: Result<Plan, AskError>| {
            let plan = plan?;
            let passes = passes.next().unwrap_or(Err(AskError::Cancelled))?;
            self.answers(&plan, &passes)
        };
        plans.into_iter().map(answer).collect()
    }

    /// Answers questions as they come, a group at a time that keeps all threads busy.
    pub fn ask_all<'i, S: AsRef<str> + 'i>(
        &'i self,
        questions: impl IntoIterator<Item = [S; 3]> + 'i,
    ) -> impl Iterator<Item = Result<Answers<'a>, AskError>> + 'i {
        let mut questions = questions.into_iter();
        let mut group: std::vec::IntoIter<Result<Answers<'a>, AskError>> = Vec::new().into_iter();
        std::iter::from_fn(move || {
            if group.len() == 0 {
                let next: Vec<[S; 3]> = questions.by_ref().take(self.group_size()).collect();
                group = self.ask_many(&next).into_iter();
            }
            group.next()
        })
    }

    /// How many questions keep all threads busy: one, if there is a budget, since each then has all threads.
    pub fn group_size(&self) -> usize {
        if self.budget.is_some() {
            return 1;
        }
        let passes = self.passes.unwrap_or(1).min(self.pass_limit) as usize;
        (2 * self.predictor.pool().current_num_threads()).div_ceil(passes)
    }

    /// Runs the passes of each plan.
    fn run(&self, plans: &[Plan]) -> Vec<Result<Passes, AskError>> {
        if self.budget.is_some() {
            return plans.iter().map(|plan| self.run_alone(plan)).collect();
        }
        let begin = Instant::now();
        let mut passes: Vec<Result<Passes, AskError>> = plans.iter().map(|plan| Ok(plan.start(begin))).collect();
        for task in [Task::Entity, Task::Relation] {
            let picked: Vec<usize> = (0..plans.len()).filter(|&i| plans[i].question.task() == task).collect();
            let Some(&first) = picked.first() else { continue };
            let queries: Vec<_> = picked.iter().map(|&i| plans[i].question.query).collect();
            let go_on = || !self.is_cancelled();
            let asked =
                self.asker(task).and_then(|asker| Ok(asker.ask_passes_while(&queries, plans[first].ask, &go_on)?));
            match asked {
                Ok(scores) => {
                    for (i, scores) in picked.into_iter().zip(scores) {
                        let Ok(passes) = &mut passes[i] else { continue };
                        for (pass, scores) in (0..).zip(scores) {
                            plans[i].add(self.graph, passes, pass, scores);
                        }
                    }
                }
                // Plans are of this graph and this task, so the only thing that stops the passes is someone who cancels.
                Err(_) => picked.into_iter().for_each(|i| passes[i] = Err(AskError::Cancelled)),
            }
        }
        passes
    }

    /// Runs the passes of a plan one after the other, all threads on each.
    fn run_alone(&self, plan: &Plan) -> Result<Passes, AskError> {
        let mut passes = plan.start(Instant::now());
        while !passes.has_ended() {
            self.step(plan, &mut passes)?;
        }
        Ok(passes)
    }

    fn step(&self, plan: &Plan, passes: &mut Passes) -> Result<(), AskError> {
        if self.is_cancelled() {
            return Err(AskError::Cancelled);
        }
        let pass = passes.count();
        let scores = self.asker(plan.question.task())?.pass(&plan.question.query, plan.ask, pass)?;
        plan.add(self.graph, passes, pass, scores);
        Ok(())
    }

    fn answers(&self, plan: &Plan, passes: &Passes) -> Result<Answers<'a>, AskError> {
        if !plan.reasons {
            return plan.answers(self.graph, passes);
        }
        self.predictor.pool().install(|| plan.answers_with_reasons(self.graph, passes, self.cancel))
    }

    /// Answers a question pass by pass: the answers after each, the last of them final. Reasons come with the last.
    ///
    #[cfg_attr(feature = "bundled", doc = "```")]
    #[cfg_attr(not(feature = "bundled"), doc = "```ignore")]
    /// # let graph = flock_kg::bundled::graph()?;
    /// # let predictor = flock_kg::Predictor::bundled()?;
    /// for answers in predictor.on(&graph).passes(3).stream(["Spain", "official_language", "?"])? {
    ///     let answers = answers?;
    ///     println!("{} after {} passes", answers.top(1)[0].name, answers.passes);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Not one `?`, a name that the graph does not have, or no model for this kind of question.
    pub fn stream<S: AsRef<str>>(self, question: [S; 3]) -> Result<AnswerStream<'a>, AskError> {
        let plan = self.stream_plan(question.each_ref().map(AsRef::as_ref))?;
        let passes = plan.start(Instant::now());
        Ok(AnswerStream { inquiry: self, plan, passes, over: false })
    }

    /// Scores a triple as the answer to the question that leaves its tail blank. If the graph has the triple, it is hidden from the
    /// walks: it would be its own best reason. A budget does not count here.
    ///
    /// # Errors
    /// A name that the graph does not have, or no model for this kind of question.
    pub fn score<S: AsRef<str>>(&self, triple: [S; 3]) -> Result<Answer<'a>, AskError> {
        self.score_as(triple, Blank::Tail)
    }

    /// As [`Inquiry::score`], for the question that leaves another part blank.
    ///
    /// # Errors
    /// A name that the graph does not have, or no model for this kind of question.
    pub fn score_as<S: AsRef<str>>(&self, triple: [S; 3], blank: Blank) -> Result<Answer<'a>, AskError> {
        let texts = triple.each_ref().map(AsRef::as_ref);
        let (question, id) = Question::of_triple(self.graph, texts, blank)?;
        let topology = self.graph.topology();
        let itself = question.triple(topology, id);
        let known = topology.triple_id(itself).is_some();
        let plan = self.bare_plan(question, 1)?;
        let hidden = if known { vec![itself] } else { Vec::new() };
        let mask = Mask::new(topology, &hidden);
        let view = View { topology, mask: Some(&mask) };
        let asker = Asker::new(&plan.model.model, view, self.predictor.pool());
        let go_on = || !self.is_cancelled();
        let mut passes = plan.start(Instant::now());
        for scores in asker.ask_passes_while(&[question.query], plan.ask, &go_on)? {
            for (pass, scores) in (0..).zip(scores) {
                plan.add(self.graph, &mut passes, pass, scores);
            }
        }
        // Its rank counts all candidates; the list has those that were reached, and this one in any case.
        let all = plan.answers(self.graph, &passes)?;
        let (unreached, spread) = (all.unreached, passes.scores().unreached.spread);
        let name = question.answer_name(self.graph, id);
        let found = all.into_iter().find(|a| a.id == id);
        Ok(found.unwrap_or(Answer {
            rank: unreached.rank,
            id,
            name,
            label: question.answer_label(self.graph, id),
            logit: unreached.logit,
            probability: unreached.probability,
            spread: (passes.count() > 1).then_some(spread),
            visits: (question.task() == Task::Entity).then_some(0),
            known,
            reason: None,
        }))
    }

    /// Explains why a triple has its score: the ways by which walks carried the answer, and the check by deletion if `options` say so.
    /// `blank` says which part of the triple is the answer.
    ///
    /// # Errors
    /// A name that the graph does not have, or no model for this kind of question.
    pub fn explain<S: AsRef<str>>(
        &self,
        triple: [S; 3],
        blank: Blank,
        options: &ExplainOptions,
    ) -> Result<Explanation<'a>, AskError> {
        let plan = self.explain_plan(triple.each_ref().map(AsRef::as_ref), blank)?;
        self.predictor.pool().install(|| plan.run(self.graph, options, self.cancel))
    }

    /// Reads what is to be explained and decides how, for those who run it on threads of their own.
    ///
    /// # Errors
    /// A name that the graph does not have, or no model for this kind of question.
    pub fn explain_plan(&self, triple: [&str; 3], blank: Blank) -> Result<ExplainPlan, AskError> {
        let (question, answer) = Question::of_triple(self.graph, triple, blank)?;
        Ok(ExplainPlan { plan: self.bare_plan(question, EXPLAIN_PASSES)?, answer })
    }

    /// Fits probabilities to this graph: hides some of its triples, asks for them, and sees how often answers of a given logit are
    /// true. `progress` hears how many questions are done, of how many; if it returns false there is no result.
    ///
    /// # Errors
    /// A graph that is too small, or no model of the task.
    pub fn calibrate(
        &self,
        task: Task,
        options: &CalibrateOptions,
        progress: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Result<Option<CalibrationReport>, CalibrationError> {
        Ok(self.hold_out(task, options, progress)?.map(|held| held.report()))
    }

    /// Hides triples of this graph and asks for them, as [`Inquiry::calibrate`] does, and returns what became of them: for
    /// [`DefaultCalibration::fit`](crate::calibrate::DefaultCalibration::fit), which takes several graphs.
    ///
    /// # Errors
    /// A graph that is too small, or no model of the task.
    pub fn hold_out(
        &self,
        task: Task,
        options: &CalibrateOptions,
        progress: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Result<Option<HeldOut>, CalibrationError> {
        let named = self.predictor.model(task)?;
        let ask = self.ask_settings(named, 1);
        let (topology, pool, go_on) = (self.graph.topology(), self.predictor.pool(), || !self.is_cancelled());
        let held = hold_out(&go_on, &named.model, topology, pool, options, ask, progress);
        held.map_err(|e| match e {
            CalibrationError::Model(ModelError::Stopped) => AskError::Cancelled.into(),
            e => e,
        })
    }
}

/// What is to be explained, with everything decided.
pub struct ExplainPlan {
    plan: Plan,
    answer: u32,
}

impl ExplainPlan {
    /// Walk positions of all passes, those of the check by deletion included.
    pub fn positions(&self, options: &ExplainOptions) -> u64 {
        let rounds = if options.check { 2 + u64::from(options.draws) } else { 1 };
        rounds * u64::from(self.plan.most_passes()) * self.plan.positions()
    }

    /// Explains, on the threads of the current pool. Setting `cancel` gives up between two passes.
    ///
    /// # Errors
    /// The model does not fit, or someone has cancelled.
    pub fn run<'g>(
        &self,
        graph: &'g Graph,
        options: &ExplainOptions,
        cancel: Option<&AtomicBool>,
    ) -> Result<Explanation<'g>, AskError> {
        let go_on = || !cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        let Plan { question, model, ask, .. } = &self.plan;
        let explanation = explain(&go_on, &model.model, graph, question, self.answer, *ask, options)?;
        let probabilities = self.plan.probabilities(graph, ask.passes);
        Ok(explanation.with_probability(&probabilities).with_shown_names(graph, self.plan.show_ids))
    }
}

/// Answers after each pass. Made by [`Inquiry::stream`]; dropping it ends the work.
pub struct AnswerStream<'a> {
    inquiry: Inquiry<'a>,
    plan: Plan,
    passes: Passes,
    over: bool,
}

impl<'a> Iterator for AnswerStream<'a> {
    type Item = Result<Answers<'a>, AskError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let stepped = self.inquiry.step(&self.plan, &mut self.passes);
        let answers = stepped.and_then(|()| match self.passes.has_ended() {
            true => self.inquiry.answers(&self.plan, &self.passes),
            false => self.plan.answers(self.inquiry.graph, &self.passes),
        });
        self.over = answers.is_err() || self.passes.has_ended();
        Some(answers)
    }
}
