//! Compares a dataset directory with the registry: files, counts, checksums, protocol.
//!
//! The paper's tables count rows for most graphs, and distinct triples for others (Aristo-v4 has
//! 242,594 rows, of which 242,567 are distinct). Of MTDEA they may count validation triples after
//! those with unknown names were dropped. Either count will do.

use std::collections::HashSet;

use super::layout::{Part, Split};
use super::registry::Counts;
use super::{Dataset, DatasetError, TestSet};
use flock_model::files::sha256_hex;

/// Lists the differences, a line each. Empty for a dataset that the registry does not have.
pub fn differences(dataset: &Dataset) -> Result<Vec<String>, DatasetError> {
    let Some(entry) = dataset.entry else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for part in entry.collection.files.keys() {
        let path = dataset.file(*part);
        match std::fs::read(&path) {
            Err(e) => found.push(format!("{}: {e}", part.file())),
            Ok(bytes) => {
                if let Some(want) = entry.sha256.and_then(|sums| sums.get(part)).or(dataset.sha256.get(part)) {
                    let have = sha256_hex(&bytes);
                    if have != *want {
                        found.push(format!(
                            "{}: SHA-256 {}…, expected {}…",
                            part.file(),
                            &have[..12],
                            want.get(..12).unwrap_or(want)
                        ));
                    }
                }
            }
        }
    }
    if !found.iter().any(|line| line.contains("os error")) {
        found.extend(counts(dataset)?);
    }
    Ok(found)
}

/// Lists the differences in counts and protocol, a line each.
pub fn counts(dataset: &Dataset) -> Result<Vec<String>, DatasetError> {
    let Some(entry) = dataset.entry else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let [entities, relations, triples] = train_counts(dataset)?;
    let [v, r, e] = entry.train;
    check_count(&mut found, "train.txt: entities", [entities; 2], v);
    check_count(&mut found, "train.txt: relations", [relations; 2], r);
    // Where the training graph is walked, its triples are counted with those to predict.
    if dataset.protocol.walked(Split::Valid) != Part::Train {
        check_count(&mut found, "train.txt: triples", [triples; 2], e);
    }
    for split in [Split::Valid, Split::Test] {
        match dataset.test_set(split) {
            Ok(set) => found.extend(of_set(dataset, split, &set)),
            Err(DatasetError::NothingToPredict { .. }) => {
                check_count(&mut found, &format!("{split}.txt: triples"), [0; 2], entry.counts(split).predicted);
            }
            Err(e) => return Err(e),
        }
    }
    // Both splits may be of the same graph.
    let mut seen = HashSet::new();
    found.retain(|line: &String| seen.insert(line.clone()));
    Ok(found)
}

/// Counts entities, relations and triples of the training file.
pub fn train_counts(dataset: &Dataset) -> Result<[u64; 3], DatasetError> {
    let (mut entities, mut relations) = (HashSet::new(), HashSet::new());
    let triples = dataset.for_each(Part::Train, |h, r, t| {
        for name in [h, t] {
            if !entities.contains(name) {
                entities.insert(name.to_string());
            }
        }
        if !relations.contains(r) {
            relations.insert(r.to_string());
        }
    })?;
    Ok([entities.len() as u64, relations.len() as u64, triples])
}

/// Counts what was loaded for a split: rows of the files.
pub fn set_counts(set: &TestSet) -> Counts {
    let topology = set.on.topology();
    Counts {
        entities: u64::from(topology.num_nodes()),
        relations: u64::from(topology.num_relations()),
        triples: set.rows,
        predicted: (set.triples.len() + set.dropped) as u64,
    }
}

/// Lists the differences in what was loaded for a split.
pub fn of_set(dataset: &Dataset, split: Split, set: &TestSet) -> Vec<String> {
    let Some(entry) = dataset.entry else { return Vec::new() };
    let Counts { entities, relations, triples, predicted } = entry.counts(split);
    let mut found = Vec::new();
    if entry.protocol != dataset.protocol {
        let (meta, known) = (&dataset.protocol, &entry.protocol);
        found.push(format!(
            "meta.json: {}, {} graph validated, known at test {:?}, heads {}; expected {}, {}, {:?}, {}",
            meta.kind,
            meta.valid_graph,
            meta.test_filter,
            meta.heads,
            known.kind,
            known.valid_graph,
            known.test_filter,
            known.heads
        ));
    }
    let walked = dataset.protocol.walked(split);
    let have = set_counts(set);
    let (distinct, kept) = (set.on.topology().num_triples() as u64, set.triples.len() as u64);
    let mut check = |what: String, have: [u64; 2], want: u64| check_count(&mut found, &what, have, want);
    check(format!("{split} candidates: entities"), [have.entities; 2], entities);
    check(format!("{split} candidates: relations"), [have.relations; 2], relations);
    check(format!("{walked}.txt: triples"), [have.triples, distinct], triples);
    check(format!("{split}.txt: triples"), [have.predicted, kept], predicted);
    found
}

/// Notes a count that is not as expected in either way of counting. The first way is shown.
fn check_count(found: &mut Vec<String>, what: &str, have: [u64; 2], want: u64) {
    if want != 0 && !have.contains(&want) {
        found.push(format!("{what} {}, expected {want}", have[0]));
    }
}
