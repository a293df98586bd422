//! Evaluates a model on one dataset.

use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::ask::rank_all;
use crate::datasets::{Dataset, Part, Split, TestSet, check};
use crate::error::EvalError;
use crate::partial::{PartialRun, RunKey, SavedRanks};
use crate::questions::{AskedSide, TestAnswer, TestQuestions};
use crate::rank::AnswerRank;
use crate::ranks::RankRow;
use crate::results::{Evaluation, FullProtocol, utc};
use crate::strata::{Strata, Stratum};
use crate::summary::RankSummary;
use flock_model::ModelName;
use flock_model::checkpoint::Task;
use flock_model::ensemble::Ask;
use flock_model::files::sha256_hex;
use flock_model::model::Model;

/// Ensemble passes where none are published. The paper uses this many on most graphs.
pub const DEFAULT_PASSES: u32 = 16;

/// How a walk or pass count is chosen.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// By the rule of the checkpoint. Only for base walks; for passes it means the published
    /// number.
    Rule,
    /// By the registry. For a dataset that is not in it: by the rule, or [`DEFAULT_PASSES`].
    Published,
    /// This number.
    Given(u32),
}

/// Settings of an evaluation.
#[derive(Copy, Clone, Debug)]
pub struct EvalSettings {
    /// The triples to predict.
    pub split: Split,
    /// Base walk count.
    pub walks: Choice,
    /// Ensemble passes.
    pub passes: Choice,
    /// Seed of walks and sample.
    pub seed: u64,
    /// If set, at most this many triples are predicted: a seeded sample.
    pub limit: Option<usize>,
}

/// Progress of an evaluation.
#[derive(Copy, Clone, Debug)]
pub struct EvalProgress {
    /// Queries done.
    pub done: usize,
    /// Queries in total.
    pub total: usize,
    /// Queries done since the run was started or resumed.
    pub now: usize,
}

/// An evaluation, with the rank of every answer.
#[derive(Debug)]
pub struct RankedEvaluation {
    /// The metrics and the protocol.
    pub evaluation: Evaluation,
    set: TestSet,
    questions: TestQuestions,
    ranks: Vec<AnswerRank>,
    strata: Vec<Stratum>,
    pub(crate) names_seed: bool, // whether rows say which seed they are of
}

impl RankedEvaluation {
    /// Returns a row per question and answer, in the order in which they were asked.
    pub fn rows(&self) -> impl Iterator<Item = RankRow> + '_ {
        let graph = self.set.on.graph();
        let split = self.evaluation.split.to_string();
        let rows = self.questions.answers().iter().zip(&self.ranks).zip(&self.strata);
        rows.map(move |((answer, rank), stratum)| {
            let triple = self.set.triples[answer.triple as usize];
            let (entities, relations) = (graph.entities(), graph.relations());
            let names = [entities.get(triple.head), relations.get(triple.relation), entities.get(triple.tail)];
            let place = (&self.evaluation.dataset[..], self.evaluation.task, &split[..]);
            let seed = self.names_seed.then_some(self.evaluation.protocol.seed);
            RankRow { seed, ..RankRow::new(place, names, answer, rank, *stratum) }
        })
    }
}

/// Evaluates a model on a dataset. `watch` is called after each batch, and stops the run by
/// returning false. `partial` keeps the ranks on disk, so that a killed run can be resumed.
pub fn evaluate(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &EvalSettings,
    pool: &rayon::ThreadPool,
    partial: Option<&mut PartialRun>,
    watch: &mut dyn FnMut(EvalProgress) -> bool,
) -> Result<Evaluation, EvalError> {
    Ok(evaluate_ranked(dataset, model, name, settings, pool, partial, None, watch)?.evaluation)
}

/// Evaluates a model as [`evaluate`] does, and keeps the rank of every answer. `stop`, once set, ends
/// the run between two passes.
pub fn evaluate_ranked(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &EvalSettings,
    pool: &rayon::ThreadPool,
    partial: Option<&mut PartialRun>,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(EvalProgress) -> bool,
) -> Result<RankedEvaluation, EvalError> {
    evaluate_run(dataset, model, name, settings, (0, settings.seed), pool, partial, stop, watch)
}

/// What an evaluation asks, and how.
#[derive(Debug)]
pub struct PreparedEvaluation {
    /// The triples to predict: all, or a sample.
    pub set: TestSet,
    /// How they are asked for.
    pub ask: Ask,
    /// Everything that the ranks depend on.
    pub protocol: FullProtocol,
    of: usize,
    differences: Vec<String>,
}

/// Loads what an evaluation asks. A sample is drawn with `sample_seed`.
pub fn prepare(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &EvalSettings,
    sample_seed: u64,
) -> Result<PreparedEvaluation, EvalError> {
    let mut set = dataset.test_set(settings.split)?;
    let differences = check::of_set(dataset, settings.split, &set);
    let of = set.triples.len();
    if let Some(limit) = settings.limit {
        set.sample(limit, sample_seed);
    }
    let ask = settings.ask(dataset, model, &set);
    let mut protocol = full_protocol(dataset, model, name, settings, &set, ask, of)?;
    protocol.sample_seed = (set.triples.len() < of && sample_seed != settings.seed).then_some(sample_seed);
    Ok(PreparedEvaluation { set, ask, protocol, of, differences })
}

/// One run of several on the same triples. `place` has its number and the seed that a sample is
/// drawn with.
pub(crate) fn evaluate_run(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &EvalSettings,
    place: (u32, u64),
    pool: &rayon::ThreadPool,
    mut partial: Option<&mut PartialRun>,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(EvalProgress) -> bool,
) -> Result<RankedEvaluation, EvalError> {
    let (run, sample_seed) = place;
    let PreparedEvaluation { set, ask, protocol, of, differences } =
        prepare(dataset, model, name, settings, sample_seed)?;
    let task = model.meta().task;
    let questions = TestQuestions::new(task, &set);
    let total = questions.queries.len();

    let key = RunKey {
        dataset: dataset.name.clone(),
        task: task.to_string(),
        split: settings.split.to_string(),
        run,
        protocol: serde_json::to_value(&protocol).expect("plain values"),
    };
    let SavedRanks { queries: first, seconds: before, mut ranks } = match &mut partial {
        Some(partial) => {
            partial.resume(&key, |queries| (queries <= total).then(|| questions.range(0..queries).len()))?
        }
        None => SavedRanks::default(),
    };
    let clock = Instant::now();
    let seconds = || before + clock.elapsed().as_secs_f64();
    let asking = rank_all(model, &set, &questions, ask, pool, first, stop, |done, batch| {
        ranks.extend_from_slice(batch);
        if let Some(partial) = &mut partial {
            partial.append(done, seconds(), batch)?;
        }
        if watch(EvalProgress { done, total, now: done - first }) { Ok(()) } else { Err(EvalError::Stopped) }
    })?;
    let sitting = clock.elapsed().as_secs_f64();
    let seconds = before + sitting;
    let (topology, triples) = (set.on.topology(), &set.triples);
    let stratum = |answer: &TestAnswer| Stratum::of(topology, triples[answer.triple as usize], answer);
    let strata: Vec<Stratum> = pool.install(|| questions.answers().par_iter().map(stratum).collect());
    let relations = set.on.graph().relations();
    let mut summary = RankSummary::new(questions.answers(), &ranks, of, |r| relations.get(r).to_string());
    summary.strata = Strata::new(&strata, &ranks);
    let walks: usize = questions.queries.iter().map(|q| q.num_walks(ask.walks)).sum();
    let positions = (walks * protocol.length * model.meta().updates) as f64 * f64::from(ask.passes);
    let evaluation = Evaluation {
        dataset: dataset.name.clone(),
        task,
        split: settings.split,
        group: dataset.group(),
        summary,
        asked: total,
        seconds,
        gflops: if seconds > 0.0 {
            2.0 * model.meta().macs_per_position() as f64 * positions / seconds / 1e9
        } else {
            0.0
        },
        overhead: if sitting > 0.0 { 1.0 - asking.as_secs_f64() / sitting } else { 0.0 },
        threads: pool.current_num_threads(),
        time: utc(SystemTime::now()),
        model: name.origin.clone(),
        over_seeds: None,
        differences,
        protocol,
    };
    Ok(RankedEvaluation { evaluation, set, questions, ranks, strata, names_seed: false })
}

impl EvalSettings {
    /// Returns how queries are asked on a dataset: with the kind of walks that the model was
    /// trained with.
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

/// Collects everything that the ranks depend on.
fn full_protocol(
    dataset: &Dataset,
    model: &Model,
    name: &ModelName,
    settings: &EvalSettings,
    set: &TestSet,
    ask: Ask,
    of: usize,
) -> Result<FullProtocol, EvalError> {
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
    Ok(FullProtocol {
        version: env!("CARGO_PKG_VERSION").to_string(),
        checkpoint: name.sha256.clone(),
        precision: name.precision.clone(),
        simd: model.engine().level().to_string(),
        seed: ask.seed,
        sample_seed: None,
        n: ask.walks,
        passes: ask.passes,
        length: ask.options.length,
        backtrack: ask.options.backtrack,
        all_at_query: ask.options.all_at_query,
        balanced_on_query_relation: ask.options.balanced_on_query_relation,
        inverses: ask.options.inverses,
        restart: ask.options.restart,
        restart_period: ask.options.restart_period,
        query_start_period: ask.options.query_start_period,
        ties: "pessimistic".to_string(),
        filtered: task == Task::Entity,
        filter: dataset.protocol.filter(settings.split).to_vec(),
        sides: match (task, set.heads) {
            (Task::Relation, _) => vec![AskedSide::Relation],
            (Task::Entity, true) => vec![AskedSide::Head, AskedSide::Tail],
            (Task::Entity, false) => vec![AskedSide::Tail],
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
