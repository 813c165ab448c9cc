//! The desired state of a hub: a view over hubs, jobs and update policies, and the long poll that
//! waits for it to change. It owns no table. Code that changes a part of it bumps the hub's
//! revision through `hubs::Changes`.

pub mod http;

use std::collections::HashMap;
use std::time::Duration;

use hub_base::error::Result;
use hub_core::http::etag::{IfNoneMatch, Tagged};
use hub_fleet::hubs::{self, Hubs, Watch, Woken};
use hub_fleet::{jobs, update_policies};
use hub_identity::authn::hub::Hub;
use hub_identity::authn::invalid_token;
use hub_protocol::TenantUuid;
use hub_protocol::hub::{DesiredState, HubSettings};
use tokio::time::{Instant, MissedTickBehavior};

use crate::scan_config;

/// The interval of reading the catalogs' revisions of tenants with waiting hubs. All changes in
/// between wake a hub once.
const CATALOG_INTERVAL: Duration = Duration::from_secs(1);
/// The pause between two steps in which hubs are woken by a changed catalog.
const WAKE_PAUSE: Duration = Duration::from_millis(100);

/// Returns the desired state, unless the hub has it already. With `wait`, the response is delayed
/// until the state differs from the hub's version or, if the hub sends none, from the version at
/// the start of the request; at most until `wait` has passed, the hub sends another request that
/// waits, or the service shuts down.
pub async fn desired_state(
    hubs: &Hubs,
    hub: &Hub,
    known: &IfNoneMatch,
    wait: Duration,
) -> Result<Tagged<DesiredState>> {
    let deadline = Instant::now() + wait;
    // The watch begins before the first read of the state, so that no change is missed in between.
    let mut watch = match wait.is_zero() {
        true => None,
        false => Some(hubs.changes.watch(hub.hub_uuid, hub.tenant_uuid)?),
    };
    // The future is boxed, so that its memory is freed while the request waits: thousands wait at
    // once.
    let (initial, mut scan_revision) = Box::pin(current_etag(hubs, hub, watch.as_ref())).await?;
    let mut etag = initial.clone();
    let is_held = known.matches(&initial) || known.is_absent();
    while let Some(watch) = watch.as_mut().filter(|_| is_held && etag == initial) {
        tokio::select! {
            woken = watch.changed() => if woken == Woken::Replaced {
                break;
            },
            () = tokio::time::sleep_until(deadline) => {}
            () = hubs.core.shutdown.cancelled() => break,
        }
        (etag, scan_revision) = Box::pin(current_etag(hubs, hub, Some(watch))).await?;
        if Instant::now() >= deadline {
            break;
        }
    }
    if etag == initial && known.matches(&initial) {
        return Ok(Tagged { etag, body: None });
    }
    let (etag, state) = Box::pin(read(hubs, hub, scan_revision)).await?;
    Ok(Tagged {
        etag,
        body: Some(state),
    })
}

/// The tag of a state. The scan configuration is a part of the state of each hub of its tenant, so
/// that a change of it needs no write for each hub.
fn etag_of(revision: i64, scan_revision: i64) -> String {
    format!("\"{revision}.{scan_revision}\"")
}

/// The tag, and the revision of the scan configuration in it. Also ends the wait of a hub that was
/// blocked or got a new token.
async fn current_etag(hubs: &Hubs, hub: &Hub, watch: Option<&Watch<'_>>) -> Result<(String, i64)> {
    let mut conn = hubs.core.db.read().await?;
    let state = hubs::state(&mut conn, hub.hub_uuid).await?;
    let scan_revision = scan_config::revision(&mut conn, hub.tenant_uuid).await?;
    drop(conn);
    if let (Some(watch), Some(state)) = (watch, &state) {
        watch.has_read(state.version(), scan_revision);
    }
    match state {
        Some(state) if state.token_id == Some(hub.token_id) => {
            Ok((etag_of(state.revision(), scan_revision), scan_revision))
        }
        _ => Err(invalid_token()),
    }
}

/// The state with a revision of the scan configuration that was read just before.
async fn read(hubs: &Hubs, hub: &Hub, scan_revision: i64) -> Result<(String, DesiredState)> {
    let mut conn = hubs.core.db.read().await?;
    // The revisions are read first: a change between the reads is delivered twice rather than
    // never.
    let hubs::Settings {
        revision,
        hub_identifier,
        uploads,
        withhold_events,
    } = hubs::settings(&mut conn, hub.hub_uuid).await?;
    let adapter_roles = hubs::adapter_roles(&mut conn, hub.hub_uuid).await?;
    let apps = jobs::desired_apps(&mut conn, hub.hub_uuid).await?;
    let agent = update_policies::desired_agent(&mut conn, hub.hub_uuid).await?;
    drop(conn);
    let state = DesiredState {
        // Both only grow, so the sum differs for every state.
        revision: revision + scan_revision,
        agent,
        apps,
        jobs: jobs::dispatch(&hubs.core, hub.hub_uuid).await?,
        scan_config_revision: scan_revision,
        settings: HubSettings {
            hub_identifier,
            adapter_roles,
            uploads,
            withhold_events,
        },
    };
    Ok((etag_of(revision, scan_revision), state))
}

/// Wakes hubs when the catalog of their tenant has changed, by whichever replica: it is read of all
/// tenants with waiting hubs in one query. Ends when the service shuts down.
pub async fn follow_catalogs(hubs: Hubs) {
    let mut reads = tokio::time::interval(CATALOG_INTERVAL);
    reads.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut revisions = HashMap::new();
    let mut has_more = false;
    loop {
        tokio::select! {
            () = hubs.core.shutdown.cancelled() => return,
            _ = reads.tick() => match read_revisions(&hubs).await {
                Ok(read) => revisions = read,
                // The next one finds the changes.
                Err(error) => tracing::debug!(%error, "cannot read the catalogs' revisions; the next read retries"),
            },
            () = tokio::time::sleep(WAKE_PAUSE), if has_more => {}
        }
        has_more = hubs.changes.wake_outdated(&revisions);
    }
}

async fn read_revisions(hubs: &Hubs) -> Result<HashMap<TenantUuid, i64>> {
    let tenants = hubs.changes.waiting_tenants();
    if tenants.is_empty() {
        return Ok(HashMap::new());
    }
    let revisions = scan_config::revisions(&mut hubs.core.db.read().await?, tenants).await?;
    for revision in &revisions {
        // Recognition gets the changes of other replicas from here.
        hubs.core
            .catalog_revisions
            .note(revision.tenant_uuid, revision.catalog);
    }
    Ok(revisions
        .into_iter()
        .map(|revision| (revision.tenant_uuid, revision.document))
        .collect())
}
