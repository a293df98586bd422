//! Knowledge graphs: names and dense ids, triples, an index for walking, masks, and readers for
//! files.
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

mod folded;
mod graph;
mod labels;
mod lookup;
mod names;
mod near;
mod packed;
mod prefixes;
mod quote;
mod read;
mod search;
mod subgraph;
mod text_index;
pub mod topology;
mod unknown;

/// The version of Arrow that [`load_batches`] and [`for_each_row`] take batches of.
#[cfg(feature = "parquet")]
pub use arrow_array;
pub use graph::{Graph, GraphBuilder, GraphError, NamedEdit};
pub use labels::{LabelSet, Labels};
pub use names::Names;
pub use packed::PackedError;
pub use prefixes::Prefixes;
pub use read::error::{Compression, EndpointError, LoadError, Remedy, RowError};
pub use read::labels::LabelReport;
pub use read::{
    BadColumns, Column, ColumnRole, Columns, DirectoryReport, FileReport, Format, HeaderReason, LoadOptions,
    LoadProgress, LoadReport, LoadWarning, MaybeHeader, SkippedRow, TableReport, UnknownFormat, UsedColumn,
    for_each_triple, foreign_kind, load, load_many, load_reader, source_name,
};
#[cfg(feature = "parquet")]
pub use read::{for_each_row, load_batches};
pub use search::NameIndex;
pub use subgraph::{Subgraph, grow};
pub use topology::mask::{self, Mask};
pub use topology::{Edit, NodeId, Topology, TopologyError, Triple, TypeId};
pub use unknown::{NameKind, UnknownName};

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
