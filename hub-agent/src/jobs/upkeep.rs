//! Work between jobs: removing the apps of a previous owner, and rolling back apps that run a
//! version no job committed.

use std::time::Duration;

use hub_agent::helper_api::Helper;
use hub_protocol::TenantUuid;

use super::context::Context;
use super::helper::HelperFailure;
use super::ledger::JobsState;

/// Jobs do not wait longer for the helper's states.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hub's owner, if the apps on the hub are another tenant's.
pub fn new_owner(context: &Context) -> Option<TenantUuid> {
    let owner = context.jobs.service.granted().ok()?.tenant_uuid;
    (context.ledger.state().owner != Some(owner)).then_some(owner)
}

/// Removes the apps of the previous owner, which could otherwise read the new owner's data. Returns
/// false if that has to be retried.
pub async fn change_owner(context: &mut Context, owner: TenantUuid) -> bool {
    if context.ledger.state().owner.is_some() {
        let apps = match context.jobs.helper.call(Helper::app_states).await {
            Ok(apps) => apps,
            // A hub without a helper has no apps.
            Err(HelperFailure::NoAnswer {
                is_absent: true, ..
            }) => Vec::new(),
            Err(failure) => {
                tracing::warn!(
                    ?failure,
                    "the previous owner's apps cannot be removed; it is tried again"
                );
                return false;
            }
        };
        for app_uuid in apps.into_iter().map(|app| app.app_uuid) {
            if let Err(failed) = context
                .jobs
                .helper
                .finish(move |helper| helper.remove_app(app_uuid))
                .await
            {
                tracing::error!(
                    %app_uuid, reason = failed.message,
                    "an app of the previous owner cannot be removed; it is tried again"
                );
                return false;
            }
            tracing::warn!(%app_uuid, "this hub has a new owner; an app of the previous one is removed");
        }
        context.jobs.apps_changed.notify_one();
    }
    context
        .ledger
        .change(|state| {
            *state = JobsState {
                owner: Some(owner),
                ..JobsState::default()
            }
        })
        .await;
    context.clear_downloads().await;
    true
}

/// Rolls back apps that run a version no job committed: the job's own rollback failed. Returns
/// whether all of them are rolled back.
pub async fn roll_back_uncommitted(context: &mut Context) -> Result<bool, HelperFailure> {
    let apps = context
        .jobs
        .helper
        .call(|helper| helper.app_states_within(PATIENCE))
        .await?;
    let mut is_done = true;
    for app in apps {
        let app_uuid = app.app_uuid;
        let active = app.active.map(|release| release.release_uuid);
        if active.is_none() || active == app.committed.map(|release| release.release_uuid) {
            continue;
        }
        match context
            .jobs
            .helper
            .call(move |helper| helper.rollback_app(app_uuid))
            .await
        {
            Ok(()) => {
                tracing::warn!(%app_uuid, "an app ran an uncommitted version and is rolled back");
                context.ledger.change(|state| state.unstage(app_uuid)).await;
                context.jobs.apps_changed.notify_one();
            }
            Err(failure) => {
                tracing::warn!(%app_uuid, ?failure, "an app runs an uncommitted version and cannot be rolled back yet");
                is_done = false;
            }
        }
    }
    Ok(is_done)
}
