//! SQL of forms, manuals and actions, a file for each table.

pub mod actions;
pub mod manuals;
pub mod uis;

use std::collections::BTreeSet;

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use uuid::Uuid;

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

/// The given external endpoints of the tenant, which stay until the transaction ends. The list must
/// not be empty.
pub async fn hold_endpoints(
    tx: &mut Tx,
    scope: &Scope,
    endpoints: BTreeSet<Uuid>,
) -> Result<Vec<Uuid>> {
    sql(
        "SELECT external_endpoint_uuid FROM external_endpoints WHERE tenant_uuid = $1 \
         AND external_endpoint_uuid IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(endpoints)
    .push(" ORDER BY external_endpoint_uuid")
    .for_share(tx)
    .scalars(tx)
    .await
}

/// The number of the tenant's rows in the table.
pub async fn count(conn: &mut Conn, scope: &Scope, table: Table) -> Result<i64> {
    sql("SELECT COUNT(*) FROM ")
        .push(table.name())
        .push(" WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .scalar(conn)
        .await
}
