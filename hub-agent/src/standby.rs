//! The agent while its state directory cannot be used: the disk is read-only or broken. Restarts
//! would not help, so it waits, feeds the watchdog, tells the service why it is silent, and starts
//! as soon as the directory can be written.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hub_agent::durable;
use hub_protocol::telemetry::LogEntry;
use uuid::Uuid;

use crate::clock::Clock;
use crate::cloud::{CallError, Request, Service};
use crate::config::RunArgs;
use crate::error::Failure;
use crate::heartbeat::Heartbeats;
use crate::identity::{CREDENTIALS_FILE, StateDir, Unopened};
use crate::moved;
use crate::signals;
use crate::systemd;

const TRY_EVERY: Duration = Duration::from_secs(5);
const REPORT_EVERY: Duration = Duration::from_secs(3_600);

/// Files that the report to the service needs, as far as they exist.
const COPIED: [&str; 3] = [CREDENTIALS_FILE, "client-certificate.json", moved::FILE];

/// The state directory, as soon as it can be used. Fails where waiting does not help.
pub async fn open_state_dir(args: &RunArgs) -> Result<StateDir, Failure> {
    let path = &args.common.state_dir;
    let reason = match StateDir::try_open(path) {
        Ok(state_dir) => return Ok(state_dir),
        Err(Unopened::InUse(failure)) => return Err(failure),
        Err(Unopened::Unusable(reason)) => reason,
    };
    tracing::error!(
        reason,
        "the agent cannot work without its state directory; it waits until the directory can be used"
    );
    systemd::ready();
    systemd::status(&format!("waiting: {reason}"));
    let heartbeats = Heartbeats::default();
    tokio::select! {
        opened = wait(path) => {
            tracing::info!("the state directory can be used; the agent starts");
            opened
        }
        stopped = signals::until_stopped(args.stop_with_stdin) => {
            stopped?;
            Err(Failure::Failed(reason.clone()))
        }
        () = systemd::keep_alive(&heartbeats) => Err(Failure::Failed(reason.clone())),
        () = keep_reporting(args, &reason) => Err(Failure::Failed(reason.clone())),
    }
}

async fn wait(path: &Path) -> Result<StateDir, Failure> {
    loop {
        tokio::time::sleep(TRY_EVERY).await;
        match StateDir::try_open(path) {
            Ok(state_dir) => return Ok(state_dir),
            Err(Unopened::InUse(failure)) => return Err(failure),
            Err(Unopened::Unusable(_)) => {}
        }
    }
}

/// Tells the service why this hub is silent, now and then. Never ends.
async fn keep_reporting(args: &RunArgs, reason: &str) {
    loop {
        let pause = match report(args, reason).await {
            Ok(()) => {
                tracing::info!("the service knows why this hub is silent");
                REPORT_EVERY
            }
            Err(error) => {
                tracing::debug!(%error, "cannot report to the service why this hub is silent");
                TRY_EVERY * 12
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Sends one log entry, with the hub's credentials in a directory of its own: nothing can be
/// written to the usual one. What the service answers with a renewed token is not kept; the refresh
/// token stays the same.
async fn report(args: &RunArgs, reason: &str) -> Result<(), String> {
    let copy = Copy::of(&args.common.state_dir).map_err(|error| error.to_string())?;
    let state_dir = StateDir::open(&copy.0).map_err(|error| error.to_string())?;
    let clock = Arc::new(Clock::load(&args.common.state_dir));
    let service = Service::new(&args.service, Arc::new(state_dir), clock.clone());
    let service = service.map_err(|error| error.to_string())?;
    let granted = service.granted().map_err(|error| error.to_string())?;
    if !clock.offset().known {
        // Any answer has the service's time.
        let _ = service.call(&Request::get("/v1/test")).await;
    }
    let entry = LogEntry {
        at: clock.now(),
        level: "ERROR".to_owned(),
        target: module_path!().to_owned(),
        message: "the agent waits: its state directory cannot be used".to_owned(),
        fields: BTreeMap::from([("reason".to_owned(), reason.into())]),
    };
    let body = serde_json::to_vec(&[entry]).map_err(|error| error.to_string())?;
    let request = Request::post_json(format!("/v1/hubs/{}/logs", granted.hub_uuid), body);
    match service.call(&request).await {
        Ok(answer) if answer.is_success() => Ok(()),
        Ok(answer) => Err(answer.reason()),
        Err(error @ (CallError::NoAccess | CallError::Unreachable(_))) => Err(error.to_string()),
    }
}

/// A directory with a copy of the credentials, which is removed at the end.
struct Copy(PathBuf);

impl Copy {
    fn of(state_dir: &Path) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("hub-agent-{}", Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let copy = Self(path);
        for name in COPIED {
            if let Ok(content) = std::fs::read(state_dir.join(name)) {
                durable::replace(&copy.0, name, &content)?;
            }
        }
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, "a copy of the credentials cannot be removed");
        }
    }
}
