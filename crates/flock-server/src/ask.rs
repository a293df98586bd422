//! Questions as jobs for the server's threads: pass after pass is added up, and what is known so far goes to whoever waits.
//!
//! What a pass is, when a question has had enough of them and what its answers are is the library's business ([`Plan`], [`Passes`]).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use flock_kg::graph::Graph;
use flock_kg::model::PassBuffers;
use flock_kg::model::update::Parallelism;
use flock_kg::{AskError, Passes, Plan};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use crate::jobs::{Job, Work};

/// What whoever asked is told.
#[derive(Debug)]
pub enum Message {
    /// The reply after some passes, as JSON.
    Interim(String),
    /// The last word on the question of this number: a reply as JSON, or what went wrong.
    Final(usize, Result<String, AskError>),
    /// A pass has panicked: there will be no answer.
    Panic,
}

/// Questions on one snapshot of a graph.
pub struct QuestionJob {
    graph: Arc<Graph>,
    work: Arc<Work>,
    plans: Vec<Plan>,
    stream: bool,       // replies are sent after every pass
    firsts: Vec<usize>, // the first unit of each question, and the end
    before: Vec<u64>,   // the positions of all questions before each, and of all
    passes: Vec<Mutex<Passes>>,
    open: AtomicUsize,
    over: AtomicBool,
    messages: UnboundedSender<Message>,
    unread: AtomicUsize, // bytes of interim replies that wait to be read
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

/// When so much waits to be read, what comes after the next pass is as good.
const MOST_UNREAD: usize = 1 << 20;

impl QuestionJob {
    /// A job for these questions. A budget is counted from now, for all of them together.
    pub fn new(
        graph: Arc<Graph>,
        work: Arc<Work>,
        plans: Vec<Plan>,
        stream: bool,
        messages: UnboundedSender<Message>,
        permit: OwnedSemaphorePermit,
    ) -> Arc<QuestionJob> {
        let firsts = std::iter::once(0).chain(plans.iter().scan(0, |sum, plan| {
            *sum += plan.most_passes() as usize;
            Some(*sum)
        }));
        let before = std::iter::once(0).chain(plans.iter().scan(0, |sum, plan| {
            *sum += u64::from(plan.most_passes()) * plan.positions();
            Some(*sum)
        }));
        let begin = Instant::now();
        Arc::new(QuestionJob {
            firsts: firsts.collect(),
            before: before.collect(),
            passes: plans.iter().map(|plan| Mutex::new(plan.start(begin))).collect(),
            open: AtomicUsize::new(plans.len()),
            over: AtomicBool::new(false),
            graph,
            work,
            plans,
            stream,
            messages,
            unread: AtomicUsize::new(0),
            permit: Mutex::new(Some(permit)),
        })
    }

    /// Nobody waits any more, or there is nothing left to wait for: another request may come in.
    pub fn cancel(&self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.permit.lock().unwrap_or_else(|e| e.into_inner()).take());
    }

    /// Some message has been read.
    pub fn read(&self, message: &Message) {
        if let Message::Interim(reply) = message {
            self.unread.fetch_sub(reply.len(), Ordering::Relaxed);
        }
    }

    /// The question of a unit.
    fn question(&self, unit: usize) -> usize {
        self.firsts.partition_point(|first| *first <= unit) - 1
    }
}

impl Job for QuestionJob {
    fn units(&self) -> usize {
        *self.firsts.last().unwrap_or(&0)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn positions(&self, units: Range<usize>) -> u64 {
        let until = |unit: usize| {
            let q = self.question(unit);
            let passes = (unit - self.firsts[q]) as u64;
            self.before[q] + self.plans.get(q).map_or(0, |plan| passes * plan.positions())
        };
        until(units.end) - until(units.start)
    }

    fn broken(&self) {
        let _ = self.messages.send(Message::Panic);
        self.cancel();
    }

    fn run(&self, unit: usize, buffers: &mut PassBuffers, parallelism: Parallelism) {
        let q = self.question(unit);
        let (plan, graph) = (&self.plans[q], &*self.graph);
        let pass = (unit - self.firsts[q]) as u32;
        let passes = || self.passes[q].lock().unwrap_or_else(|e| e.into_inner());
        if passes().has_ended() {
            return;
        }
        let scores = plan.pass(graph, pass, buffers, parallelism);

        let mut passes = passes();
        if passes.has_ended() {
            return;
        }
        let added = plan.add(graph, &mut passes, pass, scores);
        if passes.has_ended() {
            let ended = passes.take();
            drop(passes); // reasons take a while, and other threads look whether there is something left to do
            let reply = self.work.install(|| plan.answers_with_reasons(graph, &ended, Some(&self.over)));
            if matches!(reply, Err(AskError::Cancelled)) {
                return; // reasons that were given up half-way are no failure; the deadline says what there is to say
            }
            let _ = self.messages.send(Message::Final(q, reply.map(|answers| to_json(&answers))));
            if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.cancel(); // of units that a budget has spared
            }
        } else if added > 0
            && self.stream
            && self.unread.load(Ordering::Relaxed) <= MOST_UNREAD
            && let Ok(answers) = plan.answers(graph, &passes)
        {
            let reply = to_json(&answers);
            self.unread.fetch_add(reply.len(), Ordering::Relaxed);
            // Under the lock, so that replies leave in the order of their passes.
            let _ = self.messages.send(Message::Interim(reply));
        }
    }
}

/// A reply as JSON.
pub fn to_json(reply: &impl serde::Serialize) -> String {
    serde_json::to_string(reply).expect("replies have string keys and finite numbers")
}

/// One piece of work that is not cut into passes.
pub struct SingleJob<F> {
    /// What to do; it is done once.
    pub work: Mutex<Option<F>>,
    /// Whether nobody waits for it.
    pub over: Arc<AtomicBool>,
    /// Walk positions of its passes.
    pub positions: u64,
}

impl<F: FnOnce() + Send> Job for SingleJob<F> {
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
