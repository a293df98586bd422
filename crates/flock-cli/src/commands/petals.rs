//! `flock-kg petals`: trains on the 220 Petals graphs, or tests a model on them, and tells how many are solved.

use std::path::{Path, PathBuf};

use flock_kg::bundled;
use flock_kg::eval::results::write_text;
use flock_kg::finetune::{run_petals, test_petals};
use flock_kg::model::checkpoint::{Checkpoint, Task};
use flock_kg::train::petals;
use flock_kg::train::{PetalsConfig, PetalsProtocol, PetalsReport, PetalsTest};

use crate::shared::failure::{Failure, error, json};
use crate::shared::output::println;
use crate::shared::training::{RunArgs, put, stopped, with_options};

/// Arguments of `petals`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg petals --seed 1
  flock-kg petals --until-solved --epochs 20 --json
  flock-kg petals --model runs/petals-1/last.safetensors
  flock-kg petals --model bundled --passes 4 --json
  flock-kg petals --export runs/petals-graphs
  flock-kg petals --svg petals.svg --instance 35

An instance is solved if the true target's logit is above the false one's by more than 0.1, over 16 passes. Models with \
deterministic relation invariants cannot tell the two apart: they solve none. Each target is scored on walks of its own, as \
published; --set protocol=shared_walks scores both on the walks of one query, which is easier. A run that was cut off goes on when the same \
command is run again.

With --model nothing is trained: the checkpoint is tested on the 220 instances of --seed, with inverse types if it was trained with \
them. --export writes each graph as a file that predict can read, and instances.jsonl with the question and both targets of each.")]
pub struct PetalsArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Times that all instances are seen
    #[arg(long, value_name = "N")]
    pub epochs: Option<u64>,
    /// Test this checkpoint, or bundled, and train nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["epochs", "length", "until_solved", "out", "resume", "precision"])]
    pub model: Option<PathBuf>,
    /// Write the 220 graphs and an index of their questions into this directory, and do nothing else
    #[arg(long, value_name = "DIR", conflicts_with_all = ["model", "svg", "epochs", "length", "until_solved", "out", "resume", "precision"])]
    pub export: Option<PathBuf>,
    /// Passes of the test [default: 16]
    #[arg(long, value_name = "P")]
    pub passes: Option<u32>,
    /// Base walk count
    #[arg(long, value_name = "N")]
    pub walks: Option<u32>,
    /// Walk length
    #[arg(long, value_name = "L")]
    pub length: Option<usize>,
    /// End after the first epoch that leaves no instance unsolved
    #[arg(long)]
    pub until_solved: bool,
    /// Write a picture of one instance to this file, and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub svg: Option<PathBuf>,
    /// Which instance, from 0 to 219
    #[arg(long, value_name = "I", default_value_t = 27, requires = "svg",
        value_parser = clap::value_parser!(u64).range(0..220))]
    pub instance: u64,
}

/// Trains and tests, or draws.
pub fn run(args: PetalsArgs) -> Result<(), Failure> {
    let mut settings = args.run.settings()?;
    put(&mut settings, "--epochs", "epochs", args.epochs);
    put(&mut settings, "--walks", "walks", args.walks);
    put(&mut settings, "--passes", "passes", args.passes);
    put(&mut settings, "--length", "length", args.length);
    put(&mut settings, "--until-solved", "until_solved", args.until_solved.then_some(true));
    let config = PetalsConfig::resolve(&settings).map_err(error)?;
    if let Some(path) = args.svg {
        let all = petals::instances(config.seed);
        let picture = petals::svg(&all[args.instance as usize % all.len()]);
        return write_text(&path, &picture).map_err(error);
    }
    if let Some(dir) = &args.export {
        return export(dir, config.seed, args.run.json);
    }
    if let Some(model) = &args.model {
        return test(model, &config, &args.run);
    }
    let dir = config.output.dir.clone().unwrap_or_else(|| PathBuf::from(format!("runs/petals-{}", config.seed)));
    match with_options(&args.run, |options| run_petals(&config, &dir, options))? {
        None => stopped(&dir.display().to_string()),
        Some(report) if args.run.json => println(&json(&report)?),
        Some(report) => println(&describe(&report)),
    }
}

/// Writes the graphs and says where they are.
fn export(dir: &Path, seed: u64, as_json: bool) -> Result<(), Failure> {
    let records = petals::export(dir, seed).map_err(error)?;
    if as_json {
        let report =
            serde_json::json!({ "dir": dir, "seed": seed, "instances": records.len(), "index": petals::INDEX });
        return println(&json(&report)?);
    }
    let first = &records[0];
    println(&format!(
        "Petals, seed {seed}: {} graphs in {}\n  index    {}\n  try      flock-kg predict {} {} {} '?'",
        records.len(),
        dir.display(),
        dir.join(petals::INDEX).display(),
        dir.join(&first.graph).display(),
        first.head,
        first.relation
    ))
}

/// Tests a checkpoint.
fn test(model: &Path, config: &PetalsConfig, args: &RunArgs) -> Result<(), Failure> {
    let checkpoint = match model == Path::new(bundled::ORIGIN) {
        true => bundled::default_checkpoint(Task::Entity),
        false => Checkpoint::read(model).map_err(error)?,
    };
    let name = model.display().to_string();
    match with_options(args, |options| test_petals(&checkpoint, &name, config, options))? {
        None => {
            say!("stopped; the same command starts the test anew");
            std::process::exit(130)
        }
        Some(report) if args.json => println(&json(&report)?),
        Some(report) => println(&describe_test(&report)),
    }
}

fn describe_test(r: &PetalsTest) -> String {
    let inverses = match r.inverses {
        true => "with, as the model was trained; the published protocol has none",
        false => "none, as the model was trained and as published",
    };
    let protocol = match r.protocol {
        PetalsProtocol::Published => "published: each target on walks of its own",
        PetalsProtocol::SharedWalks => "shared_walks: both targets on the walks of one query",
    };
    format!(
        "Petals, seed {}, test of {} in {:.1} minutes (n = {}, L = {})\n  \
         solved           {} of {} (P = {})\n  \
         accuracy         {:.1} %\n  true target > 0  {:.1} %\n  false target < 0 {:.1} %\n  \
         protocol         {protocol}\n  inverse types    {inverses}",
        r.seed,
        r.model,
        r.minutes,
        r.walks,
        r.length,
        r.solved,
        r.instances,
        r.passes,
        100.0 * r.accuracy,
        100.0 * r.accuracy_true,
        100.0 * r.accuracy_false,
    )
}

fn describe(r: &PetalsReport) -> String {
    let losses: Vec<String> = r.losses.iter().map(|l| format!("{l:.3}")).collect();
    let accuracies: Vec<String> = r.accuracies.iter().map(|a| format!("{:.1}", 100.0 * a)).collect();
    let by_epoch = match r.protocol {
        PetalsProtocol::Published => {
            format!("\n  accuracy by epoch {} % (epoch {} kept)", accuracies.join(" "), r.kept_epoch)
        }
        PetalsProtocol::SharedWalks => {
            "\n  protocol         shared_walks: both targets on the walks of one query".to_string()
        }
    };
    format!(
        "Petals, seed {}, {} epochs in {:.1} minutes (n = {}, L = {})\n  \
         solved           {} of {} (P = {})\n  \
         true target > 0  {:.1} %\n  false target < 0 {:.1} %\n  \
         loss by epoch    {}{by_epoch}\n  model            {}",
        r.seed,
        r.epochs,
        r.minutes,
        r.walks,
        r.length,
        r.solved,
        r.instances,
        r.passes,
        100.0 * r.accuracy_true,
        100.0 * r.accuracy_false,
        losses.join(" "),
        r.model
    )
}
