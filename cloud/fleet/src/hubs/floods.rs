//! Hubs that upload far more than their share of the tenant's limit, as `ingest` notes them.

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;

use super::store::floods as store;

pub use store::Flooding;

/// A flood is noted once in each minute that it lasts.
const FLOOD_SECS: i64 = 150;
/// The most hubs that metrics name.
const MAX_NAMED: i64 = 100;

/// Whether a hub that flooded the service then still does.
pub fn is_flooding(flooded_at: Option<Timestamp>, now: Timestamp) -> bool {
    flooded_at.is_some_and(|at| at.plus_secs(FLOOD_SECS) > now)
}

/// The tenant's hubs that flood the service, up to `limit`.
pub async fn flooding(
    conn: &mut Conn,
    scope: &Scope,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Flooding>> {
    store::flooding(conn, Some(scope), now.plus_secs(-FLOOD_SECS), limit).await
}

/// The hubs of all tenants that flood the service.
pub async fn all_flooding(conn: &mut Conn, now: Timestamp) -> Result<Vec<Flooding>> {
    store::flooding(conn, None, now.plus_secs(-FLOOD_SECS), MAX_NAMED).await
}
