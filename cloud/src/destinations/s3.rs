//! Messages as objects: the events of one message, a line each, compressed. The name of an object
//! depends on the message alone, so a repeated try replaces an object with itself; an object is
//! complete or absent.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStoreExt, RetryConfig};
use reqwest::Url;
use secrecy::ExposeSecret;

use super::auth::Auth;
use super::{
    Answer, Failure, MAX_ANSWER_BYTES, Message, Preview, Sent, body_bytes, credentials_missing,
};
use crate::outgoing::{CallError, Outgoing, OutgoingRequest, OutgoingResponse};

const COMPRESSION_LEVEL: i32 = 3;

#[derive(Clone, Debug)]
pub struct S3 {
    pub bucket: String,
    /// Without a slash at its end. May be empty.
    pub prefix: String,
    pub region: String,
    /// None: Amazon's of the region.
    pub endpoint: Option<Url>,
    pub every_seconds: u64,
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

    pub async fn send(
        &self,
        auth: Option<&Auth>,
        message: &Message,
        outgoing: &Outgoing,
        within: Duration,
    ) -> Sent {
        let Some(Auth::S3 {
            access_key_id,
            secret_access_key,
        }) = auth
        else {
            return Err(credentials_missing());
        };
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
            (Ok(_), Some(Ok(answer))) => Ok((answer, Ok(()))),
            (Err(_), Some(Ok(answer))) => {
                let failure = refused(answer.status.unwrap_or_default());
                Ok((answer, Err(failure)))
            }
            (_, Some(Err(error))) => Err(error.into()),
            (_, None) => Err(Failure::receiver("the object could not be sent")),
        }
    }

    pub fn preview(&self, message: &Message) -> Result<Preview, Failure> {
        let lines = Self::lines(message)?;
        Ok(Preview {
            method: "PUT".to_owned(),
            url: format!("s3://{}/{}", self.bucket, self.key(message)),
            headers: BTreeMap::new(),
            body: String::from_utf8_lossy(&lines).into_owned(),
            error: None,
        })
    }
}

/// An object is never at fault by what is in it, only by its size.
fn refused(status: u16) -> Failure {
    match status {
        401 | 403 => Failure::Credentials {
            reason: format!("the store refused the credentials ({status})"),
        },
        404 => Failure::receiver("there is no such bucket (404)"),
        413 => Failure::message("the object is larger than the store takes (413)"),
        _ => Failure::receiver(format!("the store answered {status}")),
    }
}

/// The client of the store: every request goes through `outgoing`. It remembers how the last one
/// ended, which the errors of the library do not tell.
#[derive(Clone, Debug)]
struct Calls {
    outgoing: Outgoing,
    within: Duration,
    last: Arc<Mutex<Option<Result<Answer, CallError>>>>,
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
        });
        let sent = sent.await;
        let told = sent
            .as_ref()
            .map(|response| Answer::new(response.status, &response.body))
            .map_err(Clone::clone);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
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
