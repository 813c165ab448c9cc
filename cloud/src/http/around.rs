//! What happens around every request, on every route alike: it gets an id, an address and a time limit, is measured, and its answer gets the headers that
//! all answers have. One function rather than a layer for each: every layer keeps a copy of those inside it for as long as a request lasts, and
//! thousands of hubs wait at a time.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::{client_address, hygiene, metrics, remainder, request_id};
use crate::app::App;

/// The request's id and address hold for all that is done for it, the log included.
pub async fn layer(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = request_id::of(&request);
    let span = request_id::span(&id, &request);
    let address = client_address::note(&app, &mut request);
    let served = client_address::with(address, serve(app, request, next));
    let mut response = request_id::with(id.clone(), served).instrument(span).await;
    response.headers_mut().insert(request_id::HEADER, id);
    response
}

async fn serve(app: App, request: Request, next: Next) -> Response {
    let measured = metrics::Measured::begin(&request);
    let policy = hygiene::content_policy(request.uri().path());
    let limit = hygiene::time_limit(request.uri().path());
    let (request, remainder) = remainder::lend(request);
    let answered = tokio::time::timeout(limit, next.run(request)).await;
    let mut response = answered.unwrap_or_else(|_| hygiene::timed_out().into_response());
    hygiene::secure(&mut response, policy, app.config.is_https());
    measured.end(&app.metrics, response.status());
    if let Some(remainder) = remainder {
        remainder.pass_over().await;
    }
    response
}
