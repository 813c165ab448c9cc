//! SQL of tenants and personas.

use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::{Member, Standing};
use crate::authz::Scope;
use crate::authz::permission::Role;
use crate::db::{Conn, Tx, sql};
use crate::error::{Error, Result};

pub async fn membership(conn: &mut Conn, user_uuid: UserUuid, tenant_uuid: TenantUuid) -> Result<Option<Member>> {
    sql("SELECT p.persona_uuid, p.role FROM personas p \
         JOIN tenants t ON t.tenant_uuid = p.tenant_uuid \
         WHERE p.user_uuid = $1 AND p.tenant_uuid = $2 AND p.role IS NOT NULL AND t.deleted_at IS NULL")
    .bind(user_uuid)
    .bind(tenant_uuid)
    .optional(conn)
    .await
}

#[derive(sqlx::FromRow)]
struct StandingRow {
    persona_uuid: Option<PersonaUuid>,
    role: Option<String>,
}

/// The caller found by `whose` (a table with a `user_uuid`, and the condition on `id`), and their place in the tenant. One query, since it stands
/// before every request.
pub async fn standing(
    conn: &mut Conn,
    whose: &str,
    id: Uuid,
    tenant_uuid: Option<TenantUuid>,
) -> Result<Option<Standing>> {
    let row: Option<StandingRow> = sql("SELECT p.persona_uuid, p.role FROM (SELECT l.user_uuid FROM ")
        .push(whose)
        .push(
            " = $1) u LEFT JOIN (personas p JOIN tenants t ON t.tenant_uuid = p.tenant_uuid AND t.deleted_at IS NULL) \
         ON p.user_uuid = u.user_uuid AND p.tenant_uuid = $2 AND p.role IS NOT NULL",
        )
        .bind(id)
        .bind(tenant_uuid)
        .optional(conn)
        .await?;
    let Some(StandingRow { persona_uuid, role }) = row else { return Ok(None) };
    let member = match (persona_uuid, role) {
        (Some(persona_uuid), Some(role)) => {
            Some(Member { persona_uuid, role: Role::try_from(role).map_err(Error::internal)? })
        }
        _ => None,
    };
    Ok(Some(Standing(member)))
}

/// A tenant, and what the user is in it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Membership {
    pub tenant_uuid: TenantUuid,
    pub name: String,
    pub created_at: Timestamp,
    pub persona_uuid: PersonaUuid,
    #[sqlx(try_from = "String")]
    pub role: Role,
}

const MEMBERSHIPS: &str = "FROM personas p JOIN tenants t ON t.tenant_uuid = p.tenant_uuid \
     WHERE p.user_uuid = $1 AND p.role IS NOT NULL AND t.deleted_at IS NULL";

/// The scope's tenant, and what the user is in it.
pub async fn tenant_of(conn: &mut Conn, scope: &Scope, user_uuid: UserUuid) -> Result<Option<Membership>> {
    sql("SELECT t.tenant_uuid, t.name, t.created_at, p.persona_uuid, p.role ")
        .push(MEMBERSHIPS)
        .push(" AND t.tenant_uuid = $2")
        .bind(user_uuid)
        .bind(scope.tenant_uuid())
        .optional(conn)
        .await
}

/// Newest tenants first.
pub async fn memberships(conn: &mut Conn, user_uuid: UserUuid, limit: i64) -> Result<Vec<Membership>> {
    sql("SELECT t.tenant_uuid, t.name, t.created_at, p.persona_uuid, p.role ")
        .push(MEMBERSHIPS)
        .push(" ORDER BY t.created_at DESC, t.tenant_uuid DESC LIMIT $2")
        .bind(user_uuid)
        .bind(limit)
        .all(conn)
        .await
}

pub async fn count_memberships(conn: &mut Conn, user_uuid: UserUuid) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) ").push(MEMBERSHIPS).bind(user_uuid).one(conn).await?;
    Ok(count)
}

/// Until the transaction ends, no other one counts this user's tenants. False when there is no such user.
pub async fn lock_user(conn: &mut Conn, user_uuid: UserUuid) -> Result<bool> {
    let lock = conn.dialect().for_update();
    let locked: Option<(UserUuid,)> =
        sql("SELECT user_uuid FROM users WHERE user_uuid = $1").push(lock).bind(user_uuid).optional(conn).await?;
    Ok(locked.is_some())
}

pub async fn insert_tenant(conn: &mut Conn, tenant_uuid: TenantUuid, name: &str, now: Timestamp) -> Result<()> {
    sql("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ($1, $2, $3)")
        .bind(tenant_uuid)
        .bind(name)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}

/// The user's persona in the tenant: made, or given the role when it is there already. Answers which persona that is.
pub async fn grant(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
    role: Role,
    now: Timestamp,
) -> Result<PersonaUuid> {
    let (persona_uuid,) = sql("INSERT INTO personas (persona_uuid, user_uuid, tenant_uuid, role, created_at) \
         VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (user_uuid, tenant_uuid) DO UPDATE SET role = excluded.role RETURNING persona_uuid")
    .bind(PersonaUuid::new())
    .bind(user_uuid)
    .bind(tenant_uuid)
    .bind(role.name())
    .bind(now)
    .one::<(PersonaUuid,)>(conn)
    .await?;
    Ok(persona_uuid)
}

/// Until the transaction ends, no other one changes the tenant or who belongs to it. Answers its name; nothing when it is deleted.
pub async fn lock_tenant(conn: &mut Conn, scope: &Scope) -> Result<Option<String>> {
    let lock = conn.dialect().for_update();
    let locked: Option<(String,)> = sql("SELECT name FROM tenants WHERE tenant_uuid = $1 AND deleted_at IS NULL")
        .push(lock)
        .bind(scope.tenant_uuid())
        .optional(conn)
        .await?;
    Ok(locked.map(|(name,)| name))
}

/// Until the transaction ends, the tenant is not deleted. False when it is already.
pub async fn hold_tenant(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<bool> {
    let lock = tx.dialect().for_share();
    let held: Option<(TenantUuid,)> =
        sql("SELECT tenant_uuid FROM tenants WHERE tenant_uuid = $1 AND deleted_at IS NULL")
            .push(lock)
            .bind(tenant_uuid)
            .optional(tx)
            .await?;
    Ok(held.is_some())
}

pub async fn rename(tx: &mut Tx, scope: &Scope, name: &str) -> Result<()> {
    sql("UPDATE tenants SET name = $2 WHERE tenant_uuid = $1").bind(scope.tenant_uuid()).bind(name).execute(tx).await?;
    Ok(())
}

/// The tenant's rows stay; every query that finds a tenant passes over it.
pub async fn mark_deleted(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<()> {
    sql("UPDATE tenants SET deleted_at = $2 WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .bind(now)
        .execute(tx)
        .await?;
    Ok(())
}

/// Whether the tenant has a member who is not this user; nothing when there is no such tenant.
pub async fn has_others(conn: &mut Conn, tenant_uuid: TenantUuid, user_uuid: UserUuid) -> Result<Option<bool>> {
    let row: Option<(bool,)> = sql("SELECT EXISTS (SELECT 1 FROM personas p WHERE p.tenant_uuid = t.tenant_uuid \
         AND p.role IS NOT NULL AND p.user_uuid <> $2) FROM tenants t WHERE t.tenant_uuid = $1 AND t.deleted_at IS NULL")
    .bind(tenant_uuid)
    .bind(user_uuid)
    .optional(conn)
    .await?;
    Ok(row.map(|(others,)| others))
}

/// A member, and whose persona it is.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct MemberRow {
    pub persona_uuid: PersonaUuid,
    pub user_uuid: UserUuid,
    pub email: String,
    pub nickname: Option<String>,
    #[sqlx(try_from = "String")]
    pub role: Role,
    pub created_at: Timestamp,
}

const MEMBERS: &str = "SELECT p.persona_uuid, p.user_uuid, u.email, u.nickname, p.role, p.created_at \
     FROM personas p JOIN users u ON u.user_uuid = p.user_uuid WHERE p.tenant_uuid = $1 AND p.role IS NOT NULL";

/// In the order they came in.
pub async fn members(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<MemberRow>> {
    sql(MEMBERS)
        .push(" ORDER BY p.created_at, p.persona_uuid LIMIT $2")
        .bind(scope.tenant_uuid())
        .bind(limit)
        .all(conn)
        .await
}

pub async fn member(conn: &mut Conn, scope: &Scope, persona_uuid: PersonaUuid) -> Result<Option<MemberRow>> {
    sql(MEMBERS).push(" AND p.persona_uuid = $2").bind(scope.tenant_uuid()).bind(persona_uuid).optional(conn).await
}

pub async fn has_member(conn: &mut Conn, scope: &Scope, email: &str) -> Result<bool> {
    let found: Option<(PersonaUuid,)> =
        sql("SELECT p.persona_uuid FROM users u JOIN personas p ON p.user_uuid = u.user_uuid \
         WHERE u.email = $2 AND p.tenant_uuid = $1 AND p.role IS NOT NULL LIMIT 1")
        .bind(scope.tenant_uuid())
        .bind(email)
        .optional(conn)
        .await?;
    Ok(found.is_some())
}

/// Somebody known from another tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Acquaintance {
    /// Their default one.
    pub persona_uuid: PersonaUuid,
    pub user_uuid: UserUuid,
    pub email: String,
    pub nickname: Option<String>,
}

/// Every role may see who belongs to a tenant.
pub async fn acquaintances(
    conn: &mut Conn,
    scope: &Scope,
    user_uuid: UserUuid,
    limit: i64,
) -> Result<Vec<Acquaintance>> {
    sql("SELECT DISTINCT u.default_persona_uuid AS persona_uuid, u.user_uuid, u.email, u.nickname FROM personas mine \
         JOIN tenants t ON t.tenant_uuid = mine.tenant_uuid AND t.deleted_at IS NULL \
         JOIN personas theirs ON theirs.tenant_uuid = t.tenant_uuid AND theirs.role IS NOT NULL \
         JOIN users u ON u.user_uuid = theirs.user_uuid \
         WHERE mine.user_uuid = $2 AND mine.role IS NOT NULL AND mine.tenant_uuid <> $1 AND NOT EXISTS \
         (SELECT 1 FROM personas here WHERE here.user_uuid = u.user_uuid AND here.tenant_uuid = $1 AND here.role IS NOT NULL) \
         ORDER BY u.email, u.user_uuid LIMIT $3")
    .bind(scope.tenant_uuid())
    .bind(user_uuid)
    .bind(limit)
    .all(conn)
    .await
}

pub async fn count_members(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM personas WHERE tenant_uuid = $1 AND role IS NOT NULL")
        .bind(scope.tenant_uuid())
        .one(conn)
        .await?;
    Ok(count)
}

pub async fn count_owners(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM personas WHERE tenant_uuid = $1 AND role = $2")
        .bind(scope.tenant_uuid())
        .bind(Role::Owner.name())
        .one(conn)
        .await?;
    Ok(count)
}

/// Whose persona this is, as far as the tenant may know: its own personas, and everyone's default one.
pub async fn user_of_persona(conn: &mut Conn, scope: &Scope, persona_uuid: PersonaUuid) -> Result<Option<UserUuid>> {
    let row: Option<(UserUuid,)> = sql("SELECT user_uuid FROM personas \
         WHERE persona_uuid = $1 AND (tenant_uuid IS NULL OR tenant_uuid = $2)")
    .bind(persona_uuid)
    .bind(scope.tenant_uuid())
    .optional(conn)
    .await?;
    Ok(row.map(|(user_uuid,)| user_uuid))
}

/// The persona stays, without a role: whoever comes back is who they were.
pub async fn take_role(conn: &mut Conn, scope: &Scope, persona_uuid: PersonaUuid) -> Result<()> {
    sql("UPDATE personas SET role = NULL WHERE persona_uuid = $1 AND tenant_uuid = $2")
        .bind(persona_uuid)
        .bind(scope.tenant_uuid())
        .execute(conn)
        .await?;
    Ok(())
}
