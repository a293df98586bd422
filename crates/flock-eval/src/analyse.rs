//! The paper's analyses that need a checkpoint: MRR against passes and against walks, and ablations that need no retraining.

use serde::Serialize;

use super::metrics::{Counted, Metrics, Placed};
use super::questions::Questions;
use super::{EvalError, batch_size, place, place_all};
use crate::datasets::TestSet;
use flock_model::checkpoint::{Averaging, Checkpoint, Metadata, TensorError};
use flock_model::ensemble::{Ask, Asker, combine};
use flock_model::model::{Model, View};

/// A setting and what it gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Passes, walks, or the name of a variant.
    pub setting: String,
    /// Published tie rule.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Share of answers that a walk reached.
    pub coverage: f64,
}

fn tried(setting: String, questions: &Questions, placed: &[Placed]) -> Tried {
    let counted = Counted::new(questions.items(), placed, 0, |r| r.to_string());
    Tried { setting, metrics: counted.all.pessimistic, coverage: counted.coverage }
}

/// MRR after each of `counts` passes (ascending). The first `p` of many passes are the passes of an ensemble of `p`, so one run
/// with the most passes gives all.
pub fn passes(
    model: &Model,
    set: &TestSet,
    ask: Ask,
    counts: &[u32],
    pool: &rayon::ThreadPool,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Vec<Tried>, EvalError> {
    let questions = Questions::new(model.meta().task, set);
    let ask = Ask { passes: counts.iter().copied().max().unwrap_or(1), ..ask };
    let asker = Asker::new(model, View { topology: set.on.topology(), mask: None }, pool);
    let mut placed: Vec<Vec<Placed>> = vec![Vec::new(); counts.len()];
    let total = questions.queries.len();
    let mut at = 0;
    while at < total {
        let end = total.min(at + batch_size(&ask));
        for (query, passes) in (at..end).zip(asker.ask_passes(&questions.queries[at..end], ask)?) {
            let items = &questions.items()[questions.range(query..query + 1)];
            for (count, placed) in counts.iter().zip(&mut placed) {
                let scores = combine(&passes[..*count as usize]);
                placed.extend(place(set, &questions.queries[query], items, &scores)?);
            }
        }
        at = end;
        if !watch(at, total) {
            return Err(EvalError::Stopped);
        }
    }
    Ok(counts.iter().zip(&placed).map(|(count, placed)| tried(count.to_string(), &questions, placed)).collect())
}

/// MRR of one setting.
pub fn once(
    setting: String,
    model: &Model,
    set: &TestSet,
    ask: Ask,
    pool: &rayon::ThreadPool,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Tried, EvalError> {
    let questions = Questions::new(model.meta().task, set);
    let total = questions.queries.len();
    let mut placed = Vec::new();
    place_all(model, set, &questions, ask, pool, 0, |done, places| {
        placed.extend_from_slice(places);
        if watch(done, total) { Ok(()) } else { Err(EvalError::Stopped) }
    })?;
    Ok(tried(setting, &questions, &placed))
}

/// A change to a trained model that needs no retraining.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The model as it is.
    Full,
    /// Walks may step straight back.
    Backtracking,
    /// All walks start at the query.
    StartsAtQuery,
    /// Balanced walks start on edges of the query's relation (the paper's appendix), or of all if the model's start there.
    OtherBalance,
    /// Plain averages instead of softmax-weighted ones.
    MeanConsensus,
    /// Half the walk length.
    HalfLength,
}

impl Variant {
    /// All, the model as it is first.
    pub const ALL: [Variant; 6] = [
        Variant::Full,
        Variant::Backtracking,
        Variant::StartsAtQuery,
        Variant::OtherBalance,
        Variant::MeanConsensus,
        Variant::HalfLength,
    ];

    /// What the paper's table calls it, and that its weights are those of the full model: the paper retrained each.
    pub fn name(self, meta: &Metadata) -> String {
        let length = meta.length;
        let part = match self {
            Variant::Full => return format!("Flock (ℓ = {length})"),
            Variant::Backtracking => "w/o non-backtracking".to_string(),
            Variant::StartsAtQuery => "w/o diverse starts".to_string(),
            Variant::OtherBalance if meta.balanced_on_query_relation => "balanced on all relations".to_string(),
            Variant::OtherBalance => "balanced on query relation".to_string(),
            Variant::MeanConsensus => "w/o weighted consensus".to_string(),
            Variant::HalfLength => format!("ℓ = {}", length / 2),
        };
        format!("{part} (not retrained)")
    }

    /// The checkpoint of the variant, and how it is asked.
    pub fn of(self, checkpoint: &Checkpoint, mut ask: Ask) -> Result<(Checkpoint, Ask), TensorError> {
        match self {
            Variant::Full => {}
            Variant::Backtracking => ask.options.backtrack = true,
            Variant::StartsAtQuery => ask.options.all_at_query = true,
            Variant::OtherBalance => ask.options.balanced_on_query_relation ^= true,
            Variant::MeanConsensus => return Ok((unweighted(checkpoint)?, ask)),
            Variant::HalfLength => {
                let length = checkpoint.meta().length / 2;
                ask.options.length = length;
                return Ok((shortened(checkpoint, length)?, ask));
            }
        }
        Ok((Checkpoint::new(checkpoint.weights.clone())?, ask))
    }
}

/// The same model with plain averages.
pub fn unweighted(checkpoint: &Checkpoint) -> Result<Checkpoint, TensorError> {
    let mut weights = checkpoint.weights.clone();
    weights.meta.consensus = Averaging::Mean;
    Checkpoint::new(weights)
}

/// The same model for shorter walks; see [`Weights::shortened`](flock_model::Weights::shortened).
pub fn shortened(checkpoint: &Checkpoint, length: usize) -> Result<Checkpoint, TensorError> {
    Checkpoint::new(checkpoint.weights.shortened(length)?)
}
