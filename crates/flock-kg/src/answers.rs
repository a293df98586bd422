//! Answers by name: what a question gets back, and one line of JSON output.

use std::collections::BTreeMap;

use flock_graph::Graph;
use flock_model::ModelName;
use flock_model::checkpoint::Task;
use flock_model::ensemble::{Ask, NotFinite, Scores};
use serde::Serialize;

use crate::calibrate::{
    CalibrationSummary, DefaultCalibrationSummary, Probabilities, ProbabilitySource, UnreachedScore,
};
use crate::candidates::UnknownCandidates;
use crate::explain::{Evidence, ReasonReport};
use crate::passes::StopReason;
use crate::question::{BLANK, Question};
use crate::ranking::{Listing, RankedCandidate, Ranking, UnreachedCandidates};
use crate::shown::{NameLabels, ShownNames, name_labels, shown_ids, shown_names};

/// An answer by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Answer<'a> {
    /// 1 + the number of candidates with a strictly higher logit.
    pub rank: u32,
    /// The entity or raw relation.
    #[serde(skip)]
    pub id: u32,
    /// The full name.
    pub name: &'a str,
    /// What people call it, if the graph says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
    /// Mean logit over the passes.
    pub logit: f64,
    /// What [`Answers::probability_from`] makes of that logit: σ of it, or a calibrated probability.
    pub probability: f64,
    /// Standard deviation of the logit over the passes; none for one pass.
    pub spread: Option<f64>,
    /// Positions at which walks stood on it, over all passes and updates. Not counted for relations.
    pub visits: Option<u32>,
    /// Whether the graph already has it.
    pub known: bool,
    /// The best reason for it by share × brevity, if reasons were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonReport<'a>>,
}

/// A question and its answers by name: one line of JSON output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Answers<'a> {
    /// Head, relation and tail, `?` for what was asked.
    pub query: [&'a str; 3],
    /// The best answers.
    pub answers: Vec<Answer<'a>>,
    /// The candidates that no walk reached.
    pub unreached: UnreachedCandidates,
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
    pub model: ModelName,
    /// Why there are no more passes, if there was a budget: `time`, `steady` or `passes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopReason>,
    /// What the probabilities are: `score` (σ of the logit, not calibrated), `default` (by the model's default calibration) or
    /// `graph` (by a calibration of this graph).
    pub probability_from: ProbabilitySource,
    /// The calibration of this graph, if the probabilities come from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationSummary>,
    /// The default calibration of the model, if the probabilities come from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_calibration: Option<DefaultCalibrationSummary>,
    /// Why the calibration of this graph was not used, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_unused: Option<String>,
    /// Names of the list of candidates that the graph does not have, if there are any; they were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_candidates: Option<UnknownCandidates>,
    /// How names of this reply are shown, where that is not the full name: by their label, or IRIs by their prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shown: ShownNames<'a>,
    /// The labels of the names in the question and in the reasons, where there are any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: NameLabels<'a>,
}

impl<'a> Answers<'a> {
    /// Ranks the scores of a question and names what they are about.
    pub(crate) fn new(
        graph: &'a Graph,
        question: &Question,
        scores: &Scores,
        listing: &Listing<'_>,
        ask: &Ask,
        model: &ModelName,
    ) -> Result<Answers<'a>, NotFinite> {
        let topology = graph.topology();
        let ranking = Ranking::new(scores, question.num_candidates(topology), &question.known(topology), listing)?;
        let named = |a: &RankedCandidate| Answer {
            rank: a.rank,
            id: a.id,
            name: question.answer_name(graph, a.id),
            label: question.answer_label(graph, a.id),
            logit: a.score.logit,
            probability: a.score.probability(),
            spread: (ask.passes > 1).then_some(a.score.spread),
            visits: (question.task() == Task::Entity).then_some(a.score.visits),
            known: a.known,
            reason: None,
        };
        Ok(Answers {
            query: question.names(graph),
            answers: ranking.answers.iter().map(named).collect(),
            unreached: ranking.unreached,
            candidates: ranking.candidates,
            coverage: ranking.coverage(),
            seed: ask.seed,
            walks: ask.walks,
            passes: ask.passes,
            model: model.clone(),
            stopped: None,
            probability_from: ProbabilitySource::Score,
            calibration: None,
            default_calibration: None,
            calibration_unused: None,
            unknown_candidates: None,
            shown: ShownNames::new(),
            labels: NameLabels::new(),
        })
    }

    /// The same with other probabilities. Ranks and the order of answers stay: they are by logit.
    pub(crate) fn with_probabilities(mut self, by: &Probabilities<'_>, unreached: UnreachedScore) -> Answers<'a> {
        self.answers.iter_mut().for_each(|a| a.probability = by.at(a.logit, unreached));
        self.unreached.probability = by.at(self.unreached.logit, unreached);
        self.probability_from = by.source();
        self.calibration = by.of_graph().map(Into::into);
        self.default_calibration = by.of_default().map(Into::into);
        self.calibration_unused = by.unused().map(|unfit| unfit.to_string());
        self
    }

    /// The same with a reason for each answer that has one. `evidence` is that of the answers, in their order.
    pub(crate) fn with_reasons(mut self, graph: &'a Graph, evidence: &[Evidence]) -> Answers<'a> {
        for (answer, evidence) in self.answers.iter_mut().zip(evidence) {
            let best = evidence.reasons.iter().find(|r| r.path.hops() > 0);
            answer.reason = best.map(|r| ReasonReport::new(graph, r));
        }
        self
    }

    /// The same with [`Answers::shown`] and [`Answers::labels`] filled in. With `ids` no labels are shown.
    pub(crate) fn with_shown_names(mut self, graph: &'a Graph, ids: bool) -> Answers<'a> {
        let question = self.query.into_iter().filter(|name| *name != BLANK);
        let reasons = self.answers.iter().filter_map(|a| a.reason.as_ref()).flat_map(ReasonReport::names);
        let about: Vec<&str> = question.chain(reasons).collect();
        let all = about.iter().copied().chain(self.answers.iter().map(|a| a.name));
        self.shown = if ids { shown_ids(graph, all) } else { shown_names(graph, all) };
        self.labels = name_labels(graph, about);
        self
    }

    /// The best `k` answers, the best first.
    pub fn top(&self, k: usize) -> &[Answer<'a>] {
        &self.answers[..k.min(self.answers.len())]
    }

    /// A name of this reply as people read it.
    pub fn show<'n>(&'n self, name: &'n str) -> &'n str {
        self.shown.get(name).map_or(name, String::as_str)
    }
}

impl<'a> IntoIterator for Answers<'a> {
    type Item = Answer<'a>;
    type IntoIter = std::vec::IntoIter<Answer<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.answers.into_iter()
    }
}

impl<'r, 'a> IntoIterator for &'r Answers<'a> {
    type Item = &'r Answer<'a>;
    type IntoIter = std::slice::Iter<'r, Answer<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.answers.iter()
    }
}
