//! `POST /api/v1/triples`: edits.

use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::{Request, State};
use flock_kg::BLANK;
use flock_kg::graph::NamedEdit;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{BodyProblems, ReadProblems, SharedApp, broken, json_body};
use crate::problem::Problem;

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

/// What an edit did.
#[derive(Serialize, ToSchema)]
pub struct EditReply {
    /// Triples that are new.
    added: usize,
    /// Triples that are gone.
    removed: usize,
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
    let count = r.add.len() + r.remove.len();
    if count == 0 || count > app.limits.edits {
        return Err(Problem::bad(format!("found {count} triples, expected 1 to {}", app.limits.edits)));
    }
    for (place, name) in r.add.iter().chain(&r.remove).flat_map(|t| ["head", "relation", "tail"].into_iter().zip(t)) {
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
    let edit = move || {
        let _permit = permit;
        let named = |t: &'_ [String; 3], present| (t.clone(), present);
        let all: Vec<_> =
            r.remove.iter().map(|t| named(t, false)).chain(r.add.iter().map(|t| named(t, true))).collect();
        let edits: Vec<NamedEdit<'_>> = all
            .iter()
            .map(|(t, present)| NamedEdit { triple: t.each_ref().map(String::as_str), present: *present })
            .collect();
        live.edit(&edits)
    };
    let outcome = tokio::task::spawn_blocking(edit).await.map_err(broken)??;
    app.metrics.edits.fetch_add((outcome.added + outcome.removed) as u64, Ordering::Relaxed);
    Ok(Json(EditReply { added: outcome.added, removed: outcome.removed, triples: outcome.triples, kept }))
}
