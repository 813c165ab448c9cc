//! The hours in which hubs received events of a device, and how many: where to look for a device's
//! events, and how many there are, without a row for each of its batches. A batch belongs to the
//! hour of its first event.

use std::collections::BTreeMap;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid};
use uuid::Uuid;

use super::heads::Head;

/// Months begin with an hour, so an hour is in one partition.
pub(super) const HOUR_MICROS: i64 = 3_600_000_000;
/// Devices whose empty hours one statement deletes.
const DEVICES: usize = 500;

/// The hour of a batch: the lowest id that an event of it can have.
pub(super) const fn hour_of(first_id: i64) -> i64 {
    first_id - first_id.rem_euclid(HOUR_MICROS)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    tenant_uuid: Uuid,
    device_instance_id: i64,
    hour_id: i64,
    hub_uuid: Uuid,
}

/// Changes of `ble_device_hours`. Rows are locked in the order of their keys.
#[derive(Default)]
pub(super) struct HourCounts(BTreeMap<Key, i64>);

impl HourCounts {
    /// Counts the events of a batch that is stored.
    pub fn add(&mut self, hub: (TenantUuid, HubUuid), first_id: i64, heads: &[Head]) {
        self.count(hub, first_id, heads, 1);
    }

    /// The same for a batch that is deleted.
    pub fn subtract(&mut self, hub: (TenantUuid, HubUuid), first_id: i64, heads: &[Head]) {
        self.count(hub, first_id, heads, -1);
    }

    fn count(
        &mut self,
        (tenant_uuid, hub_uuid): (TenantUuid, HubUuid),
        first_id: i64,
        heads: &[Head],
        events: i64,
    ) {
        for device_instance_id in heads.iter().filter_map(|head| head.device_instance_id) {
            let key = Key {
                tenant_uuid: tenant_uuid.0,
                device_instance_id,
                hour_id: hour_of(first_id),
                hub_uuid: hub_uuid.0,
            };
            *self.0.entry(key).or_default() += events;
        }
    }

    pub async fn write(mut self, tx: &mut Tx) -> Result<()> {
        self.0.retain(|_, events| *events != 0);
        let lower: Vec<Key> = self
            .0
            .iter()
            .filter_map(|(key, events)| (*events < 0).then_some(*key))
            .collect();
        let keys = || self.0.keys();
        Bulk {
            head: "INSERT INTO ble_device_hours \
                   (tenant_uuid, device_instance_id, hour_id, hub_uuid, events)",
            columns: vec![
                Column::Uuid(keys().map(|key| key.tenant_uuid).collect()),
                Column::Int(keys().map(|key| key.device_instance_id).collect()),
                Column::Int(keys().map(|key| key.hour_id).collect()),
                Column::Uuid(keys().map(|key| key.hub_uuid).collect()),
                Column::Int(self.0.values().copied().collect()),
            ],
            tail: "ON CONFLICT (tenant_uuid, device_instance_id, hour_id, hub_uuid) \
                   DO UPDATE SET events = ble_device_hours.events + excluded.events",
        }
        .execute(tx)
        .await?;
        delete_empty(tx, &lower).await
    }
}

/// Deletes those of the hours in which no events are left; the keys are in their order.
async fn delete_empty(tx: &mut Tx, keys: &[Key]) -> Result<()> {
    let same_tenant = |one: &Key, other: &Key| one.tenant_uuid == other.tenant_uuid;
    for of_tenant in keys.chunk_by(same_tenant) {
        for some in of_tenant.chunks(DEVICES) {
            let hours = || some.iter().map(|key| key.hour_id);
            let (Some(first), Some(min), Some(max)) = (some.first(), hours().min(), hours().max())
            else {
                continue;
            };
            sql(
                "DELETE FROM ble_device_hours WHERE tenant_uuid = $1 AND hour_id >= $2 \
                 AND hour_id <= $3 AND events <= 0 AND device_instance_id IN ",
            )
            .bind((TenantUuid(first.tenant_uuid), min, max))
            .push_list(some.iter().map(|key| key.device_instance_id))
            .run(tx)
            .await?;
        }
    }
    Ok(())
}
