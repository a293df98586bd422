//! Questions in words: three texts, one of them `?`, become a query of the model.
//!
//! | text | asks | model |
//! |---|---|---|
//! | `h r ?` | (h, r, ?) | entity |
//! | `? r t` | (t, r⁻¹, ?): heads are the tails of the inverse type | entity |
//! | `h ? t` | (h, ?, t) | relation |
//!
//! A text is a name, `<IRI>`, `prefix:local`, a label, or one of these but for case, space around it or its prefix, if only one fits
//! ([`Graph::parse_entity`] has the rules).
//!
//! `?` is always the blank: an entity or relation that is named `?` cannot be asked about.

use std::str::FromStr;

use flock_graph::{Graph, NameKind, Topology, Triple, UnknownName};
use flock_walk::WalkQuery;

use flock_model::checkpoint::Task;

use crate::error::AskError;

/// The text that stands for what is asked.
pub const BLANK: &str = "?";

/// Which of the three is asked.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Blank {
    /// `? r t`
    Head,
    /// `h ? t`
    Relation,
    /// `h r ?`
    #[default]
    Tail,
}

impl FromStr for Blank {
    type Err = String;

    fn from_str(text: &str) -> Result<Blank, String> {
        match text {
            "head" => Ok(Blank::Head),
            "relation" => Ok(Blank::Relation),
            "tail" => Ok(Blank::Tail),
            _ => Err("expected head, relation or tail".to_string()),
        }
    }
}

impl Blank {
    /// The blank among three texts. Needs no graph.
    pub fn find(texts: [&str; 3]) -> Result<Blank, AskError> {
        match texts.map(|text| text == BLANK) {
            [true, false, false] => Ok(Blank::Head),
            [false, true, false] => Ok(Blank::Relation),
            [false, false, true] => Ok(Blank::Tail),
            blanks => Err(AskError::Blanks { found: blanks.iter().filter(|b| **b).count() }),
        }
    }
}

/// A question to one graph.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What the model is asked.
    pub query: WalkQuery,
    /// What the words asked for.
    pub blank: Blank,
}

impl Question {
    /// Finds head, relation and tail in the graph, all but the blank.
    ///
    /// # Errors
    /// Not one blank, or a name that the graph does not have, or that could stand for several.
    pub fn parse(graph: &Graph, texts: [&str; 3]) -> Result<Question, AskError> {
        let find = |kind, text: &str| -> Result<u32, UnknownName> {
            match kind {
                NameKind::Entity => graph.parse_entity(text),
                NameKind::Relation => graph.parse_relation(text),
            }
        };
        Question::parse_with(graph, texts, |kind, text| Ok(find(kind, text)?))
    }

    /// As [`Question::parse`], but without near names for those that are unknown: finding them takes a while. `limit` is told in the
    /// error.
    ///
    /// # Errors
    /// Not one blank, or a name that the graph does not have, or that could stand for several.
    pub fn parse_exactly(graph: &Graph, texts: [&str; 3], limit: usize) -> Result<Question, AskError> {
        Question::parse_with(graph, texts, |kind, text| {
            graph.resolve(kind, text)?.ok_or_else(|| AskError::UnknownToo { kind, name: text.to_string(), limit })
        })
    }

    fn parse_with(
        graph: &Graph,
        texts: [&str; 3],
        find: impl Fn(NameKind, &str) -> Result<u32, AskError>,
    ) -> Result<Question, AskError> {
        let blank = Blank::find(texts)?;
        let [head, relation, tail] = texts;
        let (entity, edge) = (|text| find(NameKind::Entity, text), |text| find(NameKind::Relation, text));
        let query = match blank {
            Blank::Tail => WalkQuery::Entity { head: entity(head)?, relation: edge(relation)? },
            Blank::Head => {
                let relation = edge(relation)?;
                WalkQuery::Entity { head: entity(tail)?, relation: graph.topology().inverse(relation) }
            }
            Blank::Relation => WalkQuery::Relation { head: entity(head)?, tail: entity(tail)? },
        };
        Ok(Question { query, blank })
    }

    /// The question whose answer is one part of a triple, and that answer.
    ///
    /// # Errors
    /// A name that the graph does not have.
    pub fn of_triple(graph: &Graph, triple: [&str; 3], blank: Blank) -> Result<(Question, u32), AskError> {
        if triple.contains(&BLANK) {
            return Err(AskError::BlankInTriple);
        }
        let mut texts = triple;
        let answer = std::mem::replace(&mut texts[blank as usize], BLANK);
        let question = Question::parse(graph, texts)?;
        let answer = match blank {
            Blank::Relation => graph.parse_relation(answer)?,
            Blank::Head | Blank::Tail => graph.parse_entity(answer)?,
        };
        Ok((question, answer))
    }

    /// The triple that the question and an answer make.
    pub fn triple(&self, topology: &Topology, answer: u32) -> Triple {
        match (self.query, self.blank) {
            (WalkQuery::Entity { head, relation }, Blank::Head) => {
                Triple { head: answer, relation: topology.inverse(relation), tail: head }
            }
            (WalkQuery::Entity { head, relation }, _) => Triple { head, relation, tail: answer },
            (WalkQuery::Relation { head, tail }, _) => Triple { head, relation: answer, tail },
        }
    }

    /// The kind of model that answers.
    pub fn task(&self) -> Task {
        match self.query {
            WalkQuery::Entity { .. } => Task::Entity,
            WalkQuery::Relation { .. } => Task::Relation,
        }
    }

    /// Head, relation and tail by their full names, `?` for the blank.
    pub fn names<'g>(&self, graph: &'g Graph) -> [&'g str; 3] {
        let entity = |id| graph.entities().get(id);
        match (self.query, self.blank) {
            (WalkQuery::Entity { head, relation }, Blank::Head) => {
                [BLANK, graph.relations().get(graph.topology().inverse(relation)), entity(head)]
            }
            (WalkQuery::Entity { head, relation }, _) => [entity(head), graph.relations().get(relation), BLANK],
            (WalkQuery::Relation { head, tail }, _) => [entity(head), BLANK, entity(tail)],
        }
    }

    /// The name of a candidate: an entity, or a relation.
    pub fn answer_name<'g>(&self, graph: &'g Graph, id: u32) -> &'g str {
        match self.task() {
            Task::Entity => graph.entities().get(id),
            Task::Relation => graph.relations().get(id),
        }
    }

    /// The label of a candidate, if it has one.
    pub fn answer_label<'g>(&self, graph: &'g Graph, id: u32) -> Option<&'g str> {
        match self.task() {
            Task::Entity => graph.labels().entity(id),
            Task::Relation => graph.labels().relation(id),
        }
    }

    /// How many candidates there are: all entities (the query's own among them), or all raw relations.
    pub fn num_candidates(&self, topology: &Topology) -> u32 {
        match self.task() {
            Task::Entity => topology.num_nodes(),
            Task::Relation => topology.num_relations(),
        }
    }

    /// The answers that the graph already has, by ascending id.
    pub fn known(&self, topology: &Topology) -> Vec<u32> {
        match self.query {
            WalkQuery::Entity { head, relation } => topology.answers(head, relation).collect(),
            WalkQuery::Relation { head, tail } => {
                let mut relations = topology.relations_between(head, tail);
                relations.sort_unstable();
                relations
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entities Lisbon 0, Portugal 1, Spain 2; relations `capital of` 0, `borders` 1, `near` 2; so `borders⁻¹` is 4.
    fn graph() -> Graph {
        let mut builder = flock_graph::GraphBuilder::new();
        builder.add("Lisbon", "capital of", "Portugal");
        builder.add("Portugal", "borders", "Spain");
        builder.add("Lisbon", "near", "Spain");
        builder.add("Portugal", "near", "Spain");
        builder.finish().unwrap()
    }

    #[test]
    fn each_blank_is_a_query() {
        let graph = graph();
        let cases = [
            (["Portugal", "borders", "?"], WalkQuery::Entity { head: 1, relation: 1 }, Task::Entity, vec![2]),
            (["?", "borders", "Spain"], WalkQuery::Entity { head: 2, relation: 4 }, Task::Entity, vec![1]),
            (["?", "near", "Spain"], WalkQuery::Entity { head: 2, relation: 5 }, Task::Entity, vec![0, 1]),
            (["Portugal", "?", "Spain"], WalkQuery::Relation { head: 1, tail: 2 }, Task::Relation, vec![1, 2]),
            (["Spain", "?", "Portugal"], WalkQuery::Relation { head: 2, tail: 1 }, Task::Relation, vec![]),
        ];
        for (texts, query, task, known) in cases {
            let question = Question::parse(&graph, texts).unwrap();
            assert_eq!((question.query, question.task()), (query, task), "{texts:?}");
            assert_eq!(question.names(&graph), texts);
            assert_eq!(question.known(graph.topology()), known, "{texts:?}");
        }
    }

    #[test]
    fn refuses_what_is_no_question() {
        let graph = graph();
        let error = |texts| Question::parse(&graph, texts).unwrap_err().to_string();
        assert_eq!(error(["Lisbon", "near", "Spain"]), "expected one ? among head, relation and tail, found none");
        assert_eq!(error(["?", "near", "?"]), "expected one ? among head, relation and tail, found 2");
        assert_eq!(error(["Portgual", "near", "?"]), r#"unknown entity "Portgual"; near names: "Portugal""#);
        assert!(error(["?", "nears", "Spain"]).starts_with(r#"unknown relation "nears"; near names: "near""#));
    }
}
