//! `flock-kg analyse`: the paper's analyses, drawn.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Arg, ArgAction};
use flock_kg::bundled::{self, default_checkpoint};
use flock_kg::eval::analyse::frontier::{self, Peer};
use flock_kg::eval::analyse::{Finding, Trial, Variant, curves, density, embedding, once, passes, variant_bars};
use flock_kg::eval::compare::caveat;
use flock_kg::eval::datasets::{Dataset, TestSet};
use flock_kg::eval::evaluate::{self, Choice};
use flock_kg::eval::published::PublishedSetting;
use flock_kg::eval::results::{read, write_text};
use flock_kg::eval::seeds::{SeedSummary, by_dataset};
use flock_kg::eval::{EvalError, EvalSettings, Evaluation};
use flock_kg::kernels::Engine;
use flock_kg::model::Model;
use flock_kg::model::checkpoint::{Checkpoint, ProcessorKind, Task};
use flock_kg::model::ensemble::Ask;
use flock_kg::records::OutputFormat;
use rayon::ThreadPool;

use crate::shared::failure::{Failure, error};
use crate::shared::interrupt::on_interrupt;
use crate::shared::models::{self, ModelArgs};
use crate::shared::output::println;
use crate::shared::progress::EvalBar;
use crate::shared::protocol::{ProtocolArgs, find_datasets};
use crate::shared::published::Numbers;
use crate::shared::sheet::{SheetArgs, print_beside, print_sheet};

/// Arguments of `analyse`.
#[derive(clap::Args, Debug)]
pub struct AnalyseArgs {
    #[command(subcommand)]
    pub command: AnalyseCommand,
}

/// The analyses.
#[derive(clap::Subcommand, Debug)]
pub enum AnalyseCommand {
    /// MRR against the number of passes
    #[command(
        mut_args(|arg| listed(arg, &["passes"])),
        after_help = "Example:\n  flock-kg analyse passes Metafam --data DATA --counts 1,2,4,8 --limit 100 --svg passes.svg"
    )]
    Passes(SweepArgs),
    /// MRR against the base walk count; a ring marks what the checkpoint's rule chooses
    #[command(
        mut_args(|arg| listed(arg, &["walks"])),
        after_help = "Example:\n  flock-kg analyse walks Metafam --data DATA --counts 16,32,64 --passes 1 --limit 100"
    )]
    Walks(SweepArgs),
    /// MRR of variants of the model that need no retraining
    #[command(
        mut_args(|arg| listed(arg, &[])),
        after_help = "Example:\n  flock-kg analyse ablations Metafam --data DATA --passes 1 --limit 100 --svg ablations.svg"
    )]
    Ablations(AnalysisArgs),
    /// Relation embeddings in the plane of their two main directions, with names
    #[command(
        mut_args(|arg| listed(arg, &["limit"])),
        after_help = "Example:\n  flock-kg analyse relations Metafam --data DATA --svg relations.svg"
    )]
    Relations(RelationsArgs),
    /// Gain over a published system against the density of graphs
    #[command(after_help = "\
Examples:
  flock-kg analyse density --svg density.svg
  flock-kg analyse density --results results.json --svg ours.svg")]
    Density(DensityArgs),
    /// MRR against milliseconds a question, for several base walk counts and numbers of passes
    #[command(
        mut_args(|arg| listed(arg, &["walks", "passes"])),
        after_help = "\
Example:
  flock-kg analyse frontier Metafam --data DATA --counts 16,64 --most-passes 4 --limit 100 --svg frontier.svg

A file of --peers has the columns system,dataset,ms,mrr: what other systems take on this machine, and their MRR."
    )]
    Frontier(FrontierArgs),
    /// Results of an earlier eval beside published numbers
    #[command(after_help = "Example:\n  flock-kg analyse compare results.json --output md")]
    Compare(CompareArgs),
}

/// An argument as an analysis has it: what means nothing there is not listed (and refused with a reason), and one model is taken.
fn listed(arg: Arg, meaningless: &[&str]) -> Arg {
    let id = arg.get_id().as_str();
    if meaningless.contains(&id) {
        arg.hide(true)
    } else if id == "model" {
        arg.action(ArgAction::Set).help("Checkpoint (.safetensors) [default: the built-in entity model]")
    } else {
        arg
    }
}

/// A run on datasets.
#[derive(clap::Args, Debug)]
pub struct AnalysisArgs {
    /// Datasets by name in --data, groups of them, or their directories by path
    #[arg(value_name = "DATASET", required = true)]
    pub datasets: Vec<String>,
    /// Directory with a directory per dataset
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub protocol: ProtocolArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// A run for each of several counts.
#[derive(clap::Args, Debug)]
pub struct SweepArgs {
    #[command(flatten)]
    pub run: AnalysisArgs,
    /// The counts, ascending [default: 1,2,4,8,12,16 passes; 16,32,64,128 walks]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub counts: Vec<u32>,
}

impl SweepArgs {
    fn counts(&self, default: &[u32]) -> Vec<u32> {
        let mut counts = if self.counts.is_empty() { default.to_vec() } else { self.counts.clone() };
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

/// What comes out.
#[derive(clap::Args, Debug)]
pub struct OutputArgs {
    /// Write the picture here
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub table: SheetArgs,
}

/// Arguments of `relations`.
#[derive(clap::Args, Debug)]
pub struct RelationsArgs {
    #[command(flatten)]
    pub run: AnalysisArgs,
    /// Questions about each relation whose embeddings are averaged
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub questions: u64,
}

/// Arguments of `density`.
#[derive(clap::Args, Debug)]
pub struct DensityArgs {
    /// Published numbers: published (built in, zero-shot), published-finetuned, or a CSV file
    #[arg(long, value_name = "WHICH|FILE", default_value = "published", value_parser = Numbers::parse)]
    pub published: Numbers,
    /// Our results (JSON of flock-kg eval) [default: those of the last published system]
    #[arg(long, value_name = "JSON")]
    pub results: Option<PathBuf>,
    /// The system that the gain is over
    #[arg(long, default_value = "ultra")]
    pub over: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `frontier`.
#[derive(clap::Args, Debug)]
pub struct FrontierArgs {
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Ask with 1, 2, 4, … passes, up to this many
    #[arg(long, value_name = "P", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub most_passes: u32,
    /// Other systems (CSV: system,dataset,ms,mrr)
    #[arg(long, value_name = "CSV")]
    pub peers: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(clap::Args, Debug)]
pub struct CompareArgs {
    /// Our results (JSON of flock-kg eval)
    pub results: PathBuf,
    /// Published numbers: published (built in, zero-shot), published-finetuned, or a CSV file
    #[arg(long, value_name = "WHICH|FILE", default_value = "published", value_parser = Numbers::parse)]
    pub published: Numbers,
    #[command(flatten)]
    pub table: SheetArgs,
}

/// Analyses.
pub fn run(args: AnalyseArgs) -> Result<(), Failure> {
    match args.command {
        AnalyseCommand::Passes(args) => over_passes(&args),
        AnalyseCommand::Walks(args) => over_walks(&args),
        AnalyseCommand::Ablations(args) => ablations(&args),
        AnalyseCommand::Relations(args) => relations(&args),
        AnalyseCommand::Density(args) => densities(&args),
        AnalyseCommand::Frontier(args) => time_frontier(&args),
        AnalyseCommand::Compare(args) => {
            let results = read(&args.results).map_err(error)?;
            let built_in = matches!(args.published, Numbers::BuiltIn(_));
            for (task, published) in args.published.load()? {
                let of = |e: &&Evaluation| !built_in || task.is_none_or(|task| task == e.task);
                let results: Vec<&Evaluation> = results.iter().filter(of).collect();
                if results.is_empty() && built_in {
                    continue;
                }
                if let Some(caveat) = caveat(&results) {
                    say!("{caveat}");
                }
                print_beside(&results, &published, args.table.output)?;
            }
            Ok(())
        }
    }
}

/// What a run works with.
struct Workbench {
    checkpoint: Checkpoint,
    origin: String,
    engine: Engine,
    pool: ThreadPool,
    stop: std::sync::Arc<AtomicBool>,
}

impl Workbench {
    fn new(args: &ModelArgs) -> Result<Workbench, Failure> {
        let engine = models::engine(args.precision)?;
        let (checkpoint, origin) = match &args.model[..] {
            [] => (default_checkpoint(Task::Entity), bundled::ORIGIN.to_string()),
            [path, ..] => (Checkpoint::read(path).map_err(error)?, path.display().to_string()),
        };
        let pool = models::pool(args.threads)?;
        Ok(Workbench { checkpoint, origin, engine, pool, stop: on_interrupt("stopping after these queries")? })
    }

    fn model(&self, checkpoint: &Checkpoint) -> Result<Model, Failure> {
        Model::new(checkpoint, self.engine).map_err(|e| Failure::Error(format!("{}: {e}", self.origin)))
    }

    /// Runs `work` with progress shown.
    fn shown<T>(
        &self,
        name: String,
        work: impl FnOnce(&mut dyn FnMut(usize, usize) -> bool) -> Result<T, EvalError>,
    ) -> Result<T, Failure> {
        let progress = EvalBar::new(name);
        let result =
            work(&mut |done, total| progress.tell(evaluate::EvalProgress { done, total, now: done }, &self.stop));
        progress.end();
        match result {
            Err(EvalError::Stopped) => std::process::exit(130),
            result => result.map_err(error),
        }
    }

    /// The model by name and hash.
    fn who(&self) -> String {
        let name =
            Path::new(&self.origin).file_name().map_or(self.origin.clone(), |n| n.to_string_lossy().into_owned());
        format!("{name} ({})", &self.checkpoint.hash[..12])
    }

    fn subtitle(&self, settings: &EvalSettings) -> String {
        let limit = settings.limit.map_or("all triples".to_string(), |n| format!("{n} triples of each, sampled"));
        format!("{}, {}, {limit}, seed {}", self.who(), settings.split, settings.seed)
    }
}

/// The triples of a dataset that are predicted, and how.
fn load(dataset: &Dataset, model: &Model, settings: &EvalSettings) -> Result<(TestSet, Ask), Failure> {
    let mut set = dataset.test_set(settings.split).map_err(error)?;
    if let Some(limit) = settings.limit {
        set.sample(limit, settings.seed);
    }
    let ask = settings.ask(dataset, model, &set);
    Ok((set, ask))
}

fn over_passes(args: &SweepArgs) -> Result<(), Failure> {
    if args.run.protocol.passes != Choice::Published {
        return Err(Failure::Misuse(
            "analyse",
            "the numbers of passes are those of --counts, not of --passes".to_string(),
        ));
    }
    let bench = Workbench::new(&args.run.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let (settings, counts) = (args.run.protocol.settings(), args.counts(&[1, 2, 4, 8, 12, 16]));
    let mut all = Vec::new();
    for dataset in find_datasets(args.run.data.as_deref(), &args.run.datasets)? {
        let (set, ask) = load(&dataset, &model, &settings)?;
        let tried =
            bench.shown(dataset.name.clone(), |watch| passes(&model, &set, ask, &counts, &bench.pool, watch))?;
        all.push((dataset.name, tried));
    }
    let title = "MRR against the number of ensembled passes";
    report(&curves(title, &bench.subtitle(&settings), "passes P", &all, &[]), &args.run.output)
}

fn over_walks(args: &SweepArgs) -> Result<(), Failure> {
    if args.run.protocol.walks != Choice::Rule {
        return Err(Failure::Misuse(
            "analyse",
            "the numbers of walks are those of --counts, not of --walks".to_string(),
        ));
    }
    let bench = Workbench::new(&args.run.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let (settings, counts) = (args.run.protocol.settings(), args.counts(&[16, 32, 64, 128]));
    let (mut all, mut rings) = (Vec::new(), Vec::new());
    for dataset in find_datasets(args.run.data.as_deref(), &args.run.datasets)? {
        let (set, ask) = load(&dataset, &model, &EvalSettings { walks: Choice::Rule, ..settings })?;
        let mut with_rule = counts.clone();
        with_rule.push(ask.walks);
        with_rule.sort_unstable();
        with_rule.dedup();
        let mut tried = Vec::new();
        for walks in with_rule {
            let name = format!("{}, n = {walks}", dataset.name);
            let ask = Ask { walks, ..ask };
            tried.push(bench.shown(name, |watch| once(walks.to_string(), &model, &set, ask, &bench.pool, watch))?);
        }
        rings.push(
            tried.iter().find(|t| t.setting == ask.walks.to_string()).map(|t| (f64::from(ask.walks), t.metrics.mrr)),
        );
        all.push((dataset.name, tried));
    }
    let title = "MRR against the base walk count (ring: the rule's choice)";
    report(&curves(title, &bench.subtitle(&settings), "base walk count n", &all, &rings), &args.run.output)
}

fn time_frontier(args: &FrontierArgs) -> Result<(), Failure> {
    let FrontierArgs { sweep, most_passes, peers } = args;
    if sweep.run.protocol.walks != Choice::Rule || sweep.run.protocol.passes != Choice::Published {
        let message = "walks are those of --counts, and passes go up to --most-passes";
        return Err(Failure::Misuse("analyse", message.to_string()));
    }
    let peers = peers.as_deref().map(Peer::read).transpose().map_err(error)?.unwrap_or_default();
    let bench = Workbench::new(&sweep.run.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let settings = sweep.run.protocol.settings();
    let datasets = find_datasets(sweep.run.data.as_deref(), &sweep.run.datasets)?;
    let [dataset] = &datasets[..] else {
        return Err(Failure::Error(format!("expected one dataset, found {}", datasets.len())));
    };
    let (set, ask) = load(dataset, &model, &settings)?;
    let counts: Vec<u32> = (0..).map(|k| 1 << k).take_while(|p| p <= most_passes).collect();
    let mut points = Vec::new();
    for walks in sweep.counts(&[16, 32, 64, 128]) {
        let ask = Ask { walks, ..ask };
        let name = format!("{}, n = {walks}", dataset.name);
        let run = |watch: &mut dyn FnMut(usize, usize) -> bool| {
            frontier::points(&model, &set, ask, &counts, &bench.pool, watch)
        };
        points.extend(bench.shown(name, run)?);
    }
    let threads = bench.pool.current_num_threads();
    let subtitle = format!("{}, {} threads, {}", bench.subtitle(&settings), threads, bench.engine.precision());
    report(&frontier::picture(&dataset.name, &subtitle, &points, &peers), &sweep.run.output)
}

/// Prints the table of a finding and writes its picture.
fn report(finding: &Finding, output: &OutputArgs) -> Result<(), Failure> {
    // The file first: nobody may be reading the table any more.
    if let Some(path) = &output.svg {
        write_text(path, &finding.picture).map_err(error)?;
        say!("drawn: {}", path.display());
    }
    print_sheet(&finding.sheet, output.table.output)?;
    match finding.note.as_deref().filter(|_| output.table.output == OutputFormat::Table) {
        Some(note) => println(note),
        None => Ok(()),
    }
}

fn ablations(args: &AnalysisArgs) -> Result<(), Failure> {
    let bench = Workbench::new(&args.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let settings = args.protocol.settings();
    let datasets = find_datasets(args.data.as_deref(), &args.datasets)?;
    let mut all: Vec<(String, Vec<Trial>)> = Vec::new();
    // Only anonymous names depend on the length in the recurrent model.
    let possible = |v: &&Variant| **v != Variant::HalfLength || bench.checkpoint.meta().processor == ProcessorKind::Gru;
    let variants: Vec<Variant> = Variant::ALL.iter().filter(possible).copied().collect();
    for dataset in &datasets {
        let (set, ask) = load(dataset, &model, &settings)?;
        let mut tried = Vec::new();
        for variant in &variants {
            let (checkpoint, ask) = variant.of(&bench.checkpoint, ask).map_err(error)?;
            let changed = bench.model(&checkpoint)?;
            let name = variant.name(bench.checkpoint.meta());
            let shown = format!("{}, {name}", dataset.name);
            tried.push(bench.shown(shown, |watch| once(name, &changed, &set, ask, &bench.pool, watch))?);
        }
        all.push((dataset.name.clone(), tried));
    }
    let title = "Ablations of a trained model, without retraining";
    report(&variant_bars(title, &bench.subtitle(&settings), &all), &args.output)
}

fn relations(args: &RelationsArgs) -> Result<(), Failure> {
    if args.run.protocol.limit.is_some() {
        let message = "no triples are predicted here that --limit could sample; hint: --questions";
        return Err(Failure::Misuse("analyse", message.to_string()));
    }
    let bench = Workbench::new(&args.run.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let settings = args.run.protocol.settings();
    let datasets = find_datasets(args.run.data.as_deref(), &args.run.datasets)?;
    let [dataset] = &datasets[..] else {
        return Err(Failure::Error(format!("expected one dataset, found {}", datasets.len())));
    };
    let (set, ask) = load(dataset, &model, &settings)?;
    let questions = args.questions as usize;
    let found = embedding::relations(&model, set.on.topology(), ask, questions, &bench.pool).map_err(error)?;
    report(&embedding::picture(&bench.who(), &set, ask, questions, &found), &args.run.output)
}

fn densities(args: &DensityArgs) -> Result<(), Failure> {
    // Of a built-in table, the entity task.
    let published = args.published.load()?.swap_remove(0).1;
    let results = args.results.as_deref().map(read).transpose().map_err(error)?;
    let system = published.systems().last().cloned().unwrap_or_default();
    let (who, ours): (String, Vec<(&str, f64)>) = match &results {
        Some(results) => {
            let entity: Vec<&Evaluation> = results.iter().filter(|e| e.task == Task::Entity).collect();
            // Seeds of a dataset are one point.
            let point = |runs: &Vec<&'_ Evaluation>| SeedSummary::new(runs).map(|s| s.mean.mrr);
            let datasets = by_dataset(&entity);
            let points = datasets.iter().filter_map(|runs| Some((runs[0].dataset.as_str(), point(runs)?)));
            ("ours".to_string(), points.collect())
        }
        None => (system.clone(), published.mrr(&system)),
    };
    let theirs = published.mrr(&args.over);
    if theirs.is_empty() {
        let known = published.systems().join(", ");
        return Err(Failure::Error(format!("{}: no MRR of {:?}; it has {known}", args.published.name(), args.over)));
    }
    let kind = match args.published {
        Numbers::BuiltIn(PublishedSetting::FineTuned) => "fine-tuned",
        _ => "zero-shot",
    };
    report(&density::picture(&who, &ours, &args.over, &theirs, kind), &args.output)
}
