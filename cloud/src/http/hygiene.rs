//! What browsers and slow connections are told and held to, on every route alike: security headers, which pages may call (CORS), and how long a request
//! may take.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use tower_http::cors::CorsLayer;

use crate::app::App;
use crate::error::Error;

/// How long a request may take, its body included. Streams are answered at once, and end by themselves.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// The same for hubs: an upload of 4 MiB may come over the slowest link.
const HUB_TIME_LIMIT: Duration = Duration::from_secs(4500);
/// The same for a release's file, which comes and goes under a URL of its own and has a pace to keep.
const FILE_TIME_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// A page may remember for so long that it may call.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(3600);

/// Answers are data: nothing in them is to be run, framed, or guessed about.
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// `/docs` has its script and style in itself and reads the API's description.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; \
                           connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What a page made of this path's answer may do.
pub fn content_policy(path: &str) -> &'static str {
    if path == "/docs" { DOCS_POLICY } else { API_POLICY }
}

/// Adds the headers every answer has.
pub fn secure(response: &mut Response, policy: &'static str, is_https: bool) {
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_SECURITY_POLICY, policy);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "no-referrer");
    if is_https {
        set(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    // Answers hold tokens and people's data: what may be kept says so itself.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// The pages of the configured origins may call, with any credential they hold themselves: none is a cookie, so none is sent for them.
pub fn cors(app: &App) -> CorsLayer {
    const REQUEST_HEADERS: [HeaderName; 8] = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        header::IF_NONE_MATCH,
        HeaderName::from_static("x-api-key"),
        HeaderName::from_static("x-tenant-uuid"),
        HeaderName::from_static("x-request-id"),
        HeaderName::from_static("idempotency-key"),
        HeaderName::from_static("last-event-id"),
    ];
    const ANSWER_HEADERS: [HeaderName; 8] = [
        header::ETAG,
        header::LINK,
        header::RETRY_AFTER,
        HeaderName::from_static("x-request-id"),
        HeaderName::from_static("x-total-count"),
        HeaderName::from_static("ratelimit-limit"),
        HeaderName::from_static("ratelimit-remaining"),
        HeaderName::from_static("ratelimit-reset"),
    ];
    CorsLayer::new()
        .allow_origin(app.config.cors_origins.clone())
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(REQUEST_HEADERS)
        .expose_headers(ANSWER_HEADERS)
        .max_age(PREFLIGHT_MAX_AGE)
}

/// No request lasts for ever, whatever it waits for.
pub fn time_limit(path: &str) -> Duration {
    match path {
        path if path.starts_with("/v1/") => HUB_TIME_LIMIT,
        path if path.starts_with("/installer/") => FILE_TIME_LIMIT,
        _ => TIME_LIMIT,
    }
}

/// What a request is answered that reached its limit.
pub fn timed_out() -> Error {
    Error::unavailable("TIMED_OUT", "the request took too long and was given up; try again")
}
