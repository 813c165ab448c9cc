//! Events whose scripts had no time when they came. A task of the tenant, for each half minute in
//! which there are any, has them read again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::tasks::{self, NewTask};
use hub_protocol::{TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::device_instances::LANE;

/// The kind of the task.
pub const UNREAD: &str = "ble.unread";

/// The part of time that one task is for.
const PART_SECS: i64 = 30;
/// Events are stored within this time after their scripts were to run.
const STORED_WITHIN_SECS: i64 = 10;
/// Tenants whose last task is remembered.
const MAX_NOTED: usize = 10_000;

/// The events of a tenant that were received between these times and could not be read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unread {
    pub tenant_uuid: TenantUuid,
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Unread {
    /// The value in a task's payload.
    pub fn of(payload: &Value) -> Result<Self> {
        serde_json::from_value(payload.clone()).map_err(Error::internal)
    }

    /// Has them read at this time.
    pub async fn enqueue(&self, core: &Core, due_at: Timestamp, now: Timestamp) -> Result<()> {
        let (tenant_uuid, from) = (self.tenant_uuid, self.from.as_micros());
        let task = NewTask {
            lane: LANE,
            kind: UNREAD,
            payload: serde_json::to_value(self).map_err(Error::internal)?,
            due_at,
            dedup_key: Some(format!("{UNREAD}/{tenant_uuid}/{from}")),
        };
        let mut tx = core.db.begin().await?;
        tasks::enqueue(core, &mut tx, task, now).await?;
        tx.commit_unaudited("what came is read").await
    }
}

/// The tenants of which a task was made, and for which part of time.
#[derive(Default)]
pub struct NotedUnread(Mutex<HashMap<TenantUuid, i64>>);

impl NotedUnread {
    /// Notes that events which are stored next could not be read.
    pub async fn note(&self, core: &Core, tenant_uuid: TenantUuid) -> Result<()> {
        let now = core.clock.now();
        let part = now.as_secs().div_euclid(PART_SECS);
        {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if noted.get(&tenant_uuid) == Some(&part) {
                return Ok(());
            }
            if noted.len() >= MAX_NOTED {
                noted.retain(|_, of| *of == part);
            }
            noted.insert(tenant_uuid, part);
        }
        let from = Timestamp::from_micros(part * PART_SECS * 1_000_000);
        let to = from.plus_secs(PART_SECS + STORED_WITHIN_SECS);
        let unread = Unread {
            tenant_uuid,
            from,
            to,
        };
        unread.enqueue(core, to, now).await
    }
}
