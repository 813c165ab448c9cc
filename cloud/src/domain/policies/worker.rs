//! Makes self-update jobs of policies. Each policy is looked at when it is due, in one transaction that holds it: how its rollouts fare, whether they take a
//! step, and the next few hundred hubs that it holds for. So the work is bounded, is the same whichever replica does it, and is never done twice.

use std::collections::HashMap;

use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::rollout::{self, Rollout, State, WITHDRAWN_AT_ONCE};
use super::rollout_store::{self, Tally};
use super::store::{self, PolicyHub, Turn};
use super::{Policy, PolicyScope};
use crate::app::App;
use crate::authz::Scope;
use crate::db::{Conn, Tx};
use crate::domain::audit::{self, Audit};
use crate::domain::hubs;
use crate::domain::jobs::{self, Which, Withdrawal};
use crate::domain::releases::{self, AgentReleaseSummary};
use crate::error::Result;

/// Policies looked at in one go.
const POLICIES_AT_ONCE: i64 = 50;
/// Hubs looked at for a policy in one go.
const HUBS_AT_ONCE: i64 = 500;
/// Hubs that are told of a policy in one go.
const TOLD_AT_ONCE: i64 = 500;
/// Jobs made for a policy in one go.
const JOBS_AT_ONCE: usize = 100;
/// While hubs are under way, it is looked at this often how they fare.
const BUSY_SECS: i64 = 5;
/// All hubs of a policy are gone over this often: there may be new hubs, or a new release.
const SWEEP_SECS: i64 = 60;
/// How long a hub that is away may take to fetch its job.
const DEADLINE_SECS: i64 = 7 * 24 * 3600;

const NAME: &str = "UPDATE_POLICIES";

/// Looks at the policies that are due; answers whether there is more to do at once. One that cannot be looked at does not hold the others up.
pub async fn advance(app: &App) -> Result<bool> {
    let due = store::due(&mut app.db.read().await?, app.clock.now(), POLICIES_AT_ONCE).await?;
    let mut has_more = i64::try_from(due.len()).unwrap_or(i64::MAX) >= POLICIES_AT_ONCE;
    for policy_uuid in due {
        match advance_one(app, policy_uuid).await {
            Ok(more) => has_more |= more,
            Err(error) if error.is_outage() => return Err(error),
            Err(error) if error.is_serialization_failure() => has_more = true,
            Err(error) => {
                tracing::error!(%error, %policy_uuid, "an update policy cannot be looked at; it is tried again in a minute");
                let mut tx = app.db.begin().await?;
                store::postpone(&mut tx, policy_uuid, app.clock.now().plus_secs(SWEEP_SECS)).await?;
                tx.commit_unaudited("nothing changes but when the policy is looked at").await?;
            }
        }
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
    /// The release that the policy wants for a machine, of the machines that were asked about.
    wanted: HashMap<Option<String>, Option<Wanted>>,
}

impl Round {
    async fn wanted(&mut self, conn: &mut Conn, policy: &Policy, machine: Option<&str>) -> Result<Option<Wanted>> {
        let machine = machine.map(str::to_owned);
        if let Some(known) = self.wanted.get(&machine) {
            return Ok(known.clone());
        }
        let wanted = wanted_release(conn, policy, machine.as_deref()).await?;
        self.wanted.insert(machine, wanted.clone());
        Ok(wanted)
    }
}

async fn advance_one(app: &App, policy_uuid: Uuid) -> Result<bool> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let Some(policy) = store::lock_due(&mut tx, policy_uuid, now).await? else { return Ok(false) };
    let mut round =
        Round { now, changed: Vec::new(), has_more: false, is_busy: false, has_stepped: false, wanted: HashMap::new() };
    let mut rollouts = rollout_store::of_policy(&mut tx, policy_uuid).await?;
    for rollout in &mut rollouts {
        look_after(&mut tx, &policy, rollout, &mut round).await?;
    }
    let mut turn = Turn { swept_to: policy.swept_to, due_at: now, sweep_due_at: policy.sweep_due_at };
    if round.has_stepped {
        (turn.swept_to, turn.sweep_due_at) = (None, now);
    }
    let sweeps = policy.auto_update && (turn.swept_to.is_some() || turn.sweep_due_at <= now);
    let mut withdrawals = rollout::withdrawals(&policy, &rollouts);
    if sweeps && turn.swept_to.is_none() {
        withdrawals.extend(outdated(&policy));
    }
    let withdrawn = jobs::withdraw(&mut tx, &withdrawals, WITHDRAWN_AT_ONCE, now).await?;
    // Each of these locks hubs in key order, so one round does one of them.
    if !withdrawn.is_empty() {
        round.changed = withdrawn;
        round.has_more = true;
    } else if !policy.is_told {
        tell(&mut tx, &policy, &mut round).await?;
    } else if sweeps {
        turn.swept_to = sweep(&mut tx, &policy, turn.swept_to, &mut rollouts, &mut round).await?;
        turn.sweep_due_at = now.plus_secs(SWEEP_SECS);
        round.has_more |= turn.swept_to.is_some();
    }
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

/// Jobs of the policy that are not what it would make now: it says another window, or a more specific policy was made while the hub was looked at.
fn outdated(policy: &Policy) -> Vec<Withdrawal> {
    let policy_uuid = policy.policy_uuid;
    let because = "another update policy holds for this hub now";
    let by_hub = Withdrawal { which: Which::OverruledByHub(policy_uuid), because };
    let by_unit = Withdrawal { which: Which::OverruledByUnit(policy_uuid), because };
    let window = Which::OutsideOf(policy_uuid, policy.window());
    let window = Withdrawal { which: window, because: "its update policy has another window now" };
    match policy.scope {
        PolicyScope::Global => vec![by_hub, by_unit, window],
        PolicyScope::Unit => vec![by_hub, window],
        PolicyScope::Hub => vec![window],
    }
}

/// Tells the next hubs what the policy for all hubs says: it is part of their desired state.
async fn tell(tx: &mut Tx, policy: &Policy, round: &mut Round) -> Result<()> {
    let batch = store::hubs_to_tell(tx, policy.told_to, TOLD_AT_ONCE).await?;
    let is_last = i64::try_from(batch.len()).unwrap_or(i64::MAX) < TOLD_AT_ONCE;
    if !batch.is_empty() {
        hubs::lock_all(tx, &batch).await?;
        hubs::desired::bump_all(tx, &batch).await?;
    }
    store::set_told(tx, policy.policy_uuid, batch.last().copied().filter(|_| !is_last)).await?;
    round.changed = batch;
    round.has_more = true;
    Ok(())
}

/// Judges a rollout, and halts it or takes the next step.
async fn look_after(tx: &mut Tx, policy: &Policy, rollout: &mut Rollout, round: &mut Round) -> Result<()> {
    let now = round.now;
    let before = rollout.clone();
    let wanted = round.wanted(tx, policy, Some(&before.architecture)).await?;
    // Whoever is to run it, those are that it is built for.
    rollout.is_wanted = wanted.is_some_and(|wanted| wanted.release.release_uuid == before.release_uuid);
    // What has stopped stays as it was then: what is taken back would count for nothing.
    if rollout.state.is_open() && (rollout.is_wanted || before.is_wanted) {
        let tally = tally(tx, policy, rollout, rollout.judged_from, now).await?;
        rollout.note(&tally);
        round.is_busy |= tally.open > 0;
        if rollout.state == State::Running {
            rollout.percent = rollout.percent.max(policy.first_percent());
            // The hubs were all looked at since the last step.
            let is_swept = policy.swept_to.is_none() && policy.sweep_due_at > rollout.stepped_at;
            let takes_steps = rollout.is_wanted && policy.auto_update && policy.step_percent > 0;
            match rollout::complaint(policy, &tally) {
                Some(complaint) => halt(rollout, complaint),
                None if rollout.percent < 100 && takes_steps => {
                    round.is_busy = true;
                    if rollout.next_step_at <= now && is_swept {
                        step(tx, policy, rollout, &tally, round).await?;
                    }
                }
                None if rollout.percent >= 100 && tally.open == 0 && tally.started > 0 && is_swept => {
                    rollout.state = State::Completed;
                }
                None => {}
            }
        }
    }
    if before.state != rollout.state || before.percent != rollout.percent {
        audit_turn(tx, policy, &before, rollout, now).await?;
    }
    match *rollout == before {
        true => Ok(()),
        false => rollout_store::put(tx, rollout, now).await,
    }
}

async fn tally(conn: &mut Conn, policy: &Policy, rollout: &Rollout, from: Timestamp, now: Timestamp) -> Result<Tally> {
    let silent_before = now.plus_secs(-policy.silent_after_secs);
    rollout_store::tally(conn, policy.policy_uuid, rollout.release_uuid, from, silent_before).await
}

fn halt(rollout: &mut Rollout, complaint: String) {
    rollout.state = State::Halted;
    rollout.reason = Some(complaint);
}

/// Gives the release to more hubs, once those of the last step have shown that it may.
async fn step(conn: &mut Conn, policy: &Policy, rollout: &mut Rollout, all: &Tally, round: &mut Round) -> Result<()> {
    let now = round.now;
    let of_step = tally(conn, policy, rollout, rollout.stepped_at, now).await?;
    if !rollout::is_step_over(policy, rollout, &of_step, now) {
        return Ok(());
    }
    // Where so few hubs are that they are never judged, they are before more follow.
    if let Some(complaint) = rollout::complaint_of_few(policy, all) {
        halt(rollout, complaint);
        return Ok(());
    }
    rollout.percent = (rollout.percent + policy.step_percent).min(100);
    rollout.next_step_at = now.plus_secs(policy.step_interval_secs);
    rollout.stepped_at = now;
    round.has_stepped = true;
    Ok(())
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

/// The release that a policy wants for a machine.
#[derive(Clone)]
struct Wanted {
    release: AgentReleaseSummary,
    /// Whether it may take the place of a higher version.
    is_downgrade: bool,
}

async fn wanted_release(conn: &mut Conn, policy: &Policy, machine: Option<&str>) -> Result<Option<Wanted>> {
    Ok(match &policy.version {
        Some(version) => releases::agent_release_of_version(conn, version, machine)
            .await?
            .map(|(release, is_downgrade)| Wanted { release, is_downgrade }),
        None => releases::newest_agent_release(conn, &policy.channel, machine)
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
    after: Option<HubUuid>,
    rollouts: &mut Vec<Rollout>,
    round: &mut Round,
) -> Result<Option<HubUuid>> {
    let batch = store::hubs_of(tx, policy, after, HUBS_AT_ONCE).await?;
    let is_last = i64::try_from(batch.len()).unwrap_or(i64::MAX) < HUBS_AT_ONCE;
    let hub_uuids: Vec<HubUuid> = batch.iter().map(|hub| hub.hub_uuid).collect();
    let not_again = store::not_again(tx, &hub_uuids).await?;
    let (mut made, mut last) = (0, after);
    for hub in &batch {
        if made >= JOBS_AT_ONCE {
            return Ok(last);
        }
        last = Some(hub.hub_uuid);
        let Some(wanted) = round.wanted(tx, policy, machine(hub)).await? else { continue };
        let release_uuid = wanted.release.release_uuid;
        if !is_due(hub.agent_version.as_deref(), &wanted) || not_again.contains(&(hub.hub_uuid, release_uuid)) {
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

/// What the hub said it is, if it did.
fn machine(hub: &PolicyHub) -> Option<&str> {
    hub.os.as_ref().and_then(|os| os.0.arch.as_deref())
}

async fn begin(tx: &mut Tx, policy: &Policy, release: &AgentReleaseSummary, now: Timestamp) -> Result<Rollout> {
    let rollout = Rollout::new(policy, release, now);
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
