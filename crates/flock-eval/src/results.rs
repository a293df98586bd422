//! One dataset evaluated: its numbers, and the whole protocol that they were got by.

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use rayon::prelude::*;

use super::metrics::{Counted, Placed};
use super::partial::{Begin, Done, Record};
use super::questions::{Item, Questions, Side};
use super::ranks::RankRow;
use super::strata::{Strata, Stratum};
use super::{EvalError, place_all};
use crate::datasets::{Dataset, Group, Part, Split, TestSet, check};
use flock_model::ModelName;
use flock_model::bench::MACS_PER_POSITION;
use flock_model::checkpoint::Task;
use flock_model::ensemble::Ask;
use flock_model::files::{sha256_hex, write_atomically};
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

/// A protocol in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stated {
    /// Version of this program.
    pub version: String,
    /// SHA-256 of the checkpoint.
    pub checkpoint: String,
    /// Precision of multiplications.
    pub precision: String,
    /// Instruction set of the kernels.
    pub simd: String,
    /// Seed of walks and sample.
    pub seed: u64,
    /// Base walk count.
    pub n: u32,
    /// Ensemble passes.
    pub passes: u32,
    /// Walk length.
    pub length: usize,
    /// Walks may step straight back.
    pub backtrack: bool,
    /// All walks start at the query.
    pub all_at_query: bool,
    /// Balanced walks start on edges of the query's relation.
    pub balanced_on_query_relation: bool,
    /// Graphs have an inverse type for each relation.
    pub inverses: bool,
    /// Chance of a walk to begin anew, in parts of 1024; older results have none.
    #[serde(default)]
    pub restart: u32,
    /// Which walks may begin anew; older results have none.
    #[serde(default)]
    pub restart_period: u32,
    /// Tie rule of the first numbers.
    pub ties: String,
    /// Whether those are filtered.
    pub filtered: bool,
    /// Files whose triples are known.
    pub filter: Vec<Part>,
    /// What is asked for.
    pub sides: Vec<Side>,
    /// The file that is walked.
    pub walked: Part,
    /// SHA-256 of that file.
    pub graph: String,
    /// SHA-256 of the file with the triples to predict.
    pub predicted: String,
    /// SHA-256 over the hashes of all files of `filter` that there are; older results have none.
    #[serde(default)]
    pub known: String,
    /// Entities of the walked graph, all candidates.
    pub entities: u32,
    /// Its relations.
    pub relations: u32,
    /// Its distinct triples.
    pub triples: usize,
    /// Triples predicted: a sample, if there are fewer than `of`.
    pub sampled: usize,
    /// Triples that there are to predict.
    pub of: usize,
    /// Triples left out because the walked graph lacks a name.
    pub dropped: usize,
}

/// One object of `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Name of the dataset.
    pub dataset: String,
    /// What was predicted.
    pub task: Task,
    /// Which triples.
    pub split: Split,
    /// The group it is averaged in.
    pub group: Group,
    /// The numbers; the first ones under the published tie rule.
    #[serde(flatten)]
    pub counted: Counted,
    /// Distinct queries asked.
    pub asked: usize,
    /// Time they took, ranking included, loading not.
    pub seconds: f64,
    /// Useful multiply-adds per second, in GFLOP/s.
    pub gflops: f64,
    /// Share of the last sitting's time that was not the model's: ranking, filtering, files, progress.
    pub overhead: f64,
    /// Threads.
    pub threads: usize,
    /// When it was finished, UTC.
    pub time: String,
    /// Name of the model.
    pub model: String,
    /// What differs from the registry.
    pub differences: Vec<String>,
    /// How the numbers were got.
    pub protocol: Stated,
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

/// Writes a list of results as `results.json`, whole or not at all.
pub fn write(path: &Path, results: &[Evaluation]) -> Result<(), EvalError> {
    let mut text = serde_json::to_string_pretty(results).expect("string keys and plain values");
    text.push('\n');
    write_text(path, &text)
}

/// Writes a text, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), EvalError> {
    let file = || path.display().to_string();
    write_atomically(path, text.as_bytes()).map_err(|source| EvalError::File { file: file(), source })
}

/// Reads what [`write()`] wrote.
pub fn read(path: &Path) -> Result<Vec<Evaluation>, EvalError> {
    let file = || path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| EvalError::File { file: file(), source })?;
    serde_json::from_slice(&bytes).map_err(|e| EvalError::Results { file: file(), reason: e.to_string() })
}

/// `2026-01-31T12:00:00Z`.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{:02}Z", month + 1, days + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn tells_the_time() {
        // date -u -d @… +%FT%TZ
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_000_000, "2026-11-18T11:06:40Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
