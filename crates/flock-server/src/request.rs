//! What clients send. Unknown fields are refused: a misspelled option should not be ignored in silence.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::{IntoParams, ToSchema};

use crate::problem::Problem;

/// Questions and how to ask them.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictRequest {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
    /// One question: head, relation and tail, one of them `?`.
    #[schema(example = json!(["Portugal", "borders", "?"]))]
    pub query: Option<[String; 3]>,
    /// Several questions instead; each fails or is answered on its own.
    pub queries: Option<Vec<[String; 3]>>,
    /// Answers to list, 10 if left out; 0 for all that a walk reached. At most 100000 in all replies of a request, 1000 in a
    /// stream, 100 with reasons.
    pub top: Option<usize>,
    /// Leave out answers that the graph already has.
    #[serde(default)]
    pub novel: bool,
    /// The only candidates, by name; all of them are ranked.
    pub among: Option<Vec<String>>,
    /// Base walk count n; by the size of the graph if left out.
    pub walks: Option<u32>,
    /// Passes with fresh walks: 1 if left out, 16 in a stream. With a budget the most.
    pub passes: Option<u32>,
    /// Seed of the walks.
    #[serde(default)]
    pub seed: u64,
    /// Add passes until so many milliseconds are up or the answers stop changing places.
    pub budget_ms: Option<u64>,
    /// Give a reason for each answer.
    #[serde(default)]
    pub explain: bool,
}

/// An answer to explain.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
    /// Head, relation and tail.
    #[schema(example = json!(["Portugal", "borders", "Spain"]))]
    pub triple: [String; 3],
    /// Which of the three is the answer; the tail if left out.
    #[serde(default)]
    pub blank: BlankName,
    /// Reasons to list, 5 if left out.
    pub top: Option<usize>,
    /// Base walk count n; by the size of the graph if left out.
    pub walks: Option<u32>,
    /// Passes, 4 if left out.
    pub passes: Option<u32>,
    /// Seed of the walks.
    #[serde(default)]
    pub seed: u64,
    /// Check by deletion as well, which takes several times longer.
    #[serde(default)]
    pub check: bool,
}

/// One of the three places of a triple.
#[derive(Copy, Clone, Debug, Default, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BlankName {
    /// The head.
    Head,
    /// The relation.
    Relation,
    /// The tail.
    #[default]
    Tail,
}

/// Triples to add and to remove, all or none.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriplesRequest {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
    /// Triples the graph has afterwards. Names may be new.
    #[serde(default)]
    #[schema(example = json!([["Portugal", "borders", "Atlantis"]]))]
    pub add: Vec<[String; 3]>,
    /// Triples the graph does not have afterwards.
    #[serde(default)]
    pub remove: Vec<[String; 3]>,
}

/// A text to complete.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct NamesQuery {
    /// The beginning of a name, or something like one.
    #[serde(default)]
    pub q: String,
    /// How many names, 10 if left out.
    pub k: Option<usize>,
    /// A graph that was uploaded.
    pub graph: Option<String>,
}

/// An entity to look around.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct NeighbourhoodQuery {
    /// The entity.
    pub entity: String,
    /// A second one.
    pub other: Option<String>,
    /// The most entities, 60 if left out.
    pub limit: Option<usize>,
    /// A graph that was uploaded.
    pub graph: Option<String>,
}

/// A graph to ask about.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct GraphQuery {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
}

/// The name of an uploaded graph.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UploadQuery {
    /// What to call it; it is shown, and tells the format by its ending.
    pub name: Option<String>,
}

/// Reads a body of JSON.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|e| Problem::bad(format!("the body is not what was expected: {e}")))
}

/// A number within limits, or what stands for it when it is left out.
pub fn within<T: PartialOrd + std::fmt::Display + Copy>(
    name: &str,
    value: Option<T>,
    default: T,
    least: T,
    most: T,
) -> Result<T, Problem> {
    match value {
        None => Ok(default),
        Some(v) if v >= least && v <= most => Ok(v),
        Some(v) => Err(Problem::bad(format!("{name} is {v}, expected {least} to {most}"))),
    }
}
