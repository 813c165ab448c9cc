//! SQL of BLE events, which `ingest` writes.

use hub_base::db::{Conn, Direction, Log, LogRange, Slice, Sql, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_ingest::ProcessingStatus;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::View;

/// An event as stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredEvent {
    pub ble_event_id: i64,
    pub hub_uuid: HubUuid,
    pub device_instance_id: Option<i64>,
    pub processing_status: String,
    pub delivery_status: String,
    pub window_start: Option<Timestamp>,
    pub window_end: Option<Timestamp>,
    /// A [`super::Reading`] as JSON.
    pub reading: Option<String>,
    /// The first reception of the same frame; none of the first.
    pub observation_id: Option<i64>,
    /// When the event was last reprocessed with a change.
    pub reprocessed_at: Option<Timestamp>,
    pub event: String,
}

/// The filters of a list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub processing_status: Option<ProcessingStatus>,
    /// Only events after this one.
    pub after_id: Option<i64>,
    /// Only events before this one.
    pub before_id: Option<i64>,
    pub view: View,
}

const COLUMNS: &str = "ble_event_id, hub_uuid, device_instance_id, processing_status, \
    delivery_status, window_start, window_end, reading, observation_id, reprocessed_at, event";
const LOG: Log = Log {
    table: "ble_events",
    id: "ble_event_id",
    text: "event",
    columns: COLUMNS,
};

fn narrowed(scope: &Scope, filter: &Filter) -> Sql {
    let mut query = sql("FROM ble_events WHERE tenant_uuid = $1").bind(scope.tenant_uuid());
    if let Some(from) = filter.from {
        query = query
            .push(" AND ble_event_id >= ")
            .push_bind(from.as_micros());
    }
    if let Some(to) = filter.to {
        query = query.push(" AND ble_event_id < ").push_bind(to.as_micros());
    }
    if let Some(hub_uuid) = filter.hub_uuid {
        query = query.push(" AND hub_uuid = ").push_bind(hub_uuid);
    }
    if let Some(id) = filter.device_instance_id {
        query = query.push(" AND device_instance_id = ").push_bind(id);
    }
    // Literals, not bound values: a partial index is used only when the condition is constant.
    if let Some(status) = filter.processing_status {
        query = query.push(match status {
            ProcessingStatus::Received => " AND processing_status = 'RECEIVED'",
            ProcessingStatus::Matched => " AND processing_status = 'MATCHED'",
            ProcessingStatus::Unmatched => " AND processing_status = 'UNMATCHED'",
            ProcessingStatus::Decoded => " AND processing_status = 'DECODED'",
            ProcessingStatus::Failed => " AND processing_status = 'FAILED'",
        });
    }
    if let Some(after) = filter.after_id {
        query = query.push(" AND ble_event_id > ").push_bind(after);
    }
    if let Some(before) = filter.before_id {
        query = query.push(" AND ble_event_id < ").push_bind(before);
    }
    match filter.view {
        View::Receptions => query,
        View::Observations => query.push(" AND observation_id IS NULL"),
    }
}

/// The events by their time of receipt, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filter: &Filter,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<StoredEvent>, i64)> {
    narrowed(scope, filter)
        .page(conn, COLUMNS, &["ble_event_id ", direction.sql()], slice)
        .await
}

/// Up to `limit` of the events, by their time of receipt.
pub async fn some_of(
    conn: &mut Conn,
    scope: &Scope,
    filter: &Filter,
    direction: Direction,
    limit: i64,
) -> Result<Vec<StoredEvent>> {
    let rows = sql("SELECT ")
        .push(COLUMNS)
        .push(" ")
        .append(&narrowed(scope, filter));
    rows.push(" ORDER BY ble_event_id ")
        .push(direction.sql())
        .push(" LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, ble_event_id: i64) -> Result<Option<StoredEvent>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM ble_events WHERE tenant_uuid = $1 AND ble_event_id = $2")
        .bind((scope.tenant_uuid(), ble_event_id))
        .optional(conn)
        .await
}

/// The tenant's events in a range of their ids, oldest first.
pub async fn after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    range: LogRange,
) -> Result<Vec<StoredEvent>> {
    LOG.read(tenant_uuid, None, range).all(conn).await
}

/// The first event after an id and up to another, and how many there are, counted up to `limit`.
pub async fn count_between(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (after, last): (i64, i64),
    limit: i64,
) -> Result<(Option<i64>, i64)> {
    sql(
        "SELECT MIN(counted.id), COUNT(*) FROM (SELECT ble_event_id AS id FROM ble_events \
         WHERE tenant_uuid = $1 AND ble_event_id > $2 AND ble_event_id <= $3 \
         ORDER BY ble_event_id LIMIT $4) AS counted",
    )
    .bind((tenant_uuid, after, last, limit))
    .one(conn)
    .await
}

/// Some events of the tenant, oldest first. The list must be short and not empty.
pub async fn some(conn: &mut Conn, scope: &Scope, ids: &[i64]) -> Result<Vec<StoredEvent>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM ble_events WHERE tenant_uuid = $1 AND ble_event_id IN ")
        .bind(scope.tenant_uuid())
        .push_list(ids.iter().copied())
        .push(" ORDER BY ble_event_id")
        .all(conn)
        .await
}

/// The tenant's last events before an id, oldest first. The first may have more bytes than
/// `max_bytes`, so that each one can be read.
pub async fn last_before(
    conn: &mut Conn,
    scope: &Scope,
    before: i64,
    max_rows: i64,
    max_bytes: i64,
) -> Result<Vec<StoredEvent>> {
    let first: Option<i64> = sql("SELECT MIN(summed.id) FROM (SELECT sized.id, \
         SUM(sized.bytes) OVER (ORDER BY sized.id DESC) AS bytes_so_far, \
         ROW_NUMBER() OVER (ORDER BY sized.id DESC) AS place \
         FROM (SELECT ble_event_id AS id, octet_length(event) AS bytes FROM ble_events \
         WHERE tenant_uuid = $1 AND ble_event_id < $2 ORDER BY ble_event_id DESC LIMIT $3) \
         AS sized) AS summed WHERE summed.place = 1 OR summed.bytes_so_far <= $4")
    .bind((scope.tenant_uuid(), before, max_rows, max_bytes))
    .scalar(conn)
    .await?;
    let Some(first) = first else {
        return Ok(Vec::new());
    };
    let range = LogRange {
        after: first.saturating_sub(1),
        last: before.saturating_sub(1),
        max_rows,
        max_bytes: i64::MAX,
    };
    after(conn, scope.tenant_uuid(), range).await
}

/// The counts of a minute since 1970.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct MinuteCount {
    pub minute: i64,
    pub events: i64,
    pub decoded: i64,
}

/// The microseconds of a minute: the id of an event is when it was received, in microseconds.
const MINUTE_MICROS: i64 = 60_000_000;

/// When the tenant received its first event of these minutes, the last of which is not included.
pub async fn first_received(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (from, to): (i64, i64),
) -> Result<Option<Timestamp>> {
    let id: Option<i64> = sql("SELECT MIN(ble_event_id) FROM ble_events \
         WHERE tenant_uuid = $1 AND ble_event_id >= $2 AND ble_event_id < $3")
    .bind((
        tenant_uuid,
        from.saturating_mul(MINUTE_MICROS),
        to.saturating_mul(MINUTE_MICROS),
    ))
    .scalar(conn)
    .await?;
    Ok(id.map(Timestamp::from_micros))
}

/// The events that the tenant received in these minutes, the last of which is not included, by
/// minute. Reads all of them: for few minutes.
pub async fn count_minutes(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (from, to): (i64, i64),
) -> Result<Vec<MinuteCount>> {
    sql(
        "SELECT ble_event_id / 60000000 AS minute, COUNT(*) AS events, \
         COUNT(CASE WHEN processing_status = 'DECODED' THEN 1 END) AS decoded FROM ble_events \
         WHERE tenant_uuid = $1 AND ble_event_id >= $2 AND ble_event_id < $3 \
         GROUP BY ble_event_id / 60000000 ORDER BY ble_event_id / 60000000",
    )
    .bind((
        tenant_uuid,
        from.saturating_mul(MINUTE_MICROS),
        to.saturating_mul(MINUTE_MICROS),
    ))
    .all(conn)
    .await
}
