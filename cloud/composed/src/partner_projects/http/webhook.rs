//! `/webhook/partner-projects`: signed messages of the partner.

use std::collections::{BTreeSet, HashSet};

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::Check;
use hub_core::http::operation::operation_failing;
use hub_core::http::signature::SignedJson;
use hub_identity::authz::Signed;
use hub_protocol::{PersonaUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::message::{ProjectMessage, apply};
use super::super::store::MemberRow;
use super::super::{MAX_MEMBERS, MAX_NAME_CHARS, PROJECT_ID, is_project_id, secret};
use crate::Parts;

/// A word in upper case.
const ROLE: &str = "^[A-Z][A-Z0-9_]{0,63}$";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/webhook/partner-projects",
        post_with(
            receive,
            operation_failing(
                &[],
                "webhooks.partnerProjects",
                "webhooks",
                "A project of the partner changed",
            ),
        ),
    )
}

/// The complete present state of a project.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PartnerProjectRequest {
    /// The project.
    project: PartnerProject,
    /// Whether the project was deleted; false when absent.
    deleted: Option<bool>,
    /// When the partner changed it. Of several messages the one with the latest time counts.
    occurred_at: Timestamp,
}

/// A project of the partner.
#[derive(Debug, Deserialize, JsonSchema)]
struct PartnerProject {
    /// The project's id, set by the partner.
    #[schemars(regex(pattern = PROJECT_ID))]
    id: String,
    /// Its name; required unless it is deleted.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// All of its members; required unless it is deleted.
    #[schemars(length(max = MAX_MEMBERS))]
    members: Option<Vec<PartnerMember>>,
}

/// A member of a project.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PartnerMember {
    /// The persona; each once.
    persona_uuid: PersonaUuid,
    /// The role. With `OWNER`, `ADMIN`, `OPERATOR`, `EDITOR` and `MEMBER` the member may change
    /// what takes part in the project; with any other role the member sees it.
    #[schemars(regex(pattern = ROLE))]
    role: String,
}

/// The outcome of a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PartnerProjectResponse {
    /// The project.
    project_id: String,
    /// False if a later message was applied before, so that this one changed nothing.
    applied: bool,
}

impl PartnerProjectRequest {
    fn checked(self) -> Result<ProjectMessage> {
        let Self {
            project: PartnerProject { id, name, members },
            deleted,
            occurred_at,
        } = self;
        let is_deleted = deleted.unwrap_or(false);
        let mut check = Check::new();
        let message =
            "must be 1 to 128 letters, digits and `._~:-`, beginning with a letter or digit";
        check.that(is_project_id(&id), "project.id", message);
        match &name {
            Some(name) => check.required("project.name", name, MAX_NAME_CHARS),
            None => check.that(
                is_deleted,
                "project.name",
                "is required unless the project is deleted",
            ),
        }
        check.that(
            is_deleted || members.is_some(),
            "project.members",
            "is required unless the project is deleted",
        );
        let members = members.unwrap_or_default();
        check.that(
            members.len() <= MAX_MEMBERS,
            "project.members",
            format!("must have at most {MAX_MEMBERS} items"),
        );
        let mut seen = HashSet::new();
        for (at, member) in members.iter().take(MAX_MEMBERS).enumerate() {
            let field = format!("project.members[{at}]");
            check.that(
                is_role(&member.role),
                format!("{field}.role"),
                "must be a word in upper case",
            );
            check.that(
                seen.insert(member.persona_uuid),
                format!("{field}.personaUuid"),
                "is a member already",
            );
        }
        check.done()?;
        let member = |member: PartnerMember| MemberRow {
            persona_uuid: member.persona_uuid,
            role: member.role,
        };
        let members: BTreeSet<MemberRow> = members.into_iter().map(member).collect();
        let name = name.map(|name| name.trim().to_owned());
        Ok(ProjectMessage {
            project_id: id,
            name,
            members,
            is_deleted,
            occurred_at,
        })
    }
}

fn is_role(text: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.len() <= 64
        && text.bytes().all(is_char)
        && text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_uppercase())
}

async fn receive(
    _: Signed,
    State(core): State<Core>,
    body: SignedJson<PartnerProjectRequest>,
) -> Result<Answer<PartnerProjectResponse>> {
    let message = body.verified(&core, secret(&core)?).await?.body.checked()?;
    let project_id = message.project_id.clone();
    let applied = apply(&core, message).await?;
    Ok(Answer(PartnerProjectResponse {
        project_id,
        applied,
    }))
}
