//! `POST /api/v1/score`: how likely given triples are.

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use flock_kg::score::{TripleScores, find_triple, find_triple_exactly};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::predict::NEAR_LOOKUPS;
use super::{BodyProblems, ReadProblems, SharedApp, broken, json_body};
use crate::ask::to_json;
use crate::problem::{Code, Problem};
use crate::turns::Turns;

/// Triples to score.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreRequest {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
    /// Head, relation and tail of each. One that the graph has is hidden from the walks.
    #[schema(example = json!([["Portugal", "borders", "Spain"]]))]
    pub triples: Vec<[String; 3]>,
    /// Base walk count n; by the size of the graph if left out.
    pub walks: Option<u32>,
    /// Passes with fresh walks: 1 if left out.
    pub passes: Option<u32>,
    /// Seed of the walks.
    #[serde(default)]
    pub seed: u64,
}

/// A triple that was not scored.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FailedTriple {
    /// The triple.
    triple: [String; 3],
    /// What is wrong.
    error: String,
    /// What kind of problem it is.
    code: Code,
    /// Names that may have been meant.
    near: Vec<String>,
}

/// Where triples stand.
#[derive(Serialize, ToSchema)]
pub struct ScoreReply<'a> {
    /// The triples that were scored, in their order.
    #[serde(flatten)]
    scores: TripleScores<'a>,
    /// The others.
    failed: Vec<FailedTriple>,
}

/// Scores triples from both ends.
#[utoipa::path(post, tag = "api", path = "/api/v1/score", request_body = ScoreRequest, responses(
    (status = 200, description = "Where each triple stands among its alternatives", body = ScoreReply<'static>),
    ReadProblems, BodyProblems))]
pub async fn score(State(app): SharedApp, request: Request) -> Result<Response, Problem> {
    let r: ScoreRequest = json_body(&app, request).await?;
    if r.triples.is_empty() || r.triples.len() > app.limits.batch {
        return Err(Problem::bad(format!("found {} triples, expected 1 to {}", r.triples.len(), app.limits.batch)));
    }
    let live = app.live(r.graph.as_deref())?;
    let graph = live.graph();
    let (permit, deadline) = (app.admit()?, app.deadline());
    let of = graph.clone();
    // The permit comes back with what was found: its place in the queue is held until this work is done.
    let find = move || {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for triple in &r.triples {
            let looked_up = match failed.len() < NEAR_LOOKUPS {
                true => find_triple(&of, triple.each_ref()),
                false => find_triple_exactly(&of, triple.each_ref(), NEAR_LOOKUPS),
            };
            match looked_up {
                Ok(ids) => found.push(ids),
                Err(e) => {
                    let Problem { error, code, near, .. } = e.into();
                    failed.push(FailedTriple { triple: triple.clone(), error, code, near });
                }
            }
        }
        (r, found, failed, permit)
    };
    let found = tokio::time::timeout_at(deadline, tokio::task::spawn_blocking(find)).await;
    let (r, triples, failed, _permit) = found.map_err(|_| Problem::late())?.map_err(broken)?;
    let step = app.predictor.pool().current_num_threads();
    let positions = app.inquiry(&live, &graph, r.walks, r.passes, r.seed, app.limits.passes)?.step_positions(2)?;
    app.foresee(triples.len().div_ceil(step), positions * triples.len() as u64)?;
    let turns = Turns::new(&app, deadline);
    let (walks, passes, seed) = (r.walks, r.passes, r.seed);
    let mut scored = Vec::with_capacity(triples.len());
    for some in triples.chunks(step) {
        let (there, live, graph, some, over) = (app.clone(), live.clone(), graph.clone(), some.to_vec(), turns.over());
        let run = move || -> Result<_, Problem> {
            let inquiry = there.inquiry(&live, &graph, walks, passes, seed, there.limits.passes)?.cancel(&over);
            Ok(inquiry.score_triples(&some)?)
        };
        scored.extend(turns.take(positions * step as u64, run).await??);
    }
    let inquiry = app.inquiry(&live, &graph, walks, passes, seed, app.limits.passes)?;
    let reply = to_json(&ScoreReply { scores: inquiry.named_scores(&scored)?, failed });
    Ok(([(header::CONTENT_TYPE, "application/json")], reply).into_response())
}
