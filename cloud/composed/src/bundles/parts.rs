//! The parts of a bundle. Each is replaced as a whole, in a draft only, and names what is the
//! tenant's own.

use std::collections::{HashMap, HashSet};

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_devices::{delivery_status, device_catalog};
use hub_fleet::releases;
use hub_fleet::releases::AppReleaseSummary;
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, ReleaseUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::parts::{self as store, AppPart, DevicePart};
use super::{get, locked};

pub const MAX_APPS: usize = 50;
pub const MAX_DEVICES: usize = 100;
pub const MAX_PIPELINES: usize = 100;
pub const MAX_QUANTITY: i64 = 10_000;

/// An app, and which of its releases.
#[derive(Clone, Debug)]
pub struct AppRef {
    pub app_uuid: AppUuid,
    /// The release; None for the newest of the channel.
    pub release_uuid: Option<ReleaseUuid>,
    pub channel: Option<String>,
}

/// A device model, and how many devices of it belong to a hub.
#[derive(Clone, Debug)]
pub struct DeviceRef {
    pub device_uuid: Uuid,
    pub quantity: i64,
}

/// 400 for a list with too many items, or with a duplicate. `member` is the member that has to
/// differ.
fn require_distinct<T: std::hash::Hash + Eq>(items: &[T], most: usize, member: &str) -> Result<()> {
    if items.len() > most {
        return Err(Error::field(
            "body",
            format!("must have at most {most} items"),
        ));
    }
    let mut check = Check::new();
    let mut seen = HashSet::new();
    for (place, item) in items.iter().enumerate() {
        check.that(
            seen.insert(item),
            format!("[{place}]{member}"),
            "repeats another item",
        );
    }
    check.done()
}

pub async fn apps(core: &Core, scope: &Scope, bundle_uuid: Uuid) -> Result<Vec<AppPart>> {
    let mut conn = core.db.read().await?;
    get(&mut conn, scope, bundle_uuid).await?;
    store::apps(&mut conn, &[bundle_uuid]).await
}

pub async fn devices(core: &Core, scope: &Scope, bundle_uuid: Uuid) -> Result<Vec<DevicePart>> {
    let mut conn = core.db.read().await?;
    get(&mut conn, scope, bundle_uuid).await?;
    store::devices(&mut conn, &[bundle_uuid]).await
}

pub async fn pipelines(core: &Core, scope: &Scope, bundle_uuid: Uuid) -> Result<Vec<Uuid>> {
    let mut conn = core.db.read().await?;
    get(&mut conn, scope, bundle_uuid).await?;
    Ok(store::pipelines(&mut conn, &[bundle_uuid])
        .await?
        .into_iter()
        .map(|(_, pipeline)| pipeline)
        .collect())
}

/// The releases that are named have to be READY, and of their apps.
pub async fn put_apps(
    core: &Core,
    scope: &Scope,
    bundle_uuid: Uuid,
    apps: &[AppRef],
) -> Result<Vec<AppPart>> {
    let uuids: Vec<AppUuid> = apps.iter().map(|app| app.app_uuid).collect();
    require_distinct(&uuids, MAX_APPS, ".appUuid")?;
    let (mut tx, before) = locked(core, scope, bundle_uuid).await?;
    before.require_draft()?;
    let own = releases::own_apps(&mut tx, scope, &uuids).await?;
    let named: Vec<ReleaseUuid> = apps.iter().filter_map(|app| app.release_uuid).collect();
    let found = releases::app_releases_for_jobs(&mut tx, scope, &named).await?;
    let found: HashMap<ReleaseUuid, AppReleaseSummary> = found
        .into_iter()
        .map(|release| (release.release_uuid, release))
        .collect();
    let mut check = Check::new();
    for (place, app) in apps.iter().enumerate() {
        let is_own = own.contains(&app.app_uuid);
        check.that(
            is_own,
            format!("[{place}].appUuid"),
            "is no app of this tenant",
        );
        let release = app
            .release_uuid
            .and_then(|release_uuid| found.get(&release_uuid));
        let is_release = app.release_uuid.is_none()
            || release.is_some_and(|release| release.app_uuid == app.app_uuid);
        check.that(
            is_release || !is_own,
            format!("[{place}].appReleaseUuid"),
            "is no READY release of this app",
        );
    }
    check.done()?;
    store::replace_apps(&mut tx, bundle_uuid, apps).await?;
    let parts = store::apps(&mut tx, &[bundle_uuid]).await?;
    let shown = apps
        .iter()
        .map(|app| json!({"appUuid": app.app_uuid, "appReleaseUuid": app.release_uuid, "channel": app.channel}));
    commit(
        core,
        scope,
        tx,
        bundle_uuid,
        "supplier_bundle.set_apps",
        shown.collect(),
    )
    .await?;
    Ok(parts)
}

pub async fn put_devices(
    core: &Core,
    scope: &Scope,
    bundle_uuid: Uuid,
    devices: &[DeviceRef],
) -> Result<Vec<DevicePart>> {
    let uuids: Vec<Uuid> = devices.iter().map(|device| device.device_uuid).collect();
    require_distinct(&uuids, MAX_DEVICES, ".deviceUuid")?;
    let (mut tx, before) = locked(core, scope, bundle_uuid).await?;
    before.require_draft()?;
    let own = device_catalog::own(&mut tx, scope, &uuids).await?;
    let mut check = Check::new();
    for (place, uuid) in uuids.iter().enumerate() {
        check.that(
            own.contains(uuid),
            format!("[{place}].deviceUuid"),
            "is no device model of this tenant",
        );
    }
    check.done()?;
    store::replace_devices(&mut tx, bundle_uuid, devices).await?;
    let parts = store::devices(&mut tx, &[bundle_uuid]).await?;
    let shown = devices
        .iter()
        .map(|device| json!({"deviceUuid": device.device_uuid, "quantity": device.quantity}));
    commit(
        core,
        scope,
        tx,
        bundle_uuid,
        "supplier_bundle.set_devices",
        shown.collect(),
    )
    .await?;
    Ok(parts)
}

pub async fn put_pipelines(
    core: &Core,
    scope: &Scope,
    bundle_uuid: Uuid,
    pipelines: Vec<Uuid>,
) -> Result<Vec<Uuid>> {
    require_distinct(&pipelines, MAX_PIPELINES, "")?;
    let (mut tx, before) = locked(core, scope, bundle_uuid).await?;
    before.require_draft()?;
    let own = delivery_status::own(&mut tx, scope, &pipelines).await?;
    let mut check = Check::new();
    for (place, uuid) in pipelines.iter().enumerate() {
        check.that(
            own.contains(uuid),
            format!("[{place}]"),
            "is no pipeline of this tenant",
        );
    }
    check.done()?;
    store::replace_pipelines(&mut tx, bundle_uuid, &pipelines).await?;
    commit(
        core,
        scope,
        tx,
        bundle_uuid,
        "supplier_bundle.set_pipelines",
        json!(pipelines),
    )
    .await?;
    Ok(pipelines)
}

async fn commit(
    core: &Core,
    scope: &Scope,
    tx: Tx,
    bundle_uuid: Uuid,
    action: &'static str,
    after: Value,
) -> Result<()> {
    tx.commit(Audit::new(scope, action, bundle_uuid, core.clock.now()).changed(None, Some(after)))
        .await
}
