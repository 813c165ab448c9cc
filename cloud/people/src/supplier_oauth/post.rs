//! Signed messages to the systems of suppliers, over the one client for addresses that tenants
//! choose.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use bytes::Bytes;
use hub_core::Core;
use hub_outgoing::signing::{service_signature, standard_webhook};
use hub_outgoing::{CallError, OutgoingRequest};
use hub_protocol::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

/// The time limit of a whole call. Background work with several calls in a row keeps its lease.
const WITHIN: Duration = Duration::from_secs(10);
/// The bytes of a receiver's answer, whose content is ignored.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// A message to a supplier.
pub struct Message {
    pub event_type: &'static str,
    /// The same in every try.
    pub id: Uuid,
    /// JSON.
    pub body: String,
}

/// The reason why a message was not accepted.
#[derive(Debug)]
pub struct Refused {
    /// A plain sentence.
    pub message: String,
    /// The delay that the receiver asks for, in seconds from now.
    pub retry_after_secs: Option<i64>,
}

/// Sends a message. The receiver accepts it with any 2xx. Without a secret it is not signed.
pub async fn post(
    core: &Core,
    url: &str,
    secret: Option<&SecretString>,
    message: &Message,
) -> Result<(), Refused> {
    let now = core.clock.now();
    let refused = |message: String| Refused {
        message,
        retry_after_secs: None,
    };
    // The settings may allow less than when the URL was stored.
    let url = core
        .outgoing
        .check_url(url, schemes(core))
        .map_err(|reason| refused(format!("the URL {reason}")))?;
    let request = OutgoingRequest {
        method: Method::POST,
        url,
        headers: headers(secret, message, now),
        body: Bytes::copy_from_slice(message.body.as_bytes()),
        within: WITHIN,
        max_response_bytes: MAX_RESPONSE_BYTES,
        tls: None,
    };
    let answer = core
        .outgoing
        .send(request)
        .await
        .map_err(|CallError { message, .. }| refused(message))?;
    match answer.status {
        200..=299 => Ok(()),
        status => Err(Refused {
            message: format!("the receiver answered {status}"),
            retry_after_secs: retry_after(&answer.headers, now),
        }),
    }
}

/// The schemes of URLs that a tenant may configure.
pub fn schemes(core: &Core) -> &'static [&'static str] {
    match core.outgoing.allows_private() {
        true => &["https", "http"],
        false => &["https"],
    }
}

fn headers(secret: Option<&SecretString>, message: &Message, now: Timestamp) -> HeaderMap {
    let id = message.id.to_string();
    let mut values = vec![
        ("x-service-event-type", message.event_type.to_owned()),
        ("x-service-idempotency-key", id.clone()),
        ("x-service-timestamp", now.to_string()),
        ("webhook-id", id.clone()),
        ("webhook-timestamp", now.as_secs().to_string()),
    ];
    if let Some(secret) = secret {
        let body = message.body.as_bytes();
        values.push((
            "x-service-signature",
            service_signature(secret.expose_secret().as_bytes(), body),
        ));
        values.push((
            "webhook-signature",
            standard_webhook(secret, &id, now.as_secs(), body),
        ));
    }
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    for (name, value) in values {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// The delay in seconds, from seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<i64> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match value.parse::<i64>() {
        Ok(secs) => Some(secs.max(0)),
        Err(_) => {
            let at = chrono::DateTime::parse_from_rfc2822(value).ok()?;
            Some((at.timestamp() - now.as_secs()).max(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now = Timestamp::from_micros(1_800_014_400_000_000);
        for (value, expected) in [
            ("120", Some(120)),
            ("-5", Some(0)),
            ("Fri, 15 Jan 2027 12:01:00 GMT", Some(60)),
            ("Fri, 15 Jan 2027 11:00:00 GMT", Some(0)),
            ("soon", None),
        ] {
            let headers =
                HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry_after(&headers, now), expected, "{value}");
        }
    }

    #[test]
    fn a_message_without_a_secret_is_not_signed() {
        let now = Timestamp::from_micros(1_800_014_400_000_000);
        let message = Message {
            event_type: "hub.claimed",
            id: Uuid::nil(),
            body: "{}".to_owned(),
        };
        let headers = headers(None, &message, now);
        assert!(
            !headers.contains_key("x-service-signature")
                && !headers.contains_key("webhook-signature")
        );
        assert_eq!(headers["webhook-timestamp"], "1800014400");
    }
}
