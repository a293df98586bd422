//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use flock_kg::graph::{Format, LoadOptions};
use flock_kg::kernels::Precision;

const READING: &str = "Reading the graph";
const MODEL: &str = "Model";

/// Predicts missing links in any knowledge graph.
#[derive(Parser, Debug)]
#[command(
    name = "flock-kg",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = "\
Examples:
  flock-kg predict data/countries.tsv Portugal borders '?'
  flock-kg info data/countries.tsv
  flock-kg doctor

The environment variable FLOCK_SIMD=portable|avx2|avx512 forces an instruction set."
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Answer (head, relation, ?), (?, relation, tail) or (head, ?, tail)
    Predict(Predict),
    /// Show the reasons for an answer, and check them by hiding their edges
    Explain(Explain),
    /// Fit probabilities to held-out edges of a graph
    Calibrate(Calibrate),
    /// Serve a graph over HTTP, with a page to ask in
    Serve(Serve),
    /// Describe a graph, and what a query on it costs
    Info(Info),
    /// Turn a PyTorch checkpoint into a safetensors file
    Import(Import),
    /// Show what this machine offers and test that answers come out right
    Doctor(Doctor),
    /// Train a model from its beginnings on one or more graphs
    Pretrain(Box<crate::commands::pretrain::Args>),
    /// Train a model further on one graph
    Finetune(Box<crate::commands::finetune::Args>),
    /// Train on the Petals graphs, which test what a model can tell apart
    Petals(Box<crate::commands::petals::Args>),
    /// Write a synthetic world, as pretraining makes them, as a dataset
    World(crate::commands::world::Args),
    /// Rank held-out answers of benchmark datasets
    Eval(Box<crate::commands::eval::Args>),
    /// List, check or fetch benchmark datasets
    Datasets(Box<crate::commands::datasets::Args>),
    /// Draw the paper's analyses: passes, walks, ablations, relation embeddings, density
    Analyse(Box<crate::commands::analyse::Args>),
    /// Measure speed against this machine's peak
    Bench(Bench),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  flock-kg completions bash > ~/.local/share/bash-completion/completions/flock-kg"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// A graph file and how to read it.
#[derive(clap::Args, Debug)]
pub struct GraphArgs {
    /// Graph file: TSV, CSV, N-Triples, Turtle or RDF/XML, plain or packed (.gz, .zst); - for standard input
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
}

/// How to read a graph file.
#[derive(clap::Args, Debug)]
pub struct Reading {
    /// Format of the graph file [default: by its name, else by its first lines]
    #[arg(long, help_heading = READING, value_parser = PossibleValuesParser::new(["tsv", "csv", "nt", "ttl", "rdfxml"])
        .try_map(|s| s.parse::<Format>()))]
    pub format: Option<Format>,
    /// Columns of head, relation and tail in TSV or CSV, counted from 1
    #[arg(long, help_heading = READING, value_name = "H,R,T", value_parser = columns)]
    pub columns: Option<[usize; 3]>,
    /// The first row of TSV or CSV names the columns [default: if it looks so]
    #[arg(long, help_heading = READING)]
    pub header: bool,
    /// The first row is a triple like any other
    #[arg(long, help_heading = READING, conflicts_with = "header")]
    pub no_header: bool,
    /// Skip malformed rows and count them, instead of stopping at the first
    #[arg(long, help_heading = READING)]
    pub lenient: bool,
}

impl Reading {
    /// Whether anything was said.
    pub fn is_given(&self) -> bool {
        self.format.is_some() || self.columns.is_some() || self.header || self.no_header || self.lenient
    }

    /// The same for the loader.
    pub fn options(&self) -> LoadOptions {
        LoadOptions {
            format: self.format,
            lenient: self.lenient,
            header: if self.header { Some(true) } else { self.no_header.then_some(false) },
            columns: self.columns,
            max_bytes: None,
        }
    }
}

fn columns(text: &str) -> Result<[usize; 3], String> {
    let rule = || "expected three different column numbers counted from 1, such as 1,2,3".to_string();
    let parse = |s: &str| s.trim().parse::<usize>().ok()?.checked_sub(1);
    let columns: Option<Vec<usize>> = text.split(',').map(parse).collect();
    let [h, r, t] = columns.and_then(|c| <[usize; 3]>::try_from(c).ok()).ok_or_else(rule)?;
    if h == r || r == t || h == t { Err(rule()) } else { Ok([h, r, t]) }
}

/// The model and how it runs.
#[derive(clap::Args, Debug)]
pub struct ModelArgs {
    /// Checkpoint (.safetensors); may be given twice, one for entities and one for relations [default: the
    /// built-in model]
    #[arg(long, help_heading = MODEL, value_name = "FILE")]
    pub model: Vec<PathBuf>,
    /// Threads [default: all]
    #[arg(long, help_heading = MODEL, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Precision of multiplications: f32, or bf16, which is faster where the processor has it
    #[arg(long, help_heading = MODEL, default_value = "f32", value_parser = PossibleValuesParser::new(["f32", "bf16"])
        .try_map(|s| s.parse::<Precision>()))]
    pub precision: Precision,
}

/// Arguments of `predict`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "flock-kg predict [OPTIONS] <GRAPH> <HEAD> <RELATION> <TAIL>      (one of the three is '?')\n       \
                      flock-kg predict [OPTIONS] <GRAPH> --queries <FILE>",
    after_help = "\
Examples:
  flock-kg predict data/countries.tsv Portugal borders '?'
  flock-kg predict data/countries.tsv '?' capital Lisbon --novel --top 3
  flock-kg predict data/countries.tsv Portugal '?' Spain --passes 8
  flock-kg predict data/countries.tsv Portugal continent '?' --budget 2s --explain
  printf 'Portugal\\tborders\\t?\\nFrance\\t?\\tSpain\\n' |
    flock-kg predict data/countries.tsv --queries - --json

Quote the '?': it is always the blank, even if something in the graph is called ?. A name that starts with - goes \
after --.

Rank = 1 + the number of candidates with a strictly higher score; candidates that no walk reached share one score.

With --json each query is one line: query, answers (rank, name, logit, probability, spread, visits, known), unreached, \
candidates, coverage, seed, walks, passes, model; with --explain answers have a reason, with --budget there is stopped, \
after calibrate there is calibration, or calibration_unused with the reason. A query of a batch that fails is reported on standard error (with \
--json also as a line with \"error\"), the others go on, and the exit status is 1.

The same query, seed and options give the same answer, alone or in a batch, on any number of threads; with --budget \
the clock decides how many passes there are."
)]
pub struct Predict {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Head entity, or '?'
    #[arg(required_unless_present = "queries")]
    pub head: Option<String>,
    /// Relation, or '?'
    #[arg(required_unless_present = "queries")]
    pub relation: Option<String>,
    /// Tail entity, or '?'
    #[arg(required_unless_present = "queries")]
    pub tail: Option<String>,
    /// Ask every row of a file: head, relation and tail separated by tabs (by commas if it is a .csv file), one
    /// of them ?; - for standard input. Answers come as they are ready, in the order of the rows
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["head", "relation", "tail"])]
    pub queries: Option<PathBuf>,
    /// Answers to list; 0 for all that a walk reached
    #[arg(long, short = 'k', value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Leave out answers that the graph already has
    #[arg(long)]
    pub novel: bool,
    /// Candidates: only the names in this file, one per line; all of them are ranked
    #[arg(long, value_name = "FILE")]
    pub among: Option<PathBuf>,
    /// Base walk count n: 3n walks for an entity, 4n for a relation [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks, whose logits are averaged; more are steadier and take longer [default: 1]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: Option<u32>,
    /// Add passes until so much time is up for each query (300ms, 2s) or the listed answers stop changing places;
    /// --passes is then the most
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// One line of reason for each answer: the way from the query that weighed most
    #[arg(long)]
    pub explain: bool,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// One JSON object per query
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `explain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each reason is a way from the query to the answer that walks took, with its share of the answer's consensus. Weights \
alone prove nothing: the edges of the best reasons are then hidden and the question asked again, beside as many \
random edges around the same entities. A triple that the graph has is hidden from the start.

Examples:
  flock-kg explain data/countries.tsv Portugal borders Spain
  flock-kg explain data/countries.tsv Portugal continent Europe --svg reasons.svg
  flock-kg explain data/countries.tsv Spain borders Portugal --blank head --json")]
pub struct Explain {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Head entity
    pub head: String,
    /// Relation
    pub relation: String,
    /// Tail entity
    pub tail: String,
    /// Which of the three is taken as the answer
    #[arg(long, default_value = "tail", value_parser = ["head", "relation", "tail"])]
    pub blank: String,
    /// Reasons to list
    #[arg(long, short = 'k', value_name = "K", default_value_t = 5, value_parser = positive)]
    pub top: usize,
    /// How many of the model's last updates to look at
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = positive)]
    pub updates: usize,
    /// How many of the best reasons to hide in the check
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive)]
    pub hide: usize,
    /// How often to hide random edges instead
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub draws: u32,
    /// Leave the check by deletion out
    #[arg(long)]
    pub no_check: bool,
    /// Draw the reasons into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Base walk count n [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks
    #[arg(long, value_name = "P", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: u32,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `calibrate`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Triples of the graph are hidden and asked for; how often listed answers of a given logit are among them makes the \
probability. The result is kept in GRAPH.calibration.json, where predict, explain and serve find it. They use it for \
questions asked with the same model, --walks and --passes, and say so if it is not used.

Examples:
  flock-kg calibrate data/countries.tsv --queries 60 --svg reliability.svg
  flock-kg calibrate data/countries.tsv --passes 4 --out countries-4.json")]
pub struct Calibrate {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Task to calibrate [default: those of --model, else entity]
    #[arg(long, value_parser = ["entity", "relation"])]
    pub task: Option<String>,
    /// Triples to hold out; at most a tenth of the graph
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub queries: usize,
    /// Candidates of each question that count
    #[arg(long, short = 'k', value_name = "K", default_value_t = 10, value_parser = positive)]
    pub top: usize,
    /// Keep the result here instead; predict, explain and serve find it with --calibration
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draw the reliability diagram into this file (with the task before its ending if there are two)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Base walk count n [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks; use what predict will use
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: u32,
    /// Seed of the walks and of what is held out
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// One JSON object for each task
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without GRAPH the bundled graph is served. The page is at /, the API is described at /docs. Edits are kept beside the \
graph in GRAPH.edits; the graph file itself is not touched. A token can also come from the environment variable \
FLOCK_TOKEN, where other users of the machine do not see it.

Examples:
  flock-kg serve
  flock-kg serve graph.tsv --model flock-entity.safetensors --listen 127.0.0.1:8000
  FLOCK_TOKEN=secret flock-kg serve graph.tsv --listen 0.0.0.0:7878 --guard-reads")]
pub struct Serve {
    /// Graph file [default: the bundled graph]
    #[arg(value_name = "GRAPH")]
    pub graph: Option<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
    /// Address and port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    pub listen: SocketAddr,
    /// A further host name to answer to on loopback, such as that of a proxy in front
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// What clients must show to change the graph (Authorization: Bearer …)
    #[arg(long, env = "FLOCK_TOKEN", hide_env_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub token: Option<String>,
    /// Ask for the token on reads as well
    #[arg(long, requires = "token")]
    pub guard_reads: bool,
    /// Where edits are kept [default: GRAPH.edits]
    #[arg(long, value_name = "FILE", requires = "graph")]
    pub edits: Option<PathBuf>,
    /// Apply edits that were made on another graph, such as an older version of GRAPH; they then belong to this one
    #[arg(long, requires = "graph")]
    pub adopt_edits: bool,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE", requires = "graph")]
    pub calibration: Option<PathBuf>,
    /// Most passes of a question
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_passes: u32,
    /// Most base walks of a question
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub max_walks: u32,
    /// Most questions in a request
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = positive)]
    pub max_batch: usize,
    /// Requests that may wait; more are answered 429
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = queue)]
    pub queue: usize,
    /// Connections one client may have open
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = positive)]
    pub connections_per_client: usize,
    /// Time for an answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = deadline)]
    pub deadline: Duration,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `info`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  flock-kg info data/countries.tsv\n  flock-kg info graph.nt.gz --json")]
pub struct Info {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `import`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file is read without Python and nothing in it is executed.

Example:
  flock-kg import flock-entity.pth flock-entity.safetensors")]
pub struct Import {
    /// File written by torch.save
    #[arg(value_name = "PTH")]
    pub from: PathBuf,
    /// Checkpoint to write; an existing file is replaced
    #[arg(value_name = "SAFETENSORS")]
    pub to: PathBuf,
}

/// Arguments of `doctor`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit status 1 if a test fails.\n\nExample:\n  flock-kg doctor --model flock-entity.safetensors"
)]
pub struct Doctor {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Checkpoint to look at; may be given twice [default: the built-in models]
    #[arg(long, value_name = "FILE")]
    pub model: Vec<PathBuf>,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
}

/// Arguments of `bench`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  flock-kg bench --threads 1 --seconds 2\n  flock-kg bench --train --json")]
pub struct Bench {
    /// Measure training steps instead of forward passes
    #[arg(long)]
    pub train: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Time for each row, about
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub seconds: f64,
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=1024).contains(&threads) => Ok(threads),
        _ => Err("expected a number from 1 to 1024".to_string()),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a number from 1".to_string()),
    }
}

/// A server cannot let more wait than its semaphore can count.
fn queue(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=1_000_000).contains(&n) => Ok(n),
        _ => Err("expected a number from 1 to 1000000".to_string()),
    }
}

fn deadline(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected more than no time".to_string()),
        time => Ok(time),
    }
}

/// 300ms, 2s or 1.5s.
fn duration(text: &str) -> Result<Duration, String> {
    let rule = || "expected a time such as 300ms or 2s, up to 1 hour".to_string();
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').ok_or_else(rule)?, 1.0),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| rule())? * unit;
    if (0.0..=3600.0).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(rule()) }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if (0.01..=600.0).contains(&seconds) { Ok(seconds) } else { Err("expected 0.01 to 600".to_string()) }
}
