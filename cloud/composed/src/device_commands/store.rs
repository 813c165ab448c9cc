//! SQL of device commands.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubJobUuid, HubUuid, Timestamp};
use uuid::Uuid;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct CommandRow {
    pub command_uuid: Uuid,
    pub device_instance_id: i64,
    /// The requester: the user of the app, or the tenant.
    pub author_uuid: Uuid,
    pub action_id: String,
    pub idempotency_key: Option<String>,
    /// The hub that carries the command out, as this job.
    pub hub_uuid: Option<HubUuid>,
    pub hub_job_uuid: Option<HubJobUuid>,
    pub deadline_at: Timestamp,
    /// JSON.
    pub result: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

const COLUMNS: &str = "command_uuid, device_instance_id, author_uuid, action_id, idempotency_key, \
    hub_uuid, hub_job_uuid, deadline_at, result, error_code, error_message, created_at, finished_at";

pub async fn insert(tx: &mut Tx, scope: &Scope, row: &CommandRow) -> Result<()> {
    sql(
        "INSERT INTO device_commands (tenant_uuid, command_uuid, device_instance_id, author_uuid, \
         action_id, idempotency_key, hub_uuid, hub_job_uuid, deadline_at, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind((
        scope.tenant_uuid(),
        row.command_uuid,
        row.device_instance_id,
        row.author_uuid,
        row.action_id.as_str(),
        row.idempotency_key.as_deref(),
        row.hub_uuid,
        row.hub_job_uuid,
        row.deadline_at,
        row.created_at,
    ))
    .run(tx)
    .await
}

/// The commands that are visible: those of the tenant, or those of one requester since a time.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub author_uuid: Option<Uuid>,
    pub since: Timestamp,
}

pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    device_instance_id: i64,
    seen: Seen,
    command_uuid: Uuid,
) -> Result<Option<CommandRow>> {
    let mut get = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM device_commands WHERE command_uuid = $1 AND tenant_uuid = $2 \
             AND device_instance_id = $3 AND created_at >= $4",
        )
        .bind((
            command_uuid,
            scope.tenant_uuid(),
            device_instance_id,
            seen.since,
        ));
    if let Some(author_uuid) = seen.author_uuid {
        get = get.push(" AND author_uuid = ").push_bind(author_uuid);
    }
    get.optional(conn).await
}

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    device_instance_id: i64,
    seen: Seen,
    slice: Slice,
) -> Result<(Vec<CommandRow>, i64)> {
    let mut list = sql("FROM device_commands WHERE tenant_uuid = $1 AND device_instance_id = $2 AND created_at >= $3")
        .bind((scope.tenant_uuid(), device_instance_id, seen.since));
    if let Some(author_uuid) = seen.author_uuid {
        list = list.push(" AND author_uuid = ").push_bind(author_uuid);
    }
    list.page(
        conn,
        COLUMNS,
        &["created_at DESC, command_uuid DESC"],
        slice,
    )
    .await
}

/// Those that a requester gave since a time: the latest, oldest first.
pub async fn given(
    conn: &mut Conn,
    scope: &Scope,
    (author_uuid, since): (Uuid, Timestamp),
    limit: i64,
) -> Result<Vec<CommandRow>> {
    let mut rows: Vec<CommandRow> = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM device_commands WHERE author_uuid = $1 AND created_at >= $2 \
             AND tenant_uuid = $3 ORDER BY created_at DESC, command_uuid DESC LIMIT $4",
        )
        .bind((author_uuid, since, scope.tenant_uuid(), limit))
        .all(conn)
        .await?;
    rows.reverse();
    Ok(rows)
}

/// The requester's command with this key.
pub async fn by_key(
    conn: &mut Conn,
    scope: &Scope,
    device_instance_id: i64,
    author_uuid: Uuid,
    key: &str,
) -> Result<Option<CommandRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM device_commands WHERE tenant_uuid = $1 AND device_instance_id = $2 \
             AND author_uuid = $3 AND idempotency_key = $4",
        )
        .bind((scope.tenant_uuid(), device_instance_id, author_uuid, key))
        .optional(conn)
        .await
}

/// The number of the device's commands at `since` or later, up to a limit.
pub async fn count_of_device(
    conn: &mut Conn,
    device_instance_id: i64,
    since: Timestamp,
    limit: i64,
) -> Result<i64> {
    sql("SELECT COUNT(*) FROM (SELECT 1 FROM device_commands \
         WHERE device_instance_id = $1 AND created_at >= $2 LIMIT $3) c")
    .bind((device_instance_id, since, limit))
    .scalar(conn)
    .await
}

/// The same of an author.
pub async fn count_of_author(
    conn: &mut Conn,
    author_uuid: Uuid,
    since: Timestamp,
    limit: i64,
) -> Result<i64> {
    sql("SELECT COUNT(*) FROM (SELECT 1 FROM device_commands \
         WHERE author_uuid = $1 AND created_at >= $2 LIMIT $3) c")
    .bind((author_uuid, since, limit))
    .scalar(conn)
    .await
}

/// The outcome of a command that no hub carries out.
pub struct End {
    /// JSON.
    pub result: Option<String>,
    pub error_code: Option<&'static str>,
    pub error_message: Option<String>,
}

pub async fn finish(tx: &mut Tx, command_uuid: Uuid, end: End, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE device_commands SET result = $2, error_code = $3, error_message = $4, \
         finished_at = $5 WHERE command_uuid = $1 AND finished_at IS NULL",
    )
    .bind((
        command_uuid,
        end.result,
        end.error_code,
        end.error_message,
        now,
    ))
    .run(tx)
    .await
}

/// Deletes commands of before, up to `limit`, and returns how many.
pub async fn forget(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM device_commands WHERE command_uuid IN \
         (SELECT command_uuid FROM device_commands WHERE created_at < $1 \
         ORDER BY created_at LIMIT $2)")
    .bind((before, limit))
    .execute(tx)
    .await
}

/// The same of an author, whenever they were given.
pub async fn forget_author(tx: &mut Tx, author_uuid: Uuid, limit: i64) -> Result<u64> {
    sql("DELETE FROM device_commands WHERE command_uuid IN \
         (SELECT command_uuid FROM device_commands WHERE author_uuid = $1 \
         ORDER BY created_at LIMIT $2)")
    .bind((author_uuid, limit))
    .execute(tx)
    .await
}

/// The commands of a requester, oldest first.
pub async fn of_author(
    conn: &mut Conn,
    author_uuid: Uuid,
    slice: Slice,
) -> Result<Vec<CommandRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_commands WHERE author_uuid = $1 ORDER BY created_at, command_uuid LIMIT $2 OFFSET $3")
        .bind((author_uuid, slice.size, slice.offset))
        .all(conn)
        .await
}
