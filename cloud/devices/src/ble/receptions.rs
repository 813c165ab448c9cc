//! Receptions of devices: stored events reduced to what the API shows of a device.

use std::ops::ControlFlow;

use hub_base::db::Direction;
use hub_base::error::Result;
use hub_core::Core;
use hub_identity::authz::Scope;
use hub_ingest::StoredEvent;
use hub_ingest::batches::Wanted;
use hub_ingest::log::{self, Repeat};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde::Deserialize;

use super::ReceptionResponse;

/// Bluetooth's value for an unknown signal strength.
const UNKNOWN_DBM: i16 = 127;

/// The signal strengths of receptions, in dBm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    pub min: i16,
    pub max: i16,
    pub mean: f64,
}

/// One event of a device.
#[derive(Debug)]
pub struct Reception {
    pub ble_event_id: i64,
    pub device_instance_id: i64,
    pub hub_uuid: HubUuid,
    /// When the hub received it; of a window, the last time. Never after the service received it.
    pub observed_at: Timestamp,
    /// The number of advertisements; more than one for a window alone.
    pub count: i64,
    pub strength: Option<Strength>,
    /// Whether another hub's reception of the same frame came first.
    pub is_repeat: bool,
    /// The values, by key as in [`super::Reading`].
    pub values: serde_json::Map<String, serde_json::Value>,
}

impl Reception {
    /// The signal strength in dBm; of a window, the mean.
    pub fn rssi_dbm(&self) -> Option<i64> {
        self.strength.map(|strength| strength.mean.round() as i64)
    }
}

impl Reception {
    /// None for data that no version could have stored; such an event is left out.
    fn of(event: &StoredEvent) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Single {
            observed_at: Timestamp,
            rssi: Option<i16>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Window {
            last_seen_at: Timestamp,
            count: i64,
            rssi_min: i16,
            rssi_max: i16,
            rssi_mean: f64,
        }
        #[derive(Deserialize)]
        struct Values {
            #[serde(default)]
            values: serde_json::Map<String, serde_json::Value>,
        }
        let (observed_at, count, strength) = match event.window {
            None => {
                let single: Single = serde_json::from_str(&event.event).ok()?;
                let strength = single.rssi.map(|dbm| Strength {
                    min: dbm,
                    max: dbm,
                    mean: f64::from(dbm),
                });
                (single.observed_at, 1, strength)
            }
            Some(_) => {
                let window: Window = serde_json::from_str(&event.event).ok()?;
                let strength = Strength {
                    min: window.rssi_min,
                    max: window.rssi_max,
                    mean: window.rssi_mean,
                };
                (window.last_seen_at, window.count, Some(strength))
            }
        };
        let values: Option<Values> = event
            .reading
            .as_deref()
            .and_then(|reading| serde_json::from_str(reading).ok());
        Some(Self {
            ble_event_id: event.ble_event_id,
            device_instance_id: event.device_instance_id.unwrap_or_default(),
            hub_uuid: event.hub_uuid,
            observed_at: observed_at.min(Timestamp::from_micros(event.ble_event_id)),
            count: count.max(1),
            strength: strength.filter(|strength| strength.max != UNKNOWN_DBM),
            is_repeat: event.observation_id.is_some(),
            values: values.map(|values| values.values).unwrap_or_default(),
        })
    }
}

/// Some receptions, and the id of the last event that was read; None when all were.
pub struct Batch {
    pub receptions: Vec<Reception>,
    pub last_id: Option<i64>,
}

/// The tenant's events of one device with ids from `first` to `last`, in the order of their ids; at
/// most `limit`.
pub async fn receptions_of(
    core: &Core,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
    (first, last): (i64, i64),
    direction: Direction,
    limit: i64,
) -> Result<Batch> {
    let limit = usize::try_from(limit).unwrap_or(0);
    let wanted = Wanted {
        first_id: first,
        last_id: last,
        device_instance_id: Some(device_instance_id),
        ..Wanted::all_of(tenant_uuid)
    };
    let events = log::some(&core.event_log, &wanted, direction, limit).await?;
    let last_id = events
        .last()
        .filter(|_| events.len() >= limit)
        .map(|event| event.ble_event_id);
    Ok(Batch {
        receptions: events.iter().filter_map(Reception::of).collect(),
        last_id,
    })
}

/// Events that one page of observations reads of further receptions.
const MAX_FURTHER: usize = 2000;

/// Receptions of frames whose first receptions have these ids, oldest first, with the id of the
/// first one.
pub async fn further_receptions(
    core: &Core,
    scope: &Scope,
    first_ids: &[i64],
) -> Result<Vec<(i64, ReceptionResponse)>> {
    let repeats =
        log::repeats(&core.event_log, scope.tenant_uuid(), first_ids, MAX_FURTHER).await?;
    let response = |repeat: Repeat| {
        let Repeat {
            observation_id,
            event,
        } = repeat;
        let response = ReceptionResponse {
            ble_event_id: event.ble_event_id,
            hub_uuid: event.hub_uuid,
            rssi_dbm: Reception::of(&event).and_then(|reception| reception.rssi_dbm()),
            received_at: Timestamp::from_micros(event.ble_event_id),
        };
        (observation_id, response)
    };
    Ok(repeats.into_iter().map(response).collect())
}

/// The tenant's events of devices with ids above `after`, up to `last`, oldest first; of at most
/// `limit` events.
pub async fn receptions_after(
    core: &Core,
    tenant_uuid: TenantUuid,
    (after, last): (i64, i64),
    limit: i64,
) -> Result<Batch> {
    let limit = usize::try_from(limit).unwrap_or(0);
    let wanted = Wanted {
        first_id: after.saturating_add(1),
        last_id: last,
        ..Wanted::all_of(tenant_uuid)
    };
    let (mut places, mut read, mut end) = (Vec::new(), 0, None);
    log::walk(&core.event_log, &wanted, Direction::Ascending, |found| {
        end = Some(found.ble_event_id);
        places.extend(found.device_instance_id.map(|_| found.place()));
        read += 1;
        match read < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .await?;
    let events = log::load(&core.event_log, tenant_uuid, &places).await?;
    Ok(Batch {
        receptions: events.iter().filter_map(Reception::of).collect(),
        last_id: end,
    })
}
