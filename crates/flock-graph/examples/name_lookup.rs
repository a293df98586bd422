//! Measures how long it takes to find names by every spelling in a graph of many names, and how much
//! memory that takes.
//!
//! `cargo run --release -p flock-graph --example name_lookup [millions of names]`
//!
//! The graph is synthetic: a ring of entities named as in a dump of Wikidata, each with a label of two
//! words. The first look-up of a kind makes its index, so it is printed apart from the mean of those
//! that follow. Times are those of the processor (on Linux; elsewhere elapsed), which others on a busy
//! machine do not change much.

use flock_graph::{Graph, GraphBuilder};
use std::time::Instant;

const NAMESPACE: &str = "http://www.wikidata.org/entity/";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions: f64 = std::env::args().nth(1).map_or(Ok(1.0), |a| a.parse())?;
    let count = (millions * 1e6) as u64;
    let mut builder = GraphBuilder::new();
    builder.prefixes().insert("wd", NAMESPACE);
    for i in 0..count {
        let name = format!("{NAMESPACE}Q{i}");
        builder.add(&name, "next", &format!("{NAMESPACE}Q{}", (i + 1) % count));
        builder.label(&name, &format!("Entity No {i}"), 0);
    }
    let clock = Clock(Instant::now());
    let start = clock.seconds();
    let graph = builder.finish()?;
    println!("{count} names and labels; index of triples {:.2} s", clock.seconds() - start);
    println!("graph {:.1} MB, of which labels {:.1} MB", megabytes(&graph), graph.labels().memory_bytes() as f64 / 1e6);
    println!("{:20} {:>12} {:>12} {:>12}", "spelling", "first, ms", "next, µs", "graph, MB");
    for (what, spelling) in [
        ("full IRI", "http://www.wikidata.org/entity/Q{}"),
        ("prefix:local", "wd:Q{}"),
        ("label", "Entity No {}"),
        ("label, other case", "entity_no_{}"),
        ("without prefix", "Q{}"),
        ("IRI, other case", "HTTP://www.wikidata.org/entity/q{}"),
        ("nothing fits", "nobody {}"),
    ] {
        let find = |i: u64| graph.find_entity(&spelling.replace("{}", &i.to_string()));
        let start = clock.seconds();
        let first = find(7);
        let first_ms = (clock.seconds() - start) * 1e3;
        let start = clock.seconds();
        let found = (0..10_000).filter(|i| find(i * 97 % count).is_some()).count();
        let next_us = (clock.seconds() - start) * 1e6 / 1e4;
        assert_eq!((first.is_some(), found), if what == "nothing fits" { (false, 0) } else { (true, 10_000) });
        println!("{what:20} {first_ms:12.2} {next_us:12.2} {:12.1}", megabytes(&graph));
    }
    Ok(())
}

fn megabytes(graph: &Graph) -> f64 {
    graph.memory_bytes() as f64 / 1e6
}

/// Counts the seconds that this process had the processor.
struct Clock(Instant);

impl Clock {
    fn seconds(&self) -> f64 {
        let times = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let nanoseconds: Option<f64> = times.split(' ').next().and_then(|n| n.parse().ok());
        nanoseconds.map_or_else(|| self.0.elapsed().as_secs_f64(), |n| n / 1e9)
    }
}
