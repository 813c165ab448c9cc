//! Which files are a tenant's history, and up to which event.

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Direction, Slice, Tx, sql};
use hub_base::error::Result;
use hub_history::{File, path_of};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

/// A file of the history, and what the database counts of it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct FileRow {
    pub tenant_uuid: TenantUuid,
    pub first_id: i64,
    pub last_id: i64,
    pub name: Uuid,
    pub events: i64,
    /// What its events count as stored.
    pub bytes: i64,
    pub file_bytes: i64,
    pub sha256: Vec<u8>,
    pub e_tag: Option<String>,
    /// Events of the hub that was asked for; all without one.
    pub events_of_hub: i64,
}

impl FileRow {
    pub fn file(&self) -> File {
        File {
            tenant_uuid: self.tenant_uuid,
            first_id: self.first_id,
            last_id: self.last_id,
            name: self.name,
            events: self.events,
            file_bytes: self.file_bytes,
            sha256: self.sha256.clone(),
            e_tag: self.e_tag.clone(),
        }
    }
}

const COLUMNS: &str = "f.tenant_uuid, f.first_id, f.last_id, f.name, f.events, f.bytes, \
     f.file_bytes, f.sha256, f.e_tag";
const ALL_COLUMNS: &str = "f.tenant_uuid, f.first_id, f.last_id, f.name, f.events, f.bytes, \
     f.file_bytes, f.sha256, f.e_tag, f.events AS events_of_hub";

/// The last event of the tenant that is in a file. Rows of the database up to it are not read any
/// more.
pub async fn closed_to(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<i64> {
    let closed_to: Option<i64> = sql("SELECT closed_to FROM ble_history WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .optional_scalar(conn)
        .await?;
    Ok(closed_to.unwrap_or(i64::MIN))
}

/// The first time of receipt that no file has.
pub async fn first_open(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Timestamp> {
    let closed_to = closed_to(conn, tenant_uuid).await?;
    Ok(Timestamp::from_micros(closed_to.max(-1).saturating_add(1)))
}

/// The first id after this one that may be in a file.
pub async fn first_after(conn: &mut Conn, tenant_uuid: TenantUuid, id: i64) -> Result<Option<i64>> {
    let next = id.saturating_add(1);
    let ids = (next, i64::MAX);
    let files = files(conn, tenant_uuid, ids, None, Direction::Ascending, 1).await?;
    Ok(files.first().map(|file| file.first_id.max(next)))
}

/// Up to `limit` of the files that have ids between these, both included; those with events of a
/// hub, if one is given.
pub async fn files(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (first_id, last_id): (i64, i64),
    hub_uuid: Option<HubUuid>,
    direction: Direction,
    limit: i64,
) -> Result<Vec<FileRow>> {
    let query = sql("SELECT ");
    let query = match hub_uuid {
        None => query
            .push(ALL_COLUMNS)
            .push(" FROM ble_history_files f WHERE "),
        Some(hub_uuid) => query
            .push(COLUMNS)
            .push(
                ", h.events AS events_of_hub FROM ble_history_hubs h JOIN ble_history_files f \
                 ON f.tenant_uuid = h.tenant_uuid AND f.first_id = h.first_id WHERE h.hub_uuid = ",
            )
            .push_bind(hub_uuid)
            .push(" AND h.tenant_uuid = ")
            .push_bind(tenant_uuid)
            .push(" AND h.first_id <= ")
            .push_bind(last_id)
            .push(" AND "),
    };
    // The file that an id is in is the last one that begins before it.
    query
        .push("f.tenant_uuid = ")
        .push_bind(tenant_uuid)
        .push(" AND f.first_id <= ")
        .push_bind(last_id)
        .push(" AND f.last_id >= ")
        .push_bind(first_id)
        .push(
            " AND f.first_id >= COALESCE((SELECT MAX(first_id) FROM ble_history_files \
             WHERE tenant_uuid = ",
        )
        .push_bind(tenant_uuid)
        .push(" AND first_id <= ")
        .push_bind(first_id)
        .push("), ")
        .push_bind(first_id)
        .push(") ORDER BY f.first_id ")
        .push(direction.sql())
        .push(" LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}

/// One page of the files that have ids between these, both included, and how many there are.
pub async fn files_page(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (first_id, last_id): (i64, i64),
    slice: Slice,
) -> Result<(Vec<FileRow>, i64)> {
    sql(
        "FROM ble_history_files f WHERE f.tenant_uuid = $1 AND f.last_id >= $2 \
         AND f.first_id <= $3",
    )
    .bind((tenant_uuid, first_id, last_id))
    .page(conn, ALL_COLUMNS, &["f.first_id"], slice)
    .await
}

/// Whether this is still a file of the history.
pub async fn is_current(conn: &mut Conn, file: &File) -> Result<bool> {
    sql("SELECT 1 FROM ble_history_files WHERE tenant_uuid = $1 AND first_id = $2 AND name = $3")
        .bind((file.tenant_uuid, file.first_id, file.name))
        .exists(conn)
        .await
}

/// Events by hub.
pub type HubEvents = Vec<(HubUuid, i64)>;

/// Adds a file, which overlaps none of its tenant. Ends the note of its removal.
pub async fn insert(tx: &mut Tx, file: &File, bytes: i64, hubs: &HubEvents) -> Result<()> {
    sql(
        "INSERT INTO ble_history_files (tenant_uuid, first_id, last_id, name, events, bytes, \
         file_bytes, sha256, e_tag) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind((
        file.tenant_uuid,
        file.first_id,
        file.last_id,
        file.name,
        file.events,
        bytes,
        file.file_bytes,
        file.sha256.clone(),
        file.e_tag.clone(),
    ))
    .run(tx)
    .await?;
    Bulk {
        head: "INSERT INTO ble_history_hubs (tenant_uuid, hub_uuid, first_id, events)",
        columns: vec![
            Column::Uuid(vec![file.tenant_uuid.0; hubs.len()]),
            Column::Uuid(hubs.iter().map(|(hub_uuid, _)| hub_uuid.0).collect()),
            Column::Int(vec![file.first_id; hubs.len()]),
            Column::Int(hubs.iter().map(|(_, events)| *events).collect()),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    keep(tx, file.name).await
}

/// Deletes a file of the history, and notes that it is to be removed from the store. Returns false
/// if it was none: then the transaction must not be committed.
pub async fn delete(tx: &mut Tx, file: &File, now: Timestamp) -> Result<bool> {
    let deleted =
        sql("DELETE FROM ble_history_files WHERE tenant_uuid = $1 AND first_id = $2 AND name = $3")
            .bind((file.tenant_uuid, file.first_id, file.name))
            .execute(tx)
            .await?;
    if deleted == 0 {
        return Ok(false);
    }
    sql("DELETE FROM ble_history_hubs WHERE tenant_uuid = $1 AND first_id = $2")
        .bind((file.tenant_uuid, file.first_id))
        .run(tx)
        .await?;
    remove(tx, file.tenant_uuid, file.first_id, file.name, now).await?;
    Ok(true)
}

/// Notes that events up to this one are in files. Nothing of it may be committed unless `before` is
/// still how far they were: returns whether it is.
pub async fn advance(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    (before, closed_to): (i64, i64),
    now: Timestamp,
) -> Result<bool> {
    let changed = match before {
        i64::MIN => {
            sql(
                "INSERT INTO ble_history (tenant_uuid, closed_to, cleared_to, closed_at) \
                 VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_uuid) DO NOTHING",
            )
            .bind((tenant_uuid, closed_to, i64::MIN, now))
            .execute(tx)
            .await?
        }
        before => {
            sql("UPDATE ble_history SET closed_to = $3, closed_at = $4 \
                 WHERE tenant_uuid = $1 AND closed_to = $2")
            .bind((tenant_uuid, before, closed_to, now))
            .execute(tx)
            .await?
        }
    };
    Ok(changed == 1)
}

/// A tenant whose rows up to an event can be deleted.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Closed {
    pub tenant_uuid: TenantUuid,
    pub closed_to: i64,
}

/// Up to `limit` tenants with rows that have been in files since `before`.
pub async fn uncleared(conn: &mut Conn, before: Timestamp, limit: i64) -> Result<Vec<Closed>> {
    sql("SELECT tenant_uuid, closed_to FROM ble_history \
         WHERE cleared_to < closed_to AND closed_at <= $1 ORDER BY tenant_uuid LIMIT $2")
    .bind((before, limit))
    .all(conn)
    .await
}

pub async fn cleared(tx: &mut Tx, closed: Closed) -> Result<()> {
    sql("UPDATE ble_history SET cleared_to = $2 WHERE tenant_uuid = $1 AND cleared_to < $2")
        .bind((closed.tenant_uuid, closed.closed_to))
        .run(tx)
        .await
}

/// Notes that a file is to be removed from the store at a time. One that is about to be written is
/// noted first, so that nothing is left of it if it does not become a file of the history.
pub async fn remove(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    first_id: i64,
    name: Uuid,
    due_at: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO ble_history_removals (name, tenant_uuid, first_id, due_at) \
         VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET due_at = excluded.due_at",
    )
    .bind((name, tenant_uuid, first_id, due_at))
    .run(tx)
    .await
}

/// Ends what [`remove`] noted.
pub async fn keep(tx: &mut Tx, name: Uuid) -> Result<()> {
    sql("DELETE FROM ble_history_removals WHERE name = $1")
        .bind(name)
        .run(tx)
        .await
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Removal {
    pub name: Uuid,
    tenant_uuid: TenantUuid,
    first_id: i64,
}

impl Removal {
    pub fn path(&self) -> String {
        path_of(self.tenant_uuid, self.first_id, self.name)
    }
}

/// Up to `limit` files that are to be removed from the store by now.
pub async fn removals(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Removal>> {
    sql(
        "SELECT name, tenant_uuid, first_id FROM ble_history_removals \
         WHERE due_at <= $1 ORDER BY due_at LIMIT $2",
    )
    .bind((now, limit))
    .all(conn)
    .await
}

/// How much of a tenant's log is in files.
#[derive(Clone, Copy, Debug, Default, sqlx::FromRow)]
pub struct Size {
    pub files: i64,
    pub events: i64,
    pub file_bytes: i64,
}

pub async fn size(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Size> {
    sql(
        "SELECT COUNT(*) AS files, CAST(COALESCE(SUM(events), 0) AS BIGINT) AS events, \
         CAST(COALESCE(SUM(file_bytes), 0) AS BIGINT) AS file_bytes \
         FROM ble_history_files WHERE tenant_uuid = $1",
    )
    .bind(tenant_uuid)
    .one(conn)
    .await
}
