//! Flock over HTTP: a JSON API, a graph that can be edited while it is asked, and a page for people.
//!
//! - [`routes`]: the routes, what they take and what they give; [`problem`]: what they say when something is wrong.
//! - [`jobs`]: the threads that compute; [`ask`]: questions as jobs for them.
//! - [`live`]: snapshots and edits; [`store`]: edits on disk.
//! - `guard`: who may come in; `peer`: who is at the other end; `body`: bodies within a size, a time and a common room.
//! - [`serve`]: sockets, limits, shutdown. [`router`] is all of it without a socket.

pub mod ask;
mod body;
mod docs;
mod guard;
pub mod jobs;
pub mod live;
mod metrics;
mod page;
mod peer;
pub mod problem;
pub mod routes;
mod serve;
pub mod store;
mod turns;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use flock_kg::Predictor;
use tokio::sync::Semaphore;

use jobs::Work;
use live::Live;
use metrics::Metrics;
use problem::Problem;
use routes::{complete, explain, graphs, names, predict, score, status, triples};

pub use serve::{ServeError, serve};

/// Upper limits on what clients may ask for.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// Bytes of a JSON body.
    pub body: usize,
    /// Bytes of an uploaded graph, as it comes and unpacked.
    pub upload: usize,
    /// Questions in a request.
    pub batch: usize,
    /// Passes of a question.
    pub passes: u32,
    /// Base walk count of a question.
    pub walks: u32,
    /// Triples in an edit.
    pub edits: usize,
    /// Requests that wait or are worked on; more are told to come back.
    pub queue: usize,
    /// Uploaded graphs kept.
    pub graphs: usize,
    /// Bytes of memory of all uploaded graphs kept, but for the last one.
    pub graphs_memory: usize,
    /// Open connections.
    pub connections: usize,
    /// Open connections of one client.
    pub connections_per_client: usize,
    /// Bytes of all uploads that are on their way or being read.
    pub uploading: usize,
    /// Bytes of all JSON bodies that are on their way or being read.
    pub bodies: usize,
    /// Time for an answer.
    pub deadline: Duration,
    /// Time for a request's head, for the next part of its body, and for a client to take some of its answer.
    pub body_time: Duration,
    /// Bytes a second at which a body must come, after the first `body_time`.
    pub body_rate: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 1 << 20,
            upload: 32 << 20,
            batch: 256,
            passes: 64,
            walks: 512,
            edits: 10_000,
            queue: 128,
            graphs: 8,
            graphs_memory: 512 << 20,
            connections: 1024,
            connections_per_client: 256,
            uploading: 64 << 20,
            bodies: 64 << 20,
            deadline: Duration::from_secs(30),
            body_time: Duration::from_secs(10),
            body_rate: 8 << 10,
        }
    }
}

/// What a server is made of.
pub struct Options {
    /// Where it listens; loopback unless told otherwise.
    pub listen: SocketAddr,
    /// Host names it goes by besides those of this machine, such as the one of a proxy in front of it.
    pub names: Vec<String>,
    /// The graph, perhaps with edits kept on disk.
    pub main: Arc<Live>,
    /// Whether its edits are kept on disk.
    pub kept: bool,
    /// The models and the threads that compute.
    pub predictor: Predictor,
    /// What writers must show.
    pub token: Option<String>,
    /// Whether readers must show it too.
    pub guard_reads: bool,
    /// Upper limits on what clients may ask for.
    pub limits: Limits,
}

/// All that requests share.
pub struct App {
    main: Arc<Live>,
    kept: bool,
    uploads: Mutex<VecDeque<(String, Arc<Live>)>>,
    predictor: Predictor,
    work: Arc<Work>,
    queue: Arc<Semaphore>,
    upload_room: Arc<Semaphore>,
    body_room: Arc<Semaphore>,
    token: Option<String>,
    guard_reads: bool,
    loopback: bool,
    port: u16,
    names: Vec<String>,
    limits: Limits,
    metrics: Metrics,
}

impl App {
    /// Starts the threads that compute.
    pub fn new(options: Options) -> Arc<App> {
        // An empty token, which a variable without a value gives, is none.
        let token = options.token.filter(|token| !token.is_empty());
        Arc::new(App {
            main: options.main,
            kept: options.kept,
            uploads: Mutex::default(),
            work: Work::start(options.predictor.pool().clone()),
            predictor: options.predictor,
            queue: Arc::new(Semaphore::new(options.limits.queue)),
            upload_room: body::room_for(options.limits.uploading),
            body_room: body::room_for(options.limits.bodies),
            token,
            guard_reads: options.guard_reads,
            loopback: options.listen.ip().is_loopback(),
            port: options.listen.port(),
            names: options.names,
            limits: options.limits,
            metrics: Metrics::default(),
        })
    }

    /// An id that cannot be guessed: 128 bits of the system's randomness.
    fn new_id(&self) -> Result<String, Problem> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| Problem::internal(format!("no randomness for an id: {e}")))?;
        Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    /// Stops computing.
    pub fn close(&self) {
        self.work.close();
    }
}

/// Every route, with limits, guards and headers.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/v1/health", get(status::health))
        .route("/api/v1/info", get(status::info))
        .route("/api/v1/entities", get(names::entities))
        .route("/api/v1/relations", get(names::relations))
        .route("/api/v1/predict", post(predict::predict))
        .route("/api/v1/predict/stream", post(predict::stream))
        .route("/api/v1/explain", post(explain::explain))
        .route("/api/v1/complete", post(complete::complete))
        .route("/api/v1/complete/stream", post(complete::stream))
        .route("/api/v1/score", post(score::score))
        .route("/api/v1/neighbourhood", get(graphs::neighbourhood))
        .route("/api/v1/triples", post(triples::triples))
        .route("/api/v1/graphs", post(graphs::graphs))
        .route("/openapi.json", get(docs::openapi))
        .route("/docs", get(docs::page))
        .route("/metrics", get(status::metrics))
        .route("/", get(page::index))
        .route("/{file}", get(page::asset))
        .fallback(guard::nothing_here)
        .method_not_allowed_fallback(guard::wrong_method)
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}
