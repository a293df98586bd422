//! Questions as jobs for the server's threads: pass after pass is added up, and what is known so far goes to whoever waits.
//!
//! What a pass is, when a question has had enough of them and what its answers are is the library's business ([`Plan`], [`Passes`]).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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
    stream: bool,             // replies are sent after every pass
    units: Vec<(usize, u32)>, // question and pass of each unit
    before: Vec<u64>,         // the positions of all units before each, and of all
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
        let mut units: Vec<(usize, u32)> =
            plans.iter().enumerate().flat_map(|(q, plan)| (0..plan.most_passes()).map(move |pass| (q, pass))).collect();
        if plans.iter().any(|plan| plan.budget().is_some()) {
            // The questions share the time, so their passes take turns.
            units.sort_by_key(|&(q, pass)| (pass, q));
        }
        let before = std::iter::once(0).chain(units.iter().scan(0, |sum, &(q, _)| {
            *sum += plans[q].positions();
            Some(*sum)
        }));
        let begin = Instant::now();
        Arc::new(QuestionJob {
            before: before.collect(),
            units,
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
}

impl Job for QuestionJob {
    fn units(&self) -> usize {
        self.units.len()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn positions(&self, units: Range<usize>) -> u64 {
        self.before[units.end] - self.before[units.start]
    }

    fn broken(&self) {
        let _ = self.messages.send(Message::Panic);
        self.cancel();
    }

    fn run(&self, unit: usize, buffers: &mut PassBuffers, parallelism: Parallelism) -> Option<Duration> {
        let (q, pass) = self.units[unit];
        let (plan, graph) = (&self.plans[q], &*self.graph);
        let passes = || self.passes[q].lock().unwrap_or_else(|e| e.into_inner());
        if passes().has_ended() {
            return None;
        }
        let begin = Instant::now();
        let scores = plan.pass(graph, pass, buffers, parallelism);
        let took = Some(begin.elapsed());

        let mut passes = passes();
        if passes.has_ended() {
            return took;
        }
        let added = plan.add(graph, &mut passes, pass, scores);
        if passes.has_ended() {
            let ended = passes.take();
            drop(passes); // reasons take a while, and other threads look whether there is something left to do
            let reply = self.work.install(|| plan.answers_with_reasons(graph, &ended, Some(&self.over)));
            if matches!(reply, Err(AskError::Cancelled)) {
                return took; // whoever has cancelled waits for no answer
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
        took
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

    fn run(&self, _: usize, _: &mut PassBuffers, _: Parallelism) -> Option<Duration> {
        let work = self.work.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(work) = work {
            work();
        }
        None
    }
}
