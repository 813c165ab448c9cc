//! Whether an app runs: before an installation, which may be unnecessary, and after it, while the
//! new version has to prove itself. Reads the helper's states and changes nothing.

use std::time::Duration;

use hub_agent::helper_api::{AppRelease, AppState, Helper, UnitState};
use hub_protocol::{AppUuid, ReleaseUuid};
use tokio::time::Instant;

use super::helper::{HelperClient, HelperFailure, PATIENCE, failed};
use super::job::{Failed, reason};
use super::view::View;

/// The version, if this release of the app is committed and runs.
pub fn running_version(
    apps: &[AppState],
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
) -> Option<String> {
    let app = apps.iter().find(|app| app.app_uuid == app_uuid)?;
    let is_release = |release: &&AppRelease| release.release_uuid == release_uuid;
    app.active.as_ref().filter(is_release)?;
    let committed = app.committed.as_ref().filter(is_release)?;
    let is_up = app
        .unit
        .as_ref()
        .is_none_or(|unit| unit.active_state == "active");
    is_up.then(|| committed.version.clone())
}

/// Watches whether a new release keeps running for `health_for`. A failure is a reason to roll
/// back.
pub async fn watch(
    helper: &HelperClient,
    view: &View,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
    health_for: Duration,
) -> Result<(), Failed> {
    let check_every = Duration::from_secs((health_for.as_secs() / 10).clamp(1, 5));
    let began = Instant::now();
    loop {
        match helper.call(Helper::app_states).await {
            Ok(apps) => {
                is_healthy(&apps, app_uuid, release_uuid)
                    .map_err(|message| Failed::new(reason::HEALTH_CHECK_FAILED, message))?;
                if began.elapsed() >= health_for {
                    return Ok(());
                }
            }
            // Whether it runs can no longer be found out; the previous version did run.
            Err(HelperFailure::NoAnswer { message, .. })
                if began.elapsed() >= health_for + PATIENCE =>
            {
                return Err(Failed::new(reason::HELPER_UNAVAILABLE, message));
            }
            Err(HelperFailure::NoAnswer { message, .. }) => view.show_trouble(&message),
            Err(HelperFailure::Refused(refusal)) => return Err(failed(refusal)),
        }
        tokio::time::sleep(check_every).await;
    }
}

/// Whether the release is the one that runs and has not ended since it was started.
fn is_healthy(
    apps: &[AppState],
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
) -> Result<(), String> {
    let Some(app) = apps.iter().find(|app| app.app_uuid == app_uuid) else {
        return Err("the app no longer exists".to_owned());
    };
    if app
        .active
        .as_ref()
        .is_none_or(|active| active.release_uuid != release_uuid)
    {
        return Err("another release of the app runs".to_owned());
    }
    let Some(unit) = &app.unit else { return Ok(()) };
    let UnitState {
        active_state,
        sub_state,
        result,
        exit,
        restarts,
        ..
    } = unit;
    let is_starting = active_state == "activating" && sub_state != "auto-restart";
    if *restarts == 0 && (active_state == "active" || is_starting) {
        return Ok(());
    }
    let exit = exit.as_deref().unwrap_or(result);
    Err(format!(
        "it ended while it was watched ({exit}; {active_state}, {sub_state}, restarted {restarts} times)"
    ))
}
