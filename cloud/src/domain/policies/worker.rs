//! Makes self-update jobs of policies. Each policy is looked at when it is due, in one transaction that holds it: how its rollouts fare, whether they take a
//! step, and the next few hundred hubs that it holds for. So the work is bounded, is the same whichever replica does it, and is never done twice.

use std::collections::HashMap;

use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::Policy;
use super::rollout::{self, Rollout, State, WITHDRAWN_AT_ONCE};
use super::rollout_store;
use super::store::{self, PolicyHub, Turn};
use crate::app::App;
use crate::authz::Scope;
use crate::db::{Conn, Tx};
use crate::domain::audit::{self, Audit};
use crate::domain::releases::{self, AgentReleaseSummary};
use crate::domain::{hubs, jobs};
use crate::error::Result;

/// Policies looked at in one go.
const POLICIES_AT_ONCE: i64 = 50;
/// Hubs looked at for a policy in one go.
const HUBS_AT_ONCE: i64 = 500;
/// Jobs made for a policy in one go.
const JOBS_AT_ONCE: usize = 100;
/// While hubs are under way, it is looked at this often how they fare.
const BUSY_SECS: i64 = 5;
/// All hubs of a policy are gone over this often: there may be new hubs, or a new release.
const SWEEP_SECS: i64 = 60;
/// How long a hub that is away may take to fetch its job.
const DEADLINE_SECS: i64 = 7 * 24 * 3600;

const NAME: &str = "UPDATE_POLICIES";

/// Looks at the policies that are due; answers whether there is more to do at once.
pub async fn advance(app: &App) -> Result<bool> {
    let due = store::due(&mut app.db.read().await?, app.clock.now(), POLICIES_AT_ONCE).await?;
    let mut has_more = i64::try_from(due.len()).unwrap_or(i64::MAX) >= POLICIES_AT_ONCE;
    for policy_uuid in due {
        has_more |= advance_one(app, policy_uuid).await?;
    }
    Ok(has_more)
}

/// What was done for a policy, and what is left.
struct Round {
    now: Timestamp,
    /// Whose desired state changed.
    changed: Vec<HubUuid>,
    has_more: bool,
    /// Whether hubs are under way.
    is_busy: bool,
    /// Whether there are hubs that are given a release only now.
    has_stepped: bool,
}

async fn advance_one(app: &App, policy_uuid: Uuid) -> Result<bool> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let Some(policy) = store::lock_due(&mut tx, policy_uuid, now).await? else { return Ok(false) };
    let mut round = Round { now, changed: Vec::new(), has_more: false, is_busy: false, has_stepped: false };
    let mut rollouts = rollout_store::of_policy(&mut tx, policy_uuid).await?;
    for rollout in &mut rollouts {
        look_after(&mut tx, &policy, rollout, &mut round).await?;
    }
    let is_sweep_due = policy.swept_to.is_some() || policy.sweep_due_at <= now || round.has_stepped;
    let mut turn = Turn { swept_to: policy.swept_to, due_at: now, sweep_due_at: policy.sweep_due_at };
    if policy.auto_update && is_sweep_due {
        turn.swept_to = sweep(&mut tx, &policy, &mut rollouts, &mut round).await?;
        turn.sweep_due_at = now.plus_secs(SWEEP_SECS);
    }
    round.has_more |= turn.swept_to.is_some();
    turn.due_at = match (round.has_more, round.is_busy) {
        (true, _) => now,
        (false, true) => now.plus_secs(BUSY_SECS),
        (false, false) => now.plus_secs(SWEEP_SECS),
    };
    store::set_turn(&mut tx, policy_uuid, turn).await?;
    tx.commit_unaudited("jobs and the turns of rollouts have entries of their own").await?;
    for hub_uuid in round.changed {
        hubs::desired::changed(app, hub_uuid).await;
    }
    Ok(round.has_more)
}

/// Judges a rollout, halts it or takes the next step, and withdraws what a halted one has left.
async fn look_after(tx: &mut Tx, policy: &Policy, rollout: &mut Rollout, round: &mut Round) -> Result<()> {
    let now = round.now;
    let before = rollout.clone();
    rollout.is_wanted = is_wanted(tx, policy, rollout).await?;
    if let Some(because) = rollout.withdraws(policy) {
        let withdrawn = jobs::withdraw(tx, rollout.jobs(), because, WITHDRAWN_AT_ONCE, now).await?;
        round.has_more |= i64::try_from(withdrawn.len()).unwrap_or(i64::MAX) >= WITHDRAWN_AT_ONCE;
        round.changed.extend(withdrawn);
    }
    if rollout.state != State::Aborted && (rollout.is_wanted || before.is_wanted) {
        let silent_before = now.plus_secs(-policy.silent_after_secs);
        let (from, release_uuid) = (rollout.judged_from, rollout.release_uuid);
        let tally = rollout_store::tally(tx, policy.policy_uuid, release_uuid, from, silent_before).await?;
        rollout.note(&tally);
        round.is_busy |= tally.open > 0;
        if rollout.state == State::Running {
            rollout.percent = rollout.percent.max(policy.percent);
            match rollout::complaint(policy, &tally) {
                Some(complaint) => {
                    rollout.state = State::Halted;
                    rollout.reason = Some(complaint);
                    // What is left is withdrawn the next time, which is at once.
                    round.has_more = true;
                }
                None if rollout.percent < 100 && policy.step_percent > 0 => {
                    round.is_busy = true;
                    if rollout.next_step_at <= now {
                        rollout.percent = (rollout.percent + policy.step_percent).min(100);
                        rollout.next_step_at = now.plus_secs(policy.step_interval_secs);
                        round.has_stepped = true;
                    }
                }
                // The hubs were all looked at since the last of them finished: the sweep is at its beginning.
                None if rollout.percent >= 100 && tally.open == 0 && tally.started > 0 && policy.swept_to.is_none() => {
                    rollout.state = State::Completed;
                }
                None => {}
            }
        }
    }
    let turned = before.state != rollout.state || before.percent != rollout.percent;
    if turned {
        audit_turn(tx, policy, &before, rollout, now).await?;
    }
    rollout_store::put(tx, rollout, now).await
}

async fn audit_turn(tx: &mut Tx, policy: &Policy, before: &Rollout, after: &Rollout, now: Timestamp) -> Result<()> {
    let action = match (before.state == after.state, after.state) {
        (true, _) => "update_rollout.step",
        (false, State::Halted) => "update_rollout.halt",
        (false, State::Completed) => "update_rollout.complete",
        (false, State::Running | State::Aborted) => "update_rollout.resume",
    };
    let audit = match policy.tenant_uuid {
        Some(tenant_uuid) => Audit::new(&Scope::system(NAME, tenant_uuid), action, policy.policy_uuid, now),
        None => Audit::by_system(NAME, action, policy.policy_uuid, now),
    };
    audit::insert(tx, audit.changed(Some(before.summary()), Some(after.summary()))).await
}

/// Whether hubs of the release's own architecture are to run it.
async fn is_wanted(conn: &mut Conn, policy: &Policy, rollout: &Rollout) -> Result<bool> {
    let wanted = wanted_release(conn, policy, &rollout.architecture).await?;
    Ok(wanted.is_some_and(|wanted| wanted.release.release_uuid == rollout.release_uuid))
}

/// The release that a policy wants for hubs of an architecture.
struct Wanted {
    release: AgentReleaseSummary,
    /// Whether it may take the place of a higher version.
    is_downgrade: bool,
}

async fn wanted_release(conn: &mut Conn, policy: &Policy, architecture: &str) -> Result<Option<Wanted>> {
    Ok(match &policy.version {
        Some(version) => releases::agent_release_of_version(conn, version, architecture)
            .await?
            .map(|(release, is_downgrade)| Wanted { release, is_downgrade }),
        None => releases::newest_agent_release(conn, &policy.channel, architecture)
            .await?
            .map(|release| Wanted { release, is_downgrade: false }),
    })
}

/// Whether a hub that runs `current` is to become `wanted`. What it runs may be unknown, or no version at all.
fn is_due(current: Option<&str>, wanted: &Wanted) -> bool {
    let Some(current) = current else { return true };
    if current == wanted.release.version {
        return false;
    }
    match (semver::Version::parse(current), semver::Version::parse(&wanted.release.version)) {
        (Ok(current), Ok(wanted_version)) => wanted.is_downgrade || wanted_version.cmp_precedence(&current).is_gt(),
        _ => true,
    }
}

/// Looks at the next hubs of the policy, and makes jobs for those whose turn it is. Answers the hub up to which it came, or nothing when that was the last.
async fn sweep(
    tx: &mut Tx,
    policy: &Policy,
    rollouts: &mut Vec<Rollout>,
    round: &mut Round,
) -> Result<Option<HubUuid>> {
    let batch = store::hubs_of(tx, policy, policy.swept_to, HUBS_AT_ONCE).await?;
    let is_last = i64::try_from(batch.len()).unwrap_or(i64::MAX) < HUBS_AT_ONCE;
    let hub_uuids: Vec<HubUuid> = batch.iter().map(|hub| hub.hub_uuid).collect();
    let not_again = store::not_again(tx, &hub_uuids).await?;
    let mut by_architecture: HashMap<String, Option<Wanted>> = HashMap::new();
    let (mut made, mut last) = (0, policy.swept_to);
    for hub in &batch {
        if made >= JOBS_AT_ONCE {
            return Ok(last);
        }
        last = Some(hub.hub_uuid);
        let Some(architecture) = architecture(hub) else { continue };
        if !by_architecture.contains_key(architecture) {
            let wanted = wanted_release(tx, policy, architecture).await?;
            by_architecture.insert(architecture.to_owned(), wanted);
        }
        let Some(Some(wanted)) = by_architecture.get(architecture) else { continue };
        let release_uuid = wanted.release.release_uuid;
        if !is_due(hub.agent_version.as_deref(), wanted) || not_again.contains(&(hub.hub_uuid, release_uuid)) {
            continue;
        }
        let index = match rollouts.iter().position(|rollout| rollout.release_uuid == release_uuid) {
            Some(index) => index,
            None => {
                rollouts.push(begin(tx, policy, &wanted.release, round.now).await?);
                round.is_busy = true;
                rollouts.len() - 1
            }
        };
        let Some(rollout) = rollouts.get_mut(index) else { continue };
        if !rollout.state.is_open() || !rollout.includes(hub.hub_uuid) {
            continue;
        }
        if make_job(tx, policy, hub.hub_uuid, &wanted.release, round.now).await? {
            made += 1;
            round.is_busy = true;
            round.changed.push(hub.hub_uuid);
            if rollout.state == State::Completed {
                let before = rollout.clone();
                rollout.state = State::Running;
                audit_turn(tx, policy, &before, rollout, round.now).await?;
                rollout_store::put(tx, rollout, round.now).await?;
            }
        }
    }
    Ok(last.filter(|_| !is_last))
}

fn architecture(hub: &PolicyHub) -> Option<&str> {
    hub.os.as_ref().and_then(|os| os.0.arch.as_deref())
}

async fn begin(tx: &mut Tx, policy: &Policy, release: &AgentReleaseSummary, now: Timestamp) -> Result<Rollout> {
    let rollout = Rollout {
        policy_uuid: policy.policy_uuid,
        release_uuid: release.release_uuid,
        version: release.version.clone(),
        architecture: release.architecture.clone(),
        state: State::Running,
        reason: None,
        percent: policy.percent,
        is_wanted: true,
        next_step_at: now.plus_secs(policy.step_interval_secs),
        judged_from: now,
        started: 0,
        succeeded: 0,
        failed: 0,
        silent: 0,
        created_at: now,
        updated_at: now,
    };
    rollout_store::put(tx, &rollout, now).await?;
    let audit = match policy.tenant_uuid {
        Some(tenant_uuid) => {
            Audit::new(&Scope::system(NAME, tenant_uuid), "update_rollout.begin", policy.policy_uuid, now)
        }
        None => Audit::by_system(NAME, "update_rollout.begin", policy.policy_uuid, now),
    };
    let audit = audit.changed(None, Some(rollout.summary()));
    audit::insert(tx, audit.with(json!({"scope": policy.scope}))).await?;
    Ok(rollout)
}

/// Whether there was a job to be made: a hub that cannot take one is passed over, and looked at again the next time.
async fn make_job(
    tx: &mut Tx,
    policy: &Policy,
    hub_uuid: HubUuid,
    release: &AgentReleaseSummary,
    now: Timestamp,
) -> Result<bool> {
    let terms = jobs::Terms { deadline_at: now.plus_secs(DEADLINE_SECS), force: false };
    let made = jobs::create_self_update(tx, hub_uuid, release, policy.policy_uuid, policy.window(), terms, now).await;
    match made {
        Ok(made) => Ok(made.is_some()),
        Err(error) if error.status() == 409 || error.status() == 404 => Ok(false),
        Err(error) => Err(error),
    }
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
            max_failure_percent: 10,
            silent_after_secs: 3600,
            min_finished: 5,
            swept_to: None,
            sweep_due_at: now,
            created_at: now,
            updated_at: now,
        }
    }

    #[test]
    fn hubs_go_up_and_never_down_unless_that_is_what_the_release_is_for() {
        let wanted = |version: &str, is_downgrade| Wanted {
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
            let wanted = wanted(version, is_downgrade);
            assert_eq!(is_due(current, &wanted), expected, "{current:?} to {version}");
        }
    }
}
