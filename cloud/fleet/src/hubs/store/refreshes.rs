//! SQL of the refreshes of hubs.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::hub::Hub;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

/// The refreshes of a hub on one day.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Day {
    pub refreshes: i64,
    /// Refreshes with an audit entry of their own.
    pub entries: i64,
    /// The address of the last such entry.
    pub address: Option<String>,
    /// When all that was used is allowed again.
    pub used_until: Timestamp,
}

/// A day that is over.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct EndedDay {
    pub hub_uuid: HubUuid,
    pub day: i64,
    pub tenant_uuid: TenantUuid,
    pub refreshes: i64,
    pub entries: i64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

pub async fn day(conn: &mut Conn, hub_uuid: HubUuid, day: i64) -> Result<Option<Day>> {
    sql(
        "SELECT refreshes, entries, address, used_until FROM hub_refreshes \
         WHERE hub_uuid = $1 AND day = $2",
    )
    .bind((hub_uuid, day))
    .optional(conn)
    .await
}

pub async fn put(tx: &mut Tx, hub: &Hub, number: i64, day: &Day, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO hub_refreshes (hub_uuid, day, tenant_uuid, refreshes, entries, address, \
         used_until, first_at, last_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) \
         ON CONFLICT (hub_uuid, day) DO UPDATE SET tenant_uuid = excluded.tenant_uuid, \
         refreshes = excluded.refreshes, entries = excluded.entries, address = excluded.address, \
         used_until = excluded.used_until, last_at = excluded.last_at",
    )
    .bind((
        hub.hub_uuid,
        number,
        hub.tenant_uuid,
        day.refreshes,
        day.entries,
        day.address.clone(),
        day.used_until,
        now,
    ))
    .run(tx)
    .await
}

/// Up to `limit` days before `today`, locked; those that another replica has locked are left out.
pub async fn ended(tx: &mut Tx, today: i64, limit: i64) -> Result<Vec<EndedDay>> {
    sql(
        "SELECT hub_uuid, day, tenant_uuid, refreshes, entries, first_at, last_at \
         FROM hub_refreshes WHERE day < $1 ORDER BY day LIMIT $2",
    )
    .skip_locked(tx)
    .bind((today, limit))
    .all(tx)
    .await
}

pub async fn delete(tx: &mut Tx, hub_uuid: HubUuid, day: i64) -> Result<()> {
    sql("DELETE FROM hub_refreshes WHERE hub_uuid = $1 AND day = $2")
        .bind((hub_uuid, day))
        .run(tx)
        .await
}
