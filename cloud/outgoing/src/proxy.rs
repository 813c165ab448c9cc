//! Calls through the proxy of the setting `outgoing-proxy`. The proxy is asked for a tunnel to an
//! address that was judged, never to a name: it could resolve a name to another address.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::header::{HOST, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::clients::{MAX_ANSWER_HEADERS, USER_AGENT as AGENT};
use super::failure::{CallError, CallErrorKind};
use super::stream::OutgoingStream;

/// The answer of a proxy to a request for a tunnel.
const MAX_ANSWER_BYTES: usize = 8 * 1024;
/// What is read of a receiver at a time.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// An HTTP proxy. Its URL may have a password.
#[derive(Clone, Debug)]
pub struct OutgoingProxy {
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`.
    authorization: Option<SecretString>,
}

impl FromStr for OutgoingProxy {
    type Err = String;

    /// The error does not quote the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = "must be a URL such as http://proxy.example.com:3128, with USER:PASSWORD@ before the host where the \
                     proxy needs it";
        let url = Url::parse(text).map_err(|_| wrong)?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| url.scheme() == "http" && is_bare);
        let decoded = |text: &str| {
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
            decoded.map(|text| text.into_owned()).map_err(|_| wrong)
        };
        let user = decoded(url.username())?;
        let password = decoded(url.password().unwrap_or_default())?;
        let authorization = (!user.is_empty())
            .then(|| format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).into());
        Ok(Self {
            host: host.ok_or(wrong)?.to_owned(),
            port: url.port_or_known_default().unwrap_or(80),
            authorization,
        })
    }
}

impl OutgoingProxy {
    /// A tunnel to the first of these addresses that the proxy connects to.
    pub async fn open(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, CallError> {
        let mut failure = CallError::timed_out();
        for address in addresses {
            match self.tunnel(SocketAddr::new(*address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn tunnel(&self, target: SocketAddr) -> Result<TcpStream, CallError> {
        let broken = |error: std::io::Error| {
            tracing::debug!(%error, "the proxy of outgoing-proxy fails");
            of_proxy("the proxy of the service is not reached")
        };
        let host = self.host.trim_matches(['[', ']']);
        let mut stream = TcpStream::connect((host, self.port))
            .await
            .map_err(broken)?;
        let authorization = match &self.authorization {
            Some(value) => format!("Proxy-Authorization: {}\r\n", value.expose_secret()),
            None => String::new(),
        };
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        // What follows the answer is the receiver's.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= MAX_ANSWER_BYTES {
                return Err(of_proxy("the proxy of the service does not answer as one"));
            }
            answer.push(stream.read_u8().await.map_err(broken)?);
        }
        let answer = String::from_utf8_lossy(&answer);
        let status = answer
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.get(2..5))
            .and_then(|status| status.parse::<u16>().ok());
        match status {
            Some(200..300) => Ok(stream),
            Some(407) => {
                tracing::error!("the proxy of outgoing-proxy refuses the user or the password");
                Err(of_proxy("the proxy of the service refuses its password"))
            }
            Some(status) => Err(of_proxy(format!(
                "the proxy of the service made no connection ({status})"
            ))),
            None => Err(of_proxy("the proxy of the service does not answer as one")),
        }
    }
}

fn of_proxy(message: impl Into<String>) -> CallError {
    CallError::new(CallErrorKind::Connect, message)
}

/// One request over a connection of its own.
pub async fn exchange(
    stream: OutgoingStream,
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<reqwest::Response, CallError> {
    let failed = || {
        CallError::new(
            CallErrorKind::Broken,
            "the receiver ended the connection, or does not speak HTTP",
        )
    };
    let origin_form = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = url.host_str().unwrap_or_default();
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let mut request = Request::builder().method(method).uri(origin_form);
    if let Some(own) = request.headers_mut() {
        *own = headers;
        own.insert(HOST, HeaderValue::from_str(&host).map_err(|_| failed())?);
        own.entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(AGENT));
    }
    let request = request.body(Full::new(body)).map_err(|_| failed())?;
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(MAX_ANSWER_HEADERS)
        .max_buf_size(MAX_BUFFER_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| failed())?;
    // It ends when the response is read or dropped.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|_| failed())?;
    Ok(response.map(reqwest::Body::wrap).into())
}
