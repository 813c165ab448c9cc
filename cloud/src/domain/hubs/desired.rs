//! What the service wants of a hub, and how a hub learns of it the moment it changes. Whoever changes something here bumps the hub's revision in the
//! same transaction and calls [`changed`] after it; a waiting request holds no connection to the database.

use std::time::Duration;

use hub_protocol::hub::{DesiredState, HubSettings, ScanConfig};
use hub_protocol::{HubUuid, TenantUuid};
use tokio::time::Instant;

use super::changes::Watch;
use super::{adapter_store, store};
use crate::app::App;
use crate::authn::hub::Hub;
use crate::authn::invalid_token;
use crate::db::Tx;
use crate::domain::{jobs, policies};
use crate::error::Result;
use crate::http::etag::{IfNoneMatch, Tagged};

/// The revision of the one scan configuration there is until a tenant can describe its devices.
const SCAN_CONFIG_REVISION: i64 = 1;

/// Notes that something in the hub's desired state changed; answers the new revision, if there is such a hub.
pub async fn bump(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<i64>> {
    store::bump_desired_revision(tx, hub_uuid).await
}

/// As [`bump`], of hubs that the transaction holds.
pub async fn bump_all(tx: &mut Tx, hubs: &[HubUuid]) -> Result<()> {
    match hubs.is_empty() {
        true => Ok(()),
        false => store::bump_all(tx, hubs).await,
    }
}

/// As [`bump`], of all hubs of a tenant, which it locks in key order; answers which those are.
pub async fn bump_tenant(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<Vec<HubUuid>> {
    store::bump_tenant(tx, tenant_uuid).await
}

/// Wakes the hub if it waits; for after the commit.
pub async fn changed(app: &App, hub_uuid: HubUuid) {
    app.hub_changes.notify(hub_uuid).await;
}

/// The desired state, unless the hub has it. With a `wait` the answer is held until the state differs from what the hub has or, if it
/// does not say what that is, from what it was when asked for; at the latest, until the wait is over or the service ends.
pub async fn desired_state(app: &App, hub: &Hub, known: &IfNoneMatch, wait: Duration) -> Result<Tagged<DesiredState>> {
    let deadline = Instant::now() + wait;
    // Made before the state is first read, so that no change falls in between.
    let mut watch = match wait.is_zero() {
        true => None,
        false => Some(app.hub_changes.watch(hub.hub_uuid)?),
    };
    // What is boxed here is gone while the request waits: thousands do.
    let at_first = Box::pin(current_etag(app, hub, watch.as_ref())).await?;
    let mut etag = at_first.clone();
    let held = known.matches(&at_first) || known.is_absent();
    while let Some(watch) = watch.as_mut().filter(|_| held && etag == at_first) {
        tokio::select! {
            () = watch.changed() => {}
            () = tokio::time::sleep_until(deadline) => {}
            () = app.shutdown.cancelled() => break,
        }
        etag = Box::pin(current_etag(app, hub, Some(watch))).await?;
        if Instant::now() >= deadline {
            break;
        }
    }
    if etag == at_first && known.matches(&at_first) {
        return Ok(Tagged { etag, body: None });
    }
    let (etag, state) = Box::pin(read(app, hub)).await?;
    Ok(Tagged { etag, body: Some(state) })
}

fn etag_of(revision: i64) -> String {
    format!("\"{revision}.{SCAN_CONFIG_REVISION}\"")
}

/// Also ends the wait of a hub that was blocked or got a new token meanwhile.
async fn current_etag(app: &App, hub: &Hub, watch: Option<&Watch<'_>>) -> Result<String> {
    let mut conn = app.db.read().await?;
    let stand = store::token_and_revision(&mut conn, hub.hub_uuid).await?;
    drop(conn);
    if let (Some(watch), Some(stand)) = (watch, stand) {
        watch.has_read(stand);
    }
    match stand {
        Some((Some(token_id), revision)) if token_id == hub.token_id => Ok(etag_of(revision)),
        _ => Err(invalid_token()),
    }
}

async fn read(app: &App, hub: &Hub) -> Result<(String, DesiredState)> {
    let mut conn = app.db.read().await?;
    // The revision comes first: a change between the reads is delivered twice rather than not at all.
    let (revision, hub_identifier) = store::settings(&mut conn, hub.hub_uuid).await?;
    let adapter_roles = adapter_store::roles(&mut conn, hub.hub_uuid).await?;
    let apps = jobs::wanted_apps(&mut conn, hub.hub_uuid).await?;
    let agent = policies::desired_agent(&mut conn, hub.hub_uuid).await?;
    drop(conn);
    let state = DesiredState {
        revision,
        agent,
        apps,
        jobs: jobs::hand_out(app, hub.hub_uuid).await?,
        scan_config_revision: SCAN_CONFIG_REVISION,
        settings: HubSettings { hub_identifier, adapter_roles },
    };
    Ok((etag_of(revision), state))
}

/// What the tenant's hubs should know to recognise its devices: nothing yet, since a tenant cannot describe any.
pub fn scan_config(known: &IfNoneMatch) -> Tagged<ScanConfig> {
    let etag = format!("\"{SCAN_CONFIG_REVISION}\"");
    let config = || ScanConfig {
        revision: SCAN_CONFIG_REVISION,
        devices: Vec::new(),
        identifiers: Vec::new(),
        protocols: Vec::new(),
        routes: Vec::new(),
    };
    let body = (!known.matches(&etag)).then(config);
    Tagged { etag, body }
}
