//! How good a model is on one's own graph: some of its triples are hidden and asked for.
//!
//! Triples are drawn in a seeded order. One is hidden only if its head, its tail and its relation keep another triple, so that every
//! question is about names that the walked graph still knows. Both sides are asked for and ranks are filtered, as for benchmark
//! datasets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use flock_graph::{Graph, Topology, Triple};
use flock_model::ModelName;
use flock_model::checkpoint::Task;
use flock_model::ensemble::Ask;
use flock_model::model::Model;
use serde::Serialize;

use crate::ask::rank_all;
use crate::datasets::{DatasetError, Fingerprint, NamedGraph, TestSet};
use crate::error::{EvalError, HoldoutError};
use crate::evaluate::EvalProgress;
use crate::metrics::RankMetrics;
use crate::partial::{PartialRun, RunKey, SavedRanks};
use crate::questions::TestQuestions;
use crate::results::utc;
use crate::summary::{RankSummary, RelationMetrics};

/// How many triples are hidden, and how they are asked for.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct HoldoutSettings {
    /// The share of the graph's triples to hide, between 0 and 1.
    pub share: f64,
    /// Base walk count; by the rule of the checkpoint if none is given.
    pub walks: Option<u32>,
    /// Ensemble passes.
    pub passes: u32,
    /// Seed of walks, of what is hidden, and of the sample.
    pub seed: u64,
    /// If set, at most this many of the hidden triples are asked for: a seeded sample.
    pub limit: Option<usize>,
}

/// What a model finds of a graph's hidden triples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HoldoutReport {
    /// Name of the graph.
    pub graph: String,
    /// Whether entities or relations were asked for.
    pub task: Task,
    /// Entities of the graph.
    pub entities: u32,
    /// Its raw relations.
    pub relations: u32,
    /// Its triples, hidden ones included.
    pub triples: usize,
    /// The share that was to be hidden.
    pub share: f64,
    /// Triples that were hidden: fewer than the share if more would have left an entity or a relation without any triple.
    pub hidden: usize,
    /// Hidden triples that were asked for.
    pub asked: usize,
    /// Candidates of each question, before known answers are left out.
    pub candidates: u32,
    /// Seed.
    pub seed: u64,
    /// Base walk count.
    pub n: u32,
    /// Ensemble passes.
    pub passes: u32,
    /// The model.
    pub model: ModelName,
    /// Seconds that it took.
    pub seconds: f64,
    /// Time of the run.
    pub time: String,
    /// The metrics, in all and by relation.
    pub summary: RankSummary,
}

/// Hides triples of a graph. `name` is what the graph is called.
///
/// # Errors
/// A share that is none, or a graph of which no triple can be hidden.
pub fn hold_out(name: &str, graph: Graph, share: f64, seed: u64) -> Result<TestSet, EvalError> {
    if !(share > 0.0 && share < 1.0) {
        return Err(HoldoutError::Share { share }.into());
    }
    let all = graph.topology().clone();
    let wanted = ((all.num_triples() as f64 * share).round() as usize).max(1);
    let mut left = Left::new(&all);
    let order = crate::datasets::sample_order(seed, all.num_triples());
    let mut hidden = Vec::new();
    for k in 0..all.num_triples() as u64 {
        if hidden.len() == wanted {
            break;
        }
        let id = order.get(k) as u32;
        if left.take(all.triple(id)) {
            hidden.push(id);
        }
    }
    if hidden.is_empty() {
        return Err(HoldoutError::Nothing { triples: all.num_triples(), entities: all.num_nodes() }.into());
    }
    hidden.sort_unstable();
    let triples: Vec<Triple> = hidden.iter().map(|&id| all.triple(id)).collect();
    let rest =
        (0u32..).zip(all.triples()).filter(|(id, _)| hidden.binary_search(id).is_err()).map(|(_, t)| t).collect();
    let walked = Topology::build(all.num_nodes(), all.num_relations(), rest).map_err(DatasetError::from)?;
    let rows = all.num_triples() as u64;
    let on = Arc::new(NamedGraph::holding_out(name.to_string(), graph, walked));
    Ok(TestSet { on, triples, known: all, heads: true, rows, dropped: 0 })
}

/// How many triples each entity and each relation has left.
struct Left {
    entities: Vec<u32>,
    relations: Vec<u32>,
}

impl Left {
    fn new(topology: &Topology) -> Left {
        let mut left = Left {
            entities: vec![0; topology.num_nodes() as usize],
            relations: vec![0; topology.num_relations() as usize],
        };
        for t in topology.triples() {
            left.entities[t.head as usize] += 1;
            left.entities[t.tail as usize] += u32::from(t.tail != t.head);
            left.relations[t.relation as usize] += 1;
        }
        left
    }

    /// Takes a triple away, unless it is the last of its head, its tail or its relation.
    fn take(&mut self, t: Triple) -> bool {
        let (head, tail, relation) = (t.head as usize, t.tail as usize, t.relation as usize);
        if self.entities[head] < 2 || self.entities[tail] < 2 || self.relations[relation] < 2 {
            return false;
        }
        self.entities[head] -= 1;
        self.entities[tail] -= u32::from(tail != head);
        self.relations[relation] -= 1;
        true
    }
}

/// Everything that the ranks depend on, for a run that is resumed.
#[derive(Serialize)]
struct RunSettings {
    version: &'static str,
    checkpoint: String,
    precision: String,
    simd: String,
    graph: Fingerprint,
    share: f64,
    hidden: usize,
    sampled: usize,
    seed: u64,
    n: u32,
    passes: u32,
}

/// Hides triples of a graph and asks a model for them. `watch` is called after each batch, and stops the run by returning false.
/// `partial` keeps the ranks on disk, so that a killed run can be resumed. `stop`, once set, ends it between two passes.
///
/// # Errors
/// As [`hold_out`]; a model that does not fit; what a killed run left cannot be used; or the caller stopped the run.
pub fn evaluate_holdout(
    name: &str,
    graph: Graph,
    model: &Model,
    model_name: &ModelName,
    settings: &HoldoutSettings,
    pool: &rayon::ThreadPool,
    mut partial: Option<&mut PartialRun>,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(EvalProgress) -> bool,
) -> Result<HoldoutReport, EvalError> {
    let mut set = hold_out(name, graph, settings.share, settings.seed)?;
    let hidden = set.triples.len();
    if let Some(limit) = settings.limit {
        set.sample(limit, settings.seed);
    }
    let task = model.meta().task;
    let walked = set.on.topology();
    let rule = || model.meta().base_walks(walked.num_nodes(), walked.num_triples());
    let n = settings.walks.unwrap_or_else(rule);
    let ask = Ask { walks: n, passes: settings.passes, seed: settings.seed, options: model.walk_options() };
    let questions = TestQuestions::new(task, &set);
    let total = questions.queries.len();
    let run = RunSettings {
        version: env!("CARGO_PKG_VERSION"),
        checkpoint: model_name.sha256.clone(),
        precision: model_name.precision.clone(),
        simd: model.engine().level().to_string(),
        graph: set.on.fingerprint(),
        share: settings.share,
        hidden,
        sampled: set.triples.len(),
        seed: settings.seed,
        n,
        passes: settings.passes,
    };
    let key = RunKey {
        dataset: name.to_string(),
        task: task.to_string(),
        split: "holdout".to_string(),
        run: 0,
        protocol: serde_json::to_value(&run).expect("plain values"),
    };
    let SavedRanks { queries: first, seconds: before, mut ranks } = match &mut partial {
        Some(partial) => {
            partial.resume(&key, |queries| (queries <= total).then(|| questions.range(0..queries).len()))?
        }
        None => SavedRanks::default(),
    };
    let clock = Instant::now();
    let seconds = || before + clock.elapsed().as_secs_f64();
    rank_all(model, &set, &questions, ask, pool, first, stop, |done, batch| {
        ranks.extend_from_slice(batch);
        if let Some(partial) = &mut partial {
            partial.append(done, seconds(), batch)?;
        }
        if watch(EvalProgress { done, total, now: done - first }) { Ok(()) } else { Err(EvalError::Stopped) }
    })?;
    let relations = set.on.graph().relations();
    let summary = RankSummary::new(questions.answers(), &ranks, hidden, |r| relations.get(r).to_string());
    let known = &set.known;
    Ok(HoldoutReport {
        graph: name.to_string(),
        task,
        entities: known.num_nodes(),
        relations: known.num_relations(),
        triples: known.num_triples(),
        share: settings.share,
        hidden,
        asked: set.triples.len(),
        candidates: if task == Task::Entity { known.num_nodes() } else { known.num_relations() },
        seed: settings.seed,
        n,
        passes: settings.passes,
        model: model_name.clone(),
        seconds: seconds(),
        time: utc(SystemTime::now()),
        summary,
    })
}

impl HoldoutReport {
    /// Says in one sentence how good the model is: how often the right answer is near the top, and for which relations it is best and
    /// worst. `show` gives a relation's name as people read it.
    pub fn sentence(&self, show: impl Fn(&str) -> String) -> String {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let asked = &self.summary.relations;
        // A relation that was asked for once says little; where all are so rare, they must do.
        let often: Vec<&RelationMetrics> = asked.iter().filter(|r| r.metrics.queries >= OFTEN).collect();
        let often = if often.len() > 1 { often } else { asked.iter().collect() };
        // By Hits@10; where that is the same for all, by how often the right answer is the first.
        let extremes = |words: &str, share: fn(&RankMetrics) -> f64| {
            let of = |r: &RelationMetrics| share(&r.metrics.pessimistic);
            let best = often.iter().copied().reduce(|a, b| if of(b) > of(a) { b } else { a })?;
            let worst = often.iter().copied().reduce(|a, b| if of(b) < of(a) { b } else { a })?;
            let told = |r: &RelationMetrics| format!("{} ({words}{})", show(&r.relation), percent(of(r)));
            (of(best) > of(worst)).then(|| format!("; best for {}, worst for {}", told(best), told(worst)))
        };
        let extremes = extremes("", |m| m.hits10).or_else(|| extremes("first in ", |m| m.hits1)).unwrap_or_default();
        let hits = percent(self.summary.all.pessimistic.hits10);
        let count = grouped(self.candidates);
        match self.task {
            Task::Entity => format!(
                "For a hidden link, the right answer is among the first 10 of {count} candidates in {hits} of cases{extremes}."
            ),
            Task::Relation => format!(
                "For a hidden link, the right relation is the first of {count} in {} of cases and among the first 10 in \
                 {hits}{extremes}.",
                percent(self.summary.all.pessimistic.hits1)
            ),
        }
    }
}

/// So many questions about a relation make it one of the best or worst.
const OFTEN: usize = 6;

/// 1234567 → 1,234,567.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let chunks: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|c| std::str::from_utf8(c).ok()).collect();
    chunks.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flock_graph::GraphBuilder;

    fn graph(triples: &[(&str, &str, &str)]) -> Graph {
        let mut builder = GraphBuilder::new();
        triples.iter().for_each(|(h, r, t)| builder.add(h, r, t));
        builder.finish().unwrap()
    }

    /// A ring of 30 with a chord from each node: every node has four triples.
    fn ring() -> Graph {
        let mut builder = GraphBuilder::new();
        for i in 0..30 {
            builder.add(&i.to_string(), "next", &((i + 1) % 30).to_string());
            builder.add(&i.to_string(), "jump", &((i + 7) % 30).to_string());
        }
        builder.finish().unwrap()
    }

    #[test]
    fn hides_the_share_and_leaves_every_name_a_triple() {
        for (share, want) in [(0.1, 6), (0.25, 15), (0.5, 30)] {
            let set = hold_out("ring", ring(), share, 3).unwrap();
            let walked = set.on.topology();
            assert_eq!((set.triples.len(), walked.num_triples()), (want, 60 - want));
            assert!((0..30).all(|v| walked.degree(v) > 0));
            assert!(set.triples.iter().all(|t| walked.triple_id(*t).is_none() && set.known.triple_id(*t).is_some()));
            let again = hold_out("ring", ring(), share, 3).unwrap();
            assert_eq!(set.triples, again.triples);
            assert_ne!(set.triples, hold_out("ring", ring(), share, 4).unwrap().triples);
        }
        // More than can be hidden: as many as leave each of the 30 nodes one triple, which are at most 45.
        let set = hold_out("ring", ring(), 0.99, 0).unwrap();
        assert!(set.triples.len() <= 45 && (0..30).all(|v| set.on.topology().degree(v) > 0));
    }

    #[test]
    fn refuses_what_cannot_be_hidden() {
        let star = graph(&[("a", "r", "b"), ("a", "r", "c"), ("a", "r", "d")]);
        let error = hold_out("star", star, 0.5, 0).unwrap_err().to_string();
        assert!(error.starts_with("no triple of the graph (3 triples, 4 entities) can be hidden"), "{error}");
        for share in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(hold_out("ring", ring(), share, 0).unwrap_err().to_string().contains("above 0 and below 1"));
        }
    }

    /// Six tails each of `good` and `bad` with these ranks, 0 being the best.
    fn report(good: u32, bad: u32) -> HoldoutReport {
        use crate::questions::{AskedSide, TestAnswer};
        use crate::rank::{AnswerRank, Rank};
        let answer = |i: u32| TestAnswer { answer: 0, side: AskedSide::Tail, relation: i / 6, triple: i };
        let rank = |i: u32| {
            let rank = Rank { higher: if i < 6 { good } else { bad }, ties: 0 };
            AnswerRank { rank, filtered: rank, reached: true, score: 0.0, rivals: 9 }
        };
        let answers: Vec<TestAnswer> = (0..12).map(answer).collect();
        let ranks: Vec<AnswerRank> = (0..12).map(rank).collect();
        let summary = RankSummary::new(&answers, &ranks, 12, |r| ["good", "bad"][r as usize].to_string());
        let [origin, sha256, precision] = ["", "", "f32"].map(String::from);
        HoldoutReport {
            graph: "g".to_string(),
            task: Task::Entity,
            entities: 2034,
            relations: 2,
            triples: 120,
            share: 0.1,
            hidden: 12,
            asked: 12,
            candidates: 2034,
            seed: 0,
            n: 1,
            passes: 1,
            model: ModelName { task: Task::Entity, origin, sha256, precision },
            seconds: 1.0,
            time: String::new(),
            summary,
        }
    }

    #[test]
    fn one_plain_sentence() {
        let say = |good, bad| report(good, bad).sentence(|name| format!("`{name}`"));
        let begin = "For a hidden link, the right answer is among the first 10 of 2,034 candidates in";
        assert_eq!(say(0, 50), format!("{begin} 50 % of cases; best for `good` (100 %), worst for `bad` (0 %)."));
        let first = "best for `good` (first in 100 %), worst for `bad` (first in 0 %).";
        assert_eq!(say(0, 2), format!("{begin} 100 % of cases; {first}"));
        assert_eq!(say(0, 0), format!("{begin} 100 % of cases."));
    }

    #[test]
    fn groups_digits() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
