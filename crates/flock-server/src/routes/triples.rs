//! `POST /api/v1/triples`: edits, and labels.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::{Request, State};
use flock_kg::BLANK;
use flock_kg::graph::{Graph, NameKind, NamedEdit, UnknownName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{BodyProblems, ReadProblems, SharedApp, broken, json_body};
use crate::live::{EditOutcome, LiveError};
use crate::problem::Problem;

/// Triples to add and to remove, and labels, all or none.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriplesRequest {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
    /// Triples the graph has afterwards. Names may be new. A name, `prefix:local`, `<IRI>` or a label that only one has, spelled
    /// exactly, stands for what the graph has; anything else is a new name.
    #[serde(default)]
    #[schema(example = json!([["Portugal", "borders", "Atlantis"]]))]
    pub add: Vec<[String; 3]>,
    /// Triples the graph does not have afterwards, by any spelling that a question may use.
    #[serde(default)]
    pub remove: Vec<[String; 3]>,
    /// Labels of names that the graph has afterwards. An empty one takes a label away.
    #[serde(default)]
    #[schema(example = json!({"Q45": "Portugal"}))]
    pub labels: BTreeMap<String, String>,
}

/// What an edit did.
#[derive(Serialize, ToSchema)]
pub struct EditReply {
    /// Triples that are new.
    added: usize,
    /// Triples that are gone.
    removed: usize,
    /// Labels that are new, other ones or gone.
    labelled: usize,
    /// Triples of the graph now.
    triples: usize,
    /// Whether they are on disk.
    kept: bool,
}

/// Adds and removes triples, all or none; the next question sees them.
#[utoipa::path(post, tag = "api", path = "/api/v1/triples", request_body = TriplesRequest, responses(
    (status = 200, description = "The edit is made", body = EditReply), ReadProblems, BodyProblems,
    (status = 409, description = "Another server has the file of edits", body = Problem),
    (status = 507, description = "The disk is full", body = Problem)))]
pub async fn triples(State(app): SharedApp, request: Request) -> Result<Json<EditReply>, Problem> {
    app.may_write(&request)?;
    let r: TriplesRequest = json_body(&app, request).await?;
    let count = r.add.len() + r.remove.len() + r.labels.len();
    if count == 0 || count > app.limits.edits {
        return Err(Problem::bad(format!("found {count} triples and labels, expected 1 to {}", app.limits.edits)));
    }
    if r.labels.values().any(|label| label.len() > 4096) {
        return Err(Problem::bad("a label is longer than 4096 bytes, expected a shorter one"));
    }
    let names = r.add.iter().chain(&r.remove).flat_map(|t| ["head", "relation", "tail"].into_iter().zip(t));
    for (place, name) in names.chain(r.labels.keys().map(|name| ("name", name))) {
        let wrong = match name.as_str() {
            "" => "is empty",
            BLANK => "is ?, which always stands for what is asked",
            name if name.len() > 4096 => "is longer than 4096 bytes",
            _ => continue,
        };
        return Err(Problem::bad(format!("a {place} {wrong}, expected a name")));
    }
    let kept = r.graph.is_none() && app.kept;
    let live = app.live(r.graph.as_deref())?;
    let permit = app.admit()?;
    let edit = move || -> Result<_, LiveError> {
        let _permit = permit;
        let graph = live.graph();
        let named = |t: &[String; 3], present| Ok((full_names(&graph, t, present)?, present));
        let all = r.remove.iter().map(|t| named(t, false)).chain(r.add.iter().map(|t| named(t, true)));
        let all: Vec<([String; 3], bool)> = all.collect::<Result<_, UnknownName>>()?;
        let edits: Vec<NamedEdit<'_>> = all
            .iter()
            .map(|(t, present)| NamedEdit { triple: t.each_ref().map(String::as_str), present: *present })
            .collect();
        let labels: Vec<(&str, &str)> = r.labels.iter().map(|(name, label)| (name.as_str(), label.as_str())).collect();
        live.edit_labelled(&edits, &labels)
    };
    let outcome = tokio::task::spawn_blocking(edit).await.map_err(broken)??;
    app.metrics.edits.fetch_add((outcome.added + outcome.removed) as u64, Ordering::Relaxed);
    let EditOutcome { added, removed, labelled, triples } = outcome;
    Ok(Json(EditReply { added, removed, labelled, triples, kept }))
}

/// The full names of a triple. What is removed may be spelled as in a question; a name that is not there stays as it is.
fn full_names(graph: &Graph, triple: &[String; 3], present: bool) -> Result<[String; 3], UnknownName> {
    let name = |kind: NameKind, text: &str| {
        let there = if present { None } else { graph.resolve(kind, text)? };
        match there {
            Some(id) => Ok(graph.names(kind).get(id).to_string()),
            None => graph.name_for_edit(kind, text).map(|name| name.into_owned()),
        }
    };
    let [head, relation, tail] = triple;
    Ok([name(NameKind::Entity, head)?, name(NameKind::Relation, relation)?, name(NameKind::Entity, tail)?])
}
