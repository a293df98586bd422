//! The questions of a test set: each distinct query once, with all its true answers.
//!
//! The walks of a query depend on the query alone: its [`Key`](flock_walk::Key) has a number made
//! of head and type, or of head and tail. So all test triples that share a query are ranked on the
//! same scores. Asking again would give the same numbers for more work.

use std::collections::HashMap;
use std::ops::Range;

use flock_walk::WalkQuery;
use serde::{Deserialize, Serialize};

use crate::datasets::TestSet;
use flock_model::checkpoint::Task;

/// The part of a triple that is asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskedSide {
    /// (?, r, t)
    Head,
    /// (h, r, ?)
    Tail,
    /// (h, ?, t)
    Relation,
}

/// A true answer to rank.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TestAnswer {
    /// The answer: an entity or a raw relation.
    pub answer: u32,
    /// The part of the triple that is asked for.
    pub side: AskedSide,
    /// The relation of its triple.
    pub relation: u32,
    /// Index of the triple in the test set.
    pub triple: u32,
}

/// The distinct queries of a test set, with the true answers of each.
#[derive(Clone, Debug, Default)]
pub struct TestQuestions {
    /// The queries, in the order of first appearance.
    pub queries: Vec<WalkQuery>,
    answers: Vec<TestAnswer>, // grouped by query
    starts: Vec<usize>,       // (queries + 1)
}

impl TestQuestions {
    /// Collects the questions of a test set.
    pub fn new(task: Task, set: &TestSet) -> TestQuestions {
        let topology = set.on.topology();
        let mut places: HashMap<(u32, u32), usize> = HashMap::new();
        let mut queries = Vec::new();
        let mut asked: Vec<(usize, TestAnswer)> = Vec::new();
        let mut ask = |query: WalkQuery, item: TestAnswer| {
            let key = match query {
                WalkQuery::Entity { head, relation } => (head, relation),
                WalkQuery::Relation { head, tail } => (head, tail),
            };
            let place = *places.entry(key).or_insert_with(|| {
                queries.push(query);
                queries.len() - 1
            });
            asked.push((place, item));
        };
        for (triple, t) in (0u32..).zip(&set.triples) {
            let item = |answer, side| TestAnswer { answer, side, relation: t.relation, triple };
            match task {
                Task::Relation => {
                    ask(WalkQuery::Relation { head: t.head, tail: t.tail }, item(t.relation, AskedSide::Relation))
                }
                Task::Entity => {
                    ask(WalkQuery::Entity { head: t.head, relation: t.relation }, item(t.tail, AskedSide::Tail));
                    if set.heads {
                        let relation = topology.inverse(t.relation);
                        ask(WalkQuery::Entity { head: t.tail, relation }, item(t.head, AskedSide::Head));
                    }
                }
            }
        }
        // Stable: the answers of a query stay in the order of their triples.
        asked.sort_by_key(|(place, _)| *place);
        let mut starts = vec![0; queries.len() + 1];
        asked.iter().for_each(|(place, _)| starts[place + 1] += 1);
        for i in 0..queries.len() {
            starts[i + 1] += starts[i];
        }
        TestQuestions { queries, answers: asked.into_iter().map(|(_, item)| item).collect(), starts }
    }

    /// Returns all answers, grouped by query.
    pub fn answers(&self) -> &[TestAnswer] {
        &self.answers
    }

    /// Returns the answers of one query.
    pub fn answers_of(&self, query: usize) -> &[TestAnswer] {
        &self.answers[self.range(query..query + 1)]
    }

    /// Returns where the answers of some queries are in [`answers`](TestQuestions::answers).
    pub fn range(&self, queries: Range<usize>) -> Range<usize> {
        self.starts[queries.start]..self.starts[queries.end]
    }
}
