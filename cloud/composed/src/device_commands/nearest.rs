//! Which hub carries a command out: of those that heard the device of late, are online and have an
//! adapter that may connect, the one that heard it best.

use std::collections::BTreeMap;

use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_devices::ble;
use hub_devices::device_instances::Shown;
use hub_fleet::hubs;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};

use crate::end_users::{self, EndUserNow};

/// The age from which on a reception is no evidence of the place of a device.
const RECENT_SECS: i64 = 600;
/// Receptions that are looked at, the latest first.
const RECEPTIONS: i64 = 500;
/// The signal strength of a hub that heard the device and reported none.
const UNKNOWN_DBM: i64 = -127;

/// The hub. With a person, one of theirs.
pub async fn hub(
    core: &Core,
    scope: &Scope,
    device: &Shown,
    person: Option<&EndUserNow>,
    now: Timestamp,
) -> Result<HubUuid> {
    let mut heard = heard_by(core, scope, device, now).await?;
    let mut conn = core.db.read().await?;
    if let Some(person) = person {
        let hubs: Vec<HubUuid> = heard.keys().copied().collect();
        let own = end_users::own_hubs(&mut conn, person, &hubs).await?;
        heard.retain(|hub_uuid, _| own.contains(hub_uuid));
    }
    let hubs: Vec<HubUuid> = heard.keys().copied().collect();
    let mut hubs = hubs::connecting(&mut conn, scope, &hubs).await?;
    if hubs.is_empty() {
        let message = format!(
            "no hub has heard this device within the last {} minutes; bring it near one, or wake it up",
            RECENT_SECS / 60
        );
        return Err(Error::conflict("DEVICE_OUT_OF_RANGE", message));
    }
    hubs.retain(|hub| hubs::is_online(hub.last_telemetry_at, now));
    if hubs.is_empty() {
        let message = "no hub that hears this device is online; connect one to the network";
        return Err(Error::conflict("NO_HUB_ONLINE", message));
    }
    hubs.retain(|hub| hub.connecting > 0);
    let best = hubs
        .iter()
        .max_by_key(|hub| (heard.get(&hub.hub_uuid), hub.hub_uuid));
    best.map(|hub| hub.hub_uuid).ok_or_else(|| {
        let message = "no hub that hears this device has an adapter that may connect: those that are on have the role \
                       SCANNER or DISABLED; give one the role CONNECTOR";
        Error::conflict("NO_CONNECTING_ADAPTER", message)
    })
}

/// The best signal strength of late, by hub.
async fn heard_by(
    core: &Core,
    scope: &Scope,
    device: &Shown,
    now: Timestamp,
) -> Result<BTreeMap<HubUuid, i64>> {
    let since = now.plus_secs(-RECENT_SECS);
    let id = device.instance.device_instance_id;
    let ids = (since.as_micros(), i64::MAX);
    let batch = ble::receptions_of(
        core,
        scope.tenant_uuid(),
        id,
        ids,
        Direction::Descending,
        RECEPTIONS,
    )
    .await?;
    let mut heard = BTreeMap::new();
    let mut note = |hub_uuid: HubUuid, dbm: Option<i64>| {
        let best = heard.entry(hub_uuid).or_insert(UNKNOWN_DBM);
        *best = dbm.unwrap_or(UNKNOWN_DBM).max(*best);
    };
    for reception in batch
        .receptions
        .iter()
        .filter(|reception| reception.observed_at >= since)
    {
        note(reception.hub_uuid, reception.rssi_dbm());
    }
    // Events may have been dropped by a route, or not be read yet.
    let last = &device.heard;
    if let Some(hub_uuid) = last
        .nearest_hub_uuid
        .filter(|_| last.last_seen_at.is_some_and(|at| at >= since))
    {
        note(hub_uuid, last.nearest_rssi_dbm);
    }
    Ok(heard)
}
