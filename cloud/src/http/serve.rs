//! Listening, with or without TLS, and ending gracefully: what was accepted is answered, streams are closed, then the process ends.

use std::future::{Ready, ready};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use rustix::net::sockopt;
use tokio::net::TcpStream;

use super::tls::Tls;
use crate::app::{App, StartError};

/// A client gets this long to send a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);
/// What is under way when the service is told to end gets this long.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// What was sent must be taken within this time, or the connection is cut: a reader of a stream that stopped reading.
const UNTAKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// A socket that listens; requests queue up in it until [`Server::run`].
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl Server {
    pub async fn bind(app: &App) -> Result<Self, StartError> {
        let tls = match &app.config.tls {
            Some(files) => Some(Tls::load(app, files).await?),
            None => None,
        };
        let listen = app.config.listen;
        let failed = |error: std::io::Error| {
            let advice = listen_advice(error.kind());
            StartError::Listen(format!("cannot listen on {listen}: {error}; {advice}"))
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, tls })
    }

    /// `http://ADDRESS` or `https://ADDRESS`.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until the app's shutdown, then finishes what was accepted.
    pub async fn run(self, app: &App, router: Router) -> std::io::Result<()> {
        let handle = Handle::new();
        let stopping = {
            let (handle, shutdown) = (handle.clone(), app.shutdown.clone());
            tokio::spawn(async move {
                shutdown.cancelled().await;
                handle.graceful_shutdown(Some(DRAIN_TIMEOUT));
            })
        };
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let served = match self.tls {
            Some(tls) => {
                let mut server = axum_server::from_tcp(self.listener)?.acceptor(tls.acceptor()).handle(handle);
                app.workers.spawn(tls.follow_authorities(app.clone()));
                limit(server.http_builder());
                server.serve(service).await
            }
            None => {
                // Without TLS nobody negotiates HTTP/2, and listening for it costs each connection 8 KiB more. Said last: another acceptor forgets it.
                let mut server = axum_server::from_tcp(self.listener)?.acceptor(Tuned).handle(handle).http1_only();
                limit(server.http_builder());
                server.serve(service).await
            }
        };
        stopping.abort();
        served
    }
}

/// What to do where the address cannot be listened on.
pub const fn listen_advice(reason: ErrorKind) -> &'static str {
    match reason {
        ErrorKind::AddrInUse => "nothing to do if the service is running; else name another address with `listen`",
        ErrorKind::AddrNotAvailable => "name an address of this machine with `listen`, or 0.0.0.0 for all",
        ErrorKind::PermissionDenied => "take a port of 1024 or above, or let systemd give CAP_NET_BIND_SERVICE",
        _ => "name another address with `listen`",
    }
}

/// Ctrl-C, or systemd's SIGTERM.
pub async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        },
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

fn limit(builder: &mut hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor>) {
    let timer = hyper_util::rt::TokioTimer::new();
    builder.http1().timer(timer.clone()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(64 * 1024);
    builder.http2().timer(timer).max_concurrent_streams(250).keep_alive_interval(Duration::from_secs(30));
}

/// Sets a connection up: small answers leave at once, and one whose other end is gone or stuck does not stay for ever.
#[derive(Clone, Copy)]
pub struct Tuned;

impl<S> Accept<TcpStream, S> for Tuned {
    type Stream = TcpStream;
    type Service = S;
    type Future = Ready<std::io::Result<(TcpStream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        ready(tune(&stream).map(|()| (stream, service)))
    }
}

fn tune(stream: &TcpStream) -> std::io::Result<()> {
    let untaken_ms = u32::try_from(UNTAKEN_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    stream.set_nodelay(true)?;
    sockopt::set_tcp_user_timeout(stream, untaken_ms)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    Ok(())
}
