//! SQL of BLE events, which `ingest` writes.

use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::{DeliveryStatus, View};
use crate::authz::Scope;
use crate::db::{Conn, Direction, Log, LogRange, Slice, Sql, sql};
use crate::error::Result;
use crate::ingest::ProcessingStatus;

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
    /// A [`super::Reading`] as JSON.
    pub reading: Option<String>,
    /// The first reception of the same frame; none of the first.
    pub observation_id: Option<i64>,
    /// When it was last read again, if that changed what was read.
    pub reprocessed_at: Option<Timestamp>,
    pub event: String,
}

/// The filters of a list.
#[derive(Debug, Default)]
pub struct Filter {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub processing_status: Option<ProcessingStatus>,
    pub delivery_status: Option<DeliveryStatus>,
    pub view: View,
}

const COLUMNS: &str = "ble_event_id, hub_uuid, device_instance_id, processing_status, \
    delivery_status, window_start, window_end, reading, observation_id, reprocessed_at, event";
const LOG: Log = Log { table: "ble_events", id: "ble_event_id", text: "event", columns: COLUMNS };

fn narrowed(scope: &Scope, filter: &Filter) -> Sql {
    let mut query = sql("FROM ble_events WHERE tenant_uuid = $1").bind(scope.tenant_uuid());
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
    if let Some(status) = filter.delivery_status {
        query = query.push(match status {
            DeliveryStatus::None => " AND delivery_status = 'NONE'",
            DeliveryStatus::Pending => " AND delivery_status = 'PENDING'",
            DeliveryStatus::Delivered => " AND delivery_status = 'DELIVERED'",
            DeliveryStatus::Failed => " AND delivery_status = 'FAILED'",
            DeliveryStatus::Dead => " AND delivery_status = 'DEAD'",
        });
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
    narrowed(scope, filter).page(conn, COLUMNS, &["ble_event_id ", direction.sql()], slice).await
}

pub async fn get(conn: &mut Conn, scope: &Scope, ble_event_id: i64) -> Result<Option<StoredEvent>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM ble_events WHERE tenant_uuid = $1 AND ble_event_id = $2")
        .bind(scope.tenant_uuid())
        .bind(ble_event_id)
        .optional(conn)
        .await
}

/// The tenant's events in a range of their ids, oldest first.
pub async fn after(conn: &mut Conn, tenant_uuid: TenantUuid, range: LogRange) -> Result<Vec<StoredEvent>> {
    LOG.read(tenant_uuid, None, range).all(conn).await
}
