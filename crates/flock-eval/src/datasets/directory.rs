//! A dataset directory: which graph is walked for a split, and which triples are predicted on it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flock_graph::{Format, Graph, GraphBuilder, LoadOptions, Topology, Triple, for_each_triple};

use super::error::DatasetError;
use super::graph::NamedGraph;
use super::layout::{Part, Protocol, Split, SplitKind};
use super::meta;
use super::registry::{self, DatasetGroup, RegistryEntry};
use super::test_set::TestSet;

/// A header has at most so many bytes.
const MAX_HEADER: u64 = 64 << 10;

/// A dataset directory.
#[derive(Debug)]
pub struct Dataset {
    /// Name of the dataset.
    pub name: String,
    /// Path of the directory.
    pub dir: PathBuf,
    /// How it is evaluated.
    pub protocol: Protocol,
    /// The registry's entry, if there is one.
    pub entry: Option<&'static RegistryEntry>,
    /// SHA-256 of the files, as `meta.json` states them.
    pub(super) sha256: BTreeMap<Part, String>,
}

impl Dataset {
    /// Opens the dataset called `name` in a directory of datasets. The error for an unknown name
    /// lists similar names.
    pub fn find(data: &Path, name: &str) -> Result<Dataset, DatasetError> {
        let dir = data.join(name);
        if dir.is_dir() {
            return Dataset::open(&dir);
        }
        registry::get(name)?;
        Err(DatasetError::Missing { dir: dir.display().to_string(), name: name.to_string() })
    }

    /// Opens the dataset in a directory.
    pub fn open(dir: &Path) -> Result<Dataset, DatasetError> {
        let folder = dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let meta = meta::read(dir)?;
        let name = meta.as_ref().map(|m| m.name.clone()).filter(|n| !n.is_empty()).unwrap_or(folder);
        let entry = registry::find(&name);
        let published = || Protocol::published(SplitKind::Transductive, Part::Train, true);
        let protocol = match (&meta, entry) {
            (Some(meta), _) => meta.protocol.clone(),
            (None, Some(entry)) => entry.protocol.clone(),
            (None, None) => published(),
        };
        let sha256 = meta.map(|m| m.sha256).unwrap_or_default();
        Ok(Dataset { name, dir: dir.to_path_buf(), protocol, entry, sha256 })
    }

    /// Returns the group in which it is averaged.
    pub fn group(&self) -> DatasetGroup {
        self.entry.map_or(DatasetGroup::Other, |e| e.group)
    }

    /// Returns the path of a file of the layout: the one that is there, or the published name if none is.
    pub fn file(&self, part: Part) -> PathBuf {
        let paths = part.names().map(|name| self.dir.join(name));
        paths.into_iter().find(|path| path.is_file()).unwrap_or_else(|| self.dir.join(part.file()))
    }

    /// Tells how a file is read. Files of the published layout (`.txt`) have no header. A `.tsv` or `.csv` file has one if its first
    /// row is also the first row of another file of the dataset: no triple is in two splits.
    fn options(&self, path: &Path) -> LoadOptions {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("txt");
        let first = first_line(path);
        let is_repeated = || {
            let others = Part::ALL.into_iter().map(|part| self.file(part)).filter(|other| other != path);
            first.is_some() && others.into_iter().any(|other| first_line(&other) == first)
        };
        LoadOptions {
            format: Some(if ending == "csv" { Format::Csv } else { Format::Tsv }),
            header: Some(ending != "txt" && is_repeated()),
            ..LoadOptions::default()
        }
    }

    /// Passes every triple of a file to `sink`, in order. Returns their number.
    pub fn for_each(&self, part: Part, sink: impl FnMut(&str, &str, &str)) -> Result<u64, DatasetError> {
        let path = self.file(part);
        Ok(for_each_triple(&path, &self.options(&path), sink)?.triples)
    }

    /// Loads the triples of a split to predict.
    pub fn test_set(&self, split: Split) -> Result<TestSet, DatasetError> {
        let none = || {
            let other = if split == Split::Valid { Split::Test } else { Split::Valid };
            let other = self.file(other.part()).is_file();
            DatasetError::NothingToPredict { dir: self.dir.display().to_string(), split, other }
        };
        self.load(split)?.1.ok_or_else(none)
    }

    /// Loads the graph that is walked for a split, and the triples to predict on it, if there are
    /// any.
    pub fn load(&self, split: Split) -> Result<(Arc<NamedGraph>, Option<TestSet>), DatasetError> {
        let walked = self.protocol.walked(split);
        let mut builder = GraphBuilder::new();
        let rows = self.for_each(walked, |h, r, t| builder.add(h, r, t))?;

        let closed = self.protocol.drops_unknown(split);
        let mut others: Vec<(bool, [String; 3])> = Vec::new();
        for &part in self.protocol.filter(split) {
            if part != walked && self.file(part).is_file() {
                let predicted = part == split.part();
                self.for_each(part, |h, r, t| others.push((predicted, [h, r, t].map(String::from))))?;
            }
        }
        if !closed {
            for (_, [h, r, t]) in &others {
                builder.entity(h);
                builder.entity(t);
                builder.relation(r);
            }
        }
        if self.protocol.shares_relations() && walked != Part::Train && self.file(Part::Train).is_file() {
            self.for_each(Part::Train, |_, r, _| _ = builder.relation(r))?;
        }
        let graph = finish(builder, &self.file(walked))?;
        let id = |[h, r, t]: &[String; 3]| {
            let (entities, relations) = (graph.entities(), graph.relations());
            Some(Triple { head: entities.id(h)?, relation: relations.id(r)?, tail: entities.id(t)? })
        };
        let predicted = others.iter().filter(|(predicted, _)| *predicted).count();
        let others: Vec<(bool, Triple)> = others.iter().filter_map(|(p, names)| Some((*p, id(names)?))).collect();
        let triples: Vec<Triple> = others.iter().filter(|(predicted, _)| *predicted).map(|(_, t)| *t).collect();
        let topology = graph.topology();
        let all = topology.triples().chain(others.iter().map(|(_, t)| *t)).collect();
        let known = Topology::build(topology.num_nodes(), topology.num_relations(), all)?;
        let on = Arc::new(NamedGraph { name: self.name.clone(), graph, walked: None });
        let (heads, dropped) = (self.protocol.heads, predicted - triples.len());
        let set = (!triples.is_empty()).then(|| TestSet { on: on.clone(), triples, known, heads, rows, dropped });
        Ok((on, set))
    }
}

/// The first line of a file, if there is one of reasonable length.
fn first_line(path: &Path) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(File::open(path).ok()?.take(MAX_HEADER)).read_until(b'\n', &mut line).ok()?;
    let line = line.trim_ascii_end();
    (!line.is_empty()).then(|| line.to_vec())
}

pub(super) fn finish(builder: GraphBuilder, path: &Path) -> Result<Graph, DatasetError> {
    builder.finish().map_err(|source| DatasetError::Graph { file: path.display().to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same dataset in three spellings has the same triples.
    #[test]
    fn splits_may_be_tsv_or_csv_with_a_header() {
        let train = [["a, b", "r", "c"], ["c", "r", "d"], ["d", "r", "a, b"]];
        let (valid, test) = ([["c", "r", "a, b"]], [["d", "r", "c"]]);
        let write = |ending: &str, separator: &str, header: bool| {
            let dir = tempfile::tempdir().unwrap();
            let quote = |name: &str| if separator == "," { format!("\"{name}\"") } else { name.to_string() };
            for (part, rows) in [("train", &train[..]), ("valid", &valid), ("test", &test)] {
                let title = [["head", "relation", "tail"]];
                let rows = title.iter().take(usize::from(header)).chain(rows);
                let lines: Vec<String> = rows.map(|row| row.map(quote).join(separator)).collect();
                std::fs::write(dir.path().join(format!("{part}.{ending}")), lines.join("\n") + "\n").unwrap();
            }
            dir
        };
        for (ending, separator, header) in
            [("txt", "\t", false), ("tsv", "\t", false), ("tsv", "\t", true), ("csv", ",", false), ("csv", ",", true)]
        {
            let dir = write(ending, separator, header);
            let dataset = Dataset::open(dir.path()).unwrap();
            let set = dataset.test_set(Split::Test).unwrap();
            let graph = set.on.graph();
            let names: Vec<&str> = (0..graph.topology().num_nodes()).map(|v| graph.entities().get(v)).collect();
            assert_eq!(names, ["a, b", "c", "d"], "{ending} {header}");
            assert_eq!((graph.topology().num_triples(), set.triples.len(), set.known.num_triples()), (3, 1, 5));
        }
    }
}
