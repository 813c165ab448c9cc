//! Update policies: which release of the agent hubs are to run, and who decides it. The most specific policy holds for a hub: its own, else its tenant's, else the
//! platform's. A policy does nothing by itself: the worker makes jobs of it, hub after hub, as far as its rollouts have come.

pub mod http;
mod rollout;
mod rollout_store;
mod store;
mod worker;

use hub_protocol::hub::DesiredAgent;
use hub_protocol::job::{MaintenanceWindow, minute};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::authn::user::User;
use crate::authz::Scope;
use crate::db::{Conn, Tx};
use crate::domain::audit::Audit;
use crate::domain::jobs::{self, Which, Withdrawal};
use crate::domain::releases::DEFAULT_CHANNEL;
use crate::domain::{hubs, tenants};
use crate::error::{Error, Result};
use crate::http::check::Check;

use rollout::WITHDRAWN_AT_ONCE;
pub use rollout::{Action, act};
pub use worker::advance;

/// Whom a policy is for. The later in this list, the more specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PolicyScope {
    /// All hubs there are.
    Global,
    /// All hubs of a tenant.
    Unit,
    Hub,
}

impl PolicyScope {
    const fn name(self) -> &'static str {
        match self {
            Self::Global => "GLOBAL",
            Self::Unit => "UNIT",
            Self::Hub => "HUB",
        }
    }
}

/// As the database holds it.
impl TryFrom<String> for PolicyScope {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let all = [Self::Global, Self::Unit, Self::Hub];
        all.into_iter().find(|scope| scope.name() == name).ok_or_else(|| format!("unknown scope {name}"))
    }
}

/// Whom one policy is for: there is one for each.
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

    /// One text for each target there is.
    fn key(self) -> String {
        let scope = self.scope().name();
        match self {
            Self::Global => scope.to_owned(),
            Self::Unit(tenant_uuid) => format!("{scope}:{tenant_uuid}"),
            Self::Hub(_, hub_uuid) => format!("{scope}:{hub_uuid}"),
        }
    }
}

/// What hubs of a policy are to run.
#[derive(Clone, Debug)]
pub struct Terms {
    pub channel: String,
    pub version: Option<String>,
    pub auto_update: bool,
    pub window: Option<MaintenanceWindow>,
    pub rollout: RolloutTerms,
}

impl Terms {
    /// As hubs are told.
    fn agent(&self) -> DesiredAgent {
        let (channel, version) = (Some(self.channel.clone()), self.version.clone());
        DesiredAgent { channel, version, window: self.window.clone() }
    }
}

/// How carefully a release is brought to the hubs of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutTerms {
    /// Of the hubs get a release at first.
    pub percent: i64,
    /// More get it with each step; 0 for no steps.
    pub step_percent: i64,
    pub step_interval_seconds: i64,
    /// A rollout in which more of the hubs that began fail, or fall silent, halts.
    pub max_failure_percent: i64,
    /// A hub that began and was not heard of for so long counts as failed.
    pub silent_after_seconds: i64,
    /// So many must have finished before a rollout is judged.
    pub min_finished: i64,
}

/// `PUT /tenant/agent-update-policies`, `PUT /platform/agent-update-policies`. Replaces the policy of the same scope and target whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateAgentUpdatePolicyRequest {
    scope: PolicyScope,
    /// Of UNIT; a tenant's own where a tenant asks. With HUB it may be there, and is the hub's.
    tenant_uuid: Option<TenantUuid>,
    /// Of HUB.
    hub_uuid: Option<HubUuid>,
    /// `stable` when absent.
    channel: Option<String>,
    /// Hubs stay at this version, whatever is newer.
    version: Option<String>,
    /// Whether hubs are told to update; true when absent.
    auto_update: Option<bool>,
    /// When in the day an update may be made, by each hub's own time zone.
    window: Option<MaintenanceWindow>,
    rollout: Option<RolloutRequest>,
}

/// How a release is brought to hubs: to all at once when absent.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRequest {
    /// 1 to 100; 100 when absent.
    percent: Option<i64>,
    /// 0 to 100; 0 when absent.
    step_percent: Option<i64>,
    /// 60 to 2,592,000; 3,600 when absent.
    step_interval_seconds: Option<i64>,
    /// 0 to 100; 5 when absent.
    max_failure_percent: Option<i64>,
    /// 60 to 604,800; 3,600 when absent.
    silent_after_seconds: Option<i64>,
    /// 1 to 1,000; 5 when absent.
    min_finished: Option<i64>,
}

impl CreateAgentUpdatePolicyRequest {
    fn terms(&self) -> Result<Terms> {
        let mut check = Check::new();
        let channel = self.channel.clone().unwrap_or_else(|| DEFAULT_CHANNEL.to_owned());
        check.word("channel", &channel);
        if let Some(version) = &self.version {
            let is_version = version.len() <= 64 && semver::Version::parse(version).is_ok();
            check.that(is_version, "version", "must be a semantic version of at most 64 characters, such as 1.4.2");
        }
        if let Some(window) = &self.window {
            check.that(minute(&window.start).is_some(), "window.start", "must be a time of the day such as 02:30");
            check.that(minute(&window.end).is_some(), "window.end", "must be a time of the day such as 04:00");
            check.that(window.start != window.end, "window.end", "must differ from the start, or no moment would do");
        }
        let asked = self.rollout.unwrap_or_default();
        let mut within = |name: &str, asked: Option<i64>, default: i64, range: std::ops::RangeInclusive<i64>| {
            let value = asked.unwrap_or(default);
            let message = format!("must be from {} to {}", range.start(), range.end());
            check.that(range.contains(&value), format!("rollout.{name}"), message);
            value
        };
        let rollout = RolloutTerms {
            percent: within("percent", asked.percent, 100, 1..=100),
            step_percent: within("stepPercent", asked.step_percent, 0, 0..=100),
            step_interval_seconds: within("stepIntervalSeconds", asked.step_interval_seconds, 3600, 60..=2_592_000),
            max_failure_percent: within("maxFailurePercent", asked.max_failure_percent, 5, 0..=100),
            silent_after_seconds: within("silentAfterSeconds", asked.silent_after_seconds, 3600, 60..=604_800),
            min_finished: within("minFinished", asked.min_finished, 5, 1..=1000),
        };
        check.done()?;
        let auto_update = self.auto_update.unwrap_or(true);
        Ok(Terms { channel, version: self.version.clone(), auto_update, window: self.window.clone(), rollout })
    }
}

/// A policy as it is stored.
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
    /// The hub up to which the worker has looked.
    pub swept_to: Option<HubUuid>,
    pub sweep_due_at: Timestamp,
    /// Whether the desired state of its hubs shows what it says; of the policy for all hubs. If not, `told_to` is the hub up to which it does.
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

    /// As its hubs are told.
    fn agent(&self) -> DesiredAgent {
        let (channel, version) = (Some(self.channel.clone()), self.version.clone());
        DesiredAgent { channel, version, window: self.window() }
    }

    /// Of the hubs that are given a release at first. One hub is no part of a fleet: it gets it, or nobody does.
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

    /// As the audit log shows it.
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

/// Who changes a policy.
#[derive(Clone, Copy)]
pub enum By<'a> {
    /// A tenant, its own.
    Tenant(&'a Scope),
    /// The platform, any.
    Platform(&'a User),
}

impl By<'_> {
    /// The tenant that a policy has to be of for this one to see it.
    pub const fn limited_to(self) -> Option<TenantUuid> {
        match self {
            Self::Tenant(scope) => Some(scope.tenant_uuid()),
            Self::Platform(_) => None,
        }
    }

    fn audit(self, action: &'static str, policy: &Policy, now: Timestamp) -> Audit {
        match (self, policy.tenant_uuid) {
            (Self::Tenant(scope), _) => Audit::new(scope, action, policy.policy_uuid, now),
            (Self::Platform(admin), None) => Audit::by_user(admin, action, policy.policy_uuid, now),
            (Self::Platform(admin), Some(tenant_uuid)) => {
                Audit::by_user(admin, action, policy.policy_uuid, now).in_tenant(tenant_uuid)
            }
        }
    }
}

/// Makes the policy of a scope and target, or replaces it whole. Its rollouts go on as far as their releases are still wanted.
pub async fn put(app: &App, by: By<'_>, request: CreateAgentUpdatePolicyRequest) -> Result<Policy> {
    match put_once(app, by, &request).await {
        Err(error) if error.is_serialization_failure() => put_once(app, by, &request).await,
        result => result,
    }
}

async fn put_once(app: &App, by: By<'_>, request: &CreateAgentUpdatePolicyRequest) -> Result<Policy> {
    let terms = request.terms()?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let target = target(&mut tx, by, request).await?;
    let before = store::lock_target(&mut tx, &target.key()).await?;
    let tells = before.as_ref().is_none_or(|before| before.agent() != terms.agent());
    // All hubs there are may be too many for one transaction: the worker tells them, some at a time.
    let after = store::put(&mut tx, target, &terms, tells && target == Target::Global, now).await?;
    let mut changed = if tells { tell(&mut tx, target).await? } else { Vec::new() };
    // What a less specific policy has made holds for these hubs no more.
    let overruled = match target {
        Target::Global => None,
        Target::Unit(tenant_uuid) => {
            store::global(&mut tx).await?.map(|policy_uuid| Which::OfTenant(policy_uuid, tenant_uuid))
        }
        Target::Hub(_, hub_uuid) => Some(Which::OfHub(hub_uuid)),
    };
    let withdrawn = match overruled {
        Some(which) => withdraw_all(&mut tx, which, "another update policy holds for this hub now", now).await?,
        None => Vec::new(),
    };
    let audit = by.audit("update_policy.put", &after, now);
    let audit = audit.changed(before.map(|before| before.state()), Some(after.state()));
    tx.commit(audit.with(json!({"withdrawnJobs": withdrawn.len()}))).await?;
    changed.extend(withdrawn);
    wake(app, changed).await;
    Ok(after)
}

/// Notes that the desired state of the hubs of a tenant, or of a hub, says something else about the agent; answers whose. It comes before whatever else locks
/// hubs: they are locked in key order.
async fn tell(tx: &mut Tx, target: Target) -> Result<Vec<HubUuid>> {
    match target {
        Target::Global => Ok(Vec::new()),
        Target::Unit(tenant_uuid) => hubs::desired::bump_tenant(tx, tenant_uuid).await,
        Target::Hub(_, hub_uuid) => {
            hubs::desired::bump(tx, hub_uuid).await?;
            Ok(vec![hub_uuid])
        }
    }
}

async fn wake(app: &App, mut changed: Vec<HubUuid>) {
    changed.sort_unstable();
    changed.dedup();
    for hub_uuid in changed {
        hubs::desired::changed(app, hub_uuid).await;
    }
}

/// Whom the policy is to be for, if whoever asks may decide that.
async fn target(tx: &mut Tx, by: By<'_>, request: &CreateAgentUpdatePolicyRequest) -> Result<Target> {
    let mut check = Check::new();
    let takes_tenant = request.scope != PolicyScope::Global || matches!(by, By::Tenant(_));
    check.that(request.tenant_uuid.is_none() || takes_tenant, "tenantUuid", "is not for the scope GLOBAL");
    let takes_hub = request.scope == PolicyScope::Hub;
    check.that(request.hub_uuid.is_none() || takes_hub, "hubUuid", "is for the scope HUB");
    check.that(request.hub_uuid.is_some() || !takes_hub, "hubUuid", "must name the hub of a policy with the scope HUB");
    if let By::Platform(_) = by {
        let names_tenant = request.scope != PolicyScope::Unit || request.tenant_uuid.is_some();
        check.that(names_tenant, "tenantUuid", "must name the tenant of a policy with the scope UNIT");
    }
    check.done()?;
    match (by, request.scope, request.hub_uuid) {
        (By::Tenant(_), PolicyScope::Global, _) => {
            let message = "a policy for all hubs is the platform's; use the scope UNIT or HUB";
            Err(Error::forbidden("GLOBAL_POLICY", message))
        }
        (By::Tenant(scope), ..) if request.tenant_uuid.is_some_and(|named| named != scope.tenant_uuid()) => {
            Err(Error::forbidden("OTHER_TENANT", "`tenantUuid` names another tenant than the one you act in"))
        }
        (_, PolicyScope::Global, _) => Ok(Target::Global),
        // Not locked: a worker that holds the policy goes on to lock hubs.
        (_, PolicyScope::Hub, Some(hub_uuid)) => {
            let owner = hubs::owner(tx, hub_uuid).await?;
            let limits = [by.limited_to(), request.tenant_uuid];
            let seen = owner.filter(|owner| limits.into_iter().flatten().all(|limit| limit == *owner));
            seen.map(|owner| Target::Hub(owner, hub_uuid)).ok_or_else(|| Error::not_found("hub"))
        }
        (_, PolicyScope::Hub, None) => Err(Error::field("hubUuid", "must name a hub")),
        (_, PolicyScope::Unit, _) => {
            let named = by.limited_to().or(request.tenant_uuid);
            let tenant_uuid = named.ok_or_else(|| Error::field("tenantUuid", "must name a tenant"))?;
            match tenants::hold(tx, tenant_uuid).await? {
                true => Ok(Target::Unit(tenant_uuid)),
                false => Err(Error::not_found("tenant")),
            }
        }
    }
}

/// Removes a tenant's policy: the next less specific one holds for its hubs. Jobs of its rollouts that no hub was given yet are withdrawn.
pub async fn delete(app: &App, scope: &Scope, policy_uuid: Uuid) -> Result<()> {
    match delete_once(app, scope, policy_uuid).await {
        Err(error) if error.is_serialization_failure() => delete_once(app, scope, policy_uuid).await,
        result => result,
    }
}

async fn delete_once(app: &App, scope: &Scope, policy_uuid: Uuid) -> Result<()> {
    let now = app.clock.now();
    let by = By::Tenant(scope);
    let mut tx = app.db.begin().await?;
    let policy = store::lock(&mut tx, policy_uuid, by.limited_to()).await?.ok_or_else(not_found)?;
    let mut changed = match (policy.tenant_uuid, policy.hub_uuid) {
        (Some(tenant_uuid), Some(hub_uuid)) => tell(&mut tx, Target::Hub(tenant_uuid, hub_uuid)).await?,
        (Some(tenant_uuid), None) => tell(&mut tx, Target::Unit(tenant_uuid)).await?,
        (None, _) => Vec::new(),
    };
    let which = Which::OfPolicy(policy_uuid);
    let withdrawn = withdraw_all(&mut tx, which, "its update policy was deleted", now).await?;
    store::delete(&mut tx, policy_uuid).await?;
    let audit = by.audit("update_policy.delete", &policy, now).changed(Some(policy.state()), None);
    tx.commit(audit.with(json!({"withdrawnJobs": withdrawn.len()}))).await?;
    changed.extend(withdrawn);
    wake(app, changed).await;
    Ok(())
}

/// Withdraws what was made and not given to any hub, however much that is. A tenant's hubs are no more than one transaction can take.
async fn withdraw_all(tx: &mut Tx, which: Which, because: &'static str, now: Timestamp) -> Result<Vec<HubUuid>> {
    let withdrawals = [Withdrawal { which, because }];
    let mut withdrawn = Vec::new();
    loop {
        let more = jobs::withdraw(tx, &withdrawals, WITHDRAWN_AT_ONCE, now).await?;
        if more.is_empty() {
            return Ok(withdrawn);
        }
        withdrawn.extend(more);
    }
}

fn not_found() -> Error {
    Error::not_found("update policy")
}

/// What the policy that holds for a hub says, for its desired state.
pub async fn desired_agent(conn: &mut Conn, hub_uuid: HubUuid) -> Result<DesiredAgent> {
    let policy = store::of_hub(conn, hub_uuid).await?;
    Ok(policy.map_or_else(DesiredAgent::default, |policy| policy.agent()))
}
