//! What to do about an error in an evaluation.

use std::fmt;

use crate::datasets::DatasetRemedy;

/// What to do about an error in an evaluation. `Display` says it in words that fit any caller; a
/// command may name its own flags instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvalRemedy {
    /// Do this about the dataset.
    Dataset(DatasetRemedy),
    /// Write the results to another file.
    OtherFile,
    /// Write the results to another file, or overwrite this one.
    OtherFileOrOverwrite,
    /// Start over, without what the killed run left.
    StartOver,
    /// Use the same options to resume, start over, or write to another file.
    SameOptions,
    /// Use a graph with more triples about each name.
    LargerGraph,
}

impl fmt::Display for EvalRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalRemedy::Dataset(remedy) => remedy.fmt(f),
            EvalRemedy::OtherFile => f.write_str("write to another file"),
            EvalRemedy::OtherFileOrOverwrite => f.write_str("write to another file, or overwrite this one"),
            EvalRemedy::StartOver => f.write_str("start over"),
            EvalRemedy::SameOptions => {
                f.write_str("use the same options to resume it, start over, or write to another file")
            }
            EvalRemedy::LargerGraph => f.write_str("use a graph with more triples about each entity"),
        }
    }
}
