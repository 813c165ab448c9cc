//! `/tenant/hubs/{hubUuid}/jobs`, `/apps`, `/installed-apps`, and the jobs of
//! `/tenant/hub-monitoring`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use axum::extract::State;
use hub_base::db::{Conn, Direction, Slice};
use hub_base::error::{Error, Result};
use hub_core::http::answer::{Answer, Created};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page, PageOf, Pageable};
use hub_identity::authz::{Authorized, Scope, permission as perm};
use hub_protocol::job::{DesiredJob, HubJobStatus, HubJobType};
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::Terms;
use super::super::apps::MAX_APPS;
use super::super::moves::{self, MAX_URL_CHARS};
use super::super::store::apps::{HubApp, ReportedApp};
use super::super::{self as jobs, HubJob, HubJobEventResponse, StoredJobEvent, store};
use super::{HubJobResponse, terms};
use crate::Parts;
use crate::hubs;
use crate::hubs::http::HubPath;
use crate::jobs::Jobs;
use crate::jobs::http::HubJobPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs",
            get_with(
                list,
                operation("hubJobs.list", "tenant-hubs", "Jobs of a hub, newest first"),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs/app-install",
            post_with(
                install_app,
                operation_failing(
                    &[409],
                    "hubJobs.installApp",
                    "tenant-hubs",
                    "Create a job that installs a release of an app",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs/app-remove",
            post_with(
                remove_app,
                operation_failing(
                    &[409],
                    "hubJobs.removeApp",
                    "tenant-hubs",
                    "Create a job that removes an app",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs/move",
            post_with(
                move_hub,
                operation_failing(
                    &[409],
                    "hubJobs.move",
                    "tenant-hubs",
                    "Create a job that sends a hub to another service",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/jobs/{hubJobUuid}",
            delete_with(
                cancel,
                operation_failing(
                    &[409],
                    "hubJobs.cancel",
                    "tenant-hubs",
                    "Cancel an open job",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/apps",
            get_with(
                apps,
                operation(
                    "hubApps.list",
                    "tenant-hubs",
                    "Apps that should be installed on a hub",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/installed-apps",
            get_with(
                installed_apps,
                operation(
                    "hubApps.listInstalled",
                    "tenant-hubs",
                    "Apps that a hub reports as installed",
                ),
            ),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/jobs",
            get_with(
                page,
                operation(
                    "hubJobs.page",
                    "tenant-monitoring",
                    "Jobs of a hub, as pages",
                ),
            ),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}",
            get_with(
                get,
                operation(
                    "hubJobs.get",
                    "tenant-monitoring",
                    "One job, with its request and its result",
                ),
            ),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}/events",
            get_with(
                page_events,
                operation(
                    "hubJobs.pageEvents",
                    "tenant-monitoring",
                    "Events of a job, as pages",
                ),
            ),
        )
}

/// As [`HubJobPath`], under `/tenant/hub-monitoring`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MonitoredJobPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The job.
    pub job_uuid: HubJobUuid,
}

/// The release to install.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppInstallRequest {
    /// A READY release of an app of the tenant that the hub can run.
    app_release_uuid: ReleaseUuid,
    /// When the job expires if it has not finished, at most a year ahead. This or
    /// `validForSeconds`, not both; 7 days from now when neither is given.
    deadline_at: Option<Timestamp>,
    /// The time after which the job expires, at most a year.
    #[schemars(range(min = 1, max = super::MAX_VALIDITY_SECS))]
    valid_for_seconds: Option<i64>,
    /// Whether to try a release that failed on this hub before.
    force: Option<bool>,
}

impl AppInstallRequest {
    fn checked(self, now: Timestamp) -> Result<(ReleaseUuid, Terms)> {
        let terms = terms(self.deadline_at, self.valid_for_seconds, self.force, now)?;
        Ok((self.app_release_uuid, terms))
    }
}

/// The service to which the hub moves.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubMoveRequest {
    /// Its URL, such as `https://hubs.example.com`: with `https`, or where this service has none
    /// with `http` and an address of a private network. Another one than that of this service.
    #[schemars(length(min = 1, max = MAX_URL_CHARS))]
    service_url: String,
    /// A claim code of that service. Only the hub gets it.
    #[schemars(regex(pattern = hub_protocol::patterns::CLAIM_CODE))]
    claim_code: String,
    /// When the job expires if it has not finished, at most a year ahead. This or
    /// `validForSeconds`, not both; 7 days from now when neither is given.
    deadline_at: Option<Timestamp>,
    /// The time after which the job expires, at most a year.
    #[schemars(range(min = 1, max = super::MAX_VALIDITY_SECS))]
    valid_for_seconds: Option<i64>,
}

/// The app to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoveQuery {
    /// The app to remove.
    app_uuid: AppUuid,
}

/// A job, with what the hub reads of it and how it ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HubJobDetailResponse {
    #[serde(flatten)]
    job: HubJobResponse,
    /// The job as the desired state of the hub lists it.
    desired: DesiredJob,
    /// The `detail` of the event that ended it. Of a failure, `reason` is a stable word.
    result: Option<Value>,
}

impl HubJobDetailResponse {
    fn new(mut job: HubJob) -> Result<Self> {
        let result = job.result.take();
        let result = result
            .as_deref()
            .map(serde_json::from_str)
            .transpose()
            .map_err(Error::internal)?;
        // The hub alone sees the data that is written to a device.
        let desired = DesiredJob {
            command: None,
            ..job.desired()?
        };
        Ok(Self {
            desired,
            result,
            job: job.into(),
        })
    }
}

/// An app that should be installed on a hub, or that a job is about.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubInstalledAppResponse {
    /// The app.
    app_uuid: AppUuid,
    /// The release that should be installed once all jobs have finished; null when there should be
    /// none.
    release_uuid: Option<ReleaseUuid>,
    /// The version of that release.
    version: Option<String>,
    /// The last job about the app.
    hub_job_uuid: HubJobUuid,
    /// The type of the job.
    job_type: HubJobType,
    /// The status of that job.
    job_status: HubJobStatus,
    /// The release of the last installation that succeeded.
    installed_release_uuid: Option<ReleaseUuid>,
    /// The version of that release.
    installed_version: Option<String>,
    /// When this last changed.
    updated_at: Timestamp,
}

impl From<HubApp> for HubInstalledAppResponse {
    fn from(app: HubApp) -> Self {
        let (release_uuid, version) = app
            .desired()
            .map(|desired| (desired.release_uuid, desired.version))
            .unzip();
        Self {
            app_uuid: app.app_uuid,
            release_uuid,
            version,
            hub_job_uuid: app.hub_job_uuid,
            job_type: app.job_type,
            job_status: app.job_status,
            installed_release_uuid: app.release_uuid,
            installed_version: app.version,
            updated_at: app.updated_at,
        }
    }
}

async fn read(
    jobs: &Jobs,
    scope: &Scope,
    hub_uuid: HubUuid,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<HubJobResponse>, i64)> {
    let mut conn = jobs.core.db.read().await?;
    hubs::require_past_or_present(&mut conn, scope, hub_uuid).await?;
    let (jobs, total) = store::list(&mut conn, scope, hub_uuid, direction, slice).await?;
    Ok((jobs.into_iter().map(HubJobResponse::from).collect(), total))
}

async fn list(
    auth: Authorized<perm::HubsRead>,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Page,
) -> Result<Listed<HubJobResponse>> {
    let (jobs, total) = read(
        &jobs,
        &auth.scope,
        hub_uuid,
        Direction::Descending,
        page.slice(),
    )
    .await?;
    Ok(page.listed(jobs, total))
}

async fn page(
    auth: Authorized<perm::HubsRead>,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Pageable,
) -> Result<Answer<PageOf<HubJobResponse>>> {
    let direction = page.direction("createdAt", Direction::Descending)?;
    let (jobs, total) = read(&jobs, &auth.scope, hub_uuid, direction, page.slice()).await?;
    Ok(Answer(page.page_of(jobs, total)))
}

/// The job of a hub, or 404 if the hub or the job does not exist.
async fn find(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    job_uuid: HubJobUuid,
) -> Result<HubJob> {
    hubs::require_past_or_present(conn, scope, hub_uuid).await?;
    store::get(conn, scope, hub_uuid, job_uuid)
        .await?
        .ok_or_else(jobs::not_found)
}

async fn get(
    auth: Authorized<perm::HubsRead>,
    State(jobs): State<Jobs>,
    Path(MonitoredJobPath { hub_uuid, job_uuid }): Path<MonitoredJobPath>,
) -> Result<Answer<HubJobDetailResponse>> {
    let mut conn = jobs.core.db.read().await?;
    let job = find(&mut conn, &auth.scope, hub_uuid, job_uuid).await?;
    HubJobDetailResponse::new(job).map(Answer)
}

async fn page_events(
    auth: Authorized<perm::HubsRead>,
    State(jobs): State<Jobs>,
    Path(MonitoredJobPath { hub_uuid, job_uuid }): Path<MonitoredJobPath>,
    page: Pageable,
) -> Result<Answer<PageOf<HubJobEventResponse>>> {
    let direction = page.direction("receivedAt", Direction::Ascending)?;
    let mut conn = jobs.core.db.read().await?;
    find(&mut conn, &auth.scope, hub_uuid, job_uuid).await?;
    let (events, total) =
        store::events::list(&mut conn, &auth.scope, job_uuid, direction, page.slice()).await?;
    let events = events
        .into_iter()
        .map(StoredJobEvent::response)
        .collect::<Result<_>>()?;
    Ok(Answer(page.page_of(events, total)))
}

async fn install_app(
    auth: Authorized<perm::HubsOperate>,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    Json(request): Json<AppInstallRequest>,
) -> Result<Created<HubJobUuid>> {
    let (release_uuid, terms) = request.checked(jobs.core.clock.now())?;
    jobs::install(&jobs, &auth.scope, hub_uuid, release_uuid, terms)
        .await
        .map(Created)
}

/// The job expires after 7 days if it has not finished.
async fn remove_app(
    auth: Authorized<perm::HubsOperate>,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    Query(query): Query<RemoveQuery>,
) -> Result<Created<HubJobUuid>> {
    let terms = terms(None, None, None, jobs.core.clock.now())?;
    jobs::remove(&jobs, &auth.scope, hub_uuid, query.app_uuid, terms)
        .await
        .map(Created)
}

/// The hub claims at the other service with the code, after all that it had to upload is here. It
/// stays if it cannot, and `result` says why. What is here of it stays here; release it afterwards.
/// No API key moves a hub, since all that it hears goes elsewhere from then on.
async fn move_hub(
    auth: Authorized<perm::HubsMove>,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    Json(request): Json<HubMoveRequest>,
) -> Result<Created<HubJobUuid>> {
    let now = jobs.core.clock.now();
    let terms = terms(request.deadline_at, request.valid_for_seconds, None, now)?;
    let to = moves::checked(&jobs.core, &request.service_url, &request.claim_code)?;
    moves::create(&jobs, &auth.scope, hub_uuid, &to, terms)
        .await
        .map(Created)
}

/// A job that the hub has started may still be carried out; later events of the hub about it are
/// refused.
async fn cancel(
    auth: Authorized<perm::HubsOperate>,
    State(jobs): State<Jobs>,
    Path(HubJobPath {
        hub_uuid,
        hub_job_uuid,
    }): Path<HubJobPath>,
) -> Result<Answer<HubJobResponse>> {
    let job = jobs::cancel(&jobs, &auth.scope, hub_uuid, hub_job_uuid).await?;
    Ok(Answer(job.into()))
}

async fn apps(
    auth: Authorized<perm::HubsRead>,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<Vec<HubInstalledAppResponse>>> {
    let mut conn = jobs.core.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    let apps = store::apps::of_hub(&mut conn, hub_uuid, MAX_APPS).await?;
    Ok(Answer(
        apps.into_iter()
            .map(HubInstalledAppResponse::from)
            .collect(),
    ))
}

async fn installed_apps(
    auth: Authorized<perm::HubsRead>,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<Vec<ReportedApp>>> {
    let mut conn = jobs.core.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    let apps = store::apps::reported(&mut conn, &auth.scope, hub_uuid, MAX_APPS).await?;
    Ok(Answer(apps))
}
