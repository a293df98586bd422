//! A query costs O(walks), whatever the graph: what it allocates, and how much it holds at once, on a graph of a
//! million nodes and on one of ten million.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flock_graph::{Topology, Triple};
use flock_kernels::{Engine, Level, Precision};
use flock_model::checkpoint::{Metadata, Task};
use flock_model::ensemble::{Ask, Asker};
use flock_model::init::initial_weights;
use flock_model::model::{Model, View};
use flock_walk::WalkQuery;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count.
struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged; only counters are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TOTAL.fetch_add(layout.size(), Relaxed);
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A ring with a chord from every node: every node has degree four, so walks meet as many nodes in any size.
fn ring(nodes: u32) -> Topology {
    let mut triples = Vec::with_capacity(2 * nodes as usize);
    for head in 0..nodes {
        triples.push(Triple { head, relation: head % 20, tail: (head + 1) % nodes });
        triples.push(Triple { head, relation: 20 + head % 5, tail: (u64::from(head) * 31 % u64::from(nodes)) as u32 });
    }
    Topology::build(nodes, 25, triples).unwrap()
}

/// Bytes held at once beyond the graph, and allocated in all, by eight queries.
fn cost(model: &Model, graph: &Topology) -> (usize, usize) {
    // One thread: with two, what is held at once depends on which query finishes first.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let asker = Asker::new(model, View { topology: graph, mask: None }, &pool);
    let ask = Ask { walks: 16, passes: 1, seed: 3, options: model.walk_options() };
    let queries: Vec<WalkQuery> =
        (0..8).map(|i| WalkQuery::Entity { head: graph.num_nodes() / 8 * i + 5, relation: 3 }).collect();
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let total = TOTAL.load(Relaxed);
    let scores = asker.ask(&queries, ask).unwrap();
    assert!(scores.iter().all(|s| s.reached.len() > 1000));
    (PEAK.load(Relaxed) - before, TOTAL.load(Relaxed) - total)
}

#[test]
fn a_query_allocates_nothing_proportional_to_the_graph() {
    let checkpoint = initial_weights(Metadata::published(Task::Entity), 0).unwrap();
    let model = Model::new(&checkpoint, Engine::new(Level::detect().unwrap(), Precision::F32).unwrap()).unwrap();
    // Both graphs are so large that walks rarely meet a node twice: the work is the same, only the graph differs.
    let (small_peak, small_total) = cost(&model, &ring(1_000_000));
    let (large_peak, large_total) = cost(&model, &ring(10_000_000));
    println!("1 million nodes:  {small_peak} bytes at once, {small_total} in all");
    println!("10 million nodes: {large_peak} bytes at once, {large_total} in all");
    // Nine million nodes more. One byte for each, in one of the eight queries, would be 9 MB: the slack is below that.
    let slack = 7_000_000;
    assert!(large_peak < small_peak + slack && large_total < small_total + slack);
}
