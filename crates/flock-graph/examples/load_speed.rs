//! Measures how fast graphs load and how much memory they take, next to `cat` and `wc -l` on the
//! same file in the same run.
//!
//! `cargo run --release -p flock-graph --example load_speed [millions of triples]`
//!
//! The graph is synthetic: one entity per five triples, named as in a dump of Wikidata, and 200
//! relations. Every file is written just before it is read, so that it comes from the page cache.
//! The best of three runs is printed. On a busy machine the processor time of this process (on
//! Linux only) says more than the elapsed time.

use flock_graph::{Graph, LoadOptions, Names, load};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions: f64 = std::env::args().nth(1).map_or(Ok(1.0), |a| a.parse())?;
    let triples = (millions * 1e6) as u64;
    let directory = std::env::temp_dir().join(format!("flock-load-speed-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let result = measure(&directory, triples);
    fs::remove_dir_all(&directory)?;
    result
}

fn measure(directory: &Path, triples: u64) -> Result<(), Box<dyn std::error::Error>> {
    println!("{:24} {:>7} {:>9} {:>9}", "", "MB", "seconds", "processor");
    let (mut in_memory, mut peak) = (None, None);
    for extension in ["tsv", "csv", "nt", "ttl", "rdf"] {
        let path = directory.join(format!("graph.{extension}"));
        write(&path, extension, triples)?;
        if extension == "tsv" {
            for command in [&["cat"][..], &["wc", "-l"]] {
                let seconds = best(|| run(command, &path))?;
                print(&command.join(" "), &path, (seconds.0, f64::NAN))?;
            }
        }
        let seconds = best(|| load_once(&path))?;
        print(&format!("load .{extension}"), &path, seconds)?;
        // The first load is the first step that takes memory.
        peak = peak.or_else(peak_kib);
        if matches!(extension, "tsv" | "nt") {
            let mut lines = 0;
            let seconds = best(|| {
                lines = fs::read(&path)?.split(|&b| b == b'\n').count();
                Ok(())
            })?;
            print(&format!("split .{extension} into lines"), &path, seconds)?;
            assert!(lines as u64 > triples);
        }
        if extension == "tsv" {
            in_memory = Some(load(&path, &LoadOptions::default())?.0);
            for (command, suffix) in [("gzip", "gz"), ("zstd", "zst")] {
                let packed = directory.join(format!("graph.tsv.{suffix}"));
                if pack(command, &path, &packed).is_ok() {
                    let seconds = best(|| load_once(&packed))?;
                    print(&format!("load .tsv.{suffix}"), &path, seconds)?;
                }
            }
        }
        fs::remove_file(&path)?;
    }
    if let Some(graph) = in_memory {
        memory(&graph);
        if let Some(kib) = peak {
            println!("at most, while loading .tsv: {:.1} bytes per triple", (kib << 10) as f64 / triples as f64);
        }
        suggestions(&graph)?;
    }
    Ok(())
}

fn load_once(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    load(path, &LoadOptions::default())?;
    Ok(())
}

fn memory(graph: &Graph) {
    let triples = graph.topology().num_triples();
    let per_triple = |bytes: usize| bytes as f64 / triples as f64;
    let names = |n: &Names| n.memory_bytes();
    println!("\n{triples} distinct triples, {} entities", graph.entities().len());
    println!("index        {:6.1} bytes per triple", per_triple(graph.topology().memory_bytes()));
    let both = names(graph.entities()) + names(graph.relations());
    let text: usize = graph.entities().iter().map(str::len).sum();
    println!("names        {:6.1} bytes per triple", per_triple(both));
    let entities = graph.entities().len() as f64;
    println!(
        "             {:6.1} bytes per entity, of which its own text {:.1}",
        names(graph.entities()) as f64 / entities,
        text as f64 / entities
    );
    println!("in all       {:6.1} bytes per triple", per_triple(graph.memory_bytes()));
}

fn suggestions(graph: &Graph) -> Result<(), Box<dyn std::error::Error>> {
    let name = graph.entities().get(7).replace("entity", "enttiy");
    let mut near = String::new();
    let (_, seconds) = best(|| {
        near = graph.parse_entity(&name).map_or_else(|e| e.to_string(), |_| String::new());
        Ok(())
    })?;
    let count = graph.entities().len();
    println!("\nnear names among {count}: {seconds:.3} s: {near}");
    let mut names = Names::new();
    for i in 0..1_000_000u64 {
        names.intern(&format!("http://www.wikidata.org/entity/{}", word(mix(i))));
    }
    let wanted = word(mix(77)).replacen('o', "oo", 1);
    let mut found = Vec::new();
    let (_, seconds) = best(|| {
        found = names.suggest(&wanted, 3);
        Ok(())
    })?;
    println!("near names among {}: {seconds:.3} s: {wanted:?} -> {found:?}", names.len());
    Ok(())
}

/// Makes up a word of four to seven syllables.
fn word(mut random: u64) -> String {
    let mut word = String::new();
    for _ in 0..4 + random % 4 {
        random = mix(random);
        word.push(b"bdfgklmnprstvz"[(random % 14) as usize] as char);
        word.push(b"aeiou"[(random >> 32) as usize % 5] as char);
    }
    word
}

fn mix(x: u64) -> u64 {
    let x = (x.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

fn write(path: &Path, extension: &str, triples: u64) -> io::Result<()> {
    const PEOPLE: &str = "http://www.wikidata.org/entity/";
    const LINKS: &str = "http://www.wikidata.org/prop/direct/";
    let mut out = BufWriter::new(File::create(path)?);
    match extension {
        "ttl" => writeln!(out, "@prefix wd: <{PEOPLE}> .\n@prefix wdt: <{LINKS}> .")?,
        "rdf" => {
            writeln!(out, "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:wdt=\"{LINKS}\">")?
        }
        _ => {}
    }
    let entities = (triples / 5).max(2);
    for i in 0..triples {
        let random = mix(i);
        let (h, t) = (mix(random) % entities, mix(random + 1) % entities);
        let r = random % 200;
        match extension {
            "nt" => writeln!(out, "<{PEOPLE}Q{h}> <{LINKS}P{r}> <{PEOPLE}Q{t}> .")?,
            "ttl" => writeln!(out, "wd:Q{h} wdt:P{r} wd:Q{t} .")?,
            "rdf" => writeln!(
                out,
                "<rdf:Description rdf:about=\"{PEOPLE}Q{h}\"><wdt:P{r} rdf:resource=\"{PEOPLE}Q{t}\"/></rdf:Description>"
            )?,
            "csv" => writeln!(out, "entity {h},relation {r},entity {t}")?,
            _ => writeln!(out, "entity {h}\trelation {r}\tentity {t}")?,
        }
    }
    if extension == "rdf" {
        writeln!(out, "</rdf:RDF>")?;
    }
    out.flush()
}

fn run(command: &[&str], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut child = Command::new(command[0]);
    let status = child.args(&command[1..]).arg(path).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed").into()) }
}

fn pack(command: &str, from: &Path, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut child = Command::new(command);
    let status = child.arg("-c").arg(from).stdout(File::create(to)?).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command} failed").into()) }
}

/// Returns the least elapsed time and the least processor time of this thread, of three runs, in
/// seconds.
fn best(
    mut work: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        let (start, cpu) = (Instant::now(), processor());
        work()?;
        best.0 = best.0.min(start.elapsed().as_secs_f64());
        best.1 = best.1.min(processor() - cpu);
    }
    Ok(best)
}

/// Returns the processor time of this thread in seconds, or NaN where the system does not report
/// it.
fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stat.and_then(|s| s.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |n| n / 1e9)
}

fn print(what: &str, path: &Path, (seconds, cpu): (f64, f64)) -> io::Result<()> {
    let megabytes = fs::metadata(path)?.len() as f64 / 1e6;
    println!("{what:24} {megabytes:7.1} {seconds:9.3} {cpu:9.3}");
    Ok(())
}

/// Returns the peak memory of this process in KiB, where the system reports it.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
