//! `flock-kg doctor`: what this machine offers, and whether answers come out right on it.
//!
//! The self-test asks a few questions about a small built-in graph with initial weights of seed 0, whose scores are known:
//! they must come out at every instruction set and, bit for bit, on any number of threads.

use std::io::{self, Write};
use std::path::PathBuf;

use flock_kg::Question;
use flock_kg::bundled::COUNTRIES;
use flock_kg::graph::{self, Graph, LoadOptions};
use flock_kg::kernels::{Engine, Level, Precision};
use flock_kg::model::checkpoint::{Checkpoint, Metadata, Task};
use flock_kg::model::ensemble::{Ask, Asker, Scores};
use flock_kg::model::init::initial_weights;
use flock_kg::model::{Model, View};
use flock_kg::{ModelName, Predictor};
use serde::Serialize;

use crate::shared::failure::{Failure, error, json};
use crate::shared::models;
use crate::shared::parse;
use crate::shared::table::{self, Align};

/// How far two instruction sets may differ, and either from the known answer: they add in different orders.
const TOLERANCE: f64 = 1e-3;
const WALKS: u32 = 8;

/// Questions, one of their answers, and its logit as the plain definition of the model gives it.
const KNOWN: [([&str; 3], &str, f64); 3] = [
    (["Portugal", "borders", "?"], "Spain", -1.01900),
    (["?", "capital", "Lisbon"], "Portugal", -0.81422),
    (["Portugal", "?", "Spain"], "borders", -0.52390),
];

/// Arguments of `doctor`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit status 1 if a test fails.\n\nExample:\n  flock-kg doctor --model flock-entity.safetensors"
)]
pub struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Checkpoint to look at; may be given twice [default: the built-in models]
    #[arg(long, value_name = "FILE")]
    pub model: Vec<PathBuf>,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = parse::threads)]
    pub threads: Option<usize>,
}

/// The JSON of the command.
#[derive(Serialize)]
struct DoctorReport {
    version: &'static str,
    platform: String,
    cpu: Option<String>,
    features: Vec<&'static str>,
    simd: String,
    simd_available: Vec<String>,
    simd_forced: bool,
    bf16: &'static str,
    precision: String,
    threads: usize,
    models: Vec<ModelName>,
    tests: Vec<SelfTest>,
    ok: bool,
}

/// One part of the self-test.
#[derive(Serialize)]
struct SelfTest {
    ok: bool,
    what: String,
}

/// Looks around, tests, and fails if a test does.
pub fn run(args: DoctorArgs) -> Result<(), Failure> {
    let engine = models::engine(Precision::F32)?;
    let threads = args.threads.unwrap_or_else(models::all_threads);
    let builder = args.model.iter().fold(Predictor::builder().threads(threads), |b, file| b.model(file));
    let predictor = builder.build().map_err(error)?;
    let tests = self_test(engine.level(), threads)?;
    let report = DoctorReport {
        version: env!("CARGO_PKG_VERSION"),
        platform: format!("{} {}", std::env::consts::ARCH, std::env::consts::OS),
        cpu: cpu(),
        features: features(),
        simd: engine.level().to_string(),
        simd_available: Level::available().map(|l| l.to_string()).collect(),
        simd_forced: std::env::var_os("FLOCK_SIMD").is_some_and(|v| !v.is_empty()),
        bf16: if engine.level().has_native_bf16() { "native" } else { "emulated" },
        precision: predictor.engine().precision().to_string(),
        threads,
        models: predictor.tasks().into_iter().filter_map(|t| Some(predictor.model(t).ok()?.name.clone())).collect(),
        ok: tests.iter().all(|t| t.ok),
        tests,
    };
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json(&report)?)?;
    } else {
        report.write(&mut out)?;
    }
    out.flush()?;
    if report.ok {
        Ok(())
    } else {
        Err(Failure::Error("the self-test failed; hint: report it with the lines above".into()))
    }
}

fn self_test(level: Level, threads: usize) -> Result<Vec<SelfTest>, Failure> {
    let graph = countries()?;
    let weights = [weights(Task::Entity)?, weights(Task::Relation)?];
    let mut tests = Vec::new();

    let scores = ask(&graph, &weights, level, threads)?;
    for ((texts, name, expected), scores) in KNOWN.iter().zip(&scores) {
        let question = Question::parse(&graph, *texts).map_err(error)?;
        let logit = scores.of(answer(&graph, &question, name)?).logit;
        let ok = (logit - expected).abs() < TOLERANCE;
        tests.push(SelfTest {
            ok,
            what: format!("{}: {name} has logit {logit:+.5}, known {expected:+.5}", texts.join(" ")),
        });
    }
    for other in Level::available().filter(|l| *l != level) {
        let apart = difference(&scores, &ask(&graph, &weights, other, threads)?);
        let ok = apart < TOLERANCE;
        tests.push(SelfTest {
            ok,
            what: format!("{level} and {other} agree: largest difference of a logit {apart:.1e}"),
        });
    }
    let other = if threads == 1 { 2 } else { 1 };
    let again = ask(&graph, &weights, level, other)?;
    let ok = scores.iter().zip(&again).all(|(a, b)| a.reached == b.reached && a.unreached == b.unreached);
    tests.push(SelfTest { ok, what: format!("{other} and {threads} threads give the same bits") });
    Ok(tests)
}

fn countries() -> Result<Graph, Failure> {
    let loaded = graph::load_reader("countries.tsv", COUNTRIES.as_bytes(), &LoadOptions::default());
    Ok(loaded.map_err(error)?.0)
}

fn answer(graph: &Graph, question: &Question, name: &str) -> Result<u32, Failure> {
    let id = match question.task() {
        Task::Entity => graph.parse_entity(name),
        Task::Relation => graph.parse_relation(name),
    };
    id.map_err(error)
}

/// The scores of all questions of the self-test.
fn ask(graph: &Graph, weights: &[Checkpoint; 2], level: Level, threads: usize) -> Result<Vec<Scores>, Failure> {
    let pool = models::pool(Some(threads))?;
    let engine = Engine::new(level, Precision::F32).ok_or_else(|| format!("this machine has no {level}"))?;
    let mut all = Vec::new();
    for (texts, ..) in KNOWN {
        let question = Question::parse(graph, texts).map_err(error)?;
        let model = Model::new(&weights[question.task() as usize], engine).map_err(error)?;
        let how = Ask { walks: WALKS, passes: 1, seed: 0, options: model.walk_options() };
        let asker = Asker::new(&model, View { topology: graph.topology(), mask: None }, &pool);
        all.extend(asker.ask(&[question.query], how).map_err(error)?);
    }
    Ok(all)
}

fn weights(task: Task) -> Result<Checkpoint, Failure> {
    initial_weights(Metadata::published(task), 0).map_err(error)
}

/// The largest difference of a logit; infinite if other candidates were reached, since walks are drawn in integers.
fn difference(a: &[Scores], b: &[Scores]) -> f64 {
    let mut largest = 0f64;
    // `max` would drop what is no number, and two such models would agree.
    let mut see = |a: f64, b: f64| {
        let d = (a - b).abs();
        largest = if d.is_nan() { f64::INFINITY } else { largest.max(d) };
    };
    for (a, b) in a.iter().zip(b) {
        if !a.reached.iter().map(|r| r.0).eq(b.reached.iter().map(|r| r.0)) {
            return f64::INFINITY;
        }
        for ((_, a), (_, b)) in a.reached.iter().zip(&b.reached) {
            see(a.logit, b.logit);
        }
        see(a.unreached.logit, b.unreached.logit);
    }
    largest
}

/// What the processor calls itself, where the system tells.
fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// The instruction sets that matter here, those that the processor has.
fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    macro_rules! seen {
        ($($name:tt)*) => { [$(($name, std::arch::is_x86_feature_detected!($name))),*] };
    }
    #[cfg(target_arch = "x86_64")]
    let all = seen!("avx2" "fma" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512bf16" "avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    let all: [(&'static str, bool); 0] = [];
    all.into_iter().filter(|f| f.1).map(|f| f.0).collect()
}

impl DoctorReport {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |what: &str, value: String| rows.push(vec![what.to_string(), value]);
        row("flock-kg", format!("{} on {}", self.version, self.platform));
        row("processor", self.cpu.clone().unwrap_or_else(|| "unknown".to_string()));
        row("features", if self.features.is_empty() { "none of ours".to_string() } else { self.features.join(" ") });
        let why = if self.simd_forced { "forced by FLOCK_SIMD; there are" } else { "the best of" };
        row("simd", format!("{} ({why} {})", self.simd, self.simd_available.join(", ")));
        row("bf16", self.bf16.to_string());
        row("precision", format!("{} unless --precision says otherwise", self.precision));
        row("threads", self.threads.to_string());
        for model in &self.models {
            row(&format!("{} model", model.task), format!("{}, SHA-256 {}", model.origin, model.sha256));
        }
        for test in &self.tests {
            row(if test.ok { "ok" } else { "FAILED" }, test.what.clone());
        }
        table::write(out, &[Align::Left, Align::Left], &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flock_kg::kernels::embed::Positions;
    use flock_kg::model::plain;
    use flock_kg::walk::{Key, Recorder, Records, WalkOptions, WalkQuery, Walks};

    /// The known logits are those of the plain definition, on walks drawn as a pass draws them.
    #[test]
    fn known_logits_are_the_definitions() {
        let graph = countries().unwrap();
        let topology = graph.topology();
        let mut found = Vec::new();
        for (texts, name, _) in KNOWN {
            let question = Question::parse(&graph, texts).unwrap();
            let checkpoint = weights(question.task()).unwrap();
            let number = match question.query {
                WalkQuery::Entity { head, relation } => u64::from(head) << 32 | u64::from(relation),
                WalkQuery::Relation { head, tail } => !(u64::from(head) << 32 | u64::from(tail)),
            };
            let mut states = plain::initial_states(
                &checkpoint.weights,
                topology.num_nodes() as usize,
                topology.num_types() as usize,
            );
            let (mut recorder, mut records) = (Recorder::new(), Records::default());
            recorder.begin(&question.query, topology.no_type());
            for update in 0..checkpoint.meta().updates {
                let key = Key { seed: 0, pass: 0, update: update as u32, query: number };
                let walks = Walks::sample(topology, None, &question.query, WALKS, key, &WalkOptions::default());
                recorder.record(walks.length, &walks.nodes, &walks.types, &walks.dirs, &mut records);
                let records = Positions {
                    node: &walks.nodes,
                    ty: &walks.types,
                    node_name: &records.node_name,
                    type_name: &records.type_name,
                    mark: &records.mark,
                };
                plain::update(&checkpoint.weights, update, records, &mut states);
            }
            let id = answer(&graph, &question, name).unwrap();
            found.push(f64::from(plain::scores(&checkpoint.weights, &question.query, &states, &[id])[0]));
        }
        let close = found.iter().zip(KNOWN).all(|(logit, (.., known))| (logit - known).abs() < 2e-5);
        assert!(close, "{found:.5?}, known {:.5?}", KNOWN.map(|k| k.2));
    }
}
