//! SQL of BLE events. They are written by `ingest` alone.

use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::{DeliveryStatus, ProcessingStatus};
use crate::authz::Scope;
use crate::db::{Conn, Sql, sql};
use crate::error::Result;
use crate::http::page::{Direction, MAX_OFFSET};

/// An event as stored.
#[derive(Debug, sqlx::FromRow)]
pub struct StoredEvent {
    pub ble_event_id: i64,
    pub hub_uuid: HubUuid,
    pub device_instance_id: Option<i64>,
    pub processing_status: String,
    pub delivery_status: String,
    pub window_start: Option<Timestamp>,
    pub window_end: Option<Timestamp>,
    pub event: String,
}

/// What a list may be narrowed by.
#[derive(Debug, Default)]
pub struct Filter {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub processing_status: Option<ProcessingStatus>,
    pub delivery_status: Option<DeliveryStatus>,
}

const COLUMNS: &str = "SELECT ble_event_id, hub_uuid, device_instance_id, processing_status, delivery_status, \
                       window_start, window_end, event FROM ble_events";

fn narrowed(query: Sql, scope: &Scope, filter: &Filter) -> Sql {
    let mut query = query.push(" WHERE tenant_uuid = ").push_bind(scope.tenant_uuid());
    if let Some(from) = filter.from {
        query = query.push(" AND ble_event_id >= ").push_bind(from.as_micros());
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
    // Written out, not bound: only so can the database use the indexes that leave the common value out.
    if let Some(status) = filter.processing_status {
        query = query.push(match status {
            ProcessingStatus::Received => " AND processing_status = 'RECEIVED'",
            ProcessingStatus::Matched => " AND processing_status = 'MATCHED'",
            ProcessingStatus::Unmatched => " AND processing_status = 'UNMATCHED'",
            ProcessingStatus::Decoded => " AND processing_status = 'DECODED'",
            ProcessingStatus::Failed => " AND processing_status = 'FAILED'",
        });
    }
    if let Some(status) = filter.delivery_status {
        query = query.push(match status {
            DeliveryStatus::None => " AND delivery_status = 'NONE'",
            DeliveryStatus::Pending => " AND delivery_status = 'PENDING'",
            DeliveryStatus::Delivered => " AND delivery_status = 'DELIVERED'",
            DeliveryStatus::Failed => " AND delivery_status = 'FAILED'",
            DeliveryStatus::Dead => " AND delivery_status = 'DEAD'",
        });
    }
    query
}

pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filter: &Filter,
    direction: Direction,
    size: i64,
    offset: i64,
) -> Result<Vec<StoredEvent>> {
    narrowed(sql(COLUMNS), scope, filter)
        .push(" ORDER BY ble_event_id ")
        .push(direction.sql())
        .push(" LIMIT ")
        .push_bind(size)
        .push(" OFFSET ")
        .push_bind(offset)
        .all(conn)
        .await
}

/// How many there are, counted up to [`MAX_OFFSET`].
pub async fn count(conn: &mut Conn, scope: &Scope, filter: &Filter) -> Result<i64> {
    let query = narrowed(sql("SELECT COUNT(*) FROM (SELECT 1 AS one FROM ble_events"), scope, filter);
    let (count,): (i64,) = query.push(" LIMIT ").push_bind(MAX_OFFSET).push(") AS counted").one(conn).await?;
    Ok(count)
}

pub async fn get(conn: &mut Conn, scope: &Scope, ble_event_id: i64) -> Result<Option<StoredEvent>> {
    sql(COLUMNS)
        .push(" WHERE tenant_uuid = ")
        .push_bind(scope.tenant_uuid())
        .push(" AND ble_event_id = ")
        .push_bind(ble_event_id)
        .optional(conn)
        .await
}

/// The tenant's events with ids above `after`, up to `last`, oldest first.
pub async fn after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    after: i64,
    last: i64,
    limit: i64,
) -> Result<Vec<StoredEvent>> {
    sql(COLUMNS)
        .push(" WHERE tenant_uuid = ")
        .push_bind(tenant_uuid)
        .push(" AND ble_event_id > ")
        .push_bind(after)
        .push(" AND ble_event_id <= ")
        .push_bind(last)
        .push(" ORDER BY ble_event_id LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}
