//! Every URL of the service, on one page.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, patch_with, post_with, put_with};
use aide::openapi::{MediaType, OpenApi, ReferenceOr, Response as ApiResponse, StatusCode as Status};
use aide::transform::TransformOperation;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use bytes::Bytes;
use tower_http::catch_panic::CatchPanicLayer;

use super::{around, health, hygiene, metrics, openapi};
use crate::app::App;
use crate::domain::hubs::http::{platform as platform_hubs, protocol as hub, tenant as tenant_hubs};
use crate::domain::jobs::http::{platform as platform_jobs, protocol as own_jobs, tenant as tenant_jobs};
use crate::domain::releases::http as releases;
use crate::domain::{
    accounts, api_keys, audit, ble, certificates, claim_codes, diagnostics, invitations, policies, setup_delegations,
    streams, telemetry, tenants, transfers,
};
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
        .api_route(
            "/auth/password",
            post_with(accounts::http::change_password, doc("auth", "Set another password, knowing the current one")),
        )
        .api_route(
            "/auth/password/forgot",
            post_with(accounts::http::forgot_password, doc("auth", "Have a token mailed that sets a new password")),
        )
        .api_route(
            "/auth/password/reset",
            post_with(accounts::http::reset_password, doc("auth", "Set a new password with a token that was mailed")),
        )
        // --- tenants
        .api_route(
            "/tenant/tenants",
            get_with(tenants::http::list, doc("tenant-tenants", "The tenants you belong to"))
                .post_with(tenants::http::create, doc("tenant-tenants", "Found a tenant, as its OWNER")),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}/members",
            get_with(tenants::http::list_members, doc("tenant-tenants", "Who belongs to a tenant"))
                .post_with(tenants::http::grant_access, doc("tenant-tenants", "Let someone in, or change their role")),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}/members/{targetPersonaUuid}",
            delete_with(tenants::http::remove_member, doc("tenant-tenants", "Take a member's access away")),
        )
        // --- a tenant's keys, its audit log, and who calls
        .api_route(
            "/tenant/api-keys",
            get_with(api_keys::http::list, doc("tenant-keys", "API keys in force, newest first"))
                .post_with(api_keys::http::create, doc("tenant-keys", "Make an API key, which is shown this once")),
        )
        .api_route(
            "/tenant/api-keys/{apiKeyId}",
            put_with(api_keys::http::update, doc("tenant-keys", "Rename an API key, change its scopes or its limit"))
                .delete_with(api_keys::http::deactivate, doc("tenant-keys", "Deactivate an API key for good")),
        )
        .api_route(
            "/tenant/audit-logs",
            get_with(audit::http::list, doc("tenant-audit", "Who changed what in the tenant, latest first")),
        )
        .api_route(
            "/tenant/test",
            get_with(diagnostics::http::test, doc("tenant-diagnostics", "Who the service takes you for")),
        )
        .api_route(
            "/tenant/units/{tenantUuid}/test",
            get_with(diagnostics::http::test, doc("tenant-diagnostics", "Who the service takes you for in a tenant")),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}",
            patch_with(tenants::http::update, doc("tenant-tenants", "Rename a tenant"))
                .delete_with(tenants::http::delete, doc("tenant-tenants", "Delete a tenant")),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}/transfer",
            post_with(transfers::http::initiate, doc("tenant-tenants", "Offer a tenant to another owner")),
        )
        .api_route(
            "/tenant/transfer-requests/incoming",
            get_with(transfers::http::incoming, doc("tenant-transfers", "Transfers you may accept or reject")),
        )
        .api_route(
            "/tenant/transfer-requests/outgoing",
            get_with(transfers::http::outgoing, doc("tenant-transfers", "Transfers you may cancel")),
        )
        .api_route(
            "/tenant/transfer-requests/{requestUuid}/accept",
            post_with(transfers::http::accept, doc("tenant-transfers", "Become the owner of a tenant")),
        )
        .api_route(
            "/tenant/transfer-requests/{requestUuid}/reject",
            post_with(transfers::http::reject, doc("tenant-transfers", "Turn a transfer down")),
        )
        .api_route(
            "/tenant/transfer-requests/{requestUuid}/cancel",
            post_with(transfers::http::cancel, doc("tenant-transfers", "Take a transfer back")),
        )
        // --- who belongs to a tenant, and who is invited
        .api_route(
            "/tenant/personas",
            get_with(invitations::http::list, doc("tenant-personas", "Members and invitations")),
        )
        .api_route(
            "/tenant/personas/invite",
            post_with(invitations::http::invite, doc("tenant-personas", "Invite an e-mail, or let a persona in")),
        )
        .api_route(
            "/tenant/personas/invite-candidates",
            get_with(invitations::http::candidates, doc("tenant-personas", "People you know from other tenants")),
        )
        .api_route(
            "/tenant/personas/{personaUuid}",
            patch_with(invitations::http::change_role, doc("tenant-personas", "Change a member's role"))
                .delete_with(invitations::http::remove, doc("tenant-personas", "Take a member's access away")),
        )
        .api_route(
            "/tenant/personas/invitations/{invitationId}",
            delete_with(invitations::http::revoke, doc("tenant-personas", "Take an invitation back")),
        )
        .api_route(
            "/tenant/personas/invitations/{invitationId}/resend",
            post_with(invitations::http::resend, doc("tenant-personas", "Send an invitation again")),
        )
        .api_route("/invitations/accept", post_with(invitations::http::accept, doc("public", "Accept an invitation")))
        .api_route(
            "/public/invitations/{token}",
            get_with(invitations::http::show, doc("public", "What an invitation offers")),
        )
        // --- hubs, called by themselves
        .api_route(
            "/v1/hubs/{hubUuid}/logs",
            post_with(telemetry::http::upload_logs, doc("hub-api", "Upload log entries: any JSON")),
        )
        .api_route(
            "/v1/hubs/{hubUuid}/telemetry",
            post_with(telemetry::http::upload_telemetry, doc("hub-api", "Upload telemetry: any JSON")),
        )
        .api_route("/v1/ble/events", post_with(ble::http::upload, doc("hub-api", "Upload BLE events")))
        .api_route(
            "/v1/ble/events/windowed",
            post_with(ble::http::upload_windowed, doc("hub-api", "Upload what was heard of each device in a window")),
        )
        .api_route("/v1/hubs/claim", post_with(hub::claim, doc("hub-api", "Become a hub of the code's tenant")))
        .api_route("/v1/hubs/refresh", post_with(hub::refresh, doc("hub-api", "Get a fresh access token")))
        .api_route(
            "/v1/hubs/{hubUuid}/certificates",
            post_with(certificates::http::issue, doc("hub-api", "Get a client certificate for a key of the hub's own")),
        )
        .api_route(
            "/v1/hubs/ca-bundle",
            get_with(
                certificates::http::ca_bundle,
                doc_as("application/x-pem-file", "hub-api", "The roots of hubs' certificates, in PEM form"),
            ),
        )
        .api_route("/v1/hubs/adapters", post_with(hub::store_adapters, doc("hub-api", "Report all Bluetooth adapters")))
        .api_route("/v1/hubs/scan-config", get_with(hub::scan_config, doc("hub-api", "What to look for on the air")))
        .api_route(
            "/v1/hubs/{hubUuid}/desired-state",
            get_with(hub::desired_state, doc("hub-api", "What is wanted of the hub, now or once it changes")),
        )
        .api_route(
            "/v1/hubs/{hubUuid}/jobs/{hubJobUuid}/events",
            post_with(own_jobs::record_event, doc("hub-api", "Tell what happened to a job")),
        )
        .api_route(
            "/v1/hubs/{hubUuid}/installed-apps",
            put_with(own_jobs::report_installed_apps, doc("hub-api", "Report all installed apps")),
        )
        .api_route(
            "/v1/apps/{appReleaseUuid}/manifest",
            get_with(releases::protocol::app_manifest, doc("hub-api", "A release of an app, and where its file is")),
        )
        .api_route(
            "/v1/agent/releases/latest",
            get_with(releases::protocol::latest_agent, doc("hub-api", "The newest agent there is for the hub")),
        )
        .api_route("/v1/test", get_with(hub::test, doc("hub-api", "Who the service takes the hub for")))
        // --- hubs, for their tenant
        .api_route("/tenant/hubs", get_with(tenant_hubs::list, doc("tenant-hubs", "Hubs, newest first")))
        .api_route(
            "/tenant/hubs/{hubUuid}",
            get_with(tenant_hubs::get, doc("tenant-hubs", "One hub"))
                .patch_with(tenant_hubs::update, doc("tenant-hubs", "Label or describe a hub")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/adapters",
            get_with(tenant_hubs::list_adapters, doc("tenant-hubs", "A hub's Bluetooth adapters")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/adapters/{address}",
            patch_with(tenant_hubs::update_adapter, doc("tenant-hubs", "Decide what an adapter is for")),
        )
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
        .api_route(
            "/tenant/hubs/{hubUuid}/logs",
            get_with(telemetry::http::list_logs, doc("tenant-hubs", "Log entries of a hub, latest first")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/telemetry",
            get_with(telemetry::http::list_telemetry, doc("tenant-hubs", "Telemetry of a hub, latest first")),
        )
        // --- what hubs are to do, and the apps that come of it
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs",
            get_with(tenant_jobs::list, doc("tenant-hubs", "Jobs of a hub, newest first")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs/app-install",
            post_with(tenant_jobs::install_app, doc("tenant-hubs", "Have a hub install a release of an app")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs/app-remove",
            post_with(tenant_jobs::remove_app, doc("tenant-hubs", "Have a hub remove an app")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs/{hubJobUuid}",
            delete_with(tenant_jobs::cancel, doc("tenant-hubs", "Cancel a job that is not over")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/apps",
            get_with(tenant_jobs::apps, doc("tenant-hubs", "Apps that should be installed on a hub")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/installed-apps",
            get_with(tenant_jobs::installed_apps, doc("tenant-hubs", "Apps that a hub reports as installed")),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/jobs",
            get_with(tenant_jobs::page, doc("tenant-monitoring", "Jobs of a hub, as pages")),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}",
            get_with(tenant_jobs::get, doc("tenant-monitoring", "One job, with what is wanted and what came of it")),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}/events",
            get_with(tenant_jobs::page_events, doc("tenant-monitoring", "What a hub told about a job, as pages")),
        )
        // --- who may set a hub up
        .api_route(
            "/tenant/hubs/{hubUuid}/setup-delegations",
            get_with(setup_delegations::http::list, doc("tenant-hubs", "Whom a hub is lent to, newest first"))
                .post_with(setup_delegations::http::create, doc("tenant-hubs", "Lend a hub to a person to set it up")),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/setup-delegations/{id}",
            delete_with(setup_delegations::http::delete, doc("tenant-hubs", "Take a lent hub back")),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/logs",
            get_with(telemetry::http::page_logs, doc("tenant-monitoring", "Log entries of a hub, as pages")),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/telemetry",
            get_with(telemetry::http::page_telemetry, doc("tenant-monitoring", "Telemetry of a hub, as pages")),
        )
        // --- BLE events
        .api_route("/tenant/ble/events", get_with(ble::http::list, doc("tenant-ble", "BLE events, latest first")))
        .api_route("/tenant/ble/events/{bleEventId}", get_with(ble::http::get, doc("tenant-ble", "One BLE event")))
        .api_route("/tenant/ble-query/events", get_with(ble::http::query, doc("tenant-ble", "BLE events, as pages")))
        .api_route(
            "/tenant/ble-query/events/{bleEventId}",
            get_with(ble::http::get_detail, doc("tenant-ble", "One BLE event, with what the hub sent")),
        )
        // --- what may be installed
        .api_route(
            "/tenant/apps",
            get_with(releases::apps::list, doc("tenant-apps", "Apps, newest first"))
                .post_with(releases::apps::create, doc("tenant-apps", "Make an app")),
        )
        .api_route("/tenant/apps/{appUuid}", get_with(releases::apps::get, doc("tenant-apps", "One app")))
        .api_route(
            "/tenant/apps/{appUuid}/releases",
            get_with(releases::apps::list_releases, doc("tenant-apps", "An app's releases, newest first")).post_with(
                releases::apps::create_release,
                doc("tenant-apps", "Add a signed release, whose file is uploaded next"),
            ),
        )
        .api_route(
            "/tenant/agent-releases",
            get_with(releases::tenant::list, doc("tenant-releases", "Agent releases, newest first")),
        )
        .api_route(
            "/tenant/agent-releases/{releaseUuid}",
            get_with(releases::tenant::get, doc("tenant-releases", "One agent release")),
        )
        .api_route(
            "/tenant/downloads/manifest",
            get_with(releases::downloads::manifest, doc("tenant-downloads", "What there is to install hubs from")),
        )
        .api_route(
            "/tenant/downloads/asset-url",
            get_with(releases::downloads::asset_url, doc("tenant-downloads", "Where a file is, for five minutes")),
        )
        .api_route(
            "/installer/{filename}",
            get_with(releases::installer::download, doc("public", "The update feed of a channel, or a release's file"))
                .put_with(releases::installer::upload, doc("public", "Upload a release's file to its signed URL")),
        )
        .api_route(
            "/platform/agent-releases",
            get_with(releases::platform::list, doc("platform", "Agent releases, newest first")).post_with(
                releases::platform::create,
                doc("platform", "Add a signed release, whose file is uploaded next"),
            ),
        )
        .api_route(
            "/platform/agent-releases/{releaseUuid}",
            patch_with(releases::platform::update, doc("platform", "Offer a release or not, or change its channel")),
        )
        // --- which release of the agent hubs run
        .api_route(
            "/tenant/agent-update-policies",
            get_with(policies::http::list, doc("tenant-releases", "Update policies, newest first"))
                .put_with(policies::http::put, doc("tenant-releases", "Make or replace an update policy")),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}",
            get_with(policies::http::get, doc("tenant-releases", "One update policy, and how far its rollouts are"))
                .delete_with(policies::http::delete, doc("tenant-releases", "Remove an update policy")),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}/rollout/resume",
            post_with(policies::http::resume, doc("tenant-releases", "Let halted rollouts go on")),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}/rollout/halt",
            post_with(policies::http::halt, doc("tenant-releases", "Halt rollouts")),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}/rollout/abort",
            post_with(policies::http::abort, doc("tenant-releases", "Give rollouts up")),
        )
        .api_route(
            "/platform/agent-update-policies",
            get_with(policies::http::list_all, doc("platform", "Update policies of all tenants, newest first"))
                .put_with(policies::http::put_any, doc("platform", "Make or replace an update policy")),
        )
        .api_route(
            "/platform/agent-update-policies/{policyUuid}/rollout/resume",
            post_with(policies::http::resume_any, doc("platform", "Let halted rollouts go on")),
        )
        .api_route(
            "/platform/agent-update-policies/{policyUuid}/rollout/halt",
            post_with(policies::http::halt_any, doc("platform", "Halt rollouts")),
        )
        .api_route(
            "/platform/agent-update-policies/{policyUuid}/rollout/abort",
            post_with(policies::http::abort_any, doc("platform", "Give rollouts up")),
        )
        // --- live streams
        .api_route(
            "/tenant/stream/ble/events",
            get_with(streams::http::ble_events, doc("tenant-streams", "BLE events, live")),
        )
        .api_route(
            "/tenant/stream/hubs/{hubUuid}/logs",
            get_with(streams::http::hub_logs, doc("tenant-streams", "Log entries of a hub, live")),
        )
        .api_route(
            "/tenant/stream/hubs/{hubUuid}/jobs",
            get_with(streams::http::hub_job_events, doc("tenant-streams", "What a hub tells about its jobs, live")),
        )
        // --- the platform
        .api_route(
            "/platform/audit-logs",
            get_with(audit::http::list_all, doc("platform", "Who changed what, in all tenants, latest first")),
        )
        .api_route(
            "/platform/permission-cache",
            get_with(
                diagnostics::http::permission_cache,
                doc("platform", "What this replica remembers about who may do what"),
            )
            .delete_with(
                diagnostics::http::forget_permissions,
                doc("platform", "Have every replica read anew who may do what"),
            ),
        )
        // --- hubs, for the platform
        .api_route(
            "/platform/hubs/{hub_uuid}/block",
            post_with(platform_hubs::block, doc("platform", "Shut a hub out and revoke its tokens")),
        )
        .api_route(
            "/platform/hubs/{hubUuid}/jobs/self-update",
            post_with(platform_jobs::self_update, doc("platform", "Have a hub update its agent to a release")),
        )
        .api_route(
            "/platform/hubs/{hub_uuid}/unblock",
            post_with(platform_hubs::unblock, doc("platform", "Let a blocked hub claim itself again")),
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
        .layer(CatchPanicLayer::custom(panicked))
        .layer(hygiene::cors(&app))
        .layer(from_fn_with_state(app.clone(), around::layer))
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
