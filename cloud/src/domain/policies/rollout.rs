//! Rollouts: how far a release has come under a policy, whether it does well, and what operators do about it. A rollout that does badly halts by itself; only
//! a person lets it go on.

use hub_protocol::{HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::rollout_store::{self, Tally};
use super::store::{self, Turn};
use super::{By, Policy, not_found};
use crate::app::App;
use crate::domain::hubs;
use crate::domain::jobs::{self, Which, Withdrawal};
use crate::domain::releases::AgentReleaseSummary;
use crate::error::{Error, Result};

/// Hubs that jobs are withdrawn from in one transaction. The worker withdraws the rest.
pub const WITHDRAWN_AT_ONCE: i64 = 500;
/// A step that no hub fetches its job of is passed over after so long: its hubs are away, and say nothing about the release.
const AWAY_SECS: i64 = 24 * 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Hubs are given the release as far as it has come.
    Running,
    /// Nobody is given it until an operator resumes the rollout.
    Halted,
    /// Nobody is given it any more.
    Aborted,
    /// All hubs that there were are done. One that comes later is given it.
    Completed,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Halted => "HALTED",
            Self::Aborted => "ABORTED",
            Self::Completed => "COMPLETED",
        }
    }

    /// Whether hubs are given the release.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Completed)
    }
}

/// A rollout as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Rollout {
    pub policy_uuid: Uuid,
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub architecture: String,
    #[sqlx(try_from = "String")]
    pub state: State,
    /// Why it is in that state, where there is something to say.
    pub reason: Option<String>,
    /// Of the hubs that are given the release.
    pub percent: i64,
    /// Whether the policy still wants this release for anybody.
    pub is_wanted: bool,
    pub next_step_at: Timestamp,
    /// Jobs made before this are not held against it.
    pub judged_from: Timestamp,
    /// When the step that it is at was begun.
    pub stepped_at: Timestamp,
    /// Hubs that were given their job, from `judged_from` on, and what has become of them.
    pub started: i64,
    pub succeeded: i64,
    pub failed: i64,
    pub silent: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Rollout {
    /// As it begins.
    pub fn new(policy: &Policy, release: &AgentReleaseSummary, now: Timestamp) -> Self {
        Self {
            policy_uuid: policy.policy_uuid,
            release_uuid: release.release_uuid,
            version: release.version.clone(),
            architecture: release.architecture.clone(),
            state: State::Running,
            reason: None,
            percent: policy.first_percent(),
            is_wanted: true,
            next_step_at: now.plus_secs(policy.step_interval_secs),
            judged_from: now,
            stepped_at: now,
            started: 0,
            succeeded: 0,
            failed: 0,
            silent: 0,
            created_at: now,
            updated_at: now,
        }
    }

    /// As the audit log shows it.
    pub fn summary(&self) -> Value {
        json!({
            "releaseUuid": self.release_uuid,
            "version": self.version,
            "architecture": self.architecture,
            "state": self.state,
            "reason": self.reason,
            "percent": self.percent,
            "started": self.started,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "silent": self.silent,
        })
    }

    /// Whether the hub belongs to those that are given the release so far.
    pub fn includes(&self, hub_uuid: HubUuid) -> bool {
        bucket(self.policy_uuid, hub_uuid) < self.percent * 100
    }

    /// Why its jobs are withdrawn; nothing while they are wanted.
    const fn withdraws(&self, policy: &Policy) -> Option<&'static str> {
        match self.state {
            State::Halted => Some("its rollout was halted"),
            State::Aborted => Some("its rollout was aborted"),
            State::Running | State::Completed if !policy.auto_update => Some("its update policy was switched off"),
            State::Running | State::Completed if !self.is_wanted => Some("its update policy wants another release now"),
            State::Running | State::Completed => None,
        }
    }

    pub const fn note(&mut self, tally: &Tally) {
        self.started = tally.started;
        self.succeeded = tally.succeeded;
        self.failed = tally.failed;
        self.silent = tally.silent;
    }
}

/// Which ten-thousandth of the hubs a hub belongs to under a policy: the same for every release, and another under another policy.
fn bucket(policy_uuid: Uuid, hub_uuid: HubUuid) -> i64 {
    let digest = Sha256::new().chain_update(policy_uuid.as_bytes()).chain_update(hub_uuid.0.as_bytes()).finalize();
    i64::from(digest.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))) % 10_000
}

/// What is to be withdrawn of the jobs made for these rollouts: what no hub was given yet, and of those that were stopped also what hubs prepare for.
pub fn withdrawals(policy: &Policy, rollouts: &[Rollout]) -> Vec<Withdrawal> {
    let mut by_reason: Vec<(&'static str, bool, Vec<ReleaseUuid>)> = Vec::new();
    for rollout in rollouts {
        let Some(because) = rollout.withdraws(policy) else { continue };
        match by_reason.iter_mut().find(|(other, ..)| *other == because) {
            Some((.., releases)) => releases.push(rollout.release_uuid),
            None => by_reason.push((because, !rollout.state.is_open(), vec![rollout.release_uuid])),
        }
    }
    let withdrawal = |(because, is_stopped, releases)| {
        let which = if is_stopped { Which::OpenTo } else { Which::To };
        Withdrawal { which: which(policy.policy_uuid, releases), because }
    };
    by_reason.into_iter().map(withdrawal).collect()
}

/// Why the rollout has to halt; nothing while it does well, or while too few have finished to tell.
pub fn complaint(policy: &Policy, tally: &Tally) -> Option<String> {
    if tally.finished() >= policy.min_finished { complaint_of_few(policy, tally) } else { None }
}

/// The same, however few have finished.
pub fn complaint_of_few(policy: &Policy, tally: &Tally) -> Option<String> {
    let too_many = (tally.failed + tally.silent) * 100 > policy.max_failure_percent * tally.started;
    too_many.then(|| {
        format!(
            "of {} hubs that began, {} failed and {} fell silent: more than {} percent",
            tally.started, tally.failed, tally.silent, policy.max_failure_percent
        )
    })
}

/// Whether the hubs of the step that a rollout is at have shown what there is to be shown: time alone shows nothing, since hubs may wait for their window.
pub fn is_step_over(policy: &Policy, rollout: &Rollout, step: &Tally, now: Timestamp) -> bool {
    match step.started {
        0 => step.open == 0 || rollout.stepped_at.plus_secs(AWAY_SECS) <= now,
        started => step.finished() >= policy.min_finished.min(started),
    }
}

/// What an operator does to the rollouts of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Lets what has halted go on. What went wrong before is not held against it any more.
    Resume,
    Halt,
    /// Gives the releases up.
    Abort,
}

impl Action {
    const fn leads_from(self, state: State) -> bool {
        match self {
            Self::Resume => matches!(state, State::Halted),
            Self::Halt => matches!(state, State::Running | State::Completed),
            Self::Abort => matches!(state, State::Running | State::Completed | State::Halted),
        }
    }

    const fn leads_to(self) -> State {
        match self {
            Self::Resume => State::Running,
            Self::Halt => State::Halted,
            Self::Abort => State::Aborted,
        }
    }

    const fn audited_as(self) -> &'static str {
        match self {
            Self::Resume => "update_rollout.resume",
            Self::Halt => "update_rollout.halt",
            Self::Abort => "update_rollout.abort",
        }
    }
}

/// Does it to all rollouts of the policy that it can be done to, of releases that are still wanted; 409 when there are none. What hubs have not
/// begun, or only prepare for, is withdrawn, unless the rollout goes on.
pub async fn act(app: &App, by: By<'_>, policy_uuid: Uuid, action: Action) -> Result<Policy> {
    match act_once(app, by, policy_uuid, action).await {
        Err(error) if error.is_serialization_failure() => act_once(app, by, policy_uuid, action).await,
        result => result,
    }
}

async fn act_once(app: &App, by: By<'_>, policy_uuid: Uuid, action: Action) -> Result<Policy> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let policy = store::lock(&mut tx, policy_uuid, by.limited_to()).await?.ok_or_else(not_found)?;
    let rollouts = rollout_store::of_policy(&mut tx, policy_uuid).await?;
    let mut acted_on = Vec::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for mut rollout in rollouts.into_iter().filter(|one| one.is_wanted && action.leads_from(one.state)) {
        before.push(rollout.summary());
        rollout.state = action.leads_to();
        rollout.reason = (action != Action::Resume).then(|| "an operator decided so".to_owned());
        if action == Action::Resume {
            rollout.judged_from = now;
            rollout.stepped_at = now;
            rollout.next_step_at = now.plus_secs(policy.step_interval_secs);
            rollout.note(&Tally::default());
        }
        rollout_store::put(&mut tx, &rollout, now).await?;
        after.push(rollout.summary());
        acted_on.push(rollout);
    }
    if after.is_empty() {
        let message = "this policy has no rollout that this can be done to; its `rollouts` say where they stand";
        return Err(Error::conflict("ROLLOUT_STATE", message));
    }
    let withdrawals = withdrawals(&policy, &acted_on);
    let withdrawn = jobs::withdraw(&mut tx, &withdrawals, WITHDRAWN_AT_ONCE, now).await?;
    store::set_turn(&mut tx, policy_uuid, Turn { swept_to: None, due_at: now, sweep_due_at: now }).await?;
    let audit = by.audit(action.audited_as(), &policy, now);
    let audit = audit.changed(Some(json!(before)), Some(json!(after))).with(json!({"withdrawnJobs": withdrawn.len()}));
    tx.commit(audit).await?;
    for hub_uuid in withdrawn {
        hubs::desired::changed(app, hub_uuid).await;
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hubs_are_spread_evenly_and_stay_where_they_are() {
        let policy_uuid = Uuid::now_v7();
        let hubs: Vec<HubUuid> = (0..10_000).map(|_| HubUuid::new()).collect();
        for percent in [1, 20, 50, 100] {
            let among = |hub: &&HubUuid| bucket(policy_uuid, **hub) < percent * 100;
            let count = i64::try_from(hubs.iter().filter(among).count()).expect("a count");
            assert!((count - percent * 100).abs() < 250, "{count} at {percent} percent");
        }
        let hub = HubUuid(Uuid::nil());
        // The first four bytes of SHA-256 of 32 zero bytes.
        assert_eq!(bucket(Uuid::nil(), hub), i64::from(0x6668_7aad_u32) % 10_000);
    }

    #[test]
    fn a_rollout_is_judged_by_those_that_began_once_enough_have_finished() {
        let policy = Policy { max_failure_percent: 5, min_finished: 5, ..super::super::worker::tests::policy() };
        let tally = |started, succeeded, failed, silent| Tally { started, succeeded, failed, silent, open: 0 };
        for (tally, halts) in [
            (tally(200, 0, 4, 0), false),
            (tally(4, 0, 4, 0), false),
            (tally(200, 90, 10, 0), false),
            (tally(200, 90, 11, 0), true),
            (tally(200, 90, 6, 5), true),
            (tally(5, 0, 0, 5), true),
            (tally(0, 0, 0, 0), false),
        ] {
            assert_eq!(complaint(&policy, &tally).is_some(), halts, "{tally:?}");
        }
    }

    #[test]
    fn a_step_is_over_when_its_hubs_have_shown_something() {
        let policy = Policy { min_finished: 5, ..super::super::worker::tests::policy() };
        let now = Timestamp::from_micros(0);
        let release = AgentReleaseSummary {
            release_uuid: ReleaseUuid::new(),
            version: "1.0.0".to_owned(),
            architecture: "any".to_owned(),
            channel: "stable".to_owned(),
        };
        let rollout = Rollout::new(&policy, &release, now);
        let tally = |started, succeeded, silent, open| Tally { started, succeeded, failed: 0, silent, open };
        for (tally, secs, is_over) in [
            (tally(0, 0, 0, 0), 0, true),
            (tally(0, 0, 0, 9), 3600, false),
            (tally(0, 0, 0, 9), AWAY_SECS, true),
            (tally(200, 0, 0, 200), AWAY_SECS, false),
            (tally(200, 4, 0, 196), 3600, false),
            (tally(200, 4, 1, 196), 3600, true),
            (tally(2, 1, 0, 1), 3600, false),
            (tally(2, 2, 0, 0), 0, true),
        ] {
            assert_eq!(is_step_over(&policy, &rollout, &tally, now.plus_secs(secs)), is_over, "{tally:?}");
        }
        let halted = Rollout { state: State::Halted, ..rollout.clone() };
        let taken_back = withdrawals(&policy, &[rollout, halted.clone(), halted]);
        assert_eq!(taken_back.len(), 1, "one for each reason: {taken_back:?}");
    }
}
