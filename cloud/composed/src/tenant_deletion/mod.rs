//! Deletion of a tenant. Its rows are kept, but nothing that belongs to it authorizes anything any
//! more: callers get the same responses as if it did not exist.

pub mod http;

use hub_base::error::Result;
use hub_core::audit::Audit;
use hub_core::outbox;
use hub_devices::{dashboards, device_instances, external_endpoints};
use hub_exposure::{dependency_track, release_documents, software, vulnerabilities};
use hub_fleet::hubs::Hubs;
use hub_fleet::{claim_codes, floor_plans, jobs};
use hub_identity::authz::permission::OWN;
use hub_identity::authz::{Scope, require};
use hub_people::tenants::{self, Locked};
use hub_people::{invitations, supplier_links, supplier_oauth, transfers};
use hub_pipelines as pipelines;
use serde_json::json;

use crate::{bundles, hub_release, mandates, notices, partner_projects};

/// Deletes the tenant and everything that could still act for it or join it: members and API keys
/// no longer find it, its hubs are released, its claim codes are revoked, pending invitations and
/// transfers are cancelled, its bundles are archived, and its pipelines, its floor plans, the keys
/// of its devices and the credentials of its endpoints are deleted. When this returns, the deletion
/// is in effect on every replica.
pub async fn delete(hubs: &Hubs, scope: &Scope) -> Result<()> {
    let now = hubs.core.clock.now();
    let Locked { mut tx, name, role } = tenants::locked(&hubs.core, scope).await?;
    require(role, OWN)?;
    tenants::mark_deleted(&mut tx, scope, now).await?;
    let ended = hub_release::release_all(&mut tx, scope, now).await?;
    let detail = json!({
        "hubs": ended.hubs,
        "certificates": ended.certificates,
        "jobs": ended.jobs,
        "setupDelegations": ended.setup_delegations,
        "claimCodes": claim_codes::revoke_all(&mut tx, scope, now).await?,
        "invitations": invitations::revoke_all_open(&mut tx, scope, now).await?,
        "transfers": transfers::cancel_all(&mut tx, scope, now).await?,
        "bundles": bundles::archive_all(&mut tx, scope, now).await?,
        "pipelines": pipelines::delete_all(&mut tx, scope.tenant_uuid()).await?,
        "deviceKeys": device_instances::forget_keys(&mut tx, scope).await?,
        "supplierLinks": supplier_links::revoke_all(&mut tx, scope, now).await?,
        "partnerProjects": partner_projects::leave_all(&mut tx, scope).await?,
        "mandates": mandates::end_all(&mut tx, scope, now).await?,
        "floorPlans": floor_plans::delete_all(&mut tx, scope).await?,
        "dashboards": dashboards::delete_all(&mut tx, scope).await?,
        "endpointCredentials": external_endpoints::forget_auth(&mut tx, scope).await?,
    });
    supplier_oauth::forget(&mut tx, scope).await?;
    notices::forget(&mut tx, scope).await?;
    release_documents::forget_all(&mut tx, scope.tenant_uuid()).await?;
    jobs::forget_periods(&mut tx, scope.tenant_uuid()).await?;
    dependency_track::forget_all(&mut tx, scope.tenant_uuid()).await?;
    software::forget_all(&mut tx, scope.tenant_uuid()).await?;
    vulnerabilities::forget_all(&mut tx, scope.tenant_uuid()).await?;
    outbox::push(&hubs.core, &mut tx, scope.tenant_uuid(), now).await?;
    let audit = Audit::new(scope, "tenant.delete", scope.tenant_uuid(), now);
    hubs.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(
        audit
            .changed(Some(json!({"name": name})), None)
            .with(detail),
    )
    .await?;
    Ok(())
}
