//! Registration events on their way to the suppliers: pushed by background work, shown to the
//! platform, and tried again at its request. The outbox itself is `hub_core::outbox`.

pub mod http;
mod push;

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::outbox::{self, Stored};
use hub_identity::authn::user::User;

pub use push::Pushes;

/// Requeues an event: it is pending, due now, and has its full number of attempts.
async fn retry(core: &Core, admin: &User, id: i64) -> Result<Stored> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let before = outbox::find(&mut tx, id)
        .await?
        .ok_or_else(|| Error::not_found("registration event"))?;
    let after = outbox::retry(&mut tx, id, now).await?;
    outbox::push(core, &mut tx, after.tenant_uuid, now).await?;
    let audit = Audit::new(admin, "registration_event.retry", id, now).in_tenant(after.tenant_uuid);
    let state = |status: outbox::Status| Some(serde_json::json!({"status": status}));
    tx.commit(audit.changed(state(before.status), state(after.status)))
        .await?;
    Ok(after)
}
