//! The end of a tenant. Its rows stay, and nothing that belongs to it opens a door any more: for whoever asks, it is not there.

use serde_json::json;

use super::{Locked, locked, store};
use crate::app::App;
use crate::authz::permission::OWN;
use crate::authz::{Scope, require};
use crate::domain::audit::Audit;
use crate::domain::certificates::{self, Because};
use crate::domain::{claim_codes, hubs, invitations, transfers};
use crate::error::Result;

/// Deletes the tenant, and with it what could still act for it or come into it: members and API keys find no tenant, its hubs' tokens and certificates and its
/// claim codes are revoked, invitations and transfers that are under way come to nothing. When this returns, that holds on every replica.
pub async fn delete(app: &App, scope: &Scope) -> Result<()> {
    let now = app.clock.now();
    let Locked { mut tx, name, role } = locked(app, scope).await?;
    require(role, OWN)?;
    store::mark_deleted(&mut tx, scope, now).await?;
    let detail = json!({
        "hubs": hubs::revoke_all(&mut tx, scope).await?,
        "certificates": certificates::revoke_all(&mut tx, scope, Because::TenantDeleted, now).await?,
        "claimCodes": claim_codes::revoke_all(&mut tx, scope, now).await?,
        "invitations": invitations::withdraw_all(&mut tx, scope, now).await?,
        "transfers": transfers::cancel_all(&mut tx, scope, now).await?,
    });
    let audit = Audit::new(scope, "tenant.delete", scope.tenant_uuid(), now);
    tx.commit(audit.changed(Some(json!({"name": name})), None).with(detail)).await?;
    app.permissions.settle().await;
    Ok(())
}
