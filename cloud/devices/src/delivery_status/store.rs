//! SQL that reads what pipelines keep.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

pub async fn own(conn: &mut Conn, scope: &Scope, pipelines: &[Uuid]) -> Result<Vec<Uuid>> {
    sql("SELECT pipeline_uuid FROM pipelines WHERE tenant_uuid = $1 AND pipeline_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(pipelines.iter().copied())
        .scalars(conn)
        .await
}

#[derive(Debug, sqlx::FromRow)]
pub struct PositionRow {
    pub pipeline_uuid: Uuid,
    pub status: String,
    pub start_id: i64,
    pub cursor: i64,
    pub settled_ahead: Option<String>,
    pub definition: String,
}

/// The LIVE lanes of a tenant, with the definitions in force.
pub async fn positions(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Vec<PositionRow>> {
    sql(
        "SELECT l.pipeline_uuid, l.status, l.start_id, l.cursor, l.settled_ahead, r.definition \
         FROM pipeline_lanes l JOIN pipelines p ON p.pipeline_uuid = l.pipeline_uuid \
         JOIN pipeline_revisions r ON r.pipeline_uuid = p.pipeline_uuid \
         AND r.revision = p.revision WHERE l.tenant_uuid = $1 AND l.kind = 'LIVE'",
    )
    .bind(tenant_uuid)
    .all(conn)
    .await
}

/// The pipelines that are bound to hubs of the tenant, each with a hub; of very many, some.
pub async fn bound_of_tenant(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
) -> Result<Vec<(Uuid, HubUuid)>> {
    sql("SELECT pipeline_uuid, hub_uuid FROM pipeline_hubs WHERE tenant_uuid = $1 LIMIT 10000")
        .bind(tenant_uuid)
        .all(conn)
        .await
}

/// The pipelines that are bound to these hubs, each with a hub. The list must be short and not
/// empty.
pub async fn bound_to_hubs(conn: &mut Conn, hubs: &[HubUuid]) -> Result<Vec<(Uuid, HubUuid)>> {
    sql("SELECT pipeline_uuid, hub_uuid FROM pipeline_hubs WHERE hub_uuid IN ")
        .push_list(hubs.iter().copied())
        .all(conn)
        .await
}

/// The events of dead letters that may have one of a range of ids.
pub async fn dead_letters(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (first, last): (i64, i64),
    limit: i64,
) -> Result<Vec<(i64, Option<String>)>> {
    sql(
        "SELECT first_event_id, event_ids FROM dead_letters WHERE tenant_uuid = $1 \
         AND last_event_id >= $2 AND first_event_id <= $3 ORDER BY last_event_id LIMIT $4",
    )
    .bind((tenant_uuid, first, last, limit))
    .all(conn)
    .await
}

/// The dead letters that are searched for the first event in one. The letters after them are of
/// later events.
const FIRST: i64 = 1000;

/// The ids between which all events in dead letters are; None if there are none.
pub async fn dead_bounds(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<(i64, i64)>> {
    let first: Option<i64> = sql("SELECT MIN(first_event_id) FROM (SELECT first_event_id \
         FROM dead_letters WHERE tenant_uuid = $1 ORDER BY last_event_id LIMIT $2) AS earliest")
    .bind((tenant_uuid, FIRST))
    .scalar(conn)
    .await?;
    let last: Option<i64> =
        sql("SELECT MAX(last_event_id) FROM dead_letters WHERE tenant_uuid = $1")
            .bind(tenant_uuid)
            .scalar(conn)
            .await?;
    Ok(first.zip(last))
}

/// An attempt to deliver an event.
#[derive(Debug, sqlx::FromRow)]
pub struct Attempt {
    pub delivery_id: i64,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    pub status: String,
    pub attempt: i64,
    pub response_status: Option<i64>,
    pub error: Option<String>,
    pub started_at: Timestamp,
    pub duration_millis: i64,
    pub first_event_id: i64,
    pub event_ids: Option<String>,
}

/// Attempts that are looked through for those of one event.
const SEARCHED: i64 = 20_000;
/// Attempts that are found for one event.
const FOUND: i64 = 100;

/// The attempts to deliver an event, oldest first, as far as they are among the first ones after it
/// was received.
pub async fn attempts_of(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    ble_event_id: i64,
) -> Result<Vec<Attempt>> {
    let found: Vec<Attempt> = sql(
        "SELECT delivery_id, pipeline_uuid, revision, status, attempt, \
         response_status, error, started_at, duration_millis, first_event_id, event_ids \
         FROM (SELECT delivery_id, pipeline_uuid, revision, status, attempt, response_status, \
         error, started_at, duration_millis, first_event_id, last_event_id, event_ids \
         FROM pipeline_deliveries WHERE tenant_uuid = $1 AND started_at >= $2 \
         ORDER BY started_at LIMIT $3) AS later \
         WHERE first_event_id <= $4 AND last_event_id >= $4 ORDER BY started_at LIMIT $5",
    )
    .bind((
        tenant_uuid,
        Timestamp::from_micros(ble_event_id).plus_secs(-60),
        SEARCHED,
        ble_event_id,
        FOUND,
    ))
    .all(conn)
    .await?;
    let has_it = |one: &Attempt| {
        super::event_ids::decode(one.first_event_id, one.event_ids.as_deref())
            .contains(&ble_event_id)
    };
    Ok(found.into_iter().filter(has_it).collect())
}
