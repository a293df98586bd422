//! What replies say about the calibration behind their probabilities.

use serde::Serialize;

use super::Calibration;

/// What makes a reply's probabilities: a map fitted to this graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalibrationSummary {
    /// Expected calibration error of σ(logit), on held-out edges of the graph.
    pub error_before: f64,
    /// The same of the map.
    pub error_after: f64,
    /// Held-out edges asked about.
    pub queries: usize,
}

impl From<&Calibration> for CalibrationSummary {
    fn from(by: &Calibration) -> CalibrationSummary {
        let Calibration { error_before, error_after, queries, .. } = *by;
        CalibrationSummary { error_before, error_after, queries }
    }
}
