//! `flock-kg completions`: a script that completes our commands and flags in a shell.

use std::io::Write;

use clap::CommandFactory;

use super::Cli;
use crate::shared::failure::Failure;

/// Arguments of `completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  flock-kg completions bash > ~/.local/share/bash-completion/completions/flock-kg")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(args: CompletionsArgs) -> Result<(), Failure> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "flock-kg", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
