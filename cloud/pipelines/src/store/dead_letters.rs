//! SQL of dead letters, which the engine writes and operators retry or delete.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::super::Retry;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct DeadLetterRow {
    pub dlq_id: i64,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    pub first_event_id: i64,
    pub last_event_id: i64,
    pub events: i64,
    pub payload: String,
    pub reason: String,
    pub response_status: Option<i64>,
    pub attempts: i64,
    pub retry: Option<String>,
    pub created_at: Timestamp,
}

const COLUMNS: &str = "dlq_id, pipeline_uuid, revision, first_event_id, last_event_id, events, \
    payload, reason, response_status, attempts, retry, created_at";
const ORDER: &[&str] = &["dlq_id DESC"];

fn of_pipeline(pipeline_uuid: Uuid) -> Sql {
    sql("FROM dead_letters WHERE pipeline_uuid = $1").bind(pipeline_uuid)
}

/// Newest first, and how many there are.
pub async fn list(
    conn: &mut Conn,
    pipeline_uuid: Uuid,
    slice: Slice,
) -> Result<(Vec<DeadLetterRow>, i64)> {
    of_pipeline(pipeline_uuid)
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

/// The size of one page's payloads.
pub async fn page_bytes(conn: &mut Conn, pipeline_uuid: Uuid, slice: Slice) -> Result<i64> {
    of_pipeline(pipeline_uuid)
        .page_bytes(conn, "payload", ORDER, slice)
        .await
}

/// Marks dead letters of a pipeline to be sent again: all, or those of a list that is not empty.
/// Returns how many.
pub async fn mark(
    tx: &mut Tx,
    pipeline_uuid: Uuid,
    ids: Option<&[i64]>,
    retry: Retry,
) -> Result<u64> {
    let statement = sql("UPDATE dead_letters SET retry = $2 WHERE pipeline_uuid = $1")
        .bind((pipeline_uuid, retry.name()));
    match ids {
        None => statement.execute(tx).await,
        Some(ids) => {
            statement
                .push(" AND dlq_id IN ")
                .push_list(ids.iter().copied())
                .execute(tx)
                .await
        }
    }
}

/// Deletes a dead letter, and returns whether there was one.
pub async fn delete(tx: &mut Tx, pipeline_uuid: Uuid, dlq_id: i64) -> Result<bool> {
    let deleted = sql("DELETE FROM dead_letters WHERE dlq_id = $1 AND pipeline_uuid = $2")
        .bind((dlq_id, pipeline_uuid))
        .execute(tx)
        .await?;
    Ok(deleted > 0)
}

/// Deletes up to `limit` dead letters that were made before a time, and returns how many.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM dead_letters WHERE dlq_id IN (SELECT dlq_id FROM dead_letters \
         WHERE created_at < $1 ORDER BY created_at LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

/// Deletes at most `limit` dead letters of the tenant with events from a hub.
pub async fn delete_of_hub(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    since: i64,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM dead_letters WHERE dlq_id IN (SELECT dlq_id FROM dead_letters \
         WHERE tenant_uuid = $1 AND last_event_id >= $2 AND payload LIKE $3 LIMIT $4)",
    )
    .bind((tenant_uuid, since, format!("%{hub_uuid}%"), limit))
    .execute(tx)
    .await
}
