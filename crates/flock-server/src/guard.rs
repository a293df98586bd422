//! What stands before every route: who may come in, what every answer carries, and what is counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::App;
use crate::problem::Problem;

/// Scripts, styles and connections of our own only; nothing may frame the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Checks a request, lets it through, counts it and adds headers to the answer.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", |m| m.as_str()).to_string();
    let mut response = match app.may_enter(&request, &route) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    app.metrics.request(&route, response.status().as_u16(), begin.elapsed());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

impl App {
    fn may_enter(&self, request: &Request, route: &str) -> Result<(), Problem> {
        let text = |name: HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok());
        let host = text(header::HOST).unwrap_or("");
        // A page elsewhere may point a name of its own at this machine; such a name is not one of ours.
        if self.loopback && !is_local(host) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "this server answers to localhost and 127.0.0.1 only"));
        }
        if request.method() == Method::POST
            && let Some(origin) = text(header::ORIGIN)
            && origin.split_once("://").map(|(_, from)| from) != Some(host)
        {
            return Err(Problem::new(StatusCode::FORBIDDEN, "requests from pages of other sites are refused"));
        }
        let open = matches!(route, "/" | "/{file}" | "/api/v1/health");
        if self.guard_reads && !open { self.check_token(request) } else { Ok(()) }
    }

    /// Whether a request may change something.
    pub(crate) fn may_write(&self, request: &Request) -> Result<(), Problem> {
        if !self.writable {
            let error = "this server is read-only; hint: start it with --token";
            return Err(Problem::new(StatusCode::FORBIDDEN, error));
        }
        self.check_token(request)
    }

    fn check_token(&self, request: &Request) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let shown = request.headers().get(header::AUTHORIZATION).and_then(|v| v.as_bytes().strip_prefix(b"Bearer "));
        if shown.is_some_and(|shown| same(shown, token.as_bytes())) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "expected the header Authorization: Bearer TOKEN with the server's token",
        ))
    }
}

/// Takes as long for any text of one length.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (x, y)| different | (x ^ y)) == 0
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The counters.
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let graph = app.main.graph();
    let gauges = [
        ("flock_jobs_waiting", "Jobs with work that nobody has begun.", app.work.waiting() as f64),
        (
            "flock_requests_open",
            "Requests admitted and not answered.",
            (app.limits.queue - app.queue.available_permits()) as f64,
        ),
        ("flock_graph_triples", "Triples of the graph.", graph.topology().num_triples() as f64),
        ("flock_graph_edits", "Triples kept beside the index.", graph.topology().num_edits() as f64),
    ];
    let text = app.metrics.text(app.work.units.load(Ordering::Relaxed), &gauges);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// For paths that do not exist.
pub async fn nothing_here() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here; hint: /docs lists what there is")
}

/// For methods that a path does not have.
pub async fn wrong_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method; hint: see /docs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let local = ["localhost", "LOCALHOST:7878", "127.0.0.1:1", "127.8.8.8", "[::1]:7878", "[::1]"];
        assert!(local.iter().all(|h| is_local(h)));
        let other = ["", "example.org", "localhost.example.org:80", "10.0.0.1", "[::2]:80", "127.0.0.1.nip.io"];
        assert!(!other.iter().any(|h| is_local(h)));
    }

    #[test]
    fn tokens() {
        assert!(same(b"abc", b"abc") && !same(b"abc", b"abd") && !same(b"", b"abc") && !same(b"abcd", b"abc"));
    }
}
