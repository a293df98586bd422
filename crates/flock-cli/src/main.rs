//! The `flock-kg` command.
//!
//! Standard output is data, standard error is talk. Exit status: 0 done, 1 an error (one line `error: …`), 2 misuse.

#![deny(clippy::print_stderr, clippy::print_stdout)] // both panic when nobody reads

#[macro_use]
mod shared;
mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
