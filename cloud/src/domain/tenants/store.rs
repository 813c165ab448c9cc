//! SQL of tenants and personas.

use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};

use super::Member;
use crate::authz::permission::Role;
use crate::db::{Conn, sql};
use crate::error::Result;
use crate::http::page::Page;

pub async fn membership(conn: &mut Conn, user_uuid: UserUuid, tenant_uuid: TenantUuid) -> Result<Option<Member>> {
    sql("SELECT p.persona_uuid, p.role FROM personas p \
         JOIN tenants t ON t.tenant_uuid = p.tenant_uuid \
         WHERE p.user_uuid = $1 AND p.tenant_uuid = $2 AND p.role IS NOT NULL AND t.deleted_at IS NULL")
    .bind(user_uuid)
    .bind(tenant_uuid)
    .optional(conn)
    .await
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

/// Newest tenants first.
pub async fn memberships(conn: &mut Conn, user_uuid: UserUuid, page: &Page) -> Result<Vec<Membership>> {
    sql("SELECT t.tenant_uuid, t.name, t.created_at, p.persona_uuid, p.role ")
        .push(MEMBERSHIPS)
        .push(" ORDER BY t.created_at DESC, t.tenant_uuid DESC LIMIT $2 OFFSET $3")
        .bind(user_uuid)
        .bind(page.size)
        .bind(page.offset)
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
