//! The name of a model, as answers and results carry it.

use std::fmt;

use serde::Serialize;

use crate::metadata::Task;

/// The model behind an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelName {
    /// What it predicts.
    pub task: Task,
    /// Where it comes from: a file, or `bundled`.
    pub origin: String,
    /// SHA-256 of the checkpoint, in hex.
    pub sha256: String,
    /// `f32` or `bf16`.
    pub precision: String,
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} model {} ({})", self.task, self.origin, self.sha256.get(..12).unwrap_or(&self.sha256))
    }
}
