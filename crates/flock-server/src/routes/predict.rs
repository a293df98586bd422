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
use flock_kg::answers::Reply;
use flock_kg::checkpoint::Task;
use flock_kg::graph::{Graph, UnknownName};
use flock_kg::question::{BLANK, Question};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use utoipa::ToSchema;

use super::{BodyProblems, ReadProblems, SharedApp, broken, ending, json_body, within};
use crate::App;
use crate::ask::{Asked, Manner, News, Questions};
use crate::live::Live;
use crate::problem::{Code, Problem};

/// The names of `among` in the graph.
type Candidates = Result<Arc<[u32]>, UnknownName>;

/// The most answers listed in the replies to one request.
const LISTED: usize = 100_000;
/// The most listed in each reply of a stream.
const STREAMED: usize = 1_000;
/// The most that get a reason.
const EXPLAINED: usize = 100;
/// So many misspelt questions of a request are told near names.
const NEAR_LOOKUPS: usize = 16;

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
    Reply(Reply<'static>),
    /// It was not.
    Problem(FailedQuery),
}

/// The answer to a request: one reply, or several.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub enum PredictReply {
    /// To `query`.
    One(Reply<'static>),
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
    /// The questions in words. Near names for many misspelt ones, and long lists of candidates, take a while: not for the
    /// threads that speak HTTP.
    async fn asked(
        self: &Arc<App>,
        live: &Arc<Live>,
        graph: &Arc<Graph>,
        r: &Arc<PredictRequest>,
        queries: &[[String; 3]],
        passes: u32,
        permit: OwnedSemaphorePermit,
    ) -> Result<(Vec<Result<Asked, Problem>>, OwnedSemaphorePermit), Problem> {
        let (app, live, graph, r, queries) = (self.clone(), live.clone(), graph.clone(), r.clone(), queries.to_vec());
        let parse = move || {
            let mut among = [None, None];
            let mut missed = 0;
            let asked = queries.iter().map(|texts| {
                let asked = app.asked_one(&live, &graph, texts, &r, passes, &mut among, missed < NEAR_LOOKUPS);
                missed += usize::from(asked.is_err());
                asked
            });
            // Back when the work is done, whoever waits for it.
            (asked.collect(), permit)
        };
        tokio::task::spawn_blocking(parse).await.map_err(broken)
    }

    fn asked_one(
        &self,
        live: &Live,
        graph: &Graph,
        texts: &[String; 3],
        r: &PredictRequest,
        passes: u32,
        among: &mut [Option<Candidates>; 2], // of each task, once looked up
        look_near: bool,
    ) -> Result<Asked, Problem> {
        if !look_near {
            let found = |(i, text): (usize, &String)| {
                text == BLANK || if i == 1 { graph.find_relation(text) } else { graph.find_entity(text) }.is_some()
            };
            if let Some(i) = (0..3).find(|&i| !found((i, &texts[i]))) {
                let kind = if i == 1 { "relation" } else { "entity" };
                let error = format!("unknown {kind} {:?}; near names are looked up for {NEAR_LOOKUPS} only", texts[i]);
                return Err(Problem::new(Code::UnknownName, error));
            }
        }
        let question = Question::parse(graph, texts.each_ref().map(String::as_str))?;
        let task = question.task();
        let served = self.served(task)?.clone();
        let ask = self.ask(graph, &served, r.walks, passes, r.seed)?;
        let candidates = |names: &[String]| -> Candidates {
            let id = |name: &String| match task {
                Task::Entity => graph.parse_entity(name),
                Task::Relation => graph.parse_relation(name),
            };
            let mut ids = names.iter().map(id).collect::<Result<Vec<u32>, _>>()?;
            ids.sort_unstable();
            ids.dedup();
            Ok(ids.into())
        };
        let among = r.among.as_ref().map(|names| among[task as usize].get_or_insert_with(|| candidates(names)).clone());
        let among = among.transpose()?;
        let calibration = live.calibrations.of(task).cloned();
        Ok(Asked { question, served, ask, among, calibration })
    }

    fn manner(&self, r: &PredictRequest, stream: bool, questions: usize) -> Result<(Manner, u32), Problem> {
        let budget = r.budget_ms.map(Duration::from_millis);
        let default = if stream {
            16
        } else if budget.is_some() {
            self.limits.passes
        } else {
            1
        };
        let passes = within("passes", r.passes, default.min(self.limits.passes), 1, self.limits.passes)?;
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
        Ok((Manner { top, novel: r.novel, explain: r.explain, budget, stream }, passes))
    }
}

/// Waits for the news of a job and stops it when nobody listens.
struct Listener {
    job: Arc<Questions>,
    news: UnboundedReceiver<News>,
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
        asked: Vec<Asked>,
        manner: Manner,
        permit: OwnedSemaphorePermit,
    ) -> Result<Listener, Problem> {
        // How many passes a budget has room for shows later.
        let passes = |a: &Asked| if manner.budget.is_some() { 1 } else { a.ask.passes.max(1) };
        let units = asked.iter().map(|a| passes(a) as usize).sum();
        app.foresee(units, asked.iter().map(|a| u64::from(passes(a)) * a.positions()).sum())?;
        let (sender, news) = unbounded_channel();
        let job = Questions::new(graph, app.work.clone(), asked, manner, sender, permit);
        app.work.submit(job.clone());
        let deadline = app.deadline();
        // A client that has stopped reading does not ask for news, and must not keep its place in the queue.
        let late = Arc::downgrade(&job);
        tokio::spawn(async move {
            tokio::time::sleep_until(deadline).await;
            if let Some(job) = late.upgrade() {
                job.cancel();
            }
        });
        Ok(Listener { job, news, deadline: Box::pin(tokio::time::sleep_until(deadline)), over: false })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<News, Problem>> {
        match self.news.poll_recv(context) {
            Poll::Ready(Some(News::Broken)) => Poll::Ready(Err(Problem::internal("a pass ended in a panic"))),
            Poll::Ready(Some(news)) => {
                self.job.heard(&news);
                Poll::Ready(Ok(news))
            }
            // The job holds the sender, so this is a job that was dropped.
            Poll::Ready(None) => Poll::Ready(Err(ending())),
            Poll::Pending => self.deadline.as_mut().poll(context).map(|()| Err(Problem::late())),
        }
    }

    async fn next(&mut self) -> Result<News, Problem> {
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
    let (manner, passes) = app.manner(&r, false, r.queries.as_ref().map_or(1, Vec::len))?;
    let as_json = |text: String| ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    match (&r.query, &r.queries) {
        (Some(texts), None) => {
            let permit = app.admit()?;
            let (asked, permit) = app.asked(&live, &graph, &r, std::slice::from_ref(texts), passes, permit).await?;
            let asked = asked.into_iter().collect::<Result<Vec<Asked>, Problem>>()?;
            let mut listener = Listener::new(&app, graph, asked, manner, permit)?;
            match listener.next().await? {
                News::Final(_, reply) => reply.map(as_json).map_err(Problem::internal),
                News::SoFar(_) | News::Broken => Err(Problem::internal("a lone question had news before its answer")),
            }
        }
        (None, Some(queries)) => {
            if queries.is_empty() || queries.len() > app.limits.batch {
                let error = format!("found {} queries, expected 1 to {}", queries.len(), app.limits.batch);
                return Err(Problem::bad(error));
            }
            let mut replies: Vec<Option<String>> = vec![None; queries.len()];
            let (mut asked, mut places) = (Vec::new(), Vec::new());
            let failed = |query: &[String; 3], problem: Problem| {
                let Problem { error, code, remedy, near } = problem;
                let failed = FailedQuery { query: query.clone(), error, code, remedy, near };
                serde_json::to_string(&failed).unwrap_or_default()
            };
            let permit = app.admit()?;
            let (questions, permit) = app.asked(&live, &graph, &r, queries, passes, permit).await?;
            for (i, question) in questions.into_iter().enumerate() {
                match question {
                    Ok(question) => {
                        asked.push(question);
                        places.push(i);
                    }
                    Err(problem) => replies[i] = Some(failed(&queries[i], problem)),
                }
            }
            let expected = asked.len();
            if expected > 0 {
                let mut listener = Listener::new(&app, graph, asked, manner, permit)?;
                for _ in 0..expected {
                    if let News::Final(q, reply) = listener.next().await? {
                        let i = places[q];
                        replies[i] = Some(reply.unwrap_or_else(|e| failed(&queries[i], Problem::internal(e))));
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
        this.poll(context).map(|news| {
            let (event, over) = match news {
                Ok(News::SoFar(reply)) => (Event::default().event("answers").data(reply), false),
                Ok(News::Final(_, Ok(reply))) => (Event::default().event("done").data(reply), true),
                Ok(News::Final(_, Err(error))) => (problem(Problem::internal(error)), true),
                Ok(News::Broken) => (problem(Problem::internal("a pass ended in a panic")), true),
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
        body = Reply<'static>, content_type = "text/event-stream"),
    ReadProblems, BodyProblems))]
pub async fn stream(State(app): SharedApp, request: Request) -> Result<Response, Problem> {
    let r: Arc<PredictRequest> = Arc::new(json_body(&app, request).await?);
    let (Some(texts), None) = (&r.query, &r.queries) else {
        return Err(Problem::bad("expected query: a stream answers one question"));
    };
    let live = app.live(r.graph.as_deref())?;
    let graph = live.graph();
    let (manner, passes) = app.manner(&r, true, 1)?;
    let permit = app.admit()?;
    let (asked, permit) = app.asked(&live, &graph, &r, std::slice::from_ref(texts), passes, permit).await?;
    let asked = asked.into_iter().collect::<Result<Vec<Asked>, Problem>>()?;
    let listener = Listener::new(&app, graph, asked, manner, permit)?;
    Ok(Sse::new(listener).keep_alive(KeepAlive::default()).into_response())
}
