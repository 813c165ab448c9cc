//! `/webhook/partner-projects`: signed messages of the partner.

use std::collections::{BTreeSet, HashSet};

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::{FromRef, State};
use hub_protocol::{PersonaUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::store::MemberRow;
use super::super::told::{Told, tell};
use super::super::{MAX_MEMBERS, MAX_NAME_CHARS, PROJECT_ID, is_project_id, secret};
use crate::authz::Signed;
use crate::core::Core;
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::check::Check;
use crate::http::operation::operation_failing;
use crate::http::signature::SignedJson;

/// A word in upper case.
const ROLE: &str = "^[A-Z][A-Z0-9_]{0,63}$";

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
{
    ApiRouter::new().api_route(
        "/webhook/partner-projects",
        post_with(
            told,
            operation_failing(
                &[],
                "webhooks.partnerProjects",
                "webhooks",
                "A project of the partner changed",
            ),
        ),
    )
}

/// All of a project as it is now.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PartnerProjectRequest {
    /// The project.
    project: PartnerProject,
    /// Whether it is gone; false when absent.
    deleted: Option<bool>,
    /// When the partner changed it. Of several messages the one with the latest time counts. Once a
    /// project had it, its messages need it.
    occurred_at: Option<Timestamp>,
}

/// A project of the partner.
#[derive(Debug, Deserialize, JsonSchema)]
struct PartnerProject {
    /// The id that the partner gave it.
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

/// What became of a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PartnerProjectResponse {
    /// The project.
    project_id: String,
    /// False if something later was told before, so that the message changed nothing.
    applied: bool,
}

impl PartnerProjectRequest {
    fn checked(self) -> Result<Told> {
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
        Ok(Told {
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

async fn told(
    _: Signed,
    State(core): State<Core>,
    body: SignedJson<PartnerProjectRequest>,
) -> Result<Answer<PartnerProjectResponse>> {
    let told = body.verified(&core, secret(&core)?).await?.checked()?;
    let project_id = told.project_id.clone();
    let applied = tell(&core, told).await?;
    Ok(Answer(PartnerProjectResponse {
        project_id,
        applied,
    }))
}
