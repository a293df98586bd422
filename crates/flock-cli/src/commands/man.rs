//! `flock-kg man`: the manual pages, made from the help of the commands.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;

use super::Cli;
use crate::shared::failure::Failure;

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  flock-kg man --out ~/.local/share/man/man1\n  man flock-kg-predict")]
pub struct ManArgs {
    /// Write the page of each command into this directory, instead of printing the first page
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Prints the first page, or writes all of them.
pub fn run(args: ManArgs) -> Result<(), Failure> {
    // `help` repeats the whole tree and would double the number of pages.
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    if let Some(dir) = args.out {
        fs::create_dir_all(&dir).map_err(|e| Failure::Error(format!("{}: {e}", dir.display())))?;
        return write(&cli, &dir);
    }
    let mut page = Vec::new();
    Man::new(cli).render(&mut page)?;
    let mut out = io::stdout().lock();
    out.write_all(&page)?;
    Ok(out.flush()?)
}

/// Writes the page of `command` and of all commands below it.
fn write(command: &clap::Command, dir: &Path) -> Result<(), Failure> {
    let man = Man::new(command.clone());
    let file = dir.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page)?;
    fs::write(&file, page).map_err(|e| Failure::Error(format!("{}: {e}", file.display())))?;
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| write(below, dir))
}
