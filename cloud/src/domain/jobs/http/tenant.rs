//! `/tenant/hubs/{hubUuid}/jobs`, `/apps`, `/installed-apps`, and the jobs of `/tenant/hub-monitoring`.

use axum::extract::State;
use hub_protocol::job::{DesiredJob, HubJobStatus, HubJobType, InstalledAppState};
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::app_store::{self, HubApp, ReportedApp};
use super::super::apps::MAX_APPS;
use super::super::{self as jobs, HubJob, HubJobEventResponse, StoredJobEvent, event_store, store};
use super::{HubJobResponse, terms};
use crate::app::App;
use crate::authz::{Authorized, Scope, permission as perm};
use crate::db::Conn;
use crate::domain::hubs;
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Created};
use crate::http::extract::{Json, Path, Query};
use crate::http::page::{Direction, Listed, Page, PageOf, Pageable};

/// What to install.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppInstallRequest {
    /// A READY release of one of the tenant's apps, which the hub can run.
    app_release_uuid: ReleaseUuid,
    /// When the job ends if it is not over by itself, at most a year ahead. This or `validForSeconds`, not both; 7 days from now when neither is given.
    deadline_at: Option<Timestamp>,
    /// 1 second to a year.
    valid_for_seconds: Option<i64>,
    /// Also try a release that failed on this hub before.
    force: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoveQuery {
    app_uuid: AppUuid,
}

/// A job, with what the hub is told of it and what the hub ended it with.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HubJobDetailResponse {
    #[serde(flatten)]
    job: HubJobResponse,
    /// As in the hub's desired state.
    desired: DesiredJob,
    /// The `detail` of the event that ended it. Of a failure, `reason` is a stable word.
    result: Option<Value>,
}

impl HubJobDetailResponse {
    fn new(mut job: HubJob) -> Result<Self> {
        let result = job.result.take();
        let result = result.as_deref().map(serde_json::from_str).transpose().map_err(Error::internal)?;
        Ok(Self { desired: job.desired(), result, job: job.into() })
    }
}

/// An app that should be installed, or that a job is about.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubInstalledAppResponse {
    app_uuid: AppUuid,
    /// The release that should be there once all jobs are done; null when there should be none.
    release_uuid: Option<ReleaseUuid>,
    version: Option<String>,
    /// The last job about the app, and how it stands.
    hub_job_uuid: HubJobUuid,
    job_type: HubJobType,
    job_status: HubJobStatus,
    /// The release of the last installation that succeeded.
    installed_release_uuid: Option<ReleaseUuid>,
    installed_version: Option<String>,
    updated_at: Timestamp,
}

impl From<HubApp> for HubInstalledAppResponse {
    fn from(app: HubApp) -> Self {
        let (release_uuid, version) = app.wanted().map(|wanted| (wanted.release_uuid, wanted.version)).unzip();
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

/// An app as the hub reported it last.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstalledAppView {
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
    version: String,
    state: InstalledAppState,
    /// Why it is in that state.
    message: Option<String>,
    /// In its present state since then, by the hub's clock.
    since: Timestamp,
    /// How often it was started again since it was installed.
    restarts: i64,
    reported_at: Timestamp,
}

impl From<ReportedApp> for InstalledAppView {
    fn from(app: ReportedApp) -> Self {
        let ReportedApp { app_uuid, release_uuid, version, state, message, since, restarts, reported_at } = app;
        Self { app_uuid, release_uuid, version, state, message, since, restarts, reported_at }
    }
}

async fn read(
    app: &App,
    scope: &Scope,
    hub_uuid: HubUuid,
    direction: Direction,
    part: (i64, i64),
) -> Result<(Vec<HubJobResponse>, i64)> {
    let mut conn = app.db.read().await?;
    hubs::require(&mut conn, scope, hub_uuid).await?;
    let (jobs, total) = store::list(&mut conn, scope, hub_uuid, direction, part).await?;
    Ok((jobs.into_iter().map(HubJobResponse::from).collect(), total))
}

pub async fn list(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    page: Page,
) -> Result<Listed<HubJobResponse>> {
    let part = (page.size, page.offset);
    let (jobs, total) = read(&app, &auth.scope, hub_uuid, Direction::Descending, part).await?;
    Ok(page.listed(jobs, total))
}

pub async fn page(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    page: Pageable,
) -> Result<Answer<PageOf<HubJobResponse>>> {
    let direction = page.direction("createdAt", Direction::Descending)?;
    let (jobs, total) = read(&app, &auth.scope, hub_uuid, direction, (page.size, page.offset)).await?;
    Ok(Answer(page.page_of(jobs, total)))
}

/// The job of a hub, or 404 for whichever of the two is not there.
async fn find(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid, job_uuid: HubJobUuid) -> Result<HubJob> {
    hubs::require(conn, scope, hub_uuid).await?;
    store::get(conn, scope, hub_uuid, job_uuid).await?.ok_or_else(jobs::not_found)
}

pub async fn get(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path((hub_uuid, job_uuid)): Path<(HubUuid, HubJobUuid)>,
) -> Result<Answer<HubJobDetailResponse>> {
    let mut conn = app.db.read().await?;
    let job = find(&mut conn, &auth.scope, hub_uuid, job_uuid).await?;
    HubJobDetailResponse::new(job).map(Answer)
}

pub async fn page_events(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path((hub_uuid, job_uuid)): Path<(HubUuid, HubJobUuid)>,
    page: Pageable,
) -> Result<Answer<PageOf<HubJobEventResponse>>> {
    let direction = page.direction("receivedAt", Direction::Ascending)?;
    let mut conn = app.db.read().await?;
    find(&mut conn, &auth.scope, hub_uuid, job_uuid).await?;
    let part = (page.size, page.offset);
    let (events, total) = event_store::list(&mut conn, &auth.scope, job_uuid, direction, part).await?;
    let events = events.into_iter().map(StoredJobEvent::response).collect::<Result<_>>()?;
    Ok(Answer(page.page_of(events, total)))
}

pub async fn install_app(
    auth: Authorized<perm::HubsOperate>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    Json(request): Json<AppInstallRequest>,
) -> Result<Created<HubJobUuid>> {
    let terms = terms(request.deadline_at, request.valid_for_seconds, request.force, app.clock.now())?;
    jobs::install(&app, &auth.scope, hub_uuid, request.app_release_uuid, terms).await.map(Created)
}

/// The job ends after 7 days if it is not over by itself.
pub async fn remove_app(
    auth: Authorized<perm::HubsOperate>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    Query(query): Query<RemoveQuery>,
) -> Result<Created<HubJobUuid>> {
    let terms = terms(None, None, None, app.clock.now())?;
    jobs::remove(&app, &auth.scope, hub_uuid, query.app_uuid, terms).await.map(Created)
}

/// A job that the hub has begun may be done all the same; what the hub then tells of it is refused.
pub async fn cancel(
    auth: Authorized<perm::HubsOperate>,
    State(app): State<App>,
    Path((hub_uuid, hub_job_uuid)): Path<(HubUuid, HubJobUuid)>,
) -> Result<Answer<HubJobResponse>> {
    let job = jobs::cancel(&app, &auth.scope, hub_uuid, hub_job_uuid).await?;
    Ok(Answer(job.into()))
}

pub async fn apps(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
) -> Result<Answer<Vec<HubInstalledAppResponse>>> {
    let mut conn = app.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    let apps = app_store::of_hub(&mut conn, hub_uuid, MAX_APPS).await?;
    Ok(Answer(apps.into_iter().map(HubInstalledAppResponse::from).collect()))
}

pub async fn installed_apps(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
) -> Result<Answer<Vec<InstalledAppView>>> {
    let mut conn = app.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    let apps = app_store::reported(&mut conn, &auth.scope, hub_uuid, MAX_APPS).await?;
    Ok(Answer(apps.into_iter().map(InstalledAppView::from).collect()))
}
