//! From a query to anonymous sequences: starts, random walks and recording (sections 2 and 3 of the
//! specification). Integers only.
//!
//! ```
//! use flock_graph::{Topology, Triple};
//! use flock_walk::{Key, Recorder, Records, WalkOptions, WalkQuery, Walks};
//!
//! let triple = |head, relation, tail| Triple { head, relation, tail };
//! let graph = Topology::build(3, 1, vec![triple(0, 0, 1), triple(1, 0, 2)])?;
//! let query = WalkQuery::Entity { head: 0, relation: 0 };
//! let options = WalkOptions { length: 8, ..WalkOptions::default() };
//! let key = Key { seed: 1, pass: 0, update: 0, query: 0 };
//!
//! let walks = Walks::sample(&graph, None, &query, 2, key, &options); // 3n = 6 walks of 8 positions
//! assert_eq!(walks.nodes[0], 0); // the first n start at the query's head
//!
//! let (mut recorder, mut records) = (Recorder::new(), Records::default());
//! recorder.begin(&query, graph.no_type());
//! recorder.record(walks.length, &walks.nodes, &walks.types, &walks.dirs, &mut records);
//! assert_eq!(records.node_name[0], 0); // names count from the walk's first node
//! # Ok::<(), flock_graph::TopologyError>(())
//! ```

mod bench;
mod order;
mod prefetch;
mod query;
mod record;
mod rng;
mod sample;
mod starts;

pub use bench::bench_moves;
pub use order::Order;
pub use query::{WalkOptions, WalkQuery};
pub use record::{MAX_LENGTH, Recorder, Records};
pub use rng::{Key, Stream};
pub use sample::{Walks, sample, sample_from};
pub use starts::Starts;

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
