//! Tenants, the personas people have in them, and their roles.

mod store;

use hub_protocol::{PersonaUuid, TenantUuid, UserUuid};

use crate::authz::permission::Role;
use crate::db::Conn;
use crate::error::Result;

/// A person's place in a tenant.
#[derive(Clone, Debug)]
pub struct Member {
    pub persona_uuid: PersonaUuid,
    pub role: Role,
}

/// The user's place in the tenant; nothing when they have none or the tenant is deleted.
pub async fn membership(conn: &mut Conn, user_uuid: UserUuid, tenant_uuid: TenantUuid) -> Result<Option<Member>> {
    store::membership(conn, user_uuid, tenant_uuid).await
}
