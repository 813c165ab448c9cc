//! All routes of the service, merged from its subjects. `docs/api/endpoints.tsv` lists every URL.

use std::sync::LazyLock;

use aide::axum::ApiRouter;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;

use super::openapi::Documentation;
use super::{console, health, hygiene, middleware, openapi};
use crate::app::App;
use crate::domain::{
    account_deletion, account_export, accounts, api_keys, audit_logs, billing, ble, ble_reprocess,
    ble_routes, bundles, certificates, claim_codes, consent, dashboard, desired_state,
    device_catalog, device_commands, device_history, device_instances, device_pages, device_query,
    diagnostics, end_users, external_endpoints, floor_plans, hub_release, hubs, invitations, jobs,
    notices, pairing, partner_projects, pipelines, registration_events, releases, scan_config,
    setup_delegations, simulator, streams, supplier_links, supplier_oauth, telemetry,
    tenant_deletion, tenants, transfers, unknown_advertisers, update_policies,
};
use crate::error::Error;

fn routes() -> ApiRouter<App> {
    ApiRouter::new()
        .merge(health::routes())
        .merge(openapi::routes())
        .merge(console::routes())
        .merge(accounts::http::routes())
        .merge(tenants::http::routes())
        .merge(tenant_deletion::http::routes())
        .merge(api_keys::http::routes())
        .merge(audit_logs::http::routes())
        .merge(diagnostics::http::routes())
        .merge(transfers::http::routes())
        .merge(invitations::http::routes())
        .merge(claim_codes::http::routes())
        .merge(hubs::http::routes())
        .merge(bundles::http::routes())
        .merge(hub_release::http::routes())
        .merge(certificates::http::routes())
        .merge(setup_delegations::http::routes())
        .merge(telemetry::http::routes())
        .merge(device_instances::http::routes())
        .merge(device_history::http::routes())
        .merge(ble::http::routes())
        .merge(ble_routes::http::routes())
        .merge(ble_reprocess::http::routes())
        .merge(pipelines::http::routes())
        .merge(simulator::http::routes())
        .merge(device_query::http::routes())
        .merge(unknown_advertisers::http::routes())
        .merge(device_catalog::http::routes())
        .merge(device_pages::http::routes())
        .merge(end_users::http::routes())
        .merge(device_commands::http::routes())
        .merge(external_endpoints::http::routes())
        .merge(floor_plans::http::routes())
        .merge(releases::http::routes())
        .merge(jobs::http::routes())
        .merge(update_policies::http::routes())
        .merge(desired_state::http::routes())
        .merge(scan_config::http::routes())
        .merge(streams::http::routes())
        .merge(supplier_oauth::http::routes())
        .merge(supplier_links::http::routes())
        .merge(registration_events::http::routes())
        .merge(notices::http::routes())
        .merge(consent::http::routes())
        .merge(pairing::http::routes())
        .merge(account_deletion::http::routes())
        .merge(account_export::http::routes())
        .merge(dashboard::http::routes())
        .merge(billing::http::routes())
        .merge(partner_projects::http::routes())
}

/// With what only some services have.
fn all_routes() -> ApiRouter<App> {
    routes().merge(partner_projects::http::dev_routes())
}

/// The OpenAPI document alone.
pub fn describe() -> Value {
    let mut api = openapi::base();
    let _ = all_routes().finish_api(&mut api);
    openapi::finish(api)
}

/// The same for every configuration, so the process needs only one.
static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| Documentation::new(&describe()));

/// The router of the whole service.
pub fn router(app: App) -> Router {
    let served = if app.config.dev_endpoints {
        all_routes()
    } else {
        routes()
    };
    Router::from(served)
        .layer(Extension(DOCUMENTATION.clone()))
        .fallback(unknown_path)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(hygiene::cors(&app))
        .layer(from_fn_with_state(app.clone(), middleware::layer))
        .with_state(app)
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
