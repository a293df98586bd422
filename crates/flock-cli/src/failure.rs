//! How a command ends when it does not end well.

use std::io;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;
use serde::Serialize;

/// Why a command stops.
#[derive(Debug)]
pub enum Failure {
    /// Said in one line, status 1.
    Error(String),
    /// The command line of this command contradicts itself, status 2.
    Misuse(&'static str, String),
    /// Everything has been said already, status 1.
    Reported,
    /// Nobody reads our output any more (`… | head`), which is no failure at all.
    PipeClosed,
}

impl Failure {
    /// Says what happened and gives the exit status.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Error(message) => {
                say!("error: {message}");
                ExitCode::FAILURE
            }
            Failure::Misuse(name, message) => {
                let mut command = crate::args::Args::command();
                let misused = command.find_subcommand_mut(name).expect("it is one of ours");
                let _ = misused.error(ErrorKind::ArgumentConflict, message).print();
                ExitCode::from(2)
            }
            Failure::Reported => ExitCode::FAILURE,
            Failure::PipeClosed => ExitCode::SUCCESS,
        }
    }
}

/// Any error as a [`Failure::Error`].
pub fn error(e: impl std::fmt::Display) -> Failure {
    Failure::Error(e.to_string())
}

/// One line of JSON.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(error)
}

/// The only bare I/O errors in this program are those of standard output.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            _ => Failure::Error(format!("cannot write to standard output: {e}")),
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Error(message)
    }
}
