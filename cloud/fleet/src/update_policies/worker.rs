//! Creates agent update jobs from policies. Each due policy is processed in one transaction that
//! locks it: it evaluates the rollouts, advances their steps, and scans the next few hundred hubs
//! of the policy. So the work of a transaction is bounded, does not depend on the replica, and is
//! never done twice.

use std::collections::HashMap;

use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_core::audit::{self, Audit};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::rollout::{self, Rollout, State, WITHDRAWN_AT_ONCE};
use super::store::rollouts::{self, Tally};
use super::store::{self, PolicyHub, Schedule};
use super::{Policies, Policy, PolicyScope};
use crate::hubs::{self, Changes};
use crate::jobs::{self, Selection, SelfUpdate, Withdrawal};
use crate::releases::{self, AgentReleaseSummary};

/// Policies processed in one run.
const POLICIES_AT_ONCE: i64 = 50;
/// Hubs scanned for a policy in one transaction.
const HUBS_AT_ONCE: i64 = 500;
/// Hubs whose desired state is updated in one transaction.
const ANNOUNCED_AT_ONCE: i64 = 500;
/// Jobs created for a policy in one transaction.
const JOBS_AT_ONCE: usize = 100;
/// The interval of evaluation of a policy while hubs are updating.
const BUSY_SECS: i64 = 5;
/// The interval of scans of all hubs of a policy, for new hubs and new releases.
const SWEEP_SECS: i64 = 60;
/// The time until a hub whose update failed for a passing cause gets it again by itself.
const PASSING_RETRY_SECS: i64 = 3600;
/// The time that an unreachable hub has to fetch its job.
const DEADLINE_SECS: i64 = 7 * 24 * 3600;

const NAME: &str = "UPDATE_POLICIES";

/// Processes the policies that are due. Returns whether there is more to do immediately. A policy
/// that fails does not block the others.
pub async fn advance(policies: &Policies) -> Result<bool> {
    let due = store::due(
        &mut policies.core.db.read().await?,
        policies.core.clock.now(),
        POLICIES_AT_ONCE,
    )
    .await?;
    let mut has_more = i64::try_from(due.len()).unwrap_or(i64::MAX) >= POLICIES_AT_ONCE;
    for policy_uuid in due {
        match advance_one(policies, policy_uuid).await {
            Ok(more) => has_more |= more,
            Err(error) if error.is_outage() => return Err(error),
            Err(error) if error.is_serialization_failure() => has_more = true,
            Err(error) => {
                tracing::error!(%error, %policy_uuid, "cannot process an update policy; it is retried in a minute");
                let mut tx = policies.core.db.begin().await?;
                store::postpone(
                    &mut tx,
                    policy_uuid,
                    policies.core.clock.now().plus_secs(SWEEP_SECS),
                )
                .await?;
                tx.commit_unaudited("only postpones the processing of the policy")
                    .await?;
            }
        }
    }
    Ok(has_more)
}

/// The result of one transaction for a policy, and the remaining work.
struct Round {
    now: Timestamp,
    has_more: bool,
    /// Whether hubs are updating.
    is_busy: bool,
    /// Whether a step has extended the set of hubs that are given a release.
    has_stepped: bool,
    /// The release that the policy selects for each machine, as far as it was looked up.
    desired: HashMap<Option<String>, Option<DesiredRelease>>,
}

impl Round {
    async fn desired(
        &mut self,
        conn: &mut Conn,
        policy: &Policy,
        machine: Option<&str>,
    ) -> Result<Option<DesiredRelease>> {
        let machine = machine.map(str::to_owned);
        if let Some(known) = self.desired.get(&machine) {
            return Ok(known.clone());
        }
        let desired = desired_release(conn, policy, machine.as_deref()).await?;
        self.desired.insert(machine, desired.clone());
        Ok(desired)
    }
}

async fn advance_one(policies: &Policies, policy_uuid: Uuid) -> Result<bool> {
    let now = policies.core.clock.now();
    let mut tx = policies.core.db.begin().await?;
    let Some(policy) = store::lock_due(&mut tx, policy_uuid, now).await? else {
        return Ok(false);
    };
    let mut round = Round {
        now,
        has_more: false,
        is_busy: false,
        has_stepped: false,
        desired: HashMap::new(),
    };
    let mut rollouts = rollouts::of_policy(&mut tx, policy_uuid).await?;
    for rollout in &mut rollouts {
        evaluate(&mut tx, &policy, rollout, &mut round).await?;
    }
    let mut schedule = Schedule {
        swept_to: policy.swept_to,
        due_at: now,
        sweep_due_at: policy.sweep_due_at,
    };
    if round.has_stepped {
        (schedule.swept_to, schedule.sweep_due_at) = (None, now);
    }
    let sweeps =
        policy.auto_update && (schedule.swept_to.is_some() || schedule.sweep_due_at <= now);
    let mut withdrawals = rollout::withdrawals(&policy, &rollouts);
    if sweeps && schedule.swept_to.is_none() {
        withdrawals.extend(outdated(&policy));
    }
    let withdrawn = jobs::withdraw(
        &mut tx,
        &policies.changes,
        &withdrawals,
        WITHDRAWN_AT_ONCE,
        now,
    )
    .await?;
    // Each of these locks hubs in key order, so that a transaction does only one of them.
    if !withdrawn.is_empty() {
        round.has_more = true;
    } else if !policy.is_told {
        announce(&mut tx, &policies.changes, &policy, &mut round).await?;
    } else if sweeps {
        schedule.swept_to = sweep(
            &mut tx,
            &policies.changes,
            &policy,
            schedule.swept_to,
            &mut rollouts,
            &mut round,
        )
        .await?;
        schedule.sweep_due_at = now.plus_secs(SWEEP_SECS);
        round.has_more |= schedule.swept_to.is_some();
    }
    schedule.due_at = match (round.has_more, round.is_busy) {
        (true, _) => now,
        (false, true) => now.plus_secs(BUSY_SECS),
        (false, false) => now.plus_secs(SWEEP_SECS),
    };
    store::set_schedule(&mut tx, policy_uuid, schedule).await?;
    tx.commit_unaudited("jobs and the steps of rollouts have entries of their own")
        .await?;
    Ok(round.has_more)
}

/// Jobs that the policy would not create now: its window has changed, or a more specific policy was
/// created during the scan.
fn outdated(policy: &Policy) -> Vec<Withdrawal> {
    let policy_uuid = policy.policy_uuid;
    let reason = "another update policy applies to this hub now";
    let by_hub = Withdrawal {
        selection: Selection::OverriddenByHub(policy_uuid),
        reason,
    };
    let by_unit = Withdrawal {
        selection: Selection::OverriddenByUnit(policy_uuid),
        reason,
    };
    let window = Selection::OutsideOf(policy_uuid, policy.window());
    let window = Withdrawal {
        selection: window,
        reason: "its update policy has another window now",
    };
    match policy.scope {
        PolicyScope::Global => vec![by_hub, by_unit, window],
        PolicyScope::Unit => vec![by_hub, window],
        PolicyScope::Hub => vec![window],
    }
}

/// Increments the revision of the next hubs, since the platform's policy is part of their desired
/// state.
async fn announce(
    tx: &mut Tx,
    changes: &Changes,
    policy: &Policy,
    round: &mut Round,
) -> Result<()> {
    let batch = store::hubs_to_announce_to(tx, policy.told_to, ANNOUNCED_AT_ONCE).await?;
    let is_last = i64::try_from(batch.len()).unwrap_or(i64::MAX) < ANNOUNCED_AT_ONCE;
    if !batch.is_empty() {
        hubs::lock_all(tx, &batch).await?;
        changes.bump_all(tx, &batch).await?;
    }
    store::set_announced(
        tx,
        policy.policy_uuid,
        batch.last().copied().filter(|_| !is_last),
    )
    .await?;
    round.has_more = true;
    Ok(())
}

/// Evaluates a rollout, and halts it or starts the next step.
async fn evaluate(
    tx: &mut Tx,
    policy: &Policy,
    rollout: &mut Rollout,
    round: &mut Round,
) -> Result<()> {
    let now = round.now;
    let before = rollout.clone();
    let desired = round
        .desired(tx, policy, Some(&before.architecture))
        .await?;
    // The release is selected for the architecture that it is built for.
    rollout.is_wanted =
        desired.is_some_and(|desired| desired.release.release_uuid == before.release_uuid);
    // A stopped rollout keeps its counts: withdrawn jobs would distort them.
    if rollout.state.is_open() && (rollout.is_wanted || before.is_wanted) {
        let tally = tally(tx, policy, rollout, rollout.judged_from, now).await?;
        rollout.note(&tally);
        round.is_busy |= tally.open > 0;
        if rollout.state == State::Running {
            rollout.percent = rollout.percent.max(policy.first_percent());
            // Every hub was scanned since the last step.
            let is_swept = policy.swept_to.is_none() && policy.sweep_due_at > rollout.stepped_at;
            let has_steps = rollout.is_wanted && policy.auto_update && policy.step_percent > 0;
            match rollout::failure_reason(policy, &tally) {
                Some(failure_reason) => halt(rollout, failure_reason),
                None if rollout.percent < 100 && has_steps => {
                    round.is_busy = true;
                    if rollout.next_step_at <= now && is_swept {
                        step(tx, policy, rollout, &tally, round).await?;
                    }
                }
                None if rollout.percent >= 100
                    && tally.open == 0
                    && tally.started > 0
                    && is_swept =>
                {
                    rollout.state = State::Completed;
                }
                None => {}
            }
        }
    }
    if before.state != rollout.state || before.percent != rollout.percent {
        audit_transition(tx, policy, &before, rollout, now).await?;
    }
    match *rollout == before {
        true => Ok(()),
        false => rollouts::put(tx, rollout, now).await,
    }
}

async fn tally(
    conn: &mut Conn,
    policy: &Policy,
    rollout: &Rollout,
    from: Timestamp,
    now: Timestamp,
) -> Result<Tally> {
    let silent_before = now.plus_secs(-policy.silent_after_secs);
    rollouts::tally(
        conn,
        policy.policy_uuid,
        rollout.release_uuid,
        from,
        silent_before,
    )
    .await
}

fn halt(rollout: &mut Rollout, failure_reason: String) {
    rollout.state = State::Halted;
    rollout.reason = Some(failure_reason);
}

/// Extends the release to more hubs, once the results of the last step allow it.
async fn step(
    conn: &mut Conn,
    policy: &Policy,
    rollout: &mut Rollout,
    all: &Tally,
    round: &mut Round,
) -> Result<()> {
    let now = round.now;
    let of_step = tally(conn, policy, rollout, rollout.stepped_at, now).await?;
    if !rollout::is_step_over(policy, rollout, &of_step, now) {
        return Ok(());
    }
    // Rollouts with too few hubs to be judged are judged before they are extended.
    if let Some(failure_reason) = rollout::failure_reason_now(policy, all) {
        halt(rollout, failure_reason);
        return Ok(());
    }
    rollout.percent = (rollout.percent + policy.step_percent).min(100);
    rollout.next_step_at = now.plus_secs(policy.step_interval_secs);
    rollout.stepped_at = now;
    round.has_stepped = true;
    Ok(())
}

async fn audit_transition(
    tx: &mut Tx,
    policy: &Policy,
    before: &Rollout,
    after: &Rollout,
    now: Timestamp,
) -> Result<()> {
    let action = match (before.state == after.state, after.state) {
        (true, _) => "update_rollout.step",
        (false, State::Halted) => "update_rollout.halt",
        (false, State::Completed) => "update_rollout.complete",
        (false, State::Running | State::Aborted) => "update_rollout.resume",
    };
    let audit = match policy.tenant_uuid {
        Some(tenant_uuid) => Audit::new(
            &Scope::system(NAME, tenant_uuid),
            action,
            policy.policy_uuid,
            now,
        ),
        None => Audit::by_system(NAME, action, policy.policy_uuid, now),
    };
    if after.state == State::Halted {
        let (policy_uuid, summary) = (policy.policy_uuid, after.summary());
        tx.after_commit(async move {
            tracing::warn!(%policy_uuid, rollout = %summary, "a rollout was halted; an operator has to resume or abort it");
        });
    }
    audit::insert(
        tx,
        audit.changed(Some(before.summary()), Some(after.summary())),
    )
    .await
}

/// The release that a policy selects for a machine.
#[derive(Clone)]
struct DesiredRelease {
    release: AgentReleaseSummary,
    /// Whether it may replace a higher version.
    is_downgrade: bool,
}

async fn desired_release(
    conn: &mut Conn,
    policy: &Policy,
    machine: Option<&str>,
) -> Result<Option<DesiredRelease>> {
    Ok(match &policy.version {
        Some(version) => releases::agent_release_of_version(conn, version, machine)
            .await?
            .map(|(release, is_downgrade)| DesiredRelease {
                release,
                is_downgrade,
            }),
        None => releases::newest_agent_release(conn, &policy.channel, machine)
            .await?
            .map(|release| DesiredRelease {
                release,
                is_downgrade: false,
            }),
    })
}

/// Whether a hub that runs `current` should change to `desired`. Its current version may be unknown
/// or invalid.
fn is_due(current: Option<&str>, desired: &DesiredRelease) -> bool {
    let Some(current) = current else { return true };
    if current == desired.release.version {
        return false;
    }
    match (
        semver::Version::parse(current),
        semver::Version::parse(&desired.release.version),
    ) {
        (Ok(current), Ok(desired_version)) => {
            desired.is_downgrade || desired_version.cmp_precedence(&current).is_gt()
        }
        _ => true,
    }
}

/// Scans the next hubs of the policy, and creates jobs for those that are due. Returns the last
/// scanned hub, or None when all were scanned.
async fn sweep(
    tx: &mut Tx,
    changes: &Changes,
    policy: &Policy,
    after: Option<HubUuid>,
    rollouts: &mut Vec<Rollout>,
    round: &mut Round,
) -> Result<Option<HubUuid>> {
    let batch = store::hubs_of(tx, policy, after, HUBS_AT_ONCE).await?;
    let is_last = i64::try_from(batch.len()).unwrap_or(i64::MAX) < HUBS_AT_ONCE;
    let hub_uuids: Vec<HubUuid> = batch.iter().map(|hub| hub.hub_uuid).collect();
    let recently = round.now.plus_secs(-PASSING_RETRY_SECS);
    let excluded = jobs::excluded_updates(tx, &hub_uuids, recently).await?;
    let (mut created, mut last) = (0, after);
    for hub in &batch {
        if created >= JOBS_AT_ONCE {
            return Ok(last);
        }
        last = Some(hub.hub_uuid);
        let Some(desired) = round.desired(tx, policy, machine(hub)).await? else {
            continue;
        };
        let release_uuid = desired.release.release_uuid;
        // A rollout that is resumed is judged from then on.
        let is_excluded = |judged_from: Timestamp| {
            excluded.iter().any(|one| {
                (one.hub_uuid, one.release_uuid) == (hub.hub_uuid, release_uuid)
                    && !(one.fails_in_passing && one.created_at < judged_from)
            })
        };
        let known = rollouts
            .iter()
            .position(|rollout| rollout.release_uuid == release_uuid);
        let judged_from = known
            .and_then(|index| rollouts.get(index))
            .map_or(round.now, |rollout| rollout.judged_from);
        if !is_due(hub.agent_version.as_deref(), &desired) || is_excluded(judged_from) {
            continue;
        }
        let index = match known {
            Some(index) => index,
            None => {
                rollouts.push(begin(tx, policy, &desired.release, round.now).await?);
                round.is_busy = true;
                rollouts.len() - 1
            }
        };
        let Some(rollout) = rollouts.get_mut(index) else {
            continue;
        };
        if !rollout.state.is_open() || !rollout.includes(hub.hub_uuid) {
            continue;
        }
        if create_job(
            tx,
            changes,
            policy,
            hub.hub_uuid,
            &desired.release,
            round.now,
        )
        .await?
        {
            created += 1;
            round.is_busy = true;
            if rollout.state == State::Completed {
                let before = rollout.clone();
                rollout.state = State::Running;
                audit_transition(tx, policy, &before, rollout, round.now).await?;
                rollouts::put(tx, rollout, round.now).await?;
            }
        }
    }
    Ok(last.filter(|_| !is_last))
}

/// The architecture that the hub reported, if any.
fn machine(hub: &PolicyHub) -> Option<&str> {
    hub.os.as_ref().and_then(|os| os.0.arch.as_deref())
}

async fn begin(
    tx: &mut Tx,
    policy: &Policy,
    release: &AgentReleaseSummary,
    now: Timestamp,
) -> Result<Rollout> {
    let rollout = Rollout::new(policy, release, now);
    rollouts::put(tx, &rollout, now).await?;
    let audit = match policy.tenant_uuid {
        Some(tenant_uuid) => Audit::new(
            &Scope::system(NAME, tenant_uuid),
            "update_rollout.begin",
            policy.policy_uuid,
            now,
        ),
        None => Audit::by_system(NAME, "update_rollout.begin", policy.policy_uuid, now),
    };
    let audit = audit.changed(None, Some(rollout.summary()));
    audit::insert(tx, audit.with(json!({"scope": policy.scope}))).await?;
    Ok(rollout)
}

/// Creates a job. Returns false for a hub that cannot get one now; a later scan repeats it.
async fn create_job(
    tx: &mut Tx,
    changes: &Changes,
    policy: &Policy,
    hub_uuid: HubUuid,
    release: &AgentReleaseSummary,
    now: Timestamp,
) -> Result<bool> {
    let terms = jobs::Terms {
        deadline_at: now.plus_secs(DEADLINE_SECS),
        force: false,
    };
    let update = SelfUpdate {
        release,
        policy_uuid: policy.policy_uuid,
        window: policy.window(),
        terms,
    };
    Ok(jobs::create_self_update(tx, changes, hub_uuid, update, now)
        .await?
        .is_ok())
}

#[cfg(test)]
pub mod tests {
    use hub_protocol::ReleaseUuid;

    use super::super::PolicyScope;
    use super::*;

    pub fn policy() -> Policy {
        let now = Timestamp::from_micros(0);
        Policy {
            policy_uuid: Uuid::now_v7(),
            scope: PolicyScope::Global,
            tenant_uuid: None,
            hub_uuid: None,
            channel: "stable".to_owned(),
            version: None,
            auto_update: true,
            window_start: None,
            window_end: None,
            percent: 100,
            step_percent: 0,
            step_interval_secs: 3600,
            max_failure_percent: 5,
            silent_after_secs: 3600,
            min_finished: 5,
            swept_to: None,
            sweep_due_at: now,
            is_told: true,
            told_to: None,
            created_at: now,
            updated_at: now,
        }
    }

    #[test]
    fn only_a_downgrade_release_replaces_a_higher_version() {
        let desired = |version: &str, is_downgrade| DesiredRelease {
            release: AgentReleaseSummary {
                release_uuid: ReleaseUuid::new(),
                version: version.to_owned(),
                architecture: "any".to_owned(),
                channel: "stable".to_owned(),
            },
            is_downgrade,
        };
        for (current, version, is_downgrade, expected) in [
            (Some("1.2.0"), "1.10.0", false, true),
            (Some("1.2.0"), "1.2.0", false, false),
            (Some("1.2.0"), "1.2.0", true, false),
            (Some("1.10.0"), "1.2.0", false, false),
            (Some("1.10.0"), "1.2.0", true, true),
            (Some("1.2.0-rc.1"), "1.2.0", false, true),
            (Some("1.2.0+a"), "1.2.0+b", false, false),
            (Some("unknown"), "1.2.0", false, true),
            (None, "1.2.0", false, true),
        ] {
            let desired = desired(version, is_downgrade);
            assert_eq!(
                is_due(current, &desired),
                expected,
                "{current:?} to {version}"
            );
        }
    }
}
