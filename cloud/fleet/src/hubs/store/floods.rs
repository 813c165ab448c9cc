//! SQL of hubs that flood the service.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

/// A hub that uploads far more than its share.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Flooding {
    pub tenant_uuid: TenantUuid,
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub flooded_at: Timestamp,
}

/// Hubs of the tenant, or of all, that flooded the service after `since`, up to `limit`.
pub async fn flooding(
    conn: &mut Conn,
    scope: Option<&Scope>,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Flooding>> {
    let mut list = sql(
        "SELECT tenant_uuid, hub_uuid, hub_identifier, flooded_at FROM hubs \
         WHERE flooded_at > $1 AND released_at IS NULL",
    )
    .bind(since);
    if let Some(scope) = scope {
        list = list
            .push(" AND tenant_uuid = ")
            .push_bind(scope.tenant_uuid());
    }
    list.push(" ORDER BY flooded_at DESC, hub_uuid LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}
