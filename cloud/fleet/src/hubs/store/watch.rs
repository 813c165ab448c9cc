//! SQL of what is watched of hubs: who is silent, who fell silent together, and how many there are.

use std::collections::BTreeMap;

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

/// A hub that has not been in contact for a while.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct SilentHub {
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub last_seen_at: Timestamp,
}

/// Hubs of the tenant that were last in contact before `before` and are not blocked, up to `limit`.
pub async fn silent_since(
    conn: &mut Conn,
    scope: &Scope,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<SilentHub>> {
    sql("SELECT hub_uuid, hub_identifier, last_seen_at \
         FROM hubs JOIN hub_contacts USING (tenant_uuid, hub_uuid) \
         WHERE tenant_uuid = $1 AND released_at IS NULL AND blocked_at IS NULL \
         AND last_seen_at < $2 ORDER BY created_at, hub_uuid LIMIT $3")
    .bind((scope.tenant_uuid(), before, limit))
    .all(conn)
    .await
}

/// The labels of these hubs, as far as they are the tenant's and not released. The list must not be
/// empty.
pub async fn labels(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuids: &[HubUuid],
) -> Result<BTreeMap<HubUuid, Option<String>>> {
    let rows: Vec<(HubUuid, Option<String>)> = sql("SELECT hub_uuid, hub_identifier FROM hubs \
         WHERE tenant_uuid = $1 AND released_at IS NULL AND hub_uuid IN ")
    .bind(scope.tenant_uuid())
    .push_list(hub_uuids.iter().copied())
    .all(conn)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Whether a hub can connect to devices.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Connecting {
    pub hub_uuid: HubUuid,
    pub last_telemetry_at: Option<Timestamp>,
    /// Adapters that are on and may connect.
    pub connecting: i64,
}

/// The given hubs of the tenant that are neither blocked nor released. The list must not be empty.
/// A hub whose owner has not consented is left out: its surroundings are private.
pub async fn connecting(
    conn: &mut Conn,
    scope: &Scope,
    hubs: &[HubUuid],
) -> Result<Vec<Connecting>> {
    sql(
        "SELECT h.hub_uuid, c.last_telemetry_at, COUNT(CASE WHEN a.powered \
         AND (a.role IS NULL OR a.role = 'CONNECTOR') THEN 1 END) AS connecting FROM hubs h \
         LEFT JOIN hub_contacts c ON c.tenant_uuid = h.tenant_uuid AND c.hub_uuid = h.hub_uuid \
         LEFT JOIN hub_adapters a ON a.hub_uuid = h.hub_uuid WHERE h.tenant_uuid = $1 \
         AND h.released_at IS NULL AND h.blocked_at IS NULL AND NOT h.withholds_events \
         AND h.hub_uuid IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(hubs.iter().copied())
    .push(" GROUP BY h.hub_uuid, c.last_telemetry_at")
    .all(conn)
    .await
}

/// The number of hubs of a tenant.
#[derive(Clone, Copy, Debug, Default, sqlx::FromRow)]
pub struct HubCounts {
    pub total: i64,
    pub online: i64,
    pub blocked: i64,
}

pub async fn counts(conn: &mut Conn, scope: &Scope, online_since: Timestamp) -> Result<HubCounts> {
    sql(
        "SELECT COUNT(*) AS total, COUNT(CASE WHEN last_telemetry_at > $2 THEN 1 END) AS online, \
         COUNT(blocked_at) AS blocked \
         FROM hubs LEFT JOIN hub_contacts USING (tenant_uuid, hub_uuid) \
         WHERE tenant_uuid = $1 AND released_at IS NULL",
    )
    .bind((scope.tenant_uuid(), online_since))
    .one(conn)
    .await
}

/// Tenants of which at least `at_least` hubs had their last telemetry in this span, and how many,
/// most first, up to 100.
pub async fn fallen_silent(
    conn: &mut Conn,
    (after, until): (Timestamp, Timestamp),
    at_least: i64,
) -> Result<Vec<(TenantUuid, i64)>> {
    sql("SELECT tenant_uuid, COUNT(*) AS hubs \
         FROM hubs JOIN hub_contacts USING (tenant_uuid, hub_uuid) \
         WHERE last_telemetry_at > $1 AND last_telemetry_at <= $2 \
         AND released_at IS NULL AND blocked_at IS NULL \
         GROUP BY tenant_uuid HAVING COUNT(*) >= $3 ORDER BY hubs DESC, tenant_uuid LIMIT 100")
    .bind((after, until, at_least))
    .all(conn)
    .await
}

/// How many hubs of the tenant had their last telemetry in this span.
pub async fn count_silent(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (after, until): (Timestamp, Timestamp),
) -> Result<i64> {
    sql(
        "SELECT COUNT(*) FROM hubs JOIN hub_contacts USING (tenant_uuid, hub_uuid) \
         WHERE tenant_uuid = $1 \
         AND last_telemetry_at > $2 AND last_telemetry_at <= $3 \
         AND released_at IS NULL AND blocked_at IS NULL",
    )
    .bind((tenant_uuid, after, until))
    .scalar(conn)
    .await
}
