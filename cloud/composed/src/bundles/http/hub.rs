//! `/tenant/hubs/{hubUuid}/bundles`: what bundles have brought to a hub.

use std::collections::HashMap;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_fleet::hubs;
use hub_fleet::hubs::http::HubPath;
use hub_identity::authz::{Authorized, permission as perm};
use hub_pipelines as pipelines;
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::super::Status;
use super::super::store::hubs::{self as store, HubAppRow, HubBundleRow};
use super::parts::BundleDeviceResponse;
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/hubs/{hubUuid}/bundles",
        get_with(
            list,
            operation(
                "hubs.listBundles",
                "tenant-hubs",
                "What bundles brought to a hub, the latest first",
            ),
        ),
    )
}

/// The parts that a bundle added to a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubBundleResponse {
    /// The bundle.
    bundle_uuid: Uuid,
    /// The name of the bundle.
    name: String,
    /// The lifecycle state of the bundle.
    status: Status,
    /// When the hub was claimed with it.
    applied_at: Timestamp,
    /// The apps, each with the job that installs it.
    apps: Vec<HubBundleAppResponse>,
    /// The device models.
    devices: Vec<BundleDeviceResponse>,
    /// The pipelines that are bound to the hub.
    pipelines: Vec<Uuid>,
}

/// An app that a bundle brought to a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubBundleAppResponse {
    /// The app.
    app_uuid: AppUuid,
    /// The name of the app.
    name: String,
    /// The release.
    app_release_uuid: ReleaseUuid,
    /// The version of the release.
    version: String,
    /// The job that installs it.
    hub_job_uuid: HubJobUuid,
}

impl From<HubAppRow> for HubBundleAppResponse {
    fn from(row: HubAppRow) -> Self {
        let HubAppRow {
            app_uuid,
            name,
            release_uuid,
            version,
            hub_job_uuid,
            ..
        } = row;
        Self {
            app_uuid,
            name,
            app_release_uuid: release_uuid,
            version,
            hub_job_uuid,
        }
    }
}

/// The items grouped by bundle.
fn by_bundle<T, R>(items: Vec<T>, split: impl Fn(T) -> (Uuid, R)) -> HashMap<Uuid, Vec<R>> {
    let mut found: HashMap<Uuid, Vec<R>> = HashMap::new();
    for item in items {
        let (bundle_uuid, item) = split(item);
        found.entry(bundle_uuid).or_default().push(item);
    }
    found
}

async fn list(
    auth: Authorized<perm::HubsRead>,
    State(core): State<Core>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Page,
) -> Result<Listed<HubBundleResponse>> {
    let mut conn = core.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    let (rows, total) = store::list(&mut conn, &auth.scope, hub_uuid, page.slice()).await?;
    if rows.is_empty() {
        return Ok(page.listed(Vec::new(), total));
    }
    let bundles: Vec<Uuid> = rows.iter().map(|row| row.bundle_uuid).collect();
    let apps = store::apps(&mut conn, hub_uuid, &bundles).await?;
    let devices = store::devices(&mut conn, hub_uuid, &bundles).await?;
    let pipelines = pipelines::bound::bound_to(&mut conn, &auth.scope, hub_uuid, &bundles).await?;
    let mut apps = by_bundle(apps, |app| (app.bundle_uuid, app.into()));
    let mut devices = by_bundle(devices, |device| (device.bundle_uuid, device.into()));
    let mut pipelines = by_bundle(pipelines, |bound| bound);
    let shown = |row: HubBundleRow| HubBundleResponse {
        apps: apps.remove(&row.bundle_uuid).unwrap_or_default(),
        devices: devices.remove(&row.bundle_uuid).unwrap_or_default(),
        pipelines: pipelines.remove(&row.bundle_uuid).unwrap_or_default(),
        bundle_uuid: row.bundle_uuid,
        name: row.name,
        status: row.status,
        applied_at: row.applied_at,
    };
    Ok(page.listed(rows.into_iter().map(shown).collect(), total))
}
