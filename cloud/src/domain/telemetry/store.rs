//! SQL of telemetry and logs, which `ingest` writes. The two tables have the same columns.

use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use crate::authz::Scope;
use crate::db::{Conn, Direction, Log, LogRange, Slice, sql};
use crate::error::Result;

#[derive(Debug, sqlx::FromRow)]
pub struct StoredRecord {
    pub id: i64,
    pub hub_uuid: HubUuid,
    pub body: String,
}

/// Which of the two tables.
#[derive(Clone, Copy, Debug)]
pub enum Table {
    Logs,
    Telemetry,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Logs => "hub_logs",
            Self::Telemetry => "hub_telemetry",
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::Logs => "hub_log_id",
            Self::Telemetry => "hub_telemetry_id",
        }
    }

    const fn columns(self) -> &'static str {
        match self {
            Self::Logs => "hub_log_id AS id, hub_uuid, body",
            Self::Telemetry => "hub_telemetry_id AS id, hub_uuid, body",
        }
    }
}

/// The filters of a list, besides the hub.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// One page of the hub's records, and how many there are.
pub async fn list(
    conn: &mut Conn,
    table: Table,
    scope: &Scope,
    hub_uuid: HubUuid,
    between: Between,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<StoredRecord>, i64)> {
    let mut from = sql("FROM ").push(table.name()).push(" WHERE tenant_uuid = $1 AND hub_uuid = $2");
    from = from.bind(scope.tenant_uuid()).bind(hub_uuid);
    if let Some(start) = between.from {
        from = from.push(" AND ").push(table.id()).push(" >= ").push_bind(start.as_micros());
    }
    if let Some(end) = between.to {
        from = from.push(" AND ").push(table.id()).push(" < ").push_bind(end.as_micros());
    }
    from.page(conn, table.columns(), &[table.id(), " ", direction.sql()], slice).await
}

/// The log entries of one of the tenant's hubs, or of all, in a range of their ids, oldest first.
pub async fn logs_after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
    range: LogRange,
) -> Result<Vec<StoredRecord>> {
    let table = Table::Logs;
    let log = Log { table: table.name(), id: table.id(), text: "body", columns: table.columns() };
    log.read(tenant_uuid, hub_uuid, range).all(conn).await
}
