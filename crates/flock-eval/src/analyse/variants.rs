//! Variants of a trained model that need no retraining: ablations.

use flock_model::checkpoint::{Averaging, Checkpoint, Metadata, TensorError};
use flock_model::ensemble::Ask;

/// A change to a trained model that needs no retraining.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The unchanged model.
    Full,
    /// Lets walks step straight back.
    Backtracking,
    /// Starts all walks at the query.
    StartsAtQuery,
    /// Starts balanced walks on edges of the query's relation (the paper's appendix), or on all
    /// edges if the model starts them there.
    OtherBalance,
    /// Uses plain averages instead of softmax-weighted ones.
    MeanConsensus,
    /// Halves the walk length.
    HalfLength,
}

impl Variant {
    /// All variants, the unchanged model first.
    pub const ALL: [Variant; 6] = [
        Variant::Full,
        Variant::Backtracking,
        Variant::StartsAtQuery,
        Variant::OtherBalance,
        Variant::MeanConsensus,
        Variant::HalfLength,
    ];

    /// Returns the name in the paper's table. It adds `(not retrained)`, because the paper
    /// retrained each variant.
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

    /// Returns the checkpoint of the variant, and how it is asked.
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

/// Returns the same model with plain averages.
pub fn unweighted(checkpoint: &Checkpoint) -> Result<Checkpoint, TensorError> {
    let mut weights = checkpoint.weights.clone();
    weights.meta.consensus = Averaging::Mean;
    Checkpoint::new(weights)
}

/// Returns the same model for shorter walks; see [`Weights::shortened`](flock_model::Weights::shortened).
///
/// # Errors
/// A length that no model has.
pub fn shortened(checkpoint: &Checkpoint, length: usize) -> Result<Checkpoint, TensorError> {
    Checkpoint::new(checkpoint.weights.shortened(length)?)
}
