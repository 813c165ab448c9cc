//! The way to the service: one HTTP client, the hub's credentials, and the rule that a refused token is renewed once and the call repeated.
//! Never keeps data for later (the spool does) and never logs a token.

mod certificate;
mod claim;
mod session;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hub_protocol::Timestamp;
use hub_protocol::envelope::{Data, Problem};
use reqwest::header::{AUTHORIZATION, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::sync::watch;

use crate::clock::{self, Clock};
use crate::config::{self, ServiceArgs};
use crate::error::{Failure, chain};
use crate::identity::{Credentials, StateDir};

use certificate::Certificate;
pub use claim::ClaimError;
pub use session::CodeSource;

/// Sent with what may be sent again.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Longest answer that is read: a desired state with many jobs is far smaller.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// So many failures in a row may be the fault of the certificate: a service that does not accept it ends the connection without a word.
const SUSPECT_CERTIFICATE_AFTER: u32 = 5;

/// Longest wait a service may ask for; a slip in its configuration must not silence a hub for days.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// Whether the service lets this hub in.
#[derive(Clone, Debug)]
pub enum Access {
    /// Never claimed.
    Unclaimed,
    Granted(Credentials),
    /// It was, and is no more: blocked, revoked, or expired. A fresh claim code lets it in again.
    Refused {
        credentials: Credentials,
        reason: String,
    },
}

/// How the talks with the service go.
#[derive(Clone, Debug, Default)]
pub struct Contact {
    /// When the service last answered, whatever it said.
    pub last_answer_at: Option<Timestamp>,
    /// Why it cannot be reached, while it cannot.
    pub unreachable: Option<String>,
    /// What came of the last claim that failed.
    pub claim_refused: Option<String>,
    /// That the service no longer lets the hub in was said, and need not be again.
    refusal_said: bool,
}

pub struct Service {
    /// Another one when the hub's certificate changes.
    http: Mutex<reqwest::Client>,
    args: ServiceArgs,
    base: Url,
    certificate: watch::Sender<Option<Certificate>>,
    /// Grows when another one, or none, comes into use.
    certificates: AtomicU32,
    /// The last one was not accepted by the service.
    certificate_refused: AtomicBool,
    /// Since the service answered last.
    failures: AtomicU32,
    pub request_timeout: Duration,
    state_dir: Arc<StateDir>,
    clock: Arc<Clock>,
    access: watch::Sender<Access>,
    /// Held while credentials are being replaced.
    renewal: tokio::sync::Mutex<()>,
    contact: Mutex<Contact>,
    /// The credentials in use are not on disk.
    unsaved: AtomicBool,
    device_instance_id: String,
    hub_identifier: Option<String>,
}

/// What to ask the service.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    /// From the service's root, such as `/v1/ble/events`.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Longer than usual where the service is asked to wait.
    pub timeout: Option<Duration>,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), headers: HeaderMap::new(), body: Bytes::new(), timeout: None }
    }

    pub fn post_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut request = Self { method: Method::POST, body: body.into(), ..Self::get(path) };
        request.headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request
    }

    pub fn put_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method: Method::PUT, ..Self::post_json(path, body) }
    }

    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        // Ours are uuids and entity tags the service itself sent: one that is no header value is left out.
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// What the service said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub etag: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The payload of a success.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice::<Data<T>>(&self.body).map(|body| body.data).map_err(|error| {
            CallError::Unreachable(format!(
                "the answer (status {}) is not what the service sends: {error}",
                self.status
            ))
        })
    }

    /// The service's own account of a failure. `None` when something else answered: a proxy, or a hotel's login page.
    pub fn problem(&self) -> Option<Problem> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Whether the service itself said this. A router's login page also answers, and may believe that it is 1970.
    fn is_of_the_service(&self) -> bool {
        match self.status {
            200..300 => serde_json::from_slice::<Data<IgnoredAny>>(&self.body).is_ok(),
            300..400 => false,
            _ => self.problem().is_some(),
        }
    }

    /// The service's word for it when it was not the token that was refused, but the certificate beside it or that there was none.
    fn certificate_trouble(&self) -> Option<String> {
        let problem = self.problem().filter(|_| self.status == 401)?;
        Some(problem.code).filter(|code| code.starts_with("CLIENT_CERTIFICATE_"))
    }

    /// One line on a failure, for a person.
    pub fn reason(&self) -> String {
        match self.problem() {
            Some(problem) => {
                let fields: Vec<String> =
                    problem.errors.iter().take(3).map(|error| format!("{}: {}", error.field, error.message)).collect();
                let fields = if fields.is_empty() { String::new() } else { format!(" ({})", fields.join("; ")) };
                format!(
                    "{} [{} {}, request {}]{fields}",
                    problem.message, self.status, problem.code, problem.request_id
                )
            }
            None => format!("status {}, and not in the service's own form: is something else answering?", self.status),
        }
    }
}

/// There is no answer to go by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Try again later.
    #[error("{0}")]
    Unreachable(String),
    /// The hub has no credentials the service accepts; a claim is needed.
    #[error("this hub has no access to the service")]
    NoAccess,
}

impl Service {
    pub fn new(args: &ServiceArgs, state_dir: Arc<StateDir>, clock: Arc<Clock>) -> Result<Self, Failure> {
        let base = config::service_url(args)?;
        let device_instance_id = state_dir.device_instance_id(args.device_instance_id.as_deref())?;
        let access = match state_dir.load_credentials()? {
            Some(credentials) => Access::Granted(credentials),
            None => Access::Unclaimed,
        };
        let certificate = match &access {
            Access::Granted(credentials) => Certificate::load(&state_dir, credentials),
            Access::Unclaimed | Access::Refused { .. } => None,
        };
        let identity = certificate.as_ref().filter(|_| base.scheme() == "https").and_then(Certificate::identity);
        let http = match identity {
            // A hub without its certificate gets another one; one that does not start helps nobody.
            Some(identity) => http_client(args, &base, Some(identity)).or_else(|_| http_client(args, &base, None)),
            None => http_client(args, &base, None),
        }?;
        Ok(Self {
            http: Mutex::new(http),
            args: args.clone(),
            base,
            certificate: watch::Sender::new(certificate),
            certificates: AtomicU32::new(0),
            certificate_refused: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            request_timeout: args.request_timeout.0,
            state_dir,
            clock,
            access: watch::Sender::new(access),
            renewal: tokio::sync::Mutex::new(()),
            contact: Mutex::new(Contact::default()),
            unsaved: AtomicBool::new(false),
            device_instance_id,
            hub_identifier: args.hub_identifier.clone(),
        })
    }

    pub fn url(&self) -> &Url {
        &self.base
    }

    pub fn device_instance_id(&self) -> &str {
        &self.device_instance_id
    }

    pub fn access(&self) -> watch::Receiver<Access> {
        self.access.subscribe()
    }

    /// A client for a file at this place: whoever keeps it is shown neither token nor certificate.
    pub fn download_client(&self, place: &Url) -> Result<reqwest::Client, Failure> {
        http_client(&self.args, place, None)
    }

    pub fn contact(&self) -> Contact {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request with the hub's access token. A token that is refused is renewed, and the request sent once more.
    pub async fn call(&self, request: &Request) -> Result<Answer, CallError> {
        self.call_as(&self.granted()?, request).await
    }

    /// The same, for the owner of these credentials and no other: data must not reach whoever claims the hub meanwhile.
    pub async fn call_as(&self, credentials: &Credentials, request: &Request) -> Result<Answer, CallError> {
        let answer = self.send(request, Some(&credentials.access_token)).await?;
        if answer.status != 401 {
            return Ok(answer);
        }
        if answer.certificate_trouble().is_some() {
            // Another token changes nothing.
            return Err(CallError::Unreachable(answer.reason()));
        }
        let renewed = self.renew(Some(&credentials.access_token)).await?;
        if renewed.tenant_uuid != credentials.tenant_uuid {
            return Err(CallError::NoAccess);
        }
        let answer = self.send(request, Some(&renewed.access_token)).await?;
        if answer.status == 401 {
            // Renewed and refused at once: no amount of renewing will help now.
            return Err(CallError::Unreachable(answer.reason()));
        }
        Ok(answer)
    }

    pub fn granted(&self) -> Result<Credentials, CallError> {
        match &*self.access.borrow() {
            Access::Granted(credentials) => Ok(credentials.clone()),
            Access::Unclaimed | Access::Refused { .. } => Err(CallError::NoAccess),
        }
    }

    async fn send(&self, request: &Request, token: Option<&SecretString>) -> Result<Answer, CallError> {
        let number = self.certificates.load(Ordering::Acquire);
        let mut result = self.exchange(&self.http(), request, token).await;
        if let Ok(answer) = &result
            && let Some(code) = answer.certificate_trouble()
            && self.drop_refused_certificate(number, &code)
        {
            result = self.exchange(&self.http(), request, token).await;
        }
        if result.is_ok() {
            self.failures.store(0, Ordering::Relaxed);
        } else if self.failures.fetch_add(1, Ordering::Relaxed) % SUSPECT_CERTIFICATE_AFTER
            == SUSPECT_CERTIFICATE_AFTER - 1
        {
            result = self.try_without_certificate(request, token).await.map_or(result, Ok);
        }
        let mut contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(_) => {
                contact.last_answer_at = Some(self.clock.now());
                if contact.unreachable.take().is_some() {
                    tracing::info!(service = %self.base, "the service answers again");
                }
            }
            Err(error) => {
                if contact.unreachable.is_none() {
                    tracing::warn!(service = %self.base, %error, "the service cannot be reached; what is heard is kept until it can");
                }
                contact.unreachable = Some(error.to_string());
            }
        }
        result
    }

    fn http(&self) -> reqwest::Client {
        self.http.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn exchange(
        &self,
        http: &reqwest::Client,
        request: &Request,
        token: Option<&SecretString>,
    ) -> Result<Answer, CallError> {
        let url = self
            .base
            .join(request.path.trim_start_matches('/'))
            .map_err(|error| CallError::Unreachable(error.to_string()))?;
        let mut call = http
            .request(request.method.clone(), url)
            .timeout(request.timeout.unwrap_or(self.request_timeout))
            .headers(request.headers.clone())
            .body(request.body.clone());
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).map_err(|_| {
                CallError::Unreachable("the stored access token is no header value; claim this hub again".into())
            })?;
            value.set_sensitive(true);
            call = call.header(AUTHORIZATION, value);
        }
        let unreachable = |error: reqwest::Error| CallError::Unreachable(chain(&error.without_url()));
        let mut response = call.send().await.map_err(unreachable)?;
        let (came_at, headers) = (clock::since_boot_micros(), response.headers());
        let (date, again) = (headers.get(DATE).and_then(http_date), headers.get(RETRY_AFTER).cloned());
        let mut answer = Answer {
            status: response.status().as_u16(),
            retry_after: None,
            etag: response.headers().get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned),
            body: Vec::new(),
        };
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if answer.body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(CallError::Unreachable("the answer is longer than any the service gives".into()));
            }
            answer.body.extend_from_slice(&chunk);
        }
        if let Some(date) = date
            && answer.is_of_the_service()
        {
            self.clock.service_said(date.plus_micros(clock::since_boot_micros() - came_at));
        }
        answer.retry_after = again.and_then(|value| retry_after(&value, self.clock.now()));
        Ok(answer)
    }
}

/// The client every command uses to reach the service, or whoever keeps its files. It shows `identity` to all it connects to.
pub fn http_client(
    args: &ServiceArgs,
    to: &Url,
    identity: Option<reqwest::Identity>,
) -> Result<reqwest::Client, Failure> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("hub-agent/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(args.connect_timeout.0)
        // Detects a peer that is gone behind a router that forgot the connection.
        .tcp_keepalive(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(75))
        .http1_only()
        // The service never redirects; following one could carry a token elsewhere.
        .redirect(reqwest::redirect::Policy::none());
    if let Some(identity) = identity {
        builder = builder.identity(identity);
    }
    if to.scheme() == "http" {
        // Nothing to verify, and a machine without any authorities' certificates must do.
        builder = builder.tls_certs_only([]);
    } else if let Some(file) = &args.ca_file {
        let refuse = |reason: String| Failure::Config(format!("ca-file: {}: {reason}", file.display()));
        let pem = std::fs::read(file).map_err(|error| refuse(error.to_string()))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem)
            .map_err(|error| refuse(format!("not PEM certificates: {}", chain(&error))))?;
        if certificates.is_empty() {
            return Err(refuse("it holds no certificate".into()));
        }
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(|error| {
        Failure::Failed(format!(
            "cannot set up TLS: {}; install the system's authorities (Debian: ca-certificates) or give --ca-file",
            chain(&error)
        ))
    })
}

/// Makes aws-lc-rs the one provider of cryptography for TLS. To be called once, before anything connects.
pub fn install_crypto() {
    // An error means that one is installed already, which then is this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

fn http_date(value: &HeaderValue) -> Option<Timestamp> {
    chrono::DateTime::parse_from_rfc2822(value.to_str().ok()?).ok().map(|time| time.to_utc().into())
}

/// Seconds, or a date.
fn retry_after(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    let secs = match value.to_str().ok()?.trim().parse::<u64>() {
        Ok(secs) => secs,
        Err(_) => http_date(value)?.as_secs().saturating_sub(now.as_secs()).try_into().unwrap_or(0),
    };
    Some(Duration::from_secs(secs).min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let parse = |text| retry_after(&HeaderValue::from_static(text), now);
        assert_eq!(parse("7"), Some(Duration::from_secs(7)));
        assert_eq!(parse("Sat, 21 Nov 2026 10:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(parse("Sat, 21 Nov 2026 09:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(parse("999999999"), Some(LONGEST_RETRY_AFTER));
        assert_eq!(parse("soon"), None);
    }
}
