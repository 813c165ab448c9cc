//! Tenants, the personas of users in them, and their roles. A tenant is one supplier; access to it
//! requires a role.

pub mod http;
pub mod limits;
mod limits_store;
mod store;

use std::cmp::Reverse;
use std::collections::HashMap;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Actor;
use hub_core::audit::Audit;
use hub_identity::authn::invalid_token;
use hub_identity::authn::user::User;
use hub_identity::authn::{Authn, Member};
use hub_identity::authz::permission::{MANAGE, Role};
use hub_identity::authz::{Scope, require};
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::{Value, json};

use crate::accounts;
pub use store::{Acquaintance, MemberRow, Membership};
pub use store::{
    acquaintances, all_after, forget_person, has_member, has_others, mark_deleted, membership,
    name, stream_limit, tenant_of, upload_limits,
};

const NAME_MAX_CHARS: usize = 200;
/// Tenants that a user joined, and members of a tenant. Neither list is paginated.
const MAX_TENANTS: i64 = 1000;
const MAX_MEMBERS: i64 = 1000;
/// The newest memberships by others that are listed. Their number is not limited, since the user
/// has no part in them.
const MAX_ADDED_LISTED: i64 = 100;

fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    match () {
        () if name.is_empty() => Err(Error::field("name", "must not be blank")),
        () if name.chars().count() > NAME_MAX_CHARS => Err(Error::field(
            "name",
            format!("must have at most {NAME_MAX_CHARS} characters"),
        )),
        () if name.chars().any(char::is_control) => {
            Err(Error::field("name", "must not hold control characters"))
        }
        () => Ok(name),
    }
}

/// Creates a tenant with the user as its OWNER.
pub async fn create(authn: &Authn, user: &User, name: &str) -> Result<Membership> {
    let name = checked_name(name)?;
    let now = authn.core.clock.now();
    let tenant_uuid = TenantUuid::new();
    let mut tx = authn.core.db.begin().await?;
    if !accounts::lock_user(&mut tx, user.user_uuid).await? {
        return Err(invalid_token());
    }
    if store::count_accepted(&mut tx, user.user_uuid, None).await? >= MAX_TENANTS {
        return Err(too_many_tenants());
    }
    store::insert_tenant(&mut tx, tenant_uuid, name, now).await?;
    let persona_uuid =
        store::grant(&mut tx, tenant_uuid, user.user_uuid, Role::Owner, None, now).await?;
    let audit = Audit::new(user, "tenant.create", tenant_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(None, Some(json!({"name": name}))))
        .await?;
    let (name, role) = (name.to_owned(), Role::Owner);
    Ok(Membership {
        tenant_uuid,
        name,
        created_at: now,
        persona_uuid,
        role,
        added_by_user_uuid: None,
    })
}

fn too_many_tenants() -> Error {
    Error::conflict(
        "TOO_MANY_TENANTS",
        format!("a user may be a member of at most {MAX_TENANTS} tenants; leave one first"),
    )
}

/// The next tenants, by uuid, that were not deleted.
pub async fn live_after(conn: &mut Conn, after: TenantUuid, limit: i64) -> Result<Vec<TenantUuid>> {
    store::live_after(conn, after, limit).await
}

/// The number of tenants that are not deleted.
pub async fn count(conn: &mut Conn) -> Result<i64> {
    store::count(conn).await
}

/// The person who has owned the tenant for longest.
pub async fn owner(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<UserUuid>> {
    store::owner(conn, tenant_uuid).await
}

/// The user's tenants, newest first: all that the user joined, and the last that others made the
/// user a member of.
pub async fn memberships(conn: &mut Conn, user_uuid: UserUuid) -> Result<Vec<Membership>> {
    let mut memberships = store::accepted_memberships(conn, user_uuid, MAX_TENANTS).await?;
    memberships.extend(store::added_memberships(conn, user_uuid, MAX_ADDED_LISTED).await?);
    memberships.sort_by_key(|membership| Reverse((membership.created_at, membership.tenant_uuid)));
    Ok(memberships)
}

/// Accepts a membership that another user granted. Repeating it changes nothing.
pub async fn accept(authn: &Authn, scope: &Scope, user: &User) -> Result<Membership> {
    let Locked { mut tx, .. } = locked(&authn.core, scope).await?;
    let membership = store::tenant_of(&mut tx, scope, user.user_uuid).await?;
    let membership = membership.ok_or_else(|| Error::not_found("tenant"))?;
    let Some(added_by) = membership.added_by_user_uuid else {
        return Ok(membership);
    };
    require_room(&mut tx, scope, user.user_uuid).await?;
    store::accept_membership(&mut tx, scope, user.user_uuid).await?;
    let audit = Audit::new(
        scope,
        "member.accept",
        membership.persona_uuid,
        authn.core.clock.now(),
    );
    tx.commit(audit.with(json!({"addedByUserUuid": added_by})))
        .await?;
    Ok(Membership {
        added_by_user_uuid: None,
        ..membership
    })
}

/// Renames the tenant, if a name is given. Returns the caller's view of it.
pub async fn update(
    authn: &Authn,
    scope: &Scope,
    user: &User,
    name: Option<&str>,
) -> Result<Membership> {
    let name = name.map(checked_name).transpose()?;
    let Locked {
        mut tx,
        name: before,
        role,
    } = locked(&authn.core, scope).await?;
    require(role, MANAGE)?;
    let membership = store::tenant_of(&mut tx, scope, user.user_uuid).await?;
    let membership = membership.ok_or_else(|| Error::not_found("tenant"))?;
    let Some(name) = name.filter(|name| *name != before) else {
        return Ok(membership);
    };
    store::rename(&mut tx, scope, name).await?;
    let audit = Audit::new(
        scope,
        "tenant.update",
        scope.tenant_uuid(),
        authn.core.clock.now(),
    );
    tx.commit(audit.changed(Some(json!({"name": before})), Some(json!({"name": name}))))
        .await?;
    Ok(Membership {
        name: name.to_owned(),
        ..membership
    })
}

/// Changes a member's role.
pub async fn change_role(
    authn: &Authn,
    scope: &Scope,
    persona_uuid: PersonaUuid,
    role: Role,
) -> Result<MemberRow> {
    let now = authn.core.clock.now();
    let Locked {
        mut tx,
        role: changed_by,
        ..
    } = locked(&authn.core, scope).await?;
    require(changed_by, MANAGE)?;
    let member = member(&mut tx, scope, persona_uuid).await?;
    protect_owners(changed_by, &[member.role, role])?;
    if member.role == role {
        return Ok(member);
    }
    grant_role(&mut tx, scope, member.user_uuid, role, now).await?;
    let audit = Audit::new(scope, "member.grant", persona_uuid, now);
    authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit.changed(
        Some(json!({"role": member.role})),
        Some(json!({"role": role})),
    ))
    .await?;
    Ok(MemberRow { role, ..member })
}

/// The names of these tenants, as far as they are not deleted.
pub async fn names(conn: &mut Conn, tenants: &[TenantUuid]) -> Result<HashMap<TenantUuid, String>> {
    match tenants.is_empty() {
        true => Ok(HashMap::new()),
        false => store::names(conn, tenants).await.map(HashMap::from_iter),
    }
}

/// The roles of the user in those of these tenants, a short list, that they are a member of.
/// Nothing of it changes until the transaction ends.
pub async fn held_roles(
    tx: &mut Tx,
    user_uuid: UserUuid,
    tenants: &[TenantUuid],
) -> Result<HashMap<TenantUuid, Role>> {
    if tenants.is_empty() {
        return Ok(HashMap::new());
    }
    let found = store::held_roles(tx, user_uuid, tenants).await?;
    Ok(found
        .into_iter()
        .map(|found| (found.tenant_uuid, found.role))
        .collect())
}

/// All members of the tenant, in the order in which they joined.
pub async fn members(conn: &mut Conn, scope: &Scope) -> Result<Vec<MemberRow>> {
    store::members(conn, scope, MAX_MEMBERS).await
}

pub async fn member(
    conn: &mut Conn,
    scope: &Scope,
    persona_uuid: PersonaUuid,
) -> Result<MemberRow> {
    store::member(conn, scope, persona_uuid)
        .await?
        .ok_or_else(|| Error::not_found("member"))
}

/// Fails unless an OWNER acts, if the role OWNER is granted, changed or removed.
pub fn protect_owners(by: Role, touched: &[Role]) -> Result<()> {
    match by != Role::Owner && touched.contains(&Role::Owner) {
        true => Err(Error::forbidden(
            "PERMISSION_DENIED",
            "only an OWNER may add, change or remove an OWNER",
        )),
        false => Ok(()),
    }
}

/// The user of a persona: a default persona of any user, or a persona of this tenant. Any other
/// persona does not exist for the caller.
pub async fn user_of_persona(
    conn: &mut Conn,
    scope: &Scope,
    persona_uuid: PersonaUuid,
) -> Result<UserUuid> {
    store::user_of_persona(conn, scope, persona_uuid)
        .await?
        .ok_or_else(|| Error::not_found("persona"))
}

/// Grants a user a role, in a transaction that holds the tenant's lock. Returns their previous
/// membership and their persona. Fails if a limit is reached, or if the tenant would be left
/// without an OWNER. Only the user's own actions count against their limit: otherwise others could
/// use it up.
pub async fn grant_role(
    tx: &mut Tx,
    scope: &Scope,
    user_uuid: UserUuid,
    role: Role,
    now: Timestamp,
) -> Result<(Option<Member>, PersonaUuid)> {
    let before = membership(tx, user_uuid, scope.tenant_uuid()).await?;
    match &before {
        Some(Member {
            role: Role::Owner, ..
        }) if role != Role::Owner => require_another_owner(tx, scope).await?,
        Some(_) => {}
        None => require_capacity(tx, scope).await?,
    }
    let added_by = match scope.actor() {
        Actor::User {
            user_uuid: actor, ..
        } if *actor != user_uuid => Some(*actor),
        _ => None,
    };
    if added_by.is_none() {
        require_room(tx, scope, user_uuid).await?;
    }
    let persona_uuid =
        store::grant(tx, scope.tenant_uuid(), user_uuid, role, added_by, now).await?;
    Ok((before, persona_uuid))
}

/// Removes a member, or lets one leave: members may remove themselves. The role is not effective
/// from the next request on. The last OWNER stays, so that a tenant is never without one.
pub async fn remove_member(authn: &Authn, scope: &Scope, persona_uuid: PersonaUuid) -> Result<()> {
    let Locked { mut tx, role, .. } = locked(&authn.core, scope).await?;
    let leaves =
        matches!(scope.actor(), Actor::User { persona_uuid: own, .. } if *own == persona_uuid);
    if !leaves {
        require(role, MANAGE)?;
    }
    let member = member(&mut tx, scope, persona_uuid).await?;
    protect_owners(role, &[member.role])?;
    if member.role == Role::Owner {
        require_another_owner(&mut tx, scope).await?;
    }
    store::revoke_role(&mut tx, scope, persona_uuid).await?;
    let action = if leaves {
        "member.leave"
    } else {
        "member.remove"
    };
    let audit = Audit::new(scope, action, persona_uuid, authn.core.clock.now());
    authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit.changed(Some(json!({"role": member.role})), None))
        .await?;
    Ok(())
}

pub fn role_state(member: &Member) -> Value {
    json!({"role": member.role})
}

/// A locked tenant: no other transaction changes it or its members until this one ends.
pub struct Locked {
    pub tx: Tx,
    /// The name of the tenant.
    pub name: String,
    /// The caller's current role. It may have changed since the request was authorized.
    pub role: Role,
}

/// Waits for the tenant's lock. A caller who is no longer a member gets the same error as on any
/// other request.
pub async fn locked(core: &Core, scope: &Scope) -> Result<Locked> {
    let (mut tx, name) = lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    let member = match scope.actor() {
        Actor::User { user_uuid, .. } => {
            membership(&mut tx, *user_uuid, scope.tenant_uuid()).await?
        }
        Actor::ApiKey(_) | Actor::Hub(_) | Actor::System(_) => None,
    };
    let role = member.ok_or_else(|| Error::not_found("tenant"))?.role;
    Ok(Locked { tx, name, role })
}

/// Like [`locked`], for callers who act on a tenant without being its member. Returns its name too;
/// None if it is deleted.
pub async fn lock(core: &Core, scope: &Scope) -> Result<Option<(Tx, String)>> {
    let mut tx = core.db.begin().await?;
    Ok(store::lock_tenant(&mut tx, scope)
        .await?
        .map(|name| (tx, name)))
}

/// Fails if the owner to be removed is the only one.
async fn require_another_owner(tx: &mut Tx, scope: &Scope) -> Result<()> {
    match store::count_owners(tx, scope).await? {
        ..=1 => {
            let message = "this is the tenant's only OWNER; make somebody else an OWNER first, or delete the tenant";
            Err(Error::conflict("LAST_OWNER", message))
        }
        _ => Ok(()),
    }
}

/// Fails if the tenant has reached its limit of members.
async fn require_capacity(tx: &mut Tx, scope: &Scope) -> Result<()> {
    if store::count_members(tx, scope).await? >= MAX_MEMBERS {
        let message = format!("a tenant may have at most {MAX_MEMBERS} members; remove one first");
        return Err(Error::conflict("TOO_MANY_MEMBERS", message));
    }
    Ok(())
}

/// Fails if the user has joined as many other tenants as one may.
async fn require_room(tx: &mut Tx, scope: &Scope, user_uuid: UserUuid) -> Result<()> {
    accounts::lock_user(tx, user_uuid).await?;
    if store::count_accepted(tx, user_uuid, Some(scope.tenant_uuid())).await? >= MAX_TENANTS {
        return Err(too_many_tenants());
    }
    Ok(())
}

/// Takes a shared lock that prevents the tenant's deletion until the transaction ends. Returns
/// false if it is deleted.
pub async fn lock_shared(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<bool> {
    store::lock_tenant_shared(tx, tenant_uuid).await
}

/// As [`lock_shared`], without other holders of the lock, so that objects of the tenant can be
/// counted.
pub async fn lock_exclusively(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<bool> {
    store::lock_tenant_exclusively(tx, tenant_uuid).await
}

/// The tenants that a person leaves, and all of their personas.
pub struct Left {
    pub tenants: Vec<TenantUuid>,
    pub personas: Vec<PersonaUuid>,
}

/// Ends all memberships of a person whose account is being deleted. Fails where the person is the
/// only OWNER. Those tenants are locked one after the other, in the order of their uuids.
pub async fn leave_all(tx: &mut Tx, user_uuid: UserUuid) -> Result<Left> {
    for (tenant_uuid, _) in store::owned(tx, user_uuid).await? {
        store::lock_tenant_exclusively(tx, tenant_uuid).await?;
    }
    for (tenant_uuid, name) in store::owned(tx, user_uuid).await? {
        if store::count_owners(tx, &Scope::system("ACCOUNT", tenant_uuid)).await? <= 1 {
            let message = format!(
                "you are the only OWNER of the tenant {name:?}; make somebody else an OWNER first, or delete the tenant"
            );
            return Err(Error::conflict("LAST_OWNER", message));
        }
    }
    let personas = store::personas_of(tx, user_uuid).await?;
    store::forget_person(tx, user_uuid).await?;
    let tenants = personas
        .iter()
        .filter_map(|(_, tenant_uuid)| *tenant_uuid)
        .collect();
    Ok(Left {
        tenants,
        personas: personas
            .into_iter()
            .map(|(persona_uuid, _)| persona_uuid)
            .collect(),
    })
}
