//! Given triples: how likely each is, and where it stands among its alternatives on both sides.
//!
//! A triple (h, r, t) is asked for as the tail of (h, r, ?) and as the head of (?, r, t). If the graph has it, it is hidden from
//! the walks: it would be its own best reason. Its alternatives on a side are all candidates but the other answers that the graph
//! has. Its logit is the mean of the two sides.

mod journal;
mod records;
mod run;

pub use journal::{Journal, JournalError, ScoredTriple};
pub use records::{score_columns, write_score_row, write_scores};
pub use run::{ScoreError, ScoreRun, existing, least_likely, sample};

use std::collections::{BTreeMap, HashMap};

use flock_graph::{Graph, Mask, NameKind, Triple};
use flock_model::ModelName;
use flock_model::checkpoint::Task;
use flock_model::ensemble::{Ask, combine};
use flock_walk::WalkQuery;
use serde::Serialize;

use crate::calibrate::{ProbabilitySource, UnreachedScore};
use crate::column::Column;
pub use crate::column::Standing;
use crate::error::AskError;
use crate::fingerprint::{fingerprint, ordered_fingerprint};
use crate::inquiry::Inquiry;
use crate::question::{BLANK, Blank, Question};
use crate::shown::ShownNames;

/// A triple and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TripleScore<'a> {
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
    /// Whether the graph has it.
    pub known: bool,
    /// The mean logit of both sides.
    pub logit: f64,
    /// σ of that logit, or what a calibration makes of it.
    pub probability: f64,
    /// As the tail of (head, relation, ?).
    pub as_tail: Standing,
    /// As the head of (?, relation, tail).
    pub as_head: Standing,
}

/// Triples and where they stand, with how they were asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TripleScores<'a> {
    /// The triples.
    pub scores: Vec<TripleScore<'a>>,
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

/// Finds the ids of a triple by names.
///
/// # Errors
/// A name that the graph does not have.
pub fn find_triple<S: AsRef<str>>(graph: &Graph, triple: [S; 3]) -> Result<Triple, AskError> {
    let texts = triple.each_ref().map(AsRef::as_ref);
    let (question, tail) = Question::of_triple(graph, texts, Blank::Tail)?;
    Ok(question.triple(graph.topology(), tail))
}

/// As [`find_triple`], but without near names for those that are unknown: finding them takes a while. `limit` is told in the error.
///
/// # Errors
/// A name that the graph does not have, or that could stand for several.
pub fn find_triple_exactly<S: AsRef<str>>(graph: &Graph, triple: [S; 3], limit: usize) -> Result<Triple, AskError> {
    let [head, relation, tail] = triple.each_ref().map(AsRef::as_ref);
    if [head, relation, tail].contains(&BLANK) {
        return Err(AskError::BlankInTriple);
    }
    let question = Question::parse_exactly(graph, [head, relation, BLANK], limit)?;
    let kind = NameKind::Entity;
    let unknown = || AskError::UnknownToo { kind, name: tail.to_string(), limit };
    Ok(question.triple(graph.topology(), graph.resolve(kind, tail)?.ok_or_else(unknown)?))
}

impl<'a> Inquiry<'a> {
    /// What makes a run of scores the same as another: graph, model, walks and triples, in one word.
    ///
    /// # Errors
    /// There is no entity model.
    pub fn score_settings(&self, triples: &[Triple]) -> Result<String, AskError> {
        let named = self.predictor.model(Task::Entity)?;
        let Ask { walks, passes, seed, .. } = self.ask_settings(named, 1);
        let graph = fingerprint(self.graph.topology().triples());
        let asked = ordered_fingerprint(triples.iter().copied());
        let (model, precision, count) = (&named.name.sha256, &named.name.precision, triples.len());
        Ok(format!(
            "graph {graph:x}, model {model} {precision}, n {walks}, P {passes}, seed {seed}, {count} triples {asked:x}"
        ))
    }

    /// Scores triples on both sides, all threads on them. A budget does not count here.
    ///
    #[cfg_attr(feature = "bundled", doc = "```")]
    #[cfg_attr(not(feature = "bundled"), doc = "```ignore")]
    /// let graph = flock_kg::bundled::graph()?;
    /// let predictor = flock_kg::Predictor::bundled()?;
    /// let inquiry = predictor.on(&graph);
    /// let triple = flock_kg::score::find_triple(&graph, ["Portugal", "borders", "Spain"])?;
    /// let scored = inquiry.score_triples(&[triple])?;
    /// let score = &inquiry.named_scores(&scored)?.scores[0];
    /// println!("rank {} of {}", score.as_tail.rank, score.as_tail.candidates);
    /// # assert!(score.known && score.as_tail.rank < 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no entity model, or someone has cancelled.
    pub fn score_triples(&self, triples: &[Triple]) -> Result<Vec<ScoredTriple>, AskError> {
        if triples.is_empty() {
            return Ok(Vec::new());
        }
        let topology = self.graph.topology();
        let ask = self.ask_settings(self.predictor.model(Task::Entity)?, 1);
        let (mut queries, mut masks, mut places) = (Vec::new(), Vec::new(), Vec::new());
        // A triple that the graph lacks hides nothing, so its questions are those of others.
        let mut shared: HashMap<WalkQuery, usize> = HashMap::new();
        for &t in triples {
            let known = topology.triple_id(t).is_some();
            let sides = [(t.head, t.relation), (t.tail, topology.inverse(t.relation))];
            places.push(sides.map(|(head, relation)| {
                let query = WalkQuery::Entity { head, relation };
                let mut add = || {
                    queries.push(query);
                    masks.push(known.then(|| Mask::new(topology, &[t])));
                    queries.len() - 1
                };
                if known { add() } else { *shared.entry(query).or_insert_with(add) }
            }));
        }
        let go_on = || !self.is_cancelled();
        let asked = self.asker(Task::Entity)?.ask_masked_while(&queries, &masks, ask, &go_on)?;
        let scores: Vec<_> = asked.iter().map(|passes| combine(passes)).collect();
        let standing = |question: usize, answer: u32| -> Result<Standing, AskError> {
            let WalkQuery::Entity { head, relation } = queries[question] else {
                unreachable!("only entities are asked for")
            };
            let others: Vec<u32> = topology.answers(head, relation).filter(|&a| a != answer).collect();
            Ok(Column::new(scores[question].clone(), topology.num_nodes(), &others)?.standing(answer))
        };
        let scored = triples.iter().zip(places).map(|(&triple, [tails, heads])| {
            let known = topology.triple_id(triple).is_some();
            let (as_tail, as_head) = (standing(tails, triple.tail)?, standing(heads, triple.head)?);
            Ok(ScoredTriple { triple, known, as_tail, as_head })
        });
        scored.collect()
    }

    /// Names scored triples and makes probabilities of their logits.
    ///
    /// # Errors
    /// There is no entity model.
    pub fn named_scores(&self, scored: &[ScoredTriple]) -> Result<TripleScores<'a>, AskError> {
        let named = self.predictor.model(Task::Entity)?;
        let ask = self.ask_settings(named, 1);
        let probabilities = self.probabilities(named, &ask);
        let (graph, labels) = (self.graph, self.graph.labels());
        // What no walk reached from either end is no likelier than any other such triple.
        let unreached = |s: &ScoredTriple| match s.as_tail.reached || s.as_head.reached {
            true => UnreachedScore { logit: f64::NEG_INFINITY, count: 0 },
            false => UnreachedScore { logit: s.logit(), count: s.as_tail.candidates.min(s.as_head.candidates) },
        };
        let score = |s: &ScoredTriple| {
            let Triple { head, relation, tail } = s.triple;
            TripleScore {
                head: graph.entities().get(head),
                relation: graph.relations().get(relation),
                tail: graph.entities().get(tail),
                head_label: labels.entity(head),
                relation_label: labels.relation(relation),
                tail_label: labels.entity(tail),
                known: s.known,
                logit: s.logit(),
                probability: probabilities.at(s.logit(), unreached(s)),
                as_tail: s.as_tail,
                as_head: s.as_head,
            }
        };
        let scores: Vec<TripleScore<'a>> = scored.iter().map(score).collect();
        let shown = self.shown(scores.iter().flat_map(|s| [s.head, s.relation, s.tail]));
        let (seed, walks, passes) = (ask.seed, ask.walks, ask.passes);
        Ok(TripleScores {
            scores,
            seed,
            walks,
            passes,
            model: named.name.clone(),
            probability_from: probabilities.source(),
            calibration_unused: probabilities.unused().map(|unfit| unfit.to_string()),
            shown,
        })
    }
}

impl TripleScores<'_> {
    /// Whether people should read the probabilities: if they come from a calibration of this graph. The default calibration of a model is
    /// made for single questions, and says too little of links that were picked from many.
    pub fn is_calibrated(&self) -> bool {
        self.probability_from == ProbabilitySource::Graph
    }
}
