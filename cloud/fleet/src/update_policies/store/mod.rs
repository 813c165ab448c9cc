//! SQL of update policies and of the hubs they apply to.

pub mod rollouts;

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_protocol::claim::OperatingSystem;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use sqlx::types::Json;
use uuid::Uuid;

use super::{Policy, PolicyScope, Target, Terms};

const COLUMNS: &str = "policy_uuid, scope, tenant_uuid, hub_uuid, channel, version, auto_update, \
    window_start, window_end, percent, step_percent, step_interval_secs, max_failure_percent, \
    silent_after_secs, min_finished, swept_to, sweep_due_at, is_told, told_to, created_at, \
    updated_at";

/// The policy of a target, locked until the transaction ends.
pub async fn lock_target(tx: &mut Tx, target: &str) -> Result<Option<Policy>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM update_policies WHERE target = $1")
        .for_update(tx)
        .bind(target)
        .optional(tx)
        .await
}

/// A policy, locked until the transaction ends; of the tenant, if one is given.
pub async fn lock(
    tx: &mut Tx,
    policy_uuid: Uuid,
    tenant_uuid: Option<TenantUuid>,
) -> Result<Option<Policy>> {
    let mut statement = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM update_policies WHERE policy_uuid = $1")
        .bind(policy_uuid);
    if let Some(tenant_uuid) = tenant_uuid {
        statement = statement.push(" AND tenant_uuid = ").push_bind(tenant_uuid);
    }
    statement.for_update(tx).optional(tx).await
}

/// Narrows a statement to what a tenant may read: its own policies, and the platform's while that
/// governs its hubs because the tenant has none for all of them.
fn readable(statement: Sql, tenant_uuid: TenantUuid) -> Sql {
    const GLOBAL: &str = " OR (scope = 'GLOBAL' AND NOT EXISTS (SELECT 1 \
        FROM update_policies unit WHERE unit.scope = 'UNIT' AND unit.tenant_uuid = ";
    let own = statement
        .push(" AND (tenant_uuid = ")
        .push_bind(tenant_uuid);
    own.push(GLOBAL).push_bind(tenant_uuid).push(")))")
}

/// A policy that the tenant may read.
pub async fn get(
    conn: &mut Conn,
    policy_uuid: Uuid,
    tenant_uuid: TenantUuid,
) -> Result<Option<Policy>> {
    let statement = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM update_policies WHERE policy_uuid = ");
    readable(statement.push_bind(policy_uuid), tenant_uuid)
        .optional(conn)
        .await
}

/// The global policy, if it exists.
pub async fn global(conn: &mut Conn) -> Result<Option<Uuid>> {
    sql("SELECT policy_uuid FROM update_policies WHERE scope = 'GLOBAL'")
        .optional_scalar(conn)
        .await
}

/// The filters of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// The tenant whose readable policies are listed; None for all.
    pub tenant_uuid: Option<TenantUuid>,
    pub scope: Option<PolicyScope>,
}

/// One page, newest first, and the total number.
pub async fn list(conn: &mut Conn, filter: Filter, slice: Slice) -> Result<(Vec<Policy>, i64)> {
    let mut from = sql("FROM update_policies WHERE 1 = 1");
    if let Some(tenant_uuid) = filter.tenant_uuid {
        from = readable(from, tenant_uuid);
    }
    if let Some(scope) = filter.scope {
        from = from.push(" AND scope = ").push_bind(scope.name());
    }
    from.page(conn, COLUMNS, &["created_at DESC, policy_uuid DESC"], slice)
        .await
}

/// Creates or replaces the policy of the target. It is due at once, and its hubs are notified if
/// `must_announce`.
pub async fn put(
    tx: &mut Tx,
    target: Target,
    terms: &Terms,
    must_announce: bool,
    now: Timestamp,
) -> Result<Policy> {
    let window = terms.window.clone();
    let (window_start, window_end) = window.map(|window| (window.start, window.end)).unzip();
    let rollout = &terms.rollout;
    sql(
        "INSERT INTO update_policies (policy_uuid, scope, target, tenant_uuid, hub_uuid, \
         channel, version, auto_update, window_start, window_end, percent, step_percent, \
         step_interval_secs, max_failure_percent, silent_after_secs, min_finished, due_at, \
         sweep_due_at, created_at, updated_at, is_told) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
         $17, $17, $17, $18) ON CONFLICT (target) DO UPDATE SET channel = excluded.channel, \
         version = excluded.version, auto_update = excluded.auto_update, \
         window_start = excluded.window_start, window_end = excluded.window_end, \
         percent = excluded.percent, step_percent = excluded.step_percent, \
         step_interval_secs = excluded.step_interval_secs, \
         max_failure_percent = excluded.max_failure_percent, \
         silent_after_secs = excluded.silent_after_secs, min_finished = excluded.min_finished, \
         swept_to = NULL, due_at = excluded.due_at, sweep_due_at = excluded.sweep_due_at, \
         is_told = CASE WHEN excluded.is_told THEN update_policies.is_told ELSE excluded.is_told \
         END, told_to = CASE WHEN excluded.is_told THEN update_policies.told_to ELSE NULL END, \
         updated_at = excluded.updated_at RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        Uuid::now_v7(),
        target.scope().name(),
        target.key(),
        target.tenant_uuid(),
        target.hub_uuid(),
        terms.channel.as_str(),
        terms.version.as_deref(),
        terms.auto_update,
        window_start,
        window_end,
        rollout.percent,
        rollout.step_percent,
        rollout.step_interval_seconds,
        rollout.max_failure_percent,
        rollout.silent_after_seconds,
        rollout.min_finished,
    ))
    .bind((now, !must_announce))
    .one(tx)
    .await
}

/// Deletes the policy and, by cascade, its rollouts.
pub async fn delete(tx: &mut Tx, policy_uuid: Uuid) -> Result<()> {
    sql("DELETE FROM update_policies WHERE policy_uuid = $1")
        .bind(policy_uuid)
        .run(tx)
        .await
}

/// Deletes the policy of a hub that is to be released, if it has one, and returns their number. It
/// must run before the hub is locked.
pub async fn delete_of_hub(tx: &mut Tx, hub_uuid: HubUuid) -> Result<u64> {
    sql("DELETE FROM update_policies WHERE scope = 'HUB' AND hub_uuid = $1")
        .bind(hub_uuid)
        .execute(tx)
        .await
}

/// The most specific policy that applies to a hub.
pub async fn of_hub(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Policy>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM update_policies WHERE hub_uuid = $1 OR scope = 'GLOBAL' OR (scope = 'UNIT' \
            AND tenant_uuid = (SELECT hubs.tenant_uuid FROM hubs WHERE hubs.hub_uuid = $1)) \
            ORDER BY CASE scope WHEN 'HUB' THEN 1 WHEN 'UNIT' THEN 2 ELSE 3 END LIMIT 1",
        )
        .bind(hub_uuid)
        .optional(conn)
        .await
}

/// Policies that are due, longest due first.
pub async fn due(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Uuid>> {
    sql(
        "SELECT policy_uuid FROM update_policies WHERE due_at <= $1 \
         ORDER BY due_at, policy_uuid LIMIT $2",
    )
    .bind((now, limit))
    .scalars(conn)
    .await
}

/// As [`lock`], if the policy is still due: of two workers that found it, the second gets None.
pub async fn lock_due(tx: &mut Tx, policy_uuid: Uuid, now: Timestamp) -> Result<Option<Policy>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM update_policies WHERE policy_uuid = $1 AND due_at <= $2")
        .for_update(tx)
        .bind((policy_uuid, now))
        .optional(tx)
        .await
}

/// The progress of the worker on a policy.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The last hub visited in the current sweep.
    pub swept_to: Option<HubUuid>,
    /// When the policy is due next, and when the next sweep begins.
    pub due_at: Timestamp,
    pub sweep_due_at: Timestamp,
}

pub async fn set_schedule(tx: &mut Tx, policy_uuid: Uuid, schedule: Schedule) -> Result<()> {
    sql(
        "UPDATE update_policies SET swept_to = $2, due_at = $3, sweep_due_at = $4 \
         WHERE policy_uuid = $1",
    )
    .bind((
        policy_uuid,
        schedule.swept_to,
        schedule.due_at,
        schedule.sweep_due_at,
    ))
    .run(tx)
    .await
}

/// Defers the policy.
pub async fn postpone(tx: &mut Tx, policy_uuid: Uuid, due_at: Timestamp) -> Result<()> {
    sql("UPDATE update_policies SET due_at = $2 WHERE policy_uuid = $1")
        .bind((policy_uuid, due_at))
        .run(tx)
        .await
}

/// Stores the last hub that was notified of the policy; None when all were.
pub async fn set_announced(tx: &mut Tx, policy_uuid: Uuid, told_to: Option<HubUuid>) -> Result<()> {
    sql("UPDATE update_policies SET is_told = $2, told_to = $3 WHERE policy_uuid = $1")
        .bind((policy_uuid, told_to.is_none(), told_to))
        .run(tx)
        .await
}

const NO_OWN_POLICY: &str = " AND NOT EXISTS (SELECT 1 FROM update_policies own \
    WHERE own.scope = 'HUB' AND own.hub_uuid = hubs.hub_uuid)";
const NO_UNIT_POLICY: &str = " AND NOT EXISTS (SELECT 1 FROM update_policies unit \
    WHERE unit.scope = 'UNIT' AND unit.tenant_uuid = hubs.tenant_uuid)";

/// The next `limit` hubs that the global policy applies to.
pub async fn hubs_to_announce_to(
    conn: &mut Conn,
    after: Option<HubUuid>,
    limit: i64,
) -> Result<Vec<HubUuid>> {
    let mut statement = sql("SELECT hub_uuid FROM hubs WHERE access_token_id IS NOT NULL");
    statement = statement.push(NO_OWN_POLICY).push(NO_UNIT_POLICY);
    if let Some(after) = after {
        statement = statement.push(" AND hub_uuid > ").push_bind(after);
    }
    statement
        .push(" ORDER BY hub_uuid LIMIT ")
        .push_bind(limit)
        .scalars(conn)
        .await
}

/// A hub that a policy applies to.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct PolicyHub {
    pub hub_uuid: HubUuid,
    pub agent_version: Option<String>,
    pub os: Option<Json<OperatingSystem>>,
}

/// The next `limit` hubs that the policy applies to, because no more specific one does, and that
/// have no open update. Blocked hubs and hubs without credentials are skipped: they cannot fetch a
/// job.
pub async fn hubs_of(
    conn: &mut Conn,
    policy: &Policy,
    after: Option<HubUuid>,
    limit: i64,
) -> Result<Vec<PolicyHub>> {
    let mut statement = sql("SELECT hub_uuid, agent_version, os FROM hubs \
         WHERE blocked_at IS NULL AND access_token_id IS NOT NULL AND NOT EXISTS (SELECT 1 \
         FROM hub_jobs open WHERE open.hub_uuid = hubs.hub_uuid AND open.finished_at IS NULL \
         AND open.job_type = 'SELF_UPDATE')");
    statement = match policy.scope {
        PolicyScope::Hub => statement
            .push(" AND hub_uuid = ")
            .push_bind(policy.hub_uuid),
        PolicyScope::Unit => statement
            .push(" AND tenant_uuid = ")
            .push_bind(policy.tenant_uuid)
            .push(NO_OWN_POLICY),
        PolicyScope::Global => statement.push(NO_OWN_POLICY).push(NO_UNIT_POLICY),
    };
    if let Some(after) = after {
        statement = statement.push(" AND hub_uuid > ").push_bind(after);
    }
    statement
        .push(" ORDER BY hub_uuid LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}
