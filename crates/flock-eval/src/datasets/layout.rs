//! The layout and the protocol of a dataset: which file is walked, what counts as known, which
//! sides are asked for.
//!
//! | kind | walked for valid | for test | known at valid | known at test |
//! |---|---|---|---|---|
//! | transductive | train | train | train, valid, test | train, valid, test |
//! | validated on the inference graph (ILPC, InGram) | inference | inference | inference, valid, test | inference, valid, test |
//! | validated on the training graph (GraIL, HM, MTDEA) | train | inference | train, valid | inference, test |

use std::fmt;

use serde::{Deserialize, Serialize};

/// A file of the layout: `train.txt`, `inference.txt`, `valid.txt` or `test.txt`. In a dataset of one's own it may end in `.tsv` or
/// `.csv` instead.
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
    /// All of them.
    pub const ALL: [Part; 4] = [Part::Train, Part::Inference, Part::Valid, Part::Test];

    /// The endings that a file may have, the published one first.
    pub const ENDINGS: [&'static str; 3] = ["txt", "tsv", "csv"];

    /// Returns the name of the file.
    pub fn file(self) -> String {
        format!("{self}.txt")
    }

    /// Returns the names that the file may have.
    pub fn names(self) -> [String; 3] {
        Part::ENDINGS.map(|ending| format!("{self}.{ending}"))
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
    /// Returns the file with the triples to predict.
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

/// How a dataset is evaluated: which graph is walked, what is known, what is asked.
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
    /// Whether heads are asked for too.
    pub heads: bool,
}

impl Protocol {
    /// Returns the published protocol for graphs of this kind.
    pub fn published(kind: SplitKind, valid_graph: Part, heads: bool) -> Protocol {
        use Part::{Inference, Test, Train, Valid};
        let (valid, test) = match (kind, valid_graph) {
            (SplitKind::Transductive, _) => (vec![Train, Valid, Test], vec![Train, Valid, Test]),
            (_, Inference) => (vec![Inference, Valid, Test], vec![Inference, Valid, Test]),
            _ => (vec![Train, Valid], vec![Inference, Test]),
        };
        Protocol { kind, valid_graph, valid_filter: valid, test_filter: test, heads }
    }

    /// Returns the graph that is walked.
    pub fn walked(&self, split: Split) -> Part {
        match (split, self.kind) {
            (Split::Valid, _) => self.valid_graph,
            (Split::Test, SplitKind::Transductive) => Part::Train,
            (Split::Test, _) => Part::Inference,
        }
    }

    /// Returns the files whose triples are known.
    pub fn filter(&self, split: Split) -> &[Part] {
        match split {
            Split::Valid => &self.valid_filter,
            Split::Test => &self.test_filter,
        }
    }

    /// Returns whether the test graph has all relations of the training graph (GraIL, HM), used
    /// there or not.
    pub fn shares_relations(&self) -> bool {
        self.kind != SplitKind::InductiveEr && self.valid_graph == Part::Train
    }

    /// Returns whether validation triples with a name that the training graph lacks are dropped
    /// (MTDEA).
    pub fn drops_unknown(&self, split: Split) -> bool {
        split == Split::Valid && self.kind == SplitKind::InductiveEr && self.valid_graph == Part::Train
    }
}
