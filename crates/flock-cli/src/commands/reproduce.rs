//! `flock-kg reproduce`: the tables and figures of the paper, made anew, with the published numbers beside ours.

use std::path::{Path, PathBuf};

use clap::Arg;
use flock_kg::eval::sheet::Sheet;
use flock_kg::finetune::TrainingError;
use flock_kg::records::OutputFormat;
use flock_kg::reproduce::{AblationRow, Item, ReproduceError, ReproduceEvent, ReproduceOptions, cost, reproduce};
use flock_kg::train::Settings;

use crate::shared::failure::{Failure, error};
use crate::shared::interrupt::on_interrupt;
use crate::shared::models::ModelArgs;
use crate::shared::output::check_format;
use crate::shared::parse;
use crate::shared::progress::{EvalBar, TrainBar};
use crate::shared::protocol::ProtocolArgs;
use crate::shared::sheet::{SheetArgs, print_aligned, print_sheet};
use crate::shared::table::Align;

/// The speed at which the list says how long something takes.
const GFLOPS: f64 = 200.0;

/// Arguments of `reproduce`.
#[derive(clap::Args, Debug)]
#[command(
    mut_args(published),
    after_help = "\
Examples:
  flock-kg reproduce
  flock-kg reproduce statistics --data DATA
  flock-kg reproduce entity-zero-shot --data DATA --graphs Metafam,inductive_e --passes 1 --limit 100
  flock-kg reproduce ablations --data DATA --minutes 30 --passes 1 --limit 100
  flock-kg reproduce entity-fine-tuned --data DATA --graphs Metafam

Without a name it lists what there is. Each writes NAME.md, NAME.csv and NAME.svg (and further tables beside them) into --out, and \
prints the main table. All work is kept in --out/work: the same command goes on after a kill, and tables share what they have in \
common. The defaults are the published settings; pretraining seven models as published would take months here, so give --steps or \
--minutes for each. Whatever departs from the published settings is stated in the report."
)]
pub struct ReproduceArgs {
    /// The table or figure; all are listed if none is named
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Directory with a directory per dataset
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Directory for the report and the work behind it
    #[arg(long, value_name = "DIR", default_value = "runs/paper")]
    pub out: PathBuf,
    /// Only these graphs or groups of graphs [default: all of the table that are in --data]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub graphs: Vec<String>,
    #[command(flatten)]
    pub protocol: ProtocolArgs,
    /// Seeds that the error bars of ensemble are over
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: u32,
    /// Steps of each training [default: as published]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: Option<u64>,
    /// Minutes of each training
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub minutes: Option<f64>,
    /// Config file of trainings (TOML)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set a value of the trainings' config, such as optimiser.precision=bf16; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Graphs to pretrain on, in order, by name in --data or by path [default: the paper's that are in --data]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub train_on: Vec<String>,
    /// Rows of ablations: full, backtracking, length-64, length-256, starts-at-query, transformer, mean-consensus, width-128,
    /// length-256-width-128 [default: the first seven, the paper's]
    #[arg(long, value_name = "ROW,…", value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Time for each row of a measurement of speed, about
    #[arg(long, value_name = "S", default_value = "2", value_parser = parse::seconds)]
    pub seconds: f64,
    #[command(flatten)]
    pub table: SheetArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// The published settings are the defaults here.
fn published(arg: Arg) -> Arg {
    if arg.get_id() == "walks" { arg.default_value("published") } else { arg }
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if minutes > 0.0 && minutes.is_finite() { Ok(minutes) } else { Err("expected more than 0".to_string()) }
}

impl ReproduceArgs {
    fn options(&self) -> Result<ReproduceOptions, Failure> {
        let mut training = Settings::new();
        if let Some(file) = &self.config {
            training.file(file).map_err(error)?;
        }
        for text in &self.set {
            training.set("--set", text).map_err(error)?;
        }
        let eval = self.protocol.settings();
        let rows = self.rows.iter().map(|name| AblationRow::parse(name)).collect::<Result<_, _>>().map_err(error)?;
        Ok(ReproduceOptions {
            data: self.data.clone(),
            graphs: self.graphs.clone(),
            models: self.model.model.clone(),
            precision: self.model.precision,
            threads: self.model.threads,
            split: eval.split,
            walks: eval.walks,
            passes: eval.passes,
            limit: eval.limit,
            seed: eval.seed,
            seeds: self.seeds,
            steps: self.steps,
            minutes: self.minutes,
            training,
            train_on: self.train_on.clone(),
            rows,
            seconds: self.seconds,
        })
    }
}

/// Lists, or makes one.
pub fn run(args: ReproduceArgs) -> Result<(), Failure> {
    check_format(args.table.output, None)?;
    let options = args.options()?;
    if let Some(data) = args.data.as_ref().filter(|data| !data.is_dir()) {
        return Err(Failure::Error(format!("--data {}: is no directory", data.display())));
    }
    let Some(name) = &args.name else { return list(&args, &options) };
    let item = Item::parse(name).map_err(|e| error(ReproduceError::from(e)))?;
    if let Some(hours) = cost(item, &options).hours(GFLOPS).filter(|hours| *hours > 0.05) {
        say!("{item}: at most {} at {GFLOPS} useful GFLOP/s", spoken_hours(hours));
    }
    let stop = on_interrupt("stopping; the same command goes on")?;
    let mut shown = Shown::default();
    let made = reproduce(item, &options, &args.out, &stop, &mut |event| shown.event(event));
    shown.end();
    let report = match made {
        Err(ReproduceError::Stopped) => {
            say!("stopped; the same command goes on from {}", args.out.display());
            std::process::exit(130)
        }
        // Hints are looked up by the error that stands inside.
        Err(ReproduceError::Eval(e)) => return Err(error(*e)),
        Err(ReproduceError::Config(e)) => return Err(error(*e)),
        Err(ReproduceError::Predictor(e)) => return Err(error(*e)),
        Err(ReproduceError::Ask(e)) => return Err(error(*e)),
        Err(ReproduceError::Training(e)) => {
            return Err(match *e {
                TrainingError::Run(e) => error(e),
                e => error(e),
            });
        }
        made => made.map_err(error)?,
    };
    let files = report.write(&args.out, &command_line()).map_err(error)?;
    print_main(&report, args.table.output)?;
    files.iter().for_each(|file| say!("written: {}", file.display()));
    Ok(())
}

/// The command as it was given, for the report.
fn command_line() -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(first) = words.first_mut() {
        *first = Path::new(first).file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    }
    let quoted = |word: &String| match word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./,=:".contains(c)) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn print_main(report: &flock_kg::reproduce::Report, format: OutputFormat) -> Result<(), Failure> {
    let Some(section) = report.sections.first() else { return Ok(()) };
    match format {
        OutputFormat::Md => print_sheet(&section.sheet, format),
        // The best of a row is bold in Markdown, and has a star on a terminal.
        OutputFormat::Table => {
            let star = |cell: &String| match cell.strip_prefix("**").and_then(|c| c.strip_suffix("**")) {
                Some(bold) => format!("{bold}*"),
                None => cell.clone(),
            };
            let rows = section.sheet.rows.iter().map(|row| row.iter().map(star).collect()).collect();
            print_sheet(&Sheet { header: section.sheet.header.clone(), rows }, format)
        }
        _ => print_sheet(section.plain.as_ref().unwrap_or(&section.sheet), format),
    }
}

fn list(args: &ReproduceArgs, options: &ReproduceOptions) -> Result<(), Failure> {
    let titles = ["name", "does", "in the paper", "graphs", "pretrains on", "hours"];
    let row = |item: Item| {
        let cost = cost(item, options);
        let graphs = match (cost.of, args.data.is_some()) {
            (0, _) => "–".to_string(),
            (of, false) => of.to_string(),
            (of, true) => format!("{} of {of}", cost.graphs),
        };
        let pretrains = match (item.pretrains_on().len(), args.data.is_some()) {
            (0, _) => "–".to_string(),
            (of, false) => of.to_string(),
            (of, true) => format!("{} of {of}", cost.train_on),
        };
        let hours = match cost.hours(GFLOPS) {
            None => format!("{} min a model", args.minutes.unwrap_or_default()),
            Some(_) if item == Item::NoiseInjection => "–".to_string(),
            Some(hours) if hours < 0.05 => "0".to_string(),
            Some(hours) if hours < 10.0 => format!("{hours:.1}"),
            Some(hours) => format!("{hours:.0}"),
        };
        vec![item.name().to_string(), item.work().to_string(), item.labels().to_string(), graphs, pretrains, hours]
    };
    let rows = Item::ALL.into_iter().map(row).collect();
    let sheet = Sheet { header: titles.map(String::from).to_vec(), rows };
    print_aligned(&sheet, &[Align::Left, Align::Left, Align::Left], args.table.output)?;
    if args.table.output == OutputFormat::Table {
        say!(
            "hours: at most, at {GFLOPS} useful GFLOP/s; with --data, --graphs, --limit, --passes, --steps for what they leave"
        );
    }
    Ok(())
}

fn spoken_hours(hours: f64) -> String {
    match hours {
        ..1.0 => format!("{:.0} minutes", hours * 60.0),
        1.0..48.0 => format!("{hours:.1} hours"),
        _ => format!("{:.0} days", hours / 24.0),
    }
}

/// The bars of what is going on.
#[derive(Default)]
struct Shown {
    asking: Option<EvalBar>,
    training: Option<TrainBar>,
    stage: String,
}

impl Shown {
    fn event(&mut self, event: ReproduceEvent<'_>) {
        match event {
            ReproduceEvent::Began { stage, number, of } => {
                self.end();
                self.stage = if of > 1 { format!("{stage} ({number}/{of})") } else { stage.to_string() };
                say!("{}", self.stage);
            }
            ReproduceEvent::Asked(progress) => {
                let bar = self.asking.get_or_insert_with(|| EvalBar::new(self.stage.clone()));
                bar.tell(progress, &std::sync::atomic::AtomicBool::new(false));
            }
            ReproduceEvent::Training(event) => self.training.get_or_insert_with(TrainBar::new).event(event),
            ReproduceEvent::Note(note) => say!("{note}"),
            _ => {}
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.asking.take() {
            bar.end();
        }
        if let Some(bar) = self.training.take() {
            bar.end();
        }
    }
}
