//! `/platform/registration-events`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_core::outbox::{self, EventType, Filters, Status, Stored};
use hub_identity::authz::PlatformAdmin;
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/platform/registration-events",
            get_with(
                list,
                operation(
                    "registrationEvents.list",
                    "platform",
                    "Registration events of all tenants, newest first",
                ),
            ),
        )
        .api_route(
            "/platform/registration-events/{id}/retry",
            post_with(
                retry,
                operation(
                    "registrationEvents.retry",
                    "platform",
                    "Send a registration event again, whatever its status",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RegistrationEventPath {
    /// The id of the event.
    pub id: i64,
}

/// Filters of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationEventFilters {
    /// Only events of this status.
    status: Option<Status>,
    /// Only events of this tenant.
    tenant_uuid: Option<TenantUuid>,
    /// Only events of this type.
    event_type: Option<EventType>,
    /// Only events that were sent at least once since they were written or requeued, or only
    /// others: those of a tenant without `registration_url` never are.
    attempted: Option<bool>,
}

/// An event in the outbox.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationEventResponse {
    /// The id of the event.
    #[schemars(range(min = 1))]
    id: i64,
    /// The tenant whose system receives the event.
    tenant_uuid: TenantUuid,
    /// The type of the event.
    event_type: EventType,
    /// The body of the delivery.
    #[schemars(extend("type" = "object"))]
    payload: Value,
    /// Whether it is still to be delivered.
    status: Status,
    /// The number of attempts since it was written or requeued.
    #[schemars(range(min = 0))]
    attempts: i64,
    /// When it is tried next; null unless PENDING.
    next_attempt_at: Option<Timestamp>,
    /// The reason of the last failure.
    last_error: Option<String>,
    /// When it was written.
    created_at: Timestamp,
    /// When it was delivered; null unless DELIVERED.
    delivered_at: Option<Timestamp>,
}

impl From<Stored> for RegistrationEventResponse {
    fn from(stored: Stored) -> Self {
        Self {
            id: stored.registration_event_id,
            tenant_uuid: stored.tenant_uuid,
            event_type: stored.event_type,
            payload: stored.payload(),
            status: stored.status,
            attempts: stored.attempts,
            next_attempt_at: stored.next_attempt_at,
            last_error: stored.last_error,
            created_at: stored.created_at,
            delivered_at: stored.delivered_at,
        }
    }
}

async fn list(
    _: PlatformAdmin,
    State(core): State<Core>,
    Query(filters): Query<RegistrationEventFilters>,
    page: Page,
) -> Result<Listed<RegistrationEventResponse>> {
    let RegistrationEventFilters {
        status,
        tenant_uuid,
        event_type,
        attempted,
    } = filters;
    let mut conn = core.db.read().await?;
    let filters = Filters {
        status,
        tenant_uuid,
        event_type,
        attempted,
    };
    let (events, total) = outbox::list(&mut conn, filters, page.slice()).await?;
    Ok(page.listed(
        events
            .into_iter()
            .map(RegistrationEventResponse::from)
            .collect(),
        total,
    ))
}

async fn retry(
    PlatformAdmin(admin): PlatformAdmin,
    State(core): State<Core>,
    Path(RegistrationEventPath { id }): Path<RegistrationEventPath>,
) -> Result<Answer<RegistrationEventResponse>> {
    Ok(Answer(super::retry(&core, &admin, id).await?.into()))
}
