//! Running the binary in a directory of small files.

#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use flock_kg::model::checkpoint::{Metadata, Task};
use flock_kg::model::init::initial_weights;
use serde_json::Value;

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

    /// A run that went well, whatever it said.
    pub fn fine(self) -> Ran {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
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

/// A server of its own process, killed in the end.
pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Server {
    pub fn start(place: &Place) -> Server {
        Server::start_with(place, &[])
    }

    pub fn start_with(place: &Place, more: &[&str]) -> Server {
        Server::start_on(place, "world.tsv", more)
    }

    /// Serves a graph with both small models.
    pub fn start_on(place: &Place, graph: &str, more: &[&str]) -> Server {
        let models = ["--model", "entity.safetensors", "--model", "relation.safetensors"];
        let args = [&["serve", graph, "--listen", "127.0.0.1:0", "--threads", "1"], &models[..], more].concat();
        let mut child = place.command(&args).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on http://").and_then(|l| l.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_string();
        Server { child, address }
    }

    /// The answer to a request, if all of it came.
    pub fn try_send(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ").map(str::to_string));
        (length.is_none_or(|l| l.parse() == Ok(body.len()))).then(|| (status, body.to_string()))
    }

    pub fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, text) = self.try_send(method, path, body).unwrap();
        (status, serde_json::from_str(&text).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The precision of answers when none is asked for.
pub fn default_precision() -> String {
    let level = flock_kg::kernels::Level::available().last().unwrap();
    flock_kg::Precision::fastest(level).to_string()
}
