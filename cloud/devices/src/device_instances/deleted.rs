//! What follows from the deletion of a device.

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::tasks::{self, NewTask};
use hub_protocol::{TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keys::LANE;

/// The kind of the task after a device was deleted.
pub const WAS_DELETED: &str = "device.was_deleted";

/// A device was deleted. A subject that announced it to others withdraws it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WasDeleted {
    pub tenant_uuid: TenantUuid,
    pub device_instance_id: i64,
}

impl WasDeleted {
    /// The value in a task's payload.
    pub fn of(payload: &Value) -> Result<Self> {
        serde_json::from_value(payload.clone()).map_err(Error::internal)
    }

    pub(super) async fn commit_with(&self, core: &Core, tx: &mut Tx, now: Timestamp) -> Result<()> {
        let task = NewTask {
            lane: LANE,
            kind: WAS_DELETED,
            payload: serde_json::to_value(self).map_err(Error::internal)?,
            due_at: now,
            dedup_key: None,
        };
        tasks::enqueue(core, tx, task, now).await
    }
}
