//! Jobs: what hubs are to do once, what they tell about it, and the apps that come of it. Whoever changes a job holds the row of its hub, so that a hub's
//! jobs have one order, and of a cancellation, an expiry and a hub's own last word exactly one ends a job. Nothing here talks to a hub: jobs are part of its
//! desired state.

mod app_store;
mod apps;
mod event_store;
mod events;
mod hand_out;
pub mod http;
mod overdue;
mod store;
mod withdraw;

use hub_protocol::job::{DesiredJob, HubJobStatus, HubJobType, MaintenanceWindow};
use hub_protocol::release::architectures;
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::authn::user::User;
use crate::authz::Scope;
use crate::db::Tx;
use crate::domain::audit::{self, Audit};
use crate::domain::hubs::{self, Addressee, desired};
use crate::domain::releases::{self, AgentReleaseSummary};
use crate::error::{Error, Result};

pub use apps::wanted as wanted_apps;
pub use event_store::{StoredJobEvent, after as events_after, forget as forget_events};
pub use events::HubJobEventResponse;
pub use hand_out::hand_out;
pub use overdue::settle_overdue;
pub use withdraw::{Which, Withdrawal, withdraw};

/// Jobs of a hub that are not over: as many as its desired state shows.
const MAX_OPEN: i64 = 100;

/// A job as it is stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct HubJob {
    pub hub_job_uuid: HubJobUuid,
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    #[sqlx(try_from = "String")]
    pub job_type: HubJobType,
    #[sqlx(try_from = "String")]
    pub status: HubJobStatus,
    pub app_uuid: Option<AppUuid>,
    pub release_uuid: Option<ReleaseUuid>,
    pub version: Option<String>,
    /// The update policy whose rollout made it.
    pub policy_uuid: Option<Uuid>,
    pub force: bool,
    window_start: Option<String>,
    window_end: Option<String>,
    pub deadline_at: Timestamp,
    /// How often the hub was given it.
    pub attempts: i64,
    /// The hub is trusted to be at it until then.
    pub leased_until: Option<Timestamp>,
    pub event_count: i64,
    pub progress: Option<i64>,
    /// The last thing there was to say about it.
    pub detail: Option<String>,
    /// JSON that the hub ended it with.
    pub result: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub dispatched_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

impl HubJob {
    pub fn window(&self) -> Option<MaintenanceWindow> {
        let (start, end) = (self.window_start.clone()?, self.window_end.clone()?);
        Some(MaintenanceWindow { start, end })
    }

    /// As the hub is given it.
    fn desired(&self) -> DesiredJob {
        DesiredJob {
            hub_job_uuid: self.hub_job_uuid,
            job_type: self.job_type,
            app_uuid: self.app_uuid,
            release_uuid: self.release_uuid,
            deadline_at: self.deadline_at,
            window: self.window(),
            force: self.force,
        }
    }

    /// As the audit log shows it.
    fn state(&self) -> Value {
        json!({
            "hubUuid": self.hub_uuid,
            "type": self.job_type,
            "status": self.status,
            "appUuid": self.app_uuid,
            "releaseUuid": self.release_uuid,
            "version": self.version,
            "policyUuid": self.policy_uuid,
            "force": self.force,
            "deadlineAt": self.deadline_at,
            "detail": self.detail,
        })
    }

    /// 409 when nothing can happen to it any more.
    fn require_open(&self) -> Result<()> {
        match self.status.is_terminal() {
            false => Ok(()),
            true => Err(Error::conflict("JOB_FINISHED", format!("this job is over: it is {}", self.status.name()))),
        }
    }
}

/// A job about to be made.
#[derive(Debug)]
struct NewJob {
    job_type: HubJobType,
    app_uuid: Option<AppUuid>,
    release_uuid: Option<ReleaseUuid>,
    version: Option<String>,
    policy_uuid: Option<Uuid>,
    window: Option<MaintenanceWindow>,
    terms: Terms,
}

/// How urgent a job is.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub deadline_at: Timestamp,
    /// Also try a release that failed on this hub before.
    pub force: bool,
}

/// A job that was made, and those that it made superfluous.
struct Made {
    job: HubJob,
    superseded: Vec<HubJobUuid>,
}

impl Made {
    fn audited(&self, audit: Audit) -> Audit {
        audit.changed(None, Some(self.job.state())).with(json!({"superseded": self.superseded}))
    }
}

const CREATE: &str = "hub_job.create";

/// Adds a job for a hub that the transaction holds. What was to be done with the same app, or to the agent, and has not begun is not done any more;
/// what has begun is gone on with, and the new job waits behind it.
async fn add(tx: &mut Tx, hub: &Addressee, new: NewJob, now: Timestamp) -> Result<Made> {
    if hub.blocked_at.is_some() {
        return Err(Error::conflict("HUB_BLOCKED", "this hub is blocked and gets no jobs; have it unblocked first"));
    }
    let hub_job_uuid = HubJobUuid::new();
    let superseded = store::supersede(tx, hub.hub_uuid, &new, hub_job_uuid, now).await?;
    if store::count_open(tx, hub.hub_uuid).await? >= MAX_OPEN {
        let message = format!("{MAX_OPEN} jobs of this hub are not over; wait for some, or cancel them, first");
        return Err(Error::conflict("TOO_MANY_JOBS", message));
    }
    let revision = desired::bump(tx, hub.hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))?;
    let job = store::insert(tx, hub, hub_job_uuid, revision, new, now).await?;
    apps::want(tx, &job, now).await?;
    Ok(Made { job, superseded })
}

/// Has the hub install a release of one of the tenant's apps, in place of any other release of it.
async fn install(
    app: &App,
    scope: &Scope,
    hub_uuid: HubUuid,
    release_uuid: ReleaseUuid,
    terms: Terms,
) -> Result<HubJobUuid> {
    let mut tx = app.db.begin().await?;
    let hub = hubs::lock(&mut tx, scope, hub_uuid).await?;
    let release = releases::app_release_for_job(&mut tx, scope, release_uuid).await?;
    let release = release.ok_or_else(|| Error::not_found("release"))?;
    require_fit(&hub, &release.architecture)?;
    let new = NewJob {
        job_type: HubJobType::AppInstall,
        app_uuid: Some(release.app_uuid),
        release_uuid: Some(release.release_uuid),
        version: Some(release.version),
        policy_uuid: None,
        window: None,
        terms,
    };
    create(app, scope, tx, &hub, new).await
}

/// Has the hub remove one of the tenant's apps, whether or not it is known to have it.
async fn remove(app: &App, scope: &Scope, hub_uuid: HubUuid, app_uuid: AppUuid, terms: Terms) -> Result<HubJobUuid> {
    let mut tx = app.db.begin().await?;
    let hub = hubs::lock(&mut tx, scope, hub_uuid).await?;
    if !releases::app_exists(&mut tx, scope, app_uuid).await? {
        return Err(Error::not_found("app"));
    }
    let new = NewJob {
        job_type: HubJobType::AppRemove,
        app_uuid: Some(app_uuid),
        release_uuid: None,
        version: None,
        policy_uuid: None,
        window: None,
        terms,
    };
    create(app, scope, tx, &hub, new).await
}

async fn create(app: &App, scope: &Scope, mut tx: Tx, hub: &Addressee, new: NewJob) -> Result<HubJobUuid> {
    let now = app.clock.now();
    let made = add(&mut tx, hub, new, now).await?;
    tx.commit(made.audited(Audit::new(scope, CREATE, made.job.hub_job_uuid, now))).await?;
    desired::changed(app, hub.hub_uuid).await;
    Ok(made.job.hub_job_uuid)
}

/// Has a hub of any tenant update its agent, whatever its update policy says.
async fn force_self_update(
    app: &App,
    admin: &User,
    hub_uuid: HubUuid,
    release_uuid: ReleaseUuid,
    terms: Terms,
) -> Result<HubJob> {
    let mut tx = app.db.begin().await?;
    let hub = hubs::lock_any(&mut tx, hub_uuid).await?;
    let release = releases::agent_release_for_job(&mut tx, release_uuid).await?;
    let release = release.ok_or_else(|| Error::not_found("release"))?;
    let new = self_update(&hub, &release, None, None, terms)?;
    let now = app.clock.now();
    let made = add(&mut tx, &hub, new, now).await?;
    let audit = Audit::by_user(admin, CREATE, made.job.hub_job_uuid, now).in_tenant(hub.tenant_uuid);
    tx.commit(made.audited(audit)).await?;
    desired::changed(app, hub_uuid).await;
    Ok(made.job)
}

/// Has a hub update its agent because a policy says so; nothing where a self-update is under way already. 409 for a hub that is blocked or cannot run the
/// release. The job's own audit entry is written with it; the caller commits, and calls [`desired::changed`] for the hub after it.
pub async fn create_self_update(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    release: &AgentReleaseSummary,
    policy_uuid: Uuid,
    window: Option<MaintenanceWindow>,
    terms: Terms,
    now: Timestamp,
) -> Result<Option<HubJobUuid>> {
    let hub = hubs::lock_any(tx, hub_uuid).await?;
    if store::is_self_update_open(tx, hub_uuid).await? {
        return Ok(None);
    }
    let new = self_update(&hub, release, Some(policy_uuid), window, terms)?;
    let made = add(tx, &hub, new, now).await?;
    let scope = Scope::system("UPDATE_POLICIES", hub.tenant_uuid);
    audit::insert(tx, made.audited(Audit::new(&scope, CREATE, made.job.hub_job_uuid, now))).await?;
    Ok(Some(made.job.hub_job_uuid))
}

fn self_update(
    hub: &Addressee,
    release: &AgentReleaseSummary,
    policy_uuid: Option<Uuid>,
    window: Option<MaintenanceWindow>,
    terms: Terms,
) -> Result<NewJob> {
    require_fit(hub, &release.architecture)?;
    Ok(NewJob {
        job_type: HubJobType::SelfUpdate,
        app_uuid: None,
        release_uuid: Some(release.release_uuid),
        version: Some(release.version.clone()),
        policy_uuid,
        window,
        terms,
    })
}

/// 409 unless the hub can run what is built for `architecture`. A hub that did not say what it is finds out by itself.
fn require_fit(hub: &Addressee, architecture: &str) -> Result<()> {
    let own = hub.os.as_ref().and_then(|os| os.0.arch.as_deref());
    match own {
        Some(own) if !architectures(Some(own)).contains(&architecture) => {
            let message = format!("the release is built for {architecture}, and this hub is {own}");
            Err(Error::conflict("OTHER_ARCHITECTURE", message))
        }
        _ => Ok(()),
    }
}

/// Ends a job that has not ended by itself. A hub that is at it hears of that as of any change. An update policy does not give the hub that release again: a person
/// decided against it.
async fn cancel(app: &App, scope: &Scope, hub_uuid: HubUuid, hub_job_uuid: HubJobUuid) -> Result<HubJob> {
    let mut tx = app.db.begin().await?;
    hubs::lock(&mut tx, scope, hub_uuid).await?;
    let now = app.clock.now();
    let before = store::get(&mut tx, scope, hub_uuid, hub_job_uuid).await?.ok_or_else(not_found)?;
    before.require_open()?;
    let end = End { status: HubJobStatus::Cancelled, detail: Some("cancelled by an operator"), result: None };
    let after = finish(&mut tx, &before, end, now).await?;
    store::note_cancelled_by_person(&mut tx, hub_job_uuid).await?;
    let audit = Audit::new(scope, "hub_job.cancel", hub_job_uuid, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state()))).await?;
    desired::changed(app, hub_uuid).await;
    Ok(after)
}

fn not_found() -> Error {
    Error::not_found("job")
}

/// How a job ends.
struct End<'a> {
    status: HubJobStatus,
    detail: Option<&'a str>,
    /// JSON.
    result: Option<&'a str>,
}

/// Ends a job that is open, of a hub that the transaction holds, with all that hangs on it. Call [`desired::changed`] after the commit.
async fn finish(tx: &mut Tx, job: &HubJob, end: End<'_>, now: Timestamp) -> Result<HubJob> {
    let after = store::finish(tx, job, end, now).await?;
    apps::settle(tx, &after, now).await?;
    if let (HubJobType::SelfUpdate, HubJobStatus::Succeeded, Some(version)) =
        (after.job_type, after.status, &after.version)
    {
        hubs::set_agent_version(tx, after.hub_uuid, version).await?;
    }
    desired::bump(tx, after.hub_uuid).await?;
    Ok(after)
}
