//! The instances as files: a graph file for each, and an index.
//!
//! ```text
//! instances.jsonl      a line per instance: its file, its parameters, its question, its targets
//! 000.tsv … 219.tsv    head, relation, tail by name
//! ```
//! A graph is one file because that is what commands and libraries read; the index has the rest.
//! Names say what the paper calls a node: `b0` of the stem, `p2_a3` for a₃ of the second petal;
//! relation 4 is `r4`.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{PetalsInstance, instances};
use crate::run::{TrainError, io_error};
use flock_graph::NodeId;

/// Name of the index.
pub const INDEX: &str = "instances.jsonl";

/// A line of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PetalsRecord {
    /// Number of the instance, from 0.
    pub instance: usize,
    /// File of its graph.
    pub graph: String,
    /// The seed that drew the question.
    pub seed: u64,
    /// Which of the 11 relation assignments, from 1.
    pub assignment: u32,
    /// Edges of the stem.
    pub stem: u32,
    /// Nodes on each side of a petal, the tip not counted.
    pub petal_length: u32,
    /// Distance of both targets from `b0`.
    pub distance: u32,
    /// Head of the question.
    pub head: String,
    /// Relation of the question.
    pub relation: String,
    /// The target that is true.
    pub true_target: String,
    /// The target that is false.
    pub false_target: String,
    /// Entities of the graph.
    pub entities: u32,
    /// Its relations.
    pub relations: u32,
    /// Its triples.
    pub triples: usize,
}

impl PetalsInstance {
    /// Returns the name of a node: `b0`, `b1`, … on the stem, `p1_a1`, … on petals.
    pub fn entity_name(&self, node: NodeId) -> String {
        let per_petal = 2 * self.petal_length + 1;
        match node.checked_sub(self.stem + 1) {
            None => format!("b{node}"),
            Some(place) => format!("p{}_a{}", place / per_petal + 1, place % per_petal + 1),
        }
    }

    /// Returns the name of a relation: `r0` is the stem's.
    pub fn relation_name(relation: u32) -> String {
        format!("r{relation}")
    }

    fn tsv(&self) -> String {
        let line = |t: &flock_graph::Triple| {
            let (head, tail) = (self.entity_name(t.head), self.entity_name(t.tail));
            format!("{head}\t{}\t{tail}\n", PetalsInstance::relation_name(t.relation))
        };
        self.triples.iter().map(line).collect()
    }

    fn record(&self, instance: usize, seed: u64) -> PetalsRecord {
        PetalsRecord {
            instance,
            graph: format!("{instance:03}.tsv"),
            seed,
            assignment: self.assignment,
            stem: self.stem,
            petal_length: self.petal_length,
            distance: self.distance,
            head: self.entity_name(self.head),
            relation: PetalsInstance::relation_name(self.relation),
            true_target: self.entity_name(self.target_true),
            false_target: self.entity_name(self.target_false),
            entities: self.num_nodes,
            relations: self.num_relations,
            triples: self.triples.len(),
        }
    }
}

/// Writes the 220 instances of a seed into a directory, which appears whole or not at all. The same
/// seed gives the same bytes. A directory that has this export already is left as it is.
///
/// # Errors
/// A directory with anything else in it, or a file that cannot be written.
pub fn export(dir: &Path, seed: u64) -> Result<Vec<PetalsRecord>, TrainError> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut records = Vec::new();
    for (i, instance) in instances(seed).iter().enumerate() {
        let record = instance.record(i, seed);
        files.push((record.graph.clone(), instance.tsv()));
        records.push(record);
    }
    let line = |r: &PetalsRecord| serde_json::to_string(r).expect("plain values") + "\n";
    files.push((INDEX.to_string(), records.iter().map(line).collect()));

    if is_there(dir, &files)? {
        return Ok(records);
    }
    let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(io_error(parent))?;
    let name = dir.file_name().map(|n| n.to_string_lossy().into_owned());
    let Some(name) = name else {
        return Err(io_error(dir)(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a directory")));
    };
    let temporary = parent.join(format!(".{name}.{}", std::process::id()));
    let written = write(&temporary, &files).and_then(|()| std::fs::rename(&temporary, dir).map_err(io_error(dir)));
    if written.is_err() {
        // What happened is said already.
        let _ = std::fs::remove_dir_all(&temporary);
    }
    written.map(|()| records)
}

/// Tells whether the directory has exactly these files. It may be absent or empty.
fn is_there(dir: &Path, files: &[(String, String)]) -> Result<bool, TrainError> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries.map_err(io_error(dir))?,
    };
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        names.push(entry.map_err(io_error(dir))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let is_ours = |name: &String| {
        let file = files.iter().find(|(own, _)| own == name);
        file.is_some_and(|(_, text)| std::fs::read(dir.join(name)).is_ok_and(|bytes| bytes == text.as_bytes()))
    };
    let occupied = |file: &str| TrainError::Occupied { dir: dir.display().to_string(), file: file.to_string() };
    match names.iter().find(|name| !is_ours(name)) {
        Some(other) => Err(occupied(other)),
        None if names.is_empty() => Ok(false),
        None if names.len() < files.len() => Err(occupied(&names[0])),
        None => Ok(true),
    }
}

fn write(dir: &Path, files: &[(String, String)]) -> Result<(), TrainError> {
    std::fs::create_dir(dir).map_err(io_error(dir))?;
    for (name, text) in files {
        let path: PathBuf = dir.join(name);
        std::fs::write(&path, text).map_err(io_error(&path))?;
    }
    Ok(())
}
