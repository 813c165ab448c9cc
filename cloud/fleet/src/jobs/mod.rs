//! Jobs: one-time work for hubs, the events that hubs report about it, and the resulting apps.
//! Every change of a job locks the row of its hub. So the jobs of a hub have one order, and exactly
//! one of a cancellation, an expiry and the hub's final event finishes a job. Nothing here connects
//! to a hub: jobs are part of the desired state.

mod apps;
mod batch;
mod commands;
mod dispatch;
mod events;
pub mod http;
mod moves;
mod overdue;
mod store;
mod withdraw;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::{self, Audit};
use hub_identity::authn::user::User;
use hub_identity::authz::Scope;
use hub_ingest::Commits;
use hub_protocol::command::DeviceCommand;
use hub_protocol::job::{DesiredJob, HubJobStatus, HubJobType, MaintenanceWindow};
use hub_protocol::release::architectures;
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hubs::{self, Addressee, Changes};
use crate::releases::{self, AgentReleaseSummary};
pub use apps::{desired as desired_apps, note_agent};
pub use batch::{install_all, remove_all, still_last};
pub use commands::{add_command, some};
pub use dispatch::dispatch;
pub use events::HubJobEventResponse;
pub use overdue::end_overdue;
pub use store::events::{AGED_LOG as EVENT_LOG, StoredJobEvent, after as events_after};
pub use store::{FailedJob, counts, excluded_updates, failed_since};
pub use withdraw::{Selection, Withdrawal, withdraw};

/// The most open jobs of a hub; the desired state shows all of them.
const MAX_OPEN: i64 = 100;

/// State of the job handlers.
#[derive(Clone)]
pub struct Jobs {
    pub core: Core,
    pub changes: Changes,
    pub commits: Commits,
}

/// A stored job.
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
    /// The update policy whose rollout created it.
    pub policy_uuid: Option<Uuid>,
    pub force: bool,
    window_start: Option<String>,
    window_end: Option<String>,
    pub deadline_at: Timestamp,
    /// The number of dispatches to the hub.
    pub attempts: i64,
    /// The time until which the hub is expected to report on it.
    pub leased_until: Option<Timestamp>,
    pub event_count: i64,
    pub progress: Option<i64>,
    /// The last message about it.
    pub detail: Option<String>,
    /// The JSON detail of the hub's final event.
    pub result: Option<String>,
    /// The command for a device, as JSON; deleted when the job is finished.
    command: Option<String>,
    /// The service to which a move sends the hub.
    pub service_url: Option<String>,
    /// The claim code there; deleted when the job is finished.
    sealed_claim_code: Option<Vec<u8>>,
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

    /// The representation in the desired state, without what its hub alone may see of a move.
    fn desired(&self) -> Result<DesiredJob> {
        let command: Option<Result<DeviceCommand, _>> =
            self.command.as_deref().map(serde_json::from_str);
        Ok(DesiredJob {
            hub_job_uuid: self.hub_job_uuid,
            job_type: self.job_type,
            app_uuid: self.app_uuid,
            release_uuid: self.release_uuid,
            deadline_at: self.deadline_at,
            window: self.window(),
            force: self.force,
            command: command.transpose().map_err(Error::internal)?,
            move_to: None,
        })
    }

    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "hubUuid": self.hub_uuid,
            "type": self.job_type,
            "status": self.status,
            "appUuid": self.app_uuid,
            "releaseUuid": self.release_uuid,
            "version": self.version,
            "policyUuid": self.policy_uuid,
            "serviceUrl": self.service_url,
            "force": self.force,
            "deadlineAt": self.deadline_at,
            "detail": self.detail,
        })
    }

    /// Fails with 409 if the job is finished.
    fn require_open(&self) -> Result<()> {
        match self.status.is_terminal() {
            false => Ok(()),
            true => Err(Error::conflict(
                "JOB_FINISHED",
                format!("this job is finished: its status is {}", self.status.name()),
            )),
        }
    }
}

/// The parameters of a new job.
#[derive(Debug)]
struct NewJob {
    job_type: HubJobType,
    app_uuid: Option<AppUuid>,
    release_uuid: Option<ReleaseUuid>,
    version: Option<String>,
    policy_uuid: Option<Uuid>,
    window: Option<MaintenanceWindow>,
    /// The command as JSON.
    command: Option<String>,
    terms: Terms,
}

/// The deadline and the urgency of a job.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub deadline_at: Timestamp,
    /// Whether to retry a release that failed on this hub before.
    pub force: bool,
}

/// The reason to give a hub no job now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoSuchHub,
    HubBlocked,
    TooManyJobs,
    OtherArchitecture {
        release: String,
        hub: String,
    },
    /// An update of the agent is open already.
    UpdateOpen,
    /// The hub is to move already.
    MoveOpen,
    TooManyCommands,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoSuchHub => Self::not_found("hub"),
            Refusal::HubBlocked => Self::conflict(
                "HUB_BLOCKED",
                "this hub is blocked and gets no jobs; have it unblocked first",
            ),
            Refusal::TooManyJobs => {
                let message = format!(
                    "this hub has {MAX_OPEN} open jobs; wait until some finish, or cancel some"
                );
                Self::conflict("TOO_MANY_JOBS", message)
            }
            Refusal::OtherArchitecture { release, hub } => {
                let message = format!(
                    "the release is built for {release}; choose one for {hub}, the architecture of this hub"
                );
                Self::conflict("OTHER_ARCHITECTURE", message)
            }
            Refusal::UpdateOpen => Self::conflict(
                "UPDATE_OPEN",
                "an update of this hub's agent is open already; wait until it finishes, or cancel it",
            ),
            Refusal::MoveOpen => Self::conflict(
                "MOVE_OPEN",
                "this hub is to move to another service already; wait until that job finishes, or cancel it",
            ),
            Refusal::TooManyCommands => Self::conflict(
                "TOO_MANY_COMMANDS",
                "the hub near this device has too many commands to carry out; wait until some finish",
            ),
        }
    }
}

/// An agent update created by a policy.
pub struct SelfUpdate<'a> {
    pub release: &'a AgentReleaseSummary,
    pub policy_uuid: Uuid,
    pub window: Option<MaintenanceWindow>,
    pub terms: Terms,
}

/// A created job, and the jobs that it superseded.
struct Created {
    job: HubJob,
    superseded: Vec<HubJobUuid>,
}

impl Created {
    fn audited(&self, audit: Audit) -> Audit {
        audit
            .changed(None, Some(self.job.state()))
            .with(json!({"superseded": self.superseded}))
    }
}

const CREATE: &str = "hub_job.create";

/// Adds a job for a hub that the transaction has locked. Jobs for the same app, or for the agent,
/// that have not started are superseded. A started job continues, and the new job waits behind it.
async fn add(
    tx: &mut Tx,
    changes: &Changes,
    hub: &Addressee,
    new: NewJob,
    now: Timestamp,
) -> Result<Result<Created, Refusal>> {
    if hub.blocked_at.is_some() {
        return Ok(Err(Refusal::HubBlocked));
    }
    let hub_job_uuid = HubJobUuid::new();
    let superseded = store::supersede(tx, hub.hub_uuid, &new, hub_job_uuid, now).await?;
    let job = match insert_job(tx, changes, hub, hub_job_uuid, new, now).await? {
        Ok(job) => job,
        Err(refusal) => return Ok(Err(refusal)),
    };
    apps::set_desired(tx, &job, now).await?;
    Ok(Ok(Created { job, superseded }))
}

/// Inserts a job for a hub that the transaction has locked.
async fn insert_job(
    tx: &mut Tx,
    changes: &Changes,
    hub: &Addressee,
    hub_job_uuid: HubJobUuid,
    new: NewJob,
    now: Timestamp,
) -> Result<Result<HubJob, Refusal>> {
    if store::count_open(tx, hub.hub_uuid).await? >= MAX_OPEN {
        return Ok(Err(Refusal::TooManyJobs));
    }
    let Some(revision) = changes.bump(tx, hub.hub_uuid).await? else {
        return Ok(Err(Refusal::NoSuchHub));
    };
    Ok(Ok(
        store::insert(tx, hub, hub_job_uuid, revision, new, now).await?
    ))
}

/// Creates a job that installs a release of one of the tenant's apps, replacing any other release
/// of the app.
async fn install(
    jobs: &Jobs,
    scope: &Scope,
    hub_uuid: HubUuid,
    release_uuid: ReleaseUuid,
    terms: Terms,
) -> Result<HubJobUuid> {
    let mut tx = jobs.core.db.begin().await?;
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
        command: None,
        terms,
    };
    create(jobs, scope, tx, &hub, new).await
}

/// Creates a job that removes one of the tenant's apps, whether or not the hub is known to have it.
async fn remove(
    jobs: &Jobs,
    scope: &Scope,
    hub_uuid: HubUuid,
    app_uuid: AppUuid,
    terms: Terms,
) -> Result<HubJobUuid> {
    let mut tx = jobs.core.db.begin().await?;
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
        command: None,
        terms,
    };
    create(jobs, scope, tx, &hub, new).await
}

async fn create(
    jobs: &Jobs,
    scope: &Scope,
    mut tx: Tx,
    hub: &Addressee,
    new: NewJob,
) -> Result<HubJobUuid> {
    let now = jobs.core.clock.now();
    let created = add(&mut tx, &jobs.changes, hub, new, now).await??;
    tx.commit(created.audited(Audit::new(scope, CREATE, created.job.hub_job_uuid, now)))
        .await?;
    Ok(created.job.hub_job_uuid)
}

/// Creates a job that updates the agent of a hub of any tenant, regardless of its update policy.
async fn force_self_update(
    jobs: &Jobs,
    admin: &User,
    hub_uuid: HubUuid,
    release_uuid: ReleaseUuid,
    terms: Terms,
) -> Result<HubJob> {
    let mut tx = jobs.core.db.begin().await?;
    let hub = hubs::lock_any(&mut tx, hub_uuid).await?;
    let release = releases::agent_release_for_job(&mut tx, release_uuid).await?;
    let release = release.ok_or_else(|| Error::not_found("release"))?;
    let new = self_update(&hub, &release, None, None, terms)?;
    let now = jobs.core.clock.now();
    let created = add(&mut tx, &jobs.changes, &hub, new, now).await??;
    let audit = Audit::new(admin, CREATE, created.job.hub_job_uuid, now).in_tenant(hub.tenant_uuid);
    tx.commit(created.audited(audit)).await?;
    Ok(created.job)
}

/// Creates an agent update required by a policy, with the job's own audit entry. The caller
/// commits. The transaction can also be committed if the result is a refusal.
pub async fn create_self_update(
    tx: &mut Tx,
    changes: &Changes,
    hub_uuid: HubUuid,
    update: SelfUpdate<'_>,
    now: Timestamp,
) -> Result<Result<HubJobUuid, Refusal>> {
    let Some(hub) = hubs::find_and_lock(tx, hub_uuid).await? else {
        return Ok(Err(Refusal::NoSuchHub));
    };
    if store::is_self_update_open(tx, hub_uuid).await? {
        return Ok(Err(Refusal::UpdateOpen));
    }
    let SelfUpdate {
        release,
        policy_uuid,
        window,
        terms,
    } = update;
    let new = match self_update(&hub, release, Some(policy_uuid), window, terms) {
        Ok(new) => new,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let created = match add(tx, changes, &hub, new, now).await? {
        Ok(created) => created,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let scope = Scope::system("UPDATE_POLICIES", hub.tenant_uuid);
    audit::insert(
        tx,
        created.audited(Audit::new(&scope, CREATE, created.job.hub_job_uuid, now)),
    )
    .await?;
    Ok(Ok(created.job.hub_job_uuid))
}

fn self_update(
    hub: &Addressee,
    release: &AgentReleaseSummary,
    policy_uuid: Option<Uuid>,
    window: Option<MaintenanceWindow>,
    terms: Terms,
) -> Result<NewJob, Refusal> {
    require_fit(hub, &release.architecture)?;
    Ok(NewJob {
        job_type: HubJobType::SelfUpdate,
        app_uuid: None,
        release_uuid: Some(release.release_uuid),
        version: Some(release.version.clone()),
        policy_uuid,
        window,
        command: None,
        terms,
    })
}

/// Fails if the hub cannot run what is built for `architecture`. A hub that has not reported its
/// architecture finds out by itself.
fn require_fit(hub: &Addressee, architecture: &str) -> Result<(), Refusal> {
    match hub.os.as_ref().and_then(|os| os.0.arch.as_deref()) {
        Some(own) if !architectures(Some(own)).contains(&architecture) => {
            Err(Refusal::OtherArchitecture {
                release: architecture.to_owned(),
                hub: own.to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// Cancels an open job. A hub that works on it learns of it as of any change of its desired state.
/// An update policy does not dispatch that release to the hub again, because a person decided
/// against it.
async fn cancel(
    jobs: &Jobs,
    scope: &Scope,
    hub_uuid: HubUuid,
    hub_job_uuid: HubJobUuid,
) -> Result<HubJob> {
    let mut tx = jobs.core.db.begin().await?;
    hubs::lock(&mut tx, scope, hub_uuid).await?;
    let now = jobs.core.clock.now();
    let before = store::get(&mut tx, scope, hub_uuid, hub_job_uuid)
        .await?
        .ok_or_else(not_found)?;
    before.require_open()?;
    let end = End {
        status: HubJobStatus::Cancelled,
        detail: Some("cancelled by an operator"),
        result: None,
        fails_in_passing: false,
    };
    let after = finish(&mut tx, &jobs.changes, &before, end, now).await?;
    store::note_cancelled_by_person(&mut tx, hub_job_uuid).await?;
    let audit = Audit::new(scope, "hub_job.cancel", hub_job_uuid, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

fn not_found() -> Error {
    Error::not_found("job")
}

const RELEASED: &str = "the hub was released";

/// Cancels all open jobs of a hub that is released and forgets its apps. Returns the number of the
/// jobs. The caller has locked the hub and writes the audit entry.
pub async fn end_all(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<u64> {
    store::apps::delete_all(tx, hub_uuid).await?;
    store::periods::end_all(tx, hub_uuid, now).await?;
    store::cancel_all(tx, hub_uuid, RELEASED, now).await
}

/// Whether a release of an app that a hub had has ended before this time.
pub async fn has_periods_before(conn: &mut Conn, before: Timestamp) -> Result<bool> {
    store::periods::has_before(conn, before).await
}

/// Deletes which releases of apps hubs had until before this time, up to `limit` rows.
pub async fn forget_periods_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    store::periods::forget_before(tx, before, limit).await
}

/// Deletes which releases of apps the hubs of a tenant had that is being deleted.
pub async fn forget_periods(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    store::periods::forget_all(tx, tenant_uuid).await
}

/// Cancels all open jobs of a tenant whose hubs are released, and returns their number.
pub async fn end_all_of_tenant(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    store::cancel_all_of_tenant(tx, scope, RELEASED, now).await
}

/// The outcome of a job.
struct End<'a> {
    status: HubJobStatus,
    detail: Option<&'a str>,
    /// The result as JSON.
    result: Option<&'a str>,
    /// Whether it failed, and for a cause that passes.
    fails_in_passing: bool,
}

/// Finishes an open job of a hub that the transaction has locked, and updates all that depends on
/// it.
async fn finish(
    tx: &mut Tx,
    changes: &Changes,
    job: &HubJob,
    end: End<'_>,
    now: Timestamp,
) -> Result<HubJob> {
    let after = store::finish(tx, job, end, now).await?;
    apps::record_outcome(tx, &after, now).await?;
    if let (HubJobType::SelfUpdate, HubJobStatus::Succeeded, Some(version)) =
        (after.job_type, after.status, &after.version)
    {
        hubs::set_agent_version(tx, after.hub_uuid, version).await?;
    }
    changes.bump(tx, after.hub_uuid).await?;
    Ok(after)
}
