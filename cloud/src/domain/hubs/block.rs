//! Shutting a hub out, and letting it claim itself again. Both are the platform's, and doing either again changes nothing. A tenant that goes takes its
//! hubs' tokens with it.

use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Value, json};

use super::{desired, store};
use crate::app::App;
use crate::authn::user::User;
use crate::authz::Scope;
use crate::db::Tx;
use crate::domain::audit::Audit;
use crate::domain::certificates::{self, Because};
use crate::error::{Error, Result};

/// Revokes every token and certificate of the hub; it can neither claim nor refresh until it is unblocked. Answers since when.
pub async fn block(app: &App, admin: &User, hub_uuid: HubUuid) -> Result<Timestamp> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let (tenant_uuid, blocked_at) =
        store::block_state(&mut tx, hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))?;
    if let Some(blocked_at) = blocked_at {
        return Ok(blocked_at);
    }
    store::block(&mut tx, hub_uuid, now).await?;
    let detail = json!({"certificates": certificates::revoke(&mut tx, hub_uuid, Because::Blocked, now).await?});
    let audit = Audit::by_user(admin, "hub.block", hub_uuid, now).in_tenant(tenant_uuid).with(detail);
    tx.commit(audit.changed(Some(state(None)), Some(state(Some(now))))).await?;
    // A request of the hub that waits is ended.
    desired::changed(app, hub_uuid).await;
    Ok(now)
}

/// The hub may claim itself again with a fresh code, and is then the same hub; the tokens from before stay dead.
pub async fn unblock(app: &App, admin: &User, hub_uuid: HubUuid) -> Result<()> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let (tenant_uuid, blocked_at) =
        store::block_state(&mut tx, hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))?;
    if blocked_at.is_none() {
        return Ok(());
    }
    store::unblock(&mut tx, hub_uuid).await?;
    let audit = Audit::by_user(admin, "hub.unblock", hub_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(Some(state(blocked_at)), Some(state(None)))).await
}

/// As the audit log shows it.
fn state(blocked_at: Option<Timestamp>) -> Value {
    json!({"blockedAt": blocked_at})
}

/// Revokes the tokens of all hubs of a tenant that goes; answers how many hubs that are. Requests of theirs that wait look for themselves, and end.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    store::revoke_all(tx, scope).await
}
