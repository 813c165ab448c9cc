//! Reports the installed apps to the service at the start and whenever they change. Reads the
//! helper's states and changes nothing.

use std::sync::Arc;
use std::time::Duration;

use hub_agent::helper_api::{AppState, Helper, UnitState};
use hub_protocol::job::{InstalledApp, InstalledAppState, InstalledApps};
use hub_protocol::{HubUuid, Timestamp};

use super::helper::{HelperClient, HelperFailure};
use super::view::{AppsChanged, View};
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::cloud::{Access, CallError, Request, Service};

/// How often the apps are checked without a notification: an app may have ended.
const CHECK_EVERY: Duration = Duration::from_secs(120);

/// The time between two reports to a service that does not know such reports yet.
const UNSUPPORTED_RETRY: Duration = Duration::from_secs(86_400);

/// The most apps that a report may have.
const MAX_APPS: usize = 256;

/// Reports until it is dropped.
pub async fn report_installed(
    service: Arc<Service>,
    clock: Arc<Clock>,
    helper: HelperClient,
    view: View,
    changed: AppsChanged,
) {
    let mut access = service.access();
    let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));
    let mut reported: Option<(HubUuid, Vec<InstalledApp>)> = None;
    loop {
        let rest = match helper.call(Helper::app_states).await {
            Ok(states) => {
                let apps = installed(states, clock.now());
                view.lock().installed = Some(apps.clone());
                let hub = match &*access.borrow_and_update() {
                    Access::Granted(credentials) => Some(credentials.hub_uuid),
                    Access::Unclaimed | Access::Refused { .. } => None,
                };
                match hub {
                    Some(hub)
                        if !reported
                            .as_ref()
                            .is_some_and(|(to, before)| *to == hub && is_same(before, &apps)) =>
                    {
                        match report(&service, hub, &apps).await {
                            Ok(rest) => {
                                backoff.reset();
                                reported = Some((hub, apps));
                                rest
                            }
                            Err(retry_after) => backoff.next(retry_after),
                        }
                    }
                    _ => CHECK_EVERY,
                }
            }
            Err(failure) => {
                if matches!(
                    failure,
                    HelperFailure::NoAnswer {
                        is_absent: true,
                        ..
                    }
                ) {
                    view.lock().installed = None;
                }
                CHECK_EVERY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            () = changed.notified() => {}
            _ = access.changed() => {}
        }
    }
}

/// How long to wait until the next check; an error has the service's `Retry-After`.
async fn report(
    service: &Service,
    hub: HubUuid,
    apps: &[InstalledApp],
) -> Result<Duration, Option<Duration>> {
    let body = serde_json::to_vec(&InstalledApps {
        apps: apps.to_vec(),
    })
    .map_err(|error| {
        tracing::error!(%error, "the installed apps cannot be encoded as JSON");
        None
    })?;
    match service
        .call(&Request::put_json(
            format!("/v1/hubs/{hub}/installed-apps"),
            body,
        ))
        .await
    {
        Ok(answer)
            if answer.status == 204
                || (answer.is_success() && answer.data::<serde_json::Value>().is_ok()) =>
        {
            Ok(CHECK_EVERY)
        }
        Ok(answer) if answer.status == 404 && answer.problem().is_some() => Ok(UNSUPPORTED_RETRY),
        Ok(answer) => {
            tracing::debug!(
                reason = answer.reason(),
                "the service did not accept the installed apps; they are sent again"
            );
            Err(answer.retry_after)
        }
        Err(CallError::NoAccess | CallError::Unreachable(_)) => Err(None),
    }
}

/// Times are not compared: they change with every check.
fn is_same(before: &[InstalledApp], now: &[InstalledApp]) -> bool {
    let key = |app: &InstalledApp| {
        (
            app.app_uuid,
            app.release_uuid,
            app.version.clone(),
            app.state,
            app.message.clone(),
            app.restarts,
        )
    };
    before.iter().map(key).eq(now.iter().map(key))
}

fn installed(states: Vec<AppState>, now: Timestamp) -> Vec<InstalledApp> {
    let apps = states.into_iter().filter_map(|state| {
        let active = state.active?;
        let unit = state.unit;
        let (app_state, message) = unit
            .as_ref()
            .map_or((InstalledAppState::Stopped, None), unit_state);
        Some(InstalledApp {
            app_uuid: state.app_uuid,
            release_uuid: active.release_uuid,
            version: active.version,
            state: app_state,
            message,
            since: now.plus_secs(
                unit.as_ref()
                    .map_or(0, |unit| -i64::try_from(unit.for_secs).unwrap_or(0)),
            ),
            restarts: unit.map_or(0, |unit| i64::try_from(unit.restarts).unwrap_or(i64::MAX)),
        })
    });
    let mut apps: Vec<InstalledApp> = apps.take(MAX_APPS).collect();
    apps.sort_by_key(|app| app.app_uuid);
    apps
}

fn unit_state(unit: &UnitState) -> (InstalledAppState, Option<String>) {
    let exit = || Some(unit.exit.clone().unwrap_or_else(|| unit.result.clone()));
    match unit.active_state.as_str() {
        "active" => (InstalledAppState::Running, None),
        "activating" if unit.sub_state == "auto-restart" => (InstalledAppState::Failed, exit()),
        "activating" | "reloading" => (InstalledAppState::Running, None),
        "failed" => (InstalledAppState::Failed, exit()),
        _ => (InstalledAppState::Stopped, exit()),
    }
}
