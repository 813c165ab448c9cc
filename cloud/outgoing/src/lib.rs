//! The one client for addresses that tenants choose. It resolves names itself and judges every
//! address before it connects, so that nobody reaches this machine or its network through the
//! service. Time and size of an answer are bounded. It follows no redirect, uses no proxy but that
//! of the settings, and keeps no cookies. Nothing else may open a connection to an address of a
//! tenant.

mod addresses;
mod clients;
mod failure;
mod names;
mod proxy;
pub mod signing;
mod stream;
#[cfg(test)]
mod tests;
mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use bytes::{Bytes, BytesMut};
use hub_base::metrics::Metrics;
use hub_base::seldom::Seldom;
use reqwest::Url;
use rustls::pki_types::ServerName;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

pub use self::addresses::PrivateTargets;
use self::addresses::refusal;
use self::clients::ClientCache;
pub use self::failure::{CallError, CallErrorKind};
use self::names::{Names, literal};
pub use self::proxy::OutgoingProxy;
pub use self::stream::OutgoingStream;
pub use self::tls::{OwnTls, OwnTlsError};

pub const MAX_URL_BYTES: usize = 2_048;

/// The settings that decide which calls are made, and how.
#[derive(Clone, Debug, Default)]
pub struct OutgoingConfig {
    pub allow_private_targets: PrivateTargets,
    /// The name server to ask instead of those of the system.
    pub resolver: Option<SocketAddr>,
    /// Authorities beside those of the system.
    pub ca: Option<PathBuf>,
    /// The proxy of all calls.
    pub proxy: Option<OutgoingProxy>,
}

/// A setting with which no calls can be made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OutgoingSettingsError(String);

/// Cheap to clone.
#[derive(Clone)]
pub struct Outgoing(Arc<Inner>);

struct Inner {
    names: Names,
    private: PrivateTargets,
    clients: ClientCache,
    proxy: Option<OutgoingProxy>,
    /// Refused hosts that were logged: a pipeline tries for as long as it exists.
    refused: Seldom,
    metrics: Metrics,
}

/// How a stream begins.
#[derive(Clone, Copy, Debug)]
pub enum Security<'a> {
    Plain,
    /// With TLS, and what the receiver has of its own.
    Tls(Option<&'a OwnTls>),
}

pub struct OutgoingRequest {
    pub method: Method,
    /// A URL of [`Outgoing::check_url`]; its address is checked again at the call.
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The limit of the whole call: look-up, connection, answer.
    pub within: Duration,
    /// The rest of a longer answer is not read.
    pub max_response_bytes: usize,
    /// The receiver's own TLS.
    pub tls: Option<Arc<OwnTls>>,
}

#[derive(Debug)]
pub struct OutgoingResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Whether the body is longer than what was asked for.
    pub is_cut: bool,
    /// Why the body did not come to its end.
    broken: Option<CallError>,
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

impl Outgoing {
    pub fn new(config: &OutgoingConfig, metrics: Metrics) -> Result<Self, OutgoingSettingsError> {
        let private = config.allow_private_targets.clone();
        let names = Names::new(config.resolver, private.clone()).map_err(|error| {
            OutgoingSettingsError(format!(
                "cannot read the name servers of this machine: {error}"
            ))
        })?;
        // A file that cannot be used is refused at the start.
        tls::authorities(config.ca.as_deref()).map_err(OutgoingSettingsError)?;
        Ok(Self(Arc::new(Inner {
            clients: ClientCache::new(names.clone(), config.ca.clone()),
            names,
            private,
            proxy: config.proxy.clone(),
            refused: Seldom::default(),
            metrics,
        })))
    }

    /// Whether all addresses of this machine and of private networks may be called, as for
    /// development.
    pub fn allows_private(&self) -> bool {
        self.0.private == PrivateTargets::All
    }

    /// Checks a URL from a tenant. The message is for the user interface. The addresses of its name
    /// are checked at the call.
    pub fn check_url(&self, text: &str, schemes: &[&str]) -> Result<Url, String> {
        if text.len() > MAX_URL_BYTES {
            return Err(format!("must have at most {MAX_URL_BYTES} bytes"));
        }
        let form = || format!("must be a URL that begins with {}", list(schemes));
        if text.trim() != text || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("must have no spaces, line breaks or control characters".to_owned());
        }
        let mut url = Url::parse(text).map_err(|_| form())?;
        let is_known = schemes.contains(&url.scheme());
        // Browsers find a host also without the slashes; a reader would not.
        if !is_known
            || !text
                .get(url.scheme().len()..)
                .is_some_and(|rest| rest.starts_with("://"))
        {
            return Err(form());
        }
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or("must name a host")?;
        let host = canonical_host(host).ok_or("has a host that is no host name or address")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not contain a user name or password; give them in `auth`".to_owned());
        }
        if url.fragment().is_some() {
            return Err("must not have a fragment (`#...`)".to_owned());
        }
        if url.port() == Some(0) {
            return Err("must not have port 0".to_owned());
        }
        if let Some(reason) = self.refused_as_it_stands(&host) {
            return Err(format!("must be a public address: {host} is {reason}"));
        }
        // Only of http and https the parser has written the host in its one form.
        if url.host_str() != Some(host.as_str()) {
            url.set_host(Some(&host))
                .map_err(|_| "has a host that is no host name or address")?;
        }
        Ok(url)
    }

    /// The reason to refuse a host before its name is resolved.
    fn refused_as_it_stands(&self, host: &str) -> Option<&'static str> {
        if let Some(address) = literal(host) {
            return refusal(address, &self.0.private);
        }
        let name = host.trim_end_matches('.');
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let is_allowed = self.0.private.allow(Ipv4Addr::LOCALHOST.into());
        (is_local && !is_allowed).then_some("this machine")
    }

    pub async fn send(&self, request: OutgoingRequest) -> Result<OutgoingResponse, CallError> {
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let response = self.exchange(request).await;
        let whole = response.and_then(|mut response| match response.broken.take() {
            Some(error) => Err(error),
            None => Ok(response),
        });
        self.counted(&host, whole)
    }

    /// As [`Outgoing::send`], for a caller to whom the status says it all: the body is what has
    /// come of it, whether or not it breaks off or lasts too long.
    pub async fn send_for_status(
        &self,
        request: OutgoingRequest,
    ) -> Result<OutgoingResponse, CallError> {
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let response = self.exchange(request).await;
        self.counted(&host, response)
    }

    async fn exchange(&self, request: OutgoingRequest) -> Result<OutgoingResponse, CallError> {
        let (ends_at, most) = (Instant::now() + request.within, request.max_response_bytes);
        let mut response = tokio::time::timeout_at(ends_at, self.respond(request))
            .await
            .map_err(|_| CallError::timed_out())??;
        let mut read = BytesMut::new();
        let (mut is_cut, mut broken) = (false, None);
        loop {
            let chunk = match tokio::time::timeout_at(ends_at, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    broken = Some(CallError::of_request(&error));
                    break;
                }
                Err(_) => {
                    broken = Some(CallError::timed_out());
                    break;
                }
            };
            let room = most.saturating_sub(read.len());
            read.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            if chunk.len() > room {
                is_cut = true;
                break;
            }
        }
        // To drop a response that was not read to its end closes the connection.
        let status = response.status().as_u16();
        Ok(OutgoingResponse {
            status,
            headers: std::mem::take(response.headers_mut()),
            body: read.freeze(),
            is_cut,
            broken,
        })
    }

    /// The head of a response.
    async fn respond(&self, request: OutgoingRequest) -> Result<reqwest::Response, CallError> {
        let OutgoingRequest {
            method,
            url,
            headers,
            body,
            tls,
            ..
        } = request;
        let host = url.host_str().unwrap_or_default();
        if self.0.proxy.is_some() {
            let port = url.port_or_known_default().unwrap_or(443);
            let security = match url.scheme() {
                "https" => Security::Tls(tls.as_deref()),
                _ => Security::Plain,
            };
            let stream = self.open(host, port, security).await?;
            return proxy::exchange(stream, method, &url, headers, body).await;
        }
        // The resolver sees no literal addresses, and no other scheme has one.
        if let Some(reason) = self.refused_as_it_stands(host) {
            return Err(CallError::forbidden(host, reason));
        }
        let http = self.0.clients.get(tls.as_deref())?.http;
        let sending = http.request(method, url).headers(headers).body(body).send();
        sending.await.map_err(|error| CallError::of_request(&error))
    }

    /// A TCP or TLS stream, for protocols other than HTTP.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        security: Security<'_>,
        within: Duration,
    ) -> Result<OutgoingStream, CallError> {
        let connecting = tokio::time::timeout(within, self.open(host, port, security));
        self.counted(
            host,
            connecting
                .await
                .unwrap_or_else(|_| Err(CallError::timed_out())),
        )
    }

    async fn open(
        &self,
        host: &str,
        port: u16,
        security: Security<'_>,
    ) -> Result<OutgoingStream, CallError> {
        let name = canonical_host(host).ok_or_else(|| {
            CallError::new(
                CallErrorKind::Dns,
                format!("{host} is no host name or address"),
            )
        })?;
        if let Some(reason) = self.refused_as_it_stands(&name) {
            return Err(CallError::forbidden(&name, reason));
        }
        let addresses = self.0.names.judged(&name).await?;
        let stream = match &self.0.proxy {
            Some(proxy) => proxy.open(&addresses, port).await?,
            None => stream::open(&addresses, port).await?,
        };
        let stream = OutgoingStream::Plain(stream);
        match security {
            Security::Tls(own) => self.handshake(stream, &name, own).await,
            Security::Plain => Ok(stream),
        }
    }

    /// TLS on a stream that began without it.
    pub async fn start_tls(
        &self,
        stream: OutgoingStream,
        host: &str,
        within: Duration,
    ) -> Result<OutgoingStream, CallError> {
        let securing = tokio::time::timeout(within, self.handshake(stream, host, None)).await;
        securing.unwrap_or_else(|_| Err(CallError::timed_out()))
    }

    async fn handshake(
        &self,
        stream: OutgoingStream,
        host: &str,
        own: Option<&OwnTls>,
    ) -> Result<OutgoingStream, CallError> {
        let OutgoingStream::Plain(stream) = stream else {
            return Ok(stream);
        };
        let name = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .trim_end_matches('.');
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            CallError::new(
                CallErrorKind::Tls,
                format!("{host} is no name of a certificate"),
            )
        })?;
        let connector = TlsConnector::from(self.0.clients.get(own)?.tls);
        let secured = connector
            .connect(name, stream)
            .await
            .map_err(|error| CallError::securing(&error))?;
        Ok(OutgoingStream::Tls(Box::new(secured)))
    }

    /// The text records of a name; none if it has none.
    pub async fn txt(&self, name: &str) -> Result<Vec<String>, CallError> {
        self.0.names.txt(name).await
    }

    fn counted<T>(&self, host: &str, result: Result<T, CallError>) -> Result<T, CallError> {
        let kind = result.as_ref().err().map(|error| error.kind);
        self.0
            .metrics
            .outgoing_call(kind.map_or("ok", CallErrorKind::name));
        if kind == Some(CallErrorKind::Forbidden) && self.0.refused.is_due(host) {
            tracing::warn!(
                host,
                "a tenant's address was refused: it leads to this machine or its network"
            );
        }
        result
    }
}

/// The one form of a host that URLs of http have: what is a number in any notation becomes an
/// address, and other scripts become ASCII.
fn canonical_host(host: &str) -> Option<String> {
    if host.is_empty() || host.contains(['/', '\\', '?', '#', '@', ' ']) {
        return None;
    }
    // The host as in a URL: a bare IPv6 address needs brackets.
    let host = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    let url = Url::parse(&format!("https://{host}/")).ok()?;
    let is_host = url.port().is_none() && url.path() == "/" && url.username().is_empty();
    url.host_str().filter(|_| is_host).map(str::to_owned)
}

fn list(schemes: &[&str]) -> String {
    let schemes: Vec<String> = schemes
        .iter()
        .map(|scheme| format!("`{scheme}://`"))
        .collect();
    schemes.join(" or ")
}
