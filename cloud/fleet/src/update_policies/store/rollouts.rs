//! SQL of rollouts and of the progress of their hubs.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{ReleaseUuid, Timestamp};
use uuid::Uuid;

use super::super::rollout::Rollout;

const COLUMNS: &str = "policy_uuid, release_uuid, version, architecture, state, reason, percent, \
    is_wanted, next_step_at, judged_from, COALESCE(stepped_at, judged_from) AS stepped_at, \
    started, succeeded, failed, silent, created_at, updated_at";

/// The rollouts of these policies whose releases are still desired. The list must not be empty.
pub async fn desired(conn: &mut Conn, policies: &[Uuid]) -> Result<Vec<Rollout>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM update_rollouts WHERE is_wanted AND policy_uuid IN ")
        .push_list(policies.iter().copied())
        .push(" ORDER BY policy_uuid, created_at DESC, release_uuid")
        .all(conn)
        .await
}

/// All rollouts of a policy that the transaction has locked, newest first. Their number is small:
/// one for each release.
pub async fn of_policy(conn: &mut Conn, policy_uuid: Uuid) -> Result<Vec<Rollout>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM update_rollouts WHERE policy_uuid = $1 \
             ORDER BY created_at DESC, release_uuid LIMIT 200",
        )
        .bind(policy_uuid)
        .all(conn)
        .await
}

/// Stores the rollout of a policy that the transaction has locked.
pub async fn put(tx: &mut Tx, rollout: &Rollout, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO update_rollouts (policy_uuid, release_uuid, version, architecture, \
         state, reason, percent, is_wanted, next_step_at, judged_from, stepped_at, started, \
         succeeded, failed, silent, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
         ON CONFLICT (policy_uuid, release_uuid) DO UPDATE SET state = excluded.state, \
         reason = excluded.reason, percent = excluded.percent, is_wanted = excluded.is_wanted, \
         next_step_at = excluded.next_step_at, judged_from = excluded.judged_from, \
         stepped_at = excluded.stepped_at, started = excluded.started, \
         succeeded = excluded.succeeded, failed = excluded.failed, silent = excluded.silent, \
         updated_at = excluded.updated_at",
    )
    .bind((
        rollout.policy_uuid,
        rollout.release_uuid,
        rollout.version.as_str(),
        rollout.architecture.as_str(),
        rollout.state.name(),
        rollout.reason.as_deref(),
        rollout.percent,
        rollout.is_wanted,
        rollout.next_step_at,
        rollout.judged_from,
        rollout.stepped_at,
        rollout.started,
        rollout.succeeded,
        rollout.failed,
        rollout.silent,
        rollout.created_at,
    ))
    .bind(now)
    .run(tx)
    .await
}

/// The progress of a rollout's hubs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Tally {
    /// The job was dispatched and not cancelled.
    pub started: i64,
    pub succeeded: i64,
    /// Hubs whose job failed or expired.
    pub failed: i64,
    /// Those of them that failed for a cause that passes, which is no evidence about the release.
    pub failed_in_passing: i64,
    /// Hubs that began, and were not seen for a long time since.
    pub silent: i64,
    /// The job is not finished.
    pub open: i64,
}

impl Tally {
    /// The hubs that started and have an outcome.
    pub const fn finished(&self) -> i64 {
        self.succeeded + self.failed + self.silent
    }
}

/// Counts the jobs created at `from` or later. A hub that was not seen since `silent_before` is
/// silent. A hub that never fetched its job is not counted: it is offline, which is no evidence
/// about the release.
pub async fn tally(
    conn: &mut Conn,
    policy_uuid: Uuid,
    release_uuid: ReleaseUuid,
    from: Timestamp,
    silent_before: Timestamp,
) -> Result<Tally> {
    sql("SELECT COUNT(CASE WHEN jobs.dispatched_at IS NOT NULL \
         AND jobs.status <> 'CANCELLED' THEN 1 END) AS started, \
         COUNT(CASE WHEN jobs.status = 'SUCCEEDED' THEN 1 END) AS succeeded, \
         COUNT(CASE WHEN jobs.status = 'FAILED' OR (jobs.status = 'EXPIRED' \
         AND jobs.dispatched_at IS NOT NULL) THEN 1 END) AS failed, \
         COUNT(CASE WHEN jobs.status = 'FAILED' AND jobs.fails_in_passing THEN 1 END) \
         AS failed_in_passing, \
         COUNT(CASE WHEN jobs.finished_at IS NULL AND jobs.dispatched_at < $4 \
         AND (seen.last_seen_at IS NULL OR seen.last_seen_at < $4) THEN 1 END) AS silent, \
         COUNT(CASE WHEN jobs.finished_at IS NULL THEN 1 END) AS open \
         FROM hub_jobs jobs LEFT JOIN hub_contacts seen \
         ON seen.tenant_uuid = jobs.tenant_uuid AND seen.hub_uuid = jobs.hub_uuid \
         WHERE jobs.policy_uuid = $1 AND jobs.release_uuid = $2 AND jobs.created_at >= $3")
    .bind((policy_uuid, release_uuid, from, silent_before))
    .one(conn)
    .await
}

/// A rollout that somebody or too many failures have halted.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct HaltedRollout {
    pub policy_uuid: Uuid,
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub reason: Option<String>,
    pub updated_at: Timestamp,
}

/// The halted rollouts of the tenant's policies.
pub async fn halted(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<HaltedRollout>> {
    sql(
        "SELECT r.policy_uuid, r.release_uuid, r.version, r.reason, r.updated_at \
         FROM update_policies p JOIN update_rollouts r ON r.policy_uuid = p.policy_uuid \
         WHERE p.tenant_uuid = $1 AND r.is_wanted AND r.state = 'HALTED' LIMIT $2",
    )
    .bind((scope.tenant_uuid(), limit))
    .all(conn)
    .await
}
