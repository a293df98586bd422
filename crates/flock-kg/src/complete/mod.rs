//! The missing links of a graph: from a relation, an entity or the whole graph to a ranked list of new triples.
//!
//! **Questions.** `work.rs` plans the questions that are worth asking, those first that are expected to find most.
//! Each question scores all of its answers. The best of them that the graph does not have enter a pool of bounded size.
//!
//! **Both sides.** A link (h, r, t) can be asked for as the tail of (h, r, ?) and as the head of (?, r, t). From time to time, and
//! at the end, the questions that the best links still lack are asked, until each link of the list has both sides. Its logit is the
//! mean of the two.
//!
//! **Specificity** is the hub-normalised score: the link's share of the odds among all answers to a question, as the geometric mean
//! over both questions. An entity that scores high wherever it is asked for has many rivals in the question from its own end, and so
//! a small share there.
//!
//! A [`Completion`] holds the work: it hands out questions and takes in scores, and can be written down and taken up again between
//! any two. [`Inquiry::advance`](crate::Inquiry::advance) does the asking. The result depends on the options alone, not on threads, steps or interruptions;
//! with a budget it depends on the clock, too.

mod link;
mod merge;
mod pool;
mod records;
mod run;
mod search;
mod state;
mod work;

pub use link::{Link, Links, Sides};
pub use merge::{MergeError, merge, read_links};

pub use crate::column::SideScore;
pub use pool::Candidate;
pub use records::{LinkRecord, link_columns, write_link, write_links};
pub use search::{SearchEnd, SearchError, SearchLimits, SearchProgress};
pub use state::{CompletionState, StateError};
pub use work::{MOST_QUESTIONS, PlaceOutline};

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use flock_graph::{Graph, NodeId, Topology, Triple};
use flock_model::ensemble::{NotFinite, Scores};
use flock_walk::WalkQuery;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::error::AskError;
use pool::Pool;
use work::{Pair, WorkList};

/// The pool holds so many links for each that is listed, at least so many, and at most so many more than are listed.
const POOL: (usize, usize, usize) = (8, 10_000, 100_000);
/// Sides are completed after each such share of the questions.
const WAVES: usize = 16;
/// The most links that can be asked for.
pub const MOST_LINKS: usize = 1_000_000;

/// Which entities are asked about.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Pairs {
    /// Those that the relation already has in that place.
    Observed,
    /// And those that have something in common with them.
    #[default]
    Compatible,
    /// All entities.
    All,
}

/// Which questions look for links. Whichever they are, a link that is listed is asked for from both ends.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Search {
    /// (head, relation, ?).
    Tails,
    /// (?, relation, tail).
    Heads,
    /// Both kinds.
    #[default]
    Both,
}

/// What links are ranked by.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RankBy {
    /// The mean logit of both sides.
    Score,
    /// The share of the odds on both sides.
    #[default]
    Specificity,
}

/// In which order questions are asked.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Order {
    /// Those first that are expected to find most.
    #[default]
    Expected,
    /// In random order, to compare with.
    Random,
}

macro_rules! words {
    ($($type:ident: $($variant:ident = $word:literal),+;)+) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($type::$variant => $word),+ })
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<$type, String> {
                match text {
                    $($word => Ok($type::$variant),)+
                    _ => Err(format!("expected {}", [$($word),+].join(", "))),
                }
            }
        }
    )+};
}

words! {
    Pairs: Observed = "observed", Compatible = "compatible", All = "all";
    Search: Tails = "tails", Heads = "heads", Both = "both";
    RankBy: Score = "score", Specificity = "specificity";
    Order: Expected = "expected", Random = "random";
}

impl Search {
    fn tails(self) -> bool {
        self != Search::Heads
    }

    fn heads(self) -> bool {
        self != Search::Tails
    }
}

/// What links are looked for, by names as questions take them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope<'a> {
    /// The relation; all of them if none is named.
    pub relation: Option<&'a str>,
    /// The only head.
    pub head: Option<&'a str>,
    /// The only tail.
    pub tail: Option<&'a str>,
}

/// What links are looked for, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompleteOptions {
    /// The relation; all of them if none.
    pub relation: Option<u32>,
    /// The only head.
    pub head: Option<NodeId>,
    /// The only tail.
    pub tail: Option<NodeId>,
    /// How many links are listed.
    pub top: usize,
    /// Which entities are asked about.
    pub pairs: Pairs,
    /// Which questions look for links.
    pub sides: Search,
    /// What links are ranked by.
    pub rank_by: RankBy,
    /// In which order questions are asked.
    pub order: Order,
    /// The most questions that look for links; what the best links lack is asked besides. 0 for all.
    pub questions: usize,
    /// Only every n-th question, beginning with this one (from 0).
    pub shard: (u32, u32),
}

impl Default for CompleteOptions {
    fn default() -> CompleteOptions {
        CompleteOptions {
            relation: None,
            head: None,
            tail: None,
            top: 1000,
            pairs: Pairs::default(),
            sides: Search::default(),
            rank_by: RankBy::default(),
            order: Order::default(),
            questions: 0,
            shard: (0, 1),
        }
    }
}

impl CompleteOptions {
    /// Looks for the names of a scope in a graph.
    ///
    /// # Errors
    /// A name that the graph does not have.
    pub fn within(mut self, graph: &Graph, scope: &Scope<'_>) -> Result<CompleteOptions, AskError> {
        self.relation = scope.relation.map(|name| graph.parse_relation(name)).transpose()?;
        self.head = scope.head.map(|name| graph.parse_entity(name)).transpose()?;
        self.tail = scope.tail.map(|name| graph.parse_entity(name)).transpose()?;
        Ok(self)
    }
}

/// The work of finding missing links: questions to ask, and the best links so far.
#[derive(Debug)]
pub struct Completion {
    options: CompleteOptions,
    work: WorkList,
    next: usize, // of the work list
    wave: usize, // how far the work list is asked before sides are completed again
    confirm: VecDeque<Pair>,
    asked: HashSet<Pair>,
    again: HashSet<Pair>, // asked once more, for links that came after the first time
    pool: Pool,
}

/// How far questions of the work were handed out.
pub(crate) struct Place {
    next: usize,
    wave: usize,
    confirm: VecDeque<Pair>,
    again: HashSet<Pair>,
}

/// How far the work is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompletionProgress {
    /// Questions asked.
    pub asked: usize,
    /// Questions planned to look for links.
    pub planned: usize,
    /// How many of the planned questions are left.
    pub left: usize,
    /// How many questions the best links still lack.
    pub lacking: usize,
}

impl CompletionProgress {
    /// Whether the search must end now, so that the rest of a budget suffices for the questions that the best links lack, and for
    /// `more` besides. `asked` questions have taken `spent` so far. Before the first question nobody knows what one takes.
    pub fn must_end(&self, spent: Duration, asked: usize, more: usize, budget: Duration) -> bool {
        if asked == 0 {
            return spent >= budget;
        }
        let each = spent.as_secs_f64() / asked as f64;
        spent.as_secs_f64() + each * (self.lacking + more) as f64 >= budget.as_secs_f64()
    }
}

impl Completion {
    /// Plans the work.
    pub fn new(topology: &Topology, options: CompleteOptions) -> Completion {
        let work = work::plan(topology, &options, &|| true).expect("nobody stops it");
        Completion::of(work, options)
    }

    /// As [`Completion::new`], while `go_on` says so: it is asked before each place of each relation. `None` if it
    /// says no.
    pub fn plan_while(topology: &Topology, options: CompleteOptions, go_on: &dyn Fn() -> bool) -> Option<Completion> {
        work::plan(topology, &options, go_on).map(|work| Completion::of(work, options))
    }

    fn of(work: WorkList, options: CompleteOptions) -> Completion {
        let pool = Pool::new(options.rank_by, capacity(&options));
        let mut completion = Completion {
            options,
            work,
            next: 0,
            wave: 0,
            confirm: VecDeque::new(),
            asked: HashSet::new(),
            again: HashSet::new(),
            pool,
        };
        completion.wave = completion.wave_size();
        completion
    }

    fn wave_size(&self) -> usize {
        self.work.pairs.len().div_ceil(WAVES).max(64)
    }

    /// What was asked for.
    pub fn options(&self) -> &CompleteOptions {
        &self.options
    }

    /// How many questions each place of each relation has.
    pub fn places(&self) -> &[PlaceOutline] {
        &self.work.places
    }

    /// How many questions are worth asking but beyond the most that are planned.
    pub fn beyond(&self) -> usize {
        self.work.left
    }

    /// How far the work is.
    pub fn progress(&self) -> CompletionProgress {
        CompletionProgress {
            asked: self.asked.len() + self.again.len(),
            planned: self.work.pairs.len(),
            left: self.work.pairs.len() - self.next,
            lacking: self.lacking().len(),
        }
    }

    /// How far questions were handed out.
    pub(crate) fn place(&self) -> Place {
        Place { next: self.next, wave: self.wave, confirm: self.confirm.clone(), again: self.again.clone() }
    }

    /// Takes questions back that were handed out and not asked.
    pub(crate) fn go_back(&mut self, place: Place) {
        let Place { next, wave, confirm, again } = place;
        (self.next, self.wave, self.confirm, self.again) = (next, wave, confirm, again);
    }

    /// Hands out at most `count` questions: none if the work is done. With `hurry` only those that the best links lack.
    pub(crate) fn questions(&mut self, count: usize, hurry: bool) -> Vec<Pair> {
        let mut questions = Vec::new();
        while questions.is_empty() {
            if self.confirm.is_empty() && (hurry || self.next >= self.wave.min(self.work.pairs.len())) {
                self.confirm = self.lacking().into();
                if self.confirm.is_empty() {
                    if hurry || self.next >= self.work.pairs.len() {
                        break;
                    }
                    self.wave = self.next + self.wave_size();
                }
            }
            while questions.len() < count
                && let Some(pair) = self.confirm.pop_front()
            {
                if self.asked.contains(&pair) {
                    self.again.insert(pair);
                }
                questions.push(pair);
            }
            let end = if hurry || !questions.is_empty() { self.next } else { self.wave.min(self.work.pairs.len()) };
            while questions.len() < count && self.next < end {
                let pair = self.work.pairs[self.next];
                self.next += 1;
                if !self.asked.contains(&pair) {
                    questions.push(pair);
                }
            }
        }
        questions
    }

    /// The questions that the links of the list lack, those of the best links first. None is asked a third time, so that there is an
    /// end.
    fn lacking(&self) -> Vec<Pair> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for c in self.pool.best(self.options.top) {
            let Triple { head, relation, tail } = c.triple;
            for (side, pair) in [
                (c.as_tail, Pair { relation, entity: head }),
                (c.as_head, Pair { relation: self.inverse(relation), entity: tail }),
            ] {
                if side.is_none() && !self.again.contains(&pair) && seen.insert(pair) {
                    found.push(pair);
                }
            }
        }
        found
    }

    fn inverse(&self, relation: u32) -> u32 {
        self.work.inverse(relation)
    }

    /// Takes in the scores of a question.
    pub(crate) fn add(&mut self, topology: &Topology, pair: Pair, scores: Scores) -> Result<(), NotFinite> {
        let Pair { relation: directed, entity } = pair;
        let known: Vec<u32> = topology.answers(entity, directed).collect();
        let column = Column::new(scores, topology.num_nodes(), &known)?;
        let is_tail = directed < topology.num_relations(); // what is asked for
        let relation = if is_tail { directed } else { topology.inverse(directed) };
        let triple = |other: u32| match is_tail {
            true => Triple { head: entity, relation, tail: other },
            false => Triple { head: other, relation, tail: entity },
        };
        self.asked.insert(pair);
        self.pool.update(is_tail, &column, |t| {
            let (own, other) = if is_tail { (t.head, t.tail) } else { (t.tail, t.head) };
            (t.relation == relation && own == entity).then_some(other)
        });
        // A loop is a link only where the relation has loops.
        let loops = self.work.has_loops(relation);
        let wanted = |t: &Triple| {
            self.options.head.is_none_or(|head| t.head == head)
                && self.options.tail.is_none_or(|tail| t.tail == tail)
                && (t.head != t.tail || loops)
        };
        let best = column.best().map(|id| (id, triple(id))).filter(|(_, t)| wanted(t));
        for (id, triple) in best {
            if !self.pool.offer(triple, is_tail, column.side(id)) {
                break;
            }
        }
        Ok(())
    }

    /// The best links so far.
    pub fn best(&self) -> Vec<Candidate> {
        self.pool.best(self.options.top)
    }
}

fn capacity(options: &CompleteOptions) -> usize {
    let top = options.top.clamp(1, MOST_LINKS);
    (POOL.0 * top).max(POOL.1).min(top + POOL.2)
}

impl Pair {
    fn query(self) -> WalkQuery {
        WalkQuery::Entity { head: self.entity, relation: self.relation }
    }
}
