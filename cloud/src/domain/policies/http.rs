//! Update policies of tenants and of the platform, and what operators do about their rollouts.

use axum::extract::State;
use hub_protocol::job::MaintenanceWindow;
use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::rollout::{Rollout, State as RolloutState};
use super::store::Filter;
use super::{Action, By, CreateAgentUpdatePolicyRequest, Policy, PolicyScope, RolloutTerms, not_found};
use super::{rollout_store, store};
use crate::app::App;
use crate::authz::{Authorized, PlatformAdmin, permission as perm};
use crate::db::Conn;
use crate::error::Result;
use crate::http::answer::{Answer, NoContent};
use crate::http::extract::{Json, Path, Query};
use crate::http::page::{Listed, Page};

/// Which release of the agent hubs are to run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUpdatePolicyResponse {
    policy_uuid: Uuid,
    scope: PolicyScope,
    /// Of UNIT and HUB.
    tenant_uuid: Option<TenantUuid>,
    /// Of HUB.
    hub_uuid: Option<HubUuid>,
    channel: String,
    /// The version that hubs stay at.
    version: Option<String>,
    auto_update: bool,
    window: Option<MaintenanceWindow>,
    rollout: RolloutTerms,
    /// How far the releases that are wanted now have come: one for each architecture that they are built for.
    rollouts: Vec<AgentRolloutResponse>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// How far a release has come under a policy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRolloutResponse {
    release_uuid: ReleaseUuid,
    version: String,
    architecture: String,
    state: RolloutState,
    /// Why it is in that state, where there is something to say.
    reason: Option<String>,
    /// Of the hubs that are given the release so far.
    percent: i64,
    /// Hubs that were given their job, since the rollout was last resumed, and what became of them.
    started: i64,
    succeeded: i64,
    failed: i64,
    /// Began, and were not heard of since long.
    silent: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Rollout> for AgentRolloutResponse {
    fn from(rollout: Rollout) -> Self {
        Self {
            release_uuid: rollout.release_uuid,
            version: rollout.version,
            architecture: rollout.architecture,
            state: rollout.state,
            reason: rollout.reason,
            percent: rollout.percent,
            started: rollout.started,
            succeeded: rollout.succeeded,
            failed: rollout.failed,
            silent: rollout.silent,
            created_at: rollout.created_at,
            updated_at: rollout.updated_at,
        }
    }
}

/// The policies with their rollouts.
async fn responses(conn: &mut Conn, policies: Vec<Policy>) -> Result<Vec<AgentUpdatePolicyResponse>> {
    let uuids: Vec<Uuid> = policies.iter().map(|policy| policy.policy_uuid).collect();
    let mut rollouts = match uuids.is_empty() {
        true => Vec::new(),
        false => rollout_store::wanted(conn, &uuids).await?,
    };
    let responses = policies.into_iter().map(|policy| {
        let own = rollouts.extract_if(.., |rollout| rollout.policy_uuid == policy.policy_uuid);
        let own = own.map(AgentRolloutResponse::from).collect();
        AgentUpdatePolicyResponse {
            policy_uuid: policy.policy_uuid,
            scope: policy.scope,
            tenant_uuid: policy.tenant_uuid,
            hub_uuid: policy.hub_uuid,
            window: policy.window(),
            rollout: policy.rollout_terms(),
            channel: policy.channel,
            version: policy.version,
            auto_update: policy.auto_update,
            rollouts: own,
            created_at: policy.created_at,
            updated_at: policy.updated_at,
        }
    });
    Ok(responses.collect())
}

async fn answer(app: &App, policy: Policy) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let mut conn = app.db.read().await?;
    let response = responses(&mut conn, vec![policy]).await?.pop();
    response.map(Answer).ok_or_else(not_found)
}

async fn listed(app: &App, filter: Filter, page: &Page) -> Result<Listed<AgentUpdatePolicyResponse>> {
    let mut conn = app.db.read().await?;
    let (policies, total) = store::list(&mut conn, filter, page).await?;
    Ok(page.listed(responses(&mut conn, policies).await?, total))
}

pub async fn list(
    auth: Authorized<perm::UpdatePoliciesRead>,
    State(app): State<App>,
    page: Page,
) -> Result<Listed<AgentUpdatePolicyResponse>> {
    let filter = Filter { tenant_uuid: Some(auth.scope.tenant_uuid()), scope: None };
    listed(&app, filter, &page).await
}

pub async fn get(
    auth: Authorized<perm::UpdatePoliciesRead>,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let mut conn = app.db.read().await?;
    let policy = store::get(&mut conn, policy_uuid, auth.scope.tenant_uuid()).await?.ok_or_else(not_found)?;
    drop(conn);
    answer(&app, policy).await
}

pub async fn put(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(app): State<App>,
    Json(request): Json<CreateAgentUpdatePolicyRequest>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::put(&app, By::Tenant(&auth.scope), request).await?;
    answer(&app, policy).await
}

pub async fn delete(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<NoContent> {
    super::delete(&app, &auth.scope, policy_uuid).await?;
    Ok(NoContent)
}

async fn act(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    app: App,
    policy_uuid: Uuid,
    action: Action,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::act(&app, By::Tenant(&auth.scope), policy_uuid, action).await?;
    answer(&app, policy).await
}

pub async fn resume(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act(auth, app, policy_uuid, Action::Resume).await
}

pub async fn halt(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act(auth, app, policy_uuid, Action::Halt).await
}

pub async fn abort(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act(auth, app, policy_uuid, Action::Abort).await
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ScopeQuery {
    /// Only policies of this scope.
    scope: Option<PolicyScope>,
}

pub async fn list_all(
    _: PlatformAdmin,
    State(app): State<App>,
    page: Page,
    Query(query): Query<ScopeQuery>,
) -> Result<Listed<AgentUpdatePolicyResponse>> {
    listed(&app, Filter { tenant_uuid: None, scope: query.scope }, &page).await
}

pub async fn put_any(
    PlatformAdmin(admin): PlatformAdmin,
    State(app): State<App>,
    Json(request): Json<CreateAgentUpdatePolicyRequest>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::put(&app, By::Platform(&admin), request).await?;
    answer(&app, policy).await
}

async fn act_on_any(
    PlatformAdmin(admin): PlatformAdmin,
    app: App,
    policy_uuid: Uuid,
    action: Action,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::act(&app, By::Platform(&admin), policy_uuid, action).await?;
    answer(&app, policy).await
}

pub async fn resume_any(
    admin: PlatformAdmin,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act_on_any(admin, app, policy_uuid, Action::Resume).await
}

pub async fn halt_any(
    admin: PlatformAdmin,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act_on_any(admin, app, policy_uuid, Action::Halt).await
}

pub async fn abort_any(
    admin: PlatformAdmin,
    State(app): State<App>,
    Path(policy_uuid): Path<Uuid>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act_on_any(admin, app, policy_uuid, Action::Abort).await
}
