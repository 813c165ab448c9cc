//! `/tenant/audit-logs` and `/platform/audit-logs`.

use axum::extract::State;
use hub_protocol::{HubUuid, PersonaUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Filters;
use super::store::{self, EntryRow, Reach};
use crate::app::App;
use crate::authz::permission::AuditRead;
use crate::authz::{ActorType, Authorized, PlatformAdmin};
use crate::error::{Error, Result};
use crate::http::answer::Answer;
use crate::http::check::Check;
use crate::http::extract::Query;
use crate::http::page::{Direction, PageOf, Pageable};

/// Counting and skipping end here: further back, a client narrows the list by its filters.
const MAX_COUNTED: i64 = 5_000;
const MAX_FILTER_CHARS: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditQuery {
    /// Written at this time or later.
    from: Option<Timestamp>,
    /// Written before this time.
    to: Option<Timestamp>,
    actor_type: Option<ActorType>,
    /// A user's or a hub's uuid.
    actor_uuid: Option<Uuid>,
    api_key_id: Option<i64>,
    /// As in `hub.update`.
    action: Option<String>,
    /// What was changed: an action's first half.
    object_type: Option<String>,
    object_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantQuery {
    /// One tenant's entries alone.
    tenant_uuid: Option<TenantUuid>,
}

impl AuditQuery {
    fn checked(self) -> Result<Filters> {
        let mut check = Check::new();
        let texts = [("action", &self.action), ("objectType", &self.object_type), ("objectId", &self.object_id)];
        for (field, text) in texts {
            check.line(field, text.as_deref(), MAX_FILTER_CHARS);
        }
        check.done()?;
        Ok(Filters {
            from: self.from,
            to: self.to,
            actor_type: self.actor_type,
            actor_uuid: self.actor_uuid,
            api_key_id: self.api_key_id,
            action: self.action,
            object_type: self.object_type,
            object_id: self.object_id,
        })
    }
}

/// Who changed something.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditActor {
    #[serde(rename = "type")]
    kind: ActorType,
    user_uuid: Option<UserUuid>,
    /// Whom the user acted as.
    persona_uuid: Option<PersonaUuid>,
    api_key_id: Option<i64>,
    hub_uuid: Option<HubUuid>,
    /// A worker's.
    name: Option<String>,
}

/// One change.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogResponse {
    audit_log_id: i64,
    /// Absent where no single tenant is concerned.
    tenant_uuid: Option<TenantUuid>,
    actor: AuditActor,
    action: String,
    object_type: String,
    object_id: String,
    /// What there was, as far as it changed; null when the object is new.
    before: Option<Value>,
    /// What there is, as far as it changed; null when the object is gone.
    after: Option<Value>,
    /// What else there is to know.
    detail: Value,
    /// Where the request came from.
    address: Option<String>,
    /// The request's `X-Request-Id`.
    request_id: Option<String>,
    created_at: Timestamp,
}

impl From<EntryRow> for AuditLogResponse {
    fn from(row: EntryRow) -> Self {
        let uuid_of = |kind| row.actor_uuid.filter(|_| row.actor == kind);
        Self {
            actor: AuditActor {
                kind: row.actor,
                user_uuid: uuid_of(ActorType::User).map(UserUuid),
                persona_uuid: row.persona_uuid,
                api_key_id: row.api_key_id,
                hub_uuid: uuid_of(ActorType::Hub).map(HubUuid),
                name: row.actor_name,
            },
            audit_log_id: row.audit_log_id,
            tenant_uuid: row.tenant_uuid,
            action: row.action,
            object_type: row.object_type,
            object_id: row.target,
            before: row.before_state.map(|state| state.0),
            after: row.after_state.map(|state| state.0),
            detail: row.detail.0,
            address: row.address,
            request_id: row.request_id,
            created_at: row.created_at,
        }
    }
}

/// The tenant's own entries, latest first unless sorted otherwise. `totalElements` is exact up to 5,000 and stays there beyond.
pub async fn list(
    auth: Authorized<AuditRead>,
    State(app): State<App>,
    page: Pageable,
    Query(query): Query<AuditQuery>,
) -> Result<Answer<PageOf<AuditLogResponse>>> {
    read(&app, Reach::Tenant(&auth.scope), page, query).await
}

/// Everybody's entries, latest first unless sorted otherwise. `totalElements` is exact up to 5,000 and stays there beyond.
pub async fn list_all(
    _: PlatformAdmin,
    State(app): State<App>,
    page: Pageable,
    Query(query): Query<AuditQuery>,
    Query(tenant): Query<TenantQuery>,
) -> Result<Answer<PageOf<AuditLogResponse>>> {
    read(&app, Reach::Platform(tenant.tenant_uuid), page, query).await
}

async fn read(
    app: &App,
    reach: Reach<'_>,
    page: Pageable,
    query: AuditQuery,
) -> Result<Answer<PageOf<AuditLogResponse>>> {
    let direction = page.direction("createdAt", Direction::Descending)?;
    if page.offset > MAX_COUNTED {
        let message = format!("pages begin at record {MAX_COUNTED} at the latest; narrow the list by its filters");
        return Err(Error::field("page", message));
    }
    let Some(narrowed) = query.checked()?.narrowed() else { return Ok(Answer(page.page_of(Vec::new(), 0))) };
    let mut conn = app.db.read().await?;
    // Before a later page, the count tells whether there is anything to look for; a first page that is not full tells how many there are.
    let counted = match page.offset > 0 {
        true => Some(store::count(&mut conn, reach, &narrowed, MAX_COUNTED).await?),
        false => None,
    };
    let entries = match counted.is_some_and(|total| total <= page.offset) {
        true => Vec::new(),
        false => store::list(&mut conn, reach, &narrowed, direction, (page.size, page.offset)).await?,
    };
    let listed = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let total = match counted {
        Some(total) => total,
        None if listed < page.size => listed,
        None => store::count(&mut conn, reach, &narrowed, MAX_COUNTED).await?,
    };
    Ok(Answer(page.page_of(entries.into_iter().map(AuditLogResponse::from).collect(), total)))
}
