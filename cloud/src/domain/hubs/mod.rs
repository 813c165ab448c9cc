//! Hubs: their identity, their credentials, what they report about themselves and what is wanted of them. A hub's tokens are never stored:
//! its row holds the id of the one access token in force and the hash of the refresh token.

mod adapter_store;
mod adapters;
mod block;
mod changes;
mod claim;
pub mod desired;
pub mod http;
mod refresh;
mod store;
mod turns;

pub use adapters::normalized_address;
pub use block::{block, revoke_all, unblock};
pub use changes::{Changes, look_for_changes};
pub use claim::claim;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
pub use refresh::refresh;
use serde_json::{Value, json};
pub use store::Addressee;
use store::HubRow;
pub use turns::Turns;
use uuid::Uuid;

use crate::app::App;
use crate::authz::Scope;
use crate::db::{Conn, Tx};
use crate::domain::audit::Audit;
use crate::error::{Error, Result};

/// Longest label of a hub.
const MAX_IDENTIFIER_CHARS: usize = 200;

/// The id of the one access token of the hub that is in force; nothing when there is none.
pub async fn token_in_force(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Uuid>> {
    store::token_in_force(conn, hub_uuid).await
}

/// As [`token_in_force`]; nobody else changes the hub's credentials until the transaction ends.
pub async fn lock_token(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<Uuid>> {
    Ok(store::credentials(tx, hub_uuid).await?.and_then(|held| held.access_token_id))
}

/// 404 unless the tenant has the hub.
pub async fn require(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<()> {
    match store::exists(conn, scope, hub_uuid).await? {
        true => Ok(()),
        false => Err(Error::not_found("hub")),
    }
}

/// The tenant's hub, or 404; nobody else changes it, or what hangs on it, until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, hub_uuid: HubUuid) -> Result<Addressee> {
    store::lock(tx, Some(scope), hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))
}

/// As [`lock`], for the platform and for work that goes over the hubs of all tenants.
pub async fn lock_any(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Addressee> {
    store::lock(tx, None, hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))
}

/// The tenant of a hub, for the platform and for whoever compares it with their own.
pub async fn owner(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<TenantUuid>> {
    store::owner(conn, hub_uuid).await
}

/// As [`lock_any`], of some hundred hubs, in the order in which everybody locks them.
pub async fn lock_all(tx: &mut Tx, hubs: &[HubUuid]) -> Result<()> {
    store::lock_all(tx, hubs).await
}

/// Notes that the hub was in touch; locks it as [`lock`] does.
pub async fn touch(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<()> {
    store::touch(tx, hub_uuid, now).await
}

/// Notes which agent the hub runs now.
pub async fn set_agent_version(tx: &mut Tx, hub_uuid: HubUuid, version: &str) -> Result<()> {
    store::set_agent_version(tx, hub_uuid, version).await
}

/// What the hub said its machine is when it was claimed, as `uname -m` names it.
pub async fn architecture(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<String>> {
    store::architecture(conn, hub_uuid).await
}

async fn get(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<HubRow> {
    store::get(conn, scope, hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))
}

/// Changes the hub's label and description; empty text takes them away.
async fn update(
    app: &App,
    scope: &Scope,
    hub_uuid: HubUuid,
    hub_identifier: Option<&str>,
    description: Option<&str>,
) -> Result<()> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let before = store::lock_labels(&mut tx, scope, hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))?;
    let after = store::update(&mut tx, scope, hub_uuid, hub_identifier, description).await?;
    let audit = Audit::new(scope, "hub.update", hub_uuid, now);
    tx.commit(audit.changed(Some(label_state(before)), Some(label_state(after)))).await?;
    desired::changed(app, hub_uuid).await;
    Ok(())
}

/// As the audit log shows it.
fn label_state((hub_identifier, description): store::Labels) -> Value {
    json!({"hubIdentifier": hub_identifier, "description": description})
}

fn blocked(status: axum::http::StatusCode) -> Error {
    Error::new(status, "HUB_BLOCKED", "this hub is blocked; contact support")
}
