//! Listening with or without TLS, and graceful shutdown: accepted requests are answered, streams
//! are closed, then the process ends.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use hub_core::Core;

use super::accept::Tuned;
use super::tls::Tls;
use crate::app::StartError;

/// The time that a client has to send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);
/// The time that requests in progress have after a shutdown was requested.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// A listening socket. Requests queue up in it until [`Server::run`].
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl Server {
    pub async fn bind(core: &Core) -> Result<Self, StartError> {
        let tls = match &core.config.tls {
            Some(files) => Some(Tls::load(core, files).await?),
            None => None,
        };
        let listen = core.config.listen;
        let failed = |error: std::io::Error| {
            let advice = listen_advice(error.kind());
            StartError::Listen(format!("cannot listen on {listen}: {error}; {advice}"))
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            tls,
        })
    }

    /// `http://ADDRESS` or `https://ADDRESS`.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until the shutdown of the app, then finishes the accepted requests.
    pub async fn run(self, core: &Core, router: Router) -> std::io::Result<()> {
        let handle = Handle::new();
        let stopping = {
            let (handle, shutdown) = (handle.clone(), core.shutdown.clone());
            tokio::spawn(async move {
                shutdown.cancelled().await;
                handle.graceful_shutdown(Some(DRAIN_TIMEOUT));
            })
        };
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let served = match self.tls {
            Some(tls) => {
                let mut server = axum_server::from_tcp(self.listener)?
                    .acceptor(tls.acceptor())
                    .handle(handle);
                core.workers.spawn(tls.follow_authorities(core.clone()));
                limit(server.http_builder());
                server.serve(service).await
            }
            None => {
                // Without TLS, HTTP/2 is never negotiated, and detecting it costs 8 KiB for each
                // connection. The option must follow the acceptor, which resets it.
                let mut server = axum_server::from_tcp(self.listener)?
                    .acceptor(Tuned)
                    .handle(handle)
                    .http1_only();
                limit(server.http_builder());
                server.serve(service).await
            }
        };
        stopping.abort();
        served
    }
}

/// The listener of the metrics, if they have one of their own.
pub fn bind_metrics(core: &Core) -> Result<Option<tokio::net::TcpListener>, StartError> {
    let Some(listen) = core.config.metrics.listen else {
        return Ok(None);
    };
    let failed = |error: std::io::Error| {
        let advice = listen_advice(error.kind()).replace("`listen`", "`metrics-listen`");
        StartError::Listen(format!("cannot listen on {listen}: {error}; {advice}"))
    };
    let listener = TcpListener::bind(listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    tokio::net::TcpListener::from_std(listener)
        .map(Some)
        .map_err(failed)
}

/// Serves the metrics until the shutdown of the app.
pub async fn run_metrics(core: Core, listener: tokio::net::TcpListener) {
    let shutdown = core.shutdown.clone();
    let served = axum::serve(listener, super::health::metrics_router(core))
        .with_graceful_shutdown(async move { shutdown.cancelled().await })
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "metrics are not served any more");
    }
}

/// Advice for an address that cannot be listened on.
pub const fn listen_advice(reason: ErrorKind) -> &'static str {
    match reason {
        ErrorKind::AddrInUse => {
            "if the service is already running, do nothing; otherwise set `listen` to another address"
        }
        ErrorKind::AddrNotAvailable => {
            "set `listen` to an address of this machine, or to 0.0.0.0 for all"
        }
        ErrorKind::PermissionDenied => {
            "use a port of 1024 or above, or have systemd grant CAP_NET_BIND_SERVICE"
        }
        _ => "set `listen` to another address",
    }
}

/// Completes on Ctrl-C, or on systemd's SIGTERM.
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
    builder
        .http1()
        .timer(timer.clone())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(64 * 1024);
    builder
        .http2()
        .timer(timer)
        .max_concurrent_streams(250)
        .keep_alive_interval(Duration::from_secs(30));
}
