//! Dead letters: what operators do with messages that could not be delivered.

use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use serde_json::json;
use uuid::Uuid;

use super::operations::locked;
use super::store::dead_letters;
use super::store::operators::{self, NewLane};
use super::{LaneStatus, Pipelines, RETRY, Retry};

fn not_found() -> Error {
    Error::not_found("dead letter")
}

/// Has one dead letter sent again.
pub async fn retry(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
    dlq_id: i64,
    retry: Retry,
) -> Result<()> {
    match retry_some(pipelines, scope, pipeline_uuid, Some(&[dlq_id]), retry).await? {
        0 => Err(not_found()),
        _ => Ok(()),
    }
}

/// Has dead letters sent again, all or those of a list, and returns how many. While the pipeline is
/// paused they wait.
pub async fn retry_some(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
    ids: Option<&[i64]>,
    retry: Retry,
) -> Result<u64> {
    let now = pipelines.core.clock.now();
    let (mut tx, row) = locked(&pipelines.core, scope, pipeline_uuid).await?;
    let count = dead_letters::mark(&mut tx, pipeline_uuid, ids, retry).await?;
    if count == 0 {
        return Ok(0);
    }
    let lane = NewLane {
        pipeline_uuid,
        tenant_uuid: scope.tenant_uuid(),
        kind: RETRY,
        status: LaneStatus::of_new(row.enabled),
        start_id: 0,
        until_id: None,
        dead_letters_only: false,
    };
    operators::begin_retries(&mut tx, lane, now).await?;
    pipelines.wake_after(&mut tx);
    let dlq_id = ids.filter(|ids| ids.len() == 1).and_then(<[i64]>::first);
    let detail = json!({"deadLetters": count, "dlqId": dlq_id, "revision": retry.name()});
    tx.commit(Audit::new(scope, "pipeline.retry", pipeline_uuid, now).with(detail))
        .await?;
    Ok(count)
}

/// Deletes a dead letter: it is not sent any more.
pub async fn delete(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
    dlq_id: i64,
) -> Result<()> {
    let now = pipelines.core.clock.now();
    let (mut tx, _) = locked(&pipelines.core, scope, pipeline_uuid).await?;
    if !dead_letters::delete(&mut tx, pipeline_uuid, dlq_id).await? {
        return Err(not_found());
    }
    let audit = Audit::new(scope, "pipeline.delete_dead_letter", pipeline_uuid, now);
    tx.commit(audit.with(json!({"dlqId": dlq_id}))).await
}
