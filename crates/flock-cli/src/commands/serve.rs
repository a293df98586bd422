//! `flock-kg serve`: the graph over HTTP.

use std::path::PathBuf;

use flock_kg::calibrate::Calibrations;
use flock_kg::checkpoint::Task;
use flock_server::live::{EditsFile, Live, LiveError};
use flock_server::store::StoreRemedy;
use flock_server::{Limits, Options, ServeError, bundled_graph, serve};

use crate::commands::calibrate;
use crate::shared::args;
use crate::shared::failure::{Failure, error};
use crate::shared::load;
use crate::shared::models::{self, Models};

/// Serves until interrupted.
pub fn run(args: args::Serve) -> Result<(), Failure> {
    let models = Models::open(&args.model.model, models::engine(args.model.precision)?)?;
    let pool = models::pool(args.model.threads)?;
    let (name, graph, edits, calibrations) = match args.graph {
        None if args.reading.is_given() => {
            let message =
                "--format, --columns, --header, --no-header and --lenient say how to read a GRAPH, and none is given";
            return Err(Failure::Misuse("serve", message.to_string()));
        }
        None => ("countries (bundled)".to_string(), bundled_graph().map_err(error)?, None, Calibrations::default()),
        Some(path) => {
            let name = path.file_name().map_or_else(|| "graph".to_string(), |n| n.to_string_lossy().into_owned());
            let calibrations = calibrate::find(args.calibration.as_deref(), &path)?;
            let edits = args.edits.or_else(|| beside(&path));
            let graph = args::GraphArgs { graph: path, reading: args.reading };
            (name, load::graph(&graph)?.0, edits, calibrations)
        }
    };
    for task in [Task::Entity, Task::Relation] {
        let _ = models.get(task);
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
        models: models.into_served(),
        pool,
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
