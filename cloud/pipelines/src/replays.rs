//! Replays: events are sent once more, beside what is new.

use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_ingest::{self as ingest, Kind};
use hub_protocol::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::operations::locked;
use super::store::operators::{self, NewLane};
use super::{LaneStatus, MAX_REPLAYS, Pipelines, REPLAY};

/// Which events are sent again.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub from: Timestamp,
    /// Without this time.
    pub to: Timestamp,
    /// Only what is in a dead letter.
    pub dead_letters_only: bool,
}

/// Begins a replay and returns its uuid. While the pipeline is paused it waits.
pub async fn begin(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
    range: Range,
) -> Result<Uuid> {
    let now = pipelines.core.clock.now();
    let (mut tx, row) = locked(&pipelines.core, scope, pipeline_uuid).await?;
    if operators::count_unfinished(&mut tx, pipeline_uuid).await? >= MAX_REPLAYS {
        let message = format!(
            "a pipeline may have {MAX_REPLAYS} replays at once; wait for one, or cancel it"
        );
        return Err(Error::conflict("TOO_MANY_REPLAYS", message));
    }
    let last_id = ingest::last_id(&mut tx, (scope.tenant_uuid(), Kind::BleEvents)).await?;
    let start_id = range.from.as_micros().saturating_sub(1).max(0);
    let until_id = range
        .to
        .as_micros()
        .saturating_sub(1)
        .min(last_id)
        .max(start_id);
    let lane = NewLane {
        pipeline_uuid,
        tenant_uuid: scope.tenant_uuid(),
        kind: REPLAY,
        status: LaneStatus::of_new(row.enabled),
        start_id,
        until_id: Some(until_id),
        dead_letters_only: range.dead_letters_only,
    };
    let replay_uuid = operators::insert(&mut tx, lane, now).await?;
    operators::forget_old_replays(&mut tx, pipeline_uuid).await?;
    pipelines.wake_after(&mut tx);
    let detail = json!({
        "replayUuid": replay_uuid,
        "from": range.from,
        "to": range.to,
        "deadLettersOnly": range.dead_letters_only,
    });
    tx.commit(Audit::new(scope, "pipeline.replay", pipeline_uuid, now).with(detail))
        .await?;
    Ok(replay_uuid)
}

/// Cancels a replay. One that has ended stays as it is.
pub async fn cancel(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
    replay_uuid: Uuid,
) -> Result<()> {
    let now = pipelines.core.clock.now();
    let (mut tx, _) = locked(&pipelines.core, scope, pipeline_uuid).await?;
    let replay = operators::replay(&mut tx, pipeline_uuid, replay_uuid).await?;
    let replay = replay.ok_or_else(|| Error::not_found("replay"))?;
    if replay.status.is_over() {
        return Ok(());
    }
    operators::cancel(&mut tx, replay_uuid, now).await?;
    pipelines.wake_after(&mut tx);
    let audit = Audit::new(scope, "pipeline.cancel_replay", pipeline_uuid, now);
    tx.commit(audit.with(json!({"replayUuid": replay_uuid})))
        .await
}
