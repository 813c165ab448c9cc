//! The work around every request, on all routes alike: the request gets an id, an address and a
//! time limit and is measured, and the response gets the common headers. It is one function and not
//! a layer for each, since every layer keeps a copy of the inner layers while a request lasts, and
//! thousands of hubs wait at a time.

use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, ErrorCode, FoundStorageFull};
use hub_base::metrics::Measured;
use hub_base::request_id;
use hub_core::Core;
use hub_core::http::compression::Accepted;
use hub_core::http::{client_address, outgoing, remainder};
use tracing::Instrument;

use super::{access_log, head, hygiene, trace};

/// The request's id and address are available to everything done for it, including the log.
pub async fn layer(State(core): State<Core>, request: Request, next: Next) -> Response {
    let id = request_id::of(&request);
    let span = request_id::span(&id, &request);
    let address = client_address::of(&core.config.trusted_proxies, &request);
    let version = request.version();
    let traced = trace::begin(&core, &request);
    let shutdown = core.shutdown.clone();
    let served = client_address::with(address, serve(core, request, next));
    let mut response = request_id::with(id.clone(), served).instrument(span).await;
    if let Some(traced) = traced {
        traced.end(&id, response.status());
    }
    response.headers_mut().insert(request_id::HEADER, id);
    // HTTP/2 has a frame for it.
    if shutdown.is_cancelled() && version < Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

async fn serve(core: Core, request: Request, next: Next) -> Response {
    let measured = Measured::begin(&request);
    let caller = access_log::caller_of(&request);
    let policy = hygiene::content_policy(request.uri().path());
    let limit = hygiene::time_limit(request.uri().path());
    let accepted = Accepted::of(request.headers());
    let holder = outgoing::holder(request.headers());
    let (request, remainder) = remainder::borrow_body(request);
    let is_full = core.storage.is_full();
    let response = match head::check(&request) {
        Err(refusal) => refusal.into_response(),
        Ok(()) if is_full && hygiene::brings_more(request.method(), request.uri().path()) => {
            Error::storage_full().into_response()
        }
        Ok(()) => {
            let is_write = !request.method().is_safe();
            // The writes that go on while the disk is full have the reserve for themselves.
            let quiet = if is_full && is_write {
                Some(core.storage.quiet().await)
            } else {
                None
            };
            let answered = tokio::time::timeout(limit, next.run(request)).await;
            drop(quiet);
            answered.unwrap_or_else(|_| hygiene::timed_out().into_response())
        }
    };
    if response.extensions().get::<FoundStorageFull>().is_some() {
        core.storage.report_full();
    }
    if let Some(ErrorCode(code)) = response.extensions().get()
        && (response.status() == StatusCode::UNAUTHORIZED || code.starts_with("CLAIM_CODE_"))
    {
        core.metrics.refused_credential(code);
    }
    // The future is boxed, since no waiting request has room for it.
    let mut response = Box::pin(outgoing::finish(&core, holder, response, accepted)).await;
    hygiene::secure(&mut response, policy, core.config.is_https());
    access_log::write(
        core.config.access_log,
        measured.route(),
        caller,
        response.status(),
        measured.duration(),
    );
    measured.end(&core.metrics, response.status());
    if let Some(remainder) = remainder {
        remainder.discard().await;
    }
    response
}
