//! The questions that a test set puts to a model, each distinct one once.
//!
//! A query's walks depend on the query alone (its [`Key`](flock_walk::Key) has a number made of head and type, or head and tail), so
//! the answers of all test triples that share a query are ranked on the same scores: the numbers of asking again, for less work.

use std::collections::HashMap;
use std::ops::Range;

use flock_walk::WalkQuery;
use serde::{Deserialize, Serialize};

use crate::datasets::TestSet;
use flock_model::checkpoint::Task;

/// What of a triple was asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// (?, r, t)
    Head,
    /// (h, r, ?)
    Tail,
    /// (h, ?, t)
    Relation,
}

/// A true answer to be ranked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The answer: an entity or a raw relation.
    pub answer: u32,
    /// What was asked for.
    pub side: Side,
    /// The relation of its triple.
    pub relation: u32,
    /// The triple, by its place in the test set.
    pub triple: u32,
}

/// Distinct queries, with the answers of each.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// What is asked, in the order of first appearance.
    pub queries: Vec<WalkQuery>,
    items: Vec<Item>,   // grouped by query
    starts: Vec<usize>, // (queries + 1)
}

impl Questions {
    /// The questions of a test set.
    pub fn new(task: Task, set: &TestSet) -> Questions {
        let topology = set.on.topology();
        let mut places: HashMap<(u32, u32), usize> = HashMap::new();
        let mut queries = Vec::new();
        let mut asked: Vec<(usize, Item)> = Vec::new();
        let mut ask = |query: WalkQuery, item: Item| {
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
            let item = |answer, side| Item { answer, side, relation: t.relation, triple };
            match task {
                Task::Relation => {
                    ask(WalkQuery::Relation { head: t.head, tail: t.tail }, item(t.relation, Side::Relation))
                }
                Task::Entity => {
                    ask(WalkQuery::Entity { head: t.head, relation: t.relation }, item(t.tail, Side::Tail));
                    if set.heads {
                        let relation = topology.inverse(t.relation);
                        ask(WalkQuery::Entity { head: t.tail, relation }, item(t.head, Side::Head));
                    }
                }
            }
        }
        // Stable: the items of a query stay in the order of their triples.
        asked.sort_by_key(|(place, _)| *place);
        let mut starts = vec![0; queries.len() + 1];
        asked.iter().for_each(|(place, _)| starts[place + 1] += 1);
        for i in 0..queries.len() {
            starts[i + 1] += starts[i];
        }
        Questions { queries, items: asked.into_iter().map(|(_, item)| item).collect(), starts }
    }

    /// All answers, grouped by query.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Where the answers of some queries are among [`items`](Questions::items).
    pub fn range(&self, queries: Range<usize>) -> Range<usize> {
        self.starts[queries.start]..self.starts[queries.end]
    }
}
