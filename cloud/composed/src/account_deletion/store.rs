//! SQL of deletions that are under way.

use std::collections::HashSet;

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::{Deletion, Step};

#[derive(sqlx::FromRow)]
struct Row {
    deletion_uuid: Uuid,
    user_uuid: UserUuid,
    person: String,
    #[sqlx(try_from = "String")]
    step: Step,
    position: i64,
    last_position: i64,
    begun_at: Timestamp,
}

pub async fn insert(tx: &mut Tx, deletion: &Deletion) -> Result<()> {
    sql(
        "INSERT INTO account_deletions (deletion_uuid, user_uuid, person, step, position, \
         last_position, begun_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind((
        deletion.deletion_uuid,
        deletion.user_uuid,
        serde_json::to_string(&deletion.traces).map_err(Error::internal)?,
        deletion.step.name(),
        deletion.position,
        deletion.last_position,
        deletion.begun_at,
    ))
    .run(tx)
    .await
}

pub async fn find(conn: &mut Conn, deletion_uuid: Uuid) -> Result<Option<Deletion>> {
    let row: Option<Row> = sql("SELECT deletion_uuid, user_uuid, person, step, position, \
         last_position, begun_at FROM account_deletions WHERE deletion_uuid = $1")
    .bind(deletion_uuid)
    .optional(conn)
    .await?;
    let deletion = |row: Row| {
        Ok(Deletion {
            deletion_uuid: row.deletion_uuid,
            user_uuid: row.user_uuid,
            traces: serde_json::from_str(&row.person).map_err(Error::internal)?,
            step: row.step,
            position: row.position,
            last_position: row.last_position,
            begun_at: row.begun_at,
        })
    };
    row.map(deletion).transpose()
}

pub async fn set_step(tx: &mut Tx, deletion: &Deletion) -> Result<()> {
    sql(
        "UPDATE account_deletions SET step = $2, position = $3, last_position = $4 \
         WHERE deletion_uuid = $1",
    )
    .bind((
        deletion.deletion_uuid,
        deletion.step.name(),
        deletion.position,
        deletion.last_position,
    ))
    .run(tx)
    .await
}

pub async fn delete(tx: &mut Tx, deletion_uuid: Uuid) -> Result<()> {
    sql("DELETE FROM account_deletions WHERE deletion_uuid = $1")
        .bind(deletion_uuid)
        .run(tx)
        .await
}

/// Notes the hubs of the person, and returns how many there are.
pub async fn take_hubs(tx: &mut Tx, deletion_uuid: Uuid, user_uuid: UserUuid) -> Result<u64> {
    sql(
        "INSERT INTO account_deletion_hubs (deletion_uuid, hub_uuid, tenant_uuid, since) \
         SELECT $1, hub_uuid, tenant_uuid, COALESCE(owner_since, claimed_at) FROM hubs \
         WHERE owner_user_uuid = $2",
    )
    .bind((deletion_uuid, user_uuid))
    .execute(tx)
    .await
}

pub async fn tenants_of_hubs(
    conn: &mut Conn,
    deletion_uuid: Uuid,
    limit: i64,
) -> Result<Vec<TenantUuid>> {
    sql("SELECT DISTINCT tenant_uuid FROM account_deletion_hubs WHERE deletion_uuid = $1 LIMIT $2")
        .bind((deletion_uuid, limit))
        .scalars(conn)
        .await
}

/// A hub that still has something of the person.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct LeftHub {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub since: Timestamp,
}

const HUBS: &str = "SELECT hub_uuid, tenant_uuid, since FROM account_deletion_hubs \
    WHERE deletion_uuid = $1";

pub async fn next_hub(conn: &mut Conn, deletion_uuid: Uuid) -> Result<Option<LeftHub>> {
    sql(HUBS)
        .push(" ORDER BY hub_uuid LIMIT 1")
        .bind(deletion_uuid)
        .optional(conn)
        .await
}

/// The person's hubs that are still to be released, after an id and in the order of their ids.
pub async fn hubs_after(
    conn: &mut Conn,
    deletion_uuid: Uuid,
    after: HubUuid,
    limit: i64,
) -> Result<Vec<LeftHub>> {
    sql(HUBS)
        .push(" AND hub_uuid > $2 ORDER BY hub_uuid LIMIT $3")
        .bind((deletion_uuid, after, limit))
        .all(conn)
        .await
}

pub async fn forget_hub(tx: &mut Tx, deletion_uuid: Uuid, hub_uuid: HubUuid) -> Result<()> {
    sql("DELETE FROM account_deletion_hubs WHERE deletion_uuid = $1 AND hub_uuid = $2")
        .bind((deletion_uuid, hub_uuid))
        .run(tx)
        .await
}

/// The hubs of the person that still have something of them.
pub async fn left_hubs(conn: &mut Conn, deletion_uuid: Uuid) -> Result<HashSet<HubUuid>> {
    let hubs: Vec<HubUuid> =
        sql("SELECT hub_uuid FROM account_deletion_hubs WHERE deletion_uuid = $1")
            .bind(deletion_uuid)
            .scalars(conn)
            .await?;
    Ok(hubs.into_iter().collect())
}

/// Devices that the hub hears best and no hub of anybody else has any event of in the database,
/// with ids above `after`.
pub async fn lone_devices(
    conn: &mut Conn,
    deletion_uuid: Uuid,
    hub: &LeftHub,
    after: i64,
    limit: i64,
) -> Result<Vec<i64>> {
    sql("SELECT s.device_instance_id FROM device_states s \
         WHERE s.nearest_hub_uuid = $1 AND s.tenant_uuid = $2 \
         AND s.device_instance_id > $4 AND NOT EXISTS (SELECT 1 FROM ble_device_hours d \
         WHERE d.tenant_uuid = $2 AND d.device_instance_id = s.device_instance_id \
         AND d.hub_uuid <> $1 AND d.hub_uuid NOT IN (SELECT h.hub_uuid \
         FROM account_deletion_hubs h WHERE h.deletion_uuid = $3)) \
         ORDER BY s.device_instance_id LIMIT $5")
    .bind((hub.hub_uuid, hub.tenant_uuid, deletion_uuid, after, limit))
    .scalars(conn)
    .await
}
