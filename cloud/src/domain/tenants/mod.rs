//! Tenants, the personas people have in them, and their roles. A tenant is one supplier; nobody is let into one without a role.

mod deletion;
pub mod http;
mod store;

pub use deletion::delete;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::authn::invalid_token;
use crate::authn::user::User;
use crate::authz::permission::{MANAGE, Role};
use crate::authz::{Actor, Scope, require};
use crate::db::{Conn, Tx};
use crate::domain::audit::Audit;
use crate::domain::invitations;
use crate::error::{Error, Result};
pub use store::{Acquaintance, MemberRow, Membership};

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
pub async fn membership(conn: &mut Conn, user_uuid: UserUuid, tenant_uuid: TenantUuid) -> Result<Option<Member>> {
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

/// Gives the tenant another name, if one is given; answers what it is to the caller now.
pub async fn update(app: &App, scope: &Scope, user: &User, name: Option<&str>) -> Result<Membership> {
    let name = name.map(checked_name).transpose()?;
    let Locked { mut tx, name: before, role } = locked(app, scope).await?;
    require(role, MANAGE)?;
    let membership = store::tenant_of(&mut tx, scope, user.user_uuid).await?;
    let membership = membership.ok_or_else(|| Error::not_found("tenant"))?;
    let Some(name) = name.filter(|name| *name != before) else { return Ok(membership) };
    store::rename(&mut tx, scope, name).await?;
    let audit = Audit::new(scope, "tenant.update", scope.tenant_uuid(), app.clock.now());
    tx.commit(audit.changed(Some(json!({"name": before})), Some(json!({"name": name})))).await?;
    Ok(Membership { name: name.to_owned(), ..membership })
}

/// Gives the person behind a persona a role in the tenant: a new member comes in, a member's role changes.
pub async fn grant_access(app: &App, scope: &Scope, persona_uuid: PersonaUuid, role: Role) -> Result<MemberRow> {
    let now = app.clock.now();
    let Locked { mut tx, role: granted_by, .. } = locked(app, scope).await?;
    require(granted_by, MANAGE)?;
    leave_owners_alone(granted_by, &[role])?;
    let user_uuid = user_of_persona(&mut tx, scope, persona_uuid).await?;
    if let Some(before) = membership(&mut tx, user_uuid, scope.tenant_uuid()).await? {
        leave_owners_alone(granted_by, &[before.role])?;
    }
    let (before, persona_uuid) = give_role(&mut tx, scope, user_uuid, role, now).await?;
    let member = store::member(&mut tx, scope, persona_uuid).await?.ok_or_else(|| Error::not_found("persona"))?;
    let audit = Audit::new(scope, "member.grant", persona_uuid, now);
    tx.commit(audit.changed(before.as_ref().map(role_state), Some(json!({"role": role})))).await?;
    if before.is_some_and(|before| before.role != role) {
        app.permissions.settle().await;
    }
    Ok(member)
}

/// Gives a member another role.
pub async fn change_role(app: &App, scope: &Scope, persona_uuid: PersonaUuid, role: Role) -> Result<MemberRow> {
    let now = app.clock.now();
    let Locked { mut tx, role: changed_by, .. } = locked(app, scope).await?;
    require(changed_by, MANAGE)?;
    let member = member(&mut tx, scope, persona_uuid).await?;
    leave_owners_alone(changed_by, &[member.role, role])?;
    if member.role == role {
        return Ok(member);
    }
    give_role(&mut tx, scope, member.user_uuid, role, now).await?;
    let audit = Audit::new(scope, "member.grant", persona_uuid, now);
    tx.commit(audit.changed(Some(json!({"role": member.role})), Some(json!({"role": role})))).await?;
    app.permissions.settle().await;
    Ok(MemberRow { role, ..member })
}

/// Everyone who belongs to the tenant, in the order they came in.
pub async fn members(conn: &mut Conn, scope: &Scope) -> Result<Vec<MemberRow>> {
    store::members(conn, scope, MAX_MEMBERS).await
}

pub async fn member(conn: &mut Conn, scope: &Scope, persona_uuid: PersonaUuid) -> Result<MemberRow> {
    store::member(conn, scope, persona_uuid).await?.ok_or_else(|| Error::not_found("member"))
}

/// Whether somebody with this e-mail belongs to the tenant.
pub async fn has_member(conn: &mut Conn, scope: &Scope, email: &str) -> Result<bool> {
    store::has_member(conn, scope, email).await
}

/// People whom the user meets in another tenant and who do not belong to this one, by e-mail; `limit` at most.
pub async fn acquaintances(
    conn: &mut Conn,
    scope: &Scope,
    user_uuid: UserUuid,
    limit: i64,
) -> Result<Vec<Acquaintance>> {
    store::acquaintances(conn, scope, user_uuid, limit).await
}

/// The scope's tenant as the user sees it, who belongs to it.
pub async fn tenant_of(conn: &mut Conn, scope: &Scope, user_uuid: UserUuid) -> Result<Option<Membership>> {
    store::tenant_of(conn, scope, user_uuid).await
}

/// Only an OWNER may make an OWNER, or change or remove one.
pub fn leave_owners_alone(by: Role, touched: &[Role]) -> Result<()> {
    match by != Role::Owner && touched.contains(&Role::Owner) {
        true => Err(Error::forbidden("PERMISSION_DENIED", "only an OWNER may make, change or remove an OWNER")),
        false => Ok(()),
    }
}

/// Whose persona this is: somebody's default one, or one of this tenant. Any other does not exist.
pub async fn user_of_persona(conn: &mut Conn, scope: &Scope, persona_uuid: PersonaUuid) -> Result<UserUuid> {
    store::user_of_persona(conn, scope, persona_uuid).await?.ok_or_else(|| Error::not_found("persona"))
}

/// Gives a person a role, in a transaction that holds the tenant's lock; answers what they were before and which persona they have. Refuses when there is
/// no room for one more, and when the tenant would be left without an OWNER.
pub async fn give_role(
    tx: &mut Tx,
    scope: &Scope,
    user_uuid: UserUuid,
    role: Role,
    now: Timestamp,
) -> Result<(Option<Member>, PersonaUuid)> {
    let before = membership(tx, user_uuid, scope.tenant_uuid()).await?;
    match &before {
        Some(Member { role: Role::Owner, .. }) if role != Role::Owner => keep_an_owner(tx, scope).await?,
        Some(_) => {}
        None => {
            make_room(tx, scope, user_uuid).await?;
            // Or who is removed later could come back by it.
            invitations::withdraw(tx, scope, user_uuid, now).await?;
        }
    }
    let persona_uuid = store::grant(tx, scope.tenant_uuid(), user_uuid, role, now).await?;
    Ok((before, persona_uuid))
}

/// Takes a member's role away; from their next request on they are a stranger.
pub async fn remove_member(app: &App, scope: &Scope, persona_uuid: PersonaUuid) -> Result<()> {
    let Locked { mut tx, role, .. } = locked(app, scope).await?;
    require(role, MANAGE)?;
    let member = member(&mut tx, scope, persona_uuid).await?;
    leave_owners_alone(role, &[member.role])?;
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

/// A tenant that nobody else changes, nor who belongs to it, until the transaction ends.
pub struct Locked {
    pub tx: Tx,
    /// The tenant's.
    pub name: String,
    /// The caller's, now: what they had when they were let in may be gone.
    pub role: Role,
}

/// Waits for the tenant's lock. Who is no member by then is told what they would be told on their next request.
pub async fn locked(app: &App, scope: &Scope) -> Result<Locked> {
    let (mut tx, name) = lock(app, scope).await?.ok_or_else(|| Error::not_found("tenant"))?;
    let member = match scope.actor() {
        Actor::User { user_uuid, .. } => membership(&mut tx, *user_uuid, scope.tenant_uuid()).await?,
        Actor::ApiKey(_) | Actor::Hub(_) | Actor::System(_) => None,
    };
    let role = member.ok_or_else(|| Error::not_found("tenant"))?.role;
    Ok(Locked { tx, name, role })
}

/// As [`locked`], for whoever acts on a tenant without being its member; answers its name too, and nothing when it is deleted.
pub async fn lock(app: &App, scope: &Scope) -> Result<Option<(Tx, String)>> {
    let mut tx = app.db.begin().await?;
    Ok(store::lock_tenant(&mut tx, scope).await?.map(|name| (tx, name)))
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

/// Until the transaction ends the tenant is not deleted; false when it is. Others may hold it as well.
pub async fn hold(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<bool> {
    store::hold_tenant(tx, tenant_uuid).await
}

/// Whether somebody else than the user could act for the tenant; nothing when there is no such tenant.
pub async fn has_others(conn: &mut Conn, tenant_uuid: TenantUuid, user_uuid: UserUuid) -> Result<Option<bool>> {
    store::has_others(conn, tenant_uuid, user_uuid).await
}
