//! Questions as jobs: pass after pass is added up, and what is known so far goes to whoever waits.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flock_kg::answers::{ModelName, Ranking, Reply, Request};
use flock_kg::budget::{Steadiness, Stopped};
use flock_kg::calibrate::Calibration;
use flock_kg::ensemble::{Ask, Scores, Tally};
use flock_kg::explain::{ExplainOptions, evidence};
use flock_kg::graph::Graph;
use flock_kg::model::{Draw, Model, PassBuffers, PassScores, View};
use flock_kg::question::Question;
use flock_kg::update::Parallelism;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use crate::work::{Job, Work};

/// A model that answers.
pub struct Served {
    /// The model.
    pub model: Model,
    /// Its name in replies.
    pub name: ModelName,
}

/// A question and how it is asked.
pub struct Asked {
    /// The question.
    pub question: Question,
    /// The model that answers.
    pub served: Arc<Served>,
    /// How.
    pub ask: Ask,
    /// Candidates, if not all.
    pub among: Option<Arc<[u32]>>,
    /// What makes probabilities instead of σ, if it was made as this is asked.
    pub calibration: Option<Calibration>,
}

/// What the asker hears.
#[derive(Debug)]
pub enum News {
    /// The reply after some passes, as JSON.
    SoFar(String),
    /// The last word on the question of this number: a reply as JSON, or what went wrong.
    Final(usize, Result<String, String>),
    /// A pass has panicked: there will be no answer.
    Broken,
}

impl Asked {
    /// Walk positions of one pass.
    pub fn positions(&self) -> u64 {
        pass_positions(&self.served.model, &self.question, &self.ask)
    }
}

/// Walk positions of one pass: walks × length × updates.
pub fn pass_positions(model: &Model, question: &Question, ask: &Ask) -> u64 {
    (question.query.num_walks(ask.walks) * ask.options.length * model.meta().updates) as u64
}

/// How all questions of a job are answered.
#[derive(Copy, Clone, Debug)]
pub struct Manner {
    /// Answers to list.
    pub top: usize,
    /// Whether known answers are left out.
    pub novel: bool,
    /// Whether each answer gets a reason.
    pub explain: bool,
    /// The time after which no pass is added.
    pub budget: Option<Duration>,
    /// Whether replies are sent after every pass.
    pub stream: bool,
}

/// Questions on one snapshot of a graph.
pub struct Questions {
    graph: Arc<Graph>,
    work: Arc<Work>,
    asked: Vec<Asked>,
    firsts: Vec<usize>, // the first unit of each question, and the end
    before: Vec<u64>,   // the positions of all questions before each, and of all
    manner: Manner,
    begin: Instant,
    states: Vec<Mutex<State>>,
    open: AtomicUsize,
    over: AtomicBool,
    news: UnboundedSender<News>,
    unread: AtomicUsize, // bytes of replies so far that wait to be heard
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

/// When so much waits to be read, what comes after the next pass is as good.
const MOST_UNREAD: usize = 1 << 20;

#[derive(Default)]
struct State {
    done: Vec<Option<PassScores>>, // passes that came before their turn
    tally: Tally,
    steadiness: Steadiness,
    finished: bool,
}

impl Questions {
    /// A job for these questions.
    pub fn new(
        graph: Arc<Graph>,
        work: Arc<Work>,
        asked: Vec<Asked>,
        manner: Manner,
        news: UnboundedSender<News>,
        permit: OwnedSemaphorePermit,
    ) -> Arc<Questions> {
        let firsts = std::iter::once(0).chain(asked.iter().scan(0, |sum, a| {
            *sum += a.ask.passes.max(1) as usize;
            Some(*sum)
        }));
        let before = std::iter::once(0).chain(asked.iter().scan(0, |sum, a| {
            *sum += u64::from(a.ask.passes.max(1)) * a.positions();
            Some(*sum)
        }));
        let state = |a: &Asked| {
            let done = (0..a.ask.passes.max(1)).map(|_| None).collect();
            Mutex::new(State { done, ..State::default() })
        };
        Arc::new(Questions {
            firsts: firsts.collect(),
            before: before.collect(),
            states: asked.iter().map(state).collect(),
            open: AtomicUsize::new(asked.len()),
            over: AtomicBool::new(false),
            begin: Instant::now(),
            graph,
            work,
            asked,
            manner,
            news,
            unread: AtomicUsize::new(0),
            permit: Mutex::new(Some(permit)),
        })
    }

    /// Nobody waits any more, or there is nothing left to wait for: another request may come in.
    pub fn cancel(&self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.permit.lock().unwrap_or_else(|e| e.into_inner()).take());
    }

    /// Some news has been taken.
    pub fn heard(&self, news: &News) {
        if let News::SoFar(reply) = news {
            self.unread.fetch_sub(reply.len(), Ordering::Relaxed);
        }
    }

    fn request(&self, q: usize) -> Request<'_> {
        Request { top: self.manner.top, novel: self.manner.novel, among: self.asked[q].among.as_deref() }
    }

    /// The ids that would be listed, in order.
    fn top(&self, q: usize, scores: &Scores) -> Vec<u32> {
        let (question, topology) = (&self.asked[q].question, self.graph.topology());
        let known = question.known(topology);
        let ranking = Ranking::new(scores, question.num_candidates(topology), &known, &self.request(q));
        ranking.map_or_else(|_| Vec::new(), |r| r.answers.iter().map(|a| a.id).collect())
    }

    fn reply(
        &self,
        q: usize,
        scores: &Scores,
        passes: u32,
        stopped: Option<Stopped>,
        last: bool,
    ) -> Result<String, String> {
        let Asked { question, served, ask, calibration, .. } = &self.asked[q];
        let ask = Ask { passes, ..*ask };
        let reply = Reply::new(&self.graph, question, scores, &self.request(q), &ask, &served.name);
        let mut reply = reply.map_err(|e| e.to_string())?;
        reply.stopped = stopped.map(Stopped::word);
        if let Some(calibration) = calibration {
            reply = reply.calibrated(calibration, self.graph.topology());
        }
        if self.manner.explain && last {
            const PASSES: u32 = 4; // reasons hardly change after
            let ids: Vec<u32> = reply.answers.iter().map(|a| a.id).collect();
            let view = View { topology: self.graph.topology(), mask: None };
            let ask = Ask { passes: passes.min(PASSES), ..ask };
            let options = ExplainOptions::default();
            let go_on = || !self.is_over();
            let find = || evidence(&go_on, &served.model, view, &question.query, ask, &ids, &options);
            let found = self.work.install(find).map_err(|e| e.to_string())?;
            let found: Vec<_> = found.into_iter().map(|(_, evidence)| evidence).collect();
            reply = reply.with_reasons(&self.graph, &found);
        }
        serde_json::to_string(&reply).map_err(|e| e.to_string())
    }
}

impl Job for Questions {
    fn units(&self) -> usize {
        *self.firsts.last().unwrap_or(&0)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn positions(&self, units: Range<usize>) -> u64 {
        let until = |unit: usize| {
            let q = self.firsts.partition_point(|first| *first <= unit) - 1;
            let passes = (unit - self.firsts[q]) as u64;
            self.before[q] + self.asked.get(q).map_or(0, |a| passes * a.positions())
        };
        until(units.end) - until(units.start)
    }

    fn broken(&self) {
        let _ = self.news.send(News::Broken);
        self.cancel();
    }

    fn run(&self, unit: usize, buffers: &mut PassBuffers, parallelism: Parallelism) {
        let q = self.firsts.partition_point(|first| *first <= unit) - 1;
        let pass = unit - self.firsts[q];
        let state = || self.states[q].lock().unwrap_or_else(|e| e.into_inner());
        if state().finished {
            return;
        }
        let Asked { question, served, ask, .. } = &self.asked[q];
        let view = View { topology: self.graph.topology(), mask: None };
        let draw = Draw { walks: ask.walks, seed: ask.seed, pass: pass as u32, options: ask.options };
        let scores = served.model.pass(view, &question.query, draw, buffers, parallelism);

        let mut guard = state();
        if guard.finished {
            return;
        }
        let state = &mut *guard;
        state.done[pass] = Some(scores);
        let before = state.tally.passes();
        let mut ending = None;
        while let Some(next) = state.done.get_mut(state.tally.passes() as usize).and_then(Option::take) {
            state.tally.add(&next);
            let passes = state.tally.passes();
            if let Some(budget) = self.manner.budget {
                let spent = self.begin.elapsed();
                let top = self.top(q, &state.tally.scores());
                if state.steadiness.settled(passes, top) {
                    ending = Some(Some(Stopped::Steady));
                } else if spent + spent / passes > budget {
                    ending = Some(Some(Stopped::Time));
                }
            }
            if ending.is_none() && passes >= ask.passes.max(1) {
                ending = Some(self.manner.budget.map(|_| Stopped::Passes));
            }
            if ending.is_some() {
                break;
            }
        }
        let passes = state.tally.passes();
        let unread = self.unread.load(Ordering::Relaxed) > MOST_UNREAD;
        if ending.is_none() && (passes == before || !self.manner.stream || unread) {
            return;
        }
        state.finished = ending.is_some();
        let scores = state.tally.scores();
        if let Some(stopped) = ending {
            drop(guard);
            let reply = self.reply(q, &scores, passes, stopped, true);
            if reply.is_err() && self.is_over() {
                return; // reasons that were given up half-way are no failure; the deadline says what there is to say
            }
            let _ = self.news.send(News::Final(q, reply));
            if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.cancel(); // of units that a budget has spared
            }
        } else if let Ok(reply) = self.reply(q, &scores, passes, None, false) {
            self.unread.fetch_add(reply.len(), Ordering::Relaxed);
            // Under the lock, so that replies leave in the order of their passes.
            let _ = self.news.send(News::SoFar(reply));
        }
    }
}

/// One piece of work that is not cut into passes.
pub struct Whole<F> {
    /// What to do; it is done once.
    pub work: Mutex<Option<F>>,
    /// Whether nobody waits for it.
    pub over: Arc<AtomicBool>,
    /// Walk positions of its passes.
    pub positions: u64,
}

impl<F: FnOnce() + Send> Job for Whole<F> {
    fn units(&self) -> usize {
        1
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn positions(&self, units: Range<usize>) -> u64 {
        self.positions * units.len() as u64
    }

    fn units_are_passes(&self) -> bool {
        false
    }

    fn run(&self, _: usize, _: &mut PassBuffers, _: Parallelism) {
        let work = self.work.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(work) = work {
            work();
        }
    }
}
