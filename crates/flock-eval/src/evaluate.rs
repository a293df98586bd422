//! Evaluates a model on one dataset: its settings, the run, and the places of all answers.

use std::time::{Instant, SystemTime};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::ask::place_all;
use crate::datasets::{Dataset, Part, Split, TestSet, check};
use crate::error::EvalError;
use crate::partial::{Begin, Done, Record};
use crate::questions::{Item, Questions, Side};
use crate::rank::Placed;
use crate::ranks::RankRow;
use crate::results::{Evaluation, Stated, utc};
use crate::strata::{Strata, Stratum};
use crate::summary::Counted;
use flock_model::ModelName;
use flock_model::bench::MACS_PER_POSITION;
use flock_model::checkpoint::Task;
use flock_model::ensemble::Ask;
use flock_model::files::sha256_hex;
use flock_model::model::Model;

/// Passes where nothing is published: what the paper uses on most graphs.
pub const DEFAULT_PASSES: u32 = 16;

/// Where a number comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The rule of the checkpoint (base walks only; the published number for passes).
    Rule,
    /// The registry; for a dataset that is not in it, the rule, or [`DEFAULT_PASSES`].
    Published,
    /// Given.
    Given(u32),
}

/// How to evaluate.
#[derive(Copy, Clone, Debug)]
pub struct Settings {
    /// Which triples.
    pub split: Split,
    /// Base walk count.
    pub walks: Choice,
    /// Ensemble passes.
    pub passes: Choice,
    /// Seed of walks and sample.
    pub seed: u64,
    /// At most so many triples, a seeded sample.
    pub limit: Option<usize>,
}

/// How far an evaluation is.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    /// Queries done.
    pub done: usize,
    /// Of so many.
    pub total: usize,
    /// Of them in this sitting.
    pub now: usize,
}

/// An evaluation with the place of every answer.
#[derive(Debug)]
pub struct Ranked {
    /// The numbers.
    pub evaluation: Evaluation,
    set: TestSet,
    questions: Questions,
    placed: Vec<Placed>,
    strata: Vec<Stratum>,
}

impl Ranked {
    /// A row per question and answer, in the order in which they were asked.
    pub fn rows(&self) -> impl Iterator<Item = RankRow> + '_ {
        let graph = self.set.on.graph();
        let split = self.evaluation.split.to_string();
        let places = self.questions.items().iter().zip(&self.placed).zip(&self.strata);
        places.map(move |((item, placed), stratum)| {
            let triple = self.set.triples[item.triple as usize];
            let (entities, relations) = (graph.entities(), graph.relations());
            let names = [entities.get(triple.head), relations.get(triple.relation), entities.get(triple.tail)];
            RankRow::new((&self.evaluation.dataset, self.evaluation.task, &split), names, item, placed, *stratum)
        })
    }
}

/// Evaluates a model on a loaded dataset. `watch` is told after each batch, and stops the run by answering false.
pub fn evaluate(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &Settings,
    pool: &rayon::ThreadPool,
    record: Option<&mut Record>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Evaluation, EvalError> {
    Ok(evaluate_ranked(dataset, model, name, settings, pool, record, watch)?.evaluation)
}

/// As [`evaluate`], with the place of every answer.
pub fn evaluate_ranked(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &Settings,
    pool: &rayon::ThreadPool,
    mut record: Option<&mut Record>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Ranked, EvalError> {
    let mut set = dataset.test_set(settings.split)?;
    let differences = check::of_set(dataset, settings.split, &set);
    let of = set.triples.len();
    if let Some(limit) = settings.limit {
        set.sample(limit, settings.seed);
    }
    let task = model.meta().task;
    let ask = settings.ask(dataset, model, &set);
    let protocol = stated(dataset, model, name, settings, &set, ask, of)?;
    let questions = Questions::new(task, &set);
    let total = questions.queries.len();

    let begin = Begin {
        dataset: dataset.name.clone(),
        task: task.to_string(),
        split: settings.split.to_string(),
        protocol: serde_json::to_value(&protocol).expect("plain values"),
    };
    let Done { queries: first, seconds: before, mut placed } = match &mut record {
        Some(record) => {
            record.begin(&begin, |queries| (queries <= total).then(|| questions.range(0..queries).len()))?
        }
        None => Done::default(),
    };
    let clock = Instant::now();
    let seconds = || before + clock.elapsed().as_secs_f64();
    let asking = place_all(model, &set, &questions, ask, pool, first, |done, places| {
        placed.extend_from_slice(places);
        if let Some(record) = &mut record {
            record.append(done, seconds(), places)?;
        }
        if watch(Progress { done, total, now: done - first }) { Ok(()) } else { Err(EvalError::Stopped) }
    })?;
    let sitting = clock.elapsed().as_secs_f64();
    let seconds = before + sitting;
    let (topology, triples) = (set.on.topology(), &set.triples);
    let stratum = |item: &Item| Stratum::of(topology, triples[item.triple as usize], item);
    let strata: Vec<Stratum> = pool.install(|| questions.items().par_iter().map(stratum).collect());
    let relations = set.on.graph().relations();
    let mut counted = Counted::new(questions.items(), &placed, of, |r| relations.get(r).to_string());
    counted.strata = Strata::new(&strata, &placed);
    let walks: usize = questions.queries.iter().map(|q| q.num_walks(ask.walks)).sum();
    let positions = (walks * protocol.length * model.meta().updates) as f64 * f64::from(ask.passes);
    let evaluation = Evaluation {
        dataset: dataset.name.clone(),
        task,
        split: settings.split,
        group: dataset.group(),
        counted,
        asked: total,
        seconds,
        gflops: if seconds > 0.0 { 2.0 * MACS_PER_POSITION as f64 * positions / seconds / 1e9 } else { 0.0 },
        overhead: if sitting > 0.0 { 1.0 - asking.as_secs_f64() / sitting } else { 0.0 },
        threads: pool.current_num_threads(),
        time: utc(SystemTime::now()),
        model: name.origin.clone(),
        differences,
        protocol,
    };
    Ok(Ranked { evaluation, set, questions, placed, strata })
}

impl Settings {
    /// How queries are asked on a dataset: with the walks that the model was trained with.
    pub fn ask(&self, dataset: &Dataset, model: &Model, set: &TestSet) -> Ask {
        let topology = set.on.topology();
        let rule = || model.meta().base_walks(topology.num_nodes(), topology.num_triples());
        let walks = match self.walks {
            Choice::Rule => rule(),
            Choice::Published => dataset.entry.map_or_else(rule, |e| e.n),
            Choice::Given(n) => n,
        };
        let passes = match self.passes {
            Choice::Given(passes) => passes,
            _ => dataset.entry.map_or(DEFAULT_PASSES, |e| e.passes(model.meta().task)),
        };
        Ask { walks, passes, seed: self.seed, options: model.walk_options() }
    }
}

fn stated(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &Settings,
    set: &TestSet,
    ask: Ask,
    of: usize,
) -> Result<Stated, EvalError> {
    let (task, topology) = (model.meta().task, set.on.topology());
    let walked = dataset.protocol.walked(settings.split);
    let hash = |part: Part| {
        let path = dataset.file(part);
        let file = || path.display().to_string();
        let bytes = std::fs::read(&path).map_err(|source| EvalError::File { file: file(), source })?;
        Ok::<_, EvalError>(sha256_hex(&bytes))
    };
    let mut known = String::new();
    for part in dataset.protocol.filter(settings.split) {
        if dataset.file(*part).is_file() {
            known += &hash(*part)?;
        }
    }
    Ok(Stated {
        version: env!("CARGO_PKG_VERSION").to_string(),
        checkpoint: name.sha256.clone(),
        precision: name.precision.clone(),
        simd: model.engine().level().to_string(),
        seed: ask.seed,
        n: ask.walks,
        passes: ask.passes,
        length: ask.options.length,
        backtrack: ask.options.backtrack,
        all_at_query: ask.options.all_at_query,
        balanced_on_query_relation: ask.options.balanced_on_query_relation,
        inverses: ask.options.inverses,
        restart: ask.options.restart,
        restart_period: ask.options.restart_period,
        ties: "pessimistic".to_string(),
        filtered: task == Task::Entity,
        filter: dataset.protocol.filter(settings.split).to_vec(),
        sides: match (task, set.heads) {
            (Task::Relation, _) => vec![Side::Relation],
            (Task::Entity, true) => vec![Side::Head, Side::Tail],
            (Task::Entity, false) => vec![Side::Tail],
        },
        walked,
        graph: hash(walked)?,
        predicted: hash(settings.split.part())?,
        known: sha256_hex(known.as_bytes()),
        entities: topology.num_nodes(),
        relations: topology.num_relations(),
        triples: topology.num_triples(),
        sampled: set.triples.len(),
        of,
        dropped: set.dropped,
    })
}
