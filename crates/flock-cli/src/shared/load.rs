//! The graph a command works on: its arguments, and loading it.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use flock_kg::graph::{self, Columns, Format, Graph, LoadOptions, LoadReport};

use crate::shared::failure::{Failure, error, hint};

const READING: &str = "Reading the graph";

/// A graph file and how to read it.
#[derive(clap::Args, Debug)]
pub struct GraphArgs {
    /// Graph file, or a directory of them: TSV, CSV, JSON lines, Parquet, Arrow, N-Triples, Turtle or RDF/XML, plain
    /// or packed (.gz, .zst); - for standard input
    #[arg(value_name = "GRAPH", value_parser = graph_path())]
    pub graph: PathBuf,
    /// A further file or directory of the same graph, such as one with nodes beside one with edges; may be given again
    #[arg(long, help_heading = READING, value_name = "FILE")]
    pub with: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How to read a graph file.
#[derive(clap::Args, Debug)]
pub struct ReadingArgs {
    /// Format of the graph file [default: by its name and its first lines]
    #[arg(long, help_heading = READING, value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|s| s.parse::<Format>()))]
    pub format: Option<Format>,
    /// Columns of head, relation and tail in a table, by name or counted from 1: subject,predicate,object or 1,2,3
    /// [default: by their names]
    #[arg(long, help_heading = READING, value_name = "H,R,T", value_parser = str::parse::<Columns>)]
    pub columns: Option<Columns>,
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

impl ReadingArgs {
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
            columns: self.columns.clone(),
            max_bytes: None,
        }
    }
}

/// A graph file or directory. Files that belong to it have its name, so a directory has no slash at its end.
pub fn graph_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| if path.is_dir() { path.components().collect() } else { path })
}

/// Loads the graph and says on standard error what was left out, and what looks wrong.
pub fn graph(args: &GraphArgs) -> Result<(Graph, LoadReport), Failure> {
    let paths: Vec<PathBuf> = std::iter::once(&args.graph).chain(&args.with).cloned().collect();
    let standard = paths.iter().filter(|path| path.as_os_str() == "-").count();
    if standard > 1 {
        return Err(Failure::Error("only one of GRAPH and --with can be standard input (-)".to_string()));
    }
    let name = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let loaded = patiently(&format!("loading {name} …"), || graph::load_many(&paths, &args.reading.options()));
    let (graph, report) = loaded.map_err(error)?;
    for note in report.notes() {
        say!("note: {note}");
    }
    if let Some(what) = report.left_out() {
        say!("note: {name}: left out: {what}");
    }
    for warning in report.warnings() {
        say!("warning: {warning}{}", hint(warning.remedy().as_ref()));
    }
    Ok((graph, report))
}

/// Runs `work`; if that takes more than a second and someone is watching, says what is going on.
fn patiently<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
                let mut err = std::io::stderr();
                let _ = write!(err, "{what}").and_then(|()| err.flush());
                let _ = wait.recv();
                let _ = write!(err, "\r\x1b[K");
            }
        });
        let result = work();
        drop(done);
        result
    })
}
