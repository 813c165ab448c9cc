//! SQL of identifiers.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use uuid::Uuid;

use super::super::Stored;
use super::super::identifiers::{Condition, NewIdentifier};

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct IdentifierRow {
    pub device_identifier_id: i64,
    pub device_uuid: Uuid,
    #[sqlx(try_from = "String")]
    pub conditions: Stored<Vec<Condition>>,
    pub specificity: i64,
    pub label: Option<String>,
    pub notes: Option<String>,
    pub created_at: Timestamp,
}

const COLUMNS: &str =
    "device_identifier_id, device_uuid, conditions, specificity, label, notes, created_at";

pub async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    device_uuid: Uuid,
    new: &NewIdentifier,
    now: Timestamp,
) -> Result<IdentifierRow> {
    sql(
        "INSERT INTO device_identifiers (tenant_uuid, device_uuid, conditions, specificity, \
         label, notes, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        scope.tenant_uuid(),
        device_uuid,
        new.conditions.text()?,
        i64::from(new.identifier.specificity()),
        new.label.as_deref(),
        new.notes.as_deref(),
        now,
    ))
    .one(tx)
    .await
}

/// The identifiers of a model, in the order in which they were created; at most `limit`.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Uuid,
    limit: i64,
) -> Result<Vec<IdentifierRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM device_identifiers WHERE device_uuid = $1 AND tenant_uuid = $2 \
             ORDER BY device_identifier_id LIMIT $3",
        )
        .bind((device_uuid, scope.tenant_uuid(), limit))
        .all(conn)
        .await
}

pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Uuid,
    id: i64,
) -> Result<Option<IdentifierRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM device_identifiers \
             WHERE device_identifier_id = $1 AND device_uuid = $2 AND tenant_uuid = $3",
        )
        .bind((id, device_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// Identifiers of other models with one of these specificities: with no others can a tie be. The
/// list must not be empty.
pub async fn rivals(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Uuid,
    specificities: &[i64],
) -> Result<Vec<IdentifierRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM device_identifiers WHERE tenant_uuid = $1 AND device_uuid <> $2 \
             AND specificity IN ",
        )
        .bind((scope.tenant_uuid(), device_uuid))
        .push_list(specificities.iter().copied())
        .push(" ORDER BY device_identifier_id")
        .all(conn)
        .await
}

/// Stores label and notes.
pub async fn describe(tx: &mut Tx, scope: &Scope, row: &IdentifierRow) -> Result<()> {
    sql("UPDATE device_identifiers SET label = $3, notes = $4 \
         WHERE device_identifier_id = $1 AND tenant_uuid = $2")
    .bind((
        row.device_identifier_id,
        scope.tenant_uuid(),
        row.label.as_deref(),
        row.notes.as_deref(),
    ))
    .run(tx)
    .await
}

pub async fn delete(tx: &mut Tx, scope: &Scope, id: i64) -> Result<()> {
    sql("DELETE FROM device_identifiers WHERE device_identifier_id = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .run(tx)
        .await
}
