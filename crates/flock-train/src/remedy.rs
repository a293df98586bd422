//! What to do about an error in a training run.

use std::fmt;

use flock_eval::EvalRemedy;

/// What to do about an error in a training run. `Display` says it in words that fit any caller; a
/// command may name its own flags instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrainRemedy {
    /// Do this about the dataset or the validation.
    Eval(EvalRemedy),
    /// Lower the learning rate, or clip the gradient.
    LowerRate,
    /// Give the number of steps too, or use a constant rate.
    GiveSteps,
    /// Use the same value to resume the run, or another directory.
    SameValue,
    /// Use the same graphs to resume the run, or another directory.
    SameGraphs,
    /// Start a new run in the directory instead of resuming one.
    StartNew,
    /// Use another directory.
    OtherDirectory,
    /// Use a directory that is new or empty.
    NewDirectory,
    /// Wait for the other run, or use another directory.
    Wait,
    /// Remove the state to start over.
    RemoveState,
    /// Resume with the same graphs.
    ResumeSameGraphs,
    /// Replace the damaged file that the data state comes from.
    ReplaceDamaged,
}

impl fmt::Display for TrainRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrainRemedy::Eval(remedy) => return remedy.fmt(f),
            TrainRemedy::LowerRate => "a lower optimiser.rate, or optimiser.clip = 1",
            TrainRemedy::GiveSteps => "a number of steps too, or optimiser.schedule = \"constant\"",
            TrainRemedy::SameValue => "the same value to go on with it, or another directory",
            TrainRemedy::SameGraphs => "the same graphs, or another directory",
            TrainRemedy::StartNew => "start a new run there",
            TrainRemedy::OtherDirectory => "another directory",
            TrainRemedy::NewDirectory => "another directory, or remove what is there",
            TrainRemedy::Wait => "wait for it, or another directory",
            TrainRemedy::RemoveState => "remove it to start anew",
            TrainRemedy::ResumeSameGraphs => "resume with the same graphs",
            TrainRemedy::ReplaceDamaged => "the file it comes from is damaged",
        })
    }
}
