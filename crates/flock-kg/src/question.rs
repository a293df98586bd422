//! Questions in words: three texts, one of them `?`, become a query of the model.
//!
//! | text | asks | model |
//! |---|---|---|
//! | `h r ?` | (h, r, ?) | entity |
//! | `? r t` | (t, r⁻¹, ?): heads are the tails of the inverse type | entity |
//! | `h ? t` | (h, ?, t) | relation |
//!
//! `?` is always the blank: an entity or relation that is named `?` cannot be asked about.

use flock_graph::{Graph, Topology, UnknownName};
use flock_walk::WalkQuery;

use flock_model::checkpoint::Task;

/// The text that stands for what is asked.
pub const BLANK: &str = "?";

/// Which of the three is asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Blank {
    /// `? r t`
    Head,
    /// `h ? t`
    Relation,
    /// `h r ?`
    Tail,
}

impl Blank {
    /// The blank among three texts. Needs no graph.
    pub fn find(texts: [&str; 3]) -> Result<Blank, QuestionError> {
        match texts.map(|text| text == BLANK) {
            [true, false, false] => Ok(Blank::Head),
            [false, true, false] => Ok(Blank::Relation),
            [false, false, true] => Ok(Blank::Tail),
            blanks => Err(QuestionError::Blanks { found: blanks.iter().filter(|b| **b).count() }),
        }
    }
}

/// Why three texts are not a question to a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// No blank, or more than one.
    #[error("expected one ? among head, relation and tail, found {}; hint: {}",
        if *.found == 0 { "none".to_string() } else { found.to_string() },
        if *.found == 0 { "put '?' (quoted, or the shell may expand it) where the answer goes" } else { "name the other two" })]
    Blanks {
        /// How many there are.
        found: usize,
    },
    /// A name that the graph does not have.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
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
    pub fn parse(graph: &Graph, texts: [&str; 3]) -> Result<Question, QuestionError> {
        let blank = Blank::find(texts)?;
        let [head, relation, tail] = texts;
        let query = match blank {
            Blank::Tail => {
                WalkQuery::Entity { head: graph.parse_entity(head)?, relation: graph.parse_relation(relation)? }
            }
            Blank::Head => {
                let relation = graph.parse_relation(relation)?;
                WalkQuery::Entity { head: graph.parse_entity(tail)?, relation: graph.topology().inverse(relation) }
            }
            Blank::Relation => WalkQuery::Relation { head: graph.parse_entity(head)?, tail: graph.parse_entity(tail)? },
        };
        Ok(Question { query, blank })
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
        assert_eq!(
            error(["Lisbon", "near", "Spain"]),
            "expected one ? among head, relation and tail, found none; \
             hint: put '?' (quoted, or the shell may expand it) where the answer goes"
        );
        assert_eq!(
            error(["?", "near", "?"]),
            "expected one ? among head, relation and tail, found 2; hint: name the other two"
        );
        assert_eq!(error(["Portgual", "near", "?"]), r#"unknown entity "Portgual"; near names: "Portugal""#);
        assert!(error(["?", "nears", "Spain"]).starts_with(r#"unknown relation "nears"; near names: "near""#));
    }
}
