//! Rollouts: the progress of a release under a policy, its health, and the actions of operators. An
//! unhealthy rollout halts automatically; only an operator can resume it.

use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, ReleaseUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::store::rollouts::{self, Tally};
use super::store::{self, Schedule};
use super::{By, Policies, Policy};
use crate::jobs::{self, Selection, Withdrawal};
use crate::releases::AgentReleaseSummary;

/// Hubs whose jobs are withdrawn in one transaction. The worker withdraws the rest.
pub const WITHDRAWN_AT_ONCE: i64 = 500;
/// A step is skipped if no hub fetches its job for this long: its hubs are unreachable, and are no
/// evidence about the release.
const UNREACHABLE_SECS: i64 = 24 * 3600;

/// The state of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "RolloutState")]
pub enum State {
    /// Hubs are given the release, as far as it has come.
    Running,
    /// No further hub gets the release until an operator resumes the rollout.
    Halted,
    /// No further hub gets the release.
    Aborted,
    /// All hubs have finished. A hub that is added later gets the release.
    Completed,
}

text_enum!(State { Running = "RUNNING", Halted = "HALTED", Aborted = "ABORTED", Completed = "COMPLETED" });

impl State {
    /// Whether hubs are given the release.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Completed)
    }
}

/// A stored rollout.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Rollout {
    pub policy_uuid: Uuid,
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub architecture: String,
    #[sqlx(try_from = "String")]
    pub state: State,
    /// The reason of the state, if it has one.
    pub reason: Option<String>,
    /// The percentage of hubs that are given the release.
    pub percent: i64,
    /// Whether the policy still selects this release for any hub.
    pub is_wanted: bool,
    pub next_step_at: Timestamp,
    /// Jobs created before this do not count.
    pub judged_from: Timestamp,
    /// When the current step began.
    pub stepped_at: Timestamp,
    /// The number of hubs that received their job since `judged_from`, and of each outcome.
    pub started: i64,
    pub succeeded: i64,
    pub failed: i64,
    pub silent: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Rollout {
    /// A rollout at its start.
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

    /// The representation in the audit log.
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

    /// Whether the hub is among those that are given the release so far.
    pub fn includes(&self, hub_uuid: HubUuid) -> bool {
        bucket(self.policy_uuid, hub_uuid) < self.percent * 100
    }

    /// The reason to withdraw the rollout's jobs; None if they stay.
    const fn withdraws(&self, policy: &Policy) -> Option<&'static str> {
        match self.state {
            State::Halted => Some("its rollout was halted"),
            State::Aborted => Some("its rollout was aborted"),
            State::Running | State::Completed if !policy.auto_update => {
                Some("its update policy was switched off")
            }
            State::Running | State::Completed if !self.is_wanted => {
                Some("its update policy selects another release now")
            }
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

/// The bucket (0 to 9,999) of a hub under a policy: the same for every release, and different under
/// another policy.
fn bucket(policy_uuid: Uuid, hub_uuid: HubUuid) -> i64 {
    let digest = Sha256::new()
        .chain_update(policy_uuid.as_bytes())
        .chain_update(hub_uuid.0.as_bytes())
        .finalize();
    i64::from(
        digest
            .first_chunk()
            .map_or(0, |bytes| u32::from_be_bytes(*bytes)),
    ) % 10_000
}

/// The jobs of these rollouts to withdraw: those that were not dispatched yet, and for a halted or
/// aborted rollout also those that hubs only prepare.
pub fn withdrawals(policy: &Policy, rollouts: &[Rollout]) -> Vec<Withdrawal> {
    let mut by_reason: Vec<(&'static str, bool, Vec<ReleaseUuid>)> = Vec::new();
    for rollout in rollouts {
        let Some(reason) = rollout.withdraws(policy) else {
            continue;
        };
        match by_reason.iter_mut().find(|(other, ..)| *other == reason) {
            Some((.., releases)) => releases.push(rollout.release_uuid),
            None => by_reason.push((reason, !rollout.state.is_open(), vec![rollout.release_uuid])),
        }
    }
    let withdrawal = |(reason, is_stopped, releases)| {
        let selection = if is_stopped {
            Selection::OpenTo
        } else {
            Selection::To
        };
        Withdrawal {
            selection: selection(policy.policy_uuid, releases),
            reason,
        }
    };
    by_reason.into_iter().map(withdrawal).collect()
}

/// The reason to halt the rollout; None if it is healthy, or if too few hubs have finished to judge
/// it.
pub fn failure_reason(policy: &Policy, tally: &Tally) -> Option<String> {
    if tally.finished() >= policy.min_finished {
        failure_reason_now(policy, tally)
    } else {
        None
    }
}

/// Like [`failure_reason`], for any number of finished hubs.
pub fn failure_reason_now(policy: &Policy, tally: &Tally) -> Option<String> {
    let failed = tally.failed - tally.failed_in_passing;
    let too_many = (failed + tally.silent) * 100 > policy.max_failure_percent * tally.started;
    too_many.then(|| {
        format!(
            "of {} hubs that started, {failed} failed and {} fell silent: more than {} percent",
            tally.started, tally.silent, policy.max_failure_percent
        )
    })
}

/// Whether the hubs of the current step have produced enough results. Elapsed time alone is no
/// result, since hubs may wait for their window.
pub fn is_step_over(policy: &Policy, rollout: &Rollout, step: &Tally, now: Timestamp) -> bool {
    match step.started {
        0 => step.open == 0 || rollout.stepped_at.plus_secs(UNREACHABLE_SECS) <= now,
        started => step.finished() >= policy.min_finished.min(started),
    }
}

/// An operator's action on the rollouts of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Continues a halted rollout. Earlier failures no longer count.
    Resume,
    Halt,
    /// Ends the rollout permanently.
    Abort,
}

impl Action {
    const fn applies_to(self, state: State) -> bool {
        match self {
            Self::Resume => matches!(state, State::Halted),
            Self::Halt => matches!(state, State::Running | State::Completed),
            Self::Abort => matches!(state, State::Running | State::Completed | State::Halted),
        }
    }

    const fn resulting_state(self) -> State {
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

/// Applies the action to all rollouts of the policy in a suitable state whose release is still
/// desired; 409 if there are none. Unless the rollout continues, jobs that hubs have not started,
/// or only prepare, are withdrawn.
pub async fn act(
    policies: &Policies,
    by: By<'_>,
    policy_uuid: Uuid,
    action: Action,
) -> Result<Policy> {
    match act_once(policies, by, policy_uuid, action).await {
        Err(error) if error.is_serialization_failure() => {
            act_once(policies, by, policy_uuid, action).await
        }
        result => result,
    }
}

async fn act_once(
    policies: &Policies,
    by: By<'_>,
    policy_uuid: Uuid,
    action: Action,
) -> Result<Policy> {
    let now = policies.core.clock.now();
    let mut tx = policies.core.db.begin().await?;
    let policy = super::lock(&mut tx, policy_uuid, by).await?;
    let rollouts = rollouts::of_policy(&mut tx, policy_uuid).await?;
    let mut acted_on = Vec::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for mut rollout in rollouts
        .into_iter()
        .filter(|one| one.is_wanted && action.applies_to(one.state))
    {
        before.push(rollout.summary());
        rollout.state = action.resulting_state();
        rollout.reason = (action != Action::Resume).then(|| "decided by an operator".to_owned());
        if action == Action::Resume {
            rollout.judged_from = now;
            rollout.stepped_at = now;
            rollout.next_step_at = now.plus_secs(policy.step_interval_secs);
            rollout.note(&Tally::default());
        }
        rollouts::put(&mut tx, &rollout, now).await?;
        after.push(rollout.summary());
        acted_on.push(rollout);
    }
    if after.is_empty() {
        let message = "no rollout of this policy is in a suitable state for this action; see the states in `rollouts`";
        return Err(Error::conflict("ROLLOUT_STATE", message));
    }
    let withdrawals = withdrawals(&policy, &acted_on);
    let withdrawn = jobs::withdraw(
        &mut tx,
        &policies.changes,
        &withdrawals,
        WITHDRAWN_AT_ONCE,
        now,
    )
    .await?;
    store::set_schedule(
        &mut tx,
        policy_uuid,
        Schedule {
            swept_to: None,
            due_at: now,
            sweep_due_at: now,
        },
    )
    .await?;
    let audit = by.audit(action.audited_as(), &policy, now);
    let audit = audit
        .changed(Some(json!(before)), Some(json!(after)))
        .with(json!({"withdrawnJobs": withdrawn.len()}));
    tx.commit(audit).await?;
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_even_and_stable() {
        let policy_uuid = Uuid::now_v7();
        let hubs: Vec<HubUuid> = (0..10_000).map(|_| HubUuid::new()).collect();
        for percent in [1, 20, 50, 100] {
            let among = |hub: &&HubUuid| bucket(policy_uuid, **hub) < percent * 100;
            let count = i64::try_from(hubs.iter().filter(among).count()).expect("a count");
            assert!(
                (count - percent * 100).abs() < 250,
                "{count} at {percent} percent"
            );
        }
        let hub = HubUuid(Uuid::nil());
        // The first four bytes of SHA-256 of 32 zero bytes.
        assert_eq!(
            bucket(Uuid::nil(), hub),
            i64::from(0x6668_7aad_u32) % 10_000
        );
    }

    #[test]
    fn a_rollout_halts_on_too_many_failures_once_enough_hubs_have_finished() {
        let policy = Policy {
            max_failure_percent: 5,
            min_finished: 5,
            ..super::super::worker::tests::policy()
        };
        let tally = |started, succeeded, failed, silent| Tally {
            started,
            succeeded,
            failed,
            silent,
            ..Tally::default()
        };
        for (tally, halts) in [
            (tally(200, 0, 4, 0), false),
            (tally(4, 0, 4, 0), false),
            (tally(200, 90, 10, 0), false),
            (tally(200, 90, 11, 0), true),
            (tally(200, 90, 6, 5), true),
            (tally(5, 0, 0, 5), true),
            (tally(0, 0, 0, 0), false),
        ] {
            assert_eq!(
                failure_reason(&policy, &tally).is_some(),
                halts,
                "{tally:?}"
            );
        }
        let without_network = Tally {
            failed_in_passing: 10,
            ..tally(10, 0, 10, 0)
        };
        assert_eq!(failure_reason(&policy, &without_network), None);
    }

    #[test]
    fn a_step_ends_when_its_hubs_have_produced_results() {
        let policy = Policy {
            min_finished: 5,
            ..super::super::worker::tests::policy()
        };
        let now = Timestamp::from_micros(0);
        let release = AgentReleaseSummary {
            release_uuid: ReleaseUuid::new(),
            version: "1.0.0".to_owned(),
            architecture: "any".to_owned(),
            channel: "stable".to_owned(),
        };
        let rollout = Rollout::new(&policy, &release, now);
        let tally = |started, succeeded, silent, open| Tally {
            started,
            succeeded,
            silent,
            open,
            ..Tally::default()
        };
        for (tally, secs, is_over) in [
            (tally(0, 0, 0, 0), 0, true),
            (tally(0, 0, 0, 9), 3600, false),
            (tally(0, 0, 0, 9), UNREACHABLE_SECS, true),
            (tally(200, 0, 0, 200), UNREACHABLE_SECS, false),
            (tally(200, 4, 0, 196), 3600, false),
            (tally(200, 4, 1, 196), 3600, true),
            (tally(2, 1, 0, 1), 3600, false),
            (tally(2, 2, 0, 0), 0, true),
        ] {
            assert_eq!(
                is_step_over(&policy, &rollout, &tally, now.plus_secs(secs)),
                is_over,
                "{tally:?}"
            );
        }
        let halted = Rollout {
            state: State::Halted,
            ..rollout.clone()
        };
        let withdrawn = withdrawals(&policy, &[rollout, halted.clone(), halted]);
        assert_eq!(withdrawn.len(), 1, "one for each reason: {withdrawn:?}");
    }
}
