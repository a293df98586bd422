//! From scores to a ranked list of answers.
//!
//! **Candidates** are all entities (or all raw relations), the query's own entity among them, as in the published
//! protocol; or the ids of [`Request::among`]. With [`Request::novel`] the known answers are no candidates.
//!
//! **Rank** = 1 + the number of candidates with a strictly higher logit. Candidates of equal logit share the best rank.
//! Candidates that no walk reached share one logit, and so one rank; they count in the ranks of all others.
//!
//! The list has the candidates that were reached, or every id of `among`. Those not reached are counted, never
//! enumerated: the cost is that of the reached, whatever the size of the graph.

use flock_graph::{Graph, Topology};
use serde::Serialize;

use crate::calibrate::Calibration;
use crate::explain::{Evidence, ReasonReport};
use crate::question::Question;
pub use flock_model::ModelName;
use flock_model::checkpoint::Task;
pub use flock_model::ensemble::NotFinite;
use flock_model::ensemble::{Ask, Score, Scores};

/// Which candidates count, and how many are listed.
#[derive(Copy, Clone, Debug, Default)]
pub struct Request<'a> {
    /// At most so many answers are listed; 0 = all that were reached (or all of `among`).
    pub top: usize,
    /// Leaves the known answers out.
    pub novel: bool,
    /// The only candidates: distinct ids.
    pub among: Option<&'a [u32]>,
}

/// One candidate in its place.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Answer {
    /// 1 + the number of candidates with a strictly higher logit.
    pub rank: u32,
    /// The entity or raw relation.
    pub id: u32,
    /// Its score.
    pub score: Score,
    /// Whether a walk of some pass reached it.
    pub reached: bool,
    /// Whether the graph already has it.
    pub known: bool,
}

/// The candidates that no walk reached: all have the same score.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unreached {
    /// How many there are.
    pub count: u32,
    /// The logit they share.
    pub logit: f64,
    /// σ of that logit.
    pub probability: f64,
    /// The rank they share.
    pub rank: u32,
}

/// A ranked list.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// By descending logit; equal ones by ascending id.
    pub answers: Vec<Answer>,
    /// How many candidates there are, listed or not.
    pub candidates: u32,
    /// Those that no walk reached.
    pub unreached: Unreached,
}

impl Ranking {
    /// Ranks `num_candidates` candidates, `known` of them (ascending) known to be true.
    pub fn new(
        scores: &Scores,
        num_candidates: u32,
        known: &[u32],
        request: &Request<'_>,
    ) -> Result<Ranking, NotFinite> {
        let finite = |s: &Score| s.logit.is_finite() && s.spread.is_finite();
        if !(finite(&scores.unreached) && scores.reached.iter().all(|(_, s)| finite(s))) {
            return Err(NotFinite);
        }
        let find = |id: u32| scores.reached.binary_search_by_key(&id, |r| r.0).ok().map(|i| scores.reached[i].1);
        let answer = |id: u32, found: Option<Score>| {
            let (reached, score) = (found.is_some(), found.unwrap_or(scores.unreached));
            Answer { rank: 0, id, score, reached, known: known.binary_search(&id).is_ok() }
        };
        let mut answers: Vec<Answer> = match request.among {
            Some(among) => among.iter().map(|&id| answer(id, find(id))).collect(),
            None => scores.reached.iter().map(|&(id, score)| answer(id, Some(score))).collect(),
        };
        if request.novel {
            answers.retain(|a| !a.known);
        }
        let reached = answers.iter().filter(|a| a.reached).count() as u32;
        // What is a candidate but not in `answers`: counted here, and nowhere else.
        let (candidates, unlisted) = match request.among {
            Some(_) => (answers.len() as u32, 0),
            None => {
                let candidates = num_candidates - if request.novel { known.len() as u32 } else { 0 };
                (candidates, candidates - reached)
            }
        };
        let shared = scores.unreached.logit;
        let higher = answers.iter().filter(|a| a.score.logit > shared).count() as u32;
        let unreached = Unreached {
            count: candidates - reached,
            logit: shared,
            probability: scores.unreached.probability(),
            rank: 1 + higher,
        };

        let order = |a: &Answer, b: &Answer| b.score.logit.total_cmp(&a.score.logit).then(a.id.cmp(&b.id));
        if request.top > 0 && request.top < answers.len() {
            answers.select_nth_unstable_by(request.top, order);
            answers.truncate(request.top);
        }
        answers.sort_unstable_by(order);
        for i in 0..answers.len() {
            let logit = answers[i].score.logit;
            answers[i].rank = match i.checked_sub(1).map(|before| answers[before]) {
                Some(before) if before.score.logit == logit => before.rank,
                _ => 1 + i as u32 + if shared > logit { unlisted } else { 0 },
            };
        }
        Ok(Ranking { answers, candidates, unreached })
    }

    /// The share of candidates that a walk of some pass reached; 0 if there are no candidates.
    pub fn coverage(&self) -> f64 {
        f64::from(self.candidates - self.unreached.count) / f64::from(self.candidates.max(1))
    }
}

/// An answer by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedAnswer<'a> {
    /// 1 + the number of candidates with a strictly higher logit.
    pub rank: u32,
    /// The entity or raw relation.
    #[serde(skip)]
    pub id: u32,
    /// The full name.
    pub name: &'a str,
    /// Mean logit over the passes.
    pub logit: f64,
    /// σ of that logit.
    pub probability: f64,
    /// Standard deviation of the logit over the passes; none for one pass.
    pub spread: Option<f64>,
    /// Positions at which walks stood on it, over all passes and updates. Not counted for relations.
    pub visits: Option<u32>,
    /// Whether the graph already has it.
    pub known: bool,
    /// The weightiest way from the query to it, if reasons were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonReport<'a>>,
}

/// What makes a reply's probabilities: a map fitted to this graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalibratedBy {
    /// Expected calibration error of σ(logit), on held-out edges of the graph.
    pub error_before: f64,
    /// The same of the map.
    pub error_after: f64,
    /// Held-out edges asked about.
    pub queries: usize,
}

impl From<&Calibration> for CalibratedBy {
    fn from(by: &Calibration) -> CalibratedBy {
        let Calibration { error_before, error_after, queries, .. } = *by;
        CalibratedBy { error_before, error_after, queries }
    }
}

/// A question and its answers by name: one line of JSON output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reply<'a> {
    /// Head, relation and tail, `?` for what was asked.
    pub query: [&'a str; 3],
    /// The best answers.
    pub answers: Vec<NamedAnswer<'a>>,
    /// The candidates that no walk reached.
    pub unreached: Unreached,
    /// How many candidates there are, listed or not.
    pub candidates: u32,
    /// The share of candidates that a walk of some pass reached.
    pub coverage: f64,
    /// Seed of the walks.
    pub seed: u64,
    /// Base walk count `n`.
    pub walks: u32,
    /// Ensemble passes.
    pub passes: u32,
    /// The model.
    pub model: &'a ModelName,
    /// Why there are no more passes, if there was a budget: `time`, `steady` or `passes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
    /// What the probabilities come from, if not from σ(logit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibratedBy>,
    /// Why the calibration of this graph was not used, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_unused: Option<String>,
}

impl<'a> Reply<'a> {
    /// Ranks the scores of a question and names what they are about.
    pub fn new(
        graph: &'a Graph,
        question: &Question,
        scores: &Scores,
        request: &Request<'_>,
        ask: &Ask,
        model: &'a ModelName,
    ) -> Result<Reply<'a>, NotFinite> {
        let topology = graph.topology();
        let ranking = Ranking::new(scores, question.num_candidates(topology), &question.known(topology), request)?;
        let named = |a: &Answer| NamedAnswer {
            rank: a.rank,
            id: a.id,
            name: question.answer_name(graph, a.id),
            logit: a.score.logit,
            probability: a.score.probability(),
            spread: (ask.passes > 1).then_some(a.score.spread),
            visits: (question.task() == Task::Entity).then_some(a.score.visits),
            known: a.known,
            reason: None,
        };
        Ok(Reply {
            query: question.names(graph),
            answers: ranking.answers.iter().map(named).collect(),
            unreached: ranking.unreached,
            candidates: ranking.candidates,
            coverage: ranking.coverage(),
            seed: ask.seed,
            walks: ask.walks,
            passes: ask.passes,
            model,
            stopped: None,
            calibration: None,
            calibration_unused: None,
        })
    }

    /// The same with probabilities of a calibration, if it was made as this question was asked; else with the reason why not.
    pub fn calibrated(mut self, by: &Calibration, topology: &Topology) -> Reply<'a> {
        match by.check(&self.model.sha256, topology, self.walks, self.passes) {
            Ok(()) => {
                self.answers.iter_mut().for_each(|a| a.probability = by.map.at(a.logit));
                self.unreached.probability = by.map.at(self.unreached.logit);
                self.calibration = Some(by.into());
            }
            Err(unfit) => self.calibration_unused = Some(unfit.to_string()),
        }
        self
    }

    /// The same with a reason for each answer that has one. `evidence` is that of the answers, in their order.
    pub fn with_reasons(mut self, graph: &'a Graph, evidence: &[Evidence]) -> Reply<'a> {
        for (answer, evidence) in self.answers.iter_mut().zip(evidence) {
            let best = evidence.reasons.iter().find(|r| !r.path.triples.is_empty());
            answer.reason = best.map(|r| ReasonReport::new(graph, &r.path, r.share, r.count));
        }
        self
    }
}
