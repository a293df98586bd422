//! Which calibration holds for a question, and the probabilities it makes.

use flock_graph::Topology;
use serde::Serialize;

use super::{Calibration, DefaultCalibration, Isotonic, Unfit, sigmoid};

/// What a probability is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub enum ProbabilitySource {
    /// σ(logit): a score between 0 and 1, and no probability on any graph.
    #[default]
    Score,
    /// The model's default calibration, fitted to other graphs.
    Default,
    /// A calibration fitted to this graph.
    Graph,
}

impl ProbabilitySource {
    /// The word for it, as JSON has it.
    pub fn as_str(self) -> &'static str {
        match self {
            ProbabilitySource::Score => "score",
            ProbabilitySource::Default => "default",
            ProbabilitySource::Graph => "graph",
        }
    }

    /// The title of a column of these numbers: `score`, or `probability` if they are calibrated.
    pub fn title(self) -> &'static str {
        match self {
            ProbabilitySource::Score => "score",
            ProbabilitySource::Default | ProbabilitySource::Graph => "probability",
        }
    }
}

/// The candidates of a question that no walk reached.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct UnreachedScore {
    /// The logit they share.
    pub logit: f64,
    /// How many there are in the graph, whichever of them are ranked.
    pub count: u32,
}

/// How logits become probabilities for one question.
#[derive(Copy, Clone, Debug)]
pub struct Probabilities<'c> {
    by: By<'c>,
    unused: Option<Unfit>,
}

#[derive(Copy, Clone, Debug)]
enum By<'c> {
    Score,
    Default(&'c DefaultCalibration),
    Graph(&'c Calibration),
}

impl<'c> Probabilities<'c> {
    /// Decides for a question asked in a certain way: the calibration of the graph (`own`) if it was made in the same way, else the
    /// default calibration of the model (`default`, for about so many passes) if there are about as many walks as the model's own
    /// rule gives (`rule`), else σ(logit).
    pub(crate) fn choose(
        own: Option<&'c Calibration>,
        default: Option<&'c DefaultCalibration>,
        sha256: &str,
        topology: &Topology,
        rule: u32,
        walks: u32,
        passes: u32,
    ) -> Probabilities<'c> {
        let checked = own.map(|own| own.check(sha256, topology, walks, passes).map(|()| own));
        let unused = match checked {
            Some(Ok(own)) => return Probabilities { by: By::Graph(own), unused: None },
            Some(Err(unfit)) => Some(unfit),
            None => None,
        };
        // Twice or half as many walks as the rule gives change the logits no more than the next graph does.
        let near = 2 * u64::from(walks) >= u64::from(rule) && u64::from(walks) <= 2 * u64::from(rule);
        let default = default.filter(|_| near);
        Probabilities { by: default.map_or(By::Score, By::Default), unused }
    }

    /// What the numbers are.
    pub fn source(&self) -> ProbabilitySource {
        match self.by {
            By::Score => ProbabilitySource::Score,
            By::Default(_) => ProbabilitySource::Default,
            By::Graph(_) => ProbabilitySource::Graph,
        }
    }

    /// The calibration of the graph, if it makes the numbers.
    pub fn of_graph(&self) -> Option<&'c Calibration> {
        if let By::Graph(own) = self.by { Some(own) } else { None }
    }

    /// The default calibration of the model, if it makes the numbers.
    pub fn of_default(&self) -> Option<&'c DefaultCalibration> {
        if let By::Default(default) = self.by { Some(default) } else { None }
    }

    /// Why the calibration of the graph is not used, if there is one.
    pub fn unused(&self) -> Option<Unfit> {
        self.unused
    }

    /// The probability of a candidate. It never falls as the logit grows.
    ///
    /// What ranks no higher than the candidates that no walk reached is no likelier than one of them: the true answers that a
    /// question misses, shared out among all of those.
    pub fn at(&self, logit: f64, unreached: UnreachedScore) -> f64 {
        let (map, missed): (&Isotonic, Option<f64>) = match self.by {
            By::Score => return sigmoid(logit),
            By::Default(default) => (&default.map, Some(default.missed)),
            By::Graph(own) => (&own.map, own.missed),
        };
        let mapped = map.at(logit);
        match missed {
            Some(missed) if logit <= unreached.logit && unreached.count > 0 => {
                mapped.min(missed / f64::from(unreached.count))
            }
            _ => mapped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(missed: Option<f64>, logit: f64, unreached: UnreachedScore) -> f64 {
        // Knots at 0 and at 2: two of ten and eight of ten, with the half.
        let samples: Vec<(f64, bool)> = (0..20).map(|i| if i < 10 { (0.0, i < 2) } else { (2.0, i < 18) }).collect();
        let own = Calibration {
            model: String::new(),
            graph: None,
            walks: 1,
            passes: 1,
            queries: 2,
            samples: 20,
            positives: 10,
            error_before: 0.0,
            error_after: 0.0,
            missed,
            map: Isotonic::fit(&samples),
        };
        Probabilities { by: By::Graph(&own), unused: None }.at(logit, unreached)
    }

    #[test]
    fn unreached_candidates_share_what_a_question_misses() {
        let many = UnreachedScore { logit: 0.5, count: 5_000 };
        // Above the unreached: the map, whatever is missed.
        assert_eq!(at(Some(0.25), 2.0, many), 8.5 / 11.0);
        // At their logit the map would say 0.36 of each of 5,000. A question misses a quarter of an answer.
        assert!(at(None, 0.5, many) > 0.3);
        assert_eq!(at(Some(0.25), 0.5, many), 0.25 / 5_000.0);
        // It never rises below, and goes on falling where the map is lower still.
        let steps: Vec<f64> = (-4000..=400).map(|i| at(Some(0.25), f64::from(i) / 100.0, many)).collect();
        assert!(steps.windows(2).all(|w| w[0] <= w[1]) && steps[0] < 1e-17);
        // A few of them cannot be likelier than the map says, and where there are none nothing is shared out.
        assert_eq!(at(Some(3.0), 0.5, UnreachedScore { count: 1, ..many }), at(None, 0.5, many));
        assert_eq!(at(Some(0.25), 0.5, UnreachedScore { count: 0, ..many }), at(None, 0.5, many));
    }

    #[test]
    fn without_a_calibration_it_is_a_score() {
        let none = Probabilities { by: By::Score, unused: None };
        assert_eq!(none.at(0.0, UnreachedScore { logit: 1.0, count: 9 }), 0.5);
        assert_eq!((none.source(), none.source().title()), (ProbabilitySource::Score, "score"));
        let names = [ProbabilitySource::Score, ProbabilitySource::Default, ProbabilitySource::Graph];
        assert_eq!(serde_json::to_string(&names).unwrap(), r#"["score","default","graph"]"#);
    }
}
