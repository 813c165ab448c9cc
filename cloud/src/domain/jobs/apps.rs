//! The apps of a hub: those that jobs say it should have, and those it reports. Neither changes the other.

use std::collections::HashSet;

use hub_protocol::hub::DesiredApp;
use hub_protocol::job::{HubJobStatus, HubJobType, InstalledApps};
use hub_protocol::{HubUuid, Timestamp};

use super::HubJob;
use super::app_store::{self as store, HubApp};
use crate::app::App;
use crate::authn::hub::Hub;
use crate::db::{Conn, Tx};
use crate::domain::hubs;
use crate::error::{Error, Result};
use crate::http::check::Check;

/// Apps of a hub, wanted or reported.
pub(super) const MAX_APPS: i64 = 256;

impl HubApp {
    /// The release that the hub should have once all jobs are done: that of a job that is still to be done, else that of the last installation that
    /// succeeded.
    pub fn wanted(&self) -> Option<DesiredApp> {
        let (release_uuid, version) = match (self.job_type, self.job_status.is_terminal()) {
            (HubJobType::AppInstall, false) => (self.job_release_uuid, &self.job_version),
            (_, false) => (None, &None),
            (_, true) => (self.release_uuid, &self.version),
        };
        Some(DesiredApp { app_uuid: self.app_uuid, release_uuid: release_uuid?, version: version.clone()? })
    }
}

/// What should be installed on the hub, as its desired state has it.
pub async fn wanted(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Vec<DesiredApp>> {
    let apps = store::of_hub(conn, hub_uuid, MAX_APPS).await?;
    Ok(apps.iter().filter_map(HubApp::wanted).collect())
}

/// Notes that the job decides about its app from now on.
pub(super) async fn want(tx: &mut Tx, job: &HubJob, now: Timestamp) -> Result<()> {
    let Some(app_uuid) = job.app_uuid else { return Ok(()) };
    store::want(tx, job, app_uuid, now).await?;
    if store::count(tx, job.hub_uuid).await? > MAX_APPS {
        let message = format!("a hub may have at most {MAX_APPS} apps; remove one first");
        return Err(Error::conflict("HUB_FULL", message));
    }
    Ok(())
}

/// Notes what came of a job.
pub(super) async fn settle(tx: &mut Tx, job: &HubJob, now: Timestamp) -> Result<()> {
    let Some(app_uuid) = job.app_uuid else { return Ok(()) };
    match (job.job_type, job.status) {
        (HubJobType::AppInstall, HubJobStatus::Succeeded) => store::installed(tx, job, app_uuid, now).await,
        (HubJobType::AppRemove, HubJobStatus::Succeeded) => {
            store::removed(tx, job, app_uuid, now).await?;
            store::forget_unwanted(tx, job).await
        }
        // That a first installation failed is worth showing; one that nobody wants any more is not.
        (HubJobType::AppInstall, HubJobStatus::Failed | HubJobStatus::Expired) => Ok(()),
        _ => store::forget_unwanted(tx, job).await,
    }
}

/// Stores the apps that the hub has now, in place of what it reported before.
pub async fn report(app: &App, hub: &Hub, report: InstalledApps) -> Result<()> {
    check(&report)?;
    let mut tx = app.db.begin().await?;
    let now = app.clock.now();
    // Also holds the hub's row, so that of two reports one follows the other.
    hubs::touch(&mut tx, hub.hub_uuid, now).await?;
    store::replace_installed(&mut tx, hub, &report.apps, now).await?;
    tx.commit_unaudited("a hub's report about itself").await
}

fn check(report: &InstalledApps) -> Result<()> {
    let mut check = Check::new();
    let fits = i64::try_from(report.apps.len()).is_ok_and(|count| count <= MAX_APPS);
    check.that(fits, "apps", format!("may have at most {MAX_APPS} entries"));
    check.done()?;
    let mut check = Check::new();
    let mut seen = HashSet::new();
    for (index, app) in report.apps.iter().enumerate() {
        let field = |name: &str| format!("apps[{index}].{name}");
        check.that(seen.insert(app.app_uuid), field("appUuid"), "is the app of another entry too");
        check.required(&field("version"), &app.version, 64);
        check.lines(&field("message"), app.message.as_deref(), 1000);
        check.that(app.restarts >= 0, field("restarts"), "must be 0 or more");
    }
    check.done()
}
