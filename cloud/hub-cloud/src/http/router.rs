//! All routes of the service, merged from its subjects. `docs/api/endpoints.tsv` lists every URL.

use std::sync::LazyLock;

use aide::axum::ApiRouter;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use hub_base::error::Error;
use hub_core::Core;
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;

use super::openapi::Documentation;
use super::{console, health, hygiene, middleware, openapi, security_txt};
use crate::app::App;

/// The routes of each crate, which have states of their own.
struct Routes {
    service: ApiRouter<Core>,
    people: ApiRouter<hub_people::Parts>,
    fleet: ApiRouter<hub_fleet::Parts>,
    exposure: ApiRouter<hub_exposure::Parts>,
    devices: ApiRouter<hub_devices::Parts>,
    pipelines: ApiRouter<hub_pipelines::Parts>,
    streams: ApiRouter<hub_streams::Streams>,
    composed: ApiRouter<hub_composed::Parts>,
}

fn routes() -> Routes {
    Routes {
        service: ApiRouter::new()
            .merge(health::routes())
            .merge(security_txt::routes())
            .merge(openapi::routes())
            .merge(console::routes()),
        people: hub_people::routes(),
        fleet: hub_fleet::routes(),
        exposure: hub_exposure::routes(),
        devices: hub_devices::routes(),
        pipelines: hub_pipelines::routes(),
        streams: hub_streams::http::routes(),
        composed: hub_composed::routes(),
    }
}

/// The OpenAPI document alone, with or without what `dev-endpoints` serves.
pub fn describe(has_dev_endpoints: bool) -> Value {
    // All routes exist before the first is described, since the names of schemas are unique among
    // those that exist.
    let routes = routes();
    let dev_routes = hub_composed::dev_routes();
    let mut api = openapi::base();
    openapi::add(&mut api, routes.service);
    openapi::add(&mut api, routes.people);
    openapi::add(&mut api, routes.fleet);
    openapi::add(&mut api, routes.exposure);
    openapi::add(&mut api, routes.devices);
    openapi::add(&mut api, routes.pipelines);
    openapi::add(&mut api, routes.streams);
    let composed = match has_dev_endpoints {
        true => routes.composed.merge(dev_routes),
        false => routes.composed,
    };
    openapi::add(&mut api, composed);
    openapi::finish(api)
}

/// The same for every configuration but `dev-endpoints`, so the process makes each only once.
static DOCUMENTATION: LazyLock<Documentation> =
    LazyLock::new(|| Documentation::new(&describe(false)));
static DEV_DOCUMENTATION: LazyLock<Documentation> =
    LazyLock::new(|| Documentation::new(&describe(true)));

/// The router of the whole service.
pub fn router(app: &App) -> Router {
    let mut routes = routes();
    let documentation = match app.config.dev_endpoints {
        true => DEV_DOCUMENTATION.clone(),
        false => DOCUMENTATION.clone(),
    };
    if app.config.dev_endpoints {
        routes.composed = routes.composed.merge(hub_composed::dev_routes());
    }
    let core = app.core();
    Router::new()
        .merge(Router::from(routes.service).with_state(core.clone()))
        .merge(Router::from(routes.people).with_state(app.people()))
        .merge(Router::from(routes.fleet).with_state(app.fleet()))
        .merge(Router::from(routes.exposure).with_state(app.exposure()))
        .merge(Router::from(routes.devices).with_state(app.devices()))
        .merge(Router::from(routes.pipelines).with_state(app.pipelines()))
        .merge(Router::from(routes.streams).with_state(app.parts().streams.clone()))
        .merge(Router::from(routes.composed).with_state(app.composed()))
        .layer(Extension(documentation))
        .fallback(unknown_path)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(hygiene::cors(&core))
        .layer(from_fn_with_state(core, middleware::layer))
}

async fn unknown_path() -> Error {
    Error::new(
        StatusCode::NOT_FOUND,
        "UNKNOWN_PATH",
        "this path does not exist; see /docs",
    )
}

async fn method_not_allowed() -> Error {
    Error::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "METHOD_NOT_ALLOWED",
        "this path does not support this method; see /docs",
    )
}

/// The last resort: the request fails, the service continues.
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    Error::internal(format!(
        "a handler panicked: {}",
        text.unwrap_or("no message")
    ))
    .into_response()
}
