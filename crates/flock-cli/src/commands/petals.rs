//! `flock-kg petals`: trains on the 220 Petals graphs and tells how many are solved.

use std::path::PathBuf;

use flock_kg::eval::results::write_text;
use flock_kg::finetune::run_petals;
use flock_kg::train::petals;
use flock_kg::train::{PetalsConfig, PetalsProtocol, PetalsReport};

use crate::shared::failure::{Failure, error, json};
use crate::shared::output::println;
use crate::shared::training::{RunArgs, put, stopped, with_options};

/// Arguments of `petals`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg petals --seed 1
  flock-kg petals --until-solved --epochs 20 --json
  flock-kg petals --svg petals.svg --instance 35

An instance is solved if the true target's logit is above the false one's by more than 0.1, over 16 passes. Models with \
deterministic relation invariants cannot tell the two apart: they solve none. Each target is scored on walks of its own, as \
published; --set protocol=shared_walks scores both on the walks of one query, which is easier. A run that was cut off goes on when the same \
command is run again.")]
pub struct PetalsArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Times that all instances are seen
    #[arg(long, value_name = "N")]
    pub epochs: Option<u64>,
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
    #[arg(long, value_name = "FILE")]
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
    put(&mut settings, "--length", "length", args.length);
    put(&mut settings, "--until-solved", "until_solved", args.until_solved.then_some(true));
    let config = PetalsConfig::resolve(&settings).map_err(error)?;
    if let Some(path) = args.svg {
        let all = petals::instances(config.seed);
        let picture = petals::svg(&all[args.instance as usize % all.len()]);
        return write_text(&path, &picture).map_err(error);
    }
    let dir = config.output.dir.clone().unwrap_or_else(|| PathBuf::from(format!("runs/petals-{}", config.seed)));
    match with_options(&args.run, |options| run_petals(&config, &dir, options))? {
        None => stopped(&dir.display().to_string()),
        Some(report) if args.run.json => println(&json(&report)?),
        Some(report) => println(&describe(&report)),
    }
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
