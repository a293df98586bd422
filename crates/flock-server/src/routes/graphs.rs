//! `POST /api/v1/graphs`: a graph of one's own. `GET /api/v1/neighbourhood`: part of a graph.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header;
use flock_kg::graph::{Columns, Format, LoadOptions, load_reader};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{BodyProblems, QueryResult, ReadProblems, SharedApp, body, broken, labels, query, shown, within};
use crate::body::Room;
use crate::live::Live;
use crate::problem::{Code, Problem};

/// The name of an uploaded graph, and how to read its file.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UploadQuery {
    /// What to call it; it is shown, and tells the format by its ending.
    pub name: Option<String>,
    /// The format of the file, such as `tsv` or `csv`; by the content type, the name and the first bytes if left out.
    pub format: Option<String>,
    /// The columns of head, relation and tail in a table, by name or counted from 1:
    /// `subject,predicate,object` or `1,2,3`. They are found by their names if left out.
    pub columns: Option<String>,
    /// Whether the first row of TSV or CSV names the columns. It is judged by its words if left out.
    pub header: Option<bool>,
    /// Whether to leave out malformed rows and count them, instead of refusing the file.
    #[serde(default)]
    pub lenient: bool,
}

impl UploadQuery {
    /// How the loader is to read the file. A format that is named goes before that of the content type.
    fn options(&self, of_type: Option<Format>, max_bytes: usize) -> Result<LoadOptions, Problem> {
        let format = match &self.format {
            Some(text) => Some(text.parse::<Format>().map_err(Problem::bad)?),
            None => of_type,
        };
        let columns = self.columns.as_deref().map(str::parse::<Columns>).transpose().map_err(|e| {
            Problem::new(Code::BadRequest, format!("columns: {e}")).remedy("name three columns, or leave columns out")
        })?;
        let (header, lenient, max_bytes) = (self.header, self.lenient, Some(max_bytes as u64));
        Ok(LoadOptions { format, columns, header, lenient, max_bytes, ..LoadOptions::default() })
    }
}

/// An uploaded graph.
#[derive(Serialize, ToSchema)]
pub struct UploadReply {
    /// Its id, for `graph` in other requests. It is kept in memory until others push it out.
    graph: String,
    entities: u32,
    relations: u32,
    triples: usize,
    /// How many entities and relations have a label.
    labels: usize,
    /// What was left out of the file, if anything but repeated triples.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    /// How the file was understood: which columns were used, and which were not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// What may have gone wrong, such as a header that was read as a triple.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Takes a graph of one's own, in any format that the command reads; formats without a type of their own come as
/// `text/tab-separated-values`. It is kept in memory only.
#[utoipa::path(post, tag = "api", path = "/api/v1/graphs", params(UploadQuery), request_body(description = "A file of triples, plain or packed with gzip or zstd",
    content((String = "text/tab-separated-values"), (String = "text/csv"), (String = "text/turtle"), (String = "application/n-triples"), (String = "application/n-quads"), (String = "application/trig"),
        (String = "application/rdf+xml"), (String = "application/ld+json"), (String = "application/x-ndjson"), (Vec<u8> = "application/vnd.apache.parquet"),
        (Vec<u8> = "application/vnd.apache.arrow.file"))), responses(
    (status = 200, description = "The graph is loaded", body = UploadReply), ReadProblems, BodyProblems))]
pub async fn graphs(
    State(app): SharedApp,
    q: QueryResult<UploadQuery>,
    request: Request,
) -> Result<Json<UploadReply>, Problem> {
    app.may_write(&request)?;
    let q = query(q)?;
    // Types that a page of another site cannot send unasked.
    let kinds = [
        "text/tab-separated-values",
        "text/csv",
        "text/turtle",
        "application/n-triples",
        "application/n-quads",
        "application/trig",
        "application/rdf+xml",
        "application/ld+json",
        "application/x-ndjson",
        "application/jsonl",
        "application/vnd.apache.parquet",
        "application/vnd.apache.arrow.file",
        "application/vnd.apache.arrow.stream",
    ];
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    // Whatever comes as tab-separated is looked at: pages call anything so.
    let format = match kind.split(';').next().unwrap_or("").trim() {
        "text/csv" => Some(Format::Csv),
        "text/turtle" => Some(Format::Turtle),
        "application/n-triples" => Some(Format::NTriples),
        "application/n-quads" => Some(Format::NQuads),
        "application/trig" => Some(Format::TriG),
        "application/rdf+xml" => Some(Format::RdfXml),
        "application/ld+json" => Some(Format::JsonLd),
        "application/x-ndjson" | "application/jsonl" => Some(Format::JsonLines),
        "application/vnd.apache.parquet" => Some(Format::Parquet),
        "application/vnd.apache.arrow.file" | "application/vnd.apache.arrow.stream" => Some(Format::Arrow),
        _ => None,
    };
    let options = q.options(format, app.limits.upload)?;
    // Room for all of it first: uploads that each have half of what they need would keep each other waiting.
    let mut room = Room::new(&app.upload_room);
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    room.hold(length.unwrap_or(app.limits.upload).min(app.limits.upload))?;
    let blocks = body(&app, request, app.limits.upload, &kinds, &mut room).await?;
    let permit = tokio::time::timeout_at(app.deadline(), app.queue.clone().acquire_owned()).await;
    let Ok(Ok(permit)) = permit else {
        return Err(
            Problem::new(Code::Busy, "too many requests are waiting").remedy("send it again after Retry-After seconds")
        );
    };
    let name: String = q.name.unwrap_or_default().chars().filter(|c| !c.is_control()).take(100).collect();
    let name = if name.is_empty() { "uploaded graph".to_string() } else { name };
    let shown = name.clone();
    let load = move || {
        let (_permit, _room) = (permit, room);
        load_reader(&shown, blocks, &options)
    };
    let loaded = tokio::task::spawn_blocking(load).await.map_err(broken)?;
    let (graph, report) = loaded.map_err(|e| Problem::bad_graph(&e))?;
    let notes = report.notes();
    let warnings = report.warnings().iter().map(ToString::to_string).collect();
    let (entities, relations) = (graph.topology().num_nodes(), graph.topology().num_relations());
    let (triples, labels) = (graph.topology().num_triples(), graph.labels().len());
    let live = Live::open(name, graph, None, Default::default())?;
    let id = app.new_id()?;
    let mut uploads = app.uploads.lock().unwrap_or_else(|e| e.into_inner());
    uploads.push_back((id.clone(), live));
    let memory = |uploads: &VecDeque<(String, Arc<Live>)>| -> usize {
        uploads.iter().map(|(_, live)| live.graph().memory_bytes()).sum()
    };
    while uploads.len() > app.limits.graphs || uploads.len() > 1 && memory(&uploads) > app.limits.graphs_memory {
        uploads.pop_front();
    }
    let left_out = report.left_out();
    Ok(Json(UploadReply { graph: id, entities, relations, triples, labels, left_out, notes, warnings }))
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

/// Part of a graph.
#[derive(Serialize, ToSchema)]
pub struct Neighbourhood {
    /// Entities, the one asked for first.
    entities: Vec<String>,
    /// How many neighbours each has in the whole graph.
    degrees: Vec<u32>,
    /// Head, relation and tail.
    triples: Vec<[String; 3]>,
    /// How names are shown, where that is not the full name: by their label, or IRIs by their prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    shown: BTreeMap<String, String>,
    /// What people call the names, where the graph has labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
}

/// The graph around an entity.
#[utoipa::path(get, tag = "api", path = "/api/v1/neighbourhood", params(NeighbourhoodQuery), responses(
    (status = 200, description = "Entities and triples near by", body = Neighbourhood), ReadProblems))]
pub async fn neighbourhood(
    State(app): SharedApp,
    q: QueryResult<NeighbourhoodQuery>,
) -> Result<Json<Neighbourhood>, Problem> {
    let q = query(q)?;
    let limit = within("limit", q.limit, 60, 1, 300)?;
    let graph = app.live(q.graph.as_deref())?.graph();
    let permit = app.admit()?;
    let look = move || -> Result<Neighbourhood, Problem> {
        let _permit = permit;
        let mut centres = vec![graph.parse_entity(&q.entity)?];
        if let Some(other) = &q.other {
            centres.push(graph.parse_entity(other)?);
        }
        let topology = graph.topology();
        let (nodes, triples) = topology.neighbourhood(&centres, limit);
        let entity = |id: u32| graph.entities().get(id).to_string();
        let names = nodes.iter().map(|v| graph.entities().get(*v));
        let names: Vec<&str> = names.chain(triples.iter().map(|t| graph.relations().get(t.relation))).collect();
        Ok(Neighbourhood {
            shown: shown(&graph, names.iter().copied()),
            labels: labels(&graph, names),
            entities: nodes.iter().map(|v| entity(*v)).collect(),
            degrees: nodes.iter().map(|v| topology.degree(*v)).collect(),
            triples: triples
                .iter()
                .map(|t| [entity(t.head), graph.relations().get(t.relation).to_string(), entity(t.tail)])
                .collect(),
        })
    };
    Ok(Json(tokio::task::spawn_blocking(look).await.map_err(broken)??))
}
