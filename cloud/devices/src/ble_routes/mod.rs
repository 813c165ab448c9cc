//! The route of a tenant: rules that say which advertisements its hubs report, and which events the
//! service keeps. It keeps the rules and tries them on what is known of an event. It must never
//! read an event itself.

mod check;
pub mod http;
mod route;
mod store;

use std::collections::HashSet;

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::TenantUuid;
use hub_protocol::scan_config::{Otherwise, RouteLayer, RouteRule};
use serde_json::{Value, json};

use crate::device_catalog;
pub use route::{Decision, Facts, Route, Verdict};

/// Rules of a route.
const MAX_RULES: usize = 100;
/// The most bytes of all rules as JSON.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// The tenant's route; of a tenant that has set none, one that passes everything on.
pub async fn get(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Route> {
    match store::get(conn, tenant_uuid).await? {
        Some(row) => row.into_route(),
        None => Ok(Route::default()),
    }
}

/// The given tenants with a route for which hubs have to distinguish registered devices.
pub async fn with_known_devices(
    conn: &mut Conn,
    tenants: Vec<TenantUuid>,
) -> Result<HashSet<TenantUuid>> {
    let found = store::with_known_devices(conn, tenants).await?;
    Ok(found
        .into_iter()
        .map(|(tenant_uuid,)| tenant_uuid)
        .collect())
}

/// Replaces the tenant's route. The revision of the catalog rises with it, which wakes its hubs.
async fn replace(
    core: &Core,
    scope: &Scope,
    rules: Vec<RouteRule>,
    otherwise: Otherwise,
) -> Result<Route> {
    let rules = check::normalised(rules)?;
    let text = serde_json::to_string(&rules).map_err(Error::internal)?;
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(Error::field(
            "rules",
            format!("must have at most {} KiB", MAX_DOCUMENT_BYTES / 1024),
        ));
    }
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    // Models and devices that the rules name stay until the commit.
    device_catalog::raise_models(core, &mut tx, scope).await?;
    let before = get(&mut tx, scope.tenant_uuid()).await?;
    if before.revision > 0 && before.rules == rules && before.otherwise == otherwise {
        return Ok(before);
    }
    check::require_own(&mut tx, scope, &rules).await?;
    let after = Route::new(rules, otherwise, before.revision + 1, Some(now));
    store::replace(&mut tx, scope, &after, &text, now).await?;
    let audit = Audit::new(scope, "ble_route.update", scope.tenant_uuid(), now);
    tx.commit(audit.changed(Some(audited(&before)), Some(audited(&after))))
        .await?;
    Ok(after)
}

/// The representation in the audit log. Lists are counted.
fn audited(route: &Route) -> Value {
    let count = |layer| {
        route
            .rules
            .iter()
            .filter(|rule| rule.layer == layer)
            .count()
    };
    json!({
        "hubRules": count(RouteLayer::Hub),
        "cloudRules": count(RouteLayer::Cloud),
        "otherwise": route.otherwise,
        "revision": route.revision,
    })
}
