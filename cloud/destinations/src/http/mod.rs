//! Messages as requests: a POST with a body, the headers of the tenant, credentials and signatures.

mod headers;
mod influx;
#[cfg(test)]
mod tests;

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method};
use bytes::Bytes;
use hub_outgoing::OutgoingRequest;
use hub_outgoing::signing::{service_signature, standard_webhook};
use hub_protocol::trace_context::TRACEPARENT;
use hub_steps::{DestinationForm, OptionForm};
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::attempt::{Answer, Failure, MAX_ANSWER_BYTES, Sent};
use crate::auth::{BASIC, BEARER, HEADER, auth_header};
use crate::headers::{retry_after, secret_value};
use crate::kind::{Checked, Destination, Kind, SendFuture, Sending};
use crate::members::Problem;
use crate::message::{Body, Message, Preview, body_bytes};
use crate::source::Source;
use crate::tls;

pub const KIND: Kind = Kind {
    form: DestinationForm {
        kind: "HTTP",
        options: &[
            ("json", OptionForm::Itself("format")),
            ("influx_line", OptionForm::Itself("format")),
            ("template", OptionForm::Itself("format")),
        ],
        required: None,
    },
    members: &["kind", "url", "headers", "auth", "format", "tls"],
    is_signed: true,
    check,
    plain_schemes: &["http", "https"],
    plain: |scheme, url, _| {
        matches!(scheme, "http" | "https").then(|| json!({"kind": "HTTP", "url": url}))
    },
};

#[derive(Debug)]
struct Http {
    url: Url,
    headers: HeaderMap,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    InfluxLine,
    Template,
}

fn check(source: &Source<'_>) -> Result<Checked, Problem> {
    let url = source.url(&["https", "http"])?;
    let auth = source.auth(&[&BEARER, &BASIC, &HEADER])?;
    let (headers, shown_headers) = headers::check(source.members.get("headers"), auth.as_ref())?;
    let format = source
        .members
        .word("format", &["JSON", "INFLUX_LINE", "TEMPLATE"], "JSON")?;
    let mut shown = json!({"kind": "HTTP", "url": url.as_str(), "format": format});
    if let (false, Some(shown)) = (headers.is_empty(), shown.as_object_mut()) {
        shown.insert("headers".to_owned(), shown_headers);
    }
    let format = match format {
        "INFLUX_LINE" => Format::InfluxLine,
        "TEMPLATE" => Format::Template,
        _ => Format::Json,
    };
    let is_secure = url.scheme() == "https";
    let http = Http {
        url,
        headers,
        format,
    };
    let tls = tls::check(source, is_secure)?;
    Ok(Checked::new(http, shown, auth).with_tls(tls))
}

impl Destination for Http {
    fn send<'a>(&'a self, sending: Sending<'a>) -> SendFuture<'a> {
        Box::pin(self.attempt(sending))
    }

    fn preview(&self, message: &Message) -> Result<Preview, Failure> {
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

impl Http {
    async fn attempt(&self, sending: Sending<'_>) -> Sent {
        let (auth, tls) = (sending.auth()?, sending.tls()?);
        let Sending {
            signing,
            message,
            outgoing,
            within,
            ..
        } = sending;
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
            .as_ref()
            .map(auth_header)
            .transpose()
            .map_err(|reason| Failure::Credentials { reason })?;
        if let Some((name, value)) = credentials {
            headers.append(name, value);
        }
        // Before the try as a whole ends, so that a status that has come counts.
        let within = within.saturating_sub(within / 16);
        let request = OutgoingRequest {
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body: Bytes::from(body),
            within,
            max_response_bytes: MAX_ANSWER_BYTES,
            tls,
        };
        let response = outgoing.send_for_status(request).await?;
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
        if let Some(trace) = &message.trace
            && let Ok(value) = HeaderValue::from_str(&trace.to_string())
        {
            headers.insert(HeaderName::from_static(TRACEPARENT), value);
        }
        headers
    }

    /// None if there is nothing to send.
    fn body(&self, message: &Message) -> Result<Option<Vec<u8>>, Failure> {
        match self.format {
            Format::Json => json_of(message).map(Some),
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
}

fn push_line(lines: &mut String, text: &str) {
    if !lines.is_empty() {
        lines.push('\n');
    }
    lines.push_str(text);
}

fn json_of(message: &Message) -> Result<Vec<u8>, Failure> {
    let mut parts = Vec::with_capacity(message.bodies.len());
    for payload in &message.bodies {
        let bytes = body_bytes(&payload.body)?;
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
fn judged(status: u16, retry_after: Option<Duration>) -> Result<(), Failure> {
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
