//! `GET /tenant/advisories/{advisoryId}/history`: who has changed an advisory when, from the audit
//! log and for as long as that is kept.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_people::audit_logs::Change;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::http::{AdvisoryPath, TAG};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/advisories/{advisoryId}/history",
        get_with(
            list,
            operation(
                "advisories.listHistory",
                TAG,
                "The changes of an advisory, newest first",
            ),
        ),
    )
}

/// What was done to an advisory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AdvisoryChange {
    /// It was created.
    Created,
    /// All of it was replaced.
    Replaced,
    /// It was deleted, and has been created again since.
    Deleted,
}

/// A change of an advisory.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvisoryChangeResponse {
    /// The entry of the audit log.
    #[schemars(range(min = 1))]
    audit_log_id: i64,
    /// What was done.
    change: AdvisoryChange,
    /// Who did it, such as `USER:` or `API_KEY:` with an id.
    author: String,
    /// The advisory before; null of one that was created.
    before_state: Option<Value>,
    /// The advisory since then; null of one that was deleted.
    after_state: Option<Value>,
    /// When it was done.
    created_at: Timestamp,
}

impl From<Change> for AdvisoryChangeResponse {
    fn from(change: Change) -> Self {
        Self {
            audit_log_id: change.audit_log_id,
            change: match (&change.before_state, &change.after_state) {
                (None, _) => AdvisoryChange::Created,
                (Some(_), Some(_)) => AdvisoryChange::Replaced,
                (Some(_), None) => AdvisoryChange::Deleted,
            },
            author: change.actor_key,
            before_state: change.before_state.map(|state| state.0),
            after_state: change.after_state.map(|state| state.0),
            created_at: change.created_at,
        }
    }
}

async fn list(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
    Path(path): Path<AdvisoryPath>,
    page: Page,
) -> Result<Listed<AdvisoryChangeResponse>> {
    let id = path.checked()?;
    let mut conn = core.db.read().await?;
    let (changes, total) = super::history(&mut conn, &auth.scope, &id, page.slice()).await?;
    Ok(page.listed(changes.into_iter().map(Into::into).collect(), total))
}
