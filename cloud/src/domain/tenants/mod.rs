//! Tenants, the personas people have in them, and their roles. A tenant is one supplier; nobody is let into one without a role.

pub mod http;
mod store;

use hub_protocol::{PersonaUuid, TenantUuid, UserUuid};
use serde_json::json;

use crate::app::App;
use crate::authn::invalid_token;
use crate::authn::user::User;
use crate::authz::permission::Role;
use crate::db::Conn;
use crate::domain::audit::Audit;
use crate::error::{Error, Result};
use store::Membership;

const NAME_MAX_CHARS: usize = 200;
/// Tenants a person may belong to and still found another.
const MAX_TENANTS: i64 = 200;

/// A person's place in a tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Member {
    pub persona_uuid: PersonaUuid,
    #[sqlx(try_from = "String")]
    pub role: Role,
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
        let message = format!("you belong to {MAX_TENANTS} tenants, which is the most; leave or delete one first");
        return Err(Error::conflict("TOO_MANY_TENANTS", message));
    }
    store::insert_tenant(&mut tx, tenant_uuid, name, now).await?;
    let persona_uuid = store::grant(&mut tx, tenant_uuid, user.user_uuid, Role::Owner, now).await?;
    let audit = Audit::by_user(user, "tenant.create", tenant_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit.with(json!({"name": name}))).await?;
    Ok(Membership { tenant_uuid, name: name.to_owned(), created_at: now, persona_uuid, role: Role::Owner })
}
