//! The headers of requests that a tenant may set, and those of responses that say when to come
//! back.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use hub_protocol::Timestamp;

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

/// The value of a header that logs must not show.
pub fn secret_value(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| "the credentials do not fit into a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// Seconds, or a date in one of the three forms of HTTP (RFC 9110, 5.6.7); at most an hour.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let until = httpdate::parse_http_date(text).ok()?;
            let until_secs = until.duration_since(UNIX_EPOCH).ok()?.as_secs();
            until_secs.saturating_sub(now.as_secs().unsigned_abs())
        }
    };
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}
