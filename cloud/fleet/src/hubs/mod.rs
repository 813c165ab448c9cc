//! Hubs: their identity, their credentials, what they report about themselves and their desired
//! state. Tokens of hubs are never stored: a row holds the id of the current access token and the
//! hash of the refresh token.

mod adapters;
mod block;
mod changes;
mod claim;
mod clones;
mod countries;
mod floods;
pub mod http;
mod losses;
mod pace;
mod permits;
mod readmit;
mod refresh;
mod refreshes;
pub mod refusals;
mod release;
mod store;
mod versions;

use std::collections::{BTreeMap, HashSet};

use hub_base::db::{Conn, Slice, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authn::Authn;
use hub_identity::authz::Scope;
use hub_protocol::hub::{AdapterRole, UploadPauses};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};

pub use adapters::{AdapterView, normalized_address};
pub use block::{block, unblock};
pub use changes::{Changes, Watch, Woken};
pub use claim::{AtClaim, Claiming, claim};
pub use clones::{note_clones, suspected as suspected_clones};
pub use floods::{Flooding, all_flooding, flooding};
pub use losses::{MANY_LOST, lost, missing};
pub use pace::adjust_paces;
pub use permits::CredentialPermits;
pub use readmit::{Expiring, expiring};
pub use refresh::refresh;
pub use refreshes::close_refreshes;
pub use release::{Released, release, release_all};
use store::HubRow;
pub use store::consent::Concerned;
pub use store::departure::Ownership;
pub use store::watch::{Connecting, HubCounts, SilentHub, silent_since};
pub use store::{Addressee, HubState, Releasable};
pub use store::{
    architecture, consent::owned, departure::forget_names, departure::ownership, lock_all, owner,
    set_agent_version, state, touch,
};

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

/// The given hubs that belong to the tenant, or did before they were released.
pub async fn own(conn: &mut Conn, scope: &Scope, hubs: &[HubUuid]) -> Result<HashSet<HubUuid>> {
    if hubs.is_empty() {
        return Ok(HashSet::new());
    }
    store::own(conn, scope, hubs).await.map(HashSet::from_iter)
}

/// The given hubs that belong to the tenant now. They are not released until the transaction ends.
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

/// Locks a hub of the tenant, or fails with 404. No other transaction changes the hub or its
/// dependents until this one ends.
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

/// The settings of a hub, and of all hubs of its tenant.
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
    let changed = store::consent::settle(tx, tenant_uuid, concerned).await?;
    changed
        .iter()
        .for_each(|hub_uuid| changes.notify_after(tx, *hub_uuid));
    Ok(changed.len())
}

/// Whether the hub reports no BLE events, for want of consent.
pub async fn withholds_events(conn: &mut Conn, hub_uuid: HubUuid) -> Result<bool> {
    store::consent::withholds(conn, hub_uuid).await
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

/// The roles that operators set for the hub's adapters.
pub async fn adapter_roles(
    conn: &mut Conn,
    hub_uuid: HubUuid,
) -> Result<BTreeMap<String, AdapterRole>> {
    store::adapters::roles(conn, hub_uuid).await
}

/// The number of hubs of all tenants, and of those that are online.
pub async fn count_all(conn: &mut Conn, now: Timestamp) -> Result<(i64, i64)> {
    store::count_all(conn, now.plus_secs(-ONLINE_SECS)).await
}

/// The hubs of the tenant that fit, newest first, and how many there are.
async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filters: store::list::Filters,
    now: Timestamp,
    slice: Slice,
) -> Result<(Vec<store::HubRow>, i64)> {
    store::list::list(conn, scope, filters, now.plus_secs(-ONLINE_SECS), slice).await
}

/// The tenant's number of hubs, and of those that are online or blocked.
pub async fn counts(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<HubCounts> {
    store::watch::counts(conn, scope, now.plus_secs(-ONLINE_SECS)).await
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
        labels.extend(store::watch::labels(conn, scope, some).await?);
    }
    Ok(labels)
}

/// The given hubs through which the tenant could reach devices, if they are online.
pub async fn connecting(
    conn: &mut Conn,
    scope: &Scope,
    hubs: &[HubUuid],
) -> Result<Vec<Connecting>> {
    match hubs.is_empty() {
        true => Ok(Vec::new()),
        false => store::watch::connecting(conn, scope, hubs).await,
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
    store::adapters::list(conn, scope, hub_uuid).await
}

async fn get(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<HubRow> {
    store::get(conn, scope, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))
}

/// Changes the hub's label, description and country; an empty text removes them.
async fn update(
    hubs: &Hubs,
    scope: &Scope,
    hub_uuid: HubUuid,
    changes: (Option<&str>, Option<&str>, Option<&str>),
) -> Result<()> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let before = store::lock_labels(&mut tx, scope, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))?;
    let after = store::update(&mut tx, scope, hub_uuid, changes).await?;
    let audit = Audit::new(scope, "hub.update", hub_uuid, now);
    hubs.changes.notify_after(&mut tx, hub_uuid);
    tx.commit(audit.changed(Some(label_state(before)), Some(label_state(after))))
        .await
}

/// The representation in the audit log.
fn label_state((hub_identifier, description, country): store::Labels) -> Value {
    json!({"hubIdentifier": hub_identifier, "description": description, "country": country})
}

fn blocked(status: axum::http::StatusCode) -> Error {
    Error::new(
        status,
        "HUB_BLOCKED",
        "this hub is blocked; contact support",
    )
}
