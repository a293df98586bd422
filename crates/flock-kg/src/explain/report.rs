//! An explanation by name, as it is printed, drawn and sent.

use flock_graph::{Graph, Mask, Topology, Triple};
use serde::Serialize;
use std::collections::BTreeMap;

use super::{Deletion, Evidence, ExplainOptions, GoOn, Path, delete, evidence};
use crate::calibrate::{Calibration, CalibrationSummary};
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

/// A path from the query to the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReasonReport<'a> {
    /// Its share of the consensus at the answer, from 0 to 1.
    pub share: f64,
    /// At how many positions of the walks it was found.
    pub count: u32,
    /// Where it begins: an entity of the query.
    pub start: &'a str,
    /// Its steps.
    pub steps: Vec<StepReport<'a>>,
}

impl<'a> ReasonReport<'a> {
    /// The path by names.
    pub fn new(graph: &'a Graph, path: &Path, share: f64, count: u32) -> ReasonReport<'a> {
        let entity = |id| graph.entities().get(id);
        let steps = path.steps().map(|(triple, forward, to)| StepReport {
            relation: graph.relations().get(triple.relation),
            forward,
            to: entity(to),
        });
        ReasonReport { share, count, start: entity(path.start), steps: steps.collect() }
    }

    /// Every name of the path.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        std::iter::once(self.start).chain(self.steps.iter().flat_map(|step| [step.relation, step.to]))
    }

    /// `Luke —friendOf→ Yoda ←taught— Obi-Wan`, each name as `show` gives it.
    pub fn line(&self, show: impl Fn(&str) -> String) -> String {
        show(self.start) + &arrows(&self.steps, show)
    }

    /// The same in short: of a long path its first and its last two steps.
    pub fn brief(&self, show: impl Fn(&str) -> String + Copy) -> String {
        const MOST: usize = 5;
        match self.steps.len() {
            n if n > MOST => {
                let (first, last) = (arrows(&self.steps[..2], show), arrows(&self.steps[n - 2..], show));
                format!("{}{first} … {} steps …{last}", show(self.start), n - 4)
            }
            _ => self.line(show),
        }
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
    /// What the probability comes from, if not from σ(logit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationSummary>,
    /// Why the calibration of this graph was not used, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_unused: Option<String>,
    /// Whether the graph has the triple; it is then hidden from the walks.
    pub known: bool,
    /// Positions at the answer.
    pub positions: u32,
    /// The share of the weight that lies on walks which met the query.
    pub joined: f64,
    /// The best reasons.
    pub reasons: Vec<ReasonReport<'a>>,
    /// How many different reasons there are in all.
    pub distinct: usize,
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

    /// The same with the probability of a calibration, if it was made as this was asked; else with the reason why not.
    pub fn calibrated(mut self, by: &Calibration, model: &Model, topology: &Topology) -> Explanation<'a> {
        match by.check(model.hash(), topology, self.walks, self.passes) {
            Ok(()) => {
                self.probability = by.map.at(self.logit);
                self.calibration = Some(by.into());
            }
            Err(unfit) => self.calibration_unused = Some(unfit.to_string()),
        }
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
    let Some((score, Evidence { reasons, positions, joined })) = found.into_iter().next() else {
        // One answer was asked about, so one came.
        return Err(ModelError::OutOfRange { what: "answer", id: answer, count: 0 });
    };
    let deletion = if options.check {
        let found = (answer, score);
        Some(delete(go_on, model, topology, &question.query, ask, found, &reasons, hidden, options)?)
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
        calibration: None,
        calibration_unused: None,
        known,
        positions,
        joined,
        distinct: reasons.len(),
        reasons: reasons
            .iter()
            .take(options.top)
            .map(|r| ReasonReport::new(graph, &r.path, r.share, r.count))
            .collect(),
        deletion: deletion.map(named),
        updates: options.updates.clamp(1, model.updates().len()),
        passes: ask.passes.max(1),
        walks: ask.walks,
        seed: ask.seed,
        shown: ShownNames::new(),
        labels: NameLabels::new(),
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
        let reason = |n: usize| ReasonReport { share: 0.1, count: 1, start: "a", steps: (0..n).map(step).collect() };
        let plain = |name: &str| name.to_string();
        assert_eq!(reason(2).brief(plain), "a —r→ b ←r— c");
        assert_eq!(reason(5).brief(plain), reason(5).line(plain));
        assert_eq!(reason(6).brief(plain), "a —r→ b ←r— c … 2 steps … —r→ f ←r— g");
    }
}
