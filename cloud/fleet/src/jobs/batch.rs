//! Jobs about several apps of one hub, in as many statements as for one. The caller locks the hub
//! first and writes the audit entry.

use std::sync::Arc;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_protocol::job::HubJobType;
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};

use super::apps::MAX_APPS;
use super::store::{self, NewAppJob, NewAppJobs};
use super::{MAX_OPEN, Refusal, require_fit};
use crate::hubs::{Addressee, Changes};
use crate::releases::AppReleaseSummary;

/// The created jobs, each with its app.
pub type CreatedJobs = Vec<(AppUuid, HubJobUuid)>;

/// Creates a job for each of these releases, which are of different apps of the hub's tenant.
/// `detail` is the message of the jobs that they replace.
pub async fn install_all(
    tx: &mut Tx,
    changes: &Changes,
    hub: &Addressee,
    releases: &[AppReleaseSummary],
    detail: &str,
    deadline_at: Timestamp,
    now: Timestamp,
) -> Result<CreatedJobs> {
    for release in releases {
        require_fit(hub, &release.architecture)?;
    }
    let wanted = releases
        .iter()
        .map(|release| {
            (
                release.app_uuid,
                Some((release.release_uuid, Arc::from(release.version.as_str()))),
            )
        })
        .collect();
    let created = add_all(
        tx,
        changes,
        hub,
        HubJobType::AppInstall,
        wanted,
        detail,
        deadline_at,
        now,
    )
    .await?;
    if store::apps::count(tx, hub.hub_uuid).await? > MAX_APPS {
        let message = format!("a hub may have at most {MAX_APPS} apps; remove some first");
        return Err(Error::conflict("HUB_FULL", message));
    }
    Ok(created)
}

/// Creates a job that removes each of these apps of the hub's tenant.
pub async fn remove_all(
    tx: &mut Tx,
    changes: &Changes,
    hub: &Addressee,
    apps: &[AppUuid],
    detail: &str,
    deadline_at: Timestamp,
    now: Timestamp,
) -> Result<CreatedJobs> {
    let wanted = apps.iter().map(|app_uuid| (*app_uuid, None)).collect();
    add_all(
        tx,
        changes,
        hub,
        HubJobType::AppRemove,
        wanted,
        detail,
        deadline_at,
        now,
    )
    .await
}

/// The apps, of those that the given jobs installed at a hub, without a later job.
pub async fn still_last(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    created: &CreatedJobs,
) -> Result<Vec<AppUuid>> {
    let jobs: Vec<HubJobUuid> = created
        .iter()
        .map(|(_, hub_job_uuid)| *hub_job_uuid)
        .collect();
    match jobs.is_empty() {
        true => Ok(Vec::new()),
        false => store::apps::still_last(conn, hub_uuid, &jobs).await,
    }
}

/// An app, and the release that is to be installed, with its version.
type Wanted = (AppUuid, Option<(ReleaseUuid, Arc<str>)>);

#[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
async fn add_all(
    tx: &mut Tx,
    changes: &Changes,
    hub: &Addressee,
    job_type: HubJobType,
    wanted: Vec<Wanted>,
    detail: &str,
    deadline_at: Timestamp,
    now: Timestamp,
) -> Result<CreatedJobs> {
    if hub.blocked_at.is_some() {
        return Err(Refusal::HubBlocked.into());
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let apps: Vec<AppUuid> = wanted.iter().map(|(app_uuid, _)| *app_uuid).collect();
    store::supersede_all(tx, hub.hub_uuid, &apps, detail, now).await?;
    let count = i64::try_from(wanted.len()).unwrap_or(MAX_OPEN);
    if store::count_open(tx, hub.hub_uuid).await? + count > MAX_OPEN {
        return Err(Refusal::TooManyJobs.into());
    }
    let Some(revision) = changes.bump_by(tx, hub.hub_uuid, count).await? else {
        return Err(Refusal::NoSuchHub.into());
    };
    let job = |(app_uuid, release)| NewAppJob {
        hub_job_uuid: HubJobUuid::new(),
        app_uuid,
        release,
    };
    let jobs: Vec<NewAppJob> = wanted.into_iter().map(job).collect();
    let created = jobs
        .iter()
        .map(|job| (job.app_uuid, job.hub_job_uuid))
        .collect();
    let new = NewAppJobs {
        job_type,
        first_revision: revision - count + 1,
        deadline_at,
        jobs,
    };
    store::insert_all(tx, hub, &new, now).await?;
    Ok(created)
}
