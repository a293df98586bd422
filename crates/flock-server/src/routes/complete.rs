//! `POST /api/v1/complete` and `/api/v1/complete/stream`: the links that a graph most likely lacks.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use flock_kg::complete::{CompleteOptions, Completion, Links, Pairs, RankBy, Scope, Search};
use flock_kg::graph::Graph;
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{BodyProblems, ReadProblems, SharedApp, broken, json_body, within};
use crate::App;
use crate::ask::to_json;
use crate::live::Live;
use crate::problem::{Code, Problem};
use crate::turns::Turns;

/// The most links of a reply.
const LISTED: usize = 1_000;
/// The most that get a reason.
const EXPLAINED: usize = 100;
/// The most questions that are planned for one request: more would not be asked in time.
const PLANNED: usize = 100_000;
/// How often a stream tells the links so far.
const EVERY: Duration = Duration::from_millis(700);

/// Which links to look for, and how.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteRequest {
    /// A graph that was uploaded; the server's own if left out.
    pub graph: Option<String>,
    /// Only links of this relation.
    #[schema(example = "borders")]
    pub relation: Option<String>,
    /// Only links of this head.
    pub head: Option<String>,
    /// Only links of this tail.
    pub tail: Option<String>,
    /// Links to list, 20 if left out; at most 1000, 100 with reasons.
    pub top: Option<usize>,
    /// Which entities are asked about; `compatible` if left out.
    #[serde(default)]
    pub pairs: Pairs,
    /// Which questions look for links; `both` if left out.
    #[serde(default)]
    pub search: Search,
    /// What links are ranked by; `specificity` if left out.
    #[serde(default)]
    pub rank_by: RankBy,
    /// The most questions that look for links; at most 100000.
    pub questions: Option<usize>,
    /// Base walk count n; by the size of the graph if left out.
    pub walks: Option<u32>,
    /// Passes with fresh walks: 1 if left out.
    pub passes: Option<u32>,
    /// Seed of the walks.
    #[serde(default)]
    pub seed: u64,
    /// Stop after so many milliseconds, at the latest in time for the server's deadline. The best pairs are asked about first.
    pub budget_ms: Option<u64>,
    /// Give a reason for each link.
    #[serde(default)]
    pub explain: bool,
}

/// The work of one request.
struct CompleteWork {
    app: Arc<App>,
    live: Arc<Live>,
    graph: Arc<Graph>,
    request: Arc<CompleteRequest>,
    turns: Turns,
    begin: Instant,
    budget: Duration,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl CompleteWork {
    async fn new(app: &Arc<App>, r: CompleteRequest) -> Result<(CompleteWork, Completion), Problem> {
        let live = app.live(r.graph.as_deref())?;
        let graph = live.graph();
        let permit = app.admit()?;
        let top = within("top", r.top, 20, 1, if r.explain { EXPLAINED } else { LISTED })?;
        let questions = within("questions", r.questions, PLANNED, 1, PLANNED)?;
        let (begin, deadline, limit) = (Instant::now(), app.deadline(), app.limits.deadline.mul_f64(0.8));
        let budget = r.budget_ms.map_or(limit, |ms| Duration::from_millis(ms).min(limit));
        // Whatever can be refused at once is.
        app.inquiry(&live, &graph, r.walks, r.passes, r.seed, app.limits.passes)?;
        let (request, of) = (Arc::new(r), graph.clone());
        let r = request.clone();
        let turns = Turns::new(app, deadline);
        let over = turns.over();
        // The permit comes back with the plan, so that the place in the queue is held until this work is done.
        let plan = move || -> Result<_, Problem> {
            let scope = Scope { relation: r.relation.as_deref(), head: r.head.as_deref(), tail: r.tail.as_deref() };
            let options = CompleteOptions {
                top,
                pairs: r.pairs,
                sides: r.search,
                rank_by: r.rank_by,
                questions,
                ..CompleteOptions::default()
            };
            let options = options.within(&of, &scope)?;
            let planned = Completion::plan_while(of.topology(), options, &|| !over.load(Ordering::Relaxed));
            Ok((planned.ok_or_else(Problem::late)?, permit))
        };
        let planned = tokio::time::timeout_at(deadline, tokio::task::spawn_blocking(plan)).await;
        let (work, permit) = planned.map_err(|_| Problem::late())?.map_err(broken)??;
        let app = app.clone();
        Ok((CompleteWork { app, live, graph, request, turns, begin, budget, _permit: permit }, work))
    }

    /// Does something with the library's way to ask, when its turn comes.
    async fn turn<T: Send + 'static>(
        &self,
        questions: usize,
        explain: bool,
        mut work: Completion,
        act: impl FnOnce(&flock_kg::Inquiry<'_>, &mut Completion) -> Result<T, Problem> + Send + 'static,
    ) -> Result<(T, Completion), Problem> {
        let (app, live, graph, r) = (self.app.clone(), self.live.clone(), self.graph.clone(), self.request.clone());
        let over = self.turns.over();
        let inquiry = app.inquiry(&live, &graph, r.walks, r.passes, r.seed, app.limits.passes)?;
        let positions = inquiry.step_positions(questions)?;
        let run = {
            let (app, live, graph) = (app.clone(), live.clone(), graph.clone());
            move || -> Result<(T, Completion), Problem> {
                let inquiry = app.inquiry(&live, &graph, r.walks, r.passes, r.seed, app.limits.passes)?;
                let inquiry = inquiry.reasons(explain).cancel(&over);
                let done = act(&inquiry, &mut work)?;
                Ok((done, work))
            }
        };
        self.turns.take(positions, run).await?
    }

    /// Asks until the work is done or its time is up. `interim` hears of the work between two steps.
    async fn run(&self, mut work: Completion, mut interim: impl FnMut(String), tell: bool) -> Result<String, Problem> {
        let step = 2 * self.app.predictor.pool().current_num_threads();
        let (mut asked, mut told) = (0, Instant::now());
        // Planning is no question: it says nothing about what a question takes.
        let (begin, budget) = (Instant::now(), self.budget.saturating_sub(self.begin.elapsed()));
        loop {
            let spent = begin.elapsed();
            // Time for the other ends of the best links, and for reasons: a question, and passes that find the paths.
            let reasons = if self.request.explain { 2 * work.options().top } else { 0 };
            // One step in any case, however long planning took.
            let hurry = asked > 0 && work.progress().must_end(spent, asked, reasons, budget);
            if asked > 0 && spent >= budget {
                break;
            }
            let advance =
                move |inquiry: &flock_kg::Inquiry<'_>, work: &mut Completion| Ok(inquiry.advance(work, step, hurry)?);
            let (count, back) = self.turn(step, false, work, advance).await?;
            work = back;
            asked += count;
            if count == 0 {
                break;
            }
            if tell && told.elapsed() >= EVERY {
                let links = |inquiry: &flock_kg::Inquiry<'_>, work: &mut Completion| Ok(to_json(&inquiry.links(work)?));
                let (reply, back) = self.turn(0, false, work, links).await?;
                work = back;
                interim(reply);
                told = Instant::now();
            }
        }
        let links = move |inquiry: &flock_kg::Inquiry<'_>, work: &mut Completion| Ok(to_json(&inquiry.links(work)?));
        let (plain, work) = self.turn(0, false, work, links).await?;
        if !self.request.explain || begin.elapsed() >= budget {
            return Ok(plain);
        }
        // Links without reasons are better than none.
        match self.turn(2 * work.options().top, true, work, links).await {
            Ok((reply, _)) => Ok(reply),
            Err(problem) if problem.code == Code::Late => Ok(plain),
            Err(problem) => Err(problem),
        }
    }
}

/// The links that the graph most likely lacks.
#[utoipa::path(post, tag = "api", path = "/api/v1/complete", request_body = CompleteRequest, responses(
    (status = 200, description = "The best links, ranked", body = Links<'static>), ReadProblems, BodyProblems))]
pub async fn complete(State(app): SharedApp, request: Request) -> Result<Response, Problem> {
    let (job, work) = CompleteWork::new(&app, json_body(&app, request).await?).await?;
    let reply = job.run(work, |_| {}, false).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], reply).into_response())
}

/// Events as they come. Dropping it ends the task that sends them.
struct Events {
    events: UnboundedReceiver<Event>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl futures_core::Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(context).map(|event| event.map(Ok))
    }
}

/// The links as server-sent events: `links` now and then, each a whole reply, then `done`, or `problem`.
#[utoipa::path(post, tag = "api", path = "/api/v1/complete/stream", operation_id = "complete_stream", request_body = CompleteRequest, responses(
    (status = 200, description = "Server-sent events. `links` and `done` carry a reply, `problem` carries a problem",
        body = Links<'static>, content_type = "text/event-stream"),
    ReadProblems, BodyProblems))]
pub async fn stream(State(app): SharedApp, request: Request) -> Result<Response, Problem> {
    let (job, work) = CompleteWork::new(&app, json_body(&app, request).await?).await?;
    let (sender, events): (UnboundedSender<Event>, _) = unbounded_channel();
    let task = tokio::spawn(async move {
        let interim = |reply: String| _ = sender.send(Event::default().event("links").data(reply));
        let last = match job.run(work, interim, true).await {
            Ok(reply) => Event::default().event("done").data(reply),
            Err(problem) => Event::default().event("problem").data(to_json(&problem)),
        };
        let _ = sender.send(last);
    });
    Ok(Sse::new(Events { events, task }).keep_alive(KeepAlive::default()).into_response())
}
