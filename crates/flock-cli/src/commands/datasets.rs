//! `flock-kg datasets`: the registry of benchmark graphs, what of it is at hand, and how to get more.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use flock_kg::eval::datasets::fetch::{FetchError, fetch};
use flock_kg::eval::datasets::{Dataset, RegistryEntry, check, registry, select};
use flock_kg::eval::sheet::Sheet;
use flock_kg::model::checkpoint::Task;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::shared::failure::{Failure, error, json, message};
use crate::shared::output::{check_format, println};
use crate::shared::sheet::{SheetArgs, print_sheet};

/// Arguments of `datasets`.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  flock-kg datasets
  flock-kg datasets --data DATA
  flock-kg datasets fetch FBIngram_25 --data kg
  flock-kg datasets fetch inductive_er --data kg

Counts are those of the test graph in the paper's tables. With --data every dataset there is held against the registry (checksums, \
counts, protocol); what differs is listed, and the exit status is 1."
)]
pub struct DatasetsArgs {
    #[command(subcommand)]
    pub command: Option<DatasetsCommand>,
    /// Check the datasets in this directory
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub table: SheetArgs,
    /// One JSON object per dataset, with everything that the registry has
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
}

/// What else there is to do.
#[derive(clap::Subcommand, Debug)]
pub enum DatasetsCommand {
    /// Bring upstream files into the layout
    Fetch(FetchArgs),
}

/// Arguments of `datasets fetch`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg datasets fetch FBIngram_25 --data kg
  flock-kg datasets fetch inductive_er transductive --data kg --json
  flock-kg datasets fetch FBIngram_25 --data kg --from https://example.org/InGram
  flock-kg datasets fetch FBIngram_25 --data kg --from ~/src/InGram

The source is a copy of the upstream repository, or a mirror in the layout itself (NAME/train.txt or train.txt, …). A download \
that breaks off goes on when the same command is given again. Files are checked against the registry before they are put in place: \
if a count or a checksum differs, each difference is named, and nothing is left under the dataset's name. Downloads are then kept in \
DIR/.fetch/NAME, so that --accept needs no other download.

Datasets that are there already are skipped. One that fails does not stop the others; the exit status is then 1. \
Mind the licences: flock-kg datasets shows them.")]
pub struct FetchArgs {
    /// Datasets by name; a group (inductive_er, inductive_e, transductive, pretraining) or all stands for its datasets
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Directory of datasets; each gets a directory of its own there
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Where the upstream files are [default: the registry's address]
    #[arg(long, value_name = "URL|DIR")]
    pub from: Option<String>,
    /// Keep files that are not as published, and say what differs
    #[arg(long)]
    pub accept: bool,
    /// One JSON object per dataset: name, state (fetched, present or failed), directory, licence, differences, error
    #[arg(long)]
    pub json: bool,
}

/// Lists, checks or fetches.
pub fn run(args: DatasetsArgs) -> Result<(), Failure> {
    match &args.command {
        Some(DatasetsCommand::Fetch(args)) => fetch_all(args),
        None => list(&args),
    }
}

fn fetch_all(args: &FetchArgs) -> Result<(), Failure> {
    let entries = select::select(&args.names).map_err(error)?;
    let (mut fetched, mut present, mut failed) = (0, 0, Vec::new());
    for entry in &entries {
        let (name, dir) = (entry.name, args.data.join(entry.name).display().to_string());
        let (mut differences, mut said) = (Vec::new(), None);
        let state = match fetch_one(entry, args) {
            Ok(found) => {
                found.iter().for_each(|line| say!("warning: {name} is not as published: {line}"));
                differences = found;
                fetched += 1;
                "fetched"
            }
            Err(FetchError::Exists { .. }) => {
                say!("{dir}: is there already, skipped; flock-kg datasets --data {} checks it", args.data.display());
                present += 1;
                "present"
            }
            Err(e) => {
                say!("error: {}", message(&e));
                said = Some(message(&e));
                if let FetchError::Differs { differences: found, .. } = e {
                    differences = found;
                }
                failed.push(name);
                "failed"
            }
        };
        let licence = &entry.collection.licence;
        let line = if args.json {
            Some(json(&json!({
                "name": name,
                "state": state,
                "dir": dir,
                "licence": licence,
                "differences": differences,
                "error": said,
            }))?)
        } else {
            (state == "fetched").then(|| format!("{dir}  licence: {licence}"))
        };
        match line.map_or(Ok(()), |line| println(&line)) {
            // The others are fetched even if nobody reads about it any more.
            Ok(()) | Err(Failure::PipeClosed) => {}
            said => said?,
        }
    }
    if entries.len() > 1 {
        let which = if failed.is_empty() { String::new() } else { format!(" ({})", failed.join(", ")) };
        say!("{fetched} fetched, {present} there already, {} failed{which}", failed.len());
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Reported) }
}

/// Fetches one dataset, with a bar if anyone is watching.
fn fetch_one(entry: &RegistryEntry, args: &FetchArgs) -> Result<Vec<String>, FetchError> {
    let bar = std::io::stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{spinner} {bytes} {msg}");
        ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
    });
    let mut watch = |file: &str, bytes: u64| {
        if let Some(bar) = &bar {
            bar.set_message(file.to_string());
            bar.set_position(bytes);
        }
    };
    let fetched = fetch(entry, args.from.as_deref(), &args.data, args.accept, &mut watch);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    fetched
}

/// What of a dataset is in a directory: nothing, or what differs.
fn look(data: &Path, name: &str) -> Option<Vec<String>> {
    let dataset = match data.join(name) {
        dir if dir.is_dir() => Dataset::open(&dir),
        _ => return None,
    };
    Some(dataset.and_then(|d| check::differences(&d)).unwrap_or_else(|e| vec![message(&e)]))
}

fn list(args: &DatasetsArgs) -> Result<(), Failure> {
    check_format(args.table.output, None)?;
    if let Some(data) = args.data.as_ref().filter(|data| !data.is_dir()) {
        return Err(Failure::Error(format!("--data {}: is no directory", data.display())));
    }
    let mut header: Vec<String> =
        ["name", "group", "validated on", "sides", "entities", "relations", "triples", "test", "n", "P"]
            .map(String::from)
            .to_vec();
    header.extend(args.data.iter().map(|_| "files".to_string()));
    header.extend(["source", "licence"].map(String::from));
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for e in registry::entries() {
        let found = args.data.as_ref().map(|data| look(data, e.name));
        let files = found.as_ref().map(|found| match found {
            None => "–",
            Some(differences) if differences.is_empty() => "as published",
            Some(_) => "differ",
        });
        if args.json {
            println(&json(&json!({
                "name": e.name,
                "group": e.group,
                "split": e.collection.split,
                "valid_graph": e.collection.valid_graph,
                "filter": { "valid": e.protocol.valid_filter, "test": e.protocol.test_filter },
                "heads": e.protocol.heads,
                "shared_relations": e.protocol.shares_relations(),
                "train": e.train,
                "valid": e.valid,
                "test": e.test,
                "n": e.n,
                "passes": { "entity": e.passes(Task::Entity), "relation": e.passes(Task::Relation) },
                "source": e.collection.source,
                "url": e.collection.url,
                "licence": e.collection.licence,
                "files": found,
            }))?)?;
        }
        wrong.extend(found.flatten().into_iter().flatten().map(|line| format!("{}: {line}", e.name)));
        let count = |n: u64| if n == 0 { "–".to_string() } else { n.to_string() };
        let passes = match (e.passes(Task::Entity), e.passes(Task::Relation)) {
            (a, b) if a == b => a.to_string(),
            (a, b) => format!("{a}/{b}"),
        };
        let mut row = vec![e.name.to_string(), e.group.to_string(), e.collection.valid_graph.to_string()];
        row.push(if e.protocol.heads { "h/t" } else { "t" }.to_string());
        row.extend([e.test.entities, e.test.relations, e.test.triples, e.test.predicted].map(count));
        row.extend([e.n.to_string(), passes]);
        row.extend(files.map(String::from));
        row.extend([e.collection.source.clone(), e.collection.licence.clone()]);
        rows.push(row);
    }
    if !args.json {
        print_sheet(&Sheet { header, rows }, args.table.output)?;
    }
    wrong.iter().for_each(|line| say!("{line}"));
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Reported) }
}
