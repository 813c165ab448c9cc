//! SQL of tenants and personas.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::Member;
use hub_identity::authz::Scope;
use hub_identity::authz::permission::Role;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;

/// The user's membership in the tenant; None if there is none or the tenant is deleted.
pub async fn membership(
    conn: &mut Conn,
    user_uuid: UserUuid,
    tenant_uuid: TenantUuid,
) -> Result<Option<Member>> {
    sql("SELECT p.persona_uuid, p.role \
         FROM personas p JOIN tenants t ON t.tenant_uuid = p.tenant_uuid WHERE p.user_uuid = $1 \
         AND p.tenant_uuid = $2 AND p.role IS NOT NULL AND t.deleted_at IS NULL")
    .bind((user_uuid, tenant_uuid))
    .optional(conn)
    .await
}

/// A tenant as one of its members sees it.
#[derive(Clone, Debug, sqlx::FromRow, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TenantResponse")]
pub struct Membership {
    /// The tenant. The uuid is also that of the supplier.
    pub tenant_uuid: TenantUuid,
    /// The name of the tenant.
    pub name: String,
    /// The caller's role in it.
    #[sqlx(try_from = "String")]
    pub role: Role,
    /// The caller's persona in it.
    pub persona_uuid: PersonaUuid,
    /// The user who made the caller a member, until the caller accepts the membership; null for one
    /// that the caller accepted or joined. It grants the role either way, and counts only when
    /// accepted.
    pub added_by_user_uuid: Option<UserUuid>,
    /// When it was created.
    pub created_at: Timestamp,
}

const COLUMNS: &str = "SELECT t.tenant_uuid, t.name, t.created_at, p.persona_uuid, p.role, \
     p.added_by_user_uuid ";
const MEMBERSHIPS: &str = "FROM personas p JOIN tenants t ON t.tenant_uuid = p.tenant_uuid \
     WHERE p.user_uuid = $1 AND p.role IS NOT NULL AND t.deleted_at IS NULL";
const ACCEPTED: &str = " AND p.added_by_user_uuid IS NULL";

/// The scope's tenant as the user, one of its members, sees it.
pub async fn tenant_of(
    conn: &mut Conn,
    scope: &Scope,
    user_uuid: UserUuid,
) -> Result<Option<Membership>> {
    sql(COLUMNS)
        .push(MEMBERSHIPS)
        .push(" AND t.tenant_uuid = $2")
        .bind((user_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// Memberships of the user's own doing, newest tenants first.
pub async fn accepted_memberships(
    conn: &mut Conn,
    user_uuid: UserUuid,
    limit: i64,
) -> Result<Vec<Membership>> {
    sql(COLUMNS)
        .push(MEMBERSHIPS)
        .push(ACCEPTED)
        .push(" ORDER BY t.created_at DESC, t.tenant_uuid DESC LIMIT $2")
        .bind((user_uuid, limit))
        .all(conn)
        .await
}

/// Memberships that others granted and the user has not accepted, the newest first.
pub async fn added_memberships(
    conn: &mut Conn,
    user_uuid: UserUuid,
    limit: i64,
) -> Result<Vec<Membership>> {
    sql(COLUMNS)
        .push(MEMBERSHIPS)
        .push(" AND p.added_by_user_uuid IS NOT NULL ORDER BY p.created_at DESC, p.persona_uuid DESC LIMIT $2")
        .bind((user_uuid, limit))
        .all(conn)
        .await
}

/// The tenants, other than this one, that the user is a member of by their own doing.
pub async fn count_accepted(
    conn: &mut Conn,
    user_uuid: UserUuid,
    except: Option<TenantUuid>,
) -> Result<i64> {
    sql("SELECT COUNT(*) ")
        .push(MEMBERSHIPS)
        .push(ACCEPTED)
        .push(" AND ($2 IS NULL OR p.tenant_uuid <> $2)")
        .bind((user_uuid, except))
        .scalar(conn)
        .await
}

/// The membership counts as the user's own doing from now on.
pub async fn accept_membership(tx: &mut Tx, scope: &Scope, user_uuid: UserUuid) -> Result<()> {
    sql("UPDATE personas SET added_by_user_uuid = NULL WHERE user_uuid = $1 AND tenant_uuid = $2")
        .bind((user_uuid, scope.tenant_uuid()))
        .run(tx)
        .await
}

/// A tenant, and a role in it.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct TenantRole {
    pub tenant_uuid: TenantUuid,
    #[sqlx(try_from = "String")]
    pub role: Role,
}

/// The roles of the user in those of these tenants that they are a member of. Nothing of it changes
/// until the transaction ends. The list must be short and not empty.
pub async fn held_roles(
    tx: &mut Tx,
    user_uuid: UserUuid,
    tenants: &[TenantUuid],
) -> Result<Vec<TenantRole>> {
    sql("SELECT p.tenant_uuid, p.role ")
        .push(MEMBERSHIPS)
        .push(" AND t.tenant_uuid IN ")
        .bind(user_uuid)
        .push_list(tenants.iter().copied())
        .push(" ORDER BY t.tenant_uuid")
        .for_share(tx)
        .all(tx)
        .await
}

/// The names of tenants that are not deleted. The list must be short and not empty.
pub async fn names(conn: &mut Conn, tenants: &[TenantUuid]) -> Result<Vec<(TenantUuid, String)>> {
    sql("SELECT tenant_uuid, name FROM tenants WHERE deleted_at IS NULL AND tenant_uuid IN ")
        .push_list(tenants.iter().copied())
        .all(conn)
        .await
}

/// The number of tenants that are not deleted.
pub async fn count(conn: &mut Conn) -> Result<i64> {
    sql("SELECT COUNT(*) FROM tenants WHERE deleted_at IS NULL")
        .scalar(conn)
        .await
}

/// The tenant's name; None if it is deleted.
pub async fn name(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<String>> {
    sql("SELECT name FROM tenants WHERE tenant_uuid = $1 AND deleted_at IS NULL")
        .bind(tenant_uuid)
        .optional_scalar(conn)
        .await
}

/// The most open streams of the tenant, if it has a limit of its own.
/// The person who has owned the tenant for longest.
pub async fn owner(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<UserUuid>> {
    sql("SELECT user_uuid FROM personas \
         WHERE tenant_uuid = $1 AND role = 'OWNER' AND added_by_user_uuid IS NULL \
         ORDER BY persona_uuid LIMIT 1")
    .bind(tenant_uuid)
    .optional_scalar(conn)
    .await
}

pub async fn stream_limit(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<i64>> {
    let limit: Option<Option<i64>> = sql("SELECT stream_limit FROM tenants WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .optional_scalar(conn)
        .await?;
    Ok(limit.flatten())
}

/// How many uploads of each kind these tenants may send in a minute. Those that have no limit of
/// their own are missing. The list must not be empty.
pub async fn upload_limits(
    conn: &mut Conn,
    tenants: impl IntoIterator<Item = TenantUuid>,
) -> Result<Vec<(TenantUuid, i64)>> {
    sql("SELECT tenant_uuid, upload_limit_per_minute FROM tenants \
         WHERE upload_limit_per_minute IS NOT NULL AND tenant_uuid IN ")
    .push_list(tenants)
    .all(conn)
    .await
}

pub async fn insert_tenant(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    name: &str,
    now: Timestamp,
) -> Result<()> {
    sql("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ($1, $2, $3)")
        .bind((tenant_uuid, name, now))
        .run(conn)
        .await
}

/// Creates the user's persona in the tenant, or grants the existing one the role. `added_by` is the
/// author, if not the user. Another role does not change whether the user accepted the membership;
/// the user's own action accepts it. Returns the persona.
pub async fn grant(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
    role: Role,
    added_by: Option<UserUuid>,
    now: Timestamp,
) -> Result<PersonaUuid> {
    sql(
        "INSERT INTO personas (persona_uuid, user_uuid, tenant_uuid, role, created_at, \
         added_by_user_uuid) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (user_uuid, tenant_uuid) DO UPDATE SET role = excluded.role, \
         added_by_user_uuid = CASE WHEN personas.role IS NULL \
         OR excluded.added_by_user_uuid IS NULL THEN excluded.added_by_user_uuid \
         ELSE personas.added_by_user_uuid END RETURNING persona_uuid",
    )
    .bind((
        PersonaUuid::new(),
        user_uuid,
        tenant_uuid,
        role.name(),
        now,
        added_by,
    ))
    .scalar(conn)
    .await
}

/// Locks the tenant and its members until the transaction ends. Returns the name, or None when the
/// tenant is deleted.
pub async fn lock_tenant(conn: &mut Conn, scope: &Scope) -> Result<Option<String>> {
    sql("SELECT name FROM tenants WHERE tenant_uuid = $1 AND deleted_at IS NULL")
        .for_update(conn)
        .bind(scope.tenant_uuid())
        .optional_scalar(conn)
        .await
}

/// Keeps the tenant from being deleted until the transaction ends. Returns false when it is
/// deleted.
pub async fn lock_tenant_shared(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<bool> {
    sql("SELECT tenant_uuid FROM tenants WHERE tenant_uuid = $1 AND deleted_at IS NULL")
        .for_share(tx)
        .bind(tenant_uuid)
        .exists(tx)
        .await
}

/// As [`lock_tenant`], without its name. Returns false when the tenant is deleted.
pub async fn lock_tenant_exclusively(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<bool> {
    sql("SELECT tenant_uuid FROM tenants WHERE tenant_uuid = $1 AND deleted_at IS NULL")
        .for_update(tx)
        .bind(tenant_uuid)
        .exists(tx)
        .await
}

pub async fn rename(tx: &mut Tx, scope: &Scope, name: &str) -> Result<()> {
    sql("UPDATE tenants SET name = $2 WHERE tenant_uuid = $1")
        .bind((scope.tenant_uuid(), name))
        .run(tx)
        .await
}

/// Marks the tenant as deleted: its rows stay, and every query that looks up a tenant skips it. The
/// caller ends all that acts for it.
pub async fn mark_deleted(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<()> {
    sql("UPDATE tenants SET deleted_at = $2 WHERE tenant_uuid = $1")
        .bind((scope.tenant_uuid(), now))
        .run(tx)
        .await
}

/// Whether anybody other than the user could act for the tenant; None if there is no such tenant.
pub async fn has_others(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
) -> Result<Option<bool>> {
    sql("SELECT EXISTS (SELECT 1 FROM personas p \
         WHERE p.tenant_uuid = t.tenant_uuid AND p.role IS NOT NULL AND p.user_uuid <> $2) \
         FROM tenants t WHERE t.tenant_uuid = $1 AND t.deleted_at IS NULL")
    .bind((tenant_uuid, user_uuid))
    .optional_scalar(conn)
    .await
}

/// A member and the user of the persona.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct MemberRow {
    pub persona_uuid: PersonaUuid,
    pub user_uuid: UserUuid,
    pub email: Option<String>,
    pub nickname: Option<String>,
    #[sqlx(try_from = "String")]
    pub role: Role,
    pub created_at: Timestamp,
}

const MEMBERS: &str = "SELECT p.persona_uuid, p.user_uuid, NULLIF(u.email, '') AS email, \
    u.nickname, p.role, p.created_at FROM personas p JOIN users u ON u.user_uuid = p.user_uuid \
    WHERE p.tenant_uuid = $1 AND p.role IS NOT NULL";

/// The members, ordered by when they joined.
pub async fn members(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<MemberRow>> {
    sql(MEMBERS)
        .push(" ORDER BY p.created_at, p.persona_uuid LIMIT $2")
        .bind((scope.tenant_uuid(), limit))
        .all(conn)
        .await
}

pub async fn member(
    conn: &mut Conn,
    scope: &Scope,
    persona_uuid: PersonaUuid,
) -> Result<Option<MemberRow>> {
    sql(MEMBERS)
        .push(" AND p.persona_uuid = $2")
        .bind((scope.tenant_uuid(), persona_uuid))
        .optional(conn)
        .await
}

/// Whether a user with this e-mail is a member of the tenant.
pub async fn has_member(conn: &mut Conn, scope: &Scope, email: &str) -> Result<bool> {
    sql(
        "SELECT p.persona_uuid FROM users u JOIN personas p ON p.user_uuid = u.user_uuid \
         WHERE u.email = $2 AND p.tenant_uuid = $1 AND p.role IS NOT NULL LIMIT 1",
    )
    .bind((scope.tenant_uuid(), email))
    .exists(conn)
    .await
}

/// A person known from another tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Acquaintance {
    /// The default persona.
    pub persona_uuid: PersonaUuid,
    pub user_uuid: UserUuid,
    /// The e-mail; empty without one.
    pub email: String,
    pub nickname: Option<String>,
}

/// Users who share another tenant with the user and are not members of this one, ordered by e-mail;
/// at most `limit`. Only tenants count that the user joined and where the user may see e-mails.
/// Their default personas reveal no more: a user who adds a person to an own tenant sees that
/// person's e-mail there.
pub async fn acquaintances(
    conn: &mut Conn,
    scope: &Scope,
    user_uuid: UserUuid,
    limit: i64,
) -> Result<Vec<Acquaintance>> {
    sql(
        "SELECT DISTINCT u.default_persona_uuid AS persona_uuid, u.user_uuid, u.email, u.nickname \
         FROM personas mine JOIN tenants t ON t.tenant_uuid = mine.tenant_uuid \
         AND t.deleted_at IS NULL JOIN personas theirs ON theirs.tenant_uuid = t.tenant_uuid \
         AND theirs.role IS NOT NULL JOIN users u ON u.user_uuid = theirs.user_uuid \
         WHERE mine.user_uuid = $2 AND mine.role IN ('ADMIN', 'OWNER') \
         AND mine.added_by_user_uuid IS NULL AND mine.tenant_uuid <> $1 \
         AND NOT EXISTS (SELECT 1 FROM personas here \
         WHERE here.user_uuid = u.user_uuid AND here.tenant_uuid = $1 AND here.role IS NOT NULL) \
         ORDER BY u.email, u.user_uuid LIMIT $3",
    )
    .bind((scope.tenant_uuid(), user_uuid, limit))
    .all(conn)
    .await
}

pub async fn count_members(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("SELECT COUNT(*) FROM personas WHERE tenant_uuid = $1 AND role IS NOT NULL")
        .bind(scope.tenant_uuid())
        .scalar(conn)
        .await
}

pub async fn count_owners(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("SELECT COUNT(*) FROM personas WHERE tenant_uuid = $1 AND role = $2")
        .bind((scope.tenant_uuid(), Role::Owner.name()))
        .scalar(conn)
        .await
}

/// The user of a persona, of those visible to the tenant: its own personas and all default ones.
pub async fn user_of_persona(
    conn: &mut Conn,
    scope: &Scope,
    persona_uuid: PersonaUuid,
) -> Result<Option<UserUuid>> {
    sql("SELECT user_uuid FROM personas \
         WHERE persona_uuid = $1 AND (tenant_uuid IS NULL OR tenant_uuid = $2)")
    .bind((persona_uuid, scope.tenant_uuid()))
    .optional_scalar(conn)
    .await
}

/// The persona stays without a role, so that a returning member has the same persona.
pub async fn revoke_role(conn: &mut Conn, scope: &Scope, persona_uuid: PersonaUuid) -> Result<()> {
    sql("UPDATE personas SET role = NULL WHERE persona_uuid = $1 AND tenant_uuid = $2")
        .bind((persona_uuid, scope.tenant_uuid()))
        .run(conn)
        .await
}

/// A tenant as the platform sees it.
#[derive(Debug, sqlx::FromRow, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PlatformTenantResponse")]
pub struct PlatformTenantRow {
    /// The tenant.
    pub tenant_uuid: TenantUuid,
    /// Its name.
    pub name: String,
    /// The number of members.
    #[schemars(range(min = 0))]
    pub members: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was deleted; null when it was not.
    pub deleted_at: Option<Timestamp>,
}

const PLATFORM_COLUMNS: &str = "t.tenant_uuid, t.name, t.created_at, t.deleted_at, \
    (SELECT COUNT(*) FROM personas p WHERE p.tenant_uuid = t.tenant_uuid \
     AND p.role IS NOT NULL) AS members";

/// One page, newest first, and the total number. `search` is a uuid or part of a name.
pub async fn list_all(
    conn: &mut Conn,
    search: Option<&str>,
    slice: Slice,
) -> Result<(Vec<PlatformTenantRow>, i64)> {
    let mut list = sql("FROM tenants t");
    if let Some(search) = search {
        list = match search.parse() {
            Ok(uuid) => list
                .push(" WHERE t.tenant_uuid = ")
                .push_bind(TenantUuid(uuid)),
            // SQLite lowers ASCII only, so the original text has to match too.
            Err(_) => list
                .push(" WHERE (")
                .push_contains_text("lower(t.name)", &search.to_lowercase())
                .push(" OR ")
                .push_contains_text("t.name", search)
                .push(")"),
        };
    }
    list.page(
        conn,
        PLATFORM_COLUMNS,
        &["t.created_at DESC, t.tenant_uuid DESC"],
        slice,
    )
    .await
}

pub async fn get_any(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
) -> Result<Option<PlatformTenantRow>> {
    sql("SELECT ")
        .push(PLATFORM_COLUMNS)
        .push(" FROM tenants t WHERE t.tenant_uuid = $1")
        .bind(tenant_uuid)
        .optional(conn)
        .await
}

/// The tenants that the user is an OWNER of, in the order of their uuids, with their names.
pub async fn owned(conn: &mut Conn, user_uuid: UserUuid) -> Result<Vec<(TenantUuid, String)>> {
    sql("SELECT t.tenant_uuid, t.name FROM personas p \
         JOIN tenants t ON t.tenant_uuid = p.tenant_uuid AND t.deleted_at IS NULL \
         WHERE p.user_uuid = $1 AND p.role = $2 ORDER BY t.tenant_uuid")
    .bind((user_uuid, Role::Owner.name()))
    .all(conn)
    .await
}

/// The personas of the user, each with its tenant.
pub async fn personas_of(
    conn: &mut Conn,
    user_uuid: UserUuid,
) -> Result<Vec<(PersonaUuid, Option<TenantUuid>)>> {
    sql("SELECT persona_uuid, tenant_uuid FROM personas WHERE user_uuid = $1")
        .bind(user_uuid)
        .all(conn)
        .await
}

/// Deletes the personas of a person whose account is being deleted, and removes the person as the
/// author of memberships.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM personas WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await?;
    sql("UPDATE personas SET added_by_user_uuid = $2 WHERE added_by_user_uuid = $1")
        .bind((user_uuid, UserUuid(uuid::Uuid::nil())))
        .run(tx)
        .await
}

/// The next tenants, by uuid, that were not deleted.
pub async fn live_after(conn: &mut Conn, after: TenantUuid, limit: i64) -> Result<Vec<TenantUuid>> {
    sql(
        "SELECT tenant_uuid FROM tenants WHERE tenant_uuid > $1 AND deleted_at IS NULL \
         ORDER BY tenant_uuid LIMIT $2",
    )
    .bind((after, limit))
    .scalars(conn)
    .await
}

/// The next tenants, by uuid, deleted ones included.
pub async fn all_after(conn: &mut Conn, after: TenantUuid, limit: i64) -> Result<Vec<TenantUuid>> {
    sql("SELECT tenant_uuid FROM tenants WHERE tenant_uuid > $1 ORDER BY tenant_uuid LIMIT $2")
        .bind((after, limit))
        .scalars(conn)
        .await
}
