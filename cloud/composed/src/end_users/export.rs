//! What a person takes with them: their hubs, their devices, and what these measured.

use hub_base::db::{Direction, Slice};
use hub_base::error::Result;
use hub_core::Core;
use hub_devices::ble;
use hub_devices::device_history::SensorItemResponse;
use hub_identity::authz::UserScope;
use serde::Serialize;

use super::http::devices::{DeviceSummaryResponse, summaries};
use super::http::hubs::AppHubSummaryResponse;
use super::store::{self, OwnDevice};

/// Some values of a device, and the last event that was read; None after the last page.
pub struct Values {
    pub items: Vec<SensorItemResponse>,
    pub last_id: Option<i64>,
}

/// A page of the person's hubs.
pub async fn hubs(core: &Core, scope: &UserScope, slice: Slice) -> Result<Vec<impl Serialize>> {
    let mut conn = core.db.read().await?;
    let person = super::of_caller(core, &mut conn, scope).await?;
    let (hubs, _) = store::hubs(&mut conn, &person, slice).await?;
    let now = core.clock.now();
    Ok(hubs
        .into_iter()
        .map(|hub| AppHubSummaryResponse::new(hub, now))
        .collect::<Vec<_>>())
}

/// A page of the person's devices.
pub async fn devices(
    core: &Core,
    scope: &UserScope,
    slice: Slice,
) -> Result<(Vec<OwnDevice>, Vec<DeviceSummaryResponse>)> {
    let mut conn = core.db.read().await?;
    let person = super::of_caller(core, &mut conn, scope).await?;
    let (own, _) = store::list_devices(&mut conn, &person, None, slice).await?;
    let shown = summaries(&mut conn, &own, core.clock.now()).await?;
    Ok((own, shown))
}

/// The values of a device after an event, oldest first; of at most `limit` events. Nothing if the
/// device is not the person's any more.
pub async fn values(
    core: &Core,
    scope: &UserScope,
    device: &OwnDevice,
    after: i64,
    limit: i64,
) -> Result<Values> {
    let mut conn = core.db.read().await?;
    let person = super::of_caller(core, &mut conn, scope).await?;
    let Some(own) = store::device(&mut conn, &person, device.device_instance_id).await? else {
        return Ok(Values {
            items: Vec::new(),
            last_id: None,
        });
    };
    drop(conn);
    let first = after.saturating_add(1).max(own.since.as_micros());
    let ids = (first, i64::MAX);
    let batch = ble::receptions_of(
        core,
        own.tenant_uuid,
        own.device_instance_id,
        ids,
        Direction::Ascending,
        limit,
    )
    .await?;
    let has_values = batch
        .receptions
        .into_iter()
        .filter(|reception| !reception.values.is_empty());
    Ok(Values {
        items: has_values.map(SensorItemResponse::new).collect(),
        last_id: batch.last_id,
    })
}
