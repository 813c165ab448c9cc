//! Messages as requests: a POST with a body, the headers of the tenant, credentials and signatures.

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::DateTime;
use hub_protocol::Timestamp;
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use super::auth::{Auth, ShownAuth};
use super::{
    Answer, Body, Failure, MAX_ANSWER_BYTES, Message, Preview, Problem, Sent, Signing, influx,
};
use crate::outgoing::signing::{service_signature, standard_webhook};
use crate::outgoing::{Outgoing, OutgoingRequest};

const MAX_HEADERS: usize = 32;
const MAX_HEADER_VALUE: usize = 1_024;
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);
/// What the connection itself needs, and what is the service's to say.
const RESERVED: [&str; 12] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "content-encoding",
];

#[derive(Clone, Debug)]
pub struct Http {
    pub url: Url,
    pub headers: HeaderMap,
    pub format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    InfluxLine,
    Template,
}

/// Checks the headers of a tenant; also as they are shown.
pub fn headers(
    value: Option<&Value>,
    auth: Option<&ShownAuth>,
) -> Result<(HeaderMap, Value), Problem> {
    let auth_header = auth.map(|auth| auth.header.as_deref().unwrap_or(AUTHORIZATION.as_str()));
    if let Some(name) = auth_header.filter(|name| *name != AUTHORIZATION.as_str()) {
        usable(name).map_err(|message| Problem::new("/auth/name", message))?;
    }
    let mut headers = HeaderMap::new();
    let mut shown = Map::new();
    let Some(value) = value else {
        return Ok((headers, shown.into()));
    };
    let given = value
        .as_object()
        .ok_or_else(|| Problem::new("/headers", "must be an object of texts"))?;
    if given.len() > MAX_HEADERS {
        return Err(Problem::new(
            "/headers",
            format!("must have {MAX_HEADERS} members at most"),
        ));
    }
    for (name, value) in given {
        let place: String = name.chars().take(100).collect();
        let problem = |message: &str| {
            Problem::new(
                format!("/headers/{}", place.replace('~', "~0").replace('/', "~1")),
                message,
            )
        };
        let checked = usable(name).map_err(|message| problem(&message))?;
        if auth_header == Some(checked.as_str()) {
            return Err(problem("is set by `auth`: give one of the two"));
        }
        let text = value.as_str().filter(|text| text.len() <= MAX_HEADER_VALUE);
        let text = text.ok_or_else(|| problem("must be a text of 1,024 bytes at most"))?;
        let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
        let value = HeaderValue::from_str(text).ok().filter(|_| is_plain);
        let value =
            value.ok_or_else(|| problem("must be of ASCII characters, without line breaks"))?;
        if headers.insert(checked, value).is_some() {
            return Err(problem("is there twice"));
        }
        shown.insert(name.clone(), text.into());
    }
    Ok((headers, shown.into()))
}

/// The name of a header that a tenant may set.
pub fn usable(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .ok()
        .filter(|_| name.len() <= 100);
    let parsed = parsed.ok_or("must be named as headers are, in 100 bytes at most")?;
    let is_ours = ["x-service-", "webhook-"]
        .iter()
        .any(|prefix| parsed.as_str().starts_with(prefix));
    match RESERVED.contains(&parsed.as_str()) || is_ours {
        true => Err("is set by the service".to_owned()),
        false => Ok(parsed),
    }
}

fn secret_value(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| "the credentials do not fit into a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// The header that the credentials are sent in; none of those of S3. The error is for people.
pub fn auth_header(auth: &Auth) -> Result<Option<(HeaderName, HeaderValue)>, String> {
    Ok(Some(match auth {
        Auth::Bearer { token } => (
            AUTHORIZATION,
            secret_value(&format!("Bearer {}", token.expose_secret()))?,
        ),
        Auth::Basic { username, password } => {
            let pair = STANDARD.encode(format!("{username}:{}", password.expose_secret()));
            (AUTHORIZATION, secret_value(&format!("Basic {pair}"))?)
        }
        Auth::Header { name, value } => (usable(name)?, secret_value(value.expose_secret())?),
        Auth::S3 { .. } => return Ok(None),
    }))
}

impl Http {
    pub async fn send(
        &self,
        auth: Option<&Auth>,
        signing: Option<&Signing>,
        message: &Message,
        outgoing: &Outgoing,
        within: Duration,
    ) -> Sent {
        // Nothing to say is said without a call.
        let Some(body) = self.body(message)? else {
            return Ok((Answer::default(), Ok(())));
        };
        let mut headers = self.plain_headers(message);
        let mut add = |name: HeaderName, value: String| -> Result<(), Failure> {
            headers.append(
                name,
                secret_value(&value).map_err(|reason| Failure::Credentials { reason })?,
            );
            Ok(())
        };
        if let Some(signing) = signing {
            let secs = message.sent_at.as_micros().div_euclid(1_000_000);
            let secrets = || std::iter::once(&signing.current).chain(&signing.previous);
            let signatures: Vec<String> = secrets()
                .map(|secret| standard_webhook(secret, &message.id, secs, &body))
                .collect();
            add(
                HeaderName::from_static("webhook-signature"),
                signatures.join(" "),
            )?;
            for secret in secrets() {
                let signature = service_signature(secret.expose_secret().as_bytes(), &body);
                add(HeaderName::from_static("x-service-signature"), signature)?;
            }
        }
        let credentials = auth
            .map_or(Ok(None), auth_header)
            .map_err(|reason| Failure::Credentials { reason })?;
        if let Some((name, value)) = credentials {
            headers.append(name, value);
        }
        let request = OutgoingRequest {
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body: Bytes::from(body),
            within,
            max_response_bytes: MAX_ANSWER_BYTES,
        };
        let response = outgoing.send(request).await?;
        let retry_after = retry_after(&response.headers, message.sent_at);
        Ok((
            Answer::new(response.status, &response.body),
            judged(response.status, retry_after),
        ))
    }

    /// All headers that hold no secret.
    fn plain_headers(&self, message: &Message) -> HeaderMap {
        let mut headers = self.headers.clone();
        let content_type = match self.format {
            Format::Json => "application/json",
            Format::InfluxLine | Format::Template => "text/plain; charset=utf-8",
        };
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static(content_type));
        let secs = message
            .sent_at
            .as_micros()
            .div_euclid(1_000_000)
            .to_string();
        for (name, text) in [
            ("x-service-event-type", message.event_type),
            ("x-service-idempotency-key", message.id.as_str()),
            ("x-service-timestamp", secs.as_str()),
            ("webhook-id", message.id.as_str()),
            ("webhook-timestamp", secs.as_str()),
        ] {
            // None of them has a character that a header could not have.
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers
    }

    /// None if there is nothing to send.
    fn body(&self, message: &Message) -> Result<Option<Vec<u8>>, Failure> {
        match self.format {
            Format::Json => json(message).map(Some),
            Format::InfluxLine => {
                let mut lines = String::new();
                for payload in &message.bodies {
                    match &payload.body {
                        Body::Event(event) => influx::write(event, &mut lines),
                        Body::Text(text) => push_line(&mut lines, text),
                    }
                }
                Ok((!lines.is_empty()).then(|| lines.into_bytes()))
            }
            Format::Template => {
                let mut lines = String::new();
                for payload in &message.bodies {
                    let Body::Text(text) = &payload.body else {
                        return Err(Failure::message(
                            "the format is TEMPLATE, and no `template` step made a text",
                        ));
                    };
                    push_line(&mut lines, text);
                }
                Ok(Some(lines.into_bytes()))
            }
        }
    }

    pub fn preview(&self, message: &Message) -> Result<Preview, Failure> {
        let Some(body) = self.body(message)? else {
            return Err(Failure::message(
                "the event has no values, so nothing is sent",
            ));
        };
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = self.plain_headers(message);
        Ok(Preview {
            method: "POST".to_owned(),
            url: self.url.to_string(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            body: String::from_utf8_lossy(&body).into_owned(),
            error: None,
        })
    }
}

fn push_line(lines: &mut String, text: &str) {
    if !lines.is_empty() {
        lines.push('\n');
    }
    lines.push_str(text);
}

fn json(message: &Message) -> Result<Vec<u8>, Failure> {
    let mut parts = Vec::with_capacity(message.bodies.len());
    for payload in &message.bodies {
        let bytes = super::body_bytes(&payload.body)?;
        let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
        if matches!(payload.body, Body::Text(_)) && !is_json() {
            return Err(Failure::message(
                "the format is JSON, and the text that the template made is none",
            ));
        }
        parts.push(bytes);
    }
    match (message.is_batch, parts.as_mut_slice()) {
        (false, [one]) => Ok(std::mem::take(one)),
        _ => Ok([b"[".as_slice(), &parts.join(b",".as_slice()), b"]"].concat()),
    }
}

/// What a status means.
pub fn judged(status: u16, retry_after: Option<Duration>) -> Result<(), Failure> {
    match status {
        200..=299 => Ok(()),
        401 | 403 => Err(Failure::Credentials {
            reason: format!("the receiver refused the credentials ({status})"),
        }),
        410 => Err(Failure::Gone {
            reason: "the receiver says that it is gone for good (410)".to_owned(),
        }),
        300..=399 => Err(Failure::receiver(format!(
            "the receiver redirected ({status}), which is not followed"
        ))),
        408 | 425 | 429 | 500..=599 => Err(Failure::Receiver {
            reason: format!("the receiver answered {status}"),
            retry_after,
        }),
        400..=499 => Err(Failure::message(format!(
            "the receiver refused the message ({status})"
        ))),
        _ => Err(Failure::receiver(format!("the receiver answered {status}"))),
    }
}

/// Seconds, or a time of the day of HTTP; at most an hour.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let until = DateTime::parse_from_rfc2822(text).ok()?.timestamp();
            u64::try_from(until - now.as_micros().div_euclid(1_000_000)).unwrap_or_default()
        }
    };
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}
