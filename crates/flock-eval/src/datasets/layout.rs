//! How a dataset is laid out and evaluated: which file is walked, what counts as known, which sides are asked.
//!
//! | kind | walked for valid | for test | known at valid | known at test |
//! |---|---|---|---|---|
//! | transductive | train | train | train, valid, test | train, valid, test |
//! | validated on the inference graph (ILPC, InGram) | inference | inference | inference, valid, test | inference, valid, test |
//! | validated on the training graph (GraIL, HM, MTDEA) | train | inference | train, valid | inference, test |

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::DatasetError;

/// A file of the layout: `train.txt`, `inference.txt`, `valid.txt` or `test.txt`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The training graph.
    Train,
    /// The test graph, where it is another.
    Inference,
    /// Triples to predict in validation.
    Valid,
    /// Triples to predict in the test.
    Test,
}

impl Part {
    /// Name of the file.
    pub fn file(self) -> String {
        format!("{self}.txt")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Train => "train",
            Part::Inference => "inference",
            Part::Valid => "valid",
            Part::Test => "test",
        })
    }
}

/// The triples to predict.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// `valid.txt`.
    Valid,
    /// `test.txt`.
    Test,
}

impl Split {
    /// The file with the triples to predict.
    pub fn part(self) -> Part {
        match self {
            Split::Valid => Part::Valid,
            Split::Test => Part::Test,
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part().fmt(f)
    }
}

/// What the test graph has that the training graph lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitKind {
    /// Entities and relations.
    InductiveEr,
    /// Entities.
    InductiveE,
    /// Nothing.
    Transductive,
}

impl fmt::Display for SplitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SplitKind::InductiveEr => "inductive_er",
            SplitKind::InductiveE => "inductive_e",
            SplitKind::Transductive => "transductive",
        })
    }
}

/// How a dataset is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// What is new at test time.
    pub kind: SplitKind,
    /// The graph walked for validation.
    pub valid_graph: Part,
    /// Files whose triples are known at validation.
    pub valid_filter: Vec<Part>,
    /// Files whose triples are known at test.
    pub test_filter: Vec<Part>,
    /// Heads are asked for too.
    pub heads: bool,
}

impl Protocol {
    /// As published for graphs of this kind.
    pub fn published(kind: SplitKind, valid_graph: Part, heads: bool) -> Protocol {
        use Part::{Inference, Test, Train, Valid};
        let (valid, test) = match (kind, valid_graph) {
            (SplitKind::Transductive, _) => (vec![Train, Valid, Test], vec![Train, Valid, Test]),
            (_, Inference) => (vec![Inference, Valid, Test], vec![Inference, Valid, Test]),
            _ => (vec![Train, Valid], vec![Inference, Test]),
        };
        Protocol { kind, valid_graph, valid_filter: valid, test_filter: test, heads }
    }

    /// The graph that is walked.
    pub fn walked(&self, split: Split) -> Part {
        match (split, self.kind) {
            (Split::Valid, _) => self.valid_graph,
            (Split::Test, SplitKind::Transductive) => Part::Train,
            (Split::Test, _) => Part::Inference,
        }
    }

    /// Files whose triples are known.
    pub fn filter(&self, split: Split) -> &[Part] {
        match split {
            Split::Valid => &self.valid_filter,
            Split::Test => &self.test_filter,
        }
    }

    /// Whether the test graph's relations are all those of the training graph (GraIL, HM), used there or not.
    pub fn shares_relations(&self) -> bool {
        self.kind != SplitKind::InductiveEr && self.valid_graph == Part::Train
    }

    /// Whether validation triples with a name that the training graph lacks are dropped (MTDEA).
    pub fn drops_unknown(&self, split: Split) -> bool {
        split == Split::Valid && self.kind == SplitKind::InductiveEr && self.valid_graph == Part::Train
    }
}

/// What `meta.json` says; a transductive dataset where it says nothing.
#[derive(Debug, Deserialize)]
struct Meta {
    #[serde(default)]
    name: String,
    split: Option<SplitKind>,
    valid_graph: Option<Part>,
    filter: Option<Filter>,
    #[serde(default)]
    entity_task: String,
    #[serde(default)]
    sha256: BTreeMap<Part, String>,
}

#[derive(Debug, Deserialize)]
struct Filter {
    valid: Vec<Part>,
    #[serde(default)]
    test: Vec<Part>,
}

/// What the `meta.json` of a directory states.
pub(super) struct Said {
    pub name: String,
    pub protocol: Protocol,
    pub sha256: BTreeMap<Part, String>,
}

/// Reads `meta.json`; `None` without such a file.
pub(super) fn read_meta(dir: &Path) -> Result<Option<Said>, DatasetError> {
    let path = dir.join("meta.json");
    let file = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(DatasetError::Meta { file, reason: e.to_string() }),
    };
    let meta: Meta = serde_json::from_str(&text).map_err(|e| DatasetError::Meta { file, reason: e.to_string() })?;
    let kind = meta.split.unwrap_or(SplitKind::Transductive);
    let published = Protocol::published(kind, meta.valid_graph.unwrap_or(Part::Train), meta.entity_task != "t");
    let protocol = match meta.filter {
        None => published,
        Some(Filter { valid, test }) => {
            let test = if test.is_empty() { published.test_filter.clone() } else { test };
            Protocol { valid_filter: valid, test_filter: test, ..published }
        }
    };
    Ok(Some(Said { name: meta.name, protocol, sha256: meta.sha256 }))
}
