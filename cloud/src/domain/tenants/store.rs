//! SQL of tenants and personas.

use hub_protocol::{PersonaUuid, TenantUuid, UserUuid};

use super::Member;
use crate::authz::permission::Role;
use crate::db::{Conn, sql};
use crate::error::Result;

pub async fn membership(conn: &mut Conn, user_uuid: UserUuid, tenant_uuid: TenantUuid) -> Result<Option<Member>> {
    let row: Option<(PersonaUuid, String)> = sql("SELECT p.persona_uuid, p.role FROM personas p \
         JOIN tenants t ON t.tenant_uuid = p.tenant_uuid \
         WHERE p.user_uuid = $1 AND p.tenant_uuid = $2 AND p.role IS NOT NULL AND t.deleted_at IS NULL")
    .bind(user_uuid)
    .bind(tenant_uuid)
    .optional(conn)
    .await?;
    Ok(row.and_then(|(persona_uuid, role)| Some(Member { persona_uuid, role: Role::from_name(&role)? })))
}
