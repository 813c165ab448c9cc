//! Messages of a supplier: the permissions of one of its users changed. A message is signed with
//! the secret that supplier and service share.

use axum::http::StatusCode;
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::TenantUuid;
use secrecy::SecretString;
use serde_json::json;

use super::{SupplierLinks, no_config, store};
use crate::supplier_oauth;

/// The time in which a body counts once.
pub const REPEAT_SECS: i64 = 3600;

/// The secret that a supplier signs with: 404 for a supplier without a configuration, 412 for one
/// without a secret.
pub async fn secret(links: &SupplierLinks, tenant_uuid: TenantUuid) -> Result<SecretString> {
    let core = &links.0.core;
    let target =
        supplier_oauth::registration_target(core, &mut core.db.read().await?, tenant_uuid).await?;
    target.ok_or_else(no_config)?.secret.ok_or_else(|| {
        let message =
            "the supplier has no `registration_shared_secret`, so nothing can be signed with it";
        Error::new(
            StatusCode::PRECONDITION_FAILED,
            "SHARED_SECRET_NOT_SET",
            message,
        )
    })
}

/// Drops the cached permissions of the users of an account at the supplier, on every replica.
/// Returns the number of links to it. A body that came within an hour before changes nothing.
pub async fn permission_changed(
    links: &SupplierLinks,
    tenant_uuid: TenantUuid,
    user_sub: &str,
    body_hash: Vec<u8>,
) -> Result<i64> {
    let core = &links.0.core;
    let now = core.clock.now();
    // An overheard message can be repeated at will, so messages are counted.
    core.turns.webhooks.count(tenant_uuid.0, now)?;
    let mut tx = core.db.begin().await?;
    let count = store::count_by_sub(&mut tx, tenant_uuid, user_sub).await?;
    let since = now.plus_secs(-REPEAT_SECS);
    if !store::is_new_message(&mut tx, tenant_uuid, body_hash, now, since).await? {
        return Ok(count);
    }
    links.0.authn.permissions.wait_out_lease_after(&mut tx);
    let scope = Scope::system("supplier webhook", tenant_uuid);
    let audit = Audit::new(&scope, "supplier_link.permission_changed", user_sub, now);
    tx.commit(audit.with(json!({"links": count}))).await?;
    Ok(count)
}
