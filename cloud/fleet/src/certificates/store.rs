//! SQL of authorities and of the certificates they issued.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use uuid::Uuid;

/// An authority as it is stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Authority {
    pub authority_uuid: Uuid,
    /// The root that signed it; None for a root.
    pub root_uuid: Option<Uuid>,
    /// The certificate as PEM.
    pub certificate: String,
    pub sealed_private_key: Vec<u8>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// The beginning of its use, later than its publication, so that every replica knows it before.
    pub signs_from: Timestamp,
}

/// A new authority is created every few years. The limit keeps the service fast if somebody creates
/// many more.
const MAX_AUTHORITIES: i64 = 1000;

/// All authorities, newest first.
pub async fn authorities(conn: &mut Conn) -> Result<Vec<Authority>> {
    sql(
        "SELECT authority_uuid, root_uuid, certificate, sealed_private_key, not_before, \
         not_after, signs_from FROM certificate_authorities \
         ORDER BY signs_from DESC, authority_uuid DESC LIMIT $1",
    )
    .bind(MAX_AUTHORITIES)
    .all(conn)
    .await
}

pub async fn insert_authority(tx: &mut Tx, authority: &Authority, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO certificate_authorities (authority_uuid, root_uuid, certificate, \
         sealed_private_key, not_before, not_after, signs_from, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind((
        authority.authority_uuid,
        authority.root_uuid,
        authority.certificate.as_str(),
        authority.sealed_private_key.as_slice(),
        authority.not_before,
        authority.not_after,
        authority.signs_from,
        now,
    ))
    .run(tx)
    .await
}

/// The number of certificates that have not expired, by authority.
pub async fn issued_by(conn: &mut Conn, now: Timestamp) -> Result<Vec<(Uuid, i64)>> {
    sql("SELECT authority_uuid, COUNT(*) FROM hub_certificates \
         WHERE not_after > $1 GROUP BY authority_uuid")
    .bind(now)
    .all(conn)
    .await
}

/// The roots with a certificate below them that expires after `since`.
pub async fn roots_in_use(conn: &mut Conn, since: Timestamp) -> Result<Vec<Uuid>> {
    sql(
        "SELECT DISTINCT issuers.root_uuid FROM certificate_authorities issuers \
         WHERE issuers.root_uuid IS NOT NULL AND EXISTS (SELECT 1 FROM hub_certificates issued \
         WHERE issued.authority_uuid = issuers.authority_uuid AND issued.not_after > $1)",
    )
    .bind(since)
    .scalars(conn)
    .await
}

/// Deletes issuing authorities that were replaced at `before` or earlier and have no certificates
/// on record, then roots with no authority below them. Their private keys are deleted with them.
pub async fn forget_authorities(tx: &mut Tx, before: Timestamp) -> Result<u64> {
    const REPLACED: &str = "signs_from < (SELECT MAX(newer.signs_from) \
        FROM certificate_authorities newer \
        WHERE newer.root_uuid IS NOT NULL AND newer.signs_from <= $1)";
    let issuers = sql("DELETE FROM certificate_authorities \
         WHERE root_uuid IS NOT NULL AND NOT EXISTS (SELECT 1 FROM hub_certificates issued \
         WHERE issued.authority_uuid = certificate_authorities.authority_uuid) AND ")
    .push(REPLACED)
    .bind(before)
    .execute(tx)
    .await?;
    let roots = sql("DELETE FROM certificate_authorities \
         WHERE root_uuid IS NULL AND NOT EXISTS (SELECT 1 FROM certificate_authorities below \
         WHERE below.root_uuid = certificate_authorities.authority_uuid) AND ")
    .push(REPLACED)
    .bind(before)
    .execute(tx)
    .await?;
    Ok(issuers + roots)
}

/// The record of a hub's certificate. The certificate itself is not stored.
pub struct Issued<'a> {
    pub serial_number: &'a str,
    pub authority_uuid: Uuid,
    pub hub_uuid: HubUuid,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

pub async fn insert_certificate(
    tx: &mut Tx,
    scope: &Scope,
    issued: &Issued<'_>,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO hub_certificates (serial_number, authority_uuid, hub_uuid, tenant_uuid, \
         not_before, not_after, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind((
        issued.serial_number,
        issued.authority_uuid,
        issued.hub_uuid,
        scope.tenant_uuid(),
        issued.not_before,
        issued.not_after,
        now,
    ))
    .run(tx)
    .await
}

/// When the hub's certificates since `since` were issued, oldest first, at most `limit`.
pub async fn issued_since(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Timestamp>> {
    sql(
        "SELECT created_at FROM hub_certificates WHERE hub_uuid = $1 AND created_at > $2 \
         ORDER BY created_at LIMIT $3",
    )
    .bind((hub_uuid, since, limit))
    .scalars(conn)
    .await
}

/// Revokes the hub's certificates and returns how many.
pub async fn revoke(tx: &mut Tx, hub_uuid: HubUuid, reason: &str, now: Timestamp) -> Result<u64> {
    sql(
        "UPDATE hub_certificates SET revoked_at = $2, revoked_because = $3 \
         WHERE hub_uuid = $1 AND revoked_at IS NULL",
    )
    .bind((hub_uuid, now, reason))
    .execute(tx)
    .await
}

/// Revokes the certificates of the tenant's hubs and returns how many.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope, reason: &str, now: Timestamp) -> Result<u64> {
    sql(
        "UPDATE hub_certificates SET revoked_at = $2, revoked_because = $3 \
         WHERE tenant_uuid = $1 AND revoked_at IS NULL",
    )
    .bind((scope.tenant_uuid(), now, reason))
    .execute(tx)
    .await
}

/// Deletes up to `limit` certificates that expired before `before` and returns how many.
pub async fn forget_certificates(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM hub_certificates WHERE serial_number IN \
         (SELECT serial_number FROM hub_certificates WHERE not_after < $1 LIMIT $2)")
    .bind((before, limit))
    .execute(tx)
    .await
}

/// The hash of the key of the first certificate since the last claim, until the hub got one for
/// another key; None without a certificate since then.
pub async fn first_key_hash(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Option<Vec<u8>>>> {
    sql("SELECT first_key_hash FROM hub_enrolments WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .optional_scalar(conn)
        .await
}

pub async fn insert_enrolment(tx: &mut Tx, hub_uuid: HubUuid, key_hash: &[u8]) -> Result<()> {
    sql("INSERT INTO hub_enrolments (hub_uuid, first_key_hash) VALUES ($1, $2)")
        .bind((hub_uuid, key_hash))
        .run(tx)
        .await
}

/// Ends repeated requests for the first certificate.
pub async fn forget_first_key(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql("UPDATE hub_enrolments SET first_key_hash = NULL WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}

pub async fn delete_enrolment(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql("DELETE FROM hub_enrolments WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}

/// The hubs of the tenant whose last certificate in force expires before `before`, and when.
pub async fn expiring(
    conn: &mut Conn,
    scope: &Scope,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<(HubUuid, Timestamp)>> {
    sql("SELECT hub_uuid, MAX(not_after) FROM hub_certificates \
         WHERE tenant_uuid = $1 AND revoked_at IS NULL GROUP BY hub_uuid \
         HAVING MAX(not_after) < $2 ORDER BY hub_uuid LIMIT $3")
    .bind((scope.tenant_uuid(), before, limit))
    .all(conn)
    .await
}
