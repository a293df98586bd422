//! An explanation by name, as it is printed, drawn and sent.

use flock_graph::{Graph, Mask, Triple};
use serde::Serialize;
use std::collections::BTreeMap;

use super::{Deletion, ExplainOptions, GoOn, Reason, delete, evidence};
use crate::calibrate::{
    CalibrationSummary, DefaultCalibrationSummary, Probabilities, ProbabilitySource, UnreachedScore,
};
use crate::question::{BLANK, Question};
use crate::shown::{NameLabels, ShownNames, name_labels, shown_ids, shown_names};
use flock_model::ensemble::Ask;
use flock_model::model::{Model, ModelError, View};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepReport<'a> {
    /// The relation.
    pub relation: &'a str,
    /// Whether the edge points along the path.
    pub forward: bool,
    /// The entity it leads to.
    pub to: &'a str,
}

/// The paths from the query to the answer that have the same relations in the same directions, and one of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReasonReport<'a> {
    /// The share of all its paths in the consensus at the answer, from 0 to 1.
    pub share: f64,
    /// At how many positions of the walks they were found.
    pub count: u32,
    /// How many different paths there are. The one that weighs most is given by its steps.
    pub paths: usize,
    /// Where that path begins: an entity of the query.
    pub start: &'a str,
    /// Its steps.
    pub steps: Vec<StepReport<'a>>,
}

impl<'a> ReasonReport<'a> {
    /// The reason by names.
    pub fn new(graph: &'a Graph, reason: &Reason) -> ReasonReport<'a> {
        let Reason { path, share, count, others } = reason;
        let entity = |id| graph.entities().get(id);
        let steps = path.steps().map(|(triple, forward, to)| StepReport {
            relation: graph.relations().get(triple.relation),
            forward,
            to: entity(to),
        });
        ReasonReport {
            share: *share,
            count: *count,
            paths: 1 + others.len(),
            start: entity(path.start),
            steps: steps.collect(),
        }
    }

    /// Every name of the path.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        std::iter::once(self.start).chain(self.steps.iter().flat_map(|step| [step.relation, step.to]))
    }

    /// `friendOf · taught⁻¹`: the relations of its paths, each name as `show` gives it. `⁻¹` is a step from tail to head.
    pub fn pattern(&self, show: impl Fn(&str) -> String) -> String {
        let step = |step: &StepReport<'_>| show(step.relation) + if step.forward { "" } else { "⁻¹" };
        self.steps.iter().map(step).collect::<Vec<_>>().join(" · ")
    }

    /// `Luke —friendOf→ Yoda ←taught— Obi-Wan`, each name as `show` gives it.
    pub fn line(&self, show: impl Fn(&str) -> String) -> String {
        show(self.start) + &arrows(&self.steps, show)
    }

    /// The same in short: of a long path its first and its last two steps; and of how many paths it is one.
    pub fn brief(&self, show: impl Fn(&str) -> String + Copy) -> String {
        const MOST: usize = 5;
        let path = match self.steps.len() {
            n if n > MOST => {
                let (first, last) = (arrows(&self.steps[..2], show), arrows(&self.steps[n - 2..], show));
                format!("{}{first} … {} steps …{last}", show(self.start), n - 4)
            }
            _ => self.line(show),
        };
        if self.paths > 1 { format!("{path} (1 of {} paths)", self.paths) } else { path }
    }
}

fn arrows(steps: &[StepReport<'_>], show: impl Fn(&str) -> String) -> String {
    let arrow = |step: &StepReport<'_>| match (show(step.relation), show(step.to)) {
        (relation, to) if step.forward => format!(" —{relation}→ {to}"),
        (relation, to) => format!(" ←{relation}— {to}"),
    };
    steps.iter().map(arrow).collect()
}

/// What became of the answer when edges were hidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeletionReport<'a> {
    /// The edges of the best reasons: head, relation, tail.
    pub edges: Vec<[&'a str; 3]>,
    /// How far the logit fell without them.
    pub fall: f64,
    /// How far it fell without as many random edges around the same entities, in several draws.
    pub random: Vec<f64>,
    /// The mean of these.
    pub random_mean: Option<f64>,
}

/// Why an answer has its score.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation<'a> {
    /// Head, relation and tail, `?` for what was asked.
    pub query: [&'a str; 3],
    /// The answer that is explained.
    pub answer: &'a str,
    /// Its mean logit over the passes.
    pub logit: f64,
    /// σ of that logit, or what a calibration makes of it.
    pub probability: f64,
    /// What the probability is: `score` (σ of the logit, not calibrated), `default` (by the model's default calibration) or `graph`
    /// (by a calibration of this graph).
    pub probability_from: ProbabilitySource,
    /// The calibration of this graph, if the probability comes from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationSummary>,
    /// The default calibration of the model, if the probability comes from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_calibration: Option<DefaultCalibrationSummary>,
    /// Why the calibration of this graph was not used, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_unused: Option<String>,
    /// Whether the graph has the triple; it is then hidden from the walks.
    pub known: bool,
    /// Positions at the answer.
    pub positions: u32,
    /// The share of the weight that lies on walks which met the query.
    pub joined: f64,
    /// The best reasons, by share × brevity (one over the number of steps).
    pub reasons: Vec<ReasonReport<'a>>,
    /// How many different paths there are in all.
    pub distinct: usize,
    /// The most hops of a listed path; if all are longer, the shortest are listed.
    pub max_hops: usize,
    /// How many of the paths are too long to be listed.
    pub longer: usize,
    /// Their share of the consensus at the answer.
    pub longer_share: f64,
    /// The check by deletion, unless it was left out.
    pub deletion: Option<DeletionReport<'a>>,
    /// How many of the last updates were looked at.
    pub updates: usize,
    /// Ensemble passes.
    pub passes: u32,
    /// Base walk count `n`.
    pub walks: u32,
    /// Seed of the walks.
    pub seed: u64,
    /// How names of this explanation are shown, where that is not the full name: by their label, or IRIs by their prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shown: ShownNames<'a>,
    /// The labels of its names, where there are any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: NameLabels<'a>,
    #[serde(skip)]
    unreached: UnreachedScore,
}

impl<'a> Explanation<'a> {
    /// A name of this explanation as people read it.
    pub fn show<'n>(&'n self, name: &'n str) -> &'n str {
        self.shown.get(name).map_or(name, String::as_str)
    }

    /// The same with [`Explanation::shown`] and [`Explanation::labels`] filled in. With `ids` no labels are shown.
    pub(crate) fn with_shown_names(mut self, graph: &'a Graph, ids: bool) -> Explanation<'a> {
        let question = self.query.into_iter().filter(|name| *name != BLANK).chain([self.answer]);
        let edges = self.deletion.iter().flat_map(|d| d.edges.iter().flatten().copied());
        let all: Vec<&str> = question.chain(self.reasons.iter().flat_map(ReasonReport::names)).chain(edges).collect();
        let names = all.iter().copied();
        self.shown = if ids { shown_ids(graph, names) } else { shown_names(graph, names) };
        self.labels = name_labels(graph, all);
        self
    }

    /// The same with another probability.
    pub(crate) fn with_probability(mut self, by: &Probabilities<'_>) -> Explanation<'a> {
        self.probability = by.at(self.logit, self.unreached);
        self.probability_from = by.source();
        self.calibration = by.of_graph().map(Into::into);
        self.default_calibration = by.of_default().map(Into::into);
        self.calibration_unused = by.unused().map(|unfit| unfit.to_string());
        self
    }
}

/// Explains why `answer` has its score for `question`, as `options` say.
/// Goes on as long as `go_on`. Runs on the threads of the current pool.
pub fn explain<'a>(
    go_on: GoOn<'_>,
    model: &Model,
    graph: &'a Graph,
    question: &Question,
    answer: u32,
    ask: Ask,
    options: &ExplainOptions,
) -> Result<Explanation<'a>, ModelError> {
    let topology = graph.topology();
    let itself = question.triple(topology, answer);
    let known = topology.triple_id(itself).is_some();
    let hidden: &[Triple] = if known { &[itself] } else { &[] };
    let mask = Mask::new(topology, hidden);
    let view = View { topology, mask: Some(&mask) };
    let found = evidence(go_on, model, view, &question.query, ask, &[answer], options)?;
    let unreached = UnreachedScore {
        logit: found.unreached.logit,
        count: question.num_candidates(topology).saturating_sub(found.reached),
    };
    let Some((score, found)) = found.answers.into_iter().next() else {
        // One answer was asked about, so one came.
        return Err(ModelError::OutOfRange { what: "answer", id: answer, count: 0 });
    };
    let deletion = if options.check {
        let scored = (answer, score);
        Some(delete(go_on, model, topology, &question.query, ask, scored, &found.reasons, hidden, options)?)
    } else {
        None
    };
    let named = |d: Deletion| DeletionReport {
        edges: d.edges.iter().map(|t| names(graph, *t)).collect(),
        fall: d.fall,
        random_mean: (!d.random.is_empty()).then(|| d.random.iter().sum::<f64>() / d.random.len() as f64),
        random: d.random,
    };
    Ok(Explanation {
        query: question.names(graph),
        answer: question.answer_name(graph, answer),
        logit: score.logit,
        probability: score.probability(),
        probability_from: ProbabilitySource::Score,
        calibration: None,
        default_calibration: None,
        calibration_unused: None,
        known,
        positions: found.positions,
        joined: found.joined,
        distinct: found.paths,
        max_hops: options.max_hops,
        longer: found.longer,
        longer_share: found.longer_share,
        reasons: found.reasons.iter().take(options.top).map(|r| ReasonReport::new(graph, r)).collect(),
        deletion: deletion.map(named),
        updates: options.updates.clamp(1, model.updates().len()),
        passes: ask.passes.max(1),
        walks: ask.walks,
        seed: ask.seed,
        shown: ShownNames::new(),
        labels: NameLabels::new(),
        unreached,
    })
}

fn names(graph: &Graph, t: Triple) -> [&str; 3] {
    [graph.entities().get(t.head), graph.relations().get(t.relation), graph.entities().get(t.tail)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ways_are_cut_in_the_middle() {
        let names = ["b", "c", "d", "e", "f", "g"];
        let step = |i: usize| StepReport { relation: "r", forward: i.is_multiple_of(2), to: names[i] };
        let reason =
            |n: usize| ReasonReport { share: 0.1, count: 1, paths: 1, start: "a", steps: (0..n).map(step).collect() };
        let plain = |name: &str| name.to_string();
        assert_eq!(reason(2).brief(plain), "a —r→ b ←r— c");
        assert_eq!(reason(5).brief(plain), reason(5).line(plain));
        assert_eq!(reason(6).brief(plain), "a —r→ b ←r— c … 2 steps … —r→ f ←r— g");
        let several = ReasonReport { paths: 12, ..reason(2) };
        assert_eq!(several.brief(plain), "a —r→ b ←r— c (1 of 12 paths)");
        assert_eq!((several.line(plain), several.pattern(plain)), (reason(2).line(plain), "r · r⁻¹".to_string()));
    }
}
