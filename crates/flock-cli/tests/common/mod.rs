//! Running the binary in a directory of small files.

#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flock_kg::checkpoint::{Metadata, Task};
use flock_kg::init::initial_weights;

/// Ten triples and one duplicate: three countries that hang together, one that does not, and one lonely self-loop.
pub const WORLD: &str = "Lisbon\tcapital_of\tPortugal
Madrid\tcapital_of\tSpain
Paris\tcapital_of\tFrance
Portugal\tborders\tSpain
Spain\tborders\tFrance
Portugal\tin\tEurope
Spain\tin\tEurope
France\tin\tEurope
Reykjavik\tcapital_of\tIceland
Nowhere\tin\tNowhere
Portugal\tborders\tSpain
";

/// A directory with `world.tsv` and small models `entity.safetensors` and `relation.safetensors`.
pub struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        place.write("world.tsv", WORLD);
        for task in [Task::Entity, Task::Relation] {
            let meta = Metadata { updates: 2, length: 12, ..Metadata::published(task) };
            initial_weights(meta, 7).unwrap().write(place.path(&format!("{task}.safetensors"))).unwrap();
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// The command, to run in the directory.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flock-kg"));
        command.args(args).current_dir(self.dir.path()).env_remove("FLOCK_SIMD");
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::new(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    pub fn run_with_stdin(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Ran {
        let piped = || Stdio::piped();
        let mut child = self.command(args).stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_ref()).unwrap();
        Ran::new(child.wait_with_output().unwrap())
    }

    /// `predict world.tsv` with both small models and few walks.
    pub fn predict(&self, args: &[&str]) -> Ran {
        self.run(&predict_args(args))
    }
}

/// The arguments of `predict world.tsv` with both small models and few walks.
pub fn predict_args<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let models = ["--model", "entity.safetensors", "--model", "relation.safetensors"];
    [&["predict", "world.tsv"], args, &models, &["--walks", "2"]].concat()
}

/// What came out.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn new(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Standard output of a run that went well and had nothing to say.
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out
    }

    /// Standard output of a run that went well as one piece of JSON.
    pub fn json_text(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }

    /// Standard output as lines of JSON.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
