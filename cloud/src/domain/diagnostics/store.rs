//! SQL of diagnostics: how caller and tenant are called.

use hub_protocol::UserUuid;

use crate::authz::Scope;
use crate::db::{Conn, sql};
use crate::error::Result;

pub async fn tenant_name(conn: &mut Conn, scope: &Scope) -> Result<Option<String>> {
    let row: Option<(String,)> =
        sql("SELECT name FROM tenants WHERE tenant_uuid = $1").bind(scope.tenant_uuid()).optional(conn).await?;
    Ok(row.map(|(name,)| name))
}

/// E-mail and nickname.
pub async fn profile(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<(String, Option<String>)>> {
    sql("SELECT email, nickname FROM users WHERE user_uuid = $1").bind(user_uuid).optional(conn).await
}
