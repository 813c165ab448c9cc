//! SQL of external endpoints.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use uuid::Uuid;

use super::VerifyMethod;

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct EndpointRow {
    pub external_endpoint_uuid: Uuid,
    pub name: String,
    pub base_url: String,
    pub domain: String,
    #[sqlx(try_from = "String")]
    pub verify_method: VerifyMethod,
    pub verify_token: String,
    pub domain_verified: bool,
    pub verify_error: Option<String>,
    pub verified_at: Option<Timestamp>,
    pub auth_type: Option<String>,
    pub sealed_auth: Option<Vec<u8>>,
    pub auth_updated_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "external_endpoint_uuid, name, base_url, domain, verify_method, verify_token, \
                       domain_verified, verify_error, verified_at, auth_type, sealed_auth, \
                       auth_updated_at, created_at, updated_at";

/// The tenant's endpoints, newest first.
pub async fn list(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<EndpointRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM external_endpoints WHERE tenant_uuid = $1 \
             ORDER BY created_at DESC, external_endpoint_uuid LIMIT $2",
        )
        .bind((scope.tenant_uuid(), limit))
        .all(conn)
        .await
}

pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("SELECT COUNT(*) FROM external_endpoints WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .scalar(conn)
        .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Option<EndpointRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM external_endpoints WHERE external_endpoint_uuid = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .optional(conn)
        .await
}

pub async fn lock(tx: &mut Tx, scope: &Scope, id: Uuid) -> Result<Option<EndpointRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM external_endpoints WHERE external_endpoint_uuid = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .for_update(tx)
        .optional(tx)
        .await
}

pub async fn insert(tx: &mut Tx, scope: &Scope, row: &EndpointRow) -> Result<()> {
    sql(
        "INSERT INTO external_endpoints (tenant_uuid, external_endpoint_uuid, name, base_url, \
         domain, verify_method, verify_token, domain_verified, verify_error, verified_at, \
         auth_type, sealed_auth, auth_updated_at, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    )
    .bind((
        scope.tenant_uuid(),
        row.external_endpoint_uuid,
        row.name.as_str(),
        row.base_url.as_str(),
        row.domain.as_str(),
        row.verify_method.name(),
        row.verify_token.as_str(),
        row.domain_verified,
        row.verify_error.as_deref(),
        row.verified_at,
        row.auth_type.as_deref(),
        row.sealed_auth.clone(),
        row.auth_updated_at,
        row.created_at,
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &EndpointRow) -> Result<()> {
    sql(
        "UPDATE external_endpoints SET name = $3, base_url = $4, domain = $5, verify_method = $6, \
         verify_token = $7, domain_verified = $8, verify_error = $9, verified_at = $10, \
         auth_type = $11, sealed_auth = $12, auth_updated_at = $13, updated_at = $14 \
         WHERE external_endpoint_uuid = $2 AND tenant_uuid = $1",
    )
    .bind((
        scope.tenant_uuid(),
        row.external_endpoint_uuid,
        row.name.as_str(),
        row.base_url.as_str(),
        row.domain.as_str(),
        row.verify_method.name(),
        row.verify_token.as_str(),
        row.domain_verified,
        row.verify_error.as_deref(),
        row.verified_at,
        row.auth_type.as_deref(),
        row.sealed_auth.clone(),
        row.auth_updated_at,
        row.updated_at,
    ))
    .run(tx)
    .await
}

/// Deletes the credentials of all endpoints of a tenant that is deleted, and returns how many had
/// some. The caller writes the audit entry.
pub async fn forget_auth(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    sql(
        "UPDATE external_endpoints SET sealed_auth = NULL, auth_type = NULL \
         WHERE tenant_uuid = $1 AND sealed_auth IS NOT NULL",
    )
    .bind(scope.tenant_uuid())
    .execute(tx)
    .await
}

pub async fn delete(tx: &mut Tx, scope: &Scope, id: Uuid) -> Result<()> {
    sql("DELETE FROM external_endpoints WHERE external_endpoint_uuid = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .run(tx)
        .await
}
