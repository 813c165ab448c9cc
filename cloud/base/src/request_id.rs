//! One id for each request. It is sent in the `X-Request-Id` header and in error bodies, and it is
//! part of every log line about the request.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use tracing::Span;

pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MAX_LEN: usize = 64;

tokio::task_local! {
    static CURRENT: HeaderValue;
}

/// The id of the request that this task serves; empty outside of a request.
pub fn current() -> String {
    CURRENT
        .try_with(|id| id.to_str().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

/// The client's id if it is a well-formed token, otherwise a new one.
pub fn of(request: &Request) -> HeaderValue {
    match request.headers().get(&HEADER) {
        Some(given) if is_well_formed(given) => given.clone(),
        _ => HeaderValue::from_str(&uuid::Uuid::new_v4().simple().to_string())
            .unwrap_or(HeaderValue::from_static("unknown")),
    }
}

/// The fields that every log line about the request starts with.
pub fn span(id: &HeaderValue, request: &Request) -> Span {
    let path = logged(request.uri().path());
    let id = id.to_str().unwrap_or_default();
    tracing::error_span!(
        "request",
        id,
        method = request.method().as_str(),
        path = &*path
    )
}

/// Runs the work under this id.
pub fn with<F: Future>(id: HeaderValue, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(id, work)
}

/// Prefixes of paths that end in a secret. The secret must not be logged.
const SECRET_PREFIXES: [&str; 2] = ["/public/invitations/", "/tenant/hubs/claim-codes/"];

fn logged(path: &str) -> Cow<'_, str> {
    match SECRET_PREFIXES
        .into_iter()
        .find(|prefix| path.starts_with(prefix))
    {
        Some(prefix) => Cow::Owned(format!("{prefix}...")),
        None => Cow::Borrowed(path),
    }
}

fn is_well_formed(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=MAX_LEN).contains(&id.len())
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_secret_in_a_path_is_not_logged() {
        for (path, logged) in [
            ("/tenant/hubs", "/tenant/hubs"),
            ("/tenant/hubs/claim-codes", "/tenant/hubs/claim-codes"),
            (
                "/tenant/hubs/claim-codes/7K3M-9QXT-0V4B-HD2R",
                "/tenant/hubs/claim-codes/...",
            ),
            (
                "/public/invitations/U9vCV0qbPXVMcV6m",
                "/public/invitations/...",
            ),
        ] {
            assert_eq!(super::logged(path), logged);
        }
    }
}
