//! `GET /api/v1/entities` and `/api/v1/relations`: names as one types, found by name or by label.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use flock_kg::graph::NameKind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{QueryResult, ReadProblems, SharedApp, broken, labels, query, shown, within};
use crate::App;
use crate::problem::Problem;

/// A text to complete.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct NamesQuery {
    /// The beginning of a name or a label, or something like one; IRIs also as `prefix:local` or `<IRI>`.
    #[serde(default)]
    pub q: String,
    /// How many names, 10 if left out.
    pub k: Option<usize>,
    /// A graph that was uploaded.
    pub graph: Option<String>,
}

/// Names for a text.
#[derive(Serialize, ToSchema)]
pub struct NamesReply {
    /// Those that begin with the text, or whose label does, first, then those near it.
    names: Vec<String>,
    /// How names are shown, where that is not the full name: by their label, or IRIs by their prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    shown: BTreeMap<String, String>,
    /// What people call the names, where the graph has labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
}

/// Entities for a text, as one types.
#[utoipa::path(get, tag = "api", path = "/api/v1/entities", params(NamesQuery), responses(
    (status = 200, description = "Names, the best first", body = NamesReply), ReadProblems))]
pub async fn entities(State(app): SharedApp, q: QueryResult<NamesQuery>) -> Result<Json<NamesReply>, Problem> {
    names(&app, query(q)?, true).await
}

/// Relations for a text, as one types.
#[utoipa::path(get, tag = "api", path = "/api/v1/relations", params(NamesQuery), responses(
    (status = 200, description = "Names, the best first", body = NamesReply), ReadProblems))]
pub async fn relations(State(app): SharedApp, q: QueryResult<NamesQuery>) -> Result<Json<NamesReply>, Problem> {
    names(&app, query(q)?, false).await
}

async fn names(app: &Arc<App>, q: NamesQuery, entities: bool) -> Result<Json<NamesReply>, Problem> {
    let k = within("k", q.k, 10, 1, 100)?;
    if q.q.len() > 4096 {
        return Err(Problem::bad("q is longer than 4096 bytes"));
    }
    let live = app.live(q.graph.as_deref())?;
    let permit = app.admit()?;
    let search = move || {
        let _permit = permit; // till the work is done, whoever waits for it
        // The index first: an older one does for a newer graph, but a newer one has names that an older graph lacks.
        let indexes = live.indexes();
        let graph = live.graph();
        let (kind, index) = match entities {
            true => (NameKind::Entity, &indexes.entities),
            false => (NameKind::Relation, &indexes.relations),
        };
        let found = graph.complete(index, kind, &q.q, k);
        NamesReply {
            shown: shown(&graph, found.iter().copied()),
            labels: labels(&graph, found.iter().copied()),
            names: found.into_iter().map(str::to_string).collect(),
        }
    };
    Ok(Json(tokio::task::spawn_blocking(search).await.map_err(broken)?))
}
