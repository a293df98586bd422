//! The `flock-kg` command as a function, for programs that bring the command along: the binary here, and the Python package.
//!
//! Standard output is data, standard error is talk. Exit status: 0 done, 1 an error (one line `error: …`), 2 misuse.

#![deny(clippy::print_stderr, clippy::print_stdout)] // both panic when nobody reads

#[macro_use]
mod shared;
mod commands;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, Parser};
use commands::Cli;

/// Runs the command and returns its exit status. The first of `args` is the name of the program. Help, misuse and a second Ctrl-C
/// end the whole process.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let status = match Cli::parse_from(args).command.run() {
        Ok(()) => 0,
        Err(failure) => failure.report(Cli::command()),
    };
    // Whoever calls may not end as a Rust program does. If nobody reads any more, that is no failure.
    let _ = io::stdout().flush();
    status
}
