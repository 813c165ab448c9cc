//! SQL of telemetry and logs. They are written by `ingest` alone. The two tables have the same shape, and a hub's records lie together.

use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use crate::authz::Scope;
use crate::db::{Conn, Sql, sql};
use crate::error::Result;
use crate::http::page::{Direction, MAX_OFFSET};

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
}

/// What a list may be narrowed by, besides the hub.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

fn narrowed(query: Sql, table: Table, scope: &Scope, hub_uuid: HubUuid, between: Between) -> Sql {
    let mut query =
        query.push(" WHERE tenant_uuid = ").push_bind(scope.tenant_uuid()).push(" AND hub_uuid = ").push_bind(hub_uuid);
    if let Some(from) = between.from {
        query = query.push(" AND ").push(table.id()).push(" >= ").push_bind(from.as_micros());
    }
    if let Some(to) = between.to {
        query = query.push(" AND ").push(table.id()).push(" < ").push_bind(to.as_micros());
    }
    query
}

fn columns(table: Table) -> Sql {
    sql("SELECT ").push(table.id()).push(" AS id, hub_uuid, body FROM ").push(table.name())
}

pub async fn list(
    conn: &mut Conn,
    table: Table,
    scope: &Scope,
    hub_uuid: HubUuid,
    between: Between,
    direction: Direction,
    (size, offset): (i64, i64),
) -> Result<Vec<StoredRecord>> {
    narrowed(columns(table), table, scope, hub_uuid, between)
        .push(" ORDER BY ")
        .push(table.id())
        .push(" ")
        .push(direction.sql())
        .push(" LIMIT ")
        .push_bind(size)
        .push(" OFFSET ")
        .push_bind(offset)
        .all(conn)
        .await
}

/// How many there are, counted up to [`MAX_OFFSET`].
pub async fn count(conn: &mut Conn, table: Table, scope: &Scope, hub_uuid: HubUuid, between: Between) -> Result<i64> {
    let query = sql("SELECT COUNT(*) FROM (SELECT 1 AS one FROM ").push(table.name());
    let query = narrowed(query, table, scope, hub_uuid, between);
    let (count,): (i64,) = query.push(" LIMIT ").push_bind(MAX_OFFSET).push(") AS counted").one(conn).await?;
    Ok(count)
}

/// The log entries of one of the tenant's hubs, or of all, with ids above `after`, up to `last`, oldest first.
pub async fn logs_after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
    after: i64,
    last: i64,
    limit: i64,
) -> Result<Vec<StoredRecord>> {
    let mut query = columns(Table::Logs).push(" WHERE tenant_uuid = ").push_bind(tenant_uuid);
    if let Some(hub_uuid) = hub_uuid {
        query = query.push(" AND hub_uuid = ").push_bind(hub_uuid);
    }
    query
        .push(" AND hub_log_id > ")
        .push_bind(after)
        .push(" AND hub_log_id <= ")
        .push_bind(last)
        .push(" ORDER BY hub_log_id LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}
