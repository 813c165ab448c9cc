//! The desired state of a hub: a view over hubs, jobs and update policies, and the long poll that
//! waits for it to change. It owns no table. Code that changes a part of it bumps the hub's
//! revision through `hubs::Changes`.

pub mod http;

use std::time::Duration;

use hub_protocol::hub::{DesiredState, HubSettings};
use hub_protocol::scan_config::ScanConfig;
use tokio::time::Instant;

use crate::authn::hub::Hub;
use crate::authn::invalid_token;
use crate::domain::hubs::{self, Hubs, Watch, Woken};
use crate::domain::{jobs, update_policies};
use crate::error::Result;
use crate::http::etag::{IfNoneMatch, Tagged};

/// The revision of the only scan configuration, until tenants can describe their devices.
const SCAN_CONFIG_REVISION: i64 = 1;

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
    // Subscribed before the first read of the state, so that no change is missed in between.
    let mut watch = match wait.is_zero() {
        true => None,
        false => Some(hubs.changes.watch(hub.hub_uuid, hub.tenant_uuid)?),
    };
    // Boxed, so that the memory is freed while the request waits: thousands wait at once.
    let initial = Box::pin(current_etag(hubs, hub, watch.as_ref())).await?;
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
        etag = Box::pin(current_etag(hubs, hub, Some(watch))).await?;
        if Instant::now() >= deadline {
            break;
        }
    }
    if etag == initial && known.matches(&initial) {
        return Ok(Tagged { etag, body: None });
    }
    let (etag, state) = Box::pin(read(hubs, hub)).await?;
    Ok(Tagged { etag, body: Some(state) })
}

fn etag_of(revision: i64) -> String {
    format!("\"{revision}.{SCAN_CONFIG_REVISION}\"")
}

/// Also ends the wait of a hub that was blocked or got a new token.
async fn current_etag(hubs: &Hubs, hub: &Hub, watch: Option<&Watch<'_>>) -> Result<String> {
    let mut conn = hubs.core.db.read().await?;
    let state = hubs::state(&mut conn, hub.hub_uuid).await?;
    drop(conn);
    if let (Some(watch), Some(state)) = (watch, &state) {
        watch.has_read(state.version());
    }
    match state {
        Some(state) if state.token_id == Some(hub.token_id) => Ok(etag_of(state.revision())),
        _ => Err(invalid_token()),
    }
}

async fn read(hubs: &Hubs, hub: &Hub) -> Result<(String, DesiredState)> {
    let mut conn = hubs.core.db.read().await?;
    // The revision is read first: a change between the reads is delivered twice rather than never.
    let hubs::Settings { revision, hub_identifier, uploads } = hubs::settings(&mut conn, hub.hub_uuid).await?;
    let adapter_roles = hubs::adapter_roles(&mut conn, hub.hub_uuid).await?;
    let apps = jobs::desired_apps(&mut conn, hub.hub_uuid).await?;
    let agent = update_policies::desired_agent(&mut conn, hub.hub_uuid).await?;
    drop(conn);
    let state = DesiredState {
        revision,
        agent,
        apps,
        jobs: jobs::dispatch(&hubs.core, hub.hub_uuid).await?,
        scan_config_revision: SCAN_CONFIG_REVISION,
        settings: HubSettings { hub_identifier, adapter_roles, uploads },
    };
    Ok((etag_of(revision), state))
}

/// What the hubs of a tenant need to recognise its devices. It is empty, because a tenant cannot
/// describe devices yet.
pub fn scan_config(known: &IfNoneMatch) -> Tagged<ScanConfig> {
    let etag = format!("\"{SCAN_CONFIG_REVISION}\"");
    let config = || ScanConfig { revision: SCAN_CONFIG_REVISION, ..ScanConfig::default() };
    let body = (!known.matches(&etag)).then(config);
    Tagged { etag, body }
}
