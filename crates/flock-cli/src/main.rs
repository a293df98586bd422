//! The `flock-kg` command.
//!
//! Standard output is data, standard error is talk. Exit status: 0 done, 1 an error (one line `error: …`), 2 misuse.

#![deny(clippy::print_stderr, clippy::print_stdout)] // both panic when nobody reads

#[macro_use]
mod shared;
mod commands;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use commands::Cli;

// The allocator of musl has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(Cli::command()),
    }
}
