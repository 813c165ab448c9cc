//! A call of an external endpoint on behalf of a person: with the token of the account that they
//! linked at the supplier. The endpoint may be slow, broken or hostile: its answer is bounded and
//! judged before anybody sees it.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::Bytes;
use hub_base::error::{Error, Result};
use hub_base::request_id;
use hub_core::Core;
use hub_core::http::json;
use hub_destinations::{own_header, usable_header};
use hub_identity::authz::Scope;
use hub_outgoing::{CallErrorKind, MAX_URL_BYTES, OutgoingRequest, OutgoingResponse};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::store::EndpointRow;
use crate::device_pages::EndpointMethod;

/// The time limit of a whole call.
const WITHIN: Duration = Duration::from_secs(15);
pub const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Headers that only the service sets, whatever a form contains.
const OWN_HEADERS: [&str; 4] = ["authorization", "content-type", "accept-encoding", "cookie"];

/// The request.
pub struct EndpointCall {
    pub method: EndpointMethod,
    /// The path and query, below the URL of the endpoint.
    pub path: String,
    /// The headers of the form; those that the service sets are left out.
    pub headers: Vec<(String, String)>,
    /// The supplier's token of the person.
    pub bearer: SecretString,
    pub values: Map<String, Value>,
}

/// The response of an endpoint.
pub struct EndpointAnswer {
    pub status: StatusCode,
    pub body: Box<RawValue>,
}

/// Calls the tenant's endpoint: 404 if there is none, 409 if its domain is not proved, 502 and 504
/// for one that fails. What an endpoint refuses with a reason is an answer.
pub async fn call(
    core: &Core,
    scope: &Scope,
    id: Uuid,
    request: EndpointCall,
) -> Result<EndpointAnswer> {
    let endpoint = super::proved(&mut core.db.read().await?, scope, id).await?;
    let request = prepared(core, &endpoint, request)?;
    let answered = match core.outgoing.send(request).await {
        Ok(answer) => judged(answer),
        Err(error) if error.kind == CallErrorKind::TimedOut => Err(Fault::TimedOut),
        Err(error) => Err(Fault::Failed(error.message)),
    };
    answered.map_err(|fault| failed(id, fault))
}

fn prepared(core: &Core, endpoint: &EndpointRow, call: EndpointCall) -> Result<OutgoingRequest> {
    let mut url = url_of(endpoint, &call.path)?;
    let mut headers = headers_of(&call.headers);
    // The credentials of the endpoint, besides the token of the person.
    if let Some((name, value)) = super::credentials(core, endpoint)?
        .as_ref()
        .and_then(own_header)
    {
        headers.insert(name, value);
    }
    let bearer = format!("Bearer {}", call.bearer.expose_secret());
    let mut bearer = HeaderValue::from_str(&bearer)
        .map_err(|_| Error::internal("a token does not fit a header"))?;
    bearer.set_sensitive(true);
    // The token is set last, so that no other header replaces it.
    headers.insert(header::AUTHORIZATION, bearer);
    headers
        .entry(header::ACCEPT)
        .or_insert(HeaderValue::from_static("application/json"));
    if let Ok(request_id) = HeaderValue::try_from(request_id::current()) {
        headers.insert("x-request-id", request_id);
    }
    let mut body = Bytes::new();
    if call.method.has_body() {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        body = Value::Object(call.values).to_string().into();
    } else if !call.values.is_empty() {
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        url.query_pairs_mut()
            .extend_pairs(call.values.iter().map(|(name, value)| (name, text(value))));
    }
    if url.as_str().len() > MAX_URL_BYTES {
        let message = format!(
            "make a URL of more than {MAX_URL_BYTES} bytes: this step sends them in its URL"
        );
        return Err(Error::field("values", message));
    }
    let method = call.method.http();
    Ok(OutgoingRequest {
        method,
        url,
        headers,
        body,
        within: WITHIN,
        max_response_bytes: MAX_ANSWER_BYTES,
        tls: None,
    })
}

/// The path below the URL of the endpoint. It never leaves the server that was proved.
fn url_of(endpoint: &EndpointRow, path: &str) -> Result<Url> {
    let base = Url::parse(&endpoint.base_url).map_err(Error::internal)?;
    let url = Url::parse(&format!(
        "{}{path}",
        endpoint.base_url.trim_end_matches('/')
    ))
    .map_err(Error::internal)?;
    match url.origin() == base.origin() && url.username().is_empty() {
        true => Ok(url),
        false => Err(Error::internal("the path of a form leaves its endpoint")),
    }
}

/// The last of several spellings of one name is sent.
fn headers_of(given: &[(String, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let name = usable_header(name.trim())
            .ok()
            .filter(|name| !OWN_HEADERS.contains(&name.as_str()));
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    headers
}

enum Fault {
    TimedOut,
    /// The endpoint does not accept the token of the person.
    Refused,
    Failed(String),
}

/// An answer that a person can be shown: done, or refused with a reason.
fn judged(answer: OutgoingResponse) -> Result<EndpointAnswer, Fault> {
    let status = StatusCode::from_u16(answer.status)
        .map_err(|_| Fault::Failed("it has no status".to_owned()))?;
    match answer.status {
        401 | 403 => return Err(Fault::Refused),
        407 | 408 | 425 | 429 => {
            return Err(Fault::Failed(format!("it answered with status {status}")));
        }
        200..=299 | 400..=499 => {}
        _ => return Err(Fault::Failed(format!("it answered with status {status}"))),
    }
    if answer.is_cut {
        return Err(Fault::Failed(format!(
            "its answer has more than {MAX_ANSWER_BYTES} bytes"
        )));
    }
    let is_blank = status.is_success() && answer.body.trim_ascii().is_empty();
    let body = if is_blank {
        json::object(b"{}")
    } else {
        json::object(&answer.body)
    };
    let body = body.ok_or_else(|| {
        Fault::Failed(format!("it answered no JSON object, with status {status}"))
    })?;
    Ok(EndpointAnswer { status, body })
}

/// The answer where the endpoint is at fault. Its own words stay with it.
fn failed(id: Uuid, fault: Fault) -> Error {
    let (reason, status, code, message) = match fault {
        Fault::TimedOut => (
            "it did not answer in time".to_owned(),
            StatusCode::GATEWAY_TIMEOUT,
            "ENDPOINT_TIMED_OUT",
            "the supplier's endpoint did not answer in time; it may have done what was asked",
        ),
        Fault::Refused => (
            "it refused the token of the linked account".to_owned(),
            StatusCode::BAD_GATEWAY,
            "ENDPOINT_REFUSED",
            "the supplier's endpoint does not accept the linked account; link the account again, or ask the supplier",
        ),
        Fault::Failed(reason) => (
            reason,
            StatusCode::BAD_GATEWAY,
            "ENDPOINT_FAILED",
            "the supplier's endpoint failed; try again later",
        ),
    };
    tracing::info!(external_endpoint = %id, reason, "an external endpoint failed");
    Error::new(status, code, message)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn headers_of_a_form_set_nothing_of_the_service() {
        let given = [
            ("Authorization", "Bearer mine"),
            ("aUTHORIZATION", "Bearer mine"),
            (" authorization ", "Bearer mine"),
            ("Host", "elsewhere.example.com"),
            ("Content-Length", "0"),
            ("Transfer-Encoding", "chunked"),
            ("Accept-Encoding", "gzip"),
            ("Content-Type", "text/plain"),
            ("X-Break", "a\r\nAuthorization: Bearer mine"),
            ("X-Form", "place"),
            ("Accept", "application/vnd.lamps+json"),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = headers_of(&given);
        let names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-form", "accept"]);
    }
}
