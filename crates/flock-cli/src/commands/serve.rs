//! `flock-kg serve`: the graph over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use flock_kg::bundled;
use flock_kg::calibrate::Calibrations;
use flock_server::live::{EditsFile, Live, LiveError};
use flock_server::store::StoreRemedy;
use flock_server::{Limits, Options, ServeError, serve};

use crate::shared::calibrations;
use crate::shared::failure::{Failure, error};
use crate::shared::load::{self, GraphArgs, LabelArgs, ReadingArgs};
use crate::shared::models::ModelArgs;
use crate::shared::parse;

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
pub struct ServeArgs {
    /// Graph file, or a directory of them [default: the bundled graph]
    #[arg(value_name = "GRAPH", value_parser = load::graph_path())]
    pub graph: Option<PathBuf>,
    /// A further file or directory of the same graph; may be given again
    #[arg(long, value_name = "FILE", requires = "graph")]
    pub with: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
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
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = parse::positive)]
    pub max_batch: usize,
    /// Requests that may wait; more are answered 429
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = queue)]
    pub queue: usize,
    /// Connections one client may have open
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = parse::positive)]
    pub connections_per_client: usize,
    /// Time for an answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = deadline)]
    pub deadline: Duration,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// A server cannot let more wait than its semaphore can count.
fn queue(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=1_000_000).contains(&n) => Ok(n),
        _ => Err("expected a number from 1 to 1000000".to_string()),
    }
}

fn deadline(text: &str) -> Result<Duration, String> {
    match parse::duration(text)? {
        Duration::ZERO => Err("expected more than no time".to_string()),
        time => Ok(time),
    }
}

/// Serves until interrupted.
pub fn run(args: ServeArgs) -> Result<(), Failure> {
    let predictor = args.model.predictor()?;
    let (name, graph, edits, calibrations) = match args.graph {
        None if args.labels.labels.is_some() => {
            return Err(Failure::Misuse("serve", "--labels are for a GRAPH, and none is given".to_string()));
        }
        None if args.reading.is_given() => {
            let message = "--format, --columns, --header, --no-header, --lenient, --language and --page-size say how to read a \
                 GRAPH, and none is given";
            return Err(Failure::Misuse("serve", message.to_string()));
        }
        None => ("countries (bundled)".to_string(), bundled::graph().map_err(error)?, None, Calibrations::default()),
        Some(path) => {
            let name = path.file_name().map_or_else(|| "graph".to_string(), |n| n.to_string_lossy().into_owned());
            let calibrations = calibrations::find(args.calibration.as_deref(), &path)?;
            let edits = args.edits.or_else(|| beside(&path));
            let graph = GraphArgs { graph: path, with: args.with, reading: args.reading, labels: args.labels };
            (name, load::graph(&graph)?.0, edits, calibrations)
        }
    };
    // Unpacked now, so that the first question does not wait for it.
    for task in predictor.tasks() {
        predictor.model(task).map_err(error)?;
    }
    let limits = Limits {
        passes: args.max_passes,
        walks: args.max_walks,
        batch: args.max_batch,
        queue: args.queue,
        deadline: args.deadline,
        connections_per_client: args.connections_per_client,
        ..Limits::default()
    };
    let file = edits.as_deref().map(|path| EditsFile { path, adopt: args.adopt_edits });
    let main = Live::open(name, graph, file, calibrations).map_err(not_opened)?;
    main.notices.iter().for_each(|notice| say!("warning: {notice}"));
    let options = Options {
        listen: args.listen,
        names: args.host,
        kept: edits.is_some(),
        main,
        predictor,
        token: args.token,
        guard_reads: args.guard_reads,
        limits,
    };
    if !options.listen.ip().is_loopback() && options.token.is_none() {
        say!("warning: {} can be reached from other machines; without --token edits are refused", options.listen);
    }
    serve(options, |address| say!("listening on http://{address}/ (Ctrl-C ends)")).map_err(|e| match &e {
        ServeError::Listen { .. } => Failure::Error(format!("{e}; hint: --listen with another address or port")),
        _ => error(e),
    })
}

/// Where edits of a graph file are kept; nowhere for standard input.
fn beside(graph: &std::path::Path) -> Option<PathBuf> {
    if graph == std::path::Path::new("-") {
        return None;
    }
    let mut name = graph.as_os_str().to_owned();
    name.push(".edits");
    Some(PathBuf::from(name))
}

/// An error of the graph or its edits, with what helps in terms of this command.
fn not_opened(e: LiveError) -> Failure {
    let LiveError::Store(store) = &e else { return error(e) };
    let hint = match store.remedy() {
        StoreRemedy::StopOther => "stop the other server, or keep edits elsewhere with --edits FILE",
        StoreRemedy::MoveAway => {
            "restore it from a backup, or move it away to begin without its edits; --edits FILE names another"
        }
        StoreRemedy::Upgrade => "use a newer flock-kg, or keep edits elsewhere with --edits FILE",
        StoreRemedy::Adopt => {
            "serve the graph they belong to, keep edits elsewhere with --edits FILE, or apply them to this graph with \
             --adopt-edits"
        }
        StoreRemedy::MakeRoom => "make room on the disk",
        _ => "can file and directory be written? --edits FILE names another place",
    };
    Failure::Error(format!("{e}; hint: {hint}"))
}
