//! SQL of transfer requests.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::{Status, Target, Transfer};

/// Requests of tenants that are not deleted, as the user $1 sees them. The requester's e-mail is
/// for the requester, the person who is asked, and administrators of the two tenants.
const TRANSFERS: &str = "SELECT r.request_uuid, r.tenant_uuid, \
    t.name AS tenant_name, r.requested_by_user_uuid, r.requested_by_persona_uuid, \
    CASE WHEN r.requested_by_user_uuid = $1 OR r.target_user_uuid = $1 \
    OR own.role IN ('ADMIN', 'OWNER') OR unit.role IN ('ADMIN', 'OWNER') \
    THEN NULLIF(u.email, '') END AS requested_by_email, r.target_persona_uuid, \
    r.target_user_uuid, r.target_tenant_uuid, r.message, r.status, r.created_at, r.expires_at, \
    r.settled_at FROM transfer_requests r JOIN tenants t ON t.tenant_uuid = r.tenant_uuid \
    AND t.deleted_at IS NULL LEFT JOIN users u ON u.user_uuid = r.requested_by_user_uuid \
    LEFT JOIN personas own ON own.user_uuid = $1 AND own.tenant_uuid = r.tenant_uuid \
    LEFT JOIN personas unit ON unit.user_uuid = $1 AND unit.tenant_uuid = r.target_tenant_uuid ";

pub struct NewTransfer<'a> {
    pub request_uuid: Uuid,
    pub requested_by_user_uuid: UserUuid,
    pub requested_by_persona_uuid: PersonaUuid,
    pub target: Target,
    /// The user of the persona.
    pub target_user_uuid: Option<UserUuid>,
    pub message: Option<&'a str>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

pub async fn insert(tx: &mut Tx, scope: &Scope, new: NewTransfer<'_>) -> Result<()> {
    let (persona_uuid, unit) = match new.target {
        Target::Persona(persona_uuid) => (Some(persona_uuid), None),
        Target::Unit(unit) => (None, Some(unit)),
    };
    sql(
        "INSERT INTO transfer_requests (request_uuid, tenant_uuid, requested_by_user_uuid, \
         requested_by_persona_uuid, target_persona_uuid, target_user_uuid, target_tenant_uuid, \
         message, status, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'PENDING', $9, $10)",
    )
    .bind((
        new.request_uuid,
        scope.tenant_uuid(),
        new.requested_by_user_uuid,
        new.requested_by_persona_uuid,
        persona_uuid,
        new.target_user_uuid,
        unit,
        new.message,
        new.created_at,
        new.expires_at,
    ))
    .run(tx)
    .await
}

/// The request of any tenant: the recipient is not a member.
pub async fn find(
    conn: &mut Conn,
    reader: UserUuid,
    request_uuid: Uuid,
) -> Result<Option<Transfer>> {
    sql(TRANSFERS)
        .push("WHERE r.request_uuid = $2")
        .bind((reader, request_uuid))
        .optional(conn)
        .await
}

/// The request with status PENDING, expired or not.
pub async fn pending(conn: &mut Conn, reader: UserUuid, scope: &Scope) -> Result<Option<Transfer>> {
    sql(TRANSFERS)
        .push("WHERE r.tenant_uuid = $2 AND r.status = 'PENDING'")
        .bind((reader, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// The pending requests to the user, or to a tenant the user is a member of.
pub async fn incoming(
    conn: &mut Conn,
    user_uuid: UserUuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Transfer>> {
    const TO_USER: &str = "SELECT request_uuid \
        FROM transfer_requests WHERE target_user_uuid = $1 AND status = 'PENDING' \
        UNION SELECT q.request_uuid FROM personas p \
        JOIN tenants o ON o.tenant_uuid = p.tenant_uuid AND o.deleted_at IS NULL \
        JOIN transfer_requests q ON q.target_tenant_uuid = p.tenant_uuid AND q.status = 'PENDING' \
        WHERE p.user_uuid = $1 AND p.role IS NOT NULL";
    list(conn, TO_USER, user_uuid, now, limit).await
}

/// The pending requests by the user, or of a tenant the user owns.
pub async fn outgoing(
    conn: &mut Conn,
    user_uuid: UserUuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Transfer>> {
    const BY_USER: &str = "SELECT request_uuid \
        FROM transfer_requests WHERE requested_by_user_uuid = $1 AND status = 'PENDING' \
        UNION SELECT q.request_uuid FROM personas p \
        JOIN transfer_requests q ON q.tenant_uuid = p.tenant_uuid AND q.status = 'PENDING' \
        WHERE p.user_uuid = $1 AND p.role = 'OWNER'";
    list(conn, BY_USER, user_uuid, now, limit).await
}

/// The requests that have not expired among those that `uuids` selects for the user, newest first.
async fn list(
    conn: &mut Conn,
    uuids: &'static str,
    user_uuid: UserUuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Transfer>> {
    sql(TRANSFERS)
        .push("WHERE r.expires_at > $2 AND r.request_uuid IN (")
        .push(uuids)
        .push(") ORDER BY r.created_at DESC, r.request_uuid DESC LIMIT $3")
        .bind((user_uuid, now, limit))
        .all(conn)
        .await
}

/// Finishes a pending request; returns false when it is not pending.
pub async fn resolve(
    tx: &mut Tx,
    request_uuid: Uuid,
    status: Status,
    at: Timestamp,
    by: Option<UserUuid>,
) -> Result<bool> {
    let resolved = sql(
        "UPDATE transfer_requests SET status = $2, settled_at = $3, \
         settled_by_user_uuid = $4 WHERE request_uuid = $1 AND status = 'PENDING'",
    )
    .bind((request_uuid, status.name(), at, by))
    .execute(tx)
    .await?;
    Ok(resolved > 0)
}

/// Cancels the pending requests of a tenant that is being deleted, and returns their number.
/// Requests directed to it are for their own tenants to cancel.
pub async fn cancel_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    sql("UPDATE transfer_requests SET status = $2, settled_at = $3 \
         WHERE tenant_uuid = $1 AND status = 'PENDING'")
    .bind((scope.tenant_uuid(), Status::Cancelled.name(), now))
    .execute(tx)
    .await
}

/// Removes a deleted person from transfers: deletes the requests by the person and to them, and
/// their name as the responder of others.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM transfer_requests WHERE requested_by_user_uuid = $1 OR target_user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await?;
    sql("UPDATE transfer_requests SET settled_by_user_uuid = NULL WHERE settled_by_user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await
}
