//! The scan configuration: the devices and rules by which this hub recognises, reads and reports
//! advertisements. The agent fetches it when its revision changes, and every ten minutes, as keys
//! change without a new revision. After a start the configuration on disk is in force at once. A
//! configuration that cannot be understood is not used: the earlier one stays.

mod file;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::scan_config::ScanConfig;
use hub_protocol::{HubUuid, TenantUuid};
use reqwest::header::{ACCEPT_ENCODING, IF_NONE_MATCH};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::ble::selection::Selection;
use crate::cloud::{Access, Answer, CallError, Request, Service};
use crate::desired::{granted, refused};
use crate::identity::StateDir;
use file::Stored;

/// The longest configuration that is read.
const MAX_BYTES: usize = 32 << 20;
/// How long a configuration may take on a slow connection.
const TIMEOUT: Duration = Duration::from_secs(300);
const POLL_EVERY: Duration = Duration::from_secs(600);
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));

/// The hub and the tenant that a configuration belongs to.
type Owner = (HubUuid, TenantUuid);

/// The last configuration that was received.
#[derive(Debug)]
pub struct Known {
    owner: Owner,
    etag: Option<String>,
    /// `None` if it was not understood.
    revision: Option<i64>,
}

/// The configuration on disk, if it is that of the hub's owner. Called at the start, before any
/// task runs.
pub fn load(state_dir: &Path, access: &Access) -> Option<(Known, Arc<Selection>)> {
    let (Access::Granted(credentials) | Access::Refused { credentials, .. }) = access else {
        return None;
    };
    let stored = stored(state_dir)?;
    if (stored.hub_uuid, stored.tenant_uuid) != (credentials.hub_uuid, credentials.tenant_uuid) {
        return None;
    }
    let selection = compiled(&stored)?;
    tracing::info!(
        revision = selection.revision,
        "the stored scan configuration is in force"
    );
    let owner = (stored.hub_uuid, stored.tenant_uuid);
    Some((
        Known {
            owner,
            etag: stored.etag,
            revision: Some(selection.revision),
        },
        Arc::new(selection),
    ))
}

/// The configuration on disk, for commands beside the agent. The user of such a command may not be
/// allowed to read it.
pub fn peek(state_dir: &Path) -> Option<Selection> {
    let stored = file::load(state_dir).ok()??;
    Selection::new(&stored.config, stored.hub_uuid).ok()
}

fn stored(state_dir: &Path) -> Option<Stored> {
    file::load(state_dir).unwrap_or_else(|error| {
        tracing::warn!(%error, "the stored scan configuration is damaged; none is in force until the service answers");
        None
    })
}

fn compiled(stored: &Stored) -> Option<Selection> {
    Selection::new(&stored.config, stored.hub_uuid)
        .inspect_err(|error| tracing::warn!(%error, "the stored scan configuration is not understood and not used"))
        .ok()
}

/// Follows the configuration until it is dropped. `wanted` is the revision in the desired state.
pub async fn follow(
    service: Arc<Service>,
    state_dir: Arc<StateDir>,
    mut wanted: watch::Receiver<Option<i64>>,
    mut known: Option<Known>,
    selection: watch::Sender<Option<Arc<Selection>>>,
) {
    let mut access = service.access();
    let mut backoff = BACKOFF;
    // The wanted revision that an answer was received for.
    let mut answered = None;
    let is_whole = known.as_ref().is_none_or(|known| known.etag.is_some());
    let mut due = Instant::now() + if is_whole { POLL_EVERY } else { Duration::ZERO };
    // The owner of the configuration that may be on disk.
    let mut stored_of = known.as_ref().map(|known| known.owner);
    loop {
        let credentials = granted(&mut access).await;
        let owner = (credentials.hub_uuid, credentials.tenant_uuid);
        if stored_of != Some(owner) {
            if known.take().is_some() {
                tracing::info!(
                    "this hub has a new owner; the scan configuration of the previous one is dropped"
                );
                (answered, due) = (None, Instant::now());
                selection.send_replace(None);
            }
            stored_of = Some(owner);
            if let Err(error) = state_dir.remove(file::FILE).await {
                tracing::warn!(%error, "the scan configuration cannot be removed from the disk");
            }
        }
        let wants = *wanted.borrow_and_update();
        // A hub without any has what revision 0 is: nothing.
        let has = known.as_ref().map_or(Some(0), |known| known.revision);
        if (wants.is_none() || wants == has || wants == answered) && Instant::now() < due {
            tokio::select! {
                Ok(()) = wanted.changed() => {}
                Ok(()) = access.changed() => {}
                () = tokio::time::sleep_until(due) => {}
            }
            continue;
        }
        let mut request = Request::get("/v1/hubs/scan-config").header(ACCEPT_ENCODING, "zstd");
        if let Some(etag) = known.as_ref().and_then(|known| known.etag.as_deref()) {
            request = request.header(IF_NONE_MATCH, etag);
        }
        (request.timeout, request.longest_answer) = (Some(TIMEOUT), MAX_BYTES);
        let is_answered = match service.call_as(&credentials, &request).await {
            Ok(answer) if answer.status == 304 => true,
            Ok(answer) if answer.is_success() => {
                let etag = answer.etag.clone();
                let taken = state_dir
                    .on_disk(move |path| take(path, owner, &answer).map_err(io::Error::other))
                    .await;
                let revision = taken.as_ref().ok().map(|taken| taken.revision);
                match taken {
                    Ok(taken) => drop(selection.send_replace(Some(Arc::new(taken)))),
                    Err(error) => tracing::warn!(
                        %error, "the scan configuration is not understood; the earlier one stays in force"
                    ),
                }
                known = Some(Known {
                    owner,
                    etag,
                    revision,
                });
                true
            }
            Ok(answer) => {
                tokio::time::sleep(refused(
                    &answer,
                    "the request for the scan configuration",
                    &mut backoff,
                ))
                .await;
                false
            }
            Err(CallError::NoAccess) => false,
            Err(CallError::Unreachable(_)) => {
                tokio::time::sleep(backoff.next(None)).await;
                false
            }
        };
        if !is_answered {
            continue;
        }
        let revision = known.as_ref().and_then(|known| known.revision);
        if revision < wants && revision.is_some() {
            // The answer came from a replica of the service that does not know of the change yet.
            tokio::time::sleep(backoff.next(None)).await;
        } else {
            backoff.reset();
            answered = wants;
        }
        due = Instant::now() + POLL_EVERY;
    }
}

/// Compiles a configuration and stores it. The error says why it is not used.
fn take(
    folder: &Path,
    (hub_uuid, tenant_uuid): Owner,
    answer: &Answer,
) -> Result<Selection, String> {
    let config: ScanConfig = answer.secret_data()?;
    let selection = Selection::new(&config, hub_uuid)?;
    let models = config
        .devices
        .iter()
        .filter(|device| device.device_instance_id.is_none())
        .count();
    tracing::info!(
        revision = config.revision,
        models,
        devices = config.devices.len() - models,
        rules = selection.rules.len(),
        keys = config.keys.len(),
        "a scan configuration is in force"
    );
    let stored = Stored {
        hub_uuid,
        tenant_uuid,
        etag: answer.etag.clone(),
        config,
    };
    let saved: io::Result<()> = file::save(folder, stored);
    if let Err(error) = saved {
        tracing::warn!(%error, "the scan configuration cannot be written; a restart forgets it");
    }
    Ok(selection)
}
