//! SQL of jobs. A job is changed only by a transaction that has locked the row of its hub.

pub mod apps;
pub mod events;
pub mod periods;

use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Direction, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::job::{HubJobStatus, HubJobType};
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use uuid::Uuid;

use super::withdraw::{Selection, Withdrawal};
use super::{End, HubJob, NewJob};
use crate::hubs::Addressee;

const COLUMNS: &str = "hub_job_uuid, hub_uuid, tenant_uuid, job_type, status, app_uuid, \
    release_uuid, version, policy_uuid, force, window_start, window_end, deadline_at, attempts, \
    leased_until, event_count, progress, detail, result, command, service_url, sealed_claim_code, \
    created_at, updated_at, dispatched_at, started_at, finished_at";

/// Cancels the jobs that the new job replaces and returns them.
pub async fn supersede(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    new: &NewJob,
    by: HubJobUuid,
    now: Timestamp,
) -> Result<Vec<HubJobUuid>> {
    let statement = sql("UPDATE hub_jobs SET status = 'CANCELLED', detail = $2, \
         updated_at = $3, finished_at = $3 \
         WHERE hub_uuid = $1 AND finished_at IS NULL AND status IN ('PENDING', 'DISPATCHED') AND ")
    .bind((hub_uuid, format!("superseded by job {by}"), now));
    let statement = match new.app_uuid {
        Some(app_uuid) => statement.push("app_uuid = ").push_bind(app_uuid),
        None => statement.push("job_type = ").push_bind(new.job_type.name()),
    };
    statement.push(" RETURNING hub_job_uuid").scalars(tx).await
}

pub async fn count_open(conn: &mut Conn, hub_uuid: HubUuid) -> Result<i64> {
    sql("SELECT COUNT(*) FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL")
        .bind(hub_uuid)
        .scalar(conn)
        .await
}

/// The number of the hub's open jobs of a type.
pub async fn count_open_of(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    job_type: HubJobType,
) -> Result<i64> {
    sql("SELECT COUNT(*) FROM hub_jobs \
         WHERE hub_uuid = $1 AND finished_at IS NULL AND job_type = $2")
    .bind((hub_uuid, job_type.name()))
    .scalar(conn)
    .await
}

/// The given jobs of the tenant. The list must not be empty.
pub async fn some(conn: &mut Conn, scope: &Scope, jobs: &[HubJobUuid]) -> Result<Vec<HubJob>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM hub_jobs WHERE tenant_uuid = $1 AND hub_job_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(jobs.iter().copied())
        .all(conn)
        .await
}

pub async fn is_self_update_open(conn: &mut Conn, hub_uuid: HubUuid) -> Result<bool> {
    sql("SELECT hub_job_uuid FROM hub_jobs \
         WHERE hub_uuid = $1 AND finished_at IS NULL AND job_type = $2 LIMIT 1")
    .bind((hub_uuid, HubJobType::SelfUpdate.name()))
    .exists(conn)
    .await
}

pub async fn insert(
    tx: &mut Tx,
    hub: &Addressee,
    hub_job_uuid: HubJobUuid,
    revision: i64,
    new: NewJob,
    now: Timestamp,
) -> Result<HubJob> {
    let (window_start, window_end) = new.window.map(|window| (window.start, window.end)).unzip();
    sql(
        "INSERT INTO hub_jobs (hub_job_uuid, hub_uuid, tenant_uuid, revision, job_type, \
         status, app_uuid, release_uuid, version, policy_uuid, force, window_start, window_end, \
         command, deadline_at, attempts, event_count, created_at, updated_at) VALUES ($1, $2, $3, \
         $4, $5, 'PENDING', $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, 0, $15, $15) RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        hub_job_uuid,
        hub.hub_uuid,
        hub.tenant_uuid,
        revision,
        new.job_type.name(),
        new.app_uuid,
        new.release_uuid,
        new.version,
        new.policy_uuid,
        new.terms.force,
        window_start,
        window_end,
        new.command,
        new.terms.deadline_at,
        now,
    ))
    .one(tx)
    .await
}

/// Records where a new job sends its hub.
pub async fn set_destination(
    tx: &mut Tx,
    hub_job_uuid: HubJobUuid,
    service_url: &str,
    sealed_claim_code: Vec<u8>,
) -> Result<HubJob> {
    sql(
        "UPDATE hub_jobs SET service_url = $2, sealed_claim_code = $3 \
         WHERE hub_job_uuid = $1 RETURNING ",
    )
    .push(COLUMNS)
    .bind((hub_job_uuid, service_url, sealed_claim_code))
    .one(tx)
    .await
}

/// As [`supersede`], for jobs about any of these apps. The list must be short and not empty.
pub async fn supersede_all(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    apps: &[AppUuid],
    detail: &str,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE hub_jobs SET status = 'CANCELLED', detail = $2, updated_at = $3, \
         finished_at = $3 WHERE hub_uuid = $1 AND finished_at IS NULL \
         AND status IN ('PENDING', 'DISPATCHED') AND app_uuid IN ",
    )
    .bind((hub_uuid, detail, now))
    .push_list(apps.iter().copied())
    .run(tx)
    .await
}

/// Jobs about apps, of one hub and one type.
pub struct NewAppJobs {
    pub job_type: HubJobType,
    /// The revision of the first; the others follow it.
    pub first_revision: i64,
    pub deadline_at: Timestamp,
    pub jobs: Vec<NewAppJob>,
}

pub struct NewAppJob {
    pub hub_job_uuid: HubJobUuid,
    pub app_uuid: AppUuid,
    pub release: Option<(ReleaseUuid, Arc<str>)>,
}

/// Inserts the jobs, and makes each the last one of its app.
pub async fn insert_all(
    tx: &mut Tx,
    hub: &Addressee,
    new: &NewAppJobs,
    now: Timestamp,
) -> Result<()> {
    let count = new.jobs.len();
    let each = |of: &dyn Fn(&NewAppJob) -> Uuid| Column::Uuid(new.jobs.iter().map(of).collect());
    let release = |job: &NewAppJob| job.release.as_ref().map(|(release_uuid, _)| release_uuid.0);
    let version = |job: &NewAppJob| job.release.as_ref().map(|(_, version)| version.clone());
    Bulk {
        head: "WITH given (hub_job_uuid, hub_uuid, tenant_uuid, revision, job_type, app_uuid, \
               release_uuid, version, deadline_at, now_at) AS (",
        columns: vec![
            each(&|job| job.hub_job_uuid.0),
            Column::Uuid(vec![hub.hub_uuid.0; count]),
            Column::Uuid(vec![hub.tenant_uuid.0; count]),
            Column::Int((new.first_revision..).take(count).collect()),
            Column::Word(vec![new.job_type.name(); count]),
            each(&|job| job.app_uuid.0),
            Column::OptionalUuid(new.jobs.iter().map(release).collect()),
            Column::OptionalText(new.jobs.iter().map(version).collect()),
            Column::Time(vec![new.deadline_at; count]),
            Column::Time(vec![now; count]),
        ],
        tail: ") INSERT INTO hub_jobs (hub_job_uuid, hub_uuid, tenant_uuid, revision, job_type, \
               status, app_uuid, release_uuid, version, force, deadline_at, attempts, \
               event_count, created_at, updated_at) SELECT hub_job_uuid, hub_uuid, tenant_uuid, \
               revision, job_type, 'PENDING', app_uuid, release_uuid, version, FALSE, \
               deadline_at, 0, 0, now_at, now_at FROM given",
    }
    .execute(tx)
    .await?;
    Bulk {
        head: "INSERT INTO hub_apps (hub_uuid, app_uuid, tenant_uuid, hub_job_uuid, updated_at)",
        columns: vec![
            Column::Uuid(vec![hub.hub_uuid.0; count]),
            each(&|job| job.app_uuid.0),
            Column::Uuid(vec![hub.tenant_uuid.0; count]),
            each(&|job| job.hub_job_uuid.0),
            Column::Time(vec![now; count]),
        ],
        tail: "ON CONFLICT (hub_uuid, app_uuid) DO UPDATE SET \
               hub_job_uuid = excluded.hub_job_uuid, updated_at = excluded.updated_at",
    }
    .execute(tx)
    .await
    .map(drop)
}

pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    hub_job_uuid: HubJobUuid,
) -> Result<Option<HubJob>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM hub_jobs WHERE hub_job_uuid = $1 AND hub_uuid = $2 AND tenant_uuid = $3")
        .bind((hub_job_uuid, hub_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// The hub's jobs in the order of their revisions, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<HubJob>, i64)> {
    sql("FROM hub_jobs WHERE hub_uuid = $1 AND tenant_uuid = $2")
        .bind((hub_uuid, scope.tenant_uuid()))
        .page(conn, COLUMNS, &["revision ", direction.sql()], slice)
        .await
}

/// The open jobs of the hub, in order.
pub async fn open(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<HubJob>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL \
         AND deadline_at > $2 ORDER BY revision LIMIT $3",
        )
        .bind((hub_uuid, now, limit))
        .all(conn)
        .await
}

/// Marks the due jobs as dispatched: those that were not dispatched yet, and the first in order if
/// its lease has expired.
pub async fn dispatch(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    now: Timestamp,
    leased_until: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE hub_jobs SET status = CASE WHEN status = 'PENDING' THEN 'DISPATCHED' \
         ELSE status END, attempts = attempts + 1, leased_until = $3, updated_at = $2, \
         dispatched_at = COALESCE(dispatched_at, $2) \
         WHERE hub_uuid = $1 AND finished_at IS NULL AND deadline_at > $2 \
         AND (leased_until IS NULL OR leased_until <= $2 AND revision = (SELECT MIN(revision) \
         FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL AND deadline_at > $2))",
    )
    .bind((hub_uuid, now, leased_until))
    .run(tx)
    .await
}

/// The change that an event makes to a job that continues.
pub struct Step<'a> {
    pub status: HubJobStatus,
    pub detail: Option<&'a str>,
    pub progress: Option<i64>,
    pub leased_until: Timestamp,
}

pub async fn step(
    tx: &mut Tx,
    hub_job_uuid: HubJobUuid,
    step: Step<'_>,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE hub_jobs SET status = $2, detail = COALESCE($3, detail), progress = COALESCE($4, \
         progress), leased_until = $5, updated_at = $6, dispatched_at = COALESCE(dispatched_at, \
         $6), started_at = CASE WHEN $7 THEN COALESCE(started_at, $6) ELSE started_at END, \
         event_count = event_count + 1 WHERE hub_job_uuid = $1",
    )
    .bind((
        hub_job_uuid,
        step.status.name(),
        step.detail,
        step.progress,
        step.leased_until,
        now,
        step.status == HubJobStatus::Running,
    ))
    .run(tx)
    .await
}

pub async fn finish(tx: &mut Tx, job: &HubJob, end: End<'_>, now: Timestamp) -> Result<HubJob> {
    sql(
        "UPDATE hub_jobs SET status = $2, detail = COALESCE($3, detail), result = $4, \
         fails_in_passing = $6, command = NULL, sealed_claim_code = NULL, updated_at = $5, \
         finished_at = $5 WHERE hub_job_uuid = $1 RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        job.hub_job_uuid,
        end.status.name(),
        end.detail,
        end.result,
        now,
        end.fails_in_passing,
    ))
    .one(tx)
    .await
}

/// Jobs whose deadline has passed, longest overdue first.
pub async fn past_deadline(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<HubJob>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM hub_jobs WHERE finished_at IS NULL AND deadline_at <= $1 \
             ORDER BY deadline_at LIMIT $2",
        )
        .bind((now, limit))
        .all(conn)
        .await
}

/// Jobs that were dispatched at least `attempts` times and never reported on.
pub async fn unanswered(
    conn: &mut Conn,
    attempts: i64,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<HubJob>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM hub_jobs WHERE finished_at IS NULL AND event_count = 0 AND attempts >= $1 \
            AND leased_until <= $2 ORDER BY attempts, leased_until LIMIT $3",
        )
        .bind((attempts, now, limit))
        .all(conn)
        .await
}

/// Adds the conditions that select jobs created by update policies.
fn of_policies(statement: Sql, selection: &Selection) -> Sql {
    const OWN_POLICY: &str = " AND EXISTS (SELECT 1 FROM update_policies own \
        WHERE own.scope = 'HUB' AND own.hub_uuid = hub_jobs.hub_uuid)";
    const UNIT_POLICY: &str = " AND EXISTS (SELECT 1 FROM update_policies unit \
        WHERE unit.scope = 'UNIT' AND unit.tenant_uuid = hub_jobs.tenant_uuid)";
    let statement = match selection {
        Selection::OpenTo(..) => statement.push(" finished_at IS NULL AND policy_uuid IS NOT NULL"),
        _ => statement
            .push(" status = 'PENDING' AND finished_at IS NULL AND policy_uuid IS NOT NULL"),
    };
    match selection {
        Selection::OfHub(hub_uuid) => statement.push(" AND hub_uuid = ").push_bind(*hub_uuid),
        Selection::OfPolicy(policy_uuid) => statement
            .push(" AND policy_uuid = ")
            .push_bind(*policy_uuid),
        Selection::OfTenant(policy_uuid, tenant_uuid) => {
            let statement = statement
                .push(" AND policy_uuid = ")
                .push_bind(*policy_uuid);
            statement
                .push(" AND tenant_uuid = ")
                .push_bind(*tenant_uuid)
        }
        Selection::To(policy_uuid, releases) | Selection::OpenTo(policy_uuid, releases) => {
            let statement = statement
                .push(" AND policy_uuid = ")
                .push_bind(*policy_uuid);
            statement
                .push(" AND release_uuid IN ")
                .push_list(releases.iter().copied())
        }
        Selection::OutsideOf(policy_uuid, window) => {
            let (start, end) = window
                .clone()
                .map(|window| (window.start, window.end))
                .unzip();
            let statement = statement
                .push(" AND policy_uuid = ")
                .push_bind(*policy_uuid);
            let statement = statement
                .push(" AND (window_start IS DISTINCT FROM ")
                .push_bind(start);
            statement
                .push(" OR window_end IS DISTINCT FROM ")
                .push_bind(end)
                .push(")")
        }
        Selection::OverriddenByHub(policy_uuid) => statement
            .push(" AND policy_uuid = ")
            .push_bind(*policy_uuid)
            .push(OWN_POLICY),
        Selection::OverriddenByUnit(policy_uuid) => statement
            .push(" AND policy_uuid = ")
            .push_bind(*policy_uuid)
            .push(UNIT_POLICY),
    }
}

/// The first `limit` hubs with such jobs, in key order. The list must not be empty.
pub async fn hubs_to_withdraw_from(
    conn: &mut Conn,
    withdrawals: &[Withdrawal],
    limit: i64,
) -> Result<Vec<HubUuid>> {
    let mut statement = sql("SELECT hub_uuid FROM (");
    for (number, withdrawal) in withdrawals.iter().enumerate() {
        let head = if number == 0 { "" } else { " UNION " };
        statement = of_policies(
            statement
                .push(head)
                .push("SELECT hub_uuid FROM hub_jobs WHERE"),
            &withdrawal.selection,
        );
    }
    let statement = statement
        .push(") AS found GROUP BY hub_uuid ORDER BY hub_uuid LIMIT ")
        .push_bind(limit);
    statement.scalars(conn).await
}

/// Cancels such jobs of these hubs and returns the hubs that had one. The transaction has locked
/// the hubs; the list must not be empty.
pub async fn cancel_of_policies(
    tx: &mut Tx,
    withdrawal: &Withdrawal,
    hubs: &[HubUuid],
    now: Timestamp,
) -> Result<Vec<HubUuid>> {
    let statement = sql(
        "UPDATE hub_jobs SET status = 'CANCELLED', detail = $1, updated_at = $2, \
        finished_at = $2 WHERE hub_uuid IN ",
    )
    .bind((withdrawal.reason, now))
    .push_list(hubs.iter().copied())
    .push(" AND");
    let statement = of_policies(statement, &withdrawal.selection).push(" RETURNING hub_uuid");
    statement.scalars(tx).await
}

/// Cancels the open jobs of the hub and returns how many.
pub async fn cancel_all(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    reason: &str,
    now: Timestamp,
) -> Result<u64> {
    sql(
        "UPDATE hub_jobs SET status = 'CANCELLED', detail = $2, command = NULL, \
         sealed_claim_code = NULL, updated_at = $3, finished_at = $3 \
         WHERE hub_uuid = $1 AND finished_at IS NULL",
    )
    .bind((hub_uuid, reason, now))
    .execute(tx)
    .await
}

/// As [`cancel_all`], for all hubs of the tenant.
pub async fn cancel_all_of_tenant(
    tx: &mut Tx,
    scope: &Scope,
    reason: &str,
    now: Timestamp,
) -> Result<u64> {
    sql(
        "UPDATE hub_jobs SET status = 'CANCELLED', detail = $2, command = NULL, \
         sealed_claim_code = NULL, updated_at = $3, finished_at = $3 \
         WHERE tenant_uuid = $1 AND finished_at IS NULL",
    )
    .bind((scope.tenant_uuid(), reason, now))
    .execute(tx)
    .await
}

/// Notes that a person cancelled the job.
pub async fn note_cancelled_by_person(tx: &mut Tx, hub_job_uuid: HubJobUuid) -> Result<()> {
    sql("UPDATE hub_jobs SET cancelled_by_person = TRUE WHERE hub_job_uuid = $1")
        .bind(hub_job_uuid)
        .run(tx)
        .await
}

/// A release that a hub must not get automatically.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ExcludedUpdate {
    pub hub_uuid: HubUuid,
    pub release_uuid: ReleaseUuid,
    /// Whether the update failed for a passing cause: a rollout that was resumed since `created_at`
    /// gives it again.
    pub fails_in_passing: bool,
    pub created_at: Timestamp,
}

/// The releases that these hubs must not get automatically: their update failed, after `recently`
/// if its cause passes, or a person cancelled it.
pub async fn excluded_updates(
    conn: &mut Conn,
    hubs: &[HubUuid],
    recently: Timestamp,
) -> Result<Vec<ExcludedUpdate>> {
    if hubs.is_empty() {
        return Ok(Vec::new());
    }
    sql(
        "SELECT hub_uuid, release_uuid, fails_in_passing, created_at FROM hub_jobs \
         WHERE job_type = 'SELF_UPDATE' AND release_uuid IS NOT NULL AND ((status = 'FAILED' \
         AND (NOT fails_in_passing OR finished_at > $1)) \
         OR (status = 'CANCELLED' AND cancelled_by_person)) AND hub_uuid IN ",
    )
    .bind(recently)
    .push_list(hubs.iter().copied())
    .all(conn)
    .await
}

/// A job that failed or expired.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct FailedJob {
    pub hub_job_uuid: HubJobUuid,
    pub hub_uuid: HubUuid,
    #[sqlx(try_from = "String")]
    pub job_type: HubJobType,
    #[sqlx(try_from = "String")]
    pub status: HubJobStatus,
    pub detail: Option<String>,
    pub finished_at: Timestamp,
}

/// Jobs of the tenant that failed or expired at `from` or later, the earliest first. Commands are
/// left out: their requesters see the failure.
pub async fn failed_since(
    conn: &mut Conn,
    scope: &Scope,
    from: Timestamp,
    limit: i64,
) -> Result<Vec<FailedJob>> {
    sql(
        "SELECT hub_job_uuid, hub_uuid, job_type, status, detail, finished_at FROM hub_jobs \
         WHERE tenant_uuid = $1 AND finished_at >= $2 AND status IN ('FAILED', 'EXPIRED') \
         AND job_type <> 'DEVICE_COMMAND' ORDER BY finished_at LIMIT $3",
    )
    .bind((scope.tenant_uuid(), from, limit))
    .all(conn)
    .await
}

/// The number of the tenant's running jobs, and of those that failed or expired at `from` or later.
pub async fn counts(conn: &mut Conn, scope: &Scope, from: Timestamp) -> Result<(i64, i64)> {
    let running = sql("SELECT COUNT(*) FROM hub_jobs \
         WHERE tenant_uuid = $1 AND finished_at IS NULL AND status = 'RUNNING'")
    .bind(scope.tenant_uuid())
    .scalar(conn)
    .await?;
    let failed = sql("SELECT COUNT(*) FROM hub_jobs \
         WHERE tenant_uuid = $1 AND finished_at >= $2 AND status IN ('FAILED', 'EXPIRED')")
    .bind((scope.tenant_uuid(), from))
    .scalar(conn)
    .await?;
    Ok((running, failed))
}
