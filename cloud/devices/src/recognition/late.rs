//! What was read late of devices: from events that were stored before they could be read.

use std::collections::BTreeMap;

use hub_base::db::Tx;
use hub_base::error::Result;
use hub_ingest::Heard;
use hub_protocol::{TenantUuid, Timestamp};

use super::tracked::Tracked;
use crate::device_instances::states;

/// The late states of devices of one tenant.
pub struct LateStates {
    tenant_uuid: TenantUuid,
    devices: BTreeMap<i64, Tracked>,
}

impl LateStates {
    pub fn new(tenant_uuid: TenantUuid) -> Self {
        Self {
            tenant_uuid,
            devices: BTreeMap::new(),
        }
    }

    pub fn hear(&mut self, heard: &Heard, now: Timestamp) {
        let tenant_uuid = self.tenant_uuid;
        let device = self
            .devices
            .entry(heard.device_instance_id)
            .or_insert_with(|| Tracked::new(tenant_uuid));
        device.hear_late(heard, now);
    }

    /// Adds it to the rows of the devices. What is known of a later time stays. Counters stay as
    /// they are, and so does the hub that is nearest.
    pub async fn write(self, tx: &mut Tx) -> Result<()> {
        let ids: Vec<i64> = self.devices.keys().copied().collect();
        let mut rows = states::lock(tx, self.tenant_uuid, &ids).await?;
        let mut changed = Vec::new();
        for (id, device) in self.devices {
            match rows.remove(&id) {
                None => {}
                Some(None) => changed.push(device.state(id, BTreeMap::new())),
                Some(Some(row)) => changed.extend(device.later_than(id, row)),
            }
        }
        states::store(tx, &changed).await
    }
}
