//! SQL of deliveries, which the engine records.

use hub_base::db::{Conn, Direction, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::super::DeliveryOutcome;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct DeliveryRow {
    pub delivery_id: i64,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    #[sqlx(try_from = "String")]
    pub status: DeliveryOutcome,
    pub first_event_id: i64,
    pub events: i64,
    pub event_ids: Option<String>,
    pub attempt: i64,
    pub response_status: Option<i64>,
    pub response_body: Option<String>,
    pub error: Option<String>,
    pub duration_millis: i64,
    pub started_at: Timestamp,
}

const COLUMNS: &str = "delivery_id, pipeline_uuid, revision, status, first_event_id, events, \
    event_ids, attempt, response_status, response_body, error, duration_millis, started_at";

/// Which deliveries are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub pipeline_uuid: Option<Uuid>,
    pub status: Option<DeliveryOutcome>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

fn narrowed(tenant_uuid: TenantUuid, filter: &Filter) -> Sql {
    let mut query = match filter.pipeline_uuid {
        // The pipeline is the tenant's; its index is enough.
        Some(pipeline_uuid) => {
            sql("FROM pipeline_deliveries WHERE pipeline_uuid = $1").bind(pipeline_uuid)
        }
        None => sql("FROM pipeline_deliveries WHERE tenant_uuid = $1").bind(tenant_uuid),
    };
    if let Some(from) = filter.from {
        query = query.push(" AND started_at >= ").push_bind(from);
    }
    if let Some(to) = filter.to {
        query = query.push(" AND started_at < ").push_bind(to);
    }
    match filter.status {
        Some(status) => query.push(" AND status = ").push_bind(status.name()),
        None => query,
    }
}

/// Deliveries by their time, and how many there are.
pub async fn list(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    filter: &Filter,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<DeliveryRow>, i64)> {
    let order = match direction {
        Direction::Ascending => "started_at, delivery_id",
        Direction::Descending => "started_at DESC, delivery_id DESC",
    };
    narrowed(tenant_uuid, filter)
        .page(conn, COLUMNS, &[order], slice)
        .await
}

/// Deletes up to `limit` deliveries of a tenant that began before a time, and returns how many.
pub async fn delete_before(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM pipeline_deliveries WHERE delivery_id IN (SELECT delivery_id \
         FROM pipeline_deliveries WHERE tenant_uuid = $1 AND started_at < $2 \
         ORDER BY started_at LIMIT $3)",
    )
    .bind((tenant_uuid, before, limit))
    .execute(tx)
    .await
}

/// The next tenant after `after` that has deliveries.
pub async fn next_tenant(conn: &mut Conn, after: Uuid) -> Result<Option<TenantUuid>> {
    sql(
        "SELECT tenant_uuid FROM pipeline_deliveries WHERE tenant_uuid > $1 \
         ORDER BY tenant_uuid LIMIT 1",
    )
    .bind(after)
    .optional_scalar(conn)
    .await
}
