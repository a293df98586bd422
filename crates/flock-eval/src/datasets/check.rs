//! Compares a dataset directory with the registry: files, counts, checksums, protocol.

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
    if found.iter().any(|line| line.contains("os error")) {
        return Ok(found);
    }
    let [v, r, e] = entry.train;
    let [entities, relations, triples] = train_counts(dataset)?;
    check_count(&mut found, "train.txt: entities", entities, v);
    check_count(&mut found, "train.txt: relations", relations, r);
    check_count(&mut found, "train.txt: triples", triples, e);
    for split in [Split::Valid, Split::Test] {
        found.extend(of_set(dataset, split, &dataset.test_set(split)?));
    }
    // The training graph may also be the one walked for validation.
    found.dedup();
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

/// Counts what was loaded for a split, as the paper's tables count it.
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
    check_count(&mut found, &format!("{split} candidates: entities"), have.entities, entities);
    check_count(&mut found, &format!("{split} candidates: relations"), have.relations, relations);
    check_count(&mut found, &format!("{walked}.txt: triples"), have.triples, triples);
    check_count(&mut found, &format!("{split}.txt: triples"), have.predicted, predicted);
    found
}

fn check_count(found: &mut Vec<String>, what: &str, have: u64, want: u64) {
    if want != 0 && have != want {
        found.push(format!("{what} {have}, expected {want}"));
    }
}
