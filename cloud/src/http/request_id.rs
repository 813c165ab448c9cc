//! One id a request, in the answer's `X-Request-Id` header, in error bodies and in every log line written meanwhile.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MAX_LEN: usize = 64;

tokio::task_local! {
    static CURRENT: HeaderValue;
}

/// The id of the request this task serves; empty outside of one.
pub fn current() -> String {
    CURRENT.try_with(|id| id.to_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

/// Takes the caller's id when it is a sane token, else makes one.
pub async fn layer(request: Request, next: Next) -> Response {
    let id = match request.headers().get(&HEADER) {
        Some(given) if is_sane(given) => given.clone(),
        _ => HeaderValue::from_str(&uuid::Uuid::new_v4().simple().to_string())
            .unwrap_or(HeaderValue::from_static("unknown")),
    };
    let span = tracing::error_span!(
        "request",
        id = id.to_str().unwrap_or_default(),
        method = request.method().as_str(),
        path = request.uri().path()
    );
    let mut response = CURRENT.scope(id.clone(), next.run(request)).instrument(span).await;
    response.headers_mut().insert(HEADER, id);
    response
}

fn is_sane(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=MAX_LEN).contains(&id.len()) && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
