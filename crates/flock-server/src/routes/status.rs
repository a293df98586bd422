//! `GET /api/v1/health`, `/api/v1/info` and `/metrics`: how the server is, what it serves, and what it counts.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use flock_kg::BLANK;
use flock_kg::ModelName;
use flock_kg::graph::{Graph, Triple};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{QueryResult, ReadProblems, SharedApp, query, shown};
use crate::problem::Problem;

/// A graph to ask about.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct GraphQuery {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
}

/// The server lives.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// A model of the server.
#[derive(Serialize, ToSchema)]
pub struct ModelInfo {
    #[serde(flatten)]
    name: ModelName,
    /// Base walk count n on this graph.
    walks: u32,
    /// Whether probabilities are calibrated on this graph.
    calibrated: bool,
}

/// Upper limits on what clients may ask for.
#[derive(Serialize, ToSchema)]
pub struct LimitsInfo {
    /// Questions in a request.
    batch: usize,
    /// Passes of a question.
    passes: u32,
    /// Base walk count of a question.
    walks: u32,
    /// Triples in an edit.
    edits: usize,
    /// Bytes of an uploaded graph, as it comes and unpacked.
    upload_bytes: usize,
    /// Time for an answer.
    deadline_seconds: u64,
}

/// A graph and who answers about it.
#[derive(Serialize, ToSchema)]
pub struct Info {
    /// Version of the server.
    version: &'static str,
    /// Id of an uploaded graph.
    graph: Option<String>,
    /// What the graph is called.
    name: String,
    entities: u32,
    relations: u32,
    triples: usize,
    /// How many entities and relations have a label.
    labels: usize,
    /// Triples that differ from the file.
    edits: usize,
    /// Whether edits are kept on disk.
    kept: bool,
    /// Whether this server takes edits and uploads from where the request came from, perhaps with a token.
    writable: bool,
    /// Whether it wants a token for them.
    token: bool,
    models: Vec<ModelInfo>,
    limits: LimitsInfo,
    /// Questions to begin with.
    examples: Vec<[String; 3]>,
    /// How names of the examples are shown, where that is not the full name: by their label, or IRIs by their prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    shown: BTreeMap<String, String>,
}

/// The server lives.
#[utoipa::path(get, tag = "api", path = "/api/v1/health", security(()), responses(
    (status = 200, description = "The server lives", body = Health)))]
pub async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// The graph, the models and the limits.
#[utoipa::path(get, tag = "api", path = "/api/v1/info", params(GraphQuery), responses(
    (status = 200, description = "The graph, the models and the limits", body = Info), ReadProblems))]
pub async fn info(State(app): SharedApp, q: QueryResult<GraphQuery>, request: Request) -> Result<Json<Info>, Problem> {
    let q = query(q)?;
    let live = app.live(q.graph.as_deref())?;
    let graph = live.graph();
    let topology = graph.topology();
    let models = app.predictor.tasks().into_iter().filter_map(|task| app.predictor.model(task).ok());
    let models = models.map(|m| ModelInfo {
        name: m.name.clone(),
        walks: m.base_walks(&graph),
        calibrated: live.calibrations.of(m.name.task).is_some_and(|c| c.model == m.name.sha256 && c.is_of(topology)),
    });
    let l = &app.limits;
    let examples = examples(&graph);
    Ok(Json(Info {
        version: env!("CARGO_PKG_VERSION"),
        name: live.name.clone(),
        entities: topology.num_nodes(),
        relations: topology.num_relations(),
        triples: topology.num_triples(),
        labels: graph.labels().len(),
        edits: topology.num_edits(),
        kept: q.graph.is_none() && app.kept,
        graph: q.graph,
        writable: app.is_writable(&request),
        token: app.token.is_some(),
        models: models.collect(),
        limits: LimitsInfo {
            batch: l.batch,
            passes: l.passes,
            walks: l.walks,
            edits: l.edits,
            upload_bytes: l.upload,
            deadline_seconds: l.deadline.as_secs(),
        },
        shown: shown(&graph, examples.iter().flatten().map(String::as_str)),
        examples,
    }))
}

/// One question of each kind about triples of the graph.
fn examples(graph: &Graph) -> Vec<[String; 3]> {
    let topology = graph.topology();
    let count = topology.num_triples() as u32;
    if count == 0 {
        return Vec::new();
    }
    let named = |t: Triple| {
        [graph.entities().get(t.head), graph.relations().get(t.relation), graph.entities().get(t.tail)]
            .map(str::to_string)
    };
    let favourite = |head: &str, relation: &str| {
        let (h, r) = (graph.entities().id(head)?, graph.relations().id(relation)?);
        Some(Triple { head: h, relation: r, tail: topology.answers(h, r).next()? })
    };
    // Of the bundled graph; any other gives triples from its beginning, middle and end.
    let first = favourite("Portugal", "borders").unwrap_or_else(|| topology.triple(0));
    let second = favourite("Austria", "capital").unwrap_or_else(|| topology.triple(count / 2));
    let third = favourite("France", "borders").unwrap_or_else(|| topology.triple(count - 1));
    [(first, 2), (second, 0), (third, 1)]
        .map(|(t, blank)| {
            let mut names = named(t);
            names[blank] = BLANK.to_string();
            names
        })
        .to_vec()
}

/// The counters.
pub async fn metrics(State(app): SharedApp) -> Response {
    let graph = app.main.graph();
    let gauges = [
        ("flock_jobs_waiting", "Jobs with work that nobody has begun.", app.work.waiting() as f64),
        (
            "flock_requests_open",
            "Requests admitted and not answered.",
            (app.limits.queue - app.queue.available_permits()) as f64,
        ),
        ("flock_graph_triples", "Triples of the graph.", graph.topology().num_triples() as f64),
        ("flock_graph_edits", "Triples kept beside the index.", graph.topology().num_edits() as f64),
    ];
    let text = app.metrics.text(app.work.units.load(Ordering::Relaxed), &gauges);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
