//! Listening, with or without TLS, and ending gracefully: what was accepted is answered, streams are closed, then the process ends.

use std::future::{Ready, ready};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use rustix::net::sockopt;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;

use crate::app::{App, StartError};
use crate::config::TlsFiles;

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
    tls: Option<RustlsConfig>,
}

impl Server {
    pub async fn bind(app: &App) -> Result<Self, StartError> {
        let tls = match &app.config.tls {
            Some(files) => Some(RustlsConfig::from_config(Arc::new(tls_config(files)?))),
            None => None,
        };
        let listen = app.config.listen;
        let failed = |error: std::io::Error| StartError::Listen(format!("cannot listen on {listen}: {error}"));
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
                let acceptor = RustlsAcceptor::new(tls).acceptor(Tuned);
                let mut server = axum_server::from_tcp(self.listener)?.acceptor(acceptor).handle(handle);
                limit(server.http_builder());
                server.serve(service).await
            }
            None => {
                // Without TLS nobody negotiates HTTP/2, and listening for it costs each connection 8 KiB more.
                let mut server = axum_server::from_tcp(self.listener)?.http1_only().acceptor(Tuned).handle(handle);
                limit(server.http_builder());
                server.serve(service).await
            }
        };
        stopping.abort();
        served
    }
}

/// The two files are read apart, so that the message can name the one at fault.
fn tls_config(files: &TlsFiles) -> Result<ServerConfig, StartError> {
    let wrong = |key: &'static str, file: &Path, reason: String| StartError::Tls {
        key,
        file: file.display().to_string(),
        reason,
    };
    let wrong_cert = |reason: String| wrong("tls-cert", &files.cert, reason);
    let wrong_key = |reason: String| wrong("tls-key", &files.key, reason);
    let text = std::fs::read(&files.cert).map_err(|error| wrong_cert(error.to_string()))?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong_cert(format!("it is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong_cert("it holds no certificate in PEM form".into()));
    }
    let text = std::fs::read(&files.key).map_err(|error| wrong_key(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => wrong_key("it holds no private key in PEM form".into()),
        error => wrong_key(format!("it is not PEM: {error}")),
    })?;
    let builder = ServerConfig::builder().with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => wrong_key(format!("it is not the key of {}", files.cert.display())),
        rustls::Error::InvalidCertificate(_) => wrong_cert(error.to_string()),
        error => wrong_key(error.to_string()),
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
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
struct Tuned;

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
