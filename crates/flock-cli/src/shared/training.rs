//! What `pretrain`, `finetune` and `petals` share: arguments as settings, how a run is stopped and watched, and what came of it.

use std::path::PathBuf;

use flock_kg::finetune::{RunOptions, Training, TrainingError};
use flock_kg::graph::{Column, Columns};
use flock_kg::train::{Event, Settings, TrainConfig, TrainSummary};
use serde_json::Value;

use crate::shared::failure::{Failure, error, json};
use crate::shared::interrupt::on_interrupt;
use crate::shared::load::ReadingArgs;
use crate::shared::output::println;
use crate::shared::progress::TrainBar;

/// Flags of every run.
#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// Config file (TOML); configs/ has commented examples
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set any value of the config, such as optimiser.rate=1e-4; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Directory of the run; if a run was cut off there, it goes on
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in --out; an error if there is none
    #[arg(long)]
    pub resume: bool,
    /// Seed of weights, data and walks [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads; they do not change the result [default: all]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Precision of a step's multiplications: f32, or bf16, which is faster where the processor has it [default: f32]
    #[arg(long, value_parser = ["f32", "bf16"])]
    pub precision: Option<String>,
    /// What came of it as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl RunArgs {
    /// The file's settings, then those of `--set`, then the flags.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings::new();
        if let Some(file) = &self.config {
            settings.file(file).map_err(error)?;
        }
        for text in &self.set {
            settings.set("--set", text).map_err(error)?;
        }
        put(&mut settings, "--seed", "seed", self.seed);
        put(&mut settings, "--threads", "threads", self.threads);
        put(&mut settings, "--precision", "optimiser.precision", self.precision.clone());
        put(&mut settings, "--out", "output.dir", self.out.as_ref().map(|p| p.display().to_string()));
        Ok(settings)
    }
}

/// Flags of pretraining and fine-tuning: the config's most used keys.
#[derive(clap::Args, Debug)]
pub struct TrainArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Training graph: a dataset directory (train.txt, valid.txt, …) or a graph file; may be given again
    #[arg(long, value_name = "PATH")]
    pub graph: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Steps of the optimiser
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// End after so many minutes; without --steps, only then
    #[arg(long, value_name = "N")]
    pub minutes: Option<f64>,
    /// Triples in a batch
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Negatives of each entity question, or all
    #[arg(long, value_name = "N")]
    pub negatives: Option<String>,
    /// Base walk count, or rule: by the size of the graph
    #[arg(long, value_name = "N")]
    pub walks: Option<String>,
    /// Learning rate
    #[arg(long, value_name = "RATE")]
    pub rate: Option<f64>,
}

impl TrainArgs {
    /// As [`RunArgs::settings`].
    pub fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = self.run.settings()?;
        if !self.graph.is_empty() {
            let graphs: Vec<String> = self.graph.iter().map(|p| p.display().to_string()).collect();
            settings.put("--graph", "data.graphs", graphs);
        }
        // Training uses no labels. Pages of endpoints have their usual size.
        let ReadingArgs { format, columns, header, no_header, lenient, language: _, page_size: _ } = &self.reading;
        put(&mut settings, "--format", "data.format", format.map(|f| f.to_string()));
        put(&mut settings, "--columns", "data.columns", columns.as_ref().map(column_settings));
        put(&mut settings, "--header", "data.header", header.then_some(true));
        put(&mut settings, "--no-header", "data.header", no_header.then_some(false));
        put(&mut settings, "--lenient", "data.lenient", lenient.then_some(true));
        put(&mut settings, "--steps", "steps", self.steps);
        put(&mut settings, "--minutes", "minutes", self.minutes);
        put(&mut settings, "--batch", "data.batch", self.batch);
        let number = |text: &String| text.parse::<u32>().map_or_else(|_| Value::from(text.as_str()), Value::from);
        put(&mut settings, "--negatives", "data.negatives", self.negatives.as_ref().map(number));
        put(&mut settings, "--walks", "walks.n", self.walks.as_ref().map(number));
        put(&mut settings, "--rate", "optimiser.rate", self.rate);
        Ok(settings)
    }
}

/// Columns as the config writes them: numbers from 1, or names.
fn column_settings(columns: &Columns) -> Vec<Value> {
    let setting = |column: &Column| match column {
        Column::Number(at) => Value::from(at + 1),
        Column::Name(name) => Value::from(name.as_str()),
    };
    columns.each().map(setting).to_vec()
}

/// Puts what a flag says, if it was given.
pub fn put(settings: &mut Settings, flag: &str, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        settings.put(flag, key, value);
    }
}

/// Trains and says what came of it. `dir` is where the run goes if nothing was said.
pub fn run(args: &RunArgs, config: &TrainConfig, dir: PathBuf) -> Result<(), Failure> {
    let dir = config.output.dir.clone().unwrap_or(dir);
    let summary = with_options(args, |options| Training::new(config).run(&dir, options))?;
    if args.json {
        println(&json(&summary)?)?;
    } else {
        println(&describe(&summary))?;
    }
    if !summary.finished {
        stopped(&summary.dir);
    }
    Ok(())
}

fn describe(s: &TrainSummary) -> String {
    let mut lines = vec![format!("{} model, trained on {}", s.task, s.graphs.join(", "))];
    lines.push(format!("  steps     {} in {:.1} minutes", s.steps, s.minutes));
    lines.extend(s.loss.map(|loss| format!("  loss      {loss:.4}")));
    lines.extend(s.before.map(|before| format!("  before    MRR {before:.4} on validation triples")));
    lines.extend(s.best.map(|best| {
        let gain = s.gain.map_or(String::new(), |gain| format!(", gain {gain:+.4}"));
        format!("  best      MRR {:.4} at step {}{gain}", best.mrr, best.step)
    }));
    if s.before.is_some() && s.best.is_some_and(|best| best.step == 0) {
        lines.push("            no step was better than the start, whose weights stay the best".to_string());
    }
    lines.push(format!("  model     {}", s.model));
    lines.push(format!("  curve     {}", s.curve));
    lines.join("\n")
}

/// Says how to go on, and ends as an interrupted program does.
pub fn stopped(dir: &str) -> ! {
    say!("stopped; the same command goes on from {dir}");
    std::process::exit(130)
}

/// Runs `work` with Ctrl-C as what stops it and a bar as what watches it.
pub fn with_options<T>(
    args: &RunArgs,
    work: impl FnOnce(RunOptions<'_>) -> Result<T, TrainingError>,
) -> Result<T, Failure> {
    let stop = on_interrupt("stopping after this step")?;
    let mut progress = TrainBar::new();
    let watch = Box::new(|event: Event<'_>| progress.event(event));
    let result = work(RunOptions { resume: args.resume, stop: &stop, watch });
    progress.end();
    // Hints are looked up by the error that stands inside.
    result.map_err(|e| match e {
        TrainingError::Machine(e) => error(*e),
        TrainingError::Run(e) => error(e),
        e => error(e),
    })
}
