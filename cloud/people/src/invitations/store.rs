//! SQL of invitations.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_identity::authz::permission::Role;
use hub_protocol::{TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::{Sent, Status};

/// The content of an invitation's mail.
pub struct Offer<'a> {
    pub tenant_name: &'a str,
    pub email: &'a str,
    pub role: Role,
}

/// The values of a new invitation.
pub struct NewInvitation<'a> {
    pub email: &'a str,
    pub role: Role,
    pub invited_by_user_uuid: UserUuid,
    pub sent: Sent,
    pub now: Timestamp,
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Invitation {
    pub invitation_id: i64,
    pub tenant_uuid: TenantUuid,
    pub email: String,
    #[sqlx(try_from = "String")]
    pub role: Role,
    pub mail_uuid: Uuid,
    pub invited_by_user_uuid: UserUuid,
    pub created_at: Timestamp,
    pub sent_at: Timestamp,
    pub expires_at: Timestamp,
    pub accepted_at: Option<Timestamp>,
    pub accepted_by_user_uuid: Option<UserUuid>,
    pub revoked_at: Option<Timestamp>,
}

impl Invitation {
    pub fn status(&self, now: Timestamp) -> Status {
        if self.accepted_at.is_some() {
            Status::Accepted
        } else if self.revoked_at.is_some() {
            Status::Revoked
        } else if self.expires_at <= now {
            Status::Expired
        } else {
            Status::Pending
        }
    }
}

const COLUMNS: &str = "invitation_id, tenant_uuid, email, role, mail_uuid, invited_by_user_uuid, \
    created_at, sent_at, expires_at, accepted_at, accepted_by_user_uuid, revoked_at";
const OPEN: &str = "accepted_at IS NULL AND revoked_at IS NULL";

pub async fn insert(tx: &mut Tx, scope: &Scope, new: NewInvitation<'_>) -> Result<Invitation> {
    let NewInvitation {
        email,
        role,
        invited_by_user_uuid,
        sent,
        now,
    } = new;
    sql(
        "INSERT INTO invitations (tenant_uuid, email, role, token_hash, mail_uuid, \
         invited_by_user_uuid, created_at, sent_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8) RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        scope.tenant_uuid(),
        email,
        role.name(),
        sent.token_hash,
        sent.mail_uuid,
        invited_by_user_uuid,
        now,
        sent.expires_at,
    ))
    .one(tx)
    .await
}

pub async fn find(
    conn: &mut Conn,
    scope: &Scope,
    invitation_id: i64,
) -> Result<Option<Invitation>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM invitations WHERE invitation_id = $1 AND tenant_uuid = $2")
        .bind((invitation_id, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// The invitation of any tenant: the token identifies it.
pub async fn find_by_token(conn: &mut Conn, hash: &[u8]) -> Result<Option<Invitation>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM invitations WHERE token_hash = $1")
        .bind(hash)
        .optional(conn)
        .await
}

/// The invitation of this e-mail that is neither accepted nor revoked.
pub async fn open(conn: &mut Conn, scope: &Scope, email: &str) -> Result<Option<Invitation>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM invitations WHERE tenant_uuid = $1 AND email = $2 AND ")
        .push(OPEN)
        .bind((scope.tenant_uuid(), email))
        .optional(conn)
        .await
}

/// The invitations that are neither accepted nor revoked, the last sent first.
pub async fn list_open(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<Invitation>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM invitations WHERE tenant_uuid = $1 AND ")
        .push(OPEN)
        .push(" ORDER BY sent_at DESC, invitation_id DESC LIMIT $2")
        .bind((scope.tenant_uuid(), limit))
        .all(conn)
        .await
}

pub async fn count_pending(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<i64> {
    sql("SELECT COUNT(*) FROM invitations WHERE tenant_uuid = $1 AND ")
        .push(OPEN)
        .push(" AND expires_at > $2")
        .bind((scope.tenant_uuid(), now))
        .scalar(conn)
        .await
}

pub async fn renew(
    tx: &mut Tx,
    scope: &Scope,
    invitation_id: i64,
    sent: Sent,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE invitations SET token_hash = $3, mail_uuid = $4, sent_at = $5, expires_at = $6 \
         WHERE invitation_id = $1 AND tenant_uuid = $2",
    )
    .bind((
        invitation_id,
        scope.tenant_uuid(),
        sent.token_hash,
        sent.mail_uuid,
        now,
        sent.expires_at,
    ))
    .run(tx)
    .await
}

pub async fn revoke(tx: &mut Tx, scope: &Scope, invitation_id: i64, now: Timestamp) -> Result<()> {
    sql("UPDATE invitations SET revoked_at = $3 WHERE invitation_id = $1 AND tenant_uuid = $2")
        .bind((invitation_id, scope.tenant_uuid(), now))
        .run(tx)
        .await
}

/// Revokes all open invitations and returns the uuids of their mails.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<Vec<Uuid>> {
    sql("UPDATE invitations SET revoked_at = $2 WHERE tenant_uuid = $1 AND ")
        .push(OPEN)
        .push(" RETURNING mail_uuid")
        .bind((scope.tenant_uuid(), now))
        .scalars(tx)
        .await
}

pub async fn accept(
    tx: &mut Tx,
    scope: &Scope,
    invitation_id: i64,
    by: UserUuid,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE invitations SET accepted_at = $3, accepted_by_user_uuid = $4 \
         WHERE invitation_id = $1 AND tenant_uuid = $2",
    )
    .bind((invitation_id, scope.tenant_uuid(), now, by))
    .run(tx)
    .await
}

/// Removes a deleted person from invitations: deletes those to the person, and their name as the
/// sender of others.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid, email: &str) -> Result<()> {
    sql("DELETE FROM invitations WHERE email = $2 AND $2 <> '' OR accepted_by_user_uuid = $1")
        .bind((user_uuid, email))
        .run(tx)
        .await?;
    sql("UPDATE invitations SET invited_by_user_uuid = $2 WHERE invited_by_user_uuid = $1")
        .bind((user_uuid, Uuid::nil()))
        .run(tx)
        .await
}
