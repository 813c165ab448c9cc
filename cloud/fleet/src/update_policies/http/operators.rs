//! Update policies of tenants and of the platform, and operators' actions on their rollouts.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::http::answer::{Answer, NoContent};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, PlatformAdmin, permission as perm};
use hub_protocol::job::MaintenanceWindow;
use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::rollout::{Rollout, State as RolloutState};
use super::super::store::{self, Filter};
use super::super::{
    Action, By, CreateAgentUpdatePolicyRequest, Policies, Policy, PolicyScope, RolloutTerms,
    not_found,
};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/agent-update-policies",
            get_with(
                list,
                operation(
                    "updatePolicies.list",
                    "tenant-releases",
                    "Update policies, newest first",
                ),
            )
            .put_with(
                put,
                operation_failing(
                    &[404],
                    "updatePolicies.put",
                    "tenant-releases",
                    "Create or replace an update policy",
                ),
            ),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}",
            get_with(
                get,
                operation(
                    "updatePolicies.get",
                    "tenant-releases",
                    "One update policy, with its rollouts",
                ),
            )
            .delete_with(
                delete,
                operation(
                    "updatePolicies.delete",
                    "tenant-releases",
                    "Delete an update policy",
                ),
            ),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}/rollout/resume",
            post_with(
                resume,
                operation_failing(
                    &[409],
                    "updatePolicies.resumeRollout",
                    "tenant-releases",
                    "Resume halted rollouts",
                ),
            ),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}/rollout/halt",
            post_with(
                halt,
                operation_failing(
                    &[409],
                    "updatePolicies.haltRollout",
                    "tenant-releases",
                    "Halt rollouts",
                ),
            ),
        )
        .api_route(
            "/tenant/agent-update-policies/{policyUuid}/rollout/abort",
            post_with(
                abort,
                operation_failing(
                    &[409],
                    "updatePolicies.abortRollout",
                    "tenant-releases",
                    "Abort rollouts",
                ),
            ),
        )
        .api_route(
            "/platform/agent-update-policies",
            get_with(
                list_all,
                operation(
                    "platformUpdatePolicies.list",
                    "platform",
                    "Update policies of all tenants, newest first",
                ),
            )
            .put_with(
                put_any,
                operation_failing(
                    &[404],
                    "platformUpdatePolicies.put",
                    "platform",
                    "Create or replace an update policy",
                ),
            ),
        )
        .api_route(
            "/platform/agent-update-policies/{policyUuid}/rollout/resume",
            post_with(
                resume_any,
                operation_failing(
                    &[409],
                    "platformUpdatePolicies.resumeRollout",
                    "platform",
                    "Resume halted rollouts",
                ),
            ),
        )
        .api_route(
            "/platform/agent-update-policies/{policyUuid}/rollout/halt",
            post_with(
                halt_any,
                operation_failing(
                    &[409],
                    "platformUpdatePolicies.haltRollout",
                    "platform",
                    "Halt rollouts",
                ),
            ),
        )
        .api_route(
            "/platform/agent-update-policies/{policyUuid}/rollout/abort",
            post_with(
                abort_any,
                operation_failing(
                    &[409],
                    "platformUpdatePolicies.abortRollout",
                    "platform",
                    "Abort rollouts",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPath {
    /// The update policy.
    pub policy_uuid: Uuid,
}

/// An update policy: which release of the agent hubs should run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUpdatePolicyResponse {
    /// The policy.
    policy_uuid: Uuid,
    /// The hubs it applies to.
    scope: PolicyScope,
    /// The tenant, of UNIT and HUB.
    tenant_uuid: Option<TenantUuid>,
    /// The hub, of HUB.
    hub_uuid: Option<HubUuid>,
    /// The release channel that hubs follow.
    channel: String,
    /// The version that hubs stay at.
    version: Option<String>,
    /// Whether hubs are updated.
    auto_update: bool,
    /// When in the day, in the time zone of each hub, an update may be applied.
    window: Option<MaintenanceWindow>,
    /// The pace of a rollout.
    rollout: RolloutTerms,
    /// The rollouts of the current release, one for each architecture that it is built for. A
    /// tenant sees none of the GLOBAL policy: they count the hubs of all tenants.
    rollouts: Vec<AgentRolloutResponse>,
    /// When the policy was created.
    created_at: Timestamp,
    /// When the policy last changed.
    updated_at: Timestamp,
}

/// The progress of a release under a policy. The numbers count hubs since the rollout was last
/// resumed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRolloutResponse {
    /// The release.
    release_uuid: ReleaseUuid,
    /// The version of the release.
    version: String,
    /// The architecture that it is built for.
    architecture: String,
    /// The state of the rollout.
    state: RolloutState,
    /// The reason of the state, if it has one.
    reason: Option<String>,
    /// The percentage of hubs that are given the release so far.
    #[schemars(range(min = 0, max = 100))]
    percent: i64,
    /// Hubs that were given their job.
    #[schemars(range(min = 0))]
    started: i64,
    /// Hubs that run the release now.
    #[schemars(range(min = 0))]
    succeeded: i64,
    /// Hubs whose job failed.
    #[schemars(range(min = 0))]
    failed: i64,
    /// Hubs that began and reported nothing for too long.
    #[schemars(range(min = 0))]
    silent: i64,
    /// When the rollout began.
    created_at: Timestamp,
    /// When the rollout last changed.
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

/// The reader of policies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Tenant,
    Platform,
}

/// The policies with the rollouts that the reader may see.
async fn responses(
    conn: &mut Conn,
    reader: Reader,
    policies: Vec<Policy>,
) -> Result<Vec<AgentUpdatePolicyResponse>> {
    let shows_rollouts =
        |policy: &&Policy| reader == Reader::Platform || policy.scope != PolicyScope::Global;
    let uuids: Vec<Uuid> = policies
        .iter()
        .filter(shows_rollouts)
        .map(|policy| policy.policy_uuid)
        .collect();
    let mut rollouts = match uuids.is_empty() {
        true => Vec::new(),
        false => store::rollouts::desired(conn, &uuids).await?,
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

async fn respond(
    policies: &Policies,
    reader: Reader,
    policy: Policy,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let mut conn = policies.core.db.read().await?;
    let response = responses(&mut conn, reader, vec![policy]).await?.pop();
    response.map(Answer).ok_or_else(not_found)
}

async fn listed(
    policies: &Policies,
    reader: Reader,
    filter: Filter,
    page: &Page,
) -> Result<Listed<AgentUpdatePolicyResponse>> {
    let mut conn = policies.core.db.read().await?;
    let (policies, total) = store::list(&mut conn, filter, page.slice()).await?;
    Ok(page.listed(responses(&mut conn, reader, policies).await?, total))
}

/// The tenant's own, and the GLOBAL policy of the platform while it governs the tenant's hubs:
/// until the tenant has a policy of the scope UNIT. Only the platform may change that one.
async fn list(
    auth: Authorized<perm::UpdatePoliciesRead>,
    State(policies): State<Policies>,
    page: Page,
) -> Result<Listed<AgentUpdatePolicyResponse>> {
    let filter = Filter {
        tenant_uuid: Some(auth.scope.tenant_uuid()),
        scope: None,
    };
    listed(&policies, Reader::Tenant, filter, &page).await
}

async fn get(
    auth: Authorized<perm::UpdatePoliciesRead>,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let mut conn = policies.core.db.read().await?;
    let policy = store::get(&mut conn, policy_uuid, auth.scope.tenant_uuid())
        .await?
        .ok_or_else(not_found)?;
    drop(conn);
    respond(&policies, Reader::Tenant, policy).await
}

async fn put(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(policies): State<Policies>,
    Json(request): Json<CreateAgentUpdatePolicyRequest>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::super::put(&policies, By::Tenant(&auth.scope), request).await?;
    respond(&policies, Reader::Tenant, policy).await
}

async fn delete(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<NoContent> {
    super::super::delete(&policies, &auth.scope, policy_uuid).await?;
    Ok(NoContent)
}

async fn act(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    policies: Policies,
    policy_uuid: Uuid,
    action: Action,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::super::act(&policies, By::Tenant(&auth.scope), policy_uuid, action).await?;
    respond(&policies, Reader::Tenant, policy).await
}

async fn resume(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act(auth, policies, policy_uuid, Action::Resume).await
}

async fn halt(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act(auth, policies, policy_uuid, Action::Halt).await
}

async fn abort(
    auth: Authorized<perm::UpdatePoliciesOperate>,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act(auth, policies, policy_uuid, Action::Abort).await
}

/// Filters of the policies.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ScopeQuery {
    /// Only policies of this scope.
    scope: Option<PolicyScope>,
}

async fn list_all(
    _: PlatformAdmin,
    State(policies): State<Policies>,
    page: Page,
    Query(query): Query<ScopeQuery>,
) -> Result<Listed<AgentUpdatePolicyResponse>> {
    listed(
        &policies,
        Reader::Platform,
        Filter {
            tenant_uuid: None,
            scope: query.scope,
        },
        &page,
    )
    .await
}

async fn put_any(
    PlatformAdmin(admin): PlatformAdmin,
    State(policies): State<Policies>,
    Json(request): Json<CreateAgentUpdatePolicyRequest>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::super::put(&policies, By::Platform(&admin), request).await?;
    respond(&policies, Reader::Platform, policy).await
}

async fn act_on_any(
    PlatformAdmin(admin): PlatformAdmin,
    policies: Policies,
    policy_uuid: Uuid,
    action: Action,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    let policy = super::super::act(&policies, By::Platform(&admin), policy_uuid, action).await?;
    respond(&policies, Reader::Platform, policy).await
}

async fn resume_any(
    admin: PlatformAdmin,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act_on_any(admin, policies, policy_uuid, Action::Resume).await
}

async fn halt_any(
    admin: PlatformAdmin,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act_on_any(admin, policies, policy_uuid, Action::Halt).await
}

async fn abort_any(
    admin: PlatformAdmin,
    State(policies): State<Policies>,
    Path(PolicyPath { policy_uuid }): Path<PolicyPath>,
) -> Result<Answer<AgentUpdatePolicyResponse>> {
    act_on_any(admin, policies, policy_uuid, Action::Abort).await
}
