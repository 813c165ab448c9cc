//! SQL of what bundles have brought to hubs.

use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use uuid::Uuid;

use super::super::Status;
use super::super::expansion::Installed;

/// Notes that these bundles were applied to the hub now, with their device models. What was noted
/// of them before is replaced. The list must not be empty.
pub async fn apply(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    bundles: &[Uuid],
    now: Timestamp,
) -> Result<()> {
    sql("DELETE FROM hub_bundles WHERE hub_uuid = $1 AND bundle_uuid IN ")
        .bind(hub_uuid)
        .push_list(bundles.iter().copied())
        .run(tx)
        .await?;
    Bulk {
        head: "INSERT INTO hub_bundles (hub_uuid, bundle_uuid, tenant_uuid, applied_at)",
        columns: vec![
            Column::Uuid(vec![hub_uuid.0; bundles.len()]),
            Column::Uuid(bundles.to_vec()),
            Column::Uuid(vec![scope.tenant_uuid().0; bundles.len()]),
            Column::Time(vec![now; bundles.len()]),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    sql(
        "INSERT INTO hub_bundle_devices (hub_uuid, bundle_uuid, device_uuid, quantity) \
         SELECT h.hub_uuid, d.bundle_uuid, d.device_uuid, d.quantity FROM hub_bundles h \
         JOIN bundle_devices d ON d.bundle_uuid = h.bundle_uuid WHERE h.hub_uuid = $1 \
         AND h.bundle_uuid IN ",
    )
    .bind(hub_uuid)
    .push_list(bundles.iter().copied())
    .run(tx)
    .await
}

/// Notes the apps that bundles brought.
pub async fn add_apps(tx: &mut Tx, hub_uuid: HubUuid, apps: &[Installed]) -> Result<()> {
    Bulk {
        head: "INSERT INTO hub_bundle_apps (hub_uuid, bundle_uuid, app_uuid, release_uuid, \
               version, hub_job_uuid)",
        columns: vec![
            Column::Uuid(vec![hub_uuid.0; apps.len()]),
            Column::Uuid(apps.iter().map(|app| app.bundle_uuid).collect()),
            Column::Uuid(apps.iter().map(|app| app.app_uuid.0).collect()),
            Column::Uuid(apps.iter().map(|app| app.release_uuid.0).collect()),
            Column::Text(
                apps.iter()
                    .map(|app| Arc::from(app.version.as_str()))
                    .collect(),
            ),
            Column::Uuid(apps.iter().map(|app| app.hub_job_uuid.0).collect()),
        ],
        tail: "",
    }
    .execute(tx)
    .await
    .map(drop)
}

/// A bundle at a hub.
#[derive(Debug, sqlx::FromRow)]
pub struct HubBundleRow {
    pub bundle_uuid: Uuid,
    pub name: String,
    #[sqlx(try_from = "String")]
    pub status: Status,
    pub applied_at: Timestamp,
}

/// The bundles that brought something to the hub, the latest first, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    slice: Slice,
) -> Result<(Vec<HubBundleRow>, i64)> {
    sql(
        "FROM hub_bundles h JOIN supplier_bundles b ON b.bundle_uuid = h.bundle_uuid \
         WHERE h.hub_uuid = $1 AND h.tenant_uuid = $2",
    )
    .bind((hub_uuid, scope.tenant_uuid()))
    .page(
        conn,
        "b.bundle_uuid, b.name, b.status, h.applied_at",
        &["h.applied_at DESC, h.bundle_uuid DESC"],
        slice,
    )
    .await
}

/// An app that a bundle brought to a hub.
#[derive(Debug, sqlx::FromRow)]
pub struct HubAppRow {
    pub bundle_uuid: Uuid,
    pub app_uuid: AppUuid,
    pub name: String,
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub hub_job_uuid: HubJobUuid,
}

/// The apps that bundles added to a hub of any tenant: the caller has found its bundles. The list
/// must be short and not empty.
pub async fn apps(conn: &mut Conn, hub_uuid: HubUuid, bundles: &[Uuid]) -> Result<Vec<HubAppRow>> {
    sql(
        "SELECT h.bundle_uuid, h.app_uuid, a.name, h.release_uuid, h.version, h.hub_job_uuid \
         FROM hub_bundle_apps h JOIN apps a ON a.app_uuid = h.app_uuid \
         WHERE h.hub_uuid = $1 AND h.bundle_uuid IN ",
    )
    .bind(hub_uuid)
    .push_list(bundles.iter().copied())
    .push(" ORDER BY a.name")
    .all(conn)
    .await
}

/// The devices that bundles added to a hub, as [`apps`].
pub async fn devices(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    bundles: &[Uuid],
) -> Result<Vec<super::parts::DevicePart>> {
    sql(
        "SELECT h.bundle_uuid, h.device_uuid, m.name, h.quantity FROM hub_bundle_devices h \
         JOIN device_models m ON m.device_uuid = h.device_uuid \
         WHERE h.hub_uuid = $1 AND h.bundle_uuid IN ",
    )
    .bind(hub_uuid)
    .push_list(bundles.iter().copied())
    .push(" ORDER BY m.name, h.device_uuid")
    .all(conn)
    .await
}

/// The next hubs that have something of the bundle, in the order of their uuids.
pub async fn some_with(
    conn: &mut Conn,
    bundle_uuid: Uuid,
    after: HubUuid,
    limit: i64,
) -> Result<Vec<HubUuid>> {
    sql(
        "SELECT hub_uuid FROM hub_bundles WHERE bundle_uuid = $1 AND hub_uuid > $2 \
         ORDER BY hub_uuid LIMIT $3",
    )
    .bind((bundle_uuid, after, limit))
    .scalars(conn)
    .await
}

/// The apps that the bundle brought to the hub, each with the job that did.
pub async fn own_apps(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    bundle_uuid: Uuid,
) -> Result<Vec<(AppUuid, HubJobUuid)>> {
    sql("SELECT app_uuid, hub_job_uuid FROM hub_bundle_apps \
         WHERE hub_uuid = $1 AND bundle_uuid = $2 ORDER BY app_uuid")
    .bind((hub_uuid, bundle_uuid))
    .all(conn)
    .await
}

/// Deletes a bundle of a hub.
pub async fn forget(tx: &mut Tx, hub_uuid: HubUuid, bundle_uuid: Uuid) -> Result<u64> {
    sql("DELETE FROM hub_bundles WHERE hub_uuid = $1 AND bundle_uuid = $2")
        .bind((hub_uuid, bundle_uuid))
        .execute(tx)
        .await
}

/// Deletes all bundles of a hub.
pub async fn forget_all(tx: &mut Tx, hub_uuid: HubUuid) -> Result<u64> {
    sql("DELETE FROM hub_bundles WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .execute(tx)
        .await
}
