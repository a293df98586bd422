//! What a knowledge graph is: names and dense ids, triples, an index for walking, masks, and loaders.
//!
//! ```
//! let tsv = "Lisbon\tcapital of\tPortugal\nPortugal\tborders\tSpain\n";
//! let options = flock_graph::LoadOptions::default();
//! let (graph, report) = flock_graph::load_reader("europe.tsv", tsv.as_bytes(), &options)?;
//! assert_eq!(report.triples, 2);
//! assert_eq!(graph.entities().get(graph.parse_entity("Portugal")?), "Portugal");
//! let unknown = graph.parse_entity("Portgual").unwrap_err();
//! assert_eq!(unknown.to_string(), r#"unknown entity "Portgual"; near names: "Portugal""#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod delimited;
mod error;
mod format;
mod graph;
mod load;
pub mod mask;
mod names;
mod neighbourhood;
mod prefixes;
mod rdf;
mod rdfxml;
mod search;
mod source;
mod subgraph;
mod suggest;
pub mod topology;
mod turtle;

pub use error::{Compression, LoadError, Remedy, RowError};
pub use format::{Format, UnknownFormat};
pub use graph::{Graph, GraphBuilder, GraphError, NameKind, NamedEdit, UnknownName};
pub use load::{
    LoadOptions, LoadReport, LoadWarning, MaybeHeader, SkippedRow, for_each_triple, load, load_many, load_reader,
};
pub use mask::Mask;
pub use names::Names;
pub use prefixes::Prefixes;
pub use search::NameIndex;
pub use subgraph::{Subgraph, grow};
pub use topology::{Edit, NodeId, Topology, TopologyError, Triple, TypeId};

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
