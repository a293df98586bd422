//! The `flock-kg` command: [`flock_cli::run`] as a program.

use std::process::ExitCode;

// The allocator of musl has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    flock_cli::run(std::env::args_os()).into()
}
