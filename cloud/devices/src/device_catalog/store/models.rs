//! SQL of device models.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use uuid::Uuid;

use super::super::Stored;
use super::super::models::Metric;

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct ModelRow {
    pub device_uuid: Uuid,
    pub name: String,
    pub brand: Option<String>,
    pub model: Option<String>,
    pub category: Option<String>,
    pub description: Option<String>,
    #[sqlx(try_from = "String")]
    pub aliases: Stored<Vec<String>>,
    pub image_url: Option<String>,
    pub template: Option<String>,
    pub auto_register: bool,
    pub expected_interval_secs: Option<i64>,
    pub reference_power_dbm: Option<i64>,
    pub supported_until: Option<String>,
    #[sqlx(try_from = "String")]
    pub metrics: Stored<Vec<Metric>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub identifier_count: i64,
    pub instance_count: i64,
}

const COLUMNS: &str = "device_uuid, name, brand, model, category, description, aliases, \
    image_url, template, auto_register, expected_interval_secs, reference_power_dbm, metrics, \
    supported_until, created_at, updated_at, (SELECT COUNT(*) FROM device_identifiers \
    WHERE device_identifiers.device_uuid = device_models.device_uuid) AS identifier_count, \
    (SELECT COUNT(*) FROM device_instances \
    WHERE device_instances.device_uuid = device_models.device_uuid) AS instance_count";

pub async fn insert(tx: &mut Tx, scope: &Scope, row: &ModelRow) -> Result<()> {
    sql(
        "INSERT INTO device_models (device_uuid, tenant_uuid, name, brand, model, category, \
         description, aliases, image_url, template, auto_register, expected_interval_secs, \
         reference_power_dbm, metrics, created_at, updated_at, supported_until) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
    )
    .bind((
        row.device_uuid,
        scope.tenant_uuid(),
        row.name.as_str(),
        row.brand.as_deref(),
        row.model.as_deref(),
        row.category.as_deref(),
        row.description.as_deref(),
        row.aliases.text()?,
        row.image_url.as_deref(),
        row.template.as_deref(),
        row.auto_register,
        row.expected_interval_secs,
        row.reference_power_dbm,
        row.metrics.text()?,
        row.created_at,
        row.updated_at,
    ))
    .bind(row.supported_until.as_deref())
    .run(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &ModelRow) -> Result<()> {
    sql(
        "UPDATE device_models SET name = $3, brand = $4, model = $5, category = $6, \
         description = $7, aliases = $8, image_url = $9, auto_register = $10, \
         expected_interval_secs = $11, reference_power_dbm = $12, metrics = $13, \
         updated_at = $14, supported_until = $15 WHERE device_uuid = $1 AND tenant_uuid = $2",
    )
    .bind((
        row.device_uuid,
        scope.tenant_uuid(),
        row.name.as_str(),
        row.brand.as_deref(),
        row.model.as_deref(),
        row.category.as_deref(),
        row.description.as_deref(),
        row.aliases.text()?,
        row.image_url.as_deref(),
        row.auto_register,
        row.expected_interval_secs,
        row.reference_power_dbm,
        row.metrics.text()?,
        row.updated_at,
        row.supported_until.as_deref(),
    ))
    .run(tx)
    .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<Option<ModelRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_models WHERE device_uuid = $1 AND tenant_uuid = $2")
        .bind((device_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

pub async fn name(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<Option<String>> {
    sql("SELECT name FROM device_models WHERE device_uuid = $1 AND tenant_uuid = $2")
        .bind((device_uuid, scope.tenant_uuid()))
        .optional_scalar(conn)
        .await
}

/// The given models of the tenant. The list must not be empty.
pub async fn own(conn: &mut Conn, scope: &Scope, models: &[Uuid]) -> Result<Vec<Uuid>> {
    sql("SELECT device_uuid FROM device_models WHERE tenant_uuid = $1 AND device_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(models.iter().copied())
        .scalars(conn)
        .await
}

/// The number of the tenant's models.
pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    of_tenant(scope).count(conn).await
}

/// The models whose support ends between two days, the next first, up to `limit`.
pub async fn support_ending(
    conn: &mut Conn,
    scope: &Scope,
    from: &str,
    to: &str,
    limit: i64,
) -> Result<Vec<(Uuid, String, String)>> {
    sql(
        "SELECT device_uuid, name, supported_until FROM device_models \
         WHERE tenant_uuid = $1 AND supported_until >= $2 AND supported_until <= $3 \
         ORDER BY supported_until, device_uuid LIMIT $4",
    )
    .bind((scope.tenant_uuid(), from, to, limit))
    .all(conn)
    .await
}

/// One page, newest first, and the total number: of all, or of those that are supported no longer
/// than until before a day.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    support_ends_before: Option<&str>,
    slice: Slice,
) -> Result<(Vec<ModelRow>, i64)> {
    let list = of_tenant(scope);
    let list = match support_ends_before {
        Some(day) => list.push(" AND supported_until < ").push_bind(day),
        None => list,
    };
    list.page(conn, COLUMNS, &["created_at DESC, device_uuid DESC"], slice)
        .await
}

fn of_tenant(scope: &Scope) -> Sql {
    sql("FROM device_models WHERE tenant_uuid = $1").bind(scope.tenant_uuid())
}

/// Deletes the model and, by cascade, its identifiers and protocols. Its versions go first, since
/// they refer to protocols.
/// The name of a published bundle that has the model.
pub async fn published_bundle_with(conn: &mut Conn, device_uuid: Uuid) -> Result<Option<String>> {
    sql(
        "SELECT b.name FROM bundle_devices d JOIN supplier_bundles b \
         ON b.bundle_uuid = d.bundle_uuid WHERE d.device_uuid = $1 AND b.status = 'PUBLISHED' \
         ORDER BY b.published_at LIMIT 1",
    )
    .bind(device_uuid)
    .optional_scalar(conn)
    .await
}

pub async fn delete(tx: &mut Tx, scope: &Scope, device_uuid: Uuid) -> Result<()> {
    sql("DELETE FROM device_versions WHERE device_uuid = $1 AND tenant_uuid = $2")
        .bind((device_uuid, scope.tenant_uuid()))
        .run(tx)
        .await?;
    sql("DELETE FROM device_models WHERE device_uuid = $1 AND tenant_uuid = $2")
        .bind((device_uuid, scope.tenant_uuid()))
        .run(tx)
        .await
}
