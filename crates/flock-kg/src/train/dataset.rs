//! The graphs of a run: dataset directories and graph files, each with what it offers for validation.
//!
//! A dataset directory has `train.txt`, `valid.txt`, `test.txt`, perhaps `inference.txt`, all tab-separated, and a `meta.json`
//! that says which graph is walked for validation and what counts as known there. Without `meta.json` it is a transductive one.
//! Entities that first appear in validation or test triples are candidates too, as published: they are nodes without an edge.

use std::path::Path;
use std::sync::Arc;

use flock_graph::{
    Format, Graph, GraphBuilder, GraphError, LoadError, LoadOptions, Topology, TopologyError, Triple, for_each_triple,
};
use flock_walk::{Key, WalkQuery};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data::{Order, Subgraph};

/// Why a dataset cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file of triples cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// `meta.json` cannot be read or understood.
    #[error("{file}: {reason}")]
    Meta {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A directory without anything to validate on.
    #[error("{dir}: no valid.txt with triples of the walked graph; hint: leave it out of validation.extra")]
    NoValidation {
        /// The directory.
        dir: String,
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
pub(crate) struct NamedGraph {
    pub name: String,
    graph: Graph,
    kept: Option<Topology>,
}

impl NamedGraph {
    /// What is walked.
    pub fn topology(&self) -> &Topology {
        self.kept.as_ref().unwrap_or(self.graph.topology())
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
pub(crate) struct ValidationSet {
    pub on: Arc<NamedGraph>,
    pub triples: Vec<Triple>,
    /// What counts as known: the walked graph and the splits that its dataset names.
    pub known: Topology,
    /// Heads are asked for too.
    pub heads: bool,
}

impl ValidationSet {
    /// Keeps a seeded sample.
    pub fn sample(&mut self, count: usize, seed: u64) {
        let order = order(seed, self.triples.len());
        let count = count.min(self.triples.len()) as u64;
        self.triples = (0..count).map(|k| self.triples[order.get(k) as usize]).collect();
    }
}

/// Validation and hold-out draw apart from walks and training data under the same seed.
fn order(seed: u64, len: usize) -> Order {
    Order::new(Key { seed, pass: u32::MAX, update: u32::MAX - 1, query: 0 }, len as u64)
}

/// A training graph, and its validation triples if it has some.
pub(crate) fn training(
    path: &Path,
    holdout: f64,
    seed: u64,
) -> Result<(Arc<NamedGraph>, Option<ValidationSet>), DatasetError> {
    if !path.is_dir() {
        return graph_file(path, holdout, seed);
    }
    let layout = Layout::read(path)?;
    if layout.walks_train() {
        let (graph, set) = layout.validation(path)?;
        return Ok((graph, set));
    }
    let mut builder = GraphBuilder::new();
    for_each_triple(&path.join("train.txt"), &tab_separated(), |h, r, t| builder.add(h, r, t))?;
    let graph = finish(builder, &path.join("train.txt"))?;
    let named = Arc::new(NamedGraph { name: layout.name.clone(), graph, kept: None });
    Ok((named, layout.validation(path)?.1))
}

/// The validation triples of a dataset directory.
pub(crate) fn validation(path: &Path) -> Result<ValidationSet, DatasetError> {
    let none = || DatasetError::NoValidation { dir: path.display().to_string() };
    Layout::read(path)?.validation(path)?.1.ok_or_else(none)
}

fn graph_file(path: &Path, holdout: f64, seed: u64) -> Result<(Arc<NamedGraph>, Option<ValidationSet>), DatasetError> {
    let (graph, _) = flock_graph::load(path, &LoadOptions::default())?;
    let name = path.file_stem().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let all = graph.topology();
    // One triple at least stays to train on.
    let held = ((all.num_triples() as f64 * holdout) as usize).min(all.num_triples().saturating_sub(1));
    if held == 0 {
        return Ok((Arc::new(NamedGraph { name, graph, kept: None }), None));
    }
    let order = order(seed, all.num_triples());
    let mut ids: Vec<u32> = (0..held as u64).map(|k| order.get(k) as u32).collect();
    ids.sort_unstable();
    let triples: Vec<Triple> = ids.iter().map(|&id| all.triple(id)).collect();
    let rest = (0u32..).zip(all.triples()).filter(|(id, _)| ids.binary_search(id).is_err()).map(|(_, t)| t).collect();
    let kept = Topology::build(all.num_nodes(), all.num_relations(), rest)?;
    let known = all.clone();
    let on = Arc::new(NamedGraph { name, graph, kept: Some(kept) });
    Ok((on.clone(), Some(ValidationSet { on, triples, known, heads: true })))
}

/// What `meta.json` says.
#[derive(Debug, Deserialize)]
struct Layout {
    #[serde(default)]
    name: String,
    #[serde(default)]
    split: String,
    #[serde(default = "train")]
    valid_graph: String,
    #[serde(default)]
    filter: Filter,
    #[serde(default)]
    entity_task: String,
}

#[derive(Debug, Deserialize)]
struct Filter {
    valid: Vec<String>,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter { valid: ["train", "valid", "test"].map(String::from).to_vec() }
    }
}

fn train() -> String {
    "train".to_string()
}

impl Layout {
    fn read(dir: &Path) -> Result<Layout, DatasetError> {
        let path = dir.join("meta.json");
        let file = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => "{}".to_string(),
            Err(e) => return Err(DatasetError::Meta { file, reason: e.to_string() }),
        };
        let mut layout: Layout = serde_json::from_str(&text)
            .map_err(|e| DatasetError::Meta { file: file.clone(), reason: e.to_string() })?;
        // Names of splits become names of files.
        for split in layout.filter.valid.iter().chain([&layout.valid_graph]) {
            if !["train", "inference", "valid", "test"].contains(&split.as_str()) {
                let reason = format!("unknown split {split:?}, expected train, inference, valid or test");
                return Err(DatasetError::Meta { file, reason });
            }
        }
        if layout.name.is_empty() {
            layout.name = dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        }
        Ok(layout)
    }

    fn walks_train(&self) -> bool {
        self.valid_graph == "train"
    }

    /// The graph walked for validation, and the validation triples on it if there are any.
    fn validation(&self, dir: &Path) -> Result<(Arc<NamedGraph>, Option<ValidationSet>), DatasetError> {
        let file = |split: &str| dir.join(format!("{split}.txt"));
        let walked = file(&self.valid_graph);
        let mut builder = GraphBuilder::new();
        for_each_triple(&walked, &tab_separated(), |h, r, t| builder.add(h, r, t))?;

        // Where train and test graph have vocabularies of their own, validation triples outside the walked one are dropped.
        let closed = self.split == "inductive_er" && self.walks_train();
        let mut splits: Vec<&str> = self.filter.valid.iter().map(String::as_str).collect();
        splits.retain(|split| *split != self.valid_graph && file(split).is_file());
        let mut others: Vec<(bool, [String; 3])> = Vec::new();
        for split in splits {
            let is_valid = split == "valid";
            let mut add = |h: &str, r: &str, t: &str| others.push((is_valid, [h, r, t].map(String::from)));
            for_each_triple(&file(split), &tab_separated(), &mut add)?;
        }
        if !closed {
            for (_, [h, r, t]) in &others {
                builder.entity(h);
                builder.entity(t);
                builder.relation(r);
            }
        }
        let graph = finish(builder, &walked)?;
        let id = |[h, r, t]: &[String; 3]| {
            let (entities, relations) = (graph.entities(), graph.relations());
            Some(Triple { head: entities.id(h)?, relation: relations.id(r)?, tail: entities.id(t)? })
        };
        let others: Vec<(bool, Triple)> = others.iter().filter_map(|(v, names)| Some((*v, id(names)?))).collect();
        let triples: Vec<Triple> = others.iter().filter(|(is_valid, _)| *is_valid).map(|(_, t)| *t).collect();
        let topology = graph.topology();
        let all = topology.triples().chain(others.iter().map(|(_, t)| *t)).collect();
        let known = Topology::build(topology.num_nodes(), topology.num_relations(), all)?;
        let on = Arc::new(NamedGraph { name: self.name.clone(), graph, kept: None });
        let heads = self.entity_task != "t";
        let set = (!triples.is_empty()).then(|| ValidationSet { on: on.clone(), triples, known, heads });
        Ok((on, set))
    }
}

fn finish(builder: GraphBuilder, path: &Path) -> Result<Graph, DatasetError> {
    builder.finish().map_err(|source| DatasetError::Graph { file: path.display().to_string(), source })
}

fn tab_separated() -> LoadOptions {
    LoadOptions { format: Some(Format::Tsv), header: Some(false), ..LoadOptions::default() }
}
