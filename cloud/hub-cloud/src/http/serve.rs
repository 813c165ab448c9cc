//! Listening with or without TLS, and graceful shutdown: accepted requests are answered, streams
//! are closed, then the process ends.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use hub_core::Core;
use hub_core::config::Config;
use rustls::ServerConfig;
use tokio::net::TcpSocket;

use super::accept::Tuned;
use super::tls::{self, Tls};
use crate::start_error::StartError;

/// The time that a client has to send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);
/// After a shutdown was requested, connections stay open for so long, and every response asks the
/// client to close its own. A request that is just being sent is answered, and not cut off.
const LAST_REQUESTS: Duration = Duration::from_secs(1);
/// The time that requests in progress have after that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(19);

/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: u32 = 4096;

/// The addresses of the service and its certificate, read before anything of it is created. It
/// does not listen yet: whoever connects is refused until the service can answer.
pub struct Bound {
    socket: TcpSocket,
    metrics: Option<TcpSocket>,
    certificate: Option<ServerConfig>,
}

impl Bound {
    pub fn bind(config: &Config) -> Result<Self, StartError> {
        let certificate = config.tls.as_ref().map(tls::server_config).transpose()?;
        let metrics = config.metrics.listen;
        Ok(Self {
            socket: bind_socket(config.listen, "listen")?,
            metrics: metrics
                .map(|at| bind_socket(at, "metrics-listen"))
                .transpose()?,
            certificate,
        })
    }

    /// Listens.
    pub async fn listen(self, core: &Core) -> Result<Server, StartError> {
        let tls = match self.certificate {
            Some(certificate) => Some(Tls::new(core, certificate).await?),
            None => None,
        };
        let (listener, address) = listen(self.socket, core.config.listen, "listen")?;
        let metrics = match self.metrics.zip(core.config.metrics.listen) {
            Some((socket, at)) => Some(listen(socket, at, "metrics-listen")?.0),
            None => None,
        };
        Ok(Server {
            listener,
            address,
            metrics,
            tls,
        })
    }
}

/// An error about an address, with what to do.
fn refused(listen: SocketAddr, setting: &str, error: &std::io::Error) -> StartError {
    let advice = listen_advice(error.kind()).replace("`listen`", &format!("`{setting}`"));
    StartError::Listen(format!("cannot listen on {listen}: {error}; {advice}"))
}

fn bind_socket(at: SocketAddr, setting: &str) -> Result<TcpSocket, StartError> {
    let socket = match at {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let bound = socket.and_then(|socket| {
        // An address whose last connections are still closing is free.
        socket.set_reuseaddr(true)?;
        socket.bind(at)?;
        Ok(socket)
    });
    bound.map_err(|error| refused(at, setting, &error))
}

fn listen(
    socket: TcpSocket,
    at: SocketAddr,
    setting: &str,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let listening = socket.listen(BACKLOG).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener.into_std()?, address))
    });
    listening.map_err(|error| refused(at, setting, &error))
}

/// A listening socket. Requests queue up in it until [`Server::run`].
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    metrics: Option<TcpListener>,
    tls: Option<Tls>,
}

impl Server {
    /// Binds the addresses and listens, for a service that has been created already.
    pub async fn bind(core: &Core) -> Result<Self, StartError> {
        Bound::bind(&core.config)?.listen(core).await
    }

    /// `http://ADDRESS` or `https://ADDRESS`.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until the shutdown of the app, then finishes the accepted requests. Metrics with a
    /// listener of their own are served there.
    pub async fn run(self, core: &Core, router: Router) -> std::io::Result<()> {
        if let Some(listener) = self.metrics {
            core.workers.spawn(run_metrics(core.clone(), listener));
        }
        let handle = Handle::new();
        let stopping = {
            let (handle, shutdown) = (handle.clone(), core.shutdown.clone());
            tokio::spawn(async move {
                shutdown.cancelled().await;
                tokio::time::sleep(LAST_REQUESTS).await;
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

/// Serves the metrics until the shutdown of the app.
async fn run_metrics(core: Core, listener: TcpListener) {
    let shutdown = core.shutdown.clone();
    let served = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            axum::serve(listener, super::health::metrics_router(core))
                .with_graceful_shutdown(async move { shutdown.cancelled().await })
                .await
        }
        Err(error) => Err(error),
    };
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
