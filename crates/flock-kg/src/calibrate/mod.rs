//! Probabilities one can use: held-out edges of one's own graph say how often answers with a given logit are true.
//!
//! A sample of triples is hidden from the walks and asked for. The best candidates of each question that are not in the graph
//! as the walks see it, as `predict --novel` would list them, are samples: true if they are hidden triples, else taken to be
//! false. An [`Isotonic`] map is fitted to them. The error after is measured crosswise, by a map fitted to the other half of
//! the questions; the map that is kept is fitted to all.
//!
//! What the graph merely lacks counts as false here, so the probabilities are on the low side by as much as it is incomplete.
//!
//! Candidates that no walk reached are no samples of the map. They share one logit, which may lie where reached candidates are
//! often true, and they are many: so it is counted how many true answers of a question no walk reaches, and that is shared out
//! among them ([`Probabilities::at`]).
//!
//! A model may carry a [`DefaultCalibration`], fitted in the same way to several graphs that it was not trained on.
//! [`NamedModel::probabilities`](crate::NamedModel::probabilities) decides which calibration holds for a question.

mod defaults;
mod file;
mod isotonic;
mod probabilities;
mod reliability;
mod summary;

pub use crate::error::CalibrationError;
pub use defaults::{DefaultCalibration, DefaultCalibrations, LeftOutGraph};
pub use file::Calibrations;
pub use isotonic::Isotonic;
pub use probabilities::{Probabilities, ProbabilitySource, UnreachedScore};
#[cfg(feature = "eval")]
pub use reliability::svg;
pub use reliability::{Bin, bins, expected_error};
pub use summary::{CalibrationSummary, DefaultCalibrationSummary};

use flock_graph::{Mask, Topology, Triple};
use flock_walk::{Key, Order, WalkQuery};
use serde::{Deserialize, Serialize};

use crate::passes::GoOn;
use crate::ranking::{Listing, Ranking};
use flock_model::checkpoint::Task;
use flock_model::ensemble::{Ask, Asker, combine};
use flock_model::hide::{Hide, hidden};
use flock_model::model::{Model, View};

/// How a calibration is made.
#[derive(Copy, Clone, Debug)]
pub struct CalibrateOptions {
    /// How many triples are held out, at most; never more than a tenth of the graph (but at least one).
    pub queries: usize,
    /// How many candidates of each question count.
    pub top: usize,
}

impl Default for CalibrateOptions {
    fn default() -> CalibrateOptions {
        CalibrateOptions { queries: 200, top: 10 }
    }
}

/// What a model's logits mean on one graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// SHA-256 of the model's checkpoint.
    pub model: String,
    /// Entities, relations and triples of the graph. Files from before this was kept have none.
    #[serde(default)]
    pub graph: Option<[u64; 3]>,
    /// Base walk count `n` it was made with.
    pub walks: u32,
    /// Passes it was made with.
    pub passes: u32,
    /// Questions asked.
    pub queries: usize,
    /// Candidates looked at.
    pub samples: usize,
    /// How many of them were true.
    pub positives: usize,
    /// Expected calibration error of σ(logit).
    pub error_before: f64,
    /// Expected calibration error of the map, on questions it was not fitted to.
    pub error_after: f64,
    /// True answers of a question that no walk reached, in the mean. Files from before this was kept have none.
    #[serde(default)]
    pub missed: Option<f64>,
    /// The map.
    pub map: Isotonic,
}

/// Why a calibration does not hold for a question.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Another model has other logits.
    #[error("the calibration is of another model, not used")]
    Model,
    /// Another graph has other shares of true answers.
    #[error("the calibration is of a graph of another size, not used")]
    Graph,
    /// Fewer walks reach less and see less of it.
    #[error("the calibration was made with n = {made}, not used with n = {asked}")]
    Walks {
        /// Base walk count of the calibration.
        made: u32,
        /// Base walk count of the question.
        asked: u32,
    },
    /// The mean of several passes is nearer the middle than one.
    #[error("the calibration was made with {made} passes, not used with {asked}")]
    Passes {
        /// Passes of the calibration.
        made: u32,
        /// Passes of the question.
        asked: u32,
    },
}

impl Calibration {
    /// Whether it holds for a question that is asked of this model (by hash), on this graph, in this way.
    pub fn check(&self, model: &str, topology: &Topology, walks: u32, passes: u32) -> Result<(), Unfit> {
        if self.model != model {
            Err(Unfit::Model)
        } else if !self.is_of(topology) {
            Err(Unfit::Graph)
        } else if self.walks != walks {
            Err(Unfit::Walks { made: self.walks, asked: walks })
        } else if self.passes != passes {
            Err(Unfit::Passes { made: self.passes, asked: passes })
        } else {
            Ok(())
        }
    }

    /// Whether the graph is about the one it was made on: a tenth more or less of everything is the same graph, edited.
    pub fn is_of(&self, topology: &Topology) -> bool {
        let near = |(a, b): (u64, u64)| 10 * a.abs_diff(b) <= a.max(b);
        self.graph.is_none_or(|sizes| sizes.into_iter().zip(sizes_of(topology)).all(near))
    }
}

fn sizes_of(topology: &Topology) -> [u64; 3] {
    [topology.num_nodes().into(), topology.num_relations().into(), topology.num_triples() as u64]
}

/// A calibration and the bins of its diagram.
#[derive(Clone, Debug)]
pub struct CalibrationReport {
    /// What is kept.
    pub calibration: Calibration,
    /// Reliability of σ(logit).
    pub before: [Bin; 10],
    /// Reliability of the map, crosswise.
    pub after: [Bin; 10],
}

/// What became of held-out triples that were asked for.
#[derive(Clone, Debug)]
pub struct HeldOut {
    model: String,   // SHA-256 of the checkpoint
    sizes: [u64; 3], // of the graph
    walks: u32,
    passes: u32,
    samples: Vec<Vec<(f64, bool)>>, // per question: logit of a listed candidate, and whether it is true
    missed: usize,                  // true answers that no walk reached, of all questions
}

/// Hides triples of a graph and asks for them. `progress` is told how many questions are done, of how many; if it answers false
/// the rest is left and there is no result. Goes on as long as `go_on`, which is looked at before each pass.
pub fn hold_out(
    go_on: GoOn<'_>,
    model: &Model,
    topology: &Topology,
    pool: &rayon::ThreadPool,
    options: &CalibrateOptions,
    ask: Ask,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Option<HeldOut>, CalibrationError> {
    let task = model.meta().task;
    let triples = topology.num_triples();
    let held = options.queries.min((triples / 10).max(1));
    // A pass number that no walk has, so that the choice and the walks share nothing.
    let order = Order::new(Key { seed: ask.seed, pass: u32::MAX, update: 0, query: 0 }, triples as u64);
    let held: Vec<Triple> = (0..held as u64).map(|k| topology.triple(order.get(k) as u32)).collect();
    let mask = Mask::new(topology, &hidden(topology, &held, task, Hide::Asked));
    let asker = Asker::new(model, View { topology, mask: Some(&mask) }, pool);

    let queries: Vec<WalkQuery> = held.iter().enumerate().map(|(i, t)| question(topology, task, *t, i)).collect();
    let (mut samples, mut missed): (Vec<Vec<(f64, bool)>>, usize) = (Vec::new(), 0);
    for chunk in queries.chunks(4 * pool.current_num_threads()) {
        for (query, passes) in chunk.iter().zip(asker.ask_passes_while(chunk, ask, go_on)?) {
            let scores = combine(&passes);
            let (answers, candidates) = answers(topology, query);
            let seen: Vec<u32> = answers.iter().filter(|(_, id)| !mask.hides(*id)).map(|(a, _)| *a).collect();
            let listing = Listing { top: options.top, only_new: true, among: None };
            let ranking = Ranking::new(&scores, candidates, &seen, &listing)?;
            let truth = |id: u32| answers.binary_search_by_key(&id, |a| a.0).is_ok();
            samples.push(ranking.answers.iter().map(|a| (a.score.logit, truth(a.id))).collect());
            let reached = |id: u32| scores.reached.binary_search_by_key(&id, |r| r.0).is_ok();
            missed += answers.iter().filter(|(a, id)| mask.hides(*id) && !reached(*a)).count();
        }
        if !progress(samples.len(), queries.len()) {
            return Ok(None);
        }
    }
    let found = samples.iter().map(Vec::len).sum();
    const LEAST: usize = 40;
    if found < LEAST {
        return Err(CalibrationError::TooFew { found, expected: LEAST, triples });
    }
    Ok(Some(HeldOut {
        model: model.hash().to_string(),
        sizes: sizes_of(topology),
        walks: ask.walks,
        passes: ask.passes,
        samples,
        missed,
    }))
}

/// Calibrates a model on a graph. The arguments are those of [`hold_out`].
pub fn calibrate(
    go_on: GoOn<'_>,
    model: &Model,
    topology: &Topology,
    pool: &rayon::ThreadPool,
    options: &CalibrateOptions,
    ask: Ask,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Option<CalibrationReport>, CalibrationError> {
    Ok(hold_out(go_on, model, topology, pool, options, ask, progress)?.map(|held| held.report()))
}

impl HeldOut {
    /// All samples, of whichever question.
    fn all(&self) -> impl Iterator<Item = (f64, bool)> + '_ {
        self.samples.iter().flatten().copied()
    }

    /// True answers that no walk reached, for each question. The half keeps a few lucky questions from making it nothing.
    fn missed(&self) -> f64 {
        (self.missed as f64 + 0.5) / (self.samples.len() as f64 + 1.0)
    }

    /// Reliability of σ(logit).
    fn before(&self) -> [Bin; 10] {
        bins(self.all().map(|(logit, truth)| (sigmoid(logit), truth)))
    }

    /// The calibration of this graph.
    pub fn report(&self) -> CalibrationReport {
        let half =
            |odd: usize| -> Vec<(f64, bool)> { self.samples.iter().skip(odd).step_by(2).flatten().copied().collect() };
        let halves = [half(0), half(1)];
        let crosswise = |i: usize| {
            let map = Isotonic::fit(&halves[1 - i]);
            halves[i].iter().map(move |(logit, truth)| (map.at(*logit), *truth))
        };
        let before = self.before();
        let after = bins(crosswise(0).chain(crosswise(1)));
        let all: Vec<(f64, bool)> = self.all().collect();
        let calibration = Calibration {
            model: self.model.clone(),
            graph: Some(self.sizes),
            walks: self.walks,
            passes: self.passes,
            queries: self.samples.len(),
            samples: all.len(),
            positives: all.iter().filter(|s| s.1).count(),
            error_before: expected_error(&before),
            error_after: expected_error(&after),
            missed: Some(self.missed()),
            map: Isotonic::fit(&all),
        };
        CalibrationReport { calibration, before, after }
    }
}

/// What a score is before anything is known of the graph.
pub(crate) fn sigmoid(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Tails and heads are asked for in turns.
fn question(topology: &Topology, task: Task, t: Triple, i: usize) -> WalkQuery {
    match task {
        Task::Relation => WalkQuery::Relation { head: t.head, tail: t.tail },
        Task::Entity if i.is_multiple_of(2) => WalkQuery::Entity { head: t.head, relation: t.relation },
        Task::Entity => WalkQuery::Entity { head: t.tail, relation: topology.inverse(t.relation) },
    }
}

/// The true answers, ascending, each with its triple's id; and the number of candidates.
fn answers(topology: &Topology, query: &WalkQuery) -> (Vec<(u32, u32)>, u32) {
    let id = |head, relation, tail| topology.triple_id(Triple { head, relation, tail });
    match *query {
        WalkQuery::Entity { head, relation } => {
            let raw = relation < topology.num_relations();
            let of = |other| match raw {
                true => id(head, relation, other),
                false => id(other, topology.inverse(relation), head),
            };
            (topology.answers(head, relation).filter_map(|a| Some((a, of(a)?))).collect(), topology.num_nodes())
        }
        WalkQuery::Relation { head, tail } => {
            let relations = topology.relations_between(head, tail);
            (relations.into_iter().filter_map(|r| Some((r, id(head, r, tail)?))).collect(), topology.num_relations())
        }
    }
}
