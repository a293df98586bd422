//! Every graph of the registry from a mirror with upstream's paths, archives, columns and pieces.
//!
//! The graphs at hand come from their real triples, so checksums agree. The others come from
//! synthetic triples with the registry's counts, all of them in full size.
#![cfg(feature = "fetch")]

mod common;

use std::collections::HashMap;

use common::{Rows, SOURCES, at_hand, quiet, serve_files, source, synthetic, upstream, write_all};
use flock_eval::datasets::fetch::fetch;
use flock_eval::datasets::{Part, RegistryEntry, check, registry};
use rayon::prelude::*;

/// Fetches from a directory. Returns what differs.
fn from_directory(entry: &RegistryEntry, rows: &Rows, accept: bool) -> Vec<String> {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_all(from.path(), &upstream(entry.name, rows));
    let source = from.path().to_str().unwrap();
    let differences = fetch(entry, Some(source), to.path(), accept, &mut quiet).unwrap_or_else(|e| panic!("{e}"));
    for (part, rows) in rows {
        let made = std::fs::read_to_string(to.path().join(entry.name).join(part.file())).unwrap();
        assert_eq!(made.lines().count(), rows.len(), "{} {part}", entry.name);
        assert_eq!(made.lines().next().unwrap(), rows[0].join("\t"), "{} {part}", entry.name);
        assert_eq!(made.lines().last().unwrap(), rows[rows.len() - 1].join("\t"), "{} {part}", entry.name);
    }
    assert!(!to.path().join(".fetch").exists());
    differences
}

/// A row or two in each file.
fn tiny(name: &str) -> Rows {
    let row = |part: Part, i: u32| [format!("{part}-h{i}"), "r".to_string(), format!("{part}-t{i}")];
    source(name).0.files.iter().map(|(part, _)| (*part, vec![row(*part, 1), row(*part, 2)])).collect()
}

#[test]
fn the_registry_has_the_addresses_of_upstream() {
    let names: Vec<&str> = SOURCES.iter().flat_map(|s| s.graphs).map(|(name, _)| *name).collect();
    assert_eq!(names, registry::entries().iter().map(|e| e.name).collect::<Vec<_>>());
    for entry in registry::entries() {
        let (source, _) = source(entry.name);
        assert_eq!((entry.collection.url.as_str(), entry.collection.columns), (source.address, source.columns));
    }
}

#[test]
fn every_graph_comes_from_a_mirror_of_upstream() {
    let skipped: Vec<&str> = registry::entries()
        .par_iter()
        .filter_map(|entry| {
            let rows = if entry.sha256.is_some() { at_hand(entry.name) } else { Some(synthetic(entry)) };
            let Some(rows) = rows else { return Some(entry.name) };
            assert_eq!(from_directory(entry, &rows, false), Vec::<String>::new(), "{}", entry.name);
            None
        })
        .collect();
    if !skipped.is_empty() {
        eprintln!("skipped: ../shared not found for {}", skipped.join(", "));
    }
}

#[test]
fn every_kind_of_file_comes_over_http() {
    // Plain files, plain files of another column order, a tar.gz, a zip, query strings.
    for name in ["NLIngram_25", "NELL23k", "FB15k237", "AristoV4", "Hetionet"] {
        let entry = registry::get(name).unwrap();
        // Only NLIngram_25 and NELL23k in full.
        let whole = name.starts_with('N');
        let rows = if whole { synthetic(entry) } else { tiny(name) };
        let url = serve_files(upstream(name, &rows));
        let dir = tempfile::tempdir().unwrap();
        let differences = fetch(entry, Some(&url), dir.path(), !whole, &mut quiet).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(differences.is_empty(), whole, "{differences:?}");
        for (part, rows) in &rows {
            let text: String = rows.iter().map(|row| row.join("\t") + "\n").collect();
            assert_eq!(
                std::fs::read_to_string(dir.path().join(name).join(part.file())).unwrap(),
                text,
                "{name} {part}"
            );
        }
    }
}

#[test]
fn either_way_of_counting_will_do() {
    // Aristo-v4 has 27 rows twice. The paper counts 242,567 triples.
    let entry = registry::get("AristoV4").unwrap();
    let mut rows = synthetic(entry);
    let train = rows.get_mut(&Part::Train).unwrap();
    assert_eq!(train.len(), 242_567);
    train.extend_from_within(..27);
    assert_eq!(from_directory(entry, &rows, false), Vec::<String>::new());
    // Validation triples with an entity that the training graph lacks are dropped.
    let entry = registry::get("WikiTopicsMT3_art").unwrap();
    let mut rows = synthetic(entry);
    rows.get_mut(&Part::Valid).unwrap().extend((0..3).map(|i| ["e0".into(), "r0".into(), format!("unknown{i}")]));
    assert_eq!(from_directory(entry, &rows, false), Vec::<String>::new());
    // Neither way of counting gives the published number.
    rows.get_mut(&Part::Valid).unwrap().pop();
    rows.get_mut(&Part::Valid).unwrap().swap_remove(0);
    let differences = from_directory(entry, &rows, true);
    assert_eq!(differences, ["valid.txt: triples 3027, expected 3026"]);
}

#[test]
fn a_fetched_dataset_is_as_published_when_it_is_checked_again() {
    let entry = registry::get("NELLInductive_v1").unwrap();
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files: HashMap<_, _> = upstream(entry.name, &synthetic(entry));
    write_all(from.path(), &files);
    fetch(entry, from.path().to_str(), to.path(), false, &mut quiet).unwrap();
    let dataset = flock_eval::datasets::Dataset::find(to.path(), entry.name).unwrap();
    assert_eq!(check::differences(&dataset).unwrap(), Vec::<String>::new());
}
