//! SQL of setup delegations.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp, UserUuid};

use super::{Delegation, Person};

const COLUMNS: &str = "setup_delegation_id, hub_uuid, user_uuid, email, expires_at, created_at";

impl Person {
    /// The two columns that identify the person; one of them is None.
    fn columns(&self) -> (Option<UserUuid>, Option<&str>) {
        match self {
            Self::User(user_uuid) => (Some(*user_uuid), None),
            Self::Email(email) => (None, Some(email)),
        }
    }
}

/// The delegations that have not expired, newest first.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Delegation>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM setup_delegations \
         WHERE hub_uuid = $1 AND tenant_uuid = $2 AND (expires_at IS NULL OR expires_at > $3) \
         ORDER BY setup_delegation_id DESC LIMIT $4",
        )
        .bind((hub_uuid, scope.tenant_uuid(), now, limit))
        .all(conn)
        .await
}

pub async fn forget_expired(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<()> {
    sql("DELETE FROM setup_delegations \
         WHERE hub_uuid = $1 AND tenant_uuid = $2 AND expires_at <= $3")
    .bind((hub_uuid, scope.tenant_uuid(), now))
    .run(tx)
    .await
}

pub async fn count(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<i64> {
    sql("SELECT COUNT(*) FROM setup_delegations WHERE hub_uuid = $1 AND tenant_uuid = $2")
        .bind((hub_uuid, scope.tenant_uuid()))
        .scalar(conn)
        .await
}

pub async fn find_by_person(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    person: &Person,
) -> Result<Option<Delegation>> {
    let statement = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM setup_delegations WHERE hub_uuid = $1 AND tenant_uuid = $2 AND ")
        .bind((hub_uuid, scope.tenant_uuid()));
    match person {
        Person::User(user_uuid) => statement.push("user_uuid = ").push_bind(*user_uuid),
        Person::Email(email) => statement.push("email = ").push_bind(email.as_str()),
    }
    .optional(conn)
    .await
}

pub async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    person: &Person,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Delegation> {
    let (user_uuid, email) = person.columns();
    sql(
        "INSERT INTO setup_delegations (hub_uuid, tenant_uuid, user_uuid, email, expires_at, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        hub_uuid,
        scope.tenant_uuid(),
        user_uuid,
        email,
        expires_at,
        now,
    ))
    .one(tx)
    .await
}

pub async fn set_end(
    tx: &mut Tx,
    scope: &Scope,
    id: i64,
    expires_at: Option<Timestamp>,
) -> Result<Delegation> {
    sql("UPDATE setup_delegations SET expires_at = $3 \
         WHERE setup_delegation_id = $1 AND tenant_uuid = $2 RETURNING ")
    .push(COLUMNS)
    .bind((id, scope.tenant_uuid(), expires_at))
    .one(tx)
    .await
}

/// Returns the deleted row.
pub async fn delete(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    id: i64,
) -> Result<Option<Delegation>> {
    sql("DELETE FROM setup_delegations \
         WHERE setup_delegation_id = $1 AND hub_uuid = $2 AND tenant_uuid = $3 RETURNING ")
    .push(COLUMNS)
    .bind((id, hub_uuid, scope.tenant_uuid()))
    .optional(tx)
    .await
}

/// Ends all delegations of a hub that is released, and returns their number. The caller has locked
/// the hub and writes the audit entry.
pub async fn delete_all(tx: &mut Tx, hub_uuid: HubUuid) -> Result<u64> {
    sql("DELETE FROM setup_delegations WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .execute(tx)
        .await
}

/// As [`delete_all`], for all hubs of the tenant.
pub async fn delete_all_of_tenant(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    sql("DELETE FROM setup_delegations WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .execute(tx)
        .await
}

pub async fn delete_of_person(tx: &mut Tx, user_uuid: UserUuid, email: &str) -> Result<()> {
    sql("DELETE FROM setup_delegations WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await?;
    sql("DELETE FROM setup_delegations WHERE email = $1")
        .bind(email)
        .run(tx)
        .await
}
