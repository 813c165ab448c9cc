//! Messages as objects: the events of one message, a line each, compressed. The name of an object
//! depends on the message alone, so a repeated try replaces an object with itself; an object is
//! complete or absent.

mod auth;
#[cfg(test)]
pub mod tests;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use hub_outgoing::{CallError, MAX_URL_BYTES, Outgoing, OutgoingRequest, OutgoingResponse};
use hub_protocol::Timestamp;
use hub_steps::{DestinationForm, OptionForm};
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStoreExt, RetryConfig};
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::attempt::{Answer, Failure, MAX_ANSWER_BYTES, Sent, credentials_missing};
use crate::headers::retry_after;
use crate::kind::{BatchDefaults, Checked, Destination, Kind, SendFuture, Sending};
use crate::members::Problem;
use crate::message::{Message, Preview, body_bytes};
use crate::source::Source;
use auth::{FORM, Keys};

const COMPRESSION_LEVEL: i32 = 3;

pub const KIND: Kind = Kind {
    form: DestinationForm {
        kind: "S3",
        options: &[("every", OptionForm::Time("everySeconds"))],
        required: None,
    },
    members: &["kind", "url", "auth", "everySeconds"],
    is_signed: false,
    check,
    plain_schemes: &[],
    plain: |_, _, _| None,
};

#[derive(Debug)]
struct S3 {
    bucket: String,
    /// Without a slash at its end. May be empty.
    prefix: String,
    region: String,
    /// If absent, Amazon's of the region.
    endpoint: Option<Url>,
    every_seconds: u64,
}

fn check(source: &Source<'_>) -> Result<Checked, Problem> {
    let text = source.members.required("url", MAX_URL_BYTES)?;
    let problem = |message: &str| source.members.problem("url", message);
    let (bucket, prefix) = parsed_url(text).map_err(|message| problem(&message))?;
    let auth = source
        .auth(&[&FORM])?
        .ok_or_else(|| source.members.problem("auth", "is missing"))?;
    let of_auth = |name: &str| auth.value.get(name).and_then(Value::as_str);
    let region = of_auth("region").unwrap_or("us-east-1").to_owned();
    // It becomes a part of a host name.
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if region.len() > 32 || !region.bytes().all(is_word) {
        return Err(Problem::new(
            "/auth/region",
            "must be a region such as eu-central-1",
        ));
    }
    let endpoint = match of_auth("endpoint") {
        Some(endpoint) => {
            let checked = source.outgoing.check_url(endpoint, &["https", "http"]);
            let url = checked.map_err(|message| Problem::new("/auth/endpoint", message))?;
            if url.path() != "/" || url.query().is_some() {
                return Err(Problem::new(
                    "/auth/endpoint",
                    "must have no path and no query",
                ));
            }
            Some(url)
        }
        None => None,
    };
    let every_seconds = source.members.number("everySeconds", 10, 3_600, 60)?;
    let shown = json!({"kind": "S3", "url": text, "everySeconds": every_seconds});
    let s3 = S3 {
        bucket,
        prefix,
        region,
        endpoint,
        every_seconds,
    };
    Ok(Checked::new(s3, shown, Some(auth)))
}

/// The bucket and the prefix.
fn parsed_url(text: &str) -> Result<(String, String), String> {
    let form = "must be a URL such as s3://bucket/prefix".to_owned();
    let Some(rest) = text.strip_prefix("s3://") else {
        return Err(form);
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_bucket = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
    };
    let is_named = (3..=63).contains(&bucket.len())
        && bucket.bytes().all(is_bucket)
        && !bucket.starts_with(['.', '-']);
    if !is_named || bucket.contains("..") {
        return Err(form);
    }
    let prefix = prefix.trim_end_matches('/');
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_plain = prefix
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.=!/".contains(&byte));
    if prefix.len() > 512 || !is_plain || !(prefix.is_empty() || prefix.split('/').all(is_part)) {
        return Err(
            "must have a prefix of letters, digits and - _ . = ! between slashes".to_owned(),
        );
    }
    Ok((bucket.to_owned(), prefix.to_owned()))
}

impl Destination for S3 {
    fn send<'a>(&'a self, sending: Sending<'a>) -> SendFuture<'a> {
        Box::pin(self.attempt(sending))
    }

    fn preview(&self, message: &Message) -> Result<Preview, Failure> {
        let lines = Self::lines(message)?;
        Ok(Preview {
            method: "PUT".to_owned(),
            url: format!("s3://{}/{}", self.bucket, self.key(message)),
            headers: BTreeMap::new(),
            body: String::from_utf8_lossy(&lines).into_owned(),
            error: None,
        })
    }

    fn batch_defaults(&self) -> Option<BatchDefaults> {
        Some(BatchDefaults {
            every: Duration::from_secs(self.every_seconds),
        })
    }
}

impl S3 {
    /// The same on every try: it comes from the message, whose first try fixed its time.
    fn key(&self, message: &Message) -> String {
        let time = message.first_event_id;
        let at = chrono::DateTime::from_timestamp_micros(time).unwrap_or_default();
        let name = format!("{}/{}.ndjson.zst", at.format("%Y/%m/%d/%H"), message.id);
        match self.prefix.is_empty() {
            true => name,
            false => format!("{}/{name}", self.prefix),
        }
    }

    fn lines(message: &Message) -> Result<Vec<u8>, Failure> {
        let mut lines = Vec::new();
        for payload in &message.bodies {
            lines.extend(body_bytes(&payload.body)?);
            lines.push(b'\n');
        }
        Ok(lines)
    }

    async fn attempt(&self, sending: Sending<'_>) -> Sent {
        let Keys {
            access_key_id,
            secret_access_key,
        } = sending
            .secrets
            .and_then(Keys::open)
            .ok_or_else(credentials_missing)?;
        let Sending {
            message,
            outgoing,
            within,
            ..
        } = sending;
        let lines = Self::lines(message)?;
        let compressing =
            tokio::task::spawn_blocking(move || zstd::bulk::compress(&lines, COMPRESSION_LEVEL));
        let object = compressing.await.ok().and_then(Result::ok);
        let object =
            object.ok_or_else(|| Failure::receiver("the message could not be compressed"))?;
        let calls = Calls {
            outgoing: outgoing.clone(),
            within,
            last: Arc::default(),
        };
        let last = calls.last.clone();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&self.bucket)
            .with_region(&self.region)
            .with_access_key_id(access_key_id)
            .with_secret_access_key(secret_access_key.expose_secret())
            .with_retry(RetryConfig {
                max_retries: 0,
                ..RetryConfig::default()
            })
            .with_allow_http(true)
            .with_http_connector(calls);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
        }
        let store = builder
            .build()
            .map_err(|_| Failure::receiver("the settings of the bucket cannot be used"))?;
        let path = Path::parse(self.key(message))
            .map_err(|_| Failure::message("the name of the object is not valid"))?;
        let put = store.put(&path, object.into()).await;
        let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (put, last) {
            (Ok(_), Some(Ok((answer, _)))) => Ok((answer, Ok(()))),
            (Err(_), Some(Ok((answer, headers)))) => {
                let failure = refused(&answer, &headers, message.sent_at);
                Ok((answer, Err(failure)))
            }
            (_, Some(Err(error))) => Err(error.into()),
            (_, None) => Err(Failure::receiver("the object could not be sent")),
        }
    }
}

/// An object is never at fault by what is in it, only by its size. The codes are those of Amazon's
/// list of error responses, which other stores use too.
fn refused(answer: &Answer, headers: &HeaderMap, now: Timestamp) -> Failure {
    let status = answer.status.unwrap_or_default();
    let body = answer.body.as_deref().unwrap_or_default();
    let code = element(body, "Code").unwrap_or_default();
    let retry_after = retry_after(headers, now);
    let region = headers.get("x-amz-bucket-region");
    let region = region.and_then(|region| region.to_str().ok());
    let region = region.or_else(|| element(body, "Region"));
    match (status, code) {
        (_, "RequestTimeTooSkewed") => {
            tracing::warn!("a store says that the clock of this service is wrong");
            Failure::receiver(
                "the clocks of the service and of the store differ by more than the store allows \
                 (RequestTimeTooSkewed)",
            )
        }
        (
            _,
            "PermanentRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException",
        )
        | (301 | 307, _) => match region {
            Some(region) => Failure::receiver(format!(
                "the bucket is in another region: {region} ({status}); set it as `region` of `auth`"
            )),
            None => Failure::receiver(format!(
                "the bucket is in another region or at another endpoint ({status} {code})"
            )),
        },
        (_, "SlowDown" | "RequestTimeout" | "ServiceUnavailable") | (408 | 429 | 500..=599, _) => {
            Failure::Receiver {
                reason: format!("the store answered {status} {code}")
                    .trim_end()
                    .to_owned(),
                retry_after,
            }
        }
        (401 | 403, _) => Failure::Credentials {
            reason: format!("the store refused the credentials ({status} {code})"),
        },
        (404, _) => Failure::receiver("there is no such bucket (404)"),
        (413, _) | (_, "EntityTooLarge") => Failure::message(format!(
            "the object is larger than the store takes ({status})"
        )),
        _ => Failure::receiver(format!("the store answered {status} {code}").trim_end()),
    }
}

/// The text of an element of a flat XML document.
fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (text.len() <= 64 && text.chars().all(is_word)).then_some(text)
}

/// An answer of the store, with its headers.
type LastAnswer = (Answer, HeaderMap);

/// The client of the store: every request goes through `outgoing`. It remembers how the last one
/// ended, which the errors of the library do not tell.
#[derive(Clone, Debug)]
struct Calls {
    outgoing: Outgoing,
    within: Duration,
    last: Arc<Mutex<Option<Result<LastAnswer, CallError>>>>,
}

impl HttpConnector for Calls {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl Calls {
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let body = bytes_of(body).await?;
        let sent = self.outgoing.send(OutgoingRequest {
            method: parts.method,
            url,
            headers: parts.headers,
            body,
            within: self.within,
            max_response_bytes: MAX_ANSWER_BYTES,
            tls: None,
        });
        let sent = sent.await;
        let answer = sent
            .as_ref()
            .map(|response| {
                let answer = Answer::new(response.status, &response.body);
                (answer, response.headers.clone())
            })
            .map_err(Clone::clone);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        let OutgoingResponse {
            status,
            headers,
            body,
            ..
        } = sent.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut response = HttpResponse::new(HttpResponseBody::from(body));
        *response.status_mut() = axum::http::StatusCode::from_u16(status)
            .map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// The body of a request, which is in memory.
async fn bytes_of(body: object_store::client::HttpRequestBody) -> Result<Bytes, HttpError> {
    let failed = |error| HttpError::new(HttpErrorKind::Request, std::io::Error::other(error));
    axum::body::to_bytes(axum::body::Body::new(body), usize::MAX)
        .await
        .map_err(failed)
}

impl HttpService for Calls {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.exchange(request))
    }
}
