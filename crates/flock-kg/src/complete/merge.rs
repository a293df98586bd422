//! One list from the lists of several shards, or of several relations.
//!
//! Each shard has asked for its best links from both ends, so a link has the same numbers wherever it was found. A link that is in
//! several lists counts once: the one with both sides, or else both ends joined.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::records::LinkRecord;
use super::{RankBy, Sides};
use crate::calibrate::sigmoid;
use crate::records::OutputFormat;

/// Why lists cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A file that cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file of another format.
    #[error("{file}: expected a list of links as CSV, TSV or JSON lines, by the ending of the name")]
    Format {
        /// The file.
        file: String,
    },
    /// A row that is no link.
    #[error("{file}:{line}: {what}, expected a row of a list that complete has written")]
    Row {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reads a list of links: `.csv`, `.tsv` or `.jsonl`.
///
/// # Errors
/// A file that cannot be read, or is something else.
pub fn read_links(path: &Path) -> Result<Vec<LinkRecord>, MergeError> {
    let file = path.display().to_string();
    let open = || File::open(path).map_err(|source| MergeError::Io { file: file.clone(), source });
    let row = |line: u64, what: String| MergeError::Row { file: file.clone(), line, what };
    let delimited = |delimiter: u8| {
        let mut reader = csv::ReaderBuilder::new();
        if delimiter == b'\t' {
            reader.quoting(false);
        }
        let mut reader = reader.delimiter(delimiter).from_reader(BufReader::new(open()?));
        let headers = reader.headers().cloned().map_err(|e| row(1, e.to_string()))?;
        let mut links = Vec::new();
        for record in reader.into_records() {
            let mut record = record.map_err(|e| row(e.position().map_or(0, csv::Position::line), e.to_string()))?;
            let line = record.position().map_or(0, csv::Position::line);
            if delimiter == b'\t' {
                record = record.iter().map(crate::records::unescape_tsv).collect();
            }
            links.push(record.deserialize(Some(&headers)).map_err(|e| row(line, e.to_string()))?);
        }
        Ok(links)
    };
    match OutputFormat::of_path(path) {
        Some(OutputFormat::Csv) => delimited(b','),
        Some(OutputFormat::Tsv) => delimited(b'\t'),
        Some(OutputFormat::Jsonl) => {
            let mut links = Vec::new();
            for (line, text) in (1..).zip(BufReader::new(open()?).lines()) {
                let text = text.map_err(|source| MergeError::Io { file: file.clone(), source })?;
                if !text.trim().is_empty() {
                    links.push(serde_json::from_str(&text).map_err(|e| row(line, e.to_string()))?);
                }
            }
            Ok(links)
        }
        _ => Err(MergeError::Format { file }),
    }
}

/// Joins what two lists have from the two ends of a link. Its probability is the mean: the logit's own is not known here.
fn join(kept: &mut LinkRecord, other: LinkRecord) {
    kept.tail_logit = kept.tail_logit.or(other.tail_logit);
    kept.tail_rank = kept.tail_rank.or(other.tail_rank);
    kept.head_logit = kept.head_logit.or(other.head_logit);
    kept.head_rank = kept.head_rank.or(other.head_rank);
    kept.logit = (kept.logit + other.logit) / 2.0;
    kept.score = sigmoid(kept.logit);
    kept.probability = (kept.probability + other.probability) / 2.0;
    kept.specificity = (kept.specificity * other.specificity).sqrt();
    kept.sides = Sides::Both;
    kept.reason = kept.reason.take().or(other.reason);
}

/// The best `top` links of several lists, the best first and ranked anew.
pub fn merge(lists: impl IntoIterator<Item = Vec<LinkRecord>>, by: RankBy, top: usize) -> Vec<LinkRecord> {
    let mut all: HashMap<[String; 3], LinkRecord> = HashMap::new();
    for link in lists.into_iter().flatten() {
        let key = [&link.head, &link.relation, &link.tail].map(String::clone);
        match all.get_mut(&key) {
            Some(kept) if kept.sides == Sides::Both || link.sides == kept.sides => {}
            Some(kept) if link.sides != Sides::Both => join(kept, link),
            _ => _ = all.insert(key, link),
        }
    }
    let mut links: Vec<LinkRecord> = all.into_values().collect();
    let key = |l: &LinkRecord| match by {
        RankBy::Score => l.logit,
        RankBy::Specificity => l.specificity,
    };
    let names = |l: &LinkRecord| [l.relation.clone(), l.head.clone(), l.tail.clone()];
    links.sort_by(|a, b| key(b).total_cmp(&key(a)).then_with(|| names(a).cmp(&names(b))));
    links.truncate(top);
    for (rank, link) in (1..).zip(&mut links) {
        link.rank = rank;
    }
    links
}
