//! The apps of a hub: the desired ones, which follow from jobs, and those that the hub reports.
//! Neither changes the other.

use std::collections::HashSet;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::http::check::Check;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_protocol::hub::DesiredApp;
use hub_protocol::job::{HubJobStatus, HubJobType, InstalledApp, InstalledApps};
use hub_protocol::{AppUuid, HubUuid, Timestamp};
use uuid::Uuid;

use super::HubJob;
use super::Jobs;
use super::store::apps::{self as store, HubApp, ReportedApp};
use super::store::periods::{self, OpenPeriod};
use crate::hubs;
use crate::releases::AgentReleaseSummary;

/// The most desired and reported apps of a hub.
pub(super) const MAX_APPS: i64 = 256;
/// Releases of apps that are kept of what a hub had: the last ones.
const MAX_PERIODS: i64 = 10_000;
/// A report that equals the stored one is stored again after this time only.
const UNCHANGED_SECS: i64 = 60;

impl HubApp {
    /// The release that the hub should have after all jobs: that of an open job, otherwise that of
    /// the last successful installation.
    pub fn desired(&self) -> Option<DesiredApp> {
        let (release_uuid, version) = match (self.job_type, self.job_status.is_terminal()) {
            (HubJobType::AppInstall, false) => (self.job_release_uuid, &self.job_version),
            (_, false) => (None, &None),
            (_, true) => (self.release_uuid, &self.version),
        };
        Some(DesiredApp {
            app_uuid: self.app_uuid,
            release_uuid: release_uuid?,
            version: version.clone()?,
        })
    }
}

/// The apps that should be installed on the hub, for its desired state.
pub async fn desired(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Vec<DesiredApp>> {
    let apps = store::of_hub(conn, hub_uuid, MAX_APPS).await?;
    Ok(apps.iter().filter_map(HubApp::desired).collect())
}

/// Records that from now on this job determines its app.
pub(super) async fn set_desired(tx: &mut Tx, job: &HubJob, now: Timestamp) -> Result<()> {
    let Some(app_uuid) = job.app_uuid else {
        return Ok(());
    };
    store::set_desired(tx, job, app_uuid, now).await?;
    if store::count(tx, job.hub_uuid).await? > MAX_APPS {
        let message = format!("a hub may have at most {MAX_APPS} apps; remove one first");
        return Err(Error::conflict("HUB_FULL", message));
    }
    Ok(())
}

/// Records the outcome of a job.
pub(super) async fn record_outcome(tx: &mut Tx, job: &HubJob, now: Timestamp) -> Result<()> {
    let Some(app_uuid) = job.app_uuid else {
        return Ok(());
    };
    match (job.job_type, job.status) {
        (HubJobType::AppInstall, HubJobStatus::Succeeded) => {
            store::installed(tx, job, app_uuid, now).await
        }
        (HubJobType::AppRemove, HubJobStatus::Succeeded) => {
            store::removed(tx, job, app_uuid, now).await?;
            store::forget_undesired(tx, job).await
        }
        // The failure of a first installation is kept to be shown, unless the app is no longer
        // desired.
        (HubJobType::AppInstall, HubJobStatus::Failed | HubJobStatus::Expired) => Ok(()),
        _ => store::forget_undesired(tx, job).await,
    }
}

/// Replaces the apps that the hub reported before. A report that changes nothing is not stored. An
/// entry that is not valid costs none of the others: they are stored, and the error names it.
pub async fn report(jobs: &Jobs, hub: &Hub, report: InstalledApps) -> Result<()> {
    let (report, refused) = checked(report)?;
    let now = jobs.core.clock.now();
    let is_empty = refused.is_err() && report.apps.is_empty();
    if !is_empty && !is_unchanged(jobs, hub, &report, now).await? {
        let mut tx = jobs.core.db.begin().await?;
        // This also locks the hub's row, so that two reports are serialized.
        hubs::touch(&mut tx, hub.tenant_uuid, hub.hub_uuid, now).await?;
        store::replace_installed(&mut tx, hub, &report.apps, now).await?;
        note_periods(&mut tx, hub, &report.apps, now).await?;
        tx.commit_unaudited("a hub's report about itself").await?;
    }
    if let Err(error) = &refused {
        hubs::refusals::note_report(&jobs.core, hub, "installed-apps", error, now).await?;
    }
    refused
}

/// The agent, among the apps whose releases a hub had.
const AGENT: AppUuid = AppUuid(Uuid::nil());

/// Ends the periods of releases that the hub has no more, and begins those of new ones.
async fn note_periods(tx: &mut Tx, hub: &Hub, apps: &[InstalledApp], now: Timestamp) -> Result<()> {
    let open = periods::open(tx, hub.hub_uuid).await?;
    let has = |app: &InstalledApp, period: &OpenPeriod| {
        (app.app_uuid, app.release_uuid) == (period.app_uuid, period.release_uuid)
    };
    let ended: Vec<AppUuid> = open
        .iter()
        .filter(|period| period.app_uuid != AGENT && !apps.iter().any(|app| has(app, period)))
        .map(|period| period.app_uuid)
        .collect();
    let at = after(&open, now);
    if !ended.is_empty() {
        periods::end(tx, hub.hub_uuid, &ended, at).await?;
    }
    let mut has_new = false;
    for app in apps {
        if app.app_uuid != AGENT && !open.iter().any(|period| has(app, period)) {
            let release = (app.release_uuid, app.version.as_str());
            periods::begin(tx, hub, app.app_uuid, release, at).await?;
            has_new = true;
        }
    }
    match has_new {
        true => periods::forget_most(tx, hub, MAX_PERIODS).await,
        false => Ok(()),
    }
}

/// Notes which release of the agent a hub has; None if it is none of those that there are.
pub async fn note_agent(
    tx: &mut Tx,
    hub: &Hub,
    release: Option<&AgentReleaseSummary>,
    now: Timestamp,
) -> Result<()> {
    let open = periods::open(tx, hub.hub_uuid).await?;
    let current = open.iter().find(|period| period.app_uuid == AGENT);
    let release_uuid = release.map(|release| release.release_uuid);
    if current.map(|period| period.release_uuid) == release_uuid {
        return Ok(());
    }
    let at = after(&open, now);
    if current.is_some() {
        periods::end(tx, hub.hub_uuid, &[AGENT], at).await?;
    }
    let Some(release) = release else {
        return Ok(());
    };
    let of = (release.release_uuid, release.version.as_str());
    periods::begin(tx, hub, AGENT, of, at).await?;
    periods::forget_most(tx, hub, MAX_PERIODS).await
}

/// Now, unless the clock of the service was set back.
fn after(open: &[OpenPeriod], now: Timestamp) -> Timestamp {
    let last = open.iter().map(|period| period.began_at).max();
    last.map_or(now, |last| now.max(last.plus_micros(1)))
}

/// Whether the hub reported the same a moment ago.
async fn is_unchanged(
    jobs: &Jobs,
    hub: &Hub,
    report: &InstalledApps,
    now: Timestamp,
) -> Result<bool> {
    let mut conn = jobs.core.db.read().await?;
    let stored = store::reported(&mut conn, &Scope::of_hub(hub), hub.hub_uuid, MAX_APPS).await?;
    let recently = now.plus_secs(-UNCHANGED_SECS);
    let is_stored = |app: &InstalledApp| {
        let stored = stored.iter().find(|stored| stored.app_uuid == app.app_uuid);
        stored.is_some_and(|stored| stored.reported_at > recently && stored.is_as_reported(app))
    };
    Ok(stored.len() == report.apps.len() && report.apps.iter().all(is_stored))
}

impl ReportedApp {
    fn is_as_reported(&self, app: &InstalledApp) -> bool {
        self.release_uuid == app.release_uuid
            && self.version == app.version
            && self.state == app.state
            && self.message == app.message
            && self.since == app.since
            && self.restarts == app.restarts
    }
}

/// The entries that are valid, and what is wrong with the others.
fn checked(report: InstalledApps) -> Result<(InstalledApps, Result<()>)> {
    let mut check = Check::new();
    let fits = i64::try_from(report.apps.len()).is_ok_and(|count| count <= MAX_APPS);
    check.that(fits, "apps", format!("may have at most {MAX_APPS} entries"));
    check.done()?;
    let mut check = Check::new();
    let mut seen = HashSet::new();
    let mut apps = Vec::new();
    for (index, app) in report.apps.into_iter().enumerate() {
        let errors = check.count();
        let field = |name: &str| format!("apps[{index}].{name}");
        check.that(
            seen.insert(app.app_uuid),
            field("appUuid"),
            "repeats the app of another entry",
        );
        check.required(&field("version"), &app.version, 64);
        check.lines(&field("message"), app.message.as_deref(), 1000);
        check.that(app.restarts >= 0, field("restarts"), "must be 0 or more");
        if check.count() == errors {
            apps.push(app);
        }
    }
    Ok((InstalledApps { apps }, check.done()))
}
