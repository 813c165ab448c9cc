//! Announcements of Home Assistant that are removed with their pipeline or their device. The work
//! is a task, which holds the definition and its sealed secrets: the pipeline is gone by then.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::tasks::{self, Done, NewTask, Task};
use hub_destinations as destinations;
use hub_devices::device_instances::WasDeleted;
use hub_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::destination::Stored;
use super::store::{self, PipelineRow};

/// The lane of this work.
pub const LANE: &str = "withdrawals";
/// The kind of the task.
pub const WITHDRAW: &str = "pipeline.withdraw";

const WITHIN: Duration = Duration::from_secs(20);
/// Messages that are under way when a pipeline ends announce nothing after this time.
const AFTER_SECS: i64 = 5;
/// A broker that is away is tried again after this time, for a day.
const AGAIN_SECS: i64 = 300;
const TRIED_FOR_SECS: i64 = 86_400;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    pipeline_uuid: Uuid,
    revision_uuid: Uuid,
    /// The destination without its secrets.
    destination: Value,
    /// Its sealed secrets, in base64.
    sealed: Option<String>,
    device_instance_id: Option<i64>,
    until: Timestamp,
}

/// Commits with the transaction that what the pipeline announced is removed, of all devices or of
/// one.
pub async fn enqueue(
    core: &Core,
    tx: &mut Tx,
    row: &PipelineRow,
    device_instance_id: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    let Ok(definition) = row.stored_definition() else {
        return Ok(());
    };
    let stored = row.stored_destination(core, &definition)?;
    if !stored
        .compile(core)
        .is_ok_and(|destination| destination.announces())
    {
        return Ok(());
    }
    let payload = Payload {
        pipeline_uuid: row.pipeline_uuid,
        revision_uuid: row.revision_uuid,
        destination: definition.destination,
        sealed: row
            .sealed_auth
            .as_ref()
            .map(|sealed| STANDARD.encode(sealed)),
        device_instance_id,
        until: now.plus_secs(TRIED_FOR_SECS),
    };
    let of_device = device_instance_id.map_or_else(|| "all".to_owned(), |id| id.to_string());
    let task = NewTask {
        lane: LANE,
        kind: WITHDRAW,
        payload: serde_json::to_value(payload).map_err(Error::internal)?,
        due_at: now.plus_secs(AFTER_SECS),
        dedup_key: Some(format!("{WITHDRAW}/{}/{of_device}", row.revision_uuid)),
    };
    tasks::enqueue(core, tx, task, now).await
}

/// Has what the tenant's pipelines announced of a deleted device removed.
pub async fn begin_for_device(core: &Core, payload: &Value) -> Result<Done> {
    let WasDeleted {
        tenant_uuid,
        device_instance_id,
    } = WasDeleted::of(payload)?;
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    for row in store::of_tenant(&mut tx, tenant_uuid).await? {
        enqueue(core, &mut tx, &row, Some(device_instance_id), now).await?;
    }
    tx.commit_unaudited("follows from the deletion of a device, which has an entry")
        .await?;
    Ok(Done::Finished)
}

/// Removes them. A broker that is away for long keeps what it has.
pub async fn perform(core: &Core, task: &Task) -> Result<Done> {
    let Payload {
        pipeline_uuid,
        revision_uuid,
        destination,
        sealed,
        device_instance_id,
        until,
    } = serde_json::from_value(task.payload.clone()).map_err(Error::internal)?;
    let sealed = sealed.map(|sealed| STANDARD.decode(sealed)).transpose();
    let sealed = sealed.map_err(Error::internal)?;
    let stored = Stored::open(core, revision_uuid, destination, sealed.as_deref())?;
    let Ok(definition) = stored.compile(core) else {
        return Ok(Done::Finished);
    };
    let withdrawn = destinations::withdraw(
        &definition,
        stored.auth.as_ref(),
        pipeline_uuid,
        device_instance_id,
        &core.outgoing,
        WITHIN,
    );
    match withdrawn.await {
        Ok(removed) => {
            tracing::debug!(%pipeline_uuid, removed, "announcements of Home Assistant are removed");
            Ok(Done::Finished)
        }
        Err(failure) if core.clock.now() >= until => {
            let reason = failure.into_reason();
            tracing::warn!(%pipeline_uuid, reason, "announcements of Home Assistant stay at their broker");
            Ok(Done::Finished)
        }
        Err(failure) => {
            let reason = failure.into_reason();
            tracing::debug!(%pipeline_uuid, reason, "announcements are removed later");
            Ok(Done::RunAt(core.clock.now().plus_secs(AGAIN_SECS)))
        }
    }
}
