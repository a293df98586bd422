//! `POST /api/v1/predict` and `/api/v1/predict/stream`: answers to questions.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use flock_kg::explain::MAX_HOPS;
use flock_kg::graph::Graph;
use flock_kg::{Answers, Plan};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use utoipa::ToSchema;

use super::{BodyProblems, ReadProblems, SharedApp, broken, ending, json_body, within};
use crate::App;
use crate::ask::{Message, QuestionJob};
use crate::live::Live;
use crate::problem::{Code, Problem};

/// The most answers listed in the replies to one request.
const LISTED: usize = 100_000;
/// The most listed in each reply of a stream.
const STREAMED: usize = 1_000;
/// The most that get a reason.
const EXPLAINED: usize = 100;
/// The most conditions on candidates: each looks at the edges of a relation.
const CONDITIONS: usize = 64;
/// So many misspelt questions of a request are told near names.
pub(super) const NEAR_LOOKUPS: usize = 16;

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
    /// The only candidates, by name; all of them that the graph has are ranked. Others are counted in `unknown_candidates`. A
    /// candidate must fit all of `among`, `among_type`, `among_range` and `among_domain` that are given.
    pub among: Option<Vec<String>>,
    /// Only entities x with (x, relation, value) in the graph, for each pair of relation and value.
    #[schema(example = json!([["continent", "Europe"]]))]
    #[serde(default)]
    pub among_type: Vec<[String; 2]>,
    /// Only entities that the graph has as a tail of each of these relations.
    #[serde(default)]
    pub among_range: Vec<String>,
    /// Only entities that the graph has as a head of each of these relations.
    #[serde(default)]
    pub among_domain: Vec<String>,
    /// Base walk count n; by the size of the graph if left out.
    pub walks: Option<u32>,
    /// Passes with fresh walks: 1 if left out, 16 in a stream. With a budget the most.
    pub passes: Option<u32>,
    /// Seed of the walks.
    #[serde(default)]
    pub seed: u64,
    /// Add passes until so many milliseconds are up, counted for the whole request, or the answers stop changing places.
    pub budget_ms: Option<u64>,
    /// Give a reason for each answer.
    #[serde(default)]
    pub explain: bool,
    /// The most hops of a path that is a reason, 4 if left out; if all are longer, the shortest is given.
    pub max_hops: Option<usize>,
}

/// Answers to several questions.
#[derive(ToSchema)]
#[allow(dead_code)] // described here, and sent as text that has been written already
pub struct Replies {
    /// In the order of the questions.
    replies: Vec<ReplyOrProblem>,
}

/// A reply, or why there is none.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum ReplyOrProblem {
    /// The question was answered.
    Reply(Box<Answers<'static>>),
    /// It was not.
    Problem(FailedQuery),
}

/// The answer to a request: one reply, or several.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum PredictReply {
    /// To `query`.
    One(Box<Answers<'static>>),
    /// To `queries`.
    Several(Replies),
}

/// A question of several that was not answered.
#[derive(Serialize, ToSchema)]
pub struct FailedQuery {
    /// The question.
    query: [String; 3],
    /// What is wrong.
    error: String,
    /// What kind of problem it is.
    code: Code,
    /// What to do about it, in terms of this API.
    remedy: Option<String>,
    /// Names that may have been meant.
    near: Vec<String>,
}

impl App {
    /// Reads the questions. Near names for many misspelt ones, and long lists of candidates, take a while: not for the
    /// threads that speak HTTP.
    async fn plans(
        self: &Arc<App>,
        live: &Arc<Live>,
        graph: &Arc<Graph>,
        r: &Arc<PredictRequest>,
        queries: &[[String; 3]],
        size: AskSize,
        permit: OwnedSemaphorePermit,
    ) -> Result<(Vec<Result<Plan, Problem>>, OwnedSemaphorePermit), Problem> {
        let (app, live, graph, r, queries) = (self.clone(), live.clone(), graph.clone(), r.clone(), queries.to_vec());
        let parse = move || {
            let inquiry = app.inquiry(&live, &graph, r.walks, r.passes, r.seed, app.limits.passes)?;
            let mut inquiry = inquiry.top(size.top).only_new(r.novel).reasons(r.explain).near_names(NEAR_LOOKUPS);
            inquiry = inquiry.max_hops(within("max_hops", r.max_hops, MAX_HOPS, 1, 1000)?);
            if let Some(budget) = r.budget_ms {
                // What is not answered by the deadline is lost.
                inquiry = inquiry.budget(Duration::from_millis(budget).min(app.limits.deadline.mul_f64(0.8)));
            }
            if let Some(among) = &r.among {
                inquiry = inquiry.among(among);
            }
            for [relation, value] in &r.among_type {
                inquiry = inquiry.among_type(relation, value);
            }
            for relation in &r.among_range {
                inquiry = inquiry.among_range(relation);
            }
            for relation in &r.among_domain {
                inquiry = inquiry.among_domain(relation);
            }
            let plan = |texts: &[String; 3]| {
                let texts = texts.each_ref().map(String::as_str);
                Ok(if size.stream { inquiry.stream_plan(texts)? } else { inquiry.plan(texts)? })
            };
            // The permit comes back with the plans, so that the place in the queue is held until this work is done.
            Ok((queries.iter().map(plan).collect(), permit))
        };
        tokio::task::spawn_blocking(parse).await.map_err(broken)?
    }

    /// How many answers are listed, within the limits.
    fn size(&self, r: &PredictRequest, stream: bool, questions: usize) -> Result<AskSize, Problem> {
        // Replies are held in memory as text until they are read.
        let mut most = LISTED / questions.max(1);
        if stream {
            most = most.min(STREAMED);
        }
        if r.explain {
            most = most.min(EXPLAINED);
        }
        let top = match within("top", r.top, most.min(10), 0, most)? {
            0 => most,
            top => top,
        };
        if r.among.as_ref().is_some_and(|a| a.len() > 100_000) {
            return Err(Problem::bad("among has more than 100000 names"));
        }
        if r.among_type.len() + r.among_range.len() + r.among_domain.len() > CONDITIONS {
            return Err(Problem::bad(format!(
                "among_type, among_range and among_domain have more than {CONDITIONS} conditions"
            )));
        }
        Ok(AskSize { top, stream })
    }
}

/// How many answers are listed, and whether they are told after every pass.
#[derive(Copy, Clone)]
struct AskSize {
    top: usize,
    stream: bool,
}

/// Waits for the messages of a job and stops it when nobody listens.
struct Listener {
    job: Arc<QuestionJob>,
    messages: UnboundedReceiver<Message>,
    deadline: Pin<Box<tokio::time::Sleep>>,
    over: bool,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.job.cancel();
    }
}

impl Listener {
    fn new(
        app: &Arc<App>,
        graph: Arc<Graph>,
        plans: Vec<Plan>,
        stream: bool,
        permit: OwnedSemaphorePermit,
    ) -> Result<Listener, Problem> {
        // How many passes a budget has room for shows later.
        let passes = |plan: &Plan| if plan.budget().is_some() { 1 } else { plan.most_passes() };
        let units = plans.iter().map(|plan| passes(plan) as usize).sum();
        let positions = |plan: &Plan| u64::from(passes(plan)) * plan.positions() + plan.reason_positions();
        app.foresee(units, plans.iter().map(positions).sum())?;
        let (sender, messages) = unbounded_channel();
        let job = QuestionJob::new(graph, app.work.clone(), plans, stream, sender, permit);
        app.work.submit(job.clone());
        let deadline = app.deadline();
        // A client that has stopped reading does not ask for messages, and must not keep its place in the queue.
        let late = Arc::downgrade(&job);
        tokio::spawn(async move {
            tokio::time::sleep_until(deadline).await;
            if let Some(job) = late.upgrade() {
                job.cancel();
            }
        });
        Ok(Listener { job, messages, deadline: Box::pin(tokio::time::sleep_until(deadline)), over: false })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Message, Problem>> {
        match self.messages.poll_recv(context) {
            Poll::Ready(Some(Message::Panic)) => Poll::Ready(Err(Problem::internal("a pass ended in a panic"))),
            Poll::Ready(Some(message)) => {
                self.job.read(&message);
                Poll::Ready(Ok(message))
            }
            // The job holds the sender, so this is a job that was dropped.
            Poll::Ready(None) => Poll::Ready(Err(ending())),
            Poll::Pending => self.deadline.as_mut().poll(context).map(|()| Err(Problem::late())),
        }
    }

    async fn next(&mut self) -> Result<Message, Problem> {
        std::future::poll_fn(|context| self.poll(context)).await
    }
}

/// Answers one question, or several.
#[utoipa::path(post, tag = "api", path = "/api/v1/predict", request_body = PredictRequest, responses(
    (status = 200, description = "A reply to `query`, or replies to `queries`", body = PredictReply), ReadProblems, BodyProblems))]
pub async fn predict(State(app): SharedApp, request: Request) -> Result<Response, Problem> {
    let r: Arc<PredictRequest> = Arc::new(json_body(&app, request).await?);
    let live = app.live(r.graph.as_deref())?;
    let graph = live.graph();
    let size = app.size(&r, false, r.queries.as_ref().map_or(1, Vec::len))?;
    let as_json = |text: String| ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    match (&r.query, &r.queries) {
        (Some(texts), None) => {
            let permit = app.admit()?;
            let (plans, permit) = app.plans(&live, &graph, &r, std::slice::from_ref(texts), size, permit).await?;
            let plans = plans.into_iter().collect::<Result<Vec<Plan>, Problem>>()?;
            let mut listener = Listener::new(&app, graph, plans, false, permit)?;
            match listener.next().await? {
                Message::Final(_, reply) => Ok(as_json(reply?)),
                Message::Interim(_) | Message::Panic => {
                    Err(Problem::internal("a lone question had messages before its answer"))
                }
            }
        }
        (None, Some(queries)) => {
            if queries.is_empty() || queries.len() > app.limits.batch {
                let error = format!("found {} queries, expected 1 to {}", queries.len(), app.limits.batch);
                return Err(Problem::bad(error));
            }
            let mut replies: Vec<Option<String>> = vec![None; queries.len()];
            let (mut plans, mut places) = (Vec::new(), Vec::new());
            let failed = |query: &[String; 3], problem: Problem| {
                let Problem { error, code, remedy, near } = problem;
                let failed = FailedQuery { query: query.clone(), error, code, remedy, near };
                serde_json::to_string(&failed).unwrap_or_default()
            };
            let permit = app.admit()?;
            let (questions, permit) = app.plans(&live, &graph, &r, queries, size, permit).await?;
            for (i, question) in questions.into_iter().enumerate() {
                match question {
                    Ok(plan) => {
                        plans.push(plan);
                        places.push(i);
                    }
                    Err(problem) => replies[i] = Some(failed(&queries[i], problem)),
                }
            }
            let expected = plans.len();
            if expected > 0 {
                let mut listener = Listener::new(&app, graph, plans, false, permit)?;
                for _ in 0..expected {
                    if let Message::Final(q, reply) = listener.next().await? {
                        let i = places[q];
                        replies[i] = Some(reply.unwrap_or_else(|e| failed(&queries[i], e.into())));
                    }
                }
            }
            let replies: Vec<String> = replies.into_iter().flatten().collect();
            Ok(as_json(format!("{{\"replies\":[{}]}}", replies.join(","))))
        }
        _ => Err(Problem::bad("expected either query or queries")),
    }
}

impl futures_core::Stream for Listener {
    type Item = Result<Event, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.over {
            return Poll::Ready(None);
        }
        let problem = |problem: Problem| {
            let body = serde_json::to_string(&problem).unwrap_or_default();
            Event::default().event("problem").data(body)
        };
        this.poll(context).map(|message| {
            let (event, over) = match message {
                Ok(Message::Interim(reply)) => (Event::default().event("answers").data(reply), false),
                Ok(Message::Final(_, Ok(reply))) => (Event::default().event("done").data(reply), true),
                Ok(Message::Final(_, Err(error))) => (problem(error.into()), true),
                Ok(Message::Panic) => (problem(Problem::internal("a pass ended in a panic")), true),
                Err(e) => (problem(e), true),
            };
            this.over = over;
            Some(Ok(event))
        })
    }
}

/// Answers one question as server-sent events: `answers` after every pass, each a whole reply, then `done`, or `problem`.
#[utoipa::path(post, tag = "api", path = "/api/v1/predict/stream", request_body = PredictRequest, responses(
    (status = 200, description = "Server-sent events. `answers` and `done` carry a reply, `problem` carries a problem",
        body = Answers<'static>, content_type = "text/event-stream"),
    ReadProblems, BodyProblems))]
pub async fn stream(State(app): SharedApp, request: Request) -> Result<Response, Problem> {
    let r: Arc<PredictRequest> = Arc::new(json_body(&app, request).await?);
    let (Some(texts), None) = (&r.query, &r.queries) else {
        return Err(Problem::bad("expected query: a stream answers one question"));
    };
    let live = app.live(r.graph.as_deref())?;
    let graph = live.graph();
    let size = app.size(&r, true, 1)?;
    let permit = app.admit()?;
    let (plans, permit) = app.plans(&live, &graph, &r, std::slice::from_ref(texts), size, permit).await?;
    let plans = plans.into_iter().collect::<Result<Vec<Plan>, Problem>>()?;
    let listener = Listener::new(&app, graph, plans, true, permit)?;
    Ok(Sse::new(listener).keep_alive(KeepAlive::default()).into_response())
}
