//! `meta.json`: what a dataset directory states about itself.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::error::DatasetError;
use super::layout::{Part, Protocol, SplitKind};

/// The content of `meta.json`. What it leaves out is as in a transductive dataset.
#[derive(Debug, Deserialize)]
struct MetaFile {
    #[serde(default)]
    name: String,
    split: Option<SplitKind>,
    valid_graph: Option<Part>,
    filter: Option<MetaFilter>,
    #[serde(default)]
    entity_task: String,
    #[serde(default)]
    sha256: BTreeMap<Part, String>,
}

/// The files whose triples are known.
#[derive(Debug, Deserialize)]
struct MetaFilter {
    valid: Vec<Part>,
    #[serde(default)]
    test: Vec<Part>,
}

/// Name, protocol and checksums of a dataset directory.
pub(super) struct DirectoryMeta {
    pub name: String,
    pub protocol: Protocol,
    pub sha256: BTreeMap<Part, String>,
}

/// Reads `meta.json`. Returns `None` if there is no such file.
pub(super) fn read(dir: &Path) -> Result<Option<DirectoryMeta>, DatasetError> {
    let path = dir.join("meta.json");
    let file = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(DatasetError::Meta { file, reason: e.to_string() }),
    };
    let meta: MetaFile = serde_json::from_str(&text).map_err(|e| DatasetError::Meta { file, reason: e.to_string() })?;
    let kind = meta.split.unwrap_or(SplitKind::Transductive);
    let published = Protocol::published(kind, meta.valid_graph.unwrap_or(Part::Train), meta.entity_task != "t");
    let protocol = match meta.filter {
        None => published,
        Some(MetaFilter { valid, test }) => {
            let test = if test.is_empty() { published.test_filter.clone() } else { test };
            Protocol { valid_filter: valid, test_filter: test, ..published }
        }
    };
    Ok(Some(DirectoryMeta { name: meta.name, protocol, sha256: meta.sha256 }))
}
