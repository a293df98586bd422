//! What replies say about the calibration behind their probabilities.

use serde::Serialize;

use super::{Calibration, DefaultCalibration};

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

/// What makes a reply's probabilities where the graph has no calibration of its own: a map that the model carries, fitted to
/// other graphs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DefaultCalibrationSummary {
    /// Mean expected calibration error of σ(logit), over the graphs.
    pub error_before: f64,
    /// The same of the map, on each graph with a map fitted to the others: what to expect on a new graph.
    pub error_after: f64,
    /// How many graphs it was fitted to.
    pub graphs: usize,
    /// Passes it was fitted with.
    pub passes: u32,
}

impl From<&DefaultCalibration> for DefaultCalibrationSummary {
    fn from(by: &DefaultCalibration) -> DefaultCalibrationSummary {
        let DefaultCalibration { error_before, error_after, passes, .. } = *by;
        DefaultCalibrationSummary { error_before, error_after, graphs: by.graphs.len(), passes }
    }
}
