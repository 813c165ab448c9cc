//! Update policies: which release of the agent hubs should run, and who decides it. The most
//! specific policy applies to a hub: its own, otherwise its tenant's, otherwise the platform's. A
//! policy has no direct effect: the worker creates jobs from it, hub by hub, as far as its rollouts
//! have progressed.

pub mod http;
mod rollout;
mod store;
mod worker;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_identity::authn::user::User;
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_protocol::hub::DesiredAgent;
use hub_protocol::job::{MaintenanceWindow, minute};
use hub_protocol::{HubUuid, TenantUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hubs::{self, Changes};
use crate::jobs::{self, Selection, Withdrawal};
use crate::releases::DEFAULT_CHANNEL;
use crate::releases::Releases;
use rollout::WITHDRAWN_AT_ONCE;
pub use rollout::{Action, act};
pub use store::delete_of_hub;
pub use store::rollouts::{HaltedRollout, halted};
pub use worker::advance;

/// State of the handlers and the worker of update policies.
#[derive(Clone)]
pub struct Policies {
    pub core: Core,
    pub changes: Changes,
    pub releases: Releases,
}

/// The hubs that a policy applies to. The most specific policy wins.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PolicyScope {
    /// The policy applies to all hubs.
    Global,
    /// The policy applies to all hubs of a tenant.
    Unit,
    /// The policy applies to one hub.
    Hub,
}

text_enum!(PolicyScope { Global = "GLOBAL", Unit = "UNIT", Hub = "HUB" });

/// The target of one policy. Each target has at most one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Global,
    Unit(TenantUuid),
    Hub(TenantUuid, HubUuid),
}

impl Target {
    const fn scope(self) -> PolicyScope {
        match self {
            Self::Global => PolicyScope::Global,
            Self::Unit(_) => PolicyScope::Unit,
            Self::Hub(..) => PolicyScope::Hub,
        }
    }

    const fn tenant_uuid(self) -> Option<TenantUuid> {
        match self {
            Self::Global => None,
            Self::Unit(tenant_uuid) | Self::Hub(tenant_uuid, _) => Some(tenant_uuid),
        }
    }

    const fn hub_uuid(self) -> Option<HubUuid> {
        match self {
            Self::Hub(_, hub_uuid) => Some(hub_uuid),
            Self::Global | Self::Unit(_) => None,
        }
    }

    /// A unique text for each target.
    fn key(self) -> String {
        let scope = self.scope().name();
        match self {
            Self::Global => scope.to_owned(),
            Self::Unit(tenant_uuid) => format!("{scope}:{tenant_uuid}"),
            Self::Hub(_, hub_uuid) => format!("{scope}:{hub_uuid}"),
        }
    }
}

/// The terms of a policy.
#[derive(Clone, Debug)]
pub struct Terms {
    pub channel: String,
    pub version: Option<String>,
    pub auto_update: bool,
    pub window: Option<MaintenanceWindow>,
    pub rollout: RolloutTerms,
}

impl Terms {
    /// The representation in the desired state.
    fn agent(&self) -> DesiredAgent {
        let (channel, version) = (Some(self.channel.clone()), self.version.clone());
        DesiredAgent {
            channel,
            version,
            window: self.window.clone(),
        }
    }
}

/// The pace at which a release is rolled out to the hubs of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutTerms {
    /// The percentage of hubs that get a release at first.
    #[schemars(range(min = 0, max = 100))]
    pub percent: i64,
    /// The percentage that is added with each step; 0 for no steps.
    #[schemars(range(min = 0, max = 100))]
    pub step_percent: i64,
    /// Seconds between two steps.
    #[schemars(range(min = 0))]
    pub step_interval_seconds: i64,
    /// A rollout halts when more than this percentage of the hubs that began fail or fall silent.
    #[schemars(range(min = 0, max = 100))]
    pub max_failure_percent: i64,
    /// A hub that began and reported nothing for this many seconds counts as failed.
    #[schemars(range(min = 0))]
    pub silent_after_seconds: i64,
    /// The number of hubs that must have finished before a rollout is judged.
    #[schemars(range(min = 0))]
    pub min_finished: i64,
}

/// An update policy. It replaces the policy of the same scope and target.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateAgentUpdatePolicyRequest {
    /// The hubs it applies to.
    scope: PolicyScope,
    /// The tenant, of UNIT; the caller's own when absent. With HUB it may be given, and must be
    /// that of the hub.
    tenant_uuid: Option<TenantUuid>,
    /// The hub, of HUB.
    hub_uuid: Option<HubUuid>,
    /// The release channel to follow; `stable` when absent.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    channel: Option<String>,
    /// The version at which hubs stay, also if a newer one exists.
    #[schemars(length(max = 64), regex(pattern = hub_protocol::patterns::VERSION))]
    version: Option<String>,
    /// Whether hubs are updated; true when absent.
    auto_update: Option<bool>,
    /// When in the day, in the time zone of each hub, an update may be applied.
    window: Option<MaintenanceWindow>,
    /// The pace of a rollout; all hubs at once when absent.
    rollout: Option<RolloutRequest>,
}

/// The pace of a rollout.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRequest {
    /// The percentage of hubs that get a release at first; 100 when absent.
    #[schemars(range(min = 1, max = 100))]
    percent: Option<i64>,
    /// The percentage that is added with each step; 0 when absent.
    #[schemars(range(min = 0, max = 100))]
    step_percent: Option<i64>,
    /// Seconds between two steps; 3,600 when absent.
    #[schemars(range(min = 60, max = 2_592_000))]
    step_interval_seconds: Option<i64>,
    /// A rollout halts when more than this percentage of the hubs that began fail or fall silent; 5
    /// when absent.
    #[schemars(range(min = 0, max = 100))]
    max_failure_percent: Option<i64>,
    /// A hub that began and reported nothing for this many seconds counts as failed; 3,600 when
    /// absent.
    #[schemars(range(min = 60, max = 604_800))]
    silent_after_seconds: Option<i64>,
    /// The number of hubs that must have finished before a rollout is judged; 5 when absent.
    #[schemars(range(min = 1, max = 1000))]
    min_finished: Option<i64>,
}

impl CreateAgentUpdatePolicyRequest {
    fn checked(&self) -> Result<Terms> {
        let mut check = Check::new();
        let channel = self
            .channel
            .clone()
            .unwrap_or_else(|| DEFAULT_CHANNEL.to_owned());
        check.word("channel", &channel);
        if let Some(version) = &self.version {
            let is_version = version.len() <= 64 && semver::Version::parse(version).is_ok();
            check.that(
                is_version,
                "version",
                "must be a semantic version of at most 64 characters, such as 1.4.2",
            );
        }
        if let Some(window) = &self.window {
            check.that(
                minute(&window.start).is_some(),
                "window.start",
                "must be a time of the day such as 02:30",
            );
            check.that(
                minute(&window.end).is_some(),
                "window.end",
                "must be a time of the day such as 04:00",
            );
            check.that(
                window.start != window.end,
                "window.end",
                "must differ from `start`, or the window is empty",
            );
        }
        let requested = self.rollout.unwrap_or_default();
        let mut within = |name: &str,
                          requested: Option<i64>,
                          default: i64,
                          range: std::ops::RangeInclusive<i64>| {
            let value = requested.unwrap_or(default);
            let message = format!("must be from {} to {}", range.start(), range.end());
            check.that(range.contains(&value), format!("rollout.{name}"), message);
            value
        };
        let rollout = RolloutTerms {
            percent: within("percent", requested.percent, 100, 1..=100),
            step_percent: within("stepPercent", requested.step_percent, 0, 0..=100),
            step_interval_seconds: within(
                "stepIntervalSeconds",
                requested.step_interval_seconds,
                3600,
                60..=2_592_000,
            ),
            max_failure_percent: within(
                "maxFailurePercent",
                requested.max_failure_percent,
                5,
                0..=100,
            ),
            silent_after_seconds: within(
                "silentAfterSeconds",
                requested.silent_after_seconds,
                3600,
                60..=604_800,
            ),
            min_finished: within("minFinished", requested.min_finished, 5, 1..=1000),
        };
        check.done()?;
        let auto_update = self.auto_update.unwrap_or(true);
        Ok(Terms {
            channel,
            version: self.version.clone(),
            auto_update,
            window: self.window.clone(),
            rollout,
        })
    }
}

/// A stored policy.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Policy {
    pub policy_uuid: Uuid,
    #[sqlx(try_from = "String")]
    pub scope: PolicyScope,
    pub tenant_uuid: Option<TenantUuid>,
    pub hub_uuid: Option<HubUuid>,
    pub channel: String,
    pub version: Option<String>,
    pub auto_update: bool,
    window_start: Option<String>,
    window_end: Option<String>,
    pub percent: i64,
    pub step_percent: i64,
    pub step_interval_secs: i64,
    pub max_failure_percent: i64,
    pub silent_after_secs: i64,
    pub min_finished: i64,
    /// The last hub that the worker has scanned in this sweep.
    pub swept_to: Option<HubUuid>,
    pub sweep_due_at: Timestamp,
    /// Whether the desired state of all hubs reflects the policy; of the platform's policy. If not,
    /// `told_to` is the last hub whose desired state does.
    pub is_told: bool,
    pub told_to: Option<HubUuid>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Policy {
    pub fn window(&self) -> Option<MaintenanceWindow> {
        let (start, end) = (self.window_start.clone()?, self.window_end.clone()?);
        Some(MaintenanceWindow { start, end })
    }

    /// The representation in the desired state.
    fn agent(&self) -> DesiredAgent {
        let (channel, version) = (Some(self.channel.clone()), self.version.clone());
        DesiredAgent {
            channel,
            version,
            window: self.window(),
        }
    }

    /// The percentage of hubs that get a release first. A policy for a single hub has no
    /// percentage: the hub gets the release.
    const fn first_percent(&self) -> i64 {
        match self.scope {
            PolicyScope::Hub => 100,
            PolicyScope::Unit | PolicyScope::Global => self.percent,
        }
    }

    pub fn rollout_terms(&self) -> RolloutTerms {
        RolloutTerms {
            percent: self.percent,
            step_percent: self.step_percent,
            step_interval_seconds: self.step_interval_secs,
            max_failure_percent: self.max_failure_percent,
            silent_after_seconds: self.silent_after_secs,
            min_finished: self.min_finished,
        }
    }

    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "scope": self.scope,
            "tenantUuid": self.tenant_uuid,
            "hubUuid": self.hub_uuid,
            "channel": self.channel,
            "version": self.version,
            "autoUpdate": self.auto_update,
            "window": self.window(),
            "rollout": self.rollout_terms(),
        })
    }
}

/// The author of a change of a policy.
#[derive(Clone, Copy)]
pub enum By<'a> {
    /// A tenant, for its own policies.
    Tenant(&'a Scope),
    /// The platform, for any policy.
    Platform(&'a User),
}

impl By<'_> {
    /// The only tenant whose policies the actor sees; None for all.
    pub const fn limited_to(self) -> Option<TenantUuid> {
        match self {
            Self::Tenant(scope) => Some(scope.tenant_uuid()),
            Self::Platform(_) => None,
        }
    }

    fn audit(self, action: &'static str, policy: &Policy, now: Timestamp) -> Audit {
        match (self, policy.tenant_uuid) {
            (Self::Tenant(scope), _) => Audit::new(scope, action, policy.policy_uuid, now),
            (Self::Platform(admin), None) => Audit::new(admin, action, policy.policy_uuid, now),
            (Self::Platform(admin), Some(tenant_uuid)) => {
                Audit::new(admin, action, policy.policy_uuid, now).in_tenant(tenant_uuid)
            }
        }
    }
}

/// Creates or replaces the policy of a scope and target. Its rollouts continue while their releases
/// are still desired.
pub async fn put(
    policies: &Policies,
    by: By<'_>,
    request: CreateAgentUpdatePolicyRequest,
) -> Result<Policy> {
    match put_once(policies, by, &request).await {
        Err(error) if error.is_serialization_failure() => put_once(policies, by, &request).await,
        result => result,
    }
}

async fn put_once(
    policies: &Policies,
    by: By<'_>,
    request: &CreateAgentUpdatePolicyRequest,
) -> Result<Policy> {
    let terms = request.checked()?;
    let now = policies.core.clock.now();
    let mut tx = policies.core.db.begin().await?;
    let target = target(&mut tx, by, request).await?;
    let before = store::lock_target(&mut tx, &target.key()).await?;
    let is_new_for_hubs = before
        .as_ref()
        .is_none_or(|before| before.agent() != terms.agent());
    // The worker updates the hubs in batches: there may be too many for one transaction.
    let after = store::put(
        &mut tx,
        target,
        &terms,
        is_new_for_hubs && target == Target::Global,
        now,
    )
    .await?;
    if is_new_for_hubs {
        bump(&mut tx, &policies.changes, target).await?;
    }
    // Jobs that a less specific policy created for these hubs are obsolete.
    let overridden = match target {
        Target::Global => None,
        Target::Unit(tenant_uuid) => store::global(&mut tx)
            .await?
            .map(|policy_uuid| Selection::OfTenant(policy_uuid, tenant_uuid)),
        Target::Hub(_, hub_uuid) => Some(Selection::OfHub(hub_uuid)),
    };
    let withdrawn = match overridden {
        Some(selection) => {
            withdraw_all(
                &mut tx,
                &policies.changes,
                selection,
                "another update policy applies to this hub now",
                now,
            )
            .await?
        }
        None => Vec::new(),
    };
    let audit = by.audit("update_policy.put", &after, now);
    let audit = audit.changed(before.map(|before| before.state()), Some(after.state()));
    tx.commit(audit.with(json!({"withdrawnJobs": withdrawn.len()})))
        .await?;
    Ok(after)
}

/// Increments the revision of the hubs of a tenant, or of one hub. It must run before any other
/// statement that locks hubs, because it locks them in key order. For the platform's policy the
/// worker does it in batches.
async fn bump(tx: &mut Tx, changes: &Changes, target: Target) -> Result<()> {
    match target {
        Target::Global => Ok(()),
        Target::Unit(tenant_uuid) => changes.bump_tenant(tx, tenant_uuid).await,
        Target::Hub(_, hub_uuid) => changes.bump(tx, hub_uuid).await.map(drop),
    }
}

/// The target of the policy, if the actor may decide about it.
async fn target(
    tx: &mut Tx,
    by: By<'_>,
    request: &CreateAgentUpdatePolicyRequest,
) -> Result<Target> {
    let mut check = Check::new();
    let accepts_tenant = request.scope != PolicyScope::Global || matches!(by, By::Tenant(_));
    check.that(
        request.tenant_uuid.is_none() || accepts_tenant,
        "tenantUuid",
        "is not allowed with the scope GLOBAL",
    );
    let accepts_hub = request.scope == PolicyScope::Hub;
    check.that(
        request.hub_uuid.is_none() || accepts_hub,
        "hubUuid",
        "is allowed only with the scope HUB",
    );
    check.that(
        request.hub_uuid.is_some() || !accepts_hub,
        "hubUuid",
        "is required with the scope HUB",
    );
    if let By::Platform(_) = by {
        let names_tenant = request.scope != PolicyScope::Unit || request.tenant_uuid.is_some();
        check.that(
            names_tenant,
            "tenantUuid",
            "is required with the scope UNIT",
        );
    }
    check.done()?;
    match (by, request.scope, request.hub_uuid) {
        (By::Tenant(_), PolicyScope::Global, _) => Err(global_policy()),
        (By::Tenant(scope), ..)
            if request
                .tenant_uuid
                .is_some_and(|named| named != scope.tenant_uuid()) =>
        {
            Err(Error::forbidden(
                "OTHER_TENANT",
                "`tenantUuid` must be the tenant named in `X-Tenant-UUID`",
            ))
        }
        (_, PolicyScope::Global, _) => Ok(Target::Global),
        // The policy is not locked: the worker locks a policy before hubs.
        (_, PolicyScope::Hub, Some(hub_uuid)) => {
            let owner = hubs::owner(tx, hub_uuid).await?;
            let limits = [by.limited_to(), request.tenant_uuid];
            let seen =
                owner.filter(|owner| limits.into_iter().flatten().all(|limit| limit == *owner));
            seen.map(|owner| Target::Hub(owner, hub_uuid))
                .ok_or_else(|| Error::not_found("hub"))
        }
        (_, PolicyScope::Hub, None) => Err(Error::field("hubUuid", "must name a hub")),
        (_, PolicyScope::Unit, _) => {
            let named = by.limited_to().or(request.tenant_uuid);
            let tenant_uuid =
                named.ok_or_else(|| Error::field("tenantUuid", "must name a tenant"))?;
            match tenants::lock_shared(tx, tenant_uuid).await? {
                true => Ok(Target::Unit(tenant_uuid)),
                false => Err(Error::not_found("tenant")),
            }
        }
    }
}

/// Deletes a tenant's policy, so that the next less specific one applies to its hubs. Jobs of its
/// rollouts that were not dispatched yet are withdrawn.
pub async fn delete(policies: &Policies, scope: &Scope, policy_uuid: Uuid) -> Result<()> {
    match delete_once(policies, scope, policy_uuid).await {
        Err(error) if error.is_serialization_failure() => {
            delete_once(policies, scope, policy_uuid).await
        }
        result => result,
    }
}

async fn delete_once(policies: &Policies, scope: &Scope, policy_uuid: Uuid) -> Result<()> {
    let now = policies.core.clock.now();
    let by = By::Tenant(scope);
    let mut tx = policies.core.db.begin().await?;
    let policy = lock(&mut tx, policy_uuid, by).await?;
    let target = match (policy.tenant_uuid, policy.hub_uuid) {
        (Some(tenant_uuid), Some(hub_uuid)) => Target::Hub(tenant_uuid, hub_uuid),
        (Some(tenant_uuid), None) => Target::Unit(tenant_uuid),
        (None, _) => Target::Global,
    };
    bump(&mut tx, &policies.changes, target).await?;
    let selection = Selection::OfPolicy(policy_uuid);
    let withdrawn = withdraw_all(
        &mut tx,
        &policies.changes,
        selection,
        "its update policy was deleted",
        now,
    )
    .await?;
    store::delete(&mut tx, policy_uuid).await?;
    let audit = by
        .audit("update_policy.delete", &policy, now)
        .changed(Some(policy.state()), None);
    tx.commit(audit.with(json!({"withdrawnJobs": withdrawn.len()})))
        .await
}

/// Withdraws all jobs that were created but not dispatched yet. The number of a tenant's hubs fits
/// one transaction.
async fn withdraw_all(
    tx: &mut Tx,
    changes: &Changes,
    selection: Selection,
    reason: &'static str,
    now: Timestamp,
) -> Result<Vec<HubUuid>> {
    let withdrawals = [Withdrawal { selection, reason }];
    let mut withdrawn = Vec::new();
    loop {
        let more = jobs::withdraw(tx, changes, &withdrawals, WITHDRAWN_AT_ONCE, now).await?;
        if more.is_empty() {
            return Ok(withdrawn);
        }
        withdrawn.extend(more);
    }
}

/// The policy, locked until the transaction ends, if the actor may change it.
async fn lock(tx: &mut Tx, policy_uuid: Uuid, by: By<'_>) -> Result<Policy> {
    if let Some(policy) = store::lock(tx, policy_uuid, by.limited_to()).await? {
        return Ok(policy);
    }
    // A policy that a tenant may read and not change belongs to the platform.
    let readable = match by.limited_to() {
        Some(tenant_uuid) => store::get(tx, policy_uuid, tenant_uuid).await?,
        None => None,
    };
    Err(if readable.is_some() {
        global_policy()
    } else {
        not_found()
    })
}

fn global_policy() -> Error {
    let message =
        "only the platform may set or change the policy for all hubs; use the scope UNIT or HUB";
    Error::forbidden("GLOBAL_POLICY", message)
}

fn not_found() -> Error {
    Error::not_found("update policy")
}

/// The policy's part of a hub's desired state.
pub async fn desired_agent(conn: &mut Conn, hub_uuid: HubUuid) -> Result<DesiredAgent> {
    let policy = store::of_hub(conn, hub_uuid).await?;
    Ok(policy.map_or_else(DesiredAgent::default, |policy| policy.agent()))
}
