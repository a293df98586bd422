//! The routes under `/api/v1`: names in, JSON out. What they do is the library's work.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::header;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use flock_kg::answers::{ModelName, Reply};
use flock_kg::checkpoint::Task;
use flock_kg::ensemble::Ask;
use flock_kg::explain::{ExplainOptions, Explanation, explain as explain_answer};
use flock_kg::graph::{Format, Graph, LoadOptions, NamedEdit, Triple, UnknownName, load_reader};
use flock_kg::question::{BLANK, Question};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;
use utoipa::{IntoResponses, ToSchema};

use crate::App;
use crate::ask::{Asked, Manner, News, Questions, Served, Whole, pass_positions};
use crate::body::{Blocks, Room, read};
use crate::jobs::Job;
use crate::live::Live;
use crate::problem::{Code, Problem};
use crate::request::*;

type Shared = State<Arc<App>>;

/// The names of `among` in the graph.
type Candidates = Result<Arc<[u32]>, UnknownName>;

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
}

/// Names for a text.
#[derive(Serialize, ToSchema)]
pub struct NamesFound {
    /// Those that begin with the text first, then those near it.
    names: Vec<String>,
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

/// Part of a graph.
#[derive(Serialize, ToSchema)]
pub struct Neighbourhood {
    /// Entities, the one asked for first.
    entities: Vec<String>,
    /// How many neighbours each has in the whole graph.
    degrees: Vec<u32>,
    /// Head, relation and tail.
    triples: Vec<[String; 3]>,
}

/// What an edit did.
#[derive(Serialize, ToSchema)]
pub struct Edited {
    /// Triples that are new.
    added: usize,
    /// Triples that are gone.
    removed: usize,
    /// Triples of the graph now.
    triples: usize,
    /// Whether they are on disk.
    kept: bool,
}

/// An uploaded graph.
#[derive(Serialize, ToSchema)]
pub struct Uploaded {
    /// Its id, for `graph` in other requests. It is kept in memory until others push it out.
    graph: String,
    entities: u32,
    relations: u32,
    triples: usize,
    /// What was left out of the file, if anything but repeated triples.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    /// What may have gone wrong, such as a header that was read as a triple.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// What any route may say instead of an answer.
#[derive(IntoResponses)]
#[allow(dead_code)] // for the description
enum ReadProblems {
    /// The request makes no sense, or a graph cannot be read.
    #[response(status = 400)]
    Bad(Problem),
    /// A token is needed, or it is not the server's.
    #[response(status = 401)]
    Token(Problem),
    /// The graph has no such name, or there is no such graph.
    #[response(status = 404)]
    Unknown(Problem),
    /// Too much is waiting; `Retry-After` says when to come back.
    #[response(status = 429)]
    Busy(Problem),
    /// The server failed, or could not keep the edit.
    #[response(status = 500)]
    Failed(Problem),
    /// The answer was not ready in time, or the server is ending.
    #[response(status = 503)]
    Late(Problem),
}

/// What routes that take a body may say besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
enum BodyProblems {
    /// The server does not take this from here.
    #[response(status = 403)]
    Refused(Problem),
    /// The body came too slowly.
    #[response(status = 408)]
    Slow(Problem),
    /// The body is too large.
    #[response(status = 413)]
    Large(Problem),
    /// The body is of another type.
    #[response(status = 415)]
    Type(Problem),
}

impl App {
    fn live(&self, id: Option<&str>) -> Result<Arc<Live>, Problem> {
        let Some(id) = id else { return Ok(self.main.clone()) };
        let uploads = self.uploads.lock().unwrap_or_else(|e| e.into_inner());
        let found = uploads.iter().find(|(known, _)| known == id).map(|(_, live)| live.clone());
        found.ok_or_else(|| {
            Problem::new(Code::UnknownGraph, "there is no such uploaded graph (any more)")
                .remedy("upload it again with POST /api/v1/graphs, or leave graph out")
        })
    }

    fn served(&self, task: Task) -> Result<&Arc<Served>, Problem> {
        self.models.iter().find(|m| m.name.task == task).ok_or_else(|| {
            let asked = if task == Task::Entity { "for a head or a tail" } else { "for a relation" };
            Problem::new(Code::NoModel, format!("this server has no {task} model and answers no questions {asked}"))
        })
    }

    fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.queue.clone().try_acquire_owned().map_err(|_| {
            Problem::new(Code::Busy, "too many requests are waiting").remedy("send it again after Retry-After seconds")
        })
    }

    /// Refuses what could not be done in time behind all that waits, before it is begun.
    fn foresee(&self, units: usize, positions: u64) -> Result<(), Problem> {
        if self.work.waiting() > 0 && self.work.expected(units, positions) > self.limits.deadline.mul_f64(0.8) {
            let problem = Problem::new(Code::Busy, "so much is waiting that the answer would be late");
            return Err(problem.remedy("send it again after Retry-After seconds, or ask for fewer passes or walks"));
        }
        Ok(())
    }

    fn ask(&self, graph: &Graph, served: &Served, walks: Option<u32>, passes: u32, seed: u64) -> Result<Ask, Problem> {
        let topology = graph.topology();
        let rule = served.model.meta().base_walks(topology.num_nodes(), topology.num_triples());
        let walks = within("walks", walks, rule, 1, self.limits.walks)?;
        Ok(Ask { walks, passes, seed, options: served.model.walk_options() })
    }

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

    fn deadline(&self) -> Instant {
        Instant::now() + self.limits.deadline
    }
}

/// The most answers listed in the replies to one request.
const LISTED: usize = 100_000;
/// The most listed in each reply of a stream.
const STREAMED: usize = 1_000;
/// The most that get a reason.
const EXPLAINED: usize = 100;
/// So many misspelt questions of a request are told near names.
const NEAR_LOOKUPS: usize = 16;

/// What a task that did not come to its end means: a bug of ours, or the end of the server.
fn broken(e: tokio::task::JoinError) -> Problem {
    if e.is_panic() { Problem::internal("a request ended in a panic") } else { ending() }
}

fn ending() -> Problem {
    Problem::new(Code::Ending, "the server is ending").remedy("send it again when the server is back")
}

/// Body of a request, of a type, within a size and a time. What is held of it counts against `room`.
async fn body(app: &App, request: Request, most: usize, kinds: &[&str], room: &mut Room) -> Result<Blocks, Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if !kinds.contains(&kind.as_str()) {
        let error = format!("found Content-Type {kind:?}, expected {}", kinds.join(", "));
        return Err(Problem::new(Code::WrongType, error));
    }
    read(request.into_body(), most, app.limits.body_time, app.limits.body_rate, room).await
}

async fn json_body<T: serde::de::DeserializeOwned>(app: &App, request: Request) -> Result<T, Problem> {
    let mut room = Room::new(&app.body_room);
    json(&body(app, request, app.limits.body, &["application/json"], &mut room).await?.into_vec())
}

fn query<T>(query: Result<Query<T>, axum::extract::rejection::QueryRejection>) -> Result<T, Problem> {
    query.map(|Query(value)| value).map_err(|e| Problem::bad(e.body_text()))
}

type Queried<T> = Result<Query<T>, axum::extract::rejection::QueryRejection>;

/// The server lives.
#[utoipa::path(get, path = "/api/v1/health", security(()), responses(
    (status = 200, description = "The server lives", body = Health)))]
pub async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// The graph, the models and the limits.
#[utoipa::path(get, path = "/api/v1/info", params(GraphQuery), responses(
    (status = 200, description = "The graph, the models and the limits", body = Info), ReadProblems))]
pub async fn info(State(app): Shared, q: Queried<GraphQuery>, request: Request) -> Result<Json<Info>, Problem> {
    let q = query(q)?;
    let live = app.live(q.graph.as_deref())?;
    let graph = live.graph();
    let topology = graph.topology();
    let models = app.models.iter().map(|m| ModelInfo {
        name: m.name.clone(),
        walks: m.model.meta().base_walks(topology.num_nodes(), topology.num_triples()),
        calibrated: live.calibrations.of(m.name.task).is_some_and(|c| c.model == m.name.sha256 && c.is_of(topology)),
    });
    let l = &app.limits;
    Ok(Json(Info {
        version: env!("CARGO_PKG_VERSION"),
        name: live.name.clone(),
        entities: topology.num_nodes(),
        relations: topology.num_relations(),
        triples: topology.num_triples(),
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
        examples: examples(&graph),
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

/// Entities for a text, as one types.
#[utoipa::path(get, path = "/api/v1/entities", params(NamesQuery), responses(
    (status = 200, description = "Names, the best first", body = NamesFound), ReadProblems))]
pub async fn entities(State(app): Shared, q: Queried<NamesQuery>) -> Result<Json<NamesFound>, Problem> {
    names(&app, query(q)?, true).await
}

/// Relations for a text, as one types.
#[utoipa::path(get, path = "/api/v1/relations", params(NamesQuery), responses(
    (status = 200, description = "Names, the best first", body = NamesFound), ReadProblems))]
pub async fn relations(State(app): Shared, q: Queried<NamesQuery>) -> Result<Json<NamesFound>, Problem> {
    names(&app, query(q)?, false).await
}

async fn names(app: &Arc<App>, q: NamesQuery, entities: bool) -> Result<Json<NamesFound>, Problem> {
    let k = within("k", q.k, 10, 1, 100)?;
    if q.q.len() > 4096 {
        return Err(Problem::bad("q is longer than 4096 bytes"));
    }
    let live = app.live(q.graph.as_deref())?;
    let permit = app.admit()?;
    let search = move || {
        let _permit = permit; // till the work is done, whoever waits for it
        let (graph, indexes) = (live.graph(), live.indexes());
        let (names, index) = match entities {
            true => (graph.entities(), &indexes.entities),
            false => (graph.relations(), &indexes.relations),
        };
        index.search(names, &q.q, k).into_iter().map(str::to_string).collect()
    };
    let names = tokio::task::spawn_blocking(search).await.map_err(broken)?;
    Ok(Json(NamesFound { names }))
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
#[utoipa::path(post, path = "/api/v1/predict", request_body = PredictRequest, responses(
    (status = 200, description = "A reply to `query`, or replies to `queries`", body = PredictReply), ReadProblems, BodyProblems))]
pub async fn predict(State(app): Shared, request: Request) -> Result<Response, Problem> {
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
#[utoipa::path(post, path = "/api/v1/predict/stream", request_body = PredictRequest, responses(
    (status = 200, description = "Server-sent events. `answers` and `done` carry a reply, `problem` carries a problem",
        body = Reply<'static>, content_type = "text/event-stream"),
    ReadProblems, BodyProblems))]
pub async fn stream(State(app): Shared, request: Request) -> Result<Response, Problem> {
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

/// Stops a piece of work when nobody waits for it.
struct Abandon<J: Job>(Arc<J>, fn(&J));

impl<J: Job> Drop for Abandon<J> {
    fn drop(&mut self) {
        (self.1)(&self.0);
    }
}

/// The reasons for an answer.
#[utoipa::path(post, path = "/api/v1/explain", request_body = ExplainRequest, responses(
    (status = 200, description = "The ways by which walks carried the answer", body = Explanation<'static>), ReadProblems, BodyProblems))]
pub async fn explain(State(app): Shared, request: Request) -> Result<Response, Problem> {
    let r: ExplainRequest = json_body(&app, request).await?;
    let live = app.live(r.graph.as_deref())?;
    let graph = live.graph();
    let permit = app.admit()?;
    let (of, triple, place) = (graph.clone(), r.triple.clone(), r.blank as usize);
    let parse = move || -> Result<(Question, u32, OwnedSemaphorePermit), Problem> {
        let mut texts = triple.each_ref().map(String::as_str);
        let answer = std::mem::replace(&mut texts[place], BLANK);
        let question = Question::parse(&of, texts)?;
        let answer = if place == 1 { of.parse_relation(answer) } else { of.parse_entity(answer) }?;
        Ok((question, answer, permit))
    };
    let (question, answer, permit) = tokio::task::spawn_blocking(parse).await.map_err(broken)??;
    let served = app.served(question.task())?.clone();
    let calibration = live.calibrations.of(question.task()).cloned();
    let passes = within("passes", r.passes, 4, 1, app.limits.passes.min(16))?;
    let top = within("top", r.top, 5, 1, 1000)?;
    let ask = app.ask(&graph, &served, r.walks, passes, r.seed)?;
    let options = ExplainOptions::default();
    let times = if r.check { 2 + options.draws } else { 1 };
    let positions = u64::from(passes * times) * pass_positions(&served.model, &question, &ask);
    // One unit: it has its turn when each job before it has had one.
    app.foresee(1, positions)?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let work = app.work.clone();
    let over = Arc::new(AtomicBool::new(false));
    let left = over.clone();
    let run = move || {
        let _permit = permit;
        let go_on = || !left.load(Ordering::Relaxed);
        let explain = || explain_answer(&go_on, &served.model, &graph, &question, answer, ask, top, r.check, &options);
        let calibrated = |found: Explanation<'_>| match &calibration {
            Some(by) => serde_json::to_string(&found.calibrated(by, &served.model, graph.topology())),
            None => serde_json::to_string(&found),
        };
        let found = work.install(|| explain().map(calibrated));
        let _ = sender.send(found);
    };
    let job = Arc::new(Whole { work: Mutex::new(Some(run)), over, positions });
    app.work.submit(job.clone());
    let _abandon = Abandon(job, |job| job.over.store(true, Ordering::Relaxed));
    match tokio::time::timeout_at(app.deadline(), receiver).await {
        Ok(Ok(Ok(Ok(text)))) => Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response()),
        Ok(Ok(Ok(Err(e)))) => Err(Problem::internal(e)),
        Ok(Ok(Err(e))) => Err(e.into()),
        Ok(Err(_)) if app.work.is_closed() => Err(ending()),
        Ok(Err(_)) => Err(Problem::internal("an explanation ended in a panic")),
        Err(_) => Err(Problem::late()),
    }
}

/// The graph around an entity.
#[utoipa::path(get, path = "/api/v1/neighbourhood", params(NeighbourhoodQuery), responses(
    (status = 200, description = "Entities and triples near by", body = Neighbourhood), ReadProblems))]
pub async fn neighbourhood(State(app): Shared, q: Queried<NeighbourhoodQuery>) -> Result<Json<Neighbourhood>, Problem> {
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
        Ok(Neighbourhood {
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

/// Adds and removes triples, all or none; the next question sees them.
#[utoipa::path(post, path = "/api/v1/triples", request_body = TriplesRequest, responses(
    (status = 200, description = "The edit is made", body = Edited), ReadProblems, BodyProblems,
    (status = 409, description = "Another server has the file of edits", body = Problem),
    (status = 507, description = "The disk is full", body = Problem)))]
pub async fn triples(State(app): Shared, request: Request) -> Result<Json<Edited>, Problem> {
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
    Ok(Json(Edited { added: outcome.added, removed: outcome.removed, triples: outcome.triples, kept }))
}

/// Takes a graph of one's own: TSV, CSV, N-Triples or Turtle. It is kept in memory only.
#[utoipa::path(post, path = "/api/v1/graphs", params(UploadQuery), request_body(description = "A file of triples, plain or packed with gzip or zstd",
    content((String = "text/tab-separated-values"), (String = "text/csv"), (String = "text/turtle"), (String = "application/n-triples"))), responses(
    (status = 200, description = "The graph is loaded", body = Uploaded), ReadProblems, BodyProblems))]
pub async fn graphs(State(app): Shared, q: Queried<UploadQuery>, request: Request) -> Result<Json<Uploaded>, Problem> {
    app.may_write(&request)?;
    let q = query(q)?;
    // Types that a page of another site cannot send unasked.
    let kinds = ["text/tab-separated-values", "text/csv", "text/turtle", "application/n-triples"];
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    // Whatever comes as tab-separated is looked at: pages call anything so.
    let format = match kind.split(';').next().unwrap_or("").trim() {
        "text/csv" => Some(Format::Csv),
        "text/turtle" => Some(Format::Turtle),
        "application/n-triples" => Some(Format::NTriples),
        _ => None,
    };
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
    let max_bytes = Some(app.limits.upload as u64);
    let load = move || {
        let (_permit, _room) = (permit, room);
        load_reader(&shown, blocks, &LoadOptions { format, max_bytes, ..LoadOptions::default() })
    };
    let loaded = tokio::task::spawn_blocking(load).await.map_err(broken)?;
    let (graph, report) = loaded.map_err(|e| Problem::bad_graph(&e))?;
    let warnings = report.warnings().iter().map(ToString::to_string).collect();
    let (entities, relations) = (graph.topology().num_nodes(), graph.topology().num_relations());
    let triples = graph.topology().num_triples();
    let live = Live::open(name, graph, None, Default::default())?;
    let id = app.new_id();
    let mut uploads = app.uploads.lock().unwrap_or_else(|e| e.into_inner());
    uploads.push_back((id.clone(), live));
    let memory = |uploads: &VecDeque<(String, Arc<Live>)>| -> usize {
        uploads.iter().map(|(_, live)| live.graph().memory_bytes()).sum()
    };
    while uploads.len() > app.limits.graphs || uploads.len() > 1 && memory(&uploads) > app.limits.graphs_memory {
        uploads.pop_front();
    }
    Ok(Json(Uploaded { graph: id, entities, relations, triples, left_out: report.left_out(), warnings }))
}
