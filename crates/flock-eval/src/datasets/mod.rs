//! Dataset directories: graphs with triples to predict, for training and for evaluation.
//!
//! A directory has `train.txt`, `valid.txt`, `test.txt` and perhaps `inference.txt`, all tab-separated. Its [`Protocol`] is what its
//! `meta.json` states; without one, what the [`registry`] has under the directory's name; without that, transductive.
//! Entities that first appear in triples known to the filter are candidates too, as published: nodes without an edge.

pub mod check;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod layout;
pub mod registry;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flock_graph::{
    Format, Graph, GraphBuilder, GraphError, LoadError, LoadOptions, Topology, TopologyError, Triple, for_each_triple,
};
use flock_walk::{Key, Order, WalkQuery};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use flock_graph::Subgraph;
pub use layout::{Part, Protocol, Split, SplitKind};
pub use registry::{Entry, Group, UnknownDataset};

/// Why a dataset cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file of triples cannot be read.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// `meta.json` cannot be read or understood.
    #[error("{file}: {reason}")]
    Meta {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A directory without anything to predict.
    #[error("{dir}: no {split}.txt with triples of the walked graph; hint: {hint}", hint = match (.split, .other) {
        (Split::Test, true) => "--split valid",
        (Split::Test, false) => "put triples to predict into test.txt, tab-separated like train.txt",
        (Split::Valid, true) => "--split test, or leave it out of validation.extra",
        (Split::Valid, false) => "put triples to predict into valid.txt, or leave it out of validation.extra",
    })]
    NothingToPredict {
        /// The directory.
        dir: String,
        /// The split that was asked for.
        split: Split,
        /// Whether the file of the other split is there.
        other: bool,
    },
    /// A name without a directory.
    #[error(transparent)]
    Unknown(#[from] UnknownDataset),
    /// A known name whose files are not there.
    #[error("{dir}: no such directory; hint: flock-kg datasets fetch {name} --data DIR, or another --data")]
    Missing {
        /// Where it was looked for.
        dir: String,
        /// The dataset.
        name: String,
    },
    /// Triples that make no graph.
    #[error("{file}: {source}")]
    Graph {
        /// The file.
        file: String,
        /// Why.
        source: GraphError,
    },
    /// Triples that cannot be indexed.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// A graph with names, some of its triples perhaps held out.
#[derive(Debug)]
pub struct NamedGraph {
    /// Name of the dataset or file.
    pub name: String,
    graph: Graph,
    kept: Option<Topology>,
}

impl NamedGraph {
    /// What is walked.
    pub fn topology(&self) -> &Topology {
        self.kept.as_ref().unwrap_or(self.graph.topology())
    }

    /// The names, and all triples.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// A question in the words of the graph. With a piece, its ids are the piece's.
    pub fn describe(&self, query: &WalkQuery, piece: Option<&Subgraph>) -> String {
        let node = |v: u32| self.graph.entities().get(piece.map_or(v, |p| p.nodes[v as usize]));
        let relation = |r: u32| self.graph.relations().get(piece.map_or(r, |p| p.relations[r as usize]));
        let raw = piece.map_or(self.topology(), |p| &p.topology).num_relations();
        match *query {
            WalkQuery::Entity { head, relation: t } if t < raw => format!("({}, {}, ?)", node(head), relation(t)),
            WalkQuery::Entity { head, relation: t } => format!("(?, {}, {})", relation(t - raw), node(head)),
            WalkQuery::Relation { head, tail } => format!("({}, ?, {})", node(head), node(tail)),
        }
    }

    /// What a resumed run compares, so that it does not go on with other data.
    pub fn fingerprint(&self) -> Fingerprint {
        let topology = self.topology();
        let mut sum = Sha256::new();
        for t in topology.triples() {
            for id in [t.head, t.relation, t.tail] {
                sum.update(id.to_le_bytes());
            }
        }
        Fingerprint {
            name: self.name.clone(),
            entities: topology.num_nodes(),
            relations: topology.num_relations(),
            triples: topology.num_triples(),
            sha256: sum.finalize().iter().map(|b| format!("{b:02x}")).collect(),
        }
    }
}

/// A graph's name, sizes, and a hash of its triples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Name of the graph.
    pub name: String,
    /// Entities.
    pub entities: u32,
    /// Raw relations.
    pub relations: u32,
    /// Triples.
    pub triples: usize,
    /// SHA-256 of the triples' ids.
    pub sha256: String,
}

/// Triples to predict, on the graph that is walked for them.
#[derive(Debug)]
pub struct TestSet {
    /// The graph.
    pub on: Arc<NamedGraph>,
    /// The triples.
    pub triples: Vec<Triple>,
    /// What counts as known: the walked graph and the files that the protocol names.
    pub known: Topology,
    /// Heads are asked for too.
    pub heads: bool,
    /// Rows of the walked file, duplicates included.
    pub rows: u64,
    /// How many triples were left out because the walked graph lacks a name (see [`Protocol::drops_unknown`]).
    pub dropped: usize,
}

impl TestSet {
    /// Keeps a seeded sample.
    pub fn sample(&mut self, count: usize, seed: u64) {
        let order = order(seed, self.triples.len());
        let count = count.min(self.triples.len()) as u64;
        self.triples = (0..count).map(|k| self.triples[order.get(k) as usize]).collect();
    }
}

/// Samples and hold-outs draw apart from walks and training data under the same seed.
fn order(seed: u64, len: usize) -> Order {
    Order::new(Key { seed, pass: u32::MAX, update: u32::MAX - 1, query: 0 }, len as u64)
}

/// A dataset directory.
#[derive(Debug)]
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub dir: PathBuf,
    /// How it is evaluated.
    pub protocol: Protocol,
    /// What the registry has under the name.
    pub entry: Option<&'static Entry>,
    /// SHA-256 of its files, as its `meta.json` has them.
    sha256: BTreeMap<Part, String>,
}

impl Dataset {
    /// The dataset called `name` in a directory of datasets. A name that neither it nor the registry has gets near ones.
    pub fn find(data: &Path, name: &str) -> Result<Dataset, DatasetError> {
        let dir = data.join(name);
        if dir.is_dir() {
            return Dataset::open(&dir);
        }
        registry::get(name)?;
        Err(DatasetError::Missing { dir: dir.display().to_string(), name: name.to_string() })
    }

    /// The dataset in a directory.
    pub fn open(dir: &Path) -> Result<Dataset, DatasetError> {
        let folder = dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let meta = layout::read_meta(dir)?;
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

    /// The group it is averaged in.
    pub fn group(&self) -> Group {
        self.entry.map_or(Group::Other, |e| e.group)
    }

    /// Path of a file of the layout.
    pub fn file(&self, part: Part) -> PathBuf {
        self.dir.join(part.file())
    }

    /// Gives every triple of a file to `sink`, in order.
    pub fn for_each(&self, part: Part, sink: impl FnMut(&str, &str, &str)) -> Result<u64, DatasetError> {
        let options = LoadOptions { format: Some(Format::Tsv), header: Some(false), ..LoadOptions::default() };
        Ok(for_each_triple(&self.file(part), &options, sink)?.triples)
    }

    /// The triples of a split to predict.
    pub fn test_set(&self, split: Split) -> Result<TestSet, DatasetError> {
        let none = || {
            let other = if split == Split::Valid { Split::Test } else { Split::Valid };
            let other = self.dir.join(other.part().file()).is_file();
            DatasetError::NothingToPredict { dir: self.dir.display().to_string(), split, other }
        };
        self.load(split)?.1.ok_or_else(none)
    }

    /// The graph walked for a split, and the triples on it to predict if there are any.
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
        let on = Arc::new(NamedGraph { name: self.name.clone(), graph, kept: None });
        let (heads, dropped) = (self.protocol.heads, predicted - triples.len());
        let set = (!triples.is_empty()).then(|| TestSet { on: on.clone(), triples, known, heads, rows, dropped });
        Ok((on, set))
    }
}

/// What is trained on.
pub struct Training {
    /// The graph.
    pub graph: Arc<NamedGraph>,
    /// Its validation triples, if it has some.
    pub validation: Option<TestSet>,
    /// What of the file is not in the graph, if that is to be known.
    pub left_out: Option<String>,
}

/// A training graph from a dataset directory, or from a graph file read as `options` say.
pub fn training(path: &Path, options: &LoadOptions, holdout: f64, seed: u64) -> Result<Training, DatasetError> {
    if !path.is_dir() {
        return graph_file(path, options, holdout, seed);
    }
    let dataset = Dataset::open(path)?;
    if dataset.protocol.walked(Split::Valid) == Part::Train {
        let (graph, validation) = dataset.load(Split::Valid)?;
        return Ok(Training { graph, validation, left_out: None });
    }
    let mut builder = GraphBuilder::new();
    dataset.for_each(Part::Train, |h, r, t| builder.add(h, r, t))?;
    let graph = finish(builder, &dataset.file(Part::Train))?;
    let graph = Arc::new(NamedGraph { name: dataset.name.clone(), graph, kept: None });
    Ok(Training { graph, validation: dataset.load(Split::Valid)?.1, left_out: None })
}

/// The validation triples of a dataset directory.
pub fn validation(path: &Path) -> Result<TestSet, DatasetError> {
    Dataset::open(path)?.test_set(Split::Valid)
}

fn graph_file(path: &Path, options: &LoadOptions, holdout: f64, seed: u64) -> Result<Training, DatasetError> {
    let (graph, report) = flock_graph::load(path, options)?;
    let warnings: Vec<String> = report.warnings().iter().map(|warning| format!("warning: {warning}")).collect();
    let left_out = (!warnings.is_empty()).then(|| warnings.join("\n"));
    let name = path.file_stem().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let all = graph.topology();
    // One triple at least stays to train on.
    let held = ((all.num_triples() as f64 * holdout) as usize).min(all.num_triples().saturating_sub(1));
    if held == 0 {
        let graph = Arc::new(NamedGraph { name, graph, kept: None });
        return Ok(Training { graph, validation: None, left_out });
    }
    let order = order(seed, all.num_triples());
    let mut ids: Vec<u32> = (0..held as u64).map(|k| order.get(k) as u32).collect();
    ids.sort_unstable();
    let triples: Vec<Triple> = ids.iter().map(|&id| all.triple(id)).collect();
    let rest = (0u32..).zip(all.triples()).filter(|(id, _)| ids.binary_search(id).is_err()).map(|(_, t)| t).collect();
    let kept = Topology::build(all.num_nodes(), all.num_relations(), rest)?;
    let (known, rows) = (all.clone(), all.num_triples() as u64);
    let on = Arc::new(NamedGraph { name, graph, kept: Some(kept) });
    let validation = TestSet { on: on.clone(), triples, known, heads: true, rows, dropped: 0 };
    Ok(Training { graph: on, validation: Some(validation), left_out })
}

fn finish(builder: GraphBuilder, path: &Path) -> Result<Graph, DatasetError> {
    builder.finish().map_err(|source| DatasetError::Graph { file: path.display().to_string(), source })
}
