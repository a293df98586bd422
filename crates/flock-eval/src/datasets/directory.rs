//! A dataset directory: which graph is walked for a split, and which triples are predicted on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flock_graph::{Format, Graph, GraphBuilder, LoadOptions, Topology, Triple, for_each_triple};

use super::error::DatasetError;
use super::graph::NamedGraph;
use super::layout::{Part, Protocol, Split, SplitKind};
use super::meta;
use super::registry::{self, DatasetGroup, RegistryEntry};
use super::test_set::TestSet;

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

    /// Returns the path of a file of the layout.
    pub fn file(&self, part: Part) -> PathBuf {
        self.dir.join(part.file())
    }

    /// Passes every triple of a file to `sink`, in order. Returns their number.
    pub fn for_each(&self, part: Part, sink: impl FnMut(&str, &str, &str)) -> Result<u64, DatasetError> {
        let options = LoadOptions { format: Some(Format::Tsv), header: Some(false), ..LoadOptions::default() };
        Ok(for_each_triple(&self.file(part), &options, sink)?.triples)
    }

    /// Loads the triples of a split to predict.
    pub fn test_set(&self, split: Split) -> Result<TestSet, DatasetError> {
        let none = || {
            let other = if split == Split::Valid { Split::Test } else { Split::Valid };
            let other = self.dir.join(other.part().file()).is_file();
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

pub(super) fn finish(builder: GraphBuilder, path: &Path) -> Result<Graph, DatasetError> {
    builder.finish().map_err(|source| DatasetError::Graph { file: path.display().to_string(), source })
}
