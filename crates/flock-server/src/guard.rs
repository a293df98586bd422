//! What stands before every route: who may come in, what every answer carries, and what is counted.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use subtle::ConstantTimeEq;

use crate::App;
use crate::peer::Peer;
use crate::problem::{Code, Problem};

/// Scripts, styles and connections of our own only; nothing may frame the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Checks a request, lets it through, counts it when its answer has been sent, and adds headers to the answer.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", |m| m.as_str()).to_string();
    let answer = match app.may_enter(&request, &route) {
        Ok(()) => unwound(next.run(request)).await,
        Err(problem) => Err(problem),
    };
    let response = answer.unwrap_or_else(IntoResponse::into_response);
    let status = response.status().as_u16();
    let mut response = response.map(|body| Body::new(MeteredBody { body, app, route, status, begin }));
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

/// Turns a panic into a problem: it would be a bug of ours, and the client should hear of it. The panic itself is on standard error.
async fn unwound(answer: impl Future<Output = Response>) -> Result<Response, Problem> {
    let mut answer = pin!(answer);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(_) => Poll::Ready(Err(Problem::internal("a request ended in a panic"))),
    })
    .await
}

/// The body of an answer. When all of it has been sent, or nobody reads on, the request is counted: a stream takes as long as its last
/// event.
struct MeteredBody {
    body: Body,
    app: Arc<App>,
    route: String,
    status: u16,
    begin: Instant,
}

impl Drop for MeteredBody {
    fn drop(&mut self) {
        self.app.metrics.request(&self.route, self.status, self.begin.elapsed());
    }
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl App {
    fn may_enter(&self, request: &Request, route: &str) -> Result<(), Problem> {
        let text = |name: HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok());
        let host = text(header::HOST).unwrap_or("");
        // A page elsewhere may point a name of its own at this machine; such a name is not one of ours.
        if self.loopback && !is_local(host) && !self.is_own_name(host) {
            let problem = Problem::new(Code::WrongHost, format!("this server does not go by the name {host:?}"));
            return Err(problem.remedy("use the address it listens on, or a name it was told to answer to"));
        }
        if request.method() == Method::POST {
            // Browsers say where a request comes from; no page can change that.
            let other_origin =
                text(header::ORIGIN).is_some_and(|o| o.split_once("://").map(|(_, from)| from) != Some(host));
            let other_site = text(HeaderName::from_static("sec-fetch-site"))
                .is_some_and(|site| site != "same-origin" && site != "none");
            if other_origin || other_site {
                return Err(Problem::new(Code::OtherSite, "requests from pages of other sites are refused"));
            }
        }
        // The page and the description are the same on every server: the page's link to it shows no token, and needs none.
        let open = matches!(route, "/" | "/{file}" | "/docs" | "/openapi.json" | "/api/v1/health");
        if self.guard_reads && !open { self.check_token(request) } else { Ok(()) }
    }

    /// Whether a request may change something: with the token, or, if the server has none, straight from a local program.
    pub(crate) fn may_write(&self, request: &Request) -> Result<(), Problem> {
        if self.token.is_some() {
            return self.check_token(request);
        }
        self.is_direct(request).map_err(|why| {
            Problem::new(Code::ReadOnly, format!("edits and uploads are refused: {why}"))
                .remedy("ask whoever runs the server to give it a token, and send that token")
        })
    }

    /// Whether the server takes changes from whoever sent this request, now or with a token.
    pub(crate) fn is_writable(&self, request: &Request) -> bool {
        self.token.is_some() || self.is_direct(request).is_ok()
    }

    /// Whether a request comes straight from a program of this server's user on this machine. A proxy connects from this machine
    /// too and passes strangers on, so every sign of one counts, and so does every doubt. `docs/reference/http-api.md` has the rule and its limits.
    fn is_direct(&self, request: &Request) -> Result<(), &'static str> {
        if !self.loopback {
            return Err("it listens on a public address and has no token");
        }
        // Older proxies speak 1.0 to the server behind them, nginx before 1.29.7 among them.
        if request.version() < Version::HTTP_11 {
            return Err("without a token they take HTTP/1.1");
        }
        if request.headers().keys().any(|name| is_of_a_proxy(name.as_str())) {
            return Err("the request came through a proxy, and the server has no token");
        }
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = hosts.next().and_then(|v| v.to_str().ok()).unwrap_or("");
        if hosts.next().is_some() || !is_local(host) || port_of(host) != Some(self.port) {
            return Err("without a token they must be sent to localhost and the very port it listens on");
        }
        if let Some(peer) = request.extensions().get::<Peer>()
            && (!peer.client.ip().is_loopback() || peer.is_same_user() == Some(false))
        {
            return Err("the request came from another user's program, perhaps a proxy, and the server has no token");
        }
        Ok(())
    }

    fn is_own_name(&self, host: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(name_of(host)))
    }

    fn check_token(&self, request: &Request) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let Some(shown) = request.headers().get(header::AUTHORIZATION) else {
            let problem = Problem::new(Code::TokenNeeded, "this needs the server's token");
            return Err(problem.remedy("send the header Authorization: Bearer TOKEN"));
        };
        if shown.as_bytes().strip_prefix(b"Bearer ").is_some_and(|shown| same(shown, token.as_bytes())) {
            return Ok(());
        }
        let problem = Problem::new(Code::WrongToken, "the token is not the server's");
        Err(problem.remedy("send the header Authorization: Bearer TOKEN with the server's token"))
    }
}

/// Whether only proxies send a header of this name (in lower case).
fn is_of_a_proxy(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-remote-ip",
        "true-client-ip",
        "proxy-client-ip",
        "wl-proxy-client-ip",
        "cdn-loop",
        "x-proxyuser-ip",
    ];
    const BEGINNINGS: [&str; 11] = [
        "x-forwarded",
        "x-original-",
        "x-envoy-",
        "x-amz",
        "x-azure-",
        "x-appengine-",
        "x-arr-",
        "x-varnish",
        "cf-",
        "fastly-",
        "fly-",
    ];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|b| name.starts_with(b))
}

/// Whether two texts are the same. Takes as long for any text of one length, so that its time tells nothing of the token.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// The name in a `Host` header, without port and brackets.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    }
}

/// The port in a `Host` header; 80 if there is none.
fn port_of(host: &str) -> Option<u16> {
    let rest = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.1,
        None => &host[host.find(':').unwrap_or(host.len())..],
    };
    if rest.is_empty() { Some(80) } else { rest.strip_prefix(':')?.parse().ok() }
}

fn is_local(host: &str) -> bool {
    let name = name_of(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// For paths that do not exist.
pub async fn nothing_here() -> Problem {
    Problem::new(Code::NotFound, "there is nothing here").remedy("/docs lists what there is")
}

/// For methods that a path does not have.
pub async fn wrong_method() -> Problem {
    Problem::new(Code::MethodNotAllowed, "this path does not take that method").remedy("/docs lists what there is")
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
        let ports =
            ["localhost", "localhost:7878", "[::1]:7878", "[::1]", "localhost:", "localhost:x", "[::1", "a:1:2"];
        let want = [Some(80), Some(7878), Some(7878), Some(80), None, None, None, None];
        assert_eq!(ports.map(port_of), want);
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error() {
        let lost = unwound(async { panic!("on purpose") }).await.unwrap_err();
        assert_eq!((lost.code, lost.status().as_u16()), (Code::Internal, 500));
        assert!(unwound(async { "fine".into_response() }).await.is_ok());
    }

    #[test]
    fn tokens() {
        assert!(same(b"abc", b"abc") && !same(b"abc", b"abd") && !same(b"", b"abc") && !same(b"abcd", b"abc"));
    }
}
