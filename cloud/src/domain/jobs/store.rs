//! SQL of jobs. Whoever changes one holds the row of its hub.

use hub_protocol::job::{HubJobStatus, HubJobType};
use hub_protocol::{HubJobUuid, HubUuid, Timestamp};

use super::withdraw::{Which, Withdrawal};
use super::{End, HubJob, NewJob};
use crate::authz::Scope;
use crate::db::{Conn, Sql, Tx, sql};
use crate::domain::hubs::Addressee;
use crate::error::Result;
use crate::http::page::{Direction, MAX_OFFSET};

const COLUMNS: &str = "hub_job_uuid, hub_uuid, tenant_uuid, job_type, status, app_uuid, release_uuid, version, policy_uuid, force, window_start, \
    window_end, deadline_at, attempts, leased_until, event_count, progress, detail, result, created_at, updated_at, dispatched_at, started_at, \
    finished_at";

/// Cancels what the new job makes superfluous; answers which jobs that were.
pub async fn supersede(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    new: &NewJob,
    by: HubJobUuid,
    now: Timestamp,
) -> Result<Vec<HubJobUuid>> {
    let statement = sql("UPDATE hub_jobs SET status = 'CANCELLED', detail = $2, updated_at = $3, finished_at = $3 \
         WHERE hub_uuid = $1 AND finished_at IS NULL AND status IN ('PENDING', 'DISPATCHED') AND ")
    .bind(hub_uuid)
    .bind(format!("superseded by job {by}"))
    .bind(now);
    let statement = match new.app_uuid {
        Some(app_uuid) => statement.push("app_uuid = ").push_bind(app_uuid),
        None => statement.push("job_type = ").push_bind(new.job_type.name()),
    };
    let rows: Vec<(HubJobUuid,)> = statement.push(" RETURNING hub_job_uuid").all(tx).await?;
    Ok(rows.into_iter().map(|(hub_job_uuid,)| hub_job_uuid).collect())
}

pub async fn count_open(conn: &mut Conn, hub_uuid: HubUuid) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL")
        .bind(hub_uuid)
        .one(conn)
        .await?;
    Ok(count)
}

pub async fn is_self_update_open(conn: &mut Conn, hub_uuid: HubUuid) -> Result<bool> {
    let found: Option<(HubJobUuid,)> =
        sql("SELECT hub_job_uuid FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL AND job_type = $2 LIMIT 1")
            .bind(hub_uuid)
            .bind(HubJobType::SelfUpdate.name())
            .optional(conn)
            .await?;
    Ok(found.is_some())
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
    sql("INSERT INTO hub_jobs (hub_job_uuid, hub_uuid, tenant_uuid, revision, job_type, status, app_uuid, release_uuid, version, policy_uuid, force, \
         window_start, window_end, deadline_at, attempts, event_count, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, 'PENDING', $6, $7, $8, $9, $10, $11, $12, $13, 0, 0, $14, $14) RETURNING ")
    .push(COLUMNS)
    .bind(hub_job_uuid)
    .bind(hub.hub_uuid)
    .bind(hub.tenant_uuid)
    .bind(revision)
    .bind(new.job_type.name())
    .bind(new.app_uuid)
    .bind(new.release_uuid)
    .bind(new.version)
    .bind(new.policy_uuid)
    .bind(new.terms.force)
    .bind(window_start)
    .bind(window_end)
    .bind(new.terms.deadline_at)
    .bind(now)
    .one(tx)
    .await
}

pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    hub_job_uuid: HubJobUuid,
) -> Result<Option<HubJob>> {
    sql(&format!("SELECT {COLUMNS} FROM hub_jobs WHERE hub_job_uuid = $1 AND hub_uuid = $2 AND tenant_uuid = $3"))
        .bind(hub_job_uuid)
        .bind(hub_uuid)
        .bind(scope.tenant_uuid())
        .optional(conn)
        .await
}

/// In the order they were made, or the other way round.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    direction: Direction,
    (size, offset): (i64, i64),
) -> Result<(Vec<HubJob>, i64)> {
    let jobs =
        sql(&format!("SELECT {COLUMNS} FROM hub_jobs WHERE hub_uuid = $1 AND tenant_uuid = $2 ORDER BY revision "))
            .push(direction.sql())
            .push(" LIMIT $3 OFFSET $4")
            .bind(hub_uuid)
            .bind(scope.tenant_uuid())
            .bind(size)
            .bind(offset)
            .all(conn)
            .await?;
    let (total,): (i64,) = sql("SELECT COUNT(*) FROM \
         (SELECT 1 AS one FROM hub_jobs WHERE hub_uuid = $1 AND tenant_uuid = $2 LIMIT $3) AS counted")
    .bind(hub_uuid)
    .bind(scope.tenant_uuid())
    .bind(MAX_OFFSET)
    .one(conn)
    .await?;
    Ok((jobs, total))
}

/// What the hub is still to do, in order.
pub async fn open(conn: &mut Conn, hub_uuid: HubUuid, now: Timestamp, limit: i64) -> Result<Vec<HubJob>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL AND deadline_at > $2 ORDER BY revision LIMIT $3"
    ))
    .bind(hub_uuid)
    .bind(now)
    .bind(limit)
    .all(conn)
    .await
}

/// Notes that the hub is given what is due: what it was not given yet, and the first in line if it was given long ago.
pub async fn dispatch(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp, leased_until: Timestamp) -> Result<()> {
    sql("UPDATE hub_jobs SET status = CASE WHEN status = 'PENDING' THEN 'DISPATCHED' ELSE status END, attempts = attempts + 1, leased_until = $3, \
         updated_at = $2, dispatched_at = COALESCE(dispatched_at, $2) \
         WHERE hub_uuid = $1 AND finished_at IS NULL AND deadline_at > $2 AND (leased_until IS NULL OR leased_until <= $2 AND revision = \
         (SELECT MIN(revision) FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL AND deadline_at > $2))")
    .bind(hub_uuid)
    .bind(now)
    .bind(leased_until)
    .execute(tx)
    .await?;
    Ok(())
}

/// What an event does to a job that goes on.
pub struct Step<'a> {
    pub status: HubJobStatus,
    pub detail: Option<&'a str>,
    pub progress: Option<i64>,
    pub leased_until: Timestamp,
}

pub async fn step(tx: &mut Tx, hub_job_uuid: HubJobUuid, step: Step<'_>, now: Timestamp) -> Result<()> {
    sql("UPDATE hub_jobs SET status = $2, detail = COALESCE($3, detail), progress = COALESCE($4, progress), leased_until = $5, updated_at = $6, \
         dispatched_at = COALESCE(dispatched_at, $6), started_at = CASE WHEN $7 THEN COALESCE(started_at, $6) ELSE started_at END, event_count = event_count + 1 WHERE hub_job_uuid = $1")
    .bind(hub_job_uuid)
    .bind(step.status.name())
    .bind(step.detail)
    .bind(step.progress)
    .bind(step.leased_until)
    .bind(now)
    .bind(step.status == HubJobStatus::Running)
    .execute(tx)
    .await?;
    Ok(())
}

pub async fn finish(tx: &mut Tx, job: &HubJob, end: End<'_>, now: Timestamp) -> Result<HubJob> {
    sql("UPDATE hub_jobs SET status = $2, detail = COALESCE($3, detail), result = $4, updated_at = $5, finished_at = $5 \
         WHERE hub_job_uuid = $1 RETURNING ")
    .push(COLUMNS)
    .bind(job.hub_job_uuid)
    .bind(end.status.name())
    .bind(end.detail)
    .bind(end.result)
    .bind(now)
    .one(tx)
    .await
}

/// Jobs whose deadline has passed, the longest overdue first.
pub async fn past_deadline(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<HubJob>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM hub_jobs WHERE finished_at IS NULL AND deadline_at <= $1 ORDER BY deadline_at LIMIT $2"
    ))
    .bind(now)
    .bind(limit)
    .all(conn)
    .await
}

/// Jobs that their hubs were given so often, and said nothing about.
pub async fn unanswered(conn: &mut Conn, attempts: i64, now: Timestamp, limit: i64) -> Result<Vec<HubJob>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM hub_jobs WHERE finished_at IS NULL AND event_count = 0 AND attempts >= $1 AND leased_until <= $2 \
         ORDER BY attempts, leased_until LIMIT $3"
    ))
    .bind(attempts)
    .bind(now)
    .bind(limit)
    .all(conn)
    .await
}

/// Narrows a statement down to jobs that update policies made.
fn of_policies(statement: Sql, which: &Which) -> Sql {
    const OWN_POLICY: &str =
        " AND EXISTS (SELECT 1 FROM update_policies own WHERE own.scope = 'HUB' AND own.hub_uuid = hub_jobs.hub_uuid)";
    const UNIT_POLICY: &str = " AND EXISTS (SELECT 1 FROM update_policies unit WHERE unit.scope = 'UNIT' AND unit.tenant_uuid = hub_jobs.tenant_uuid)";
    let statement = match which {
        Which::OpenTo(..) => statement.push(" finished_at IS NULL AND policy_uuid IS NOT NULL"),
        _ => statement.push(" status = 'PENDING' AND finished_at IS NULL AND policy_uuid IS NOT NULL"),
    };
    match which {
        Which::OfHub(hub_uuid) => statement.push(" AND hub_uuid = ").push_bind(*hub_uuid),
        Which::OfPolicy(policy_uuid) => statement.push(" AND policy_uuid = ").push_bind(*policy_uuid),
        Which::OfTenant(policy_uuid, tenant_uuid) => {
            let statement = statement.push(" AND policy_uuid = ").push_bind(*policy_uuid);
            statement.push(" AND tenant_uuid = ").push_bind(*tenant_uuid)
        }
        Which::To(policy_uuid, releases) | Which::OpenTo(policy_uuid, releases) => {
            let statement = statement.push(" AND policy_uuid = ").push_bind(*policy_uuid);
            statement.push(" AND release_uuid IN ").push_list(releases.iter().copied())
        }
        Which::OutsideOf(policy_uuid, window) => {
            let (start, end) = window.clone().map(|window| (window.start, window.end)).unzip();
            let statement = statement.push(" AND policy_uuid = ").push_bind(*policy_uuid);
            let statement = statement.push(" AND (window_start IS DISTINCT FROM ").push_bind(start);
            statement.push(" OR window_end IS DISTINCT FROM ").push_bind(end).push(")")
        }
        Which::OverruledByHub(policy_uuid) => {
            statement.push(" AND policy_uuid = ").push_bind(*policy_uuid).push(OWN_POLICY)
        }
        Which::OverruledByUnit(policy_uuid) => {
            statement.push(" AND policy_uuid = ").push_bind(*policy_uuid).push(UNIT_POLICY)
        }
    }
}

/// The first `limit` hubs that have such jobs, in key order. The list must not be empty.
pub async fn hubs_to_withdraw_from(conn: &mut Conn, withdrawals: &[Withdrawal], limit: i64) -> Result<Vec<HubUuid>> {
    let mut statement = sql("SELECT hub_uuid FROM (");
    for (number, withdrawal) in withdrawals.iter().enumerate() {
        let head = if number == 0 { "" } else { " UNION " };
        statement = of_policies(statement.push(head).push("SELECT hub_uuid FROM hub_jobs WHERE"), &withdrawal.which);
    }
    let statement = statement.push(") AS found GROUP BY hub_uuid ORDER BY hub_uuid LIMIT ").push_bind(limit);
    let hubs: Vec<(HubUuid,)> = statement.all(conn).await?;
    Ok(hubs.into_iter().map(|(hub_uuid,)| hub_uuid).collect())
}

/// Cancels such jobs of the hubs, which the transaction holds; answers whose those were. The list must not be empty.
pub async fn cancel_of_policies(
    tx: &mut Tx,
    withdrawal: &Withdrawal,
    hubs: &[HubUuid],
    now: Timestamp,
) -> Result<Vec<HubUuid>> {
    let statement = sql(
        "UPDATE hub_jobs SET status = 'CANCELLED', detail = $1, updated_at = $2, finished_at = $2 WHERE hub_uuid IN ",
    )
    .bind(withdrawal.because)
    .bind(now)
    .push_list(hubs.iter().copied())
    .push(" AND");
    let statement = of_policies(statement, &withdrawal.which).push(" RETURNING hub_uuid");
    let hubs: Vec<(HubUuid,)> = statement.all(tx).await?;
    Ok(hubs.into_iter().map(|(hub_uuid,)| hub_uuid).collect())
}

/// The job that was just cancelled was so by a person.
pub async fn note_cancelled_by_person(tx: &mut Tx, hub_job_uuid: HubJobUuid) -> Result<()> {
    sql("UPDATE hub_jobs SET cancelled_by_person = TRUE WHERE hub_job_uuid = $1")
        .bind(hub_job_uuid)
        .execute(tx)
        .await?;
    Ok(())
}
