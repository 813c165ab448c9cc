//! Tenants, the personas people have in them, and their roles. A tenant is one supplier; nobody is let into one without a role.

pub mod http;
mod store;

use hub_protocol::{PersonaUuid, TenantUuid, UserUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::authn::invalid_token;
use crate::authn::user::User;
use crate::authz::Scope;
use crate::authz::permission::Role;
use crate::db::{Conn, Tx};
use crate::domain::audit::Audit;
use crate::error::{Error, Result};
use store::{MemberRow, Membership};

const NAME_MAX_CHARS: usize = 200;
/// Tenants a person may belong to, and members a tenant may have: lists of either are given whole.
const MAX_TENANTS: i64 = 1000;
const MAX_MEMBERS: i64 = 1000;

/// A person's place in a tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Member {
    pub persona_uuid: PersonaUuid,
    #[sqlx(try_from = "String")]
    pub role: Role,
}

/// Someone who is logged in, and their place in the tenant that was asked about.
#[derive(Clone, Debug)]
pub struct Standing(pub Option<Member>);

/// Nothing when the login has ended.
pub async fn standing_of_login(
    conn: &mut Conn,
    login_uuid: Uuid,
    tenant_uuid: Option<TenantUuid>,
) -> Result<Option<Standing>> {
    store::standing(conn, "logins l WHERE l.revoked_at IS NULL AND l.login_uuid", login_uuid, tenant_uuid).await
}

/// Nothing when there is no such user.
pub async fn standing_of_user(
    conn: &mut Conn,
    user_uuid: UserUuid,
    tenant_uuid: Option<TenantUuid>,
) -> Result<Option<Standing>> {
    store::standing(conn, "users l WHERE l.user_uuid", user_uuid.0, tenant_uuid).await
}

/// The user's place in the tenant; nothing when they have none or the tenant is deleted.
async fn membership(conn: &mut Conn, user_uuid: UserUuid, tenant_uuid: TenantUuid) -> Result<Option<Member>> {
    store::membership(conn, user_uuid, tenant_uuid).await
}

fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    match () {
        () if name.is_empty() => Err(Error::field("name", "must not be blank")),
        () if name.chars().count() > NAME_MAX_CHARS => {
            Err(Error::field("name", format!("must have at most {NAME_MAX_CHARS} characters")))
        }
        () if name.chars().any(char::is_control) => Err(Error::field("name", "must not hold control characters")),
        () => Ok(name),
    }
}

/// Founds a tenant with the user as its OWNER.
pub async fn create(app: &App, user: &User, name: &str) -> Result<Membership> {
    let name = checked_name(name)?;
    let now = app.clock.now();
    let tenant_uuid = TenantUuid::new();
    let mut tx = app.db.begin().await?;
    if !store::lock_user(&mut tx, user.user_uuid).await? {
        return Err(invalid_token());
    }
    if store::count_memberships(&mut tx, user.user_uuid).await? >= MAX_TENANTS {
        return Err(too_many_tenants());
    }
    store::insert_tenant(&mut tx, tenant_uuid, name, now).await?;
    let persona_uuid = store::grant(&mut tx, tenant_uuid, user.user_uuid, Role::Owner, now).await?;
    let audit = Audit::by_user(user, "tenant.create", tenant_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(None, Some(json!({"name": name})))).await?;
    Ok(Membership { tenant_uuid, name: name.to_owned(), created_at: now, persona_uuid, role: Role::Owner })
}

fn too_many_tenants() -> Error {
    Error::conflict("TOO_MANY_TENANTS", format!("a person may belong to {MAX_TENANTS} tenants and no more"))
}

/// Gives the person behind a persona a role in the tenant: a new member comes in, a member's role changes.
pub async fn grant_access(
    app: &App,
    scope: &Scope,
    granted_by: Role,
    persona_uuid: PersonaUuid,
    role: Role,
) -> Result<MemberRow> {
    if role == Role::Owner && granted_by != Role::Owner {
        return Err(Error::forbidden("PERMISSION_DENIED", "only an OWNER may make an OWNER"));
    }
    let now = app.clock.now();
    let mut tx = locked(app, scope).await?;
    let user_uuid = store::user_of_persona(&mut tx, scope, persona_uuid).await?;
    let user_uuid = user_uuid.ok_or_else(|| Error::not_found("persona"))?;
    let before = membership(&mut tx, user_uuid, scope.tenant_uuid()).await?;
    match &before {
        Some(Member { role: Role::Owner, .. }) if role != Role::Owner => keep_an_owner(&mut tx, scope).await?,
        Some(_) => {}
        None => make_room(&mut tx, scope, user_uuid).await?,
    }
    let persona_uuid = store::grant(&mut tx, scope.tenant_uuid(), user_uuid, role, now).await?;
    let member = store::member(&mut tx, scope, persona_uuid).await?.ok_or_else(|| Error::not_found("persona"))?;
    let audit = Audit::new(scope, "member.grant", persona_uuid, now);
    tx.commit(audit.changed(before.as_ref().map(role_state), Some(json!({"role": role})))).await?;
    if before.is_some_and(|before| before.role != role) {
        app.permissions.settle().await;
    }
    Ok(member)
}

/// Takes a member's role away; from their next request on they are a stranger.
pub async fn remove_member(app: &App, scope: &Scope, persona_uuid: PersonaUuid) -> Result<()> {
    let mut tx = locked(app, scope).await?;
    let member = store::member(&mut tx, scope, persona_uuid).await?.ok_or_else(|| Error::not_found("member"))?;
    if member.role == Role::Owner {
        keep_an_owner(&mut tx, scope).await?;
    }
    store::take_role(&mut tx, scope, persona_uuid).await?;
    let audit = Audit::new(scope, "member.remove", persona_uuid, app.clock.now());
    tx.commit(audit.changed(Some(json!({"role": member.role})), None)).await?;
    app.permissions.settle().await;
    Ok(())
}

fn role_state(member: &Member) -> Value {
    json!({"role": member.role})
}

/// A transaction in which nobody else changes the tenant's members.
pub async fn locked(app: &App, scope: &Scope) -> Result<Tx> {
    let mut tx = app.db.begin().await?;
    match store::lock_tenant(&mut tx, scope).await? {
        true => Ok(tx),
        false => Err(Error::not_found("tenant")),
    }
}

/// Refuses when the owner about to go is the only one.
async fn keep_an_owner(tx: &mut Tx, scope: &Scope) -> Result<()> {
    match store::count_owners(tx, scope).await? {
        ..=1 => Err(Error::conflict("LAST_OWNER", "this is the tenant's only OWNER; make another one first")),
        _ => Ok(()),
    }
}

/// Refuses when the tenant, or the newcomer, has as many memberships as there may be.
async fn make_room(tx: &mut Tx, scope: &Scope, user_uuid: UserUuid) -> Result<()> {
    if store::count_members(tx, scope).await? >= MAX_MEMBERS {
        let message = format!("a tenant may have {MAX_MEMBERS} members and no more");
        return Err(Error::conflict("TOO_MANY_MEMBERS", message));
    }
    store::lock_user(tx, user_uuid).await?;
    if store::count_memberships(tx, user_uuid).await? >= MAX_TENANTS {
        return Err(too_many_tenants());
    }
    Ok(())
}
