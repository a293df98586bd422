//! `POST /api/v1/explain`: the reasons for an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use flock_kg::explain::MAX_HOPS;
use flock_kg::{Blank, ExplainOptions, ExplainPlan, Explanation};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;

use super::{BodyProblems, ReadProblems, SharedApp, broken, ending, json_body, within};
use crate::ask::{SingleJob, to_json};
use crate::jobs::Job;
use crate::problem::Problem;

/// The most passes of an explanation.
const MOST_PASSES: u32 = 16;

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
    /// The most hops of a listed path, 4 if left out; if all are longer, the shortest are listed.
    pub max_hops: Option<usize>,
    /// Base walk count n; by the size of the graph if left out.
    pub walks: Option<u32>,
    /// Passes, 4 if left out; at most 16.
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

impl From<BlankName> for Blank {
    fn from(name: BlankName) -> Blank {
        match name {
            BlankName::Head => Blank::Head,
            BlankName::Relation => Blank::Relation,
            BlankName::Tail => Blank::Tail,
        }
    }
}

/// Stops a piece of work when nobody waits for it.
struct CancelOnDrop<J: Job>(Arc<J>, fn(&J));

impl<J: Job> Drop for CancelOnDrop<J> {
    fn drop(&mut self) {
        (self.1)(&self.0);
    }
}

/// The reasons for an answer.
#[utoipa::path(post, tag = "api", path = "/api/v1/explain", request_body = ExplainRequest, responses(
    (status = 200, description = "The paths by which walks carried the answer", body = Explanation<'static>), ReadProblems, BodyProblems))]
pub async fn explain(State(app): SharedApp, request: Request) -> Result<Response, Problem> {
    let r: ExplainRequest = json_body(&app, request).await?;
    let live = app.live(r.graph.as_deref())?;
    let graph = live.graph();
    let permit = app.admit()?;
    let top = within("top", r.top, 5, 1, 1000)?;
    let max_hops = within("max_hops", r.max_hops, MAX_HOPS, 1, 1000)?;
    let options = ExplainOptions { top, check: r.check, max_hops, ..ExplainOptions::default() };
    let (app_there, live_there, of) = (app.clone(), live.clone(), graph.clone());
    // Near names of a misspelt one take a while.
    let parse = move || -> Result<(ExplainPlan, OwnedSemaphorePermit), Problem> {
        let inquiry =
            app_there.inquiry(&live_there, &of, r.walks, r.passes, r.seed, app_there.limits.passes.min(MOST_PASSES))?;
        Ok((inquiry.explain_plan(r.triple.each_ref().map(String::as_str), r.blank.into())?, permit))
    };
    let (plan, permit) = tokio::task::spawn_blocking(parse).await.map_err(broken)??;
    let positions = plan.positions(&options);
    // One unit: it has its turn when each job before it has had one.
    app.foresee(1, positions)?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let work = app.work.clone();
    let over = Arc::new(AtomicBool::new(false));
    let left = over.clone();
    let run = move || {
        let _permit = permit;
        let found = work.install(|| plan.run(&graph, &options, Some(&left)).map(|found| to_json(&found)));
        let _ = sender.send(found);
    };
    let job = Arc::new(SingleJob { work: Mutex::new(Some(run)), over, positions });
    app.work.submit(job.clone());
    let _abandon = CancelOnDrop(job, |job| job.over.store(true, Ordering::Relaxed));
    match tokio::time::timeout_at(app.deadline(), receiver).await {
        Ok(Ok(Ok(text))) => Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response()),
        Ok(Ok(Err(e))) => Err(e.into()),
        Ok(Err(_)) if app.work.is_closed() => Err(ending()),
        Ok(Err(_)) => Err(Problem::internal("an explanation ended in a panic")),
        Err(_) => Err(Problem::late()),
    }
}
