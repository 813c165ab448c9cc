//! Hubs: their identity, their credentials, what they report about themselves and their desired
//! state. Tokens of hubs are never stored: a row holds the id of the current access token and the
//! hash of the refresh token.

mod adapter_store;
mod adapters;
mod block;
mod changes;
mod claim;
mod consent_store;
mod departure_store;
pub mod http;
mod list_store;
mod pace;
mod pace_store;
mod permits;
mod refresh;
mod refresh_store;
mod refreshes;
mod release;
mod store;
mod versions;
mod watch_store;

use std::collections::{BTreeMap, HashSet};

use hub_protocol::hub::{AdapterRole, UploadPauses};
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::{Value, json};

use crate::audit::Audit;
use crate::authn::Authn;
use crate::authz::Scope;
use crate::core::Core;
use crate::db::{Conn, Slice, Tx};
use crate::error::{Error, Result};
pub use adapters::{AdapterView, normalized_address};
pub use block::{block, unblock};
pub use changes::{Changes, Watch, Woken};
pub use claim::{AtClaim, Claiming, claim};
pub use consent_store::Concerned;
pub use departure_store::Ownership;
pub use pace::adjust_paces;
pub use permits::CredentialPermits;
pub use refresh::refresh;
pub use refreshes::close_refreshes;
pub use release::{Released, release, release_all};
use store::HubRow;
pub use store::{Addressee, HubState, Releasable};
pub use watch_store::{Connecting, HubCounts, SilentHub, silent_since};

/// A hub is online for this long after telemetry.
const ONLINE_SECS: i64 = 10 * 60;
/// Maximum length of a hub's label.
const MAX_IDENTIFIER_CHARS: usize = 200;

/// State of the hub handlers.
#[derive(Clone)]
pub struct Hubs {
    pub core: Core,
    pub authn: Authn,
    pub changes: Changes,
    pub permits: CredentialPermits,
}

/// Fails with 404 unless the hub belongs to the tenant.
pub async fn require(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<()> {
    match store::exists(conn, scope, hub_uuid).await? {
        true => Ok(()),
        false => Err(Error::not_found("hub")),
    }
}

/// As [`require`], for a hub's records, which stay with the tenant after the hub was released.
pub async fn require_past_or_present(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
) -> Result<()> {
    match store::existed(conn, scope, hub_uuid).await? {
        true => Ok(()),
        false => Err(Error::not_found("hub")),
    }
}

/// Which of these hubs are the tenant's, or were before they were released.
pub async fn own(conn: &mut Conn, scope: &Scope, hubs: &[HubUuid]) -> Result<HashSet<HubUuid>> {
    if hubs.is_empty() {
        return Ok(HashSet::new());
    }
    store::own(conn, scope, hubs).await.map(HashSet::from_iter)
}

/// Which of these hubs are the tenant's now. They are not released until the transaction ends.
pub async fn lock_present(
    tx: &mut Tx,
    scope: &Scope,
    hubs: &[HubUuid],
) -> Result<HashSet<HubUuid>> {
    if hubs.is_empty() {
        return Ok(HashSet::new());
    }
    store::lock_present(tx, scope, hubs)
        .await
        .map(HashSet::from_iter)
}

/// When these hubs were last in contact, as far as they are the tenant's.
pub async fn last_seen(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuids: &[HubUuid],
) -> Result<BTreeMap<HubUuid, Timestamp>> {
    match hub_uuids.is_empty() {
        true => Ok(BTreeMap::new()),
        false => store::last_seen(conn, scope, hub_uuids).await,
    }
}

/// Locks a hub of the tenant, or fails with 404. Nobody else changes the hub or what depends on it
/// until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, hub_uuid: HubUuid) -> Result<Addressee> {
    store::lock(tx, Some(scope), hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))
}

/// Like [`lock`], for the platform.
pub async fn lock_any(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Addressee> {
    store::lock(tx, None, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))
}

/// Like [`lock_any`]; None if there is no such hub, or it was released.
pub async fn find_and_lock(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<Addressee>> {
    store::lock(tx, None, hub_uuid).await
}

/// The tenant of a hub, for the platform and for callers that compare it with their own tenant.
pub async fn owner(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<TenantUuid>> {
    store::owner(conn, hub_uuid).await
}

/// Like [`lock`], for some hundred hubs of any tenants, in the common lock order.
pub async fn lock_all(tx: &mut Tx, hubs: &[HubUuid]) -> Result<()> {
    store::lock_all(tx, hubs).await
}

/// Records that the hub was in contact, and locks it like [`lock`].
pub async fn touch(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<()> {
    store::touch(tx, hub_uuid, now).await
}

/// Records the version of the agent that the hub runs.
pub async fn set_agent_version(tx: &mut Tx, hub_uuid: HubUuid, version: &str) -> Result<()> {
    store::set_agent_version(tx, hub_uuid, version).await
}

/// The architecture that the hub reported when it was claimed, as in `uname -m`.
pub async fn architecture(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<String>> {
    store::architecture(conn, hub_uuid).await
}

/// What identifies the hub's desired state now; None if there is no such hub.
pub async fn state(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<HubState>> {
    store::state(conn, hub_uuid).await
}

/// What is set for a hub, and for all hubs of its tenant.
pub struct Settings {
    /// The revision of the desired state that has these settings.
    pub revision: i64,
    /// The hub's label.
    pub hub_identifier: Option<String>,
    /// None until the pace of its tenant is known.
    pub uploads: Option<UploadPauses>,
    /// Whether it reports no BLE events, for want of consent.
    pub withhold_events: bool,
}

/// Makes hubs of the tenant, which is locked, follow what their owners have consented to. Those
/// that change hear of it at once. Returns how many.
pub async fn settle_consent(
    tx: &mut Tx,
    changes: &Changes,
    tenant_uuid: TenantUuid,
    concerned: Concerned,
) -> Result<usize> {
    let changed = consent_store::settle(tx, tenant_uuid, concerned).await?;
    changed
        .iter()
        .for_each(|hub_uuid| changes.notify_after(tx, *hub_uuid));
    Ok(changed.len())
}

/// Whether the hub reports no BLE events, for want of consent.
pub async fn withholds_events(conn: &mut Conn, hub_uuid: HubUuid) -> Result<bool> {
    consent_store::withholds(conn, hub_uuid).await
}

/// The hubs of the tenant that a claim code was made out to this person for.
pub async fn owned(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
) -> Result<Vec<HubUuid>> {
    consent_store::owned(conn, tenant_uuid, user_uuid).await
}

/// The hub's settings. The hub must exist.
pub async fn settings(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Settings> {
    let row = store::settings(conn, hub_uuid).await?;
    let uploads = row
        .pause_ms
        .map(|pause_ms| pace::pauses(pause_ms, row.upload_slot));
    Ok(Settings {
        revision: row.revision,
        hub_identifier: row.hub_identifier,
        uploads,
        withhold_events: row.withholds_events,
    })
}

/// The roles that operators gave to the hub's adapters.
pub async fn adapter_roles(
    conn: &mut Conn,
    hub_uuid: HubUuid,
) -> Result<BTreeMap<String, AdapterRole>> {
    adapter_store::roles(conn, hub_uuid).await
}

/// How many hubs there are, of all tenants, and how many of them are online.
pub async fn count_all(conn: &mut Conn, now: Timestamp) -> Result<(i64, i64)> {
    store::count_all(conn, now.plus_secs(-ONLINE_SECS)).await
}

/// The hubs of the tenant that fit, newest first, and how many there are.
async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filters: list_store::Filters,
    now: Timestamp,
    slice: Slice,
) -> Result<(Vec<store::HubRow>, i64)> {
    list_store::list(conn, scope, filters, now.plus_secs(-ONLINE_SECS), slice).await
}

/// How many hubs the tenant has, and how many of them are online or blocked.
pub async fn counts(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<HubCounts> {
    watch_store::counts(conn, scope, now.plus_secs(-ONLINE_SECS)).await
}

/// The labels of these hubs, as far as they are the tenant's and not released.
pub async fn labels(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuids: &[HubUuid],
) -> Result<BTreeMap<HubUuid, Option<String>>> {
    const AT_ONCE: usize = 500;
    let mut labels = BTreeMap::new();
    for some in hub_uuids.chunks(AT_ONCE) {
        labels.extend(watch_store::labels(conn, scope, some).await?);
    }
    Ok(labels)
}

/// Those of these hubs through which the tenant could reach devices, were they online.
pub async fn connecting(
    conn: &mut Conn,
    scope: &Scope,
    hubs: &[HubUuid],
) -> Result<Vec<Connecting>> {
    match hubs.is_empty() {
        true => Ok(Vec::new()),
        false => watch_store::connecting(conn, scope, hubs).await,
    }
}

/// Whether a hub with this last telemetry is online.
pub fn is_online(last_telemetry_at: Option<Timestamp>, now: Timestamp) -> bool {
    last_telemetry_at.is_some_and(|at| at.plus_secs(ONLINE_SECS) > now)
}

/// The adapters of a hub of the tenant.
pub async fn adapters(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
) -> Result<Vec<AdapterView>> {
    adapter_store::list(conn, scope, hub_uuid).await
}

async fn get(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<HubRow> {
    store::get(conn, scope, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))
}

/// Changes the hub's label and description; an empty text removes them.
async fn update(
    hubs: &Hubs,
    scope: &Scope,
    hub_uuid: HubUuid,
    hub_identifier: Option<&str>,
    description: Option<&str>,
) -> Result<()> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let before = store::lock_labels(&mut tx, scope, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))?;
    let after = store::update(&mut tx, scope, hub_uuid, hub_identifier, description).await?;
    let audit = Audit::new(scope, "hub.update", hub_uuid, now);
    hubs.changes.notify_after(&mut tx, hub_uuid);
    tx.commit(audit.changed(Some(label_state(before)), Some(label_state(after))))
        .await
}

/// The representation in the audit log.
fn label_state((hub_identifier, description): store::Labels) -> Value {
    json!({"hubIdentifier": hub_identifier, "description": description})
}

fn blocked(status: axum::http::StatusCode) -> Error {
    Error::new(
        status,
        "HUB_BLOCKED",
        "this hub is blocked; contact support",
    )
}

/// Whose a hub is, and until when it was. None if there is no such hub.
pub async fn ownership(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Ownership>> {
    departure_store::ownership(conn, hub_uuid).await
}

/// Deletes what a released hub was called, and the addresses that it called from.
pub async fn forget_names(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    departure_store::forget_names(tx, hub_uuid).await
}
