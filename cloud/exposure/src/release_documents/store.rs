//! SQL of the documents of releases.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_fleet::releases::contents::ReleaseDocument;
use hub_protocol::{ReleaseUuid, TenantUuid};

/// Stores a document in place of the one before.
pub async fn put(
    tx: &mut Tx,
    release_uuid: ReleaseUuid,
    document: ReleaseDocument,
    tenant_uuid: Option<TenantUuid>,
    packed: &[u8],
) -> Result<()> {
    sql(
        "INSERT INTO release_documents (release_uuid, document, tenant_uuid, content) \
         VALUES ($1, $2, $3, $4) \
         ON CONFLICT (release_uuid, document) DO UPDATE SET content = excluded.content",
    )
    .bind((release_uuid, document.name(), tenant_uuid, packed))
    .run(tx)
    .await
}

/// A document as it is stored.
pub async fn get(
    conn: &mut Conn,
    release_uuid: ReleaseUuid,
    document: ReleaseDocument,
) -> Result<Option<Vec<u8>>> {
    sql("SELECT content FROM release_documents WHERE release_uuid = $1 AND document = $2")
        .bind((release_uuid, document.name()))
        .optional_scalar(conn)
        .await
}

/// Tenants whose hubs have or had a release of the agent, and whose lists it is not among, up to
/// `limit`. None before its bill of materials is there.
pub async fn without_list(
    conn: &mut Conn,
    release_uuid: ReleaseUuid,
    limit: i64,
) -> Result<Vec<TenantUuid>> {
    sql("SELECT DISTINCT p.tenant_uuid FROM release_documents d \
         JOIN hub_app_periods p ON p.release_uuid = d.release_uuid \
         WHERE d.release_uuid = $1 AND d.tenant_uuid IS NULL AND d.document = 'sbom' \
         AND NOT EXISTS (SELECT 1 FROM release_software s WHERE s.tenant_uuid = p.tenant_uuid \
         AND s.release_uuid = p.release_uuid) LIMIT $2")
    .bind((release_uuid, limit))
    .scalars(conn)
    .await
}

/// Deletes the documents of a tenant that is being deleted.
pub async fn forget_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM release_documents WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}
