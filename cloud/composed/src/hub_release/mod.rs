//! Releasing a hub with everything that depends on it. Its tokens and certificates end, its open
//! jobs, delegations and its own update policy are removed, and its hardware can be claimed by
//! anyone with a claim code, as a new hub. Its records stay with its tenant.

pub mod http;

use axum::http::StatusCode;
use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_exposure::software;
use hub_fleet::certificates::{self, RevocationReason};
use hub_fleet::hubs::{self, Hubs, Releasable, Released};
use hub_fleet::{floor_plans, jobs, setup_delegations, update_policies};
use hub_identity::authn::user::User;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};

use crate::bundles;

/// A hub that is being released, and what ends with it, as represented in the audit log.
type Ended = (Releasable, Value);

/// Releases a hub of the tenant. Fails with 404 also if it was released before.
async fn release(hubs: &Hubs, scope: &Scope, hub_uuid: HubUuid) -> Result<()> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let Ok((before, detail)) = end(&mut tx, hubs, Some(scope), hub_uuid, now).await? else {
        return Err(Error::not_found("hub"));
    };
    let audit = Audit::new(scope, "hub.release", hub_uuid, now);
    tx.commit(audit.changed(Some(before.state()), None).with(detail))
        .await
}

/// Releases a hub of any tenant, and returns when that was. Repeating it changes nothing.
async fn release_any(hubs: &Hubs, admin: &User, hub_uuid: HubUuid) -> Result<Timestamp> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let (before, detail) = match end(&mut tx, hubs, None, hub_uuid, now).await? {
        Ok(ended) => ended,
        Err(released_at) => return Ok(released_at),
    };
    let audit = Audit::new(admin, "hub.release", hub_uuid, now).in_tenant(before.tenant_uuid);
    tx.commit(audit.changed(Some(before.state()), None).with(detail))
        .await?;
    Ok(now)
}

/// The inner error is when the hub was released before.
async fn end(
    tx: &mut Tx,
    hubs: &Hubs,
    scope: Option<&Scope>,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<Result<Ended, Timestamp>> {
    // The policy is deleted before the hub is locked: the worker of update policies locks a policy
    // before hubs.
    let policies = update_policies::delete_of_hub(tx, hub_uuid).await?;
    let Released {
        before,
        certificates,
    } = match hubs::release(tx, &hubs.changes, scope, hub_uuid, now).await? {
        Ok(released) => released,
        Err(released_at) => return Ok(Err(released_at)),
    };
    software::end(tx, before.tenant_uuid, hub_uuid, now).await?;
    let detail = json!({
        "certificates": certificates,
        "jobs": jobs::end_all(tx, hub_uuid, now).await?,
        "setupDelegations": setup_delegations::delete_all(tx, hub_uuid).await?,
        "bundles": bundles::forget_hub(tx, hub_uuid).await?,
        "floorPlans": floor_plans::forget_hub(tx, hub_uuid).await?,
        "updatePolicies": policies,
    });
    Ok(Ok((before, detail)))
}

/// The numbers of objects that ended with a tenant.
pub struct EndedWithTenant {
    pub hubs: u64,
    pub certificates: u64,
    pub jobs: u64,
    pub setup_delegations: u64,
}

/// Releases all hubs of a tenant that is being deleted.
pub async fn release_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<EndedWithTenant> {
    Ok(EndedWithTenant {
        hubs: hubs::release_all(tx, scope, now).await?,
        certificates: certificates::revoke_all(tx, scope, RevocationReason::TenantDeleted, now)
            .await?,
        jobs: jobs::end_all_of_tenant(tx, scope, now).await?,
        setup_delegations: setup_delegations::delete_all_of_tenant(tx, scope).await?,
    })
}

/// Releases a hub whose owner has deleted their account.
pub async fn release_departed(
    hubs: &Hubs,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
) -> Result<()> {
    match release(hubs, &Scope::system("ACCOUNT", tenant_uuid), hub_uuid).await {
        Err(error) if error.status() == StatusCode::NOT_FOUND => Ok(()),
        released => released,
    }
}
