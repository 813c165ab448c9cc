//! SQL of the parts of bundles.

use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{AppUuid, ReleaseUuid};
use uuid::Uuid;

use super::super::parts::{AppRef, DeviceRef};

/// An app of a bundle.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AppPart {
    pub bundle_uuid: Uuid,
    pub app_uuid: AppUuid,
    pub name: String,
    pub description: Option<String>,
    pub release_uuid: Option<ReleaseUuid>,
    pub channel: Option<String>,
}

/// The apps of bundles of any tenant: the caller has found the bundles. The list must be short and
/// not empty.
pub async fn apps(conn: &mut Conn, bundles: &[Uuid]) -> Result<Vec<AppPart>> {
    sql(
        "SELECT p.bundle_uuid, p.app_uuid, a.name, a.description, p.release_uuid, p.channel \
         FROM bundle_apps p JOIN apps a ON a.app_uuid = p.app_uuid WHERE p.bundle_uuid IN ",
    )
    .push_list(bundles.iter().copied())
    .push(" ORDER BY p.position, p.app_uuid")
    .all(conn)
    .await
}

/// A device model of a bundle.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct DevicePart {
    pub bundle_uuid: Uuid,
    pub device_uuid: Uuid,
    pub name: String,
    pub quantity: i64,
}

/// The devices of bundles, as [`apps`].
pub async fn devices(conn: &mut Conn, bundles: &[Uuid]) -> Result<Vec<DevicePart>> {
    sql(
        "SELECT p.bundle_uuid, p.device_uuid, m.name, p.quantity FROM bundle_devices p \
         JOIN device_models m ON m.device_uuid = p.device_uuid WHERE p.bundle_uuid IN ",
    )
    .push_list(bundles.iter().copied())
    .push(" ORDER BY p.position, p.device_uuid")
    .all(conn)
    .await
}

/// The pipelines of bundles, as [`apps`].
pub async fn pipelines(conn: &mut Conn, bundles: &[Uuid]) -> Result<Vec<(Uuid, Uuid)>> {
    sql("SELECT bundle_uuid, pipeline_uuid FROM bundle_pipelines WHERE bundle_uuid IN ")
        .push_list(bundles.iter().copied())
        .push(" ORDER BY position, pipeline_uuid")
        .all(conn)
        .await
}

fn positions(count: usize) -> Column {
    Column::Int((0..).take(count).collect())
}

pub async fn replace_apps(tx: &mut Tx, bundle_uuid: Uuid, apps: &[AppRef]) -> Result<()> {
    sql("DELETE FROM bundle_apps WHERE bundle_uuid = $1")
        .bind(bundle_uuid)
        .run(tx)
        .await?;
    let channel = |app: &AppRef| app.channel.as_deref().map(Arc::from);
    Bulk {
        head: "INSERT INTO bundle_apps (bundle_uuid, app_uuid, position, release_uuid, channel)",
        columns: vec![
            Column::Uuid(vec![bundle_uuid; apps.len()]),
            Column::Uuid(apps.iter().map(|app| app.app_uuid.0).collect()),
            positions(apps.len()),
            Column::OptionalUuid(
                apps.iter()
                    .map(|app| app.release_uuid.map(|release| release.0))
                    .collect(),
            ),
            Column::OptionalText(apps.iter().map(channel).collect()),
        ],
        tail: "",
    }
    .execute(tx)
    .await
    .map(drop)
}

pub async fn replace_devices(tx: &mut Tx, bundle_uuid: Uuid, devices: &[DeviceRef]) -> Result<()> {
    sql("DELETE FROM bundle_devices WHERE bundle_uuid = $1")
        .bind(bundle_uuid)
        .run(tx)
        .await?;
    Bulk {
        head: "INSERT INTO bundle_devices (bundle_uuid, device_uuid, position, quantity)",
        columns: vec![
            Column::Uuid(vec![bundle_uuid; devices.len()]),
            Column::Uuid(devices.iter().map(|device| device.device_uuid).collect()),
            positions(devices.len()),
            Column::Int(devices.iter().map(|device| device.quantity).collect()),
        ],
        tail: "",
    }
    .execute(tx)
    .await
    .map(drop)
}

pub async fn replace_pipelines(tx: &mut Tx, bundle_uuid: Uuid, pipelines: &[Uuid]) -> Result<()> {
    sql("DELETE FROM bundle_pipelines WHERE bundle_uuid = $1")
        .bind(bundle_uuid)
        .run(tx)
        .await?;
    Bulk {
        head: "INSERT INTO bundle_pipelines (bundle_uuid, pipeline_uuid, position)",
        columns: vec![
            Column::Uuid(vec![bundle_uuid; pipelines.len()]),
            Column::Uuid(pipelines.to_vec()),
            positions(pipelines.len()),
        ],
        tail: "",
    }
    .execute(tx)
    .await
    .map(drop)
}
