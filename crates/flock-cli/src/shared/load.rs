//! The graph a command works on: its arguments, and loading it.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use flock_kg::graph::{self, Columns, Format, Graph, LoadOptions, LoadReport};

use crate::shared::failure::{Failure, error, hint};
use crate::shared::progress::{patiently, patiently_counting};
use crate::shared::table::grouped;

const READING: &str = "Reading the graph";

/// A graph file and how to read it.
#[derive(clap::Args, Debug)]
pub struct GraphArgs {
    /// Graph file, or a directory of them: TSV, CSV, JSON lines, Parquet, Arrow, RDF in any syntax, OBO, OWL or
    /// GraphML, plain or packed (.gz, .zst); - for standard input; sparql:URL for a SPARQL endpoint
    #[arg(value_name = "GRAPH", value_parser = graph_path())]
    pub graph: PathBuf,
    /// A further file or directory of the same graph, such as one with nodes beside one with edges; may be given again
    #[arg(long, help_heading = READING, value_name = "FILE")]
    pub with: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub labels: LabelArgs,
}

/// What people call the names in a graph file.
#[derive(clap::Args, Debug, Default)]
pub struct LabelArgs {
    /// Labels for names that are ids: TSV or CSV with the columns name and label. Labels are shown, and questions
    /// may use them
    #[arg(long, help_heading = READING, value_name = "FILE")]
    pub labels: Option<PathBuf>,
}

/// How to read a graph file.
#[derive(clap::Args, Debug)]
pub struct ReadingArgs {
    /// Format of the graph file [default: by its name and its first lines]
    #[arg(long, help_heading = READING, value_parser = PossibleValuesParser::new(
        Format::ALL.map(Format::word)).try_map(|s| s.parse::<Format>()))]
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
    /// Languages of labels in RDF, the best first, such as de,en [default: en]
    #[arg(long, help_heading = READING, value_name = "TAGS", value_delimiter = ',', value_parser = language)]
    pub language: Vec<String>,
    /// Rows to ask a SPARQL endpoint for at a time [default: 10000]
    #[arg(long, help_heading = READING, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    pub page_size: Option<u32>,
}

impl ReadingArgs {
    /// Whether anything was said.
    pub fn is_given(&self) -> bool {
        let told = self.format.is_some() || self.columns.is_some() || self.header || self.no_header || self.lenient;
        told || !self.language.is_empty() || self.page_size.is_some()
    }

    /// The same for the loader.
    pub fn options(&self) -> LoadOptions {
        LoadOptions {
            format: self.format,
            lenient: self.lenient,
            header: if self.header { Some(true) } else { self.no_header.then_some(false) },
            columns: self.columns.clone(),
            languages: self.language.clone(),
            page_size: self.page_size,
            ..LoadOptions::default()
        }
    }
}

fn language(text: &str) -> Result<String, String> {
    let tag = text.trim();
    let good = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    let rule = || "expected language tags such as en, de or pt-BR, with commas between them".to_string();
    if tag.split('-').all(good) { Ok(tag.to_string()) } else { Err(rule()) }
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
    let name = paths.iter().map(|path| graph::source_name(path)).collect::<Vec<_>>().join(", ");
    let options = args.reading.options();
    let loaded = patiently_counting(
        &format!("loading {name}"),
        || so_far(options.progress.rows()),
        || graph::load_many(&paths, &options),
    );
    let (graph, report) = loaded.map_err(error)?;
    tell(&report, &name);
    match &args.labels.labels {
        Some(path) => Ok((labelled(&graph, path)?, report)),
        None => Ok((graph, report)),
    }
}

/// Says on standard error what was left out of what was read, and what looks wrong.
pub fn tell(report: &LoadReport, name: &str) {
    for note in report.notes() {
        say!("note: {note}");
    }
    if let Some(what) = report.left_out() {
        say!("note: {name}: left out: {what}");
    }
    if let Some(what) = report.understood() {
        say!("note: {name}: {what}");
    }
    for warning in report.warnings() {
        say!("warning: {warning}{}", hint(warning.remedy().as_ref()));
    }
}

/// The graph with the labels in a file. Says which of them are of no use.
fn labelled(graph: &Graph, path: &Path) -> Result<Graph, Failure> {
    let name = path.display();
    let read = patiently(&format!("reading {name}"), || graph.with_labels_from(path));
    let (graph, report) = read.map_err(error)?;
    if let Some(first) = &report.first_unknown {
        let (unknown, rows) = (grouped(report.unknown), grouped(report.rows));
        let talk = if report.labels == 0 { "warning" } else { "note" };
        say!(
            "{talk}: {name}: {unknown} of {rows} labels are for names that the graph does not have, such as {first:?}"
        );
    } else if report.labels == 0 {
        say!("warning: {name}: no labels");
    }
    Ok(graph)
}

/// How many rows there are, if they are counted.
fn so_far((rows, total): (u64, Option<u64>)) -> String {
    match total {
        _ if rows == 0 => String::new(),
        Some(total) => format!(" {} of {} triples", grouped(rows), grouped(total)),
        None => format!(" {} triples", grouped(rows)),
    }
}
