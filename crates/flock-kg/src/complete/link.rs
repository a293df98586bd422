//! A missing link by name: one row of the list.

use std::collections::BTreeMap;

use flock_graph::Graph;
use flock_model::ModelName;
use serde::{Deserialize, Serialize};

use super::{Candidate, CompletionProgress, SideScore};
use crate::calibrate::ProbabilitySource;
use crate::explain::ReasonReport;
use crate::shown::ShownNames;

/// From which ends a link was asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Sides {
    /// As the tail of (head, relation, ?) and as the head of (?, relation, tail).
    Both,
    /// As a tail only.
    Tail,
    /// As a head only.
    Head,
}

impl Sides {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Sides::Both => "both",
            Sides::Tail => "tail",
            Sides::Head => "head",
        }
    }
}

/// A link that the graph does not have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Link<'a> {
    /// Its place in the list, from 1.
    pub rank: usize,
    /// The head's full name.
    pub head: &'a str,
    /// The relation's full name.
    pub relation: &'a str,
    /// The tail's full name.
    pub tail: &'a str,
    /// The head's label, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_label: Option<&'a str>,
    /// The relation's label, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation_label: Option<&'a str>,
    /// The tail's label, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_label: Option<&'a str>,
    /// The mean logit of the sides.
    pub logit: f64,
    /// σ of that logit, or what a calibration makes of it.
    pub probability: f64,
    /// The share of the odds among all answers, as the geometric mean of the sides: high for links that are particular to this head
    /// and this tail.
    pub specificity: f64,
    /// From which ends it was asked for.
    pub sides: Sides,
    /// The logit of the tail.
    pub tail_logit: Option<f64>,
    /// The rank of the tail among all that the graph does not have for this head.
    pub tail_rank: Option<u32>,
    /// The logit of the head.
    pub head_logit: Option<f64>,
    /// The rank of the head among all that the graph does not have for this tail.
    pub head_rank: Option<u32>,
    /// The path with the largest share from head to tail, if reasons were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonReport<'a>>,
}

/// The best missing links so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Links<'a> {
    /// The best first.
    pub links: Vec<Link<'a>>,
    /// How far the work is.
    pub progress: CompletionProgress,
    /// Seed of the walks.
    pub seed: u64,
    /// Base walk count `n`.
    pub walks: u32,
    /// Ensemble passes.
    pub passes: u32,
    /// The model.
    pub model: ModelName,
    /// What the probabilities are: `score` (σ of the logit, not calibrated), `default` (by the model's default calibration) or
    /// `graph` (by a calibration of this graph).
    pub probability_from: ProbabilitySource,
    /// Why the calibration of this graph was not used, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_unused: Option<String>,
    /// How names of this reply are shown, where that is not the full name: by their label, or IRIs by their prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shown: ShownNames<'a>,
}

impl<'a> Link<'a> {
    /// Names a candidate. `probability` makes one of a logit.
    pub(super) fn new(graph: &'a Graph, rank: usize, c: &Candidate, probability: impl Fn(f64) -> f64) -> Link<'a> {
        let flock_graph::Triple { head, relation, tail } = c.triple;
        let (labels, logit) = (graph.labels(), c.logit());
        let sides = match (c.as_tail, c.as_head) {
            (Some(_), Some(_)) => Sides::Both,
            (None, Some(_)) => Sides::Head,
            _ => Sides::Tail,
        };
        let of = |side: Option<SideScore>| (side.map(|s| s.logit), side.map(|s| s.rank));
        let ((tail_logit, tail_rank), (head_logit, head_rank)) = (of(c.as_tail), of(c.as_head));
        Link {
            rank,
            head: graph.entities().get(head),
            relation: graph.relations().get(relation),
            tail: graph.entities().get(tail),
            head_label: labels.entity(head),
            relation_label: labels.relation(relation),
            tail_label: labels.entity(tail),
            logit,
            probability: probability(logit),
            specificity: c.specificity(),
            sides,
            tail_logit,
            tail_rank,
            head_logit,
            head_rank,
            reason: None,
        }
    }

    /// Head, relation and tail by their full names.
    pub fn triple(&self) -> [&'a str; 3] {
        [self.head, self.relation, self.tail]
    }
}

impl Links<'_> {
    /// Whether people should read the probabilities: if they come from a calibration of this graph. The default calibration of a model is
    /// made for single questions, and says too little of links that were picked from many.
    pub fn is_calibrated(&self) -> bool {
        self.probability_from == ProbabilitySource::Graph
    }
}
