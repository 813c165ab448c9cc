//! `/dev/partner-projects`: what the service knows of projects, for platform administrators. It is
//! served with `dev-endpoints` alone.

use std::collections::HashMap;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::PlatformAdmin;
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::store::{self, MemberRow, PersonaProject, ProjectRow};
use super::super::{is_project_id, may_change, message, not_found};
use super::app::tenant_responses;
use super::{ProjectPath, ProjectTenantResponse};
use crate::Parts;

const TAG: &str = "dev";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/dev/partner-projects/{projectId}",
            get_with(
                get,
                operation("devPartnerProjects.get", TAG, "A project as it is stored"),
            ),
        )
        .api_route(
            "/dev/partner-projects/{projectId}/invalidate",
            get_with(
                invalidate,
                operation("devPartnerProjects.invalidate", TAG, "Forget a project"),
            ),
        )
        .api_route(
            "/dev/partner-projects/{projectId}/authz",
            get_with(
                authz,
                operation(
                    "devPartnerProjects.getAuthz",
                    TAG,
                    "What the members of a project may do",
                ),
            ),
        )
        .api_route(
            "/dev/partner-projects/personas/{personaId}",
            get_with(
                of_persona,
                operation(
                    "devPartnerProjects.listOfPersona",
                    TAG,
                    "The projects of a persona",
                ),
            ),
        )
}

/// A member of a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DevProjectMember")]
struct MemberResponse {
    /// The persona.
    persona_uuid: PersonaUuid,
    /// The role, set by the partner.
    role: String,
}

/// A project as it is stored.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DevProjectResponse {
    /// The project, as the partner names it.
    project_id: String,
    /// Its name.
    name: String,
    /// Its members.
    members: Vec<MemberResponse>,
    /// The tenants that take part.
    tenants: Vec<ProjectTenantResponse>,
    /// The time of the last message, if it had one.
    occurred_at: Option<Timestamp>,
    /// The time of the partner's first message.
    created_at: Timestamp,
    /// When something about it last changed by a message.
    updated_at: Timestamp,
    /// When the partner deleted it.
    deleted_at: Option<Timestamp>,
}

/// The stored project, deleted or not.
async fn stored(conn: &mut Conn, project_id: &str) -> Result<(ProjectRow, Vec<MemberRow>)> {
    let project = match is_project_id(project_id) {
        true => store::get(conn, project_id).await?,
        false => None,
    };
    let project = project.ok_or_else(not_found)?;
    let members = store::members(conn, project_id).await?;
    Ok((project, members))
}

async fn get(
    _: PlatformAdmin,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
) -> Result<Answer<DevProjectResponse>> {
    let mut conn = core.db.read().await?;
    let (project, members) = stored(&mut conn, &project_id).await?;
    let rows = store::tenants(&mut conn, &[project_id.as_str()]).await?;
    let tenants = tenant_responses(&mut conn, rows).await?;
    let member = |MemberRow { persona_uuid, role }| MemberResponse { persona_uuid, role };
    Ok(Answer(DevProjectResponse {
        project_id: project.project_id,
        name: project.name,
        members: members.into_iter().map(member).collect(),
        tenants: tenants.into_iter().map(|(_, tenant)| tenant).collect(),
        occurred_at: project.occurred_at,
        created_at: project.created_at,
        updated_at: project.updated_at,
        deleted_at: project.deleted_at,
    }))
}

/// A project that was forgotten.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InvalidatedProject {
    /// The project.
    project_id: String,
    /// `INVALIDATED`.
    status: &'static str,
}

async fn invalidate(
    PlatformAdmin(user): PlatformAdmin,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
) -> Result<Answer<InvalidatedProject>> {
    message::forget(&core, &user, &project_id).await?;
    Ok(Answer(InvalidatedProject {
        project_id,
        status: "INVALIDATED",
    }))
}

/// The rights of a member of a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DevProjectAuthz {
    /// The persona.
    persona_uuid: PersonaUuid,
    /// The user of the persona; null if the service has no such persona, or it is not in force.
    user_uuid: Option<UserUuid>,
    /// The role, set by the partner.
    role: String,
    /// Whether it sees the project.
    may_read: bool,
    /// Whether it may change what takes part in the project.
    may_change: bool,
}

async fn authz(
    _: PlatformAdmin,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
) -> Result<Answer<Vec<DevProjectAuthz>>> {
    let mut conn = core.db.read().await?;
    let (_, members) = stored(&mut conn, &project_id).await?;
    let users: HashMap<PersonaUuid, UserUuid> = store::users_of_members(&mut conn, &project_id)
        .await?
        .into_iter()
        .collect();
    let of = |MemberRow { persona_uuid, role }| {
        let user_uuid = users.get(&persona_uuid).copied();
        let (may_read, may_change) = (
            user_uuid.is_some(),
            user_uuid.is_some() && may_change(&role),
        );
        DevProjectAuthz {
            persona_uuid,
            user_uuid,
            role,
            may_read,
            may_change,
        }
    };
    Ok(Answer(members.into_iter().map(of).collect()))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PersonaIdPath {
    /// The persona.
    persona_id: PersonaUuid,
}

/// A project of a persona.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DevPersonaProject {
    /// The project, as the partner names it.
    project_id: String,
    /// Its name.
    name: String,
    /// The role of the persona, set by the partner.
    role: String,
}

async fn of_persona(
    _: PlatformAdmin,
    State(core): State<Core>,
    Path(PersonaIdPath { persona_id }): Path<PersonaIdPath>,
    page: Page,
) -> Result<Listed<DevPersonaProject>> {
    let (found, total) =
        store::of_persona(&mut core.db.read().await?, persona_id, page.slice()).await?;
    let response = |PersonaProject {
                        project_id,
                        name,
                        role,
                    }| DevPersonaProject {
        project_id,
        name,
        role,
    };
    Ok(page.listed(found.into_iter().map(response).collect(), total))
}
