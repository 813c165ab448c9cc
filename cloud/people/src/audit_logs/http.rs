//! `/tenant/audit-logs` and `/platform/audit-logs`.

use std::collections::BTreeSet;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::ActorType;
use hub_core::http::answer::Answer;
use hub_core::http::check::Check;
use hub_core::http::extract::Query;
use hub_core::http::operation::operation;
use hub_core::http::page::{PageOf, Pageable};
use hub_identity::authz::permission::AuditRead;
use hub_identity::authz::{Authorized, Caller, PlatformAdmin};
use hub_protocol::{HubUuid, PersonaUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Filters;
use super::store::{self, EntryRow, Reach};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/audit-logs",
            get_with(
                list,
                operation(
                    "auditLogs.list",
                    "tenant-audit",
                    "Who changed what in the tenant, latest first",
                ),
            ),
        )
        .api_route(
            "/platform/audit-logs",
            get_with(
                list_all,
                operation(
                    "auditLogs.listAll",
                    "platform",
                    "Who changed what, in all tenants, latest first",
                ),
            ),
        )
}

/// Counting and skipping stop here. To see older entries, a client uses the filters.
const MAX_COUNTED: i64 = 5_000;
const MAX_FILTER_CHARS: usize = 200;

/// Filters of the entries.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditQuery {
    /// Only entries written at this time or later.
    from: Option<Timestamp>,
    /// Only entries written before this time.
    to: Option<Timestamp>,
    /// Only changes by this kind of actor.
    actor_type: Option<ActorType>,
    /// Only changes by this user or hub.
    actor_uuid: Option<Uuid>,
    /// Only changes with this API key.
    api_key_id: Option<i64>,
    /// Only this action, such as `hub.update`.
    #[schemars(length(max = MAX_FILTER_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    action: Option<String>,
    /// Only changes of this type of object: the first half of an action, such as `hub`.
    #[schemars(length(max = MAX_FILTER_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    object_type: Option<String>,
    /// Only changes of this object.
    #[schemars(length(max = MAX_FILTER_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    object_id: Option<String>,
}

/// The tenant whose entries are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantQuery {
    /// Only entries of this tenant.
    tenant_uuid: Option<TenantUuid>,
}

impl AuditQuery {
    fn checked(self) -> Result<Filters> {
        let mut check = Check::new();
        let texts = [
            ("action", &self.action),
            ("objectType", &self.object_type),
            ("objectId", &self.object_id),
        ];
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

/// The actor of a change.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditActor {
    /// The kind of actor.
    #[serde(rename = "type")]
    kind: ActorType,
    /// The user.
    user_uuid: Option<UserUuid>,
    /// The user's e-mail address, in the list of the platform alone.
    email: Option<String>,
    /// The persona that the user acted as.
    persona_uuid: Option<PersonaUuid>,
    /// The API key.
    api_key_id: Option<i64>,
    /// The hub.
    hub_uuid: Option<HubUuid>,
    /// The name of the worker or command.
    name: Option<String>,
}

/// One change.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogResponse {
    /// The id of the entry.
    #[schemars(range(min = 1))]
    audit_log_id: i64,
    /// The tenant; null where no single tenant is concerned.
    tenant_uuid: Option<TenantUuid>,
    /// The author of the change.
    actor: AuditActor,
    /// The action, such as `hub.update`.
    action: String,
    /// The type of the object: the first half of the action.
    object_type: String,
    /// The object.
    object_id: String,
    /// The e-mail address of the user or member that is the object, in the list of the platform
    /// alone.
    object_email: Option<String>,
    /// The object before, as far as it changed; null when it is new.
    before: Option<Value>,
    /// The changed members of the object after the change; null when it was deleted.
    after: Option<Value>,
    /// Further details of the change.
    detail: Value,
    /// The client address of the request.
    address: Option<String>,
    /// The `X-Request-Id` of the request.
    request_id: Option<String>,
    /// The time of the change.
    created_at: Timestamp,
}

impl AuditLogResponse {
    /// The ids that may be those of people: of the actor, and of the object.
    fn people(&self) -> [Option<Uuid>; 2] {
        let actor = self.actor.user_uuid.map(|user_uuid| user_uuid.0);
        [actor, Uuid::try_parse(&self.object_id).ok()]
    }

    /// E-mail addresses are for administrators: a key may be anybody's.
    fn hide_emails(&mut self) {
        for state in self
            .before
            .iter_mut()
            .chain(&mut self.after)
            .chain([&mut self.detail])
        {
            if let Some(email) = state.get_mut("email") {
                *email = Value::Null;
            }
        }
    }
}

impl From<EntryRow> for AuditLogResponse {
    fn from(row: EntryRow) -> Self {
        let uuid_of = |kind| row.actor_uuid.filter(|_| row.actor == kind);
        Self {
            actor: AuditActor {
                kind: row.actor,
                user_uuid: uuid_of(ActorType::User).map(UserUuid),
                email: None,
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
            object_email: None,
            before: row.before_state.map(|state| state.0),
            after: row.after_state.map(|state| state.0),
            detail: row.detail.0,
            address: row.address,
            request_id: row.request_id,
            created_at: row.created_at,
        }
    }
}

/// The tenant's entries, latest first unless sorted otherwise. `totalElements` is exact up to 5,000
/// and does not exceed it. To an API key, e-mail addresses in them are null.
async fn list(
    auth: Authorized<AuditRead>,
    State(core): State<Core>,
    page: Pageable,
    Query(query): Query<AuditQuery>,
) -> Result<Answer<PageOf<AuditLogResponse>>> {
    let Answer(mut page) = read(&core, Reach::Tenant(&auth.scope), page, query).await?;
    if let Caller::ApiKey(_) = auth.caller {
        page.content
            .iter_mut()
            .for_each(AuditLogResponse::hide_emails);
    }
    Ok(Answer(page))
}

/// The entries of all tenants, latest first unless sorted otherwise. `totalElements` is exact up to
/// 5,000 and does not exceed it.
async fn list_all(
    _: PlatformAdmin,
    State(core): State<Core>,
    page: Pageable,
    Query(query): Query<AuditQuery>,
    Query(tenant): Query<TenantQuery>,
) -> Result<Answer<PageOf<AuditLogResponse>>> {
    let reach = Reach::Platform(tenant.tenant_uuid);
    let Answer(mut page) = read(&core, reach, page, query).await?;
    let people: BTreeSet<Uuid> = page
        .content
        .iter()
        .flat_map(AuditLogResponse::people)
        .flatten()
        .collect();
    let emails = store::emails(&mut core.db.read().await?, &people).await?;
    for entry in &mut page.content {
        let [actor, object] = entry
            .people()
            .map(|person| person.and_then(|person| emails.get(&person).cloned()));
        entry.actor.email = actor;
        entry.object_email = object;
    }
    Ok(Answer(page))
}

async fn read(
    core: &Core,
    reach: Reach<'_>,
    page: Pageable,
    query: AuditQuery,
) -> Result<Answer<PageOf<AuditLogResponse>>> {
    let direction = page.direction("createdAt", Direction::Descending)?;
    if page.offset > MAX_COUNTED {
        let message =
            format!("must start at record {MAX_COUNTED} or earlier; narrow the list with filters");
        return Err(Error::field("page", message));
    }
    let Some(narrowed) = query.checked()?.narrowed() else {
        return Ok(Answer(page.page_of(Vec::new(), 0)));
    };
    let mut conn = core.db.read().await?;
    // A later page needs the count first, to decide whether it exists. A first page that is not
    // full is the whole list.
    let counted = match page.offset > 0 {
        true => Some(store::count(&mut conn, reach, &narrowed, MAX_COUNTED).await?),
        false => None,
    };
    let entries = match counted.is_some_and(|total| total <= page.offset) {
        true => Vec::new(),
        false => store::list(&mut conn, reach, &narrowed, direction, page.slice()).await?,
    };
    let listed = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let total = match counted {
        Some(total) => total,
        None if listed < page.size => listed,
        None => store::count(&mut conn, reach, &narrowed, MAX_COUNTED).await?,
    };
    Ok(Answer(page.page_of(
        entries.into_iter().map(AuditLogResponse::from).collect(),
        total,
    )))
}
