//! The routes under `/api/v1`: names in, JSON out. What they do is the library's work. A file holds its handlers with what they take
//! and give; here is what they share. Unknown fields of a request are refused: a misspelled option should not be ignored in silence.

pub mod complete;
pub mod explain;
pub mod graphs;
pub mod names;
pub mod predict;
pub mod score;
pub mod status;
pub mod triples;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::header;
use flock_kg::Inquiry;
use flock_kg::graph::Graph;
use flock_kg::shown::{name_labels, shown_names};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use utoipa::IntoResponses;

use crate::App;
use crate::body::{Blocks, Room, read};
use crate::live::Live;
use crate::problem::{Code, Problem};

type SharedApp = State<Arc<App>>;

type QueryResult<T> = Result<Query<T>, QueryRejection>;

/// What any route may say instead of an answer.
#[derive(IntoResponses)]
#[allow(dead_code)] // for the description
pub(crate) enum ReadProblems {
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
pub(crate) enum BodyProblems {
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

    /// The library's way to ask about a graph, within this server's limits.
    fn inquiry<'a>(
        &'a self,
        live: &Live,
        graph: &'a Graph,
        walks: Option<u32>,
        passes: Option<u32>,
        seed: u64,
        most_passes: u32,
    ) -> Result<Inquiry<'a>, Problem> {
        let mut inquiry = self.predictor.on(graph).seed(seed).calibrations(&live.calibrations).pass_limit(most_passes);
        if walks.is_some() {
            inquiry = inquiry.walks(within("walks", walks, 1, 1, self.limits.walks)?);
        }
        if passes.is_some() {
            inquiry = inquiry.passes(within("passes", passes, 1, 1, most_passes)?);
        }
        Ok(inquiry)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.limits.deadline
    }
}

/// How names are shown, as far as that is not the full name.
fn shown<'a>(graph: &Graph, names: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    shown_names(graph, names).into_iter().map(|(name, shown)| (name.to_string(), shown)).collect()
}

/// The labels of names that have one.
fn labels<'a>(graph: &'a Graph, names: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    name_labels(graph, names).into_iter().map(|(name, label)| (name.to_string(), label.to_string())).collect()
}

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
        return Err(Problem::new(Code::WrongType, error).remedy("send one of these types in the header Content-Type"));
    }
    read(request.into_body(), most, app.limits.body_time, app.limits.body_rate, room).await
}

/// Body of a request as JSON.
async fn json_body<T: DeserializeOwned>(app: &App, request: Request) -> Result<T, Problem> {
    let mut room = Room::new(&app.body_room);
    json(&body(app, request, app.limits.body, &["application/json"], &mut room).await?.into_vec())
}

/// The parameters in the address of a request.
fn query<T>(query: QueryResult<T>) -> Result<T, Problem> {
    query.map(|Query(value)| value).map_err(|e| Problem::bad(e.body_text()))
}

/// Reads a body of JSON.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|e| Problem::bad(format!("the body is not what was expected: {e}")))
}

/// A number within limits, or what stands for it when it is left out.
pub fn within<T: PartialOrd + std::fmt::Display + Copy>(
    name: &str,
    value: Option<T>,
    default: T,
    least: T,
    most: T,
) -> Result<T, Problem> {
    match value {
        None => Ok(default),
        Some(v) if v >= least && v <= most => Ok(v),
        Some(v) => Err(Problem::bad(format!("{name} is {v}, expected {least} to {most}"))),
    }
}
