//! Every URL of the service, on one page.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use aide::openapi::{MediaType, OpenApi, ReferenceOr, Response as ApiResponse, StatusCode as Status};
use aide::transform::TransformOperation;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use bytes::Bytes;
use tower_http::catch_panic::CatchPanicLayer;

use super::{health, metrics, openapi, request_id};
use crate::app::App;
use crate::domain::{accounts, claim_codes, hubs, tenants};
use crate::error::Error;

fn routes() -> ApiRouter<App> {
    ApiRouter::new()
        // --- the service itself
        .api_route("/healthz", get_with(health::healthz, doc("service", "Whether the process lives")))
        .api_route("/readyz", get_with(health::readyz, doc("service", "Whether the service can serve now")))
        .api_route(
            "/metrics",
            get_with(metrics::metrics, doc_as("application/openmetrics-text", "service", "Numbers for Prometheus")),
        )
        .api_route(
            "/openapi.json",
            get_with(openapi::document, doc_as("application/json", "service", "This description (OpenAPI 3.1)")),
        )
        .api_route("/docs", get_with(openapi::page, doc_as("text/html", "service", "This description, as a page")))
        // --- people
        .api_route(
            "/.well-known/jwks.json",
            get_with(accounts::http::jwks, doc("auth", "Keys that user tokens are checked with")),
        )
        .api_route("/auth/register", post_with(accounts::http::register, doc("auth", "Make an account, and log in")))
        .api_route("/auth/login", post_with(accounts::http::login, doc("auth", "Log in")))
        .api_route("/auth/refresh", post_with(accounts::http::refresh, doc("auth", "Exchange a refresh token")))
        .api_route("/auth/logout", post_with(accounts::http::logout, doc("auth", "End a login")))
        // --- tenants
        .api_route(
            "/tenant/tenants",
            get_with(tenants::http::list, doc("tenant-tenants", "The tenants you belong to"))
                .post_with(tenants::http::create, doc("tenant-tenants", "Found a tenant, as its OWNER")),
        )
        // --- hubs, called by themselves
        .api_route("/v1/hubs/claim", post_with(hubs::http::claim, doc("hub-api", "Become a hub of the code's tenant")))
        .api_route("/v1/hubs/refresh", post_with(hubs::http::refresh, doc("hub-api", "Get a fresh access token")))
        // --- hubs, for their tenant
        .api_route(
            "/tenant/hubs/claim-codes",
            get_with(claim_codes::http::list, doc("tenant-hubs", "Claim codes, newest first"))
                .post_with(claim_codes::http::create, doc("tenant-hubs", "Make a claim code")),
        )
        .api_route(
            "/tenant/hubs/claim-codes/{claimCode}",
            delete_with(
                claim_codes::http::delete,
                doc("tenant-hubs", "Remove an unused claim code, revoke a used one"),
            ),
        )
}

/// Names an operation in the API description.
fn doc(tag: &'static str, summary: &'static str) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |operation| operation.tag(tag).summary(summary)
}

/// As [`doc`], for an answer that is not the usual envelope.
fn doc_as(
    media_type: &'static str,
    tag: &'static str,
    summary: &'static str,
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |operation| {
        let mut operation = doc(tag, summary)(operation);
        let content = [(media_type.to_owned(), MediaType::default())].into_iter().collect();
        let response = ApiResponse { description: "Done.".to_owned(), content, ..ApiResponse::default() };
        let responses = operation.inner_mut().responses.get_or_insert_default();
        responses.responses.insert(Status::Code(200), ReferenceOr::Item(response));
        operation
    }
}

/// The API's description alone.
pub fn describe() -> OpenApi {
    let mut api = openapi::base();
    let _ = routes().finish_api(&mut api);
    openapi::complete(&mut api);
    api
}

/// The whole service.
pub fn router(app: App) -> Router {
    let mut api = openapi::base();
    let router = routes().finish_api(&mut api);
    openapi::complete(&mut api);
    // A document made of strings and maps; it serialises.
    let document = Bytes::from(serde_json::to_vec(&api).unwrap_or_default());
    router
        .layer(Extension(openapi::Document(document)))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), metrics::layer))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(security_headers))
        .layer(from_fn(request_id::layer))
        .with_state(app)
}

async fn unknown_path() -> Error {
    Error::new(StatusCode::NOT_FOUND, "UNKNOWN_PATH", "there is nothing at this path; see /docs")
}

async fn wrong_method() -> Error {
    Error::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "this path does not take this method; see /docs")
}

/// The last line of defence: the request fails, the service goes on.
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Error::internal(format!("a handler panicked: {}", text.unwrap_or("no message"))).into_response()
}

async fn security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("x-frame-options", HeaderValue::from_static("DENY"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    // Answers hold tokens and people's data: what may be kept says so itself.
    headers.entry("cache-control").or_insert(HeaderValue::from_static("no-store"));
    response
}
