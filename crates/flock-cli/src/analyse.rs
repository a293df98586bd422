//! `flock-kg analyse`: the paper's analyses, drawn.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Arg, ArgAction};
use flock_kg::bundled::{self, default_checkpoint};
use flock_kg::checkpoint::{Checkpoint, ProcessorKind, Task};
use flock_kg::datasets::{Dataset, Group, TestSet};
use flock_kg::ensemble::Ask;
use flock_kg::eval::analyse::{Tried, Variant, once, passes};
use flock_kg::eval::compare::{Published, Sheet, Style, caveat, compare};
use flock_kg::eval::results::{Choice, Progress, read, write_text};
use flock_kg::eval::{EvalError, Evaluation, Settings, density, embedding};
use flock_kg::kernels::Engine;
use flock_kg::model::Model;
use flock_kg::plot::{self, Axis, Point, Series};
use rayon::ThreadPool;

use crate::args::ModelArgs;
use crate::eval::{Form, How, Show, find, print};
use crate::failure::{Failure, error};
use crate::models;
use crate::train::{on_interrupt, println};

/// Arguments of `analyse`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// The analyses.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// MRR against the number of passes
    #[command(
        mut_args(|arg| listed(arg, &["passes"])),
        after_help = "Example:\n  flock-kg analyse passes Metafam --data ../shared/kg --counts 1,2,4,8 --limit 100 --svg passes.svg"
    )]
    Passes(Counted),
    /// MRR against the base walk count; a ring marks what the checkpoint's rule chooses
    #[command(
        mut_args(|arg| listed(arg, &["walks"])),
        after_help = "Example:\n  flock-kg analyse walks Metafam --data ../shared/kg --counts 16,32,64 --passes 1 --limit 100"
    )]
    Walks(Counted),
    /// MRR of variants of the model that need no retraining
    #[command(
        mut_args(|arg| listed(arg, &[])),
        after_help = "Example:\n  flock-kg analyse ablations Metafam --data ../shared/kg --passes 1 --limit 100 --svg ablations.svg"
    )]
    Ablations(Run),
    /// Relation embeddings in the plane of their two main directions, with names
    #[command(
        mut_args(|arg| listed(arg, &["limit"])),
        after_help = "Example:\n  flock-kg analyse relations Metafam --data ../shared/kg --svg relations.svg"
    )]
    Relations(Relations),
    /// Gain over a published system against the density of graphs
    #[command(after_help = "\
Examples:
  flock-kg analyse density --published ../shared/published/entity_zeroshot.csv --svg density.svg
  flock-kg analyse density --published ../shared/published/entity_zeroshot.csv --results results.json --svg ours.svg")]
    Density(Density),
    /// Results of an earlier eval beside published numbers
    #[command(
        after_help = "Example:\n  flock-kg analyse compare results.json --published ../shared/published/entity_zeroshot.csv --format markdown"
    )]
    Compare(Compare),
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
pub struct Run {
    /// Datasets by name, or groups of them
    #[arg(value_name = "DATASET", required = true)]
    pub datasets: Vec<String>,
    /// Directory with a directory per dataset
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub drawn: Drawn,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// A run for each of several counts.
#[derive(clap::Args, Debug)]
pub struct Counted {
    #[command(flatten)]
    pub run: Run,
    /// The counts, ascending [default: 1,2,4,8,12,16 passes; 16,32,64,128 walks]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub counts: Vec<u32>,
}

impl Counted {
    fn counts(&self, default: &[u32]) -> Vec<u32> {
        let mut counts = if self.counts.is_empty() { default.to_vec() } else { self.counts.clone() };
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

/// What comes out.
#[derive(clap::Args, Debug)]
pub struct Drawn {
    /// Write the picture here
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Form of the table
    #[arg(long, value_enum, default_value = "table")]
    pub format: Form,
}

/// Arguments of `relations`.
#[derive(clap::Args, Debug)]
pub struct Relations {
    #[command(flatten)]
    pub run: Run,
    /// Questions about each relation whose embeddings are averaged
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub questions: u64,
}

/// Arguments of `density`.
#[derive(clap::Args, Debug)]
pub struct Density {
    /// Published numbers (CSV)
    #[arg(long, value_name = "CSV")]
    pub published: PathBuf,
    /// Our results (JSON of flock-kg eval) [default: those of the last system in the CSV]
    #[arg(long, value_name = "JSON")]
    pub results: Option<PathBuf>,
    /// The system that the gain is over
    #[arg(long, default_value = "ultra")]
    pub over: String,
    #[command(flatten)]
    pub drawn: Drawn,
}

/// Arguments of `compare`.
#[derive(clap::Args, Debug)]
pub struct Compare {
    /// Our results (JSON of flock-kg eval)
    pub results: PathBuf,
    /// Published numbers (CSV)
    #[arg(long, value_name = "CSV")]
    pub published: PathBuf,
    /// Form of the table
    #[arg(long, value_enum, default_value = "table")]
    pub format: Form,
}

/// Analyses.
pub fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Passes(args) => over_passes(&args),
        Command::Walks(args) => over_walks(&args),
        Command::Ablations(args) => ablations(&args),
        Command::Relations(args) => relations(&args),
        Command::Density(args) => densities(&args),
        Command::Compare(args) => {
            let results = read(&args.results).map_err(error)?;
            let published = Published::read(&args.published).map_err(error)?;
            let results: Vec<&Evaluation> = results.iter().collect();
            if let Some(caveat) = caveat(&results) {
                say!("{caveat}");
            }
            beside(&results, &published, args.format)
        }
    }
}

/// Prints our results beside published ones.
pub fn beside(results: &[&Evaluation], published: &Published, form: Form) -> Result<(), Failure> {
    let style = match form {
        Form::Table => Style::Marked("", "*"),
        Form::Markdown => Style::Marked("**", "**"),
        Form::Csv => Style::Plain,
    };
    print(&compare(results, published, style), form)
}

/// What a run works with.
struct Bench {
    checkpoint: Checkpoint,
    origin: String,
    engine: Engine,
    pool: ThreadPool,
    stop: std::sync::Arc<AtomicBool>,
}

impl Bench {
    fn new(args: &ModelArgs) -> Result<Bench, Failure> {
        let engine = models::engine(args.precision)?;
        let (checkpoint, origin) = match &args.model[..] {
            [] => (default_checkpoint(Task::Entity), bundled::ORIGIN.to_string()),
            [path, ..] => (Checkpoint::read(path).map_err(error)?, path.display().to_string()),
        };
        let pool = models::pool(args.threads)?;
        Ok(Bench { checkpoint, origin, engine, pool, stop: on_interrupt("stopping after these queries")? })
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
        let show = Show::new(name);
        let result = work(&mut |done, total| show.tell(Progress { done, total, now: done }, &self.stop));
        show.end();
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

    fn subtitle(&self, settings: &Settings) -> String {
        let limit = settings.limit.map_or("all triples".to_string(), |n| format!("{n} triples of each, sampled"));
        format!("{}, {}, {limit}, seed {}", self.who(), settings.split, settings.seed)
    }
}

/// The triples of a dataset that are predicted, and how.
fn load(dataset: &Dataset, model: &Model, settings: &Settings) -> Result<(TestSet, Ask), Failure> {
    let mut set = dataset.test_set(settings.split).map_err(error)?;
    if let Some(limit) = settings.limit {
        set.sample(limit, settings.seed);
    }
    let ask = settings.ask(dataset, model, &set);
    Ok((set, ask))
}

fn over_passes(args: &Counted) -> Result<(), Failure> {
    if args.run.how.passes != Choice::Published {
        return Err(Failure::Misuse(
            "analyse",
            "the numbers of passes are those of --counts, not of --passes".to_string(),
        ));
    }
    let bench = Bench::new(&args.run.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let (settings, counts) = (args.run.how.settings(), args.counts(&[1, 2, 4, 8, 12, 16]));
    let mut all = Vec::new();
    for dataset in find(&args.run.data, &args.run.datasets)? {
        let (set, ask) = load(&dataset, &model, &settings)?;
        let tried =
            bench.shown(dataset.name.clone(), |watch| passes(&model, &set, ask, &counts, &bench.pool, watch))?;
        all.push((dataset.name, tried));
    }
    let title = "MRR against the number of ensembled passes";
    curves(title, &bench.subtitle(&settings), "passes P", &all, &[], &args.run.drawn)
}

fn over_walks(args: &Counted) -> Result<(), Failure> {
    if args.run.how.walks != Choice::Rule {
        return Err(Failure::Misuse(
            "analyse",
            "the numbers of walks are those of --counts, not of --walks".to_string(),
        ));
    }
    let bench = Bench::new(&args.run.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let (settings, counts) = (args.run.how.settings(), args.counts(&[16, 32, 64, 128]));
    let (mut all, mut rings) = (Vec::new(), Vec::new());
    for dataset in find(&args.run.data, &args.run.datasets)? {
        let (set, ask) = load(&dataset, &model, &Settings { walks: Choice::Rule, ..settings })?;
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
    curves(title, &bench.subtitle(&settings), "base walk count n", &all, &rings, &args.run.drawn)
}

/// A line per dataset and their mean, as a table and as a picture.
fn curves(
    title: &str,
    subtitle: &str,
    label: &str,
    all: &[(String, Vec<Tried>)],
    rings: &[Option<(f64, f64)>],
    drawn: &Drawn,
) -> Result<(), Failure> {
    // What the rule chose on one dataset may be no count that was asked for.
    let mut counts: Vec<u32> = all.iter().flat_map(|(_, tried)| tried).filter_map(|t| t.setting.parse().ok()).collect();
    counts.sort_unstable();
    counts.dedup();
    let at = |t: &Tried| (t.setting.parse::<f64>().unwrap_or(f64::NAN), t.metrics.mrr);
    let mut series: Vec<Series> = all
        .iter()
        .enumerate()
        .map(|(i, (name, tried))| Series {
            name: name.clone(),
            points: tried.iter().map(at).collect(),
            rings: rings.get(i).copied().flatten().into_iter().collect(),
            bold: false,
        })
        .collect();
    if all.len() > 1 {
        let mean = |count: &u32| {
            let of = |tried: &Vec<Tried>| tried.iter().find(|t| t.setting == count.to_string()).map(|t| t.metrics.mrr);
            let values: Option<Vec<f64>> = all.iter().map(|(_, tried)| of(tried)).collect();
            values.map(|v| (f64::from(*count), v.iter().sum::<f64>() / v.len() as f64))
        };
        let points = counts.iter().filter_map(mean).collect();
        series.push(Series { name: "mean".to_string(), points, bold: true, ..Series::default() });
    }
    let ticks = counts.iter().map(|c| f64::from(*c)).collect();
    let picture = plot::lines(title, subtitle, &Axis::log(label, ticks), &Axis::linear("MRR"), &series);
    report(label, all, drawn)?;
    draw(&picture, drawn)
}

fn report(label: &str, all: &[(String, Vec<Tried>)], drawn: &Drawn) -> Result<(), Failure> {
    let header = ["dataset", label, "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank", "coverage"];
    let row = |name: &String, t: &Tried| {
        let (m, digits) = (&t.metrics, |x: f64| format!("{x:.4}"));
        let mut row = vec![name.clone(), t.setting.clone()];
        row.extend([m.mrr, m.hits1, m.hits3, m.hits10].map(digits));
        row.extend([format!("{:.1}", m.mean_rank), digits(t.coverage)]);
        row
    };
    let rows = all.iter().flat_map(|(name, tried)| tried.iter().map(move |t| row(name, t))).collect();
    print(&Sheet { header: header.map(String::from).to_vec(), rows }, drawn.format)
}

fn draw(picture: &str, drawn: &Drawn) -> Result<(), Failure> {
    let Some(path) = &drawn.svg else { return Ok(()) };
    write_text(path, picture).map_err(error)?;
    say!("drawn: {}", path.display());
    Ok(())
}

fn ablations(args: &Run) -> Result<(), Failure> {
    let bench = Bench::new(&args.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let settings = args.how.settings();
    let datasets = find(&args.data, &args.datasets)?;
    let mut all: Vec<(String, Vec<Tried>)> = Vec::new();
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
    report("variant", &all, &args.drawn)?;
    let rows: Vec<(String, Vec<f64>)> = (0..variants.len())
        .map(|i| {
            let mut values: Vec<f64> = all.iter().map(|(_, tried)| tried[i].metrics.mrr).collect();
            if values.len() > 1 {
                values.push(values.iter().sum::<f64>() / values.len() as f64);
            }
            (variants[i].name(bench.checkpoint.meta()), values)
        })
        .collect();
    let mut names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    if names.len() > 1 {
        names.push("mean".to_string());
    }
    let title = "Ablations of a trained model, without retraining";
    draw(&plot::bars(title, &bench.subtitle(&settings), "MRR", &names, &rows), &args.drawn)
}

fn relations(args: &Relations) -> Result<(), Failure> {
    if args.run.how.limit.is_some() {
        let message = "no triples are predicted here that --limit could sample; hint: --questions";
        return Err(Failure::Misuse("analyse", message.to_string()));
    }
    let bench = Bench::new(&args.run.model)?;
    let model = bench.model(&bench.checkpoint)?;
    let settings = args.run.how.settings();
    let datasets = find(&args.run.data, &args.run.datasets)?;
    let [dataset] = &datasets[..] else {
        return Err(Failure::Error(format!("expected one dataset, found {}", datasets.len())));
    };
    let (set, ask) = load(dataset, &model, &settings)?;
    let (topology, names) = (set.on.topology(), set.on.graph().relations());
    let found = embedding::relations(&model, topology, ask, args.questions as usize, &bench.pool).map_err(error)?;
    let vectors: Vec<Vec<f64>> = found.iter().map(|(_, v)| v.clone()).collect();
    let (places, share) = embedding::plane(&vectors);
    let points: Vec<Point> = found
        .iter()
        .zip(&places)
        .map(|((r, _), (x, y))| Point { x: *x, y: *y, label: names.get(*r).to_string(), class: 0 })
        .collect();
    let rows = points.iter().map(|p| vec![p.label.clone(), format!("{:.4}", p.x), format!("{:.4}", p.y)]).collect();
    print(&Sheet { header: ["relation", "first", "second"].map(String::from).to_vec(), rows }, args.run.drawn.format)?;
    let axis =
        |k: usize| format!("{} main direction ({:.0} % of the variance)", ["first", "second"][k], share[k] * 100.0);
    let (x, y) = (axis(0), axis(1));
    let title = format!("Relation embeddings of {}", dataset.name);
    let subtitle = format!(
        "{}, n = {}, {} questions × {} passes each, seed {}",
        bench.who(),
        ask.walks,
        args.questions,
        ask.passes,
        ask.seed
    );
    let picture = plot::points(&title, &subtitle, &Axis::linear(&x), &Axis::linear(&y), &points, &[], None);
    draw(&picture, &args.run.drawn)
}

fn densities(args: &Density) -> Result<(), Failure> {
    let published = Published::read(&args.published).map_err(error)?;
    let results = args.results.as_deref().map(read).transpose().map_err(error)?;
    let system = published.systems().last().cloned().unwrap_or_default();
    let (who, ours): (String, Vec<(&str, f64)>) = match &results {
        Some(results) => {
            let entity = results.iter().filter(|e| e.task == Task::Entity);
            ("ours".to_string(), entity.map(|e| (e.dataset.as_str(), e.counted.all.pessimistic.mrr)).collect())
        }
        None => (system.clone(), published.mrr(&system)),
    };
    let theirs = published.mrr(&args.over);
    if theirs.is_empty() {
        let known = published.systems().join(", ");
        return Err(Failure::Error(format!("{}: no MRR of {:?}; it has {known}", args.published.display(), args.over)));
    }
    let gains = density::gains(&ours, &theirs);
    let fit = density::fit(&gains.iter().map(|g| (g.density.log10(), g.gain * 100.0)).collect::<Vec<_>>());
    let header = ["dataset", "group", "density", "gain %"].map(String::from).to_vec();
    let row = |g: &density::Gain| {
        vec![g.dataset.clone(), g.group.to_string(), format!("{:.3e}", g.density), format!("{:+.1}", g.gain * 100.0)]
    };
    print(&Sheet { header, rows: gains.iter().map(row).collect() }, args.drawn.format)?;
    let found = fit.map_or("too few graphs for a correlation".to_string(), |f| {
        format!("Pearson r = {:.2}, p = {:.1e}, {} graphs (without Metafam)", f.r, f.p, gains.len())
    });
    if args.drawn.format == Form::Table {
        println(&found)?;
    }
    let class = |g: Group| Group::ALL.iter().position(|other| *other == g).unwrap_or(0);
    let points: Vec<Point> = gains
        .iter()
        .map(|g| Point { x: g.density, y: g.gain * 100.0, label: g.dataset.clone(), class: class(g.group) })
        .collect();
    let classes: Vec<String> =
        Group::ALL.iter().filter(|g| gains.iter().any(|x| x.group == **g)).map(Group::to_string).collect();
    let title = format!("Gain of {who} over {} in zero-shot MRR against the density of the graph", args.over);
    let label = format!("gain over {} in MRR, %", args.over);
    let powers = || gains.iter().map(|g| g.density.log10());
    let (low, high) = (powers().fold(-3.0, f64::min).ceil() as i32, powers().fold(-3.0, f64::max).floor() as i32);
    let ticks = (low..=high).map(|k| 10f64.powi(k)).collect();
    let x = Axis::log("density |E| / (|V| (|V| − 1))", ticks);
    let line = fit.map(|f| (f.intercept, f.slope));
    draw(&plot::points(&title, &found, &x, &Axis::linear(&label), &points, &classes, line), &args.drawn)
}
