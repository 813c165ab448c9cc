//! SQL of consent settings and records.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};

use super::ConsentStatus;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct SettingRow {
    pub version: String,
    pub text: String,
    pub url: Option<String>,
    /// The purposes as JSON.
    pub purposes: String,
    pub self_pairing: bool,
    pub enforce: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

const SETTING: &str = "SELECT version, text, url, purposes, self_pairing, enforce, created_at, \
    updated_at FROM consent_settings WHERE tenant_uuid = $1 AND ";

/// A version, or the one in force.
pub async fn setting(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    version: Option<&str>,
) -> Result<Option<SettingRow>> {
    let setting = sql(SETTING).bind(tenant_uuid);
    match version {
        Some(version) => setting.push("version = ").push_bind(version),
        None => setting.push("is_current"),
    }
    .optional(conn)
    .await
}

pub async fn count_settings(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<i64> {
    sql("SELECT COUNT(*) FROM consent_settings WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .scalar(conn)
        .await
}

/// Stores the version and puts it in force.
pub async fn put_setting(tx: &mut Tx, tenant_uuid: TenantUuid, row: &SettingRow) -> Result<()> {
    sql("UPDATE consent_settings SET is_current = $3 \
         WHERE tenant_uuid = $1 AND is_current AND version <> $2")
    .bind((tenant_uuid, row.version.as_str(), false))
    .run(tx)
    .await?;
    sql(
        "INSERT INTO consent_settings (tenant_uuid, version, text, url, purposes, self_pairing, \
         enforce, is_current, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
         ON CONFLICT (tenant_uuid, version) DO UPDATE SET text = excluded.text, \
         url = excluded.url, purposes = excluded.purposes, self_pairing = excluded.self_pairing, \
         enforce = excluded.enforce, is_current = excluded.is_current, \
         updated_at = excluded.updated_at",
    )
    .bind((
        tenant_uuid,
        row.version.as_str(),
        row.text.as_str(),
        row.url.as_deref(),
        row.purposes.as_str(),
        row.self_pairing,
        row.enforce,
        true,
        row.created_at,
        row.updated_at,
    ))
    .run(tx)
    .await
}

/// Whether anybody has ever granted this version.
pub async fn is_granted(conn: &mut Conn, tenant_uuid: TenantUuid, version: &str) -> Result<bool> {
    sql("SELECT 1 FROM consent_records WHERE tenant_uuid = $1 AND version = $2 LIMIT 1")
        .bind((tenant_uuid, version))
        .exists(conn)
        .await
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct RecordRow {
    pub consent_id: i64,
    pub tenant_uuid: TenantUuid,
    pub user_uuid: UserUuid,
    pub hub_uuid: Option<HubUuid>,
    pub version: String,
    /// The purposes as JSON.
    pub purposes: String,
    #[sqlx(try_from = "String")]
    pub status: ConsentStatus,
    pub granted_at: Timestamp,
    pub withdrawn_at: Option<Timestamp>,
    pub receipt: String,
    pub retention_days: Option<i64>,
    pub retention_from: Option<Timestamp>,
    pub deleted_events: i64,
    /// The version that the supplier asks for now.
    pub current_version: Option<String>,
}

const COLUMNS: &str = "r.consent_id, r.tenant_uuid, r.user_uuid, r.hub_uuid, r.version, \
    r.purposes, r.status, r.granted_at, r.withdrawn_at, r.receipt, r.retention_days, \
    r.retention_from, r.deleted_events, (SELECT c.version FROM consent_settings c \
    WHERE c.tenant_uuid = r.tenant_uuid AND c.is_current) AS current_version";

const ORDER: &[&str] = &["r.consent_id DESC"];

/// One page of the consents of the tenant's users, newest first, and the total number.
pub async fn list(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<RecordRow>, i64)> {
    sql("FROM consent_records r WHERE r.tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

/// One page of the person's consents, newest first, and the total number.
pub async fn list_own(
    conn: &mut Conn,
    user_uuid: UserUuid,
    slice: Slice,
) -> Result<(Vec<RecordRow>, i64)> {
    sql("FROM consent_records r WHERE r.user_uuid = $1")
        .bind(user_uuid)
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

pub async fn own(
    conn: &mut Conn,
    user_uuid: UserUuid,
    consent_id: i64,
) -> Result<Option<RecordRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM consent_records r WHERE r.consent_id = $1 AND r.user_uuid = $2")
        .bind((consent_id, user_uuid))
        .optional(conn)
        .await
}

/// The person's consent for this hub, or for all of theirs.
pub async fn in_force(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
    hub_uuid: Option<HubUuid>,
) -> Result<Option<RecordRow>> {
    let record = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM consent_records r WHERE r.user_uuid = $1 AND r.tenant_uuid = $2 \
             AND r.status = 'GRANTED' AND ",
        )
        .bind((user_uuid, tenant_uuid));
    match hub_uuid {
        Some(hub_uuid) => record.push("r.hub_uuid = ").push_bind(hub_uuid),
        None => record.push("r.hub_uuid IS NULL"),
    }
    .optional(conn)
    .await
}

pub async fn count_of(conn: &mut Conn, user_uuid: UserUuid) -> Result<i64> {
    sql("SELECT COUNT(*) FROM consent_records WHERE user_uuid = $1")
        .bind(user_uuid)
        .scalar(conn)
        .await
}

/// Returns its id.
pub async fn insert(tx: &mut Tx, row: &RecordRow) -> Result<i64> {
    sql(
        "INSERT INTO consent_records (tenant_uuid, user_uuid, hub_uuid, version, purposes, status, \
         granted_at, receipt, retention_days, retention_from, deleted_events) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0) RETURNING consent_id",
    )
    .bind((
        row.tenant_uuid,
        row.user_uuid,
        row.hub_uuid,
        row.version.as_str(),
        row.purposes.as_str(),
        row.status.name(),
        row.granted_at,
        row.receipt.as_str(),
        row.retention_days,
        row.retention_from,
    ))
    .scalar(tx)
    .await
}

pub async fn set_receipt(tx: &mut Tx, consent_id: i64, receipt: &str) -> Result<()> {
    sql("UPDATE consent_records SET receipt = $2 WHERE consent_id = $1")
        .bind((consent_id, receipt))
        .run(tx)
        .await
}

/// A later grant replaces it, its retention included.
pub async fn outdate(tx: &mut Tx, consent_id: i64) -> Result<()> {
    sql(
        "UPDATE consent_records SET status = 'OUTDATED', retention_days = NULL, \
         retention_from = NULL WHERE consent_id = $1",
    )
    .bind(consent_id)
    .run(tx)
    .await
}

/// Its retention ends with it: a later grant has its own.
pub async fn withdraw(tx: &mut Tx, consent_id: i64, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE consent_records SET status = 'WITHDRAWN', withdrawn_at = $2, \
         retention_days = NULL, retention_from = NULL WHERE consent_id = $1",
    )
    .bind((consent_id, now))
    .run(tx)
    .await
}

pub async fn set_retention(tx: &mut Tx, consent_id: i64, days: i64, now: Timestamp) -> Result<()> {
    sql("UPDATE consent_records SET retention_days = $2, retention_from = $3 WHERE consent_id = $1")
        .bind((consent_id, days, now))
        .run(tx)
        .await
}

/// A consent that somebody has withdrawn.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct WithdrawnConsent {
    pub consent_id: i64,
    pub user_uuid: UserUuid,
    pub hub_uuid: Option<HubUuid>,
    pub version: String,
    pub withdrawn_at: Timestamp,
}

/// Consents that were withdrawn since then, the earliest first.
pub async fn withdrawn_since(
    conn: &mut Conn,
    scope: &Scope,
    from: Timestamp,
    limit: i64,
) -> Result<Vec<WithdrawnConsent>> {
    sql(
        "SELECT consent_id, user_uuid, hub_uuid, version, withdrawn_at FROM consent_records \
         WHERE tenant_uuid = $1 AND withdrawn_at >= $2 ORDER BY withdrawn_at LIMIT $3",
    )
    .bind((scope.tenant_uuid(), from, limit))
    .all(conn)
    .await
}

/// A retention that a person has set.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct KeeperRow {
    pub consent_id: i64,
    pub tenant_uuid: TenantUuid,
    pub user_uuid: UserUuid,
    pub hub_uuid: Option<HubUuid>,
    pub retention_days: i64,
}

/// The retentions after an id, in the order of their ids.
pub async fn keepers(conn: &mut Conn, after: i64, limit: i64) -> Result<Vec<KeeperRow>> {
    sql(
        "SELECT consent_id, tenant_uuid, user_uuid, hub_uuid, retention_days FROM consent_records \
         WHERE retention_days IS NOT NULL AND consent_id > $1 ORDER BY consent_id LIMIT $2",
    )
    .bind((after, limit))
    .all(conn)
    .await
}

pub async fn add_deleted(tx: &mut Tx, consent_id: i64, events: i64) -> Result<()> {
    sql("UPDATE consent_records SET deleted_events = deleted_events + $2 WHERE consent_id = $1")
        .bind((consent_id, events))
        .run(tx)
        .await
}

/// The suppliers that the person has granted anything to, up to `limit`.
pub async fn suppliers_of(
    conn: &mut Conn,
    user_uuid: UserUuid,
    limit: i64,
) -> Result<Vec<TenantUuid>> {
    sql("SELECT DISTINCT tenant_uuid FROM consent_records WHERE user_uuid = $1 LIMIT $2")
        .bind((user_uuid, limit))
        .scalars(conn)
        .await
}

/// Deletes the records of a person whose account is being deleted, receipts included.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid) -> Result<u64> {
    sql("DELETE FROM consent_records WHERE user_uuid = $1")
        .bind(user_uuid)
        .execute(tx)
        .await
}

/// The person's consents with ids above `after`, in their order.
pub async fn own_after(
    conn: &mut Conn,
    user_uuid: UserUuid,
    after: i64,
    limit: i64,
) -> Result<Vec<RecordRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM consent_records r WHERE r.user_uuid = $1 AND r.consent_id > $2")
        .push(" ORDER BY r.consent_id LIMIT $3")
        .bind((user_uuid, after, limit))
        .all(conn)
        .await
}
