//! SQL of supplier OAuth configurations and of changes that wait.

use std::collections::HashMap;

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::{Error, Result};
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::{ApprovalStatus, Config};

/// The sealed secrets of a row.
#[derive(Clone, Debug, Default, sqlx::FromRow)]
pub struct Sealed {
    #[sqlx(rename = "sealed_client_secret")]
    pub client_secret: Option<Vec<u8>>,
    #[sqlx(rename = "sealed_registration_secret")]
    pub registration_secret: Option<Vec<u8>>,
}

/// A configuration in force.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Live {
    tenant_uuid: TenantUuid,
    config: String,
    #[sqlx(flatten)]
    pub sealed: Sealed,
    pub updated_at: Timestamp,
}

impl Live {
    pub fn config(&self) -> Result<Config> {
        serde_json::from_str(&self.config).map_err(Error::internal)
    }
}

/// A change that a tenant asked for.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Change {
    pub supplier_oauth_change_id: i64,
    pub change_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    config: String,
    #[sqlx(flatten)]
    pub sealed: Sealed,
    #[sqlx(try_from = "String")]
    pub status: ApprovalStatus,
    pub created_at: Timestamp,
}

impl Change {
    pub fn config(&self) -> Result<Config> {
        serde_json::from_str(&self.config).map_err(Error::internal)
    }
}

const LIVE: &str =
    "tenant_uuid, config, sealed_client_secret, sealed_registration_secret, updated_at";
const CHANGE: &str = "supplier_oauth_change_id, change_uuid, tenant_uuid, config, \
    sealed_client_secret, sealed_registration_secret, status, created_at";

pub async fn live(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Live>> {
    sql("SELECT ")
        .push(LIVE)
        .push(" FROM supplier_oauth_configs WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .optional(conn)
        .await
}

/// The configurations of some tenants, up to the size of a page.
pub async fn lives(
    conn: &mut Conn,
    tenants: impl ExactSizeIterator<Item = TenantUuid>,
) -> Result<HashMap<TenantUuid, Live>> {
    if tenants.len() == 0 {
        return Ok(HashMap::new());
    }
    let lives: Vec<Live> = sql("SELECT ")
        .push(LIVE)
        .push(" FROM supplier_oauth_configs WHERE tenant_uuid IN ")
        .push_list(tenants)
        .all(conn)
        .await?;
    Ok(lives
        .into_iter()
        .map(|live| (live.tenant_uuid, live))
        .collect())
}

pub async fn put(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    config: &Config,
    sealed: Sealed,
    now: Timestamp,
) -> Result<Live> {
    sql(
        "INSERT INTO supplier_oauth_configs (tenant_uuid, config, sealed_client_secret, \
         sealed_registration_secret, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5) \
         ON CONFLICT (tenant_uuid) DO UPDATE SET config = excluded.config, \
         sealed_client_secret = excluded.sealed_client_secret, \
         sealed_registration_secret = excluded.sealed_registration_secret, \
         updated_at = excluded.updated_at RETURNING ",
    )
    .push(LIVE)
    .bind((
        tenant_uuid,
        serde_json::to_string(config).map_err(Error::internal)?,
        sealed.client_secret,
        sealed.registration_secret,
        now,
    ))
    .one(tx)
    .await
}

pub async fn delete(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM supplier_oauth_configs WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}

pub async fn forget_changes(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM supplier_oauth_changes WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}

/// The state of the last change that the tenant requested.
pub async fn last_status(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
) -> Result<Option<ApprovalStatus>> {
    let status: Option<String> = sql("SELECT status FROM supplier_oauth_changes \
         WHERE tenant_uuid = $1 AND status <> 'SUPERSEDED' \
         ORDER BY supplier_oauth_change_id DESC LIMIT 1")
    .bind(tenant_uuid)
    .optional_scalar(conn)
    .await?;
    status
        .map(ApprovalStatus::try_from)
        .transpose()
        .map_err(Error::internal)
}

/// The tenant's change that waits, locked until the transaction ends.
pub async fn lock_pending(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<Option<Change>> {
    sql("SELECT ")
        .push(CHANGE)
        .push(" FROM supplier_oauth_changes WHERE tenant_uuid = $1 AND status = 'PENDING'")
        .for_update(tx)
        .bind(tenant_uuid)
        .optional(tx)
        .await
}

pub async fn insert_change(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    change_uuid: Uuid,
    config: &Config,
    sealed: Sealed,
    now: Timestamp,
) -> Result<Change> {
    sql(
        "INSERT INTO supplier_oauth_changes (change_uuid, tenant_uuid, config, \
         sealed_client_secret, sealed_registration_secret, status, created_at) \
         VALUES ($1, $2, $3, $4, $5, 'PENDING', $6) RETURNING ",
    )
    .push(CHANGE)
    .bind((
        change_uuid,
        tenant_uuid,
        serde_json::to_string(config).map_err(Error::internal)?,
        sealed.client_secret,
        sealed.registration_secret,
        now,
    ))
    .one(tx)
    .await
}

/// Deletes the tenant's decided changes but for the last `keep`.
pub async fn forget_decided(tx: &mut Tx, tenant_uuid: TenantUuid, keep: i64) -> Result<()> {
    sql(
        "DELETE FROM supplier_oauth_changes WHERE tenant_uuid = $1 AND status <> 'PENDING' \
         AND supplier_oauth_change_id <= (SELECT supplier_oauth_change_id \
         FROM supplier_oauth_changes WHERE tenant_uuid = $1 \
         ORDER BY supplier_oauth_change_id DESC LIMIT 1 OFFSET $2)",
    )
    .bind((tenant_uuid, keep))
    .run(tx)
    .await
}

/// The tenant of a change; of one whose tenant is deleted too.
pub async fn tenant_of_change(conn: &mut Conn, id: i64) -> Result<Option<TenantUuid>> {
    sql("SELECT tenant_uuid FROM supplier_oauth_changes WHERE supplier_oauth_change_id = $1")
        .bind(id)
        .optional_scalar(conn)
        .await
}

pub async fn find_change(tx: &mut Tx, id: i64) -> Result<Option<Change>> {
    sql("SELECT ")
        .push(CHANGE)
        .push(" FROM supplier_oauth_changes WHERE supplier_oauth_change_id = $1")
        .for_update(tx)
        .bind(id)
        .optional(tx)
        .await
}

/// Ends a change, and forgets its secrets.
pub async fn decide(tx: &mut Tx, id: i64, status: ApprovalStatus, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE supplier_oauth_changes SET status = $2, decided_at = $3, \
         sealed_client_secret = NULL, sealed_registration_secret = NULL \
         WHERE supplier_oauth_change_id = $1",
    )
    .bind((id, status.name(), now))
    .run(tx)
    .await
}

/// One page of all tenants, oldest first, and the total number.
pub async fn pending(conn: &mut Conn, slice: Slice) -> Result<(Vec<Change>, i64)> {
    sql("FROM supplier_oauth_changes WHERE status = 'PENDING'")
        .page(conn, CHANGE, &["supplier_oauth_change_id"], slice)
        .await
}
