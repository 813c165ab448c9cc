//! Protection for browsers and against slow clients, on all routes alike: security headers, which
//! pages may call (CORS), and how long a request may take.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use hub_base::error::Error;
use hub_core::Core;
use tower_http::cors::CorsLayer;

/// The time limit of a request, its body included. Streams respond at once and end on their own.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// The same for hubs: an upload of 4 MiB may arrive over a very slow link.
const HUB_TIME_LIMIT: Duration = Duration::from_secs(4500);
/// The same for the file of a release, whose transfer has a minimum pace instead.
const FILE_TIME_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The time for which a page may cache a preflight response.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(3600);

/// Responses are data: nothing in them may be run, framed or sniffed for its type.
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// `/docs` contains its own script and style, and reads the OpenAPI document.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; \
                           connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The pairing page handles claim codes and passwords: it runs its own files alone, makes no markup
/// of text, and sends nothing elsewhere.
const PAIR_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                           base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                           trusted-types 'none'";

/// Pages that show an outcome as text.
const MESSAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'";

/// The console runs its own files alone, its worker among them, and makes markup of its own
/// templates alone: the two policies for trusted types are that of its framework, and the one that
/// starts the worker. It sends nothing elsewhere.
const CONSOLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                              base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                              trusted-types svelte-trusted-html hub-console-worker";

/// Uploaded images: they run no scripts, whatever their content is and also as a page of their own.
const IMAGE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// The content security policy for the responses of this path.
pub fn content_policy(path: &str) -> &'static str {
    match path {
        "/docs" => DOCS_POLICY,
        "/app/pair" => PAIR_POLICY,
        "/auth/oidc/callback" | "/auth/supplier-link/callback" | "/auth/supplier-link/pending" => {
            MESSAGE_POLICY
        }
        "/console" => CONSOLE_POLICY,
        path if path.starts_with("/console/") => CONSOLE_POLICY,
        path if path.starts_with("/tenant/floor-plans/") => IMAGE_POLICY,
        _ => API_POLICY,
    }
}

/// Adds the headers that every response has.
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
    // Responses contain tokens and personal data, so caching requires an explicit header.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// Pages of the configured origins may call with any credential they hold. Cookies are not among
/// them: browsers add none, and what reads one refuses other origins.
pub fn cors(core: &Core) -> CorsLayer {
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
        .allow_origin(core.config.cors_origins.clone())
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers(REQUEST_HEADERS)
        .expose_headers(ANSWER_HEADERS)
        .max_age(PREFLIGHT_MAX_AGE)
}

/// Every request has a time limit, for any kind of wait.
pub fn time_limit(path: &str) -> Duration {
    match path {
        path if path.starts_with("/v1/") => HUB_TIME_LIMIT,
        path if path.starts_with("/installer/") => FILE_TIME_LIMIT,
        _ => TIME_LIMIT,
    }
}

/// Requests with a body that are served also while the disk is full: they add little or no data,
/// and people and hubs depend on them.
const ALWAYS_SERVED: [&str; 8] = [
    "/auth/login",
    "/auth/logout",
    "/auth/password",
    "/auth/password/reset",
    "/auth/refresh",
    "/auth/session",
    "/auth/session/refresh",
    "/v1/hubs/refresh",
];
/// The same for the ends of paths: what ends something, or what makes room.
const ALWAYS_SERVED_ENDS: [&str; 9] = [
    "/abort", "/block", "/cancel", "/halt", "/limits", "/reject", "/release", "/revoke", "/unblock",
];

/// Whether a request is to add to what is stored, so that it is refused while the disk is full.
pub fn brings_more(method: &Method, path: &str) -> bool {
    let is_served =
        ALWAYS_SERVED.contains(&path) || ALWAYS_SERVED_ENDS.iter().any(|end| path.ends_with(end));
    [Method::POST, Method::PUT, Method::PATCH].contains(method) && !is_served
}

/// The response to a request that reached its time limit.
pub fn timed_out() -> Error {
    Error::unavailable(
        "TIMED_OUT",
        "the request took too long and was aborted; try again",
    )
}
