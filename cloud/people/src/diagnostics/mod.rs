//! Shows how the service sees a caller and what it caches about callers, to explain why a request
//! is refused. A caller sees only its own data.

pub mod http;

use hub_base::error::Result;
use hub_core::audit::Audit;
use hub_identity::authn::Authn;
use hub_identity::authn::Statistics;
use hub_identity::authn::user::User;

/// Clears the permission cache on every replica.
async fn forget_permissions(authn: &Authn, admin: &User) -> Result<Statistics> {
    let mut tx = authn.core.db.begin().await?;
    let forgotten = authn.permissions.statistics();
    authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(Audit::new(
        admin,
        "permission_cache.clear",
        "permission-cache",
        authn.core.clock.now(),
    ))
    .await?;
    Ok(forgotten)
}
