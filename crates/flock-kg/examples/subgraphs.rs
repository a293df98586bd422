//! Compares ways to choose the entities of a subgraph, for `docs/subgraph.md`: how near the piece comes to its graph.
//!
//! `cargo run --release -p flock-kg --example subgraphs -- ../shared/kg 1000 6` (folder, entities, seed)

use flock_graph::{LoadOptions, Topology, Triple, load};
use flock_kg::data::subgraph::{Subgraph, grow};
use flock_walk::{Key, Stream, WalkOptions, WalkQuery, Walks};
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

const GRAPHS: [&str; 3] = ["FB15k237", "WN18RR", "CoDExMedium"];
/// Pieces a row.
const PIECES: u64 = 400;

/// Chooses entities around a triple.
type Choose = fn(&Topology, Triple, usize, &mut Stream) -> Vec<u32>;

const METHODS: [(&str, Choose); 9] = [
    ("snowball, fan-out 2", |g, a, n, s| snowball(g, a, n, s, 2)),
    ("snowball, fan-out 4", |g, a, n, s| snowball(g, a, n, s, 4)),
    ("snowball, fan-out 8", |g, a, n, s| snowball(g, a, n, s, 8)),
    ("snowball, fan-out 16", |g, a, n, s| snowball(g, a, n, s, 16)),
    ("snowball, fan-out 64", |g, a, n, s| snowball(g, a, n, s, 64)),
    ("snowball, unbounded", |g, a, n, s| snowball(g, a, n, s, 1 << 20)),
    ("walk with restarts (1/8)", |g, a, n, s| walk(g, a, n, s, 8, false)),
    ("Metropolis walk", |g, a, n, s| walk(g, a, n, s, 0, true)),
    ("neighbour expansion", |g, a, n, s| grow(g, a, n, &mut |b| s.below(b))),
];

/// Entities in the order they were chosen.
struct Chosen {
    nodes: Vec<u32>,
    seen: HashSet<u32>,
}

impl Chosen {
    fn new(anchor: Triple) -> Chosen {
        let mut chosen = Chosen { nodes: Vec::new(), seen: HashSet::new() };
        chosen.add(anchor.head);
        chosen.add(anchor.tail);
        chosen
    }

    fn add(&mut self, v: u32) {
        if self.seen.insert(v) {
            self.nodes.push(v);
        }
    }
}

/// A random walk that goes back to the anchor once in `restart` moves (never if 0); `level`: hubs are entered less often, so that
/// in the long run each entity is visited equally often.
fn walk(g: &Topology, anchor: Triple, size: usize, s: &mut Stream, restart: u64, level: bool) -> Vec<u32> {
    let mut chosen = Chosen::new(anchor);
    let mut at = anchor.head;
    for _ in 0..1000 * size {
        if chosen.nodes.len() == size {
            break;
        }
        if restart > 0 && s.below(restart) == 0 {
            at = if s.below(2) == 0 { anchor.head } else { anchor.tail };
        }
        let degree = u64::from(g.degree(at));
        let next = g.neighbours(at).nth(s.below(degree) as usize).unwrap_or(at);
        if !level || s.below(u64::from(g.degree(next))) < degree {
            at = next;
        }
        chosen.add(at);
    }
    chosen.nodes
}

/// From the anchor outwards, each entity in its turn brings in `fan_out` random neighbours; if that runs dry, again with twice as many.
fn snowball(g: &Topology, anchor: Triple, size: usize, s: &mut Stream, mut fan_out: usize) -> Vec<u32> {
    let mut chosen = Chosen::new(anchor);
    // A round may run dry before the piece is full; the next one brings in twice as many.
    while chosen.nodes.len() < size {
        let before = chosen.nodes.len();
        let mut longest = 0;
        let mut turn = 0;
        while turn < chosen.nodes.len() && chosen.nodes.len() < size {
            let v = chosen.nodes[turn];
            longest = longest.max(g.degree(v) as usize);
            for w in some_neighbours(g, v, fan_out, s) {
                if chosen.nodes.len() < size {
                    chosen.add(w);
                }
            }
            turn += 1;
        }
        if chosen.nodes.len() == before && fan_out >= longest {
            break; // everyone brought in everyone: the component ends here
        }
        fan_out *= 2;
    }
    chosen.nodes
}

/// At most `count` distinct neighbours of `v`, uniform and in uniform order, in O(count).
fn some_neighbours(g: &Topology, v: u32, count: usize, s: &mut Stream) -> Vec<u32> {
    let degree = g.degree(v) as usize;
    let mut picked = Vec::with_capacity(count.min(degree));
    if degree <= 2 * count {
        // Few: the beginning of a shuffle.
        picked.extend(g.neighbours(v));
        for i in 0..count.min(degree) {
            let j = i + s.below((degree - i) as u64) as usize;
            picked.swap(i, j);
        }
        picked.truncate(count);
    } else {
        // Many: at least half of the draws are new.
        let first = g.record(v).first() as usize;
        while picked.len() < count {
            let w = g.slots()[first + s.below(degree as u64) as usize].neighbour();
            if !picked.contains(&w) {
                picked.push(w);
            }
        }
    }
    picked
}

/// What is compared between a piece and its graph.
#[derive(Default)]
struct Measures {
    degree: f64,          // mean number of distinct neighbours
    triples: f64,         // per entity
    relations: f64,       // in use
    unvisited: f64,       // share of entities without a visit, at 4 visits an entity on average
    top: f64,             // share of visits to the most visited hundredth
    cumulative: Vec<f64>, // (128): share of entities of at most this degree
}

fn measure(g: &Topology, key: Key) -> Measures {
    let nodes = f64::from(g.num_nodes());
    let mut m = Measures { cumulative: vec![0.0; 128], ..Measures::default() };
    m.relations = g.relations_in_use().len() as f64;
    m.triples = g.num_triples() as f64 / nodes;
    for v in 0..g.num_nodes() {
        m.degree += f64::from(g.degree(v)) / nodes;
        for share in &mut m.cumulative[(g.degree(v) as usize).min(127)..] {
            *share += 1.0 / nodes;
        }
    }
    let t = g.triple(key.stream(7).below(g.num_triples() as u64) as u32);
    let n = (4.0 * nodes / (3.0 * 128.0)).round().max(1.0) as u32;
    let query = WalkQuery::Entity { head: t.head, relation: t.relation };
    let walks = Walks::sample(g, None, &query, n, key, &WalkOptions::default());
    let mut visits = vec![0u32; g.num_nodes() as usize];
    for &v in &walks.nodes {
        visits[v as usize] += 1;
    }
    visits.sort_unstable_by(|a, b| b.cmp(a));
    m.unvisited = visits.iter().filter(|&&c| c == 0).count() as f64 / nodes;
    let most = (visits.len() / 100).max(1);
    m.top = visits[..most].iter().map(|&c| f64::from(c)).sum::<f64>() / walks.nodes.len() as f64;
    m
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().unwrap_or_else(|| "../shared/kg".into());
    let size: usize = args.next().unwrap_or_else(|| "1000".into()).parse()?;
    let seed: u64 = args.next().unwrap_or_else(|| "6".into()).parse()?;
    println!(
        "| graph | entities by | degree | triples per entity | relations | degree KS | unvisited | top 1 % | full size | ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut distance = [0.0; METHODS.len()];
    for name in GRAPHS {
        let (graph, _) = load(&Path::new(&folder).join(name).join("train.txt"), &LoadOptions::default())?;
        let g = graph.topology();
        let whole = measure(g, Key { seed: 5, pass: 0, update: 0, query: 0 });
        println!(
            "| {name} | whole graph ({} entities) | {:.1} | {:.1} | {} | 0 | {:.2} | {:.2} | | |",
            g.num_nodes(),
            whole.degree,
            whole.triples,
            whole.relations,
            whole.unvisited,
            whole.top
        );
        for (i, (method, choose)) in METHODS.iter().enumerate() {
            let mut m = Measures { cumulative: vec![0.0; 128], ..Measures::default() };
            let (mut full, mut time) = (0, 0.0);
            for piece in 0..PIECES {
                let key = Key { seed, pass: 0, update: 0, query: piece };
                let mut stream = key.stream(1);
                let anchor = g.triple(stream.below(g.num_triples() as u64) as u32);
                let begin = Instant::now();
                let nodes = choose(g, anchor, size, &mut stream);
                let sub = Subgraph::induced(g, &nodes)?;
                time += begin.elapsed().as_secs_f64() * 1e3;
                full += u32::from(nodes.len() == size);
                let one = measure(&sub.topology, key);
                m.degree += one.degree / PIECES as f64;
                m.triples += one.triples / PIECES as f64;
                m.relations += one.relations / PIECES as f64;
                m.unvisited += one.unvisited / PIECES as f64;
                m.top += one.top / PIECES as f64;
                for (sum, x) in m.cumulative.iter_mut().zip(&one.cumulative) {
                    *sum += x / PIECES as f64;
                }
            }
            let ks = m.cumulative.iter().zip(&whole.cumulative).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            distance[i] += ks + (m.degree / whole.degree).ln().abs() + (m.unvisited - whole.unvisited).abs();
            println!(
                "| | {method} | {:.1} | {:.1} | {:.0} ({:.0} %) | {ks:.2} | {:.2} | {:.2} | {:.0} % | {:.2} |",
                m.degree,
                m.triples,
                m.relations,
                100.0 * m.relations / whole.relations,
                m.unvisited,
                m.top,
                100.0 * f64::from(full) / PIECES as f64,
                time / PIECES as f64
            );
        }
    }
    println!();
    for ((method, _), d) in METHODS.iter().zip(distance) {
        println!("{method}: {d:.2}");
    }
    Ok(())
}
