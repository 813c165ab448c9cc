//! Reports the software of this hub to the service: the packages of the distribution, the kernel,
//! BlueZ, the agent and the firmware of adapters. The hash of the list goes first, since hubs that
//! are alike have the same list, which the service needs once. What the service accepted last is on
//! disk: a restart repeats nothing. The hash is sent again each day, since a service may have been
//! restored from a backup. Changes no package.

mod dpkg;
mod firmware;
mod software;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hub_protocol::packages::{SoftwareReport, SoftwareReportResult};
use hub_protocol::{HubUuid, TenantUuid};
use reqwest::header::CONTENT_ENCODING;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::bluetoothd;
use crate::cloud::{Access, CallError, Request, Service};
use crate::desired::{granted, refused};
use crate::identity::{Credentials, StateDir};
pub use firmware::Firmware;
use software::{Software, Stamp};

/// The first report waits until the hub has shown that it is there.
const FIRST_AFTER: Duration = Duration::from_secs(3);
/// The time until a report that the service does not know or refused is sent again.
const REFUSED_RETRY: Duration = Duration::from_secs(86_400);
/// The looks at unchanged files after which the hash is sent again: those of a day.
const LOOKS_UNTIL_REPEAT: u32 = 144;
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));

/// The file with what was accepted last.
const FILE: &str = "software-accepted.json";

/// The hub and the tenant that a report was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
}

impl From<&Credentials> for Owner {
    fn from(credentials: &Credentials) -> Self {
        Self {
            hub_uuid: credentials.hub_uuid,
            tenant_uuid: credentials.tenant_uuid,
        }
    }
}

/// The report that the service accepted last, without its list.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Accepted {
    owner: Owner,
    report: SoftwareReport,
}

/// What is not sent for now.
struct Held {
    owner: Owner,
    /// The report that was refused; `None` where the service takes none.
    report: Option<SoftwareReport>,
    until: Instant,
}

/// Why a report was not accepted.
enum NotAccepted {
    /// It may be accepted after this time.
    After(Duration),
    NoAccess,
    /// The service does not know reports of software.
    Unknown,
    /// The service does not take this report.
    Refused,
}

/// Reports the software of the system below `root` until it is dropped, and looks for changes
/// `every` so often.
pub async fn report(
    service: Arc<Service>,
    state_dir: Arc<StateDir>,
    root: PathBuf,
    mut firmware: Firmware,
    every: Duration,
) {
    let mut access = service.access();
    let mut backoff = BACKOFF;
    let mut accepted = load(&state_dir).await;
    let mut known: Option<(Stamp, Software)> = None;
    let mut held: Option<Held> = None;
    let mut unchanged_looks = 0;
    let mut trouble = None;
    granted(&mut access).await;
    tokio::time::sleep(FIRST_AFTER).await;
    loop {
        let credentials = granted(&mut access).await;
        let owner = Owner::from(&credentials);
        let read = match look(&root, firmware.read().await, known.take()).await {
            Ok(read) => read,
            Err(error) => {
                let error = error.to_string();
                if trouble.as_ref() != Some(&error) {
                    tracing::warn!(error, "the packages of this machine cannot be read");
                }
                trouble = Some(error);
                rest(&mut access, owner, every).await;
                continue;
            }
        };
        trouble = None;
        let (_, software) = &*known.insert(read);
        let is_accepted = accepted
            .as_ref()
            .is_some_and(|known| known.owner == owner && known.report == software.report);
        let is_repeated = unchanged_looks >= LOOKS_UNTIL_REPEAT;
        if (is_accepted && !is_repeated) || is_held(held.as_ref(), owner, &software.report) {
            unchanged_looks += 1;
            tokio::select! {
                () = rest(&mut access, owner, every) => {}
                () = firmware.changed() => {}
            }
            continue;
        }
        let mut hold = |report| {
            held = Some(Held {
                owner,
                report,
                until: Instant::now() + REFUSED_RETRY,
            });
        };
        match send(&service, &credentials, software, &mut backoff).await {
            Ok(()) => {
                backoff.reset();
                unchanged_looks = 0;
                let now = Accepted {
                    owner,
                    report: software.report.clone(),
                };
                if !is_accepted {
                    save(&state_dir, &now).await;
                }
                accepted = Some(now);
            }
            Err(NotAccepted::Unknown) => hold(None),
            Err(NotAccepted::Refused) => hold(Some(software.report.clone())),
            Err(NotAccepted::After(wait)) => rest(&mut access, owner, wait).await,
            Err(NotAccepted::NoAccess) => {}
        }
    }
}

/// Reads the software, unless the files and the firmware are as they were when it was `known`.
async fn look(
    root: &Path,
    firmware: BTreeMap<String, String>,
    known: Option<(Stamp, Software)>,
) -> io::Result<(Stamp, Software)> {
    let path = root.to_owned();
    // Taken before the files are read: a change in between is read the next time.
    let stamp = on_thread(move || Stamp::of(&path)).await?;
    let is_same = |(before, software): &(Stamp, Software)| {
        *before == stamp && software.report.adapter_firmware == firmware
    };
    if let Some(known) = known.filter(is_same) {
        return Ok(known);
    }
    let path = root.to_owned();
    let list = on_thread(move || software::packages(&path)).await?;
    let bluez = match software::bluez_version(&list) {
        Some(version) => Some(version),
        None => bluetoothd::version().await,
    };
    let software = on_thread(move || Software::new(list, bluez, firmware)).await?;
    Ok((stamp, software))
}

/// Runs `work` on a thread that may wait for the disk.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}

fn is_held(held: Option<&Held>, owner: Owner, report: &SoftwareReport) -> bool {
    held.is_some_and(|held| {
        held.owner == owner
            && Instant::now() < held.until
            && held.report.as_ref().is_none_or(|held| held == report)
    })
}

/// Waits for so long, or until the hub has another owner.
async fn rest(access: &mut watch::Receiver<Access>, owner: Owner, wait: Duration) {
    let is_other = |access: &Access| match access {
        Access::Granted(credentials) => Owner::from(credentials) != owner,
        Access::Unclaimed | Access::Refused { .. } => false,
    };
    let _ = tokio::time::timeout(wait, access.wait_for(is_other)).await;
}

/// Sends the hash of the list, and the list if the service lacks it.
async fn send(
    service: &Service,
    credentials: &Credentials,
    software: &Software,
    backoff: &mut Backoff,
) -> Result<(), NotAccepted> {
    let short = software.short.clone();
    if !post(service, credentials, short, backoff)
        .await?
        .package_list_wanted
    {
        return Ok(());
    }
    let whole = software.whole.clone();
    if post(service, credentials, whole, backoff)
        .await?
        .package_list_wanted
    {
        tracing::debug!(
            "the service wants the packages that it was just sent; they are sent again in a day"
        );
        return Err(NotAccepted::Refused);
    }
    Ok(())
}

async fn post(
    service: &Service,
    credentials: &Credentials,
    body: Bytes,
    backoff: &mut Backoff,
) -> Result<SoftwareReportResult, NotAccepted> {
    let path = format!("/v1/hubs/{}/packages", credentials.hub_uuid);
    let mut request = Request::post_json(path, body).header(CONTENT_ENCODING, "zstd");
    request.timeout = Some(service.time_for(request.body.len()));
    let answer = match service.call_as(credentials, &request).await {
        Ok(answer) => answer,
        Err(CallError::NoAccess) => return Err(NotAccepted::NoAccess),
        Err(CallError::Unreachable(_)) => return Err(NotAccepted::After(backoff.next(None))),
    };
    let is_of_service = answer.problem().is_some();
    match answer.status {
        200..300 => answer
            .data()
            // A login page answers 200 to anything.
            .map_err(|_| NotAccepted::After(backoff.next(answer.retry_after))),
        404 if is_of_service => {
            tracing::debug!(
                "the service takes no reports of software yet; it is asked again in a day"
            );
            Err(NotAccepted::Unknown)
        }
        // A proxy may have a limit of its own for bodies.
        status if status == 413 || (status == 400 && is_of_service) => {
            tracing::warn!(
                reason = answer.reason(),
                "the service refuses the report of this hub's software; it is sent again when it changes, or in a day"
            );
            Err(NotAccepted::Refused)
        }
        _ => Err(NotAccepted::After(refused(
            &answer,
            "the report of software",
            backoff,
        ))),
    }
}

/// What was accepted last. A damaged file is no obstacle: the report is sent again.
async fn load(state_dir: &StateDir) -> Option<Accepted> {
    let read = |folder: &Path| std::fs::read(folder.join(FILE));
    serde_json::from_slice(&state_dir.on_disk(read).await.ok()?).ok()
}

async fn save(state_dir: &StateDir, accepted: &Accepted) {
    let saved = match serde_json::to_vec(accepted) {
        Ok(json) => state_dir.replace(FILE, json).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = saved {
        tracing::debug!(%error, "the accepted report of software cannot be written; a restart sends it again");
    }
}
