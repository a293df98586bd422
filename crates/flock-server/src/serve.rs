//! Sockets: connections in number and in time, and an end that lets answers finish.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;
use tower::ServiceExt;

use crate::peer::{Client, Peer};
use crate::problem::{Code, Problem};
use crate::{App, Options, router};

/// Time for open answers when the server is told to end.
const GRACE: Duration = Duration::from_secs(10);

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// The address.
        listen: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// No threads.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
}

/// Listens until interrupted or told to terminate, then finishes what is open. `ready` hears the address once it is bound.
pub fn serve(options: Options, ready: impl FnOnce(std::net::SocketAddr)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(ServeError::Start)?.block_on(run(options, ready))
}

async fn run(mut options: Options, ready: impl FnOnce(std::net::SocketAddr)) -> Result<(), ServeError> {
    let listen = options.listen;
    let refused = |source| ServeError::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(refused)?;
    let server = listener.local_addr().map_err(refused)?;
    ready(server);
    options.listen = server; // with the port, if the system chose it
    let limits = options.limits;
    let clients = Clients::new(limits.connections_per_client);
    let app = App::new(options);
    let router = router(app.clone());
    let room = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let end = ended();
    tokio::pin!(end);
    loop {
        // A permit first: when all are taken, new connections wait in the system's queue.
        let accepted = async {
            let permit = room.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = &mut end => break,
            accepted = accepted => accepted,
        };
        let Ok((stream, client)) = accepted else {
            // Out of file descriptors, most likely; they come back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(place) = clients.enter(client.ip()) else {
            // What fits the system's buffer is sent, and nobody waits for it.
            let _ = stream.try_write(too_many(limits.connections_per_client).as_bytes());
            continue;
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(axum::body::Body::new) as Request;
            request.extensions_mut().insert(Peer { client, server });
            router.clone().oneshot(request)
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.body_time).max_headers(64).max_buf_size(64 << 10);
        let stream = TimedStream { stream, patience: limits.body_time, stuck: None };
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // Errors here are the client's: it went away or spoke no HTTP.
            let _ = connection.await;
            drop((permit, place));
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(GRACE) => {}
    }
    app.close();
    Ok(())
}

/// The answer to a connection too many, in the form of all problems.
fn too_many(most: usize) -> String {
    let problem = Problem::new(Code::Busy, format!("one client may have {most} connections open, and has"));
    let body = serde_json::to_string(&problem.remedy("close some, or send requests one after another on one"));
    let body = body.unwrap_or_default();
    format!(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: {}\r\nRetry-After: 1\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Open connections by client.
#[derive(Clone)]
struct Clients {
    open: Arc<Mutex<HashMap<Client, usize>>>,
    most: usize,
}

/// The place of one connection among those of its client.
struct Place {
    clients: Clients,
    client: Client,
}

impl Clients {
    fn new(most: usize) -> Clients {
        Clients { open: Arc::default(), most }
    }

    /// A place for one more connection of a client, if it may have one.
    fn enter(&self, address: IpAddr) -> Option<Place> {
        let client = Client::at(address);
        let mut open = self.open.lock().unwrap_or_else(|e| e.into_inner());
        let count = open.entry(client).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place { clients: self.clone(), client })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.clients.open.lock().unwrap_or_else(|e| e.into_inner());
        if let Entry::Occupied(mut count) = open.entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// A connection that fails when the other side takes nothing for too long: it would keep its place for ever.
struct TimedStream {
    stream: TcpStream,
    patience: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    fn within<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        stuck.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Ends with an interrupt or a request to terminate.
async fn ended() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else {
            let _ = interrupt.await;
            return;
        };
        tokio::select! {
            _ = interrupt => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = interrupt.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_so_many_places() {
        let clients = Clients::new(2);
        let [a, b] = ["10.0.0.1", "10.0.0.2"].map(|a| a.parse().unwrap());
        let (first, second) = (clients.enter(a), clients.enter(a));
        assert!(first.is_some() && second.is_some() && clients.enter(a).is_none());
        let other = clients.enter(b);
        assert!(other.is_some());
        drop(first);
        assert!(clients.enter(a).is_some());
        drop((second, other));
        assert!(clients.open.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = TimedStream { stream, patience: Duration::from_millis(100), stuck: None };
        let bytes = vec![0; 1 << 20];
        let mut written = 0;
        let error = loop {
            match std::future::poll_fn(|context| Pin::new(&mut stream).poll_write(context, &bytes)).await {
                Ok(len) => written += len,
                Err(error) => break error,
            }
            assert!(written < 1 << 30);
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }
}
