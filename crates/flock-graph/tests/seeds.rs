//! The seeds of the fuzz targets, run without a fuzzer.

#[path = "../../../fuzz/targets/delimited.rs"]
mod delimited;
#[path = "../../../fuzz/targets/graphml.rs"]
mod graphml;
#[path = "../../../fuzz/targets/json.rs"]
mod json;
#[path = "../../../fuzz/targets/names.rs"]
mod names;
#[path = "../../../fuzz/targets/obo.rs"]
mod obo;
#[path = "../../../fuzz/targets/packed.rs"]
mod packed;
#[path = "../../../fuzz/targets/quads.rs"]
mod quads;
#[path = "../../../fuzz/targets/rdf.rs"]
mod rdf;

use std::path::Path;

/// Runs a target on each of its seeds, whole and cut short. Each cut seed is one more input.
fn each(target: &str, run: fn(&[u8])) {
    let seeds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds")).join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&seeds).unwrap() {
        let seed = std::fs::read(entry.unwrap().path()).unwrap();
        run(&seed);
        let step = seed.len().div_ceil(100).max(1);
        (0..seed.len()).step_by(step).for_each(|len| run(&seed[..len]));
        count += 1;
    }
    assert!(count >= 3, "{} has {count} seeds", seeds.display());
}

#[test]
fn seeds_of_delimited() {
    each("delimited", delimited::run);
}

#[test]
fn seeds_of_json() {
    each("json", json::run);
}

#[test]
fn seeds_of_names() {
    each("names", names::run);
}

#[test]
fn seeds_of_rdf() {
    each("rdf", rdf::run);
}

#[test]
fn seeds_of_quads() {
    each("quads", quads::run);
}

#[test]
fn seeds_of_obo() {
    each("obo", obo::run);
}

#[test]
fn seeds_of_graphml() {
    each("graphml", graphml::run);
}

#[test]
fn seeds_of_packed() {
    each("packed", packed::run);
}
