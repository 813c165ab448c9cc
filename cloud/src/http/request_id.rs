//! One id a request, in the answer's `X-Request-Id` header, in error bodies and in every log line written meanwhile.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use tracing::Span;

pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MAX_LEN: usize = 64;

tokio::task_local! {
    static CURRENT: HeaderValue;
}

/// The id of the request this task serves; empty outside of one.
pub fn current() -> String {
    CURRENT.try_with(|id| id.to_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

/// Takes the caller's id when it is a sane token, else makes one.
pub fn of(request: &Request) -> HeaderValue {
    match request.headers().get(&HEADER) {
        Some(given) if is_sane(given) => given.clone(),
        _ => HeaderValue::from_str(&uuid::Uuid::new_v4().simple().to_string())
            .unwrap_or(HeaderValue::from_static("unknown")),
    }
}

/// What log lines about the request begin with.
pub fn span(id: &HeaderValue, request: &Request) -> Span {
    let path = logged(request.uri().path());
    let id = id.to_str().unwrap_or_default();
    tracing::error_span!("request", id, method = request.method().as_str(), path = &*path)
}

/// Does the work under this id.
pub fn with<F: Future>(id: HeaderValue, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(id, work)
}

/// Paths that end in a secret, which no log line may hold.
const BEFORE_SECRETS: [&str; 2] = ["/public/invitations/", "/tenant/hubs/claim-codes/"];

fn logged(path: &str) -> Cow<'_, str> {
    match BEFORE_SECRETS.into_iter().find(|prefix| path.starts_with(prefix)) {
        Some(prefix) => Cow::Owned(format!("{prefix}...")),
        None => Cow::Borrowed(path),
    }
}

fn is_sane(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=MAX_LEN).contains(&id.len()) && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_secret_in_a_path_is_not_logged() {
        for (path, logged) in [
            ("/tenant/hubs", "/tenant/hubs"),
            ("/tenant/hubs/claim-codes", "/tenant/hubs/claim-codes"),
            ("/tenant/hubs/claim-codes/7K3M-9QXT-0V4B-HD2R", "/tenant/hubs/claim-codes/..."),
            ("/public/invitations/U9vCV0qbPXVMcV6m", "/public/invitations/..."),
        ] {
            assert_eq!(super::logged(path), logged);
        }
    }
}
