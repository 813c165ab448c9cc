//! Requests to the service, its answers, and the HTTP client. Knows no credentials.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hub_protocol::Timestamp;
use hub_protocol::envelope::{Data, Problem};
use hub_protocol::pace::RateLimit;
use reqwest::header::{
    CONTENT_ENCODING, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Method, Response, Url};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::reach::Unreached;
use super::tls::{self, Identity, ValidAt};
use crate::clock::{self, Clock};
use crate::config::ServiceArgs;
use crate::error::{Failure, chain};

/// Sent with requests that may be repeated.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest answer that is usually read: a desired state with many jobs is far smaller.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The longest `Retry-After` that is honoured: a mistake in the service's configuration must not
/// silence a hub for days.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub struct Request {
    pub method: Method,
    /// The path from the service's root, such as `/v1/ble/events`.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The time limit, if not the usual one: longer where the service is asked to wait.
    pub timeout: Option<Duration>,
    /// How long the service is asked to wait for something to tell.
    pub hold: Duration,
    /// The most bytes that are read of the answer.
    pub longest_answer: usize,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: None,
            hold: Duration::ZERO,
            longest_answer: MAX_ANSWER_BYTES,
        }
    }

    pub fn post_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut request = Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(path)
        };
        request.headers.insert(
            reqwest::header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        request
    }

    pub fn put_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::PUT,
            ..Self::post_json(path, body)
        }
    }

    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        // The values are uuids and the service's own entity tags: one that is malformed is omitted.
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub rate_limit: Option<RateLimit>,
    pub etag: Option<String>,
    /// After how long the path to the service ended the request, which the service was holding.
    pub cut_after: Option<Duration>,
    body: Vec<u8>,
}

/// A gateway's words for a service that took too long.
const GATEWAY_TIMEOUT: u16 = 504;

impl Answer {
    /// Reads the response to a request that was sent at `asked_at` since boot, and notes the
    /// service's time in `clock`.
    pub async fn read(
        mut response: Response,
        asked_at: i64,
        longest: usize,
        clock: &Clock,
    ) -> Result<Self, CallError> {
        let (came_at, headers) = (clock::since_boot_micros(), response.headers());
        let (date, retry_after) = (
            headers.get(DATE).and_then(http_date),
            headers.get(RETRY_AFTER).cloned(),
        );
        let is_zstd = headers
            .get(CONTENT_ENCODING)
            .is_some_and(|encoding| encoding == "zstd");
        let mut answer = Self {
            status: response.status().as_u16(),
            retry_after: None,
            rate_limit: rate_limit(headers),
            etag: headers
                .get(ETAG)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            cut_after: None,
            body: Vec::new(),
        };
        while let Some(chunk) = response.chunk().await.map_err(CallError::from)? {
            if answer.body.len() + chunk.len() > longest {
                return Err(CallError::Unreachable(
                    "the answer is longer than any of the service".into(),
                ));
            }
            answer.body.extend_from_slice(&chunk);
        }
        if is_zstd {
            answer.body = zstd::bulk::decompress(&answer.body, longest).map_err(|error| {
                CallError::Unreachable(format!(
                    "the answer cannot be unpacked, or is longer than any: {error}"
                ))
            })?;
        }
        if let Some(date) = date
            && answer.is_of_the_service()
        {
            clock.learn_service_time(date, asked_at, came_at);
        }
        answer.retry_after = retry_after.and_then(|value| parse_retry_after(&value, clock.now()));
        Ok(answer)
    }

    /// The answer to a held request that the path has ended.
    pub fn cut(after: Duration) -> Self {
        Self {
            status: GATEWAY_TIMEOUT,
            retry_after: None,
            rate_limit: None,
            etag: None,
            cut_after: Some(after),
            body: Vec::new(),
        }
    }

    /// Whether a gateway answered that it waited in vain for the service.
    pub fn is_of_gateway(&self) -> bool {
        matches!(self.status, 408 | 499 | 502..=504 | 520..=530) && self.problem().is_none()
    }

    /// Whether something else answered in place of the service, such as a proxy or a login page.
    pub fn is_foreign(&self) -> bool {
        match self.status {
            200..300 => {
                !self.body.is_empty() && serde_json::from_slice::<IgnoredAny>(&self.body).is_err()
            }
            304 => false,
            300..400 => true,
            _ => self.problem().is_none(),
        }
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The payload of a success.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice::<Data<T>>(&self.body)
            .map(|body| body.data)
            .map_err(|error| {
                CallError::Unreachable(format!(
                    "the answer (status {}) does not have the service's format: {error}",
                    self.status
                ))
            })
    }

    /// The payload of a success that contains secrets: the error quotes no value.
    pub fn secret_data<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice::<Data<T>>(&self.body)
            .map(|body| body.data)
            .map_err(|error| {
                let quotes_a_value = error.to_string().starts_with("invalid");
                match quotes_a_value {
                    true => format!(
                        "a value of another type in line {}, column {}",
                        error.line(),
                        error.column()
                    ),
                    false => error.to_string(),
                }
            })
    }

    /// The service's description of a failure. `None` if something else answered, such as a proxy
    /// or a login page.
    pub fn problem(&self) -> Option<Problem> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Whether the service itself answered. A router's login page may have the date of 1970.
    fn is_of_the_service(&self) -> bool {
        match self.status {
            200..300 => serde_json::from_slice::<Data<IgnoredAny>>(&self.body).is_ok(),
            300..400 => false,
            _ => self.problem().is_some(),
        }
    }

    /// The service's error code if it refused not the token but the client certificate, or that
    /// there was none.
    pub fn certificate_error(&self) -> Option<String> {
        let problem = self.problem().filter(|_| self.status == 401)?;
        Some(problem.code).filter(|code| code.starts_with("CLIENT_CERTIFICATE_"))
    }

    /// The failure in one line, to display.
    pub fn reason(&self) -> String {
        match self.problem() {
            Some(problem) => {
                let fields: Vec<String> = problem
                    .errors
                    .iter()
                    .take(3)
                    .map(|error| format!("{}: {}", error.field, error.message))
                    .collect();
                let fields = if fields.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", fields.join("; "))
                };
                format!(
                    "{} [{} {}, request {}]{fields}",
                    problem.message, self.status, problem.code, problem.request_id
                )
            }
            None => format!(
                "status {}, not in the service's format: is something else answering?",
                self.status
            ),
        }
    }
}

/// A call has no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call may succeed later.
    #[error("{0}")]
    Unreachable(String),
    /// The hub has no credentials that the service accepts; it has to be claimed.
    #[error("this hub has no access to the service")]
    NoAccess,
}

impl From<reqwest::Error> for CallError {
    fn from(error: reqwest::Error) -> Self {
        let Unreached { reason, fix } = Unreached::by(&error);
        Self::Unreachable(format!("{reason}; {fix}"))
    }
}

/// The client with which every command reaches the service or a server with its files. It presents
/// `identity` to each server it connects to.
pub fn http_client(
    args: &ServiceArgs,
    to: &Url,
    identity: Option<Identity>,
    clock: &Arc<Clock>,
) -> Result<reqwest::Client, Failure> {
    build(client_builder(args, to, identity, clock, ValidAt::Now)?)
}

pub(super) fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Failure> {
    let built = builder.build();
    built.map_err(|error| Failure::Failed(format!("cannot set up TLS: {}", chain(&error))))
}

pub(super) fn client_builder(
    args: &ServiceArgs,
    to: &Url,
    identity: Option<Identity>,
    clock: &Arc<Clock>,
    valid_at: ValidAt,
) -> Result<reqwest::ClientBuilder, Failure> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("hub-agent/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(args.connect_timeout.0)
        // Detects a dead connection through a router that has forgotten it.
        .tcp_keepalive(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(75))
        .http1_only()
        // The service never redirects; following a redirect could send a token to another server.
        .redirect(reqwest::redirect::Policy::none());
    if let Some(proxy) = &args.proxy_url {
        builder = builder.proxy(proxy.as_proxy().map_err(Failure::Config)?);
    }
    if to.scheme() == "http" {
        // Nothing is verified, and the machine may have no authorities' certificates.
        return Ok(builder.tls_certs_only([]));
    }
    let config = tls::config(args.ca_file.as_deref(), identity.as_ref(), clock, valid_at)?;
    Ok(builder.tls_backend_preconfigured(config))
}

/// Makes aws-lc-rs the only provider of cryptography for TLS. Call it once, before any connection.
pub fn install_crypto() {
    // An error means that one is installed already, which then is this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

pub(super) fn http_date(value: &HeaderValue) -> Option<Timestamp> {
    chrono::DateTime::parse_from_rfc2822(value.to_str().ok()?)
        .ok()
        .map(|time| time.to_utc().into())
}

/// The limit in the headers, if all of it is there.
fn rate_limit(headers: &HeaderMap) -> Option<RateLimit> {
    let number = |name: &str| {
        headers
            .get(name)?
            .to_str()
            .ok()?
            .trim()
            .parse::<i64>()
            .ok()
            .filter(|number| *number >= 0)
    };
    Some(RateLimit {
        limit: number("ratelimit-limit")?,
        remaining: number("ratelimit-remaining")?,
        reset_secs: number("ratelimit-reset")?,
    })
}

/// Seconds, or a date.
fn parse_retry_after(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    let secs = match value.to_str().ok()?.trim().parse::<u64>() {
        Ok(secs) => secs,
        Err(_) => http_date(value)?
            .as_secs()
            .saturating_sub(now.as_secs())
            .try_into()
            .unwrap_or(0),
    };
    Some(Duration::from_secs(secs).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let parse = |text| parse_retry_after(&HeaderValue::from_static(text), now);
        assert_eq!(parse("7"), Some(Duration::from_secs(7)));
        assert_eq!(
            parse("Sat, 21 Nov 2026 10:00:30 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(parse("Sat, 21 Nov 2026 09:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(parse("999999999"), Some(MAX_RETRY_AFTER));
        assert_eq!(parse("soon"), None);
    }

    #[test]
    fn the_limit_is_read_from_its_headers() {
        let mut headers = HeaderMap::new();
        headers.insert("RateLimit-Limit", HeaderValue::from_static("100"));
        headers.insert("RateLimit-Remaining", HeaderValue::from_static("7"));
        assert_eq!(rate_limit(&headers), None);
        headers.insert("RateLimit-Reset", HeaderValue::from_static("31"));
        assert_eq!(
            rate_limit(&headers),
            Some(RateLimit {
                limit: 100,
                remaining: 7,
                reset_secs: 31
            })
        );
        headers.insert("RateLimit-Reset", HeaderValue::from_static("-1"));
        assert_eq!(rate_limit(&headers), None);
    }
}
