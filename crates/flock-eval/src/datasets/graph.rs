//! A graph with its names, and a fingerprint to recognise it by.

use flock_graph::{Graph, Subgraph, Topology};
use flock_walk::WalkQuery;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A graph with names. Some of its triples may be held out.
#[derive(Debug)]
pub struct NamedGraph {
    /// Name of the dataset or file.
    pub name: String,
    pub(super) graph: Graph,
    /// What is walked, if some triples are held out.
    pub(super) walked: Option<Topology>,
}

impl NamedGraph {
    /// A graph of which only the triples of `walked` are walked.
    pub(crate) fn holding_out(name: String, graph: Graph, walked: Topology) -> NamedGraph {
        NamedGraph { name, graph, walked: Some(walked) }
    }

    /// Returns the graph that is walked.
    pub fn topology(&self) -> &Topology {
        self.walked.as_ref().unwrap_or(self.graph.topology())
    }

    /// Returns the names and all triples.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Writes a question with the names of the graph. If `piece` is given, the ids are those of the
    /// piece.
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

    /// Computes the fingerprint, by which a resumed run notices other data.
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
