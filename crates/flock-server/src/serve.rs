//! Sockets: connections in number and in time, and an end that lets answers finish.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
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

use crate::{App, Options, router};

/// Time for open answers when the server is told to end.
const GRACE: Duration = Duration::from_secs(10);

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}: {source}; hint: --listen with another port")]
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

async fn run(options: Options, ready: impl FnOnce(std::net::SocketAddr)) -> Result<(), ServeError> {
    let listen = options.listen;
    let refused = |source| ServeError::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(refused)?;
    ready(listener.local_addr().map_err(refused)?);
    let limits = options.limits;
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
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely; they come back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            router.clone().oneshot(request.map(axum::body::Body::new) as Request)
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.body_time).max_headers(64).max_buf_size(64 << 10);
        let stream = Patient { stream, patience: limits.body_time, stuck: None };
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // Errors here are the client's: it went away or spoke no HTTP.
            let _ = connection.await;
            drop(permit);
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

/// A connection that fails when the other side takes nothing for too long: it would keep its place for ever.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Patient {
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

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl AsyncWrite for Patient {
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

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut patient = Patient { stream, patience: Duration::from_millis(100), stuck: None };
        let bytes = vec![0; 1 << 20];
        let mut written = 0;
        let error = loop {
            match std::future::poll_fn(|context| Pin::new(&mut patient).poll_write(context, &bytes)).await {
                Ok(len) => written += len,
                Err(error) => break error,
            }
            assert!(written < 1 << 30);
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }
}
