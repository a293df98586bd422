//! Triples to predict, and what is known about them.

use std::sync::Arc;

use flock_graph::{Topology, Triple};
use flock_walk::{Key, Order};

use super::graph::NamedGraph;

/// Triples to predict, with the graph that is walked for them.
#[derive(Debug)]
pub struct TestSet {
    /// The graph that is walked.
    pub on: Arc<NamedGraph>,
    /// The triples to predict.
    pub triples: Vec<Triple>,
    /// The known triples: those of the walked graph and of the files that the protocol names.
    pub known: Topology,
    /// Whether heads are asked for too.
    pub heads: bool,
    /// Number of rows in the walked file, duplicates included.
    pub rows: u64,
    /// Number of triples left out because the walked graph lacks a name (see
    /// [`Protocol::drops_unknown`](super::Protocol::drops_unknown)).
    pub dropped: usize,
}

impl TestSet {
    /// Reduces the triples to a seeded sample. All of them are no sample: they stay in their order.
    pub fn sample(&mut self, count: usize, seed: u64) {
        if count >= self.triples.len() {
            return;
        }
        let order = order(seed, self.triples.len());
        self.triples = (0..count as u64).map(|k| self.triples[order.get(k) as usize]).collect();
    }
}

/// Returns the order in which samples and held-out triples are drawn. Walks and training data have
/// other keys under the same seed.
pub(crate) fn order(seed: u64, len: usize) -> Order {
    Order::new(Key { seed, pass: u32::MAX, update: u32::MAX - 1, query: 0 }, len as u64)
}
