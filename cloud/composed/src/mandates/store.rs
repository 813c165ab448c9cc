//! SQL of mandates, of how far their messages have got, and of trade secrets.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::{EndReason, Form};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct MandateRow {
    pub mandate_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub user_uuid: UserUuid,
    pub hub_uuid: Option<HubUuid>,
    /// A JSON list.
    pub device_instance_ids: Option<String>,
    /// A JSON list.
    pub quantities: Option<String>,
    pub recipient_name: String,
    pub recipient_email: Option<String>,
    pub recipient_url: Option<String>,
    #[sqlx(try_from = "String")]
    pub form: Form,
    pub from_at: Timestamp,
    pub until_at: Timestamp,
    pub push_url: Option<String>,
    pub receipt: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub last_used_address: Option<String>,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
    /// When the person withdrew a consent to the supplier that concerns these devices.
    pub consent_withdrawn_at: Option<Timestamp>,
}

const COLUMNS: &str = "m.mandate_uuid, m.tenant_uuid, m.user_uuid, m.hub_uuid, \
    m.device_instance_ids, m.quantities, m.recipient_name, m.recipient_email, m.recipient_url, \
    m.form, m.from_at, m.until_at, m.push_url, m.receipt, m.created_at, m.last_used_at, \
    m.last_used_address, m.ended_at, m.end_reason, (SELECT MIN(c.withdrawn_at) \
    FROM consent_records c WHERE c.user_uuid = m.user_uuid AND c.tenant_uuid = m.tenant_uuid \
    AND c.withdrawn_at >= m.created_at AND (c.hub_uuid IS NULL OR m.hub_uuid IS NULL \
    OR c.hub_uuid = m.hub_uuid)) AS consent_withdrawn_at";

const ORDER: &[&str] = &["m.created_at DESC, m.mandate_uuid DESC"];

/// The secrets of a new mandate, as they are stored.
#[derive(Default)]
pub struct NewSecrets {
    pub credential_hash: Option<Vec<u8>>,
    pub sealed_signing_secret: Option<Vec<u8>>,
}

pub async fn insert(tx: &mut Tx, row: &MandateRow, secrets: NewSecrets) -> Result<()> {
    sql(
        "INSERT INTO mandates (mandate_uuid, tenant_uuid, user_uuid, hub_uuid, \
         device_instance_ids, quantities, recipient_name, recipient_email, recipient_url, form, \
         from_at, until_at, credential_hash, push_url, sealed_signing_secret, receipt, \
         created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
    )
    .bind((
        row.mandate_uuid,
        row.tenant_uuid,
        row.user_uuid,
        row.hub_uuid,
        row.device_instance_ids.as_deref(),
        row.quantities.as_deref(),
        row.recipient_name.as_str(),
        row.recipient_email.as_deref(),
        row.recipient_url.as_deref(),
        row.form.name(),
    ))
    .bind((
        row.from_at,
        row.until_at,
        secrets.credential_hash,
        row.push_url.as_deref(),
        secrets.sealed_signing_secret,
        row.receipt.as_str(),
        row.created_at,
    ))
    .run(tx)
    .await
}

/// The mandate of a credential.
pub async fn of_credential(
    conn: &mut Conn,
    credential_hash: Vec<u8>,
) -> Result<Option<MandateRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM mandates m WHERE m.credential_hash = $1")
        .bind(credential_hash)
        .optional(conn)
        .await
}

pub async fn get(conn: &mut Conn, mandate_uuid: Uuid) -> Result<Option<MandateRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM mandates m WHERE m.mandate_uuid = $1")
        .bind(mandate_uuid)
        .optional(conn)
        .await
}

/// A mandate that the person gave, locked.
pub async fn lock_own(
    tx: &mut Tx,
    user_uuid: UserUuid,
    mandate_uuid: Uuid,
) -> Result<Option<MandateRow>> {
    let is_own = sql("SELECT 1 FROM mandates WHERE mandate_uuid = $1 AND user_uuid = $2")
        .for_update(tx)
        .bind((mandate_uuid, user_uuid))
        .exists(tx)
        .await?;
    match is_own {
        true => get(tx, mandate_uuid).await,
        false => Ok(None),
    }
}

/// How many mandates of the person have no end yet, and how many there are.
pub async fn counts(conn: &mut Conn, user_uuid: UserUuid) -> Result<(i64, i64)> {
    sql(
        "SELECT COUNT(CASE WHEN ended_at IS NULL THEN 1 END), COUNT(*) FROM mandates \
         WHERE user_uuid = $1",
    )
    .bind(user_uuid)
    .one(conn)
    .await
}

/// One page of the mandates of a person, newest first, and the total number.
pub async fn list_own(
    conn: &mut Conn,
    user_uuid: UserUuid,
    slice: Slice,
) -> Result<(Vec<MandateRow>, i64)> {
    sql("FROM mandates m WHERE m.user_uuid = $1")
        .bind(user_uuid)
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

/// One page of the mandates for data of the supplier's devices, newest first, and the total number.
pub async fn list(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<MandateRow>, i64)> {
    sql("FROM mandates m WHERE m.tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

/// Mandates without an end, in the order of their ids.
pub async fn without_end(conn: &mut Conn, after: Uuid, limit: i64) -> Result<Vec<MandateRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM mandates m WHERE m.ended_at IS NULL AND m.mandate_uuid > $1 \
             ORDER BY m.mandate_uuid LIMIT $2",
        )
        .bind((after, limit))
        .all(conn)
        .await
}

/// Ends a mandate, and returns whether it had no end yet. The credential and the secret go.
pub async fn end(
    tx: &mut Tx,
    mandate_uuid: Uuid,
    ended_at: Timestamp,
    reason: EndReason,
) -> Result<bool> {
    sql("DELETE FROM mandate_pushes WHERE mandate_uuid = $1")
        .bind(mandate_uuid)
        .run(tx)
        .await?;
    let ended = sql(
        "UPDATE mandates SET ended_at = $2, end_reason = $3, sealed_signing_secret = NULL \
         WHERE mandate_uuid = $1 AND ended_at IS NULL",
    )
    .bind((mandate_uuid, ended_at, reason.name()))
    .execute(tx)
    .await?;
    Ok(ended > 0)
}

/// Ends all mandates for data of a tenant that is being deleted, and returns their number.
pub async fn end_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    sql(
        "DELETE FROM mandate_pushes WHERE mandate_uuid IN (SELECT mandate_uuid FROM mandates \
         WHERE tenant_uuid = $1)",
    )
    .bind(scope.tenant_uuid())
    .run(tx)
    .await?;
    sql(
        "UPDATE mandates SET ended_at = $2, end_reason = 'SUPPLIER_DELETED', \
         sealed_signing_secret = NULL WHERE tenant_uuid = $1 AND ended_at IS NULL",
    )
    .bind((scope.tenant_uuid(), now))
    .execute(tx)
    .await
}

/// Deletes the mandates of a person whose account is being deleted, receipts included.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid) -> Result<u64> {
    sql("DELETE FROM mandates WHERE user_uuid = $1")
        .bind(user_uuid)
        .execute(tx)
        .await
}

/// Deletes mandates that ended before then, and returns their number.
pub async fn delete_ended_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM mandates WHERE mandate_uuid IN (SELECT mandate_uuid FROM mandates \
         WHERE ended_at < $1 ORDER BY ended_at LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

/// Notes when and from where the recipient last read.
pub async fn note_use(
    tx: &mut Tx,
    mandate_uuid: Uuid,
    at: Timestamp,
    address: Option<String>,
) -> Result<()> {
    sql(
        "UPDATE mandates SET last_used_at = $2, last_used_address = $3 \
         WHERE mandate_uuid = $1 AND ended_at IS NULL",
    )
    .bind((mandate_uuid, at, address))
    .run(tx)
    .await
}

/// A quantity that a supplier calls a trade secret.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct TradeSecretRow {
    pub tenant_uuid: TenantUuid,
    pub quantity: String,
    pub reason: String,
    pub marked_at: Timestamp,
}

/// The trade secrets of these suppliers, by quantity. The list must not be empty.
pub async fn trade_secrets(
    conn: &mut Conn,
    tenants: impl IntoIterator<Item = TenantUuid>,
) -> Result<Vec<TradeSecretRow>> {
    sql("SELECT tenant_uuid, quantity, reason, marked_at FROM trade_secrets WHERE tenant_uuid IN ")
        .push_list(tenants)
        .push(" ORDER BY tenant_uuid, quantity")
        .all(conn)
        .await
}

pub async fn delete_trade_secret(tx: &mut Tx, scope: &Scope, quantity: &str) -> Result<()> {
    sql("DELETE FROM trade_secrets WHERE tenant_uuid = $1 AND quantity = $2")
        .bind((scope.tenant_uuid(), quantity))
        .run(tx)
        .await
}

pub async fn put_trade_secret(tx: &mut Tx, row: &TradeSecretRow) -> Result<()> {
    sql(
        "INSERT INTO trade_secrets (tenant_uuid, quantity, reason, marked_at) \
         VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_uuid, quantity) \
         DO UPDATE SET reason = excluded.reason, marked_at = excluded.marked_at",
    )
    .bind((
        row.tenant_uuid,
        row.quantity.as_str(),
        row.reason.as_str(),
        row.marked_at,
    ))
    .run(tx)
    .await
}

/// What of a mandate has been sent to its recipient.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct PushRow {
    pub mandate_uuid: Uuid,
    pub cursor_id: i64,
    pub failures: i64,
    pub last_error: Option<String>,
    pub last_sent_at: Option<Timestamp>,
}

const PUSH_COLUMNS: &str = "mandate_uuid, cursor_id, failures, last_error, last_sent_at";

pub async fn begin_push(
    tx: &mut Tx,
    mandate_uuid: Uuid,
    cursor_id: i64,
    due_at: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO mandate_pushes (mandate_uuid, cursor_id, due_at, failures) \
         VALUES ($1, $2, $3, 0)",
    )
    .bind((mandate_uuid, cursor_id, due_at))
    .run(tx)
    .await
}

/// Pushes that are due, the longest due first.
pub async fn due_pushes(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<PushRow>> {
    sql("SELECT ")
        .push(PUSH_COLUMNS)
        .push(" FROM mandate_pushes WHERE due_at <= $1 ORDER BY due_at LIMIT $2")
        .bind((now, limit))
        .all(conn)
        .await
}

/// The pushes of these mandates. The list must not be empty.
pub async fn pushes(
    conn: &mut Conn,
    mandates: impl IntoIterator<Item = Uuid>,
) -> Result<Vec<PushRow>> {
    sql("SELECT ")
        .push(PUSH_COLUMNS)
        .push(" FROM mandate_pushes WHERE mandate_uuid IN ")
        .push_list(mandates)
        .all(conn)
        .await
}

/// Notes how a push went, if its mandate is still in force.
pub async fn set_push(tx: &mut Tx, row: &PushRow, due_at: Timestamp) -> Result<()> {
    sql(
        "UPDATE mandate_pushes SET cursor_id = $2, due_at = $3, failures = $4, last_error = $5, \
         last_sent_at = $6 WHERE mandate_uuid = $1",
    )
    .bind((
        row.mandate_uuid,
        row.cursor_id,
        due_at,
        row.failures,
        row.last_error.as_deref(),
        row.last_sent_at,
    ))
    .run(tx)
    .await
}

/// The sealed secret that signs the messages of a mandate.
pub async fn signing_secret(conn: &mut Conn, mandate_uuid: Uuid) -> Result<Option<Vec<u8>>> {
    let sealed: Option<Option<Vec<u8>>> =
        sql("SELECT sealed_signing_secret FROM mandates WHERE mandate_uuid = $1")
            .bind(mandate_uuid)
            .optional_scalar(conn)
            .await?;
    Ok(sealed.flatten())
}
