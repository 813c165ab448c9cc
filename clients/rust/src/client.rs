//! Sends calls, and retries those that may be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use hub_protocol::{Data, Problem, TenantUuid, Timestamp};
use reqwest::header::{HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Call, Credential, Error, ServiceUrl, Stream};

/// The maximum number of attempts.
const ATTEMPTS: u32 = 4;
/// The longest `Retry-After` that is waited for.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The same for reads, and for all calls of a patient client. Rate limits count by the minute, and
/// a reader of many pages waits for the next one.
const MAX_WAIT_OF_READS: Duration = Duration::from_secs(61);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The service responds within half a minute, and sends a heartbeat in each stream.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(45);
/// The largest response that is read.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    service: ServiceUrl,
    credential: Credential,
    tenant: Option<TenantUuid>,
    is_patient: bool,
}

/// The current time.
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

impl Client {
    pub fn new(service: ServiceUrl, credential: Credential) -> Result<Self, Error> {
        // A redirect would send an API key to another server.
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        let http = http
            .read_timeout(SILENCE_TIMEOUT)
            .user_agent(concat!("hub-client/", env!("CARGO_PKG_VERSION")));
        // Requests to this machine do not pass through a proxy.
        let http = if service.is_loopback() {
            http.no_proxy()
        } else {
            http
        };
        let http = http
            .build()
            .map_err(|error| Error::Configuration(format!("no HTTPS here: {}", cause(&error))))?;
        Ok(Self {
            http,
            service,
            credential,
            tenant: None,
            is_patient: false,
        })
    }

    /// The same client, for a program that makes many calls with nobody waiting: it waits for the
    /// next minute of a rate limit with all of them.
    pub fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// The same client for one tenant.
    pub fn in_tenant(mut self, tenant: TenantUuid) -> Self {
        self.tenant = Some(tenant);
        self
    }

    pub fn service(&self) -> &ServiceUrl {
        &self.service
    }

    /// The member `data` of the response.
    pub async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let (body, _) = self.respond(&call).await?;
        read::<Data<T>>(&call, &body).map(|response| response.data)
    }

    /// The response as it is, of an operation that answers with a file.
    pub async fn file(&self, call: Call) -> Result<Vec<u8>, Error> {
        self.respond(&call).await.map(|(body, _)| body)
    }

    /// Writes the response of an operation that answers with a file of any size. A response that
    /// breaks off is an error; what has come of it is written.
    pub async fn download(&self, call: Call, to: &mut impl std::io::Write) -> Result<(), Error> {
        let response = self.send(&call, None).await.map_err(|(error, _)| error)?;
        self.copy(response, to).await
    }

    /// Writes a file of any size from a URL that is its own credential. Refusals are retried as
    /// those of any read; a response that breaks off is an error.
    pub async fn get_file(&self, url: &str, to: &mut impl std::io::Write) -> Result<(), Error> {
        let wrong = || {
            Error::Unexpected(format!(
                "the service gave `{url}` to download from, which is no URL"
            ))
        };
        let url = self.service.resolve(url).ok_or_else(wrong)?;
        for attempt in 1.. {
            let error = match self.http.get(url.clone()).send().await {
                Ok(response) if response.status().is_success() => {
                    return self.copy(response, to).await;
                }
                Ok(response) => {
                    let status = response.status().as_u16();
                    let retry_after = response.headers().get(RETRY_AFTER).and_then(seconds);
                    refusal(status, retry_after, &self.body(response).await?)
                }
                Err(error) => self.unreachable(&error),
            };
            match wait("GET", &error, false, attempt, MAX_WAIT_OF_READS) {
                Some(time) => tokio::time::sleep(time).await,
                None => return Err(error),
            }
        }
        Err(Error::Unexpected("no attempt was made".to_owned()))
    }

    async fn copy(&self, response: Response, to: &mut impl std::io::Write) -> Result<(), Error> {
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| self.unreachable(&error))?;
            to.write_all(&chunk).map_err(|error| {
                Error::Unexpected(format!("the file cannot be written: {error}"))
            })?;
        }
        Ok(())
    }

    /// Sends a call and ignores its response.
    pub async fn run(&self, call: Call) -> Result<(), Error> {
        self.respond(&call).await.map(|_| ())
    }

    /// All records of a list, from all its pages.
    pub async fn list<T: DeserializeOwned>(&self, call: Call) -> Result<Vec<T>, Error> {
        self.first(call, usize::MAX).await
    }

    /// The first records of a list.
    pub async fn first<T: DeserializeOwned>(
        &self,
        call: Call,
        limit: usize,
    ) -> Result<Vec<T>, Error> {
        let is_paged = call.operation.query.contains(&"page");
        let size = call.operation.page_size.min(limit.max(1));
        let mut records = Vec::new();
        for page in 1_usize.. {
            let call = match is_paged {
                true => call
                    .clone()
                    .query("page", Some(page))
                    .query("size", Some(size)),
                false => call.clone(),
            };
            let of_page: Vec<T> = self.call(call).await?;
            let is_last = !is_paged || of_page.len() < size;
            records.extend(of_page);
            if is_last || records.len() >= limit {
                break;
            }
        }
        records.truncate(limit);
        Ok(records)
    }

    /// The number of records in a list. The service counts up to 100,000.
    pub async fn count(&self, call: Call) -> Result<u64, Error> {
        let (_, headers) = self.respond(&call.query("size", Some(1))).await?;
        let total = headers
            .get("x-total-count")
            .and_then(|total| total.to_str().ok()?.parse().ok());
        total.ok_or_else(|| Error::Unexpected(format!("{} sent no X-Total-Count", self.service)))
    }

    /// Follows a stream from now on.
    pub fn follow(&self, call: Call) -> Stream {
        Stream::new(self.clone(), call)
    }

    /// Uploads a file to a URL that is its own credential. The upload is not retried: the body can
    /// be read only once.
    pub async fn put_file<T: DeserializeOwned>(
        &self,
        url: &str,
        size: u64,
        body: reqwest::Body,
    ) -> Result<T, Error> {
        let wrong = || {
            Error::Unexpected(format!(
                "the service gave `{url}` to upload to, which is no URL"
            ))
        };
        let url = self.service.resolve(url).ok_or_else(wrong)?;
        let request = self
            .http
            .put(url)
            .header("content-type", "application/octet-stream");
        let response = request
            .header("content-length", size)
            .body(body)
            .send()
            .await;
        let response = response.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = self.body(response).await?;
        match status.is_success() {
            true => serde_json::from_slice::<Data<T>>(&body)
                .map(|response| response.data)
                .map_err(|error| {
                    Error::Unexpected(format!("the response to the upload is not valid: {error}"))
                }),
            false => Err(refusal(status.as_u16(), None, &body)),
        }
    }

    fn longest_wait(&self, call: &Call) -> Duration {
        match self.is_patient || call.operation.method == "GET" {
            true => MAX_WAIT_OF_READS,
            false => MAX_WAIT,
        }
    }

    /// The body and the headers of the response, after retries.
    async fn respond(&self, call: &Call) -> Result<(Vec<u8>, reqwest::header::HeaderMap), Error> {
        for attempt in 1.. {
            let outcome = match self.send(call, None).await {
                Ok(response) => {
                    let headers = response.headers().clone();
                    self.body(response)
                        .await
                        .map(|body| (body, headers))
                        .map_err(|error| (error, false))
                }
                Err(failure) => Err(failure),
            };
            let (error, was_not_sent) = match outcome {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let method = call.operation.method;
            match wait(
                method,
                &error,
                was_not_sent,
                attempt,
                self.longest_wait(call),
            ) {
                Some(time) => tokio::time::sleep(time).await,
                None => return Err(error),
            }
        }
        Err(Error::Unexpected("no attempt was made".to_owned()))
    }

    /// The response of one attempt, if it is a success. A failure says whether the request was
    /// never sent. A refused token is refreshed once.
    pub(crate) async fn send(
        &self,
        call: &Call,
        last_event_id: Option<&str>,
    ) -> Result<Response, (Error, bool)> {
        let mut refused: Option<String> = None;
        loop {
            let method = Method::from_bytes(call.operation.method.as_bytes()).unwrap_or_default();
            let mut url = self.service.join(&call.path);
            if !call.query.is_empty() {
                url.query_pairs_mut().extend_pairs(&call.query);
            }
            let mut request = self.http.request(method, url);
            if let Some(id) = last_event_id {
                request = request.header("last-event-id", id);
            }
            if let Some(tenant) = self.tenant {
                request = request.header("x-tenant-uuid", tenant.to_string());
            }
            if let Some(body) = &call.body {
                request = request.json(body);
            }
            if let Some(bytes) = &call.bytes {
                request = request
                    .header("content-type", "application/octet-stream")
                    .body(bytes.clone());
            }
            let (request, token) = self
                .authorize(request, refused.as_deref())
                .await
                .map_err(|error| (error, true))?;
            let response = request
                .send()
                .await
                .map_err(|error| (self.unreachable(&error), error.is_connect()))?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if status.as_u16() == 401 && token.is_some() && refused.is_none() {
                refused = token;
                continue;
            }
            let retry_after = response.headers().get(RETRY_AFTER).and_then(seconds);
            let body = self.body(response).await.map_err(|error| (error, false))?;
            return Err((refusal(status.as_u16(), retry_after, &body), false));
        }
    }

    /// The request with the credential, and the access token if it carries one.
    async fn authorize(
        &self,
        request: RequestBuilder,
        refused: Option<&str>,
    ) -> Result<(RequestBuilder, Option<String>), Error> {
        let secret = |text: &str| {
            let value = HeaderValue::from_str(text);
            let mut value = value.map_err(|_| {
                Error::Configuration("the credential has invalid characters".to_owned())
            })?;
            value.set_sensitive(true);
            Ok::<_, Error>(value)
        };
        Ok(match &self.credential {
            Credential::Anonymous => (request, None),
            Credential::ApiKey(key) => (request.header("x-api-key", secret(key)?), None),
            Credential::User(tokens) => {
                let token = tokens.get(refused).await?;
                (
                    request.header("authorization", secret(&format!("Bearer {token}"))?),
                    Some(token),
                )
            }
        })
    }

    async fn body(&self, response: Response) -> Result<Vec<u8>, Error> {
        let mut chunks = response.bytes_stream();
        let mut body = Vec::new();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| self.unreachable(&error))?);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(Error::Unexpected(format!(
                    "the response of {} is too long",
                    self.service
                )));
            }
        }
        Ok(body)
    }

    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Error {
        Error::Unreachable(format!(
            "no response from {}: {}",
            self.service,
            cause(error)
        ))
    }
}

/// The wait before the next attempt, or none if the call must not be retried: a POST that may have
/// been carried out is not repeated.
fn wait(
    method: &str,
    error: &Error,
    was_not_sent: bool,
    attempt: u32,
    longest: Duration,
) -> Option<Duration> {
    let usual = Duration::from_millis(250 << attempt.min(6));
    let time = match error {
        _ if attempt >= ATTEMPTS => return None,
        Error::Refused {
            status: 429,
            retry_after,
            ..
        } => retry_after.unwrap_or(usual),
        Error::Refused {
            status: 503,
            retry_after,
            ..
        } if method != "POST" => retry_after.unwrap_or(usual),
        Error::Unreachable(_) if was_not_sent || method != "POST" => usual,
        _ => return None,
    };
    (time <= longest).then_some(time)
}

fn read<T: DeserializeOwned>(call: &Call, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| {
        let Call {
            operation, path, ..
        } = call;
        let advice = "use a version of this program that fits the service";
        Error::Unexpected(format!(
            "the response to {} {path} is not valid: {error}; {advice}",
            operation.method
        ))
    })
}

fn refusal(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Error {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => Error::Refused {
            status,
            problem: Box::new(problem),
            retry_after,
        },
        Err(_) => {
            let what = serde_json::from_slice::<Value>(body)
                .map_or("no JSON", |_| "no problem of hub-cloud");
            Error::Unexpected(format!(
                "the response has status {status} and is {what}; check that the service URL is that of hub-cloud"
            ))
        }
    }
}

fn seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// The innermost cause; the outer ones repeat the URL.
pub fn cause(error: &reqwest::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
