//! Triples to predict, and what is known about them.

use std::sync::Arc;

use flock_graph::{Topology, Triple};
use flock_walk::{Key, Order};

use super::graph::NamedGraph;

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
    /// How many triples were left out because the walked graph lacks a name (see [`Protocol::drops_unknown`](super::Protocol::drops_unknown)).
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
pub(super) fn order(seed: u64, len: usize) -> Order {
    Order::new(Key { seed, pass: u32::MAX, update: u32::MAX - 1, query: 0 }, len as u64)
}
