//! SQL of bundles, and of what they have brought to hubs.

pub mod catalog;
pub mod hubs;
pub mod parts;

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::Status;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct BundleRow {
    pub bundle_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub name: String,
    pub description: Option<String>,
    #[sqlx(try_from = "String")]
    pub status: Status,
    pub auto_apply: bool,
    pub app_count: i64,
    pub device_count: i64,
    pub pipeline_count: i64,
    pub created_at: Timestamp,
    pub published_at: Option<Timestamp>,
    pub archived_at: Option<Timestamp>,
}

pub const COLUMNS: &str = "b.bundle_uuid, b.tenant_uuid, b.name, b.description, b.status, \
    b.auto_apply, b.created_at, b.published_at, b.archived_at, \
    (SELECT COUNT(*) FROM bundle_apps a WHERE a.bundle_uuid = b.bundle_uuid) AS app_count, \
    (SELECT COUNT(*) FROM bundle_devices d WHERE d.bundle_uuid = b.bundle_uuid) AS device_count, \
    (SELECT COUNT(*) FROM bundle_pipelines p WHERE p.bundle_uuid = b.bundle_uuid) \
    AS pipeline_count";

/// The tenant's bundles, or those with a status, newest first, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    status: Option<Status>,
    slice: Slice,
) -> Result<(Vec<BundleRow>, i64)> {
    let mut found =
        sql("FROM supplier_bundles b WHERE b.tenant_uuid = $1").bind(scope.tenant_uuid());
    if let Some(status) = status {
        found = found.push(" AND b.status = ").push_bind(status.name());
    }
    found
        .page(
            conn,
            COLUMNS,
            &["b.created_at DESC, b.bundle_uuid DESC"],
            slice,
        )
        .await
}

fn one(scope: &Scope, bundle_uuid: Uuid) -> Sql {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM supplier_bundles b WHERE b.bundle_uuid = $1 AND b.tenant_uuid = $2")
        .bind((bundle_uuid, scope.tenant_uuid()))
}

pub async fn get(conn: &mut Conn, scope: &Scope, bundle_uuid: Uuid) -> Result<Option<BundleRow>> {
    one(scope, bundle_uuid).optional(conn).await
}

pub async fn lock(tx: &mut Tx, scope: &Scope, bundle_uuid: Uuid) -> Result<Option<BundleRow>> {
    one(scope, bundle_uuid).for_update(tx).optional(tx).await
}

/// The bundles that are applied to hubs whose code names none, in the order of their publication.
pub async fn auto_applied(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<BundleRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM supplier_bundles b WHERE b.tenant_uuid = $1 AND b.status = 'PUBLISHED' \
             AND b.auto_apply ORDER BY b.published_at, b.bundle_uuid LIMIT $2",
        )
        .bind((scope.tenant_uuid(), limit))
        .all(conn)
        .await
}

/// The number of all bundles of the tenant, and of those that are not archived.
pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<(i64, i64)> {
    sql(
        "SELECT COUNT(*), COUNT(CASE WHEN status <> 'ARCHIVED' THEN 1 END) \
         FROM supplier_bundles WHERE tenant_uuid = $1",
    )
    .bind(scope.tenant_uuid())
    .one(conn)
    .await
}

pub async fn insert(tx: &mut Tx, row: &BundleRow) -> Result<()> {
    sql(
        "INSERT INTO supplier_bundles (bundle_uuid, tenant_uuid, name, description, status, \
         auto_apply, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind((
        row.bundle_uuid,
        row.tenant_uuid,
        row.name.as_str(),
        row.description.as_deref(),
        row.status.name(),
        row.auto_apply,
        row.created_at,
    ))
    .run(tx)
    .await
}

pub async fn update(tx: &mut Tx, row: &BundleRow, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE supplier_bundles SET name = $2, description = $3, status = $4, auto_apply = $5, \
         published_at = $6, archived_at = $7, updated_at = $8 WHERE bundle_uuid = $1",
    )
    .bind((
        row.bundle_uuid,
        row.name.as_str(),
        row.description.as_deref(),
        row.status.name(),
        row.auto_apply,
        row.published_at,
        row.archived_at,
        now,
    ))
    .run(tx)
    .await
}

pub async fn delete(tx: &mut Tx, bundle_uuid: Uuid) -> Result<()> {
    sql("DELETE FROM supplier_bundles WHERE bundle_uuid = $1")
        .bind(bundle_uuid)
        .run(tx)
        .await
}

/// Archives the bundles of a tenant that is deleted, so that they are offered no longer, and
/// returns how many were in use.
pub async fn archive_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    sql(
        "UPDATE supplier_bundles SET status = 'ARCHIVED', archived_at = $2, updated_at = $2 \
         WHERE tenant_uuid = $1 AND status <> 'ARCHIVED'",
    )
    .bind((scope.tenant_uuid(), now))
    .execute(tx)
    .await
}
