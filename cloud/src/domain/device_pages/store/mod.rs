//! SQL of forms, manuals and actions, a file for each table.

pub mod actions;
pub mod manuals;
pub mod uis;

use crate::authz::Scope;
use crate::db::{Conn, sql};
use crate::error::Result;

#[derive(Clone, Copy)]
pub enum Table {
    Uis,
    Manuals,
    Actions,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Uis => "device_ui_schemas",
            Self::Manuals => "device_manuals",
            Self::Actions => "action_definitions",
        }
    }
}

/// How many rows the tenant has in the table.
pub async fn count(conn: &mut Conn, scope: &Scope, table: Table) -> Result<i64> {
    sql("SELECT COUNT(*) FROM ")
        .push(table.name())
        .push(" WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .scalar(conn)
        .await
}
