//! Measures the speed of sampling and recording: `cargo run --release -p flock-walk --example bench
//! -- train.txt` for a graph of tab-separated triples, or `-- synthetic NODES TRIPLES` for a random
//! one. Prints one figure per line.

use flock_graph::{Mask, Topology, Triple};
use flock_walk::{Key, Recorder, Records, Starts, WalkOptions, WalkQuery, Walks, bench_moves, sample_from};
use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let begin = Instant::now();
    let (nodes, relations, triples) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["synthetic", nodes, triples] => synthetic(nodes.parse()?, triples.parse()?),
        [path] => read(path)?,
        _ => return Err("usage: bench FILE.tsv | bench synthetic NODES TRIPLES".into()),
    };
    println!("read or made {} triples in {:.2} s", triples.len(), begin.elapsed().as_secs_f64());
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let graph = Topology::build(nodes, relations, triples)?;
    let build = begin.elapsed().as_secs_f64();
    let bytes = graph.memory_bytes();
    let cpu = cpu_seconds() - cpu; // more reliable than elapsed time on a shared machine
    println!("build {build:.2} s ({cpu:.2} s of it on the processor)");
    println!("{} triples, {nodes} nodes, {relations} relations", graph.num_triples());
    println!("index {bytes} bytes, {:.1} a triple", bytes as f64 / graph.num_triples() as f64);
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        println!("{}", status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default());
    }
    for _ in 0..3 {
        println!("walks {:.1} million moves/s", bench_moves(&graph, 1.0) / 1e6);
    }
    rest(&graph);
    Ok(())
}

/// Measures recording, starts and masks of queries with n = 16 and n = 128, six updates each.
/// Prints the best of 20 runs.
fn rest(graph: &Topology) {
    let options = WalkOptions::default();
    let query = WalkQuery::Entity { head: 1, relation: 0 };
    let hidden: Vec<Triple> = graph.triples().step_by(graph.num_triples() / 8 + 1).collect();
    let mask = Mask::new(graph, &hidden);
    println!("mask of {} triples: {:.2} us", hidden.len(), 1e6 * best(|| drop(Mask::new(graph, &hidden))));
    for n in [16, 128] {
        let key = |update| Key { seed: 0, pass: 0, update, query: 0 };
        let mut walks: Vec<Walks> = (0..6).map(|u| Walks::sample(graph, None, &query, n, key(u), &options)).collect();
        let positions = 6 * walks[0].nodes.len();
        let (mut recorder, mut records) = (Recorder::new(), Records::default());
        let seconds = best(|| {
            recorder.begin(&query, graph.no_type());
            for w in &walks {
                recorder.record(w.length, &w.nodes, &w.types, &w.dirs, &mut records);
            }
        });
        let met = recorder.nodes().len();
        println!("record n={n}: {:.2} ns a position ({met} nodes)", 1e9 * seconds / positions as f64);
        let seconds = best(|| drop(Starts::prepare(graph, None, &query, n, key(0), &options)));
        println!("prepare n={n}: {:.2} us", 1e6 * seconds);
        let seconds = best(|| {
            for (update, w) in walks.iter_mut().enumerate() {
                let starts = Starts::prepare(graph, Some(&mask), &query, n, key(update as u32), &options);
                let all = 0..starts.num_walks();
                sample_from(&starts, graph, Some(&mask), &options, all, &mut w.nodes, &mut w.types, &mut w.dirs);
            }
        });
        println!("masked walks n={n}: {:.1} million moves/s", positions as f64 / seconds / 1e6);
    }
}

/// Returns the processor time of this thread in seconds, or 0 where the system does not report it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0) / 1e9
}

/// Returns the shortest of 20 runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let begin = Instant::now();
        run();
        begin.elapsed().as_secs_f64()
    };
    (0..20).map(time).fold(f64::INFINITY, f64::min)
}

fn read(path: &str) -> Result<(u32, u32, Vec<Triple>), Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let (mut entities, mut relations) = (HashMap::new(), HashMap::new());
    let mut triples = Vec::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (Some(h), Some(r), Some(t)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(format!("{path}: not three fields: {line}").into());
        };
        let mut entity = |name| {
            let next = entities.len() as u32;
            *entities.entry(name).or_insert(next)
        };
        let (head, tail) = (entity(h), entity(t));
        let next = relations.len() as u32;
        triples.push(Triple { head, relation: *relations.entry(r).or_insert(next), tail });
    }
    Ok((entities.len() as u32, relations.len() as u32, triples))
}

/// Uniform heads and tails over 100 relations: the worst case for a cache.
fn synthetic(nodes: u32, triples: usize) -> (u32, u32, Vec<Triple>) {
    let mut stream = Key { seed: 9, pass: 0, update: 0, query: 0 }.stream(0);
    let mut draw = |bound: u32| stream.below(u64::from(bound)) as u32;
    let triples = (0..triples).map(|_| Triple { head: draw(nodes), relation: draw(100), tail: draw(nodes) });
    (nodes, 100, triples.collect())
}
