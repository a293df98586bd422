//! The `flock-kg` command.
//!
//! Standard output is data, standard error is talk. Exit status: 0 done, 1 an error (one line `error: …`), 2 misuse.

#![deny(clippy::print_stderr, clippy::print_stdout)] // both panic when nobody reads

#[macro_use]
mod shared;
mod commands;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use commands::*;
use shared::args::{self, Args, Command};
use shared::failure::{self, Failure};
use shared::models;

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Predict(args) => predict::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Info(args) => info::run(args),
        Command::Import(args) => import::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Pretrain(args) => pretrain::run(*args),
        Command::Finetune(args) => finetune::run(*args),
        Command::Petals(args) => petals::run(*args),
        Command::World(args) => world::run(args),
        Command::Eval(args) => eval::run(*args),
        Command::Datasets(args) => datasets::run(*args),
        Command::Analyse(args) => analyse::run(*args),
        Command::Bench(args) => bench(args),
        Command::Completions { shell } => completions(shell),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn bench(args: args::Bench) -> Result<(), Failure> {
    let options = flock_kg::bench::BenchOptions {
        threads: args.threads.unwrap_or_else(models::all_threads),
        time: std::time::Duration::from_secs_f64(args.seconds),
        train: args.train,
    };
    let report = flock_kg::bench::run(options, &mut |what| say!("measuring: {what}"))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", failure::json(&report)?)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(out.flush()?)
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "flock-kg", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
