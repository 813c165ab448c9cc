//! SQL of the device catalog, a file for each table.

pub mod compiled;
pub mod identifiers;
pub mod models;
pub mod protocols;
pub mod versions;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::TenantUuid;
use uuid::Uuid;

/// The tables of a model's parts.
#[derive(Clone, Copy)]
pub enum Table {
    Identifiers,
    Protocols,
    Versions,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Identifiers => "device_identifiers",
            Self::Protocols => "device_protocols",
            Self::Versions => "device_versions",
        }
    }
}

/// Locks the tenant's catalog until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope) -> Result<()> {
    sql(
        "INSERT INTO catalog_revisions (tenant_uuid, revision) VALUES ($1, 0) \
         ON CONFLICT (tenant_uuid) DO UPDATE SET revision = catalog_revisions.revision",
    )
    .bind(scope.tenant_uuid())
    .run(tx)
    .await
}

/// Counts a change of devices, and returns the new revision. Locks the tenant's catalog until the
/// transaction ends.
pub async fn raise(tx: &mut Tx, scope: &Scope) -> Result<i64> {
    sql(
        "INSERT INTO catalog_revisions (tenant_uuid, revision) VALUES ($1, 1) \
         ON CONFLICT (tenant_uuid) DO UPDATE SET revision = catalog_revisions.revision + 1 \
         RETURNING revision",
    )
    .bind(scope.tenant_uuid())
    .scalar(tx)
    .await
}

/// As [`raise`], for a change after which the catalog has to be read as a whole.
pub async fn raise_models(tx: &mut Tx, scope: &Scope) -> Result<i64> {
    sql(
        "INSERT INTO catalog_revisions (tenant_uuid, revision, models_revision) VALUES ($1, 1, 1) \
         ON CONFLICT (tenant_uuid) DO UPDATE SET revision = catalog_revisions.revision + 1, \
         models_revision = catalog_revisions.revision + 1 RETURNING revision",
    )
    .bind(scope.tenant_uuid())
    .scalar(tx)
    .await
}

/// The revision of the tenant's catalog, and the one as of which it has to be read as a whole.
pub async fn revisions(conn: &mut Conn, scope: &Scope) -> Result<(i64, i64)> {
    let row = sql("SELECT revision, models_revision FROM catalog_revisions WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .optional(conn)
        .await?;
    Ok(row.unwrap_or_default())
}

/// As [`revisions`], for the given tenants that have a catalog.
pub async fn revisions_of(
    conn: &mut Conn,
    tenants: Vec<TenantUuid>,
) -> Result<Vec<(TenantUuid, i64, i64)>> {
    Bulk {
        head: "WITH given (tenant_uuid) AS (",
        columns: vec![Column::Uuid(
            tenants
                .into_iter()
                .map(|tenant_uuid| tenant_uuid.0)
                .collect(),
        )],
        tail: ") SELECT r.tenant_uuid, r.revision, r.models_revision \
               FROM given JOIN catalog_revisions r ON r.tenant_uuid = given.tenant_uuid",
    }
    .returning(conn)
    .await
}

/// The number of the model's rows in the table, and of the tenant's.
pub async fn counts(
    conn: &mut Conn,
    scope: &Scope,
    table: Table,
    device_uuid: Uuid,
) -> Result<(i64, i64)> {
    sql("SELECT (SELECT COUNT(*) FROM ")
        .push(table.name())
        .push(" WHERE device_uuid = $1 AND tenant_uuid = $2), (SELECT COUNT(*) FROM ")
        .push(table.name())
        .push(" WHERE tenant_uuid = $2)")
        .bind((device_uuid, scope.tenant_uuid()))
        .one(conn)
        .await
}
