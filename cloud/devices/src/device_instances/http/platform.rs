//! `/platform/activation-events`: the activations of devices of all tenants.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::PlatformAdmin;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::activations::{self, ActivationKind, StoredActivation};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/platform/activation-events",
        get_with(
            list,
            operation(
                "activationEvents.list",
                "platform",
                "Activations of devices of all tenants, latest first",
            ),
        ),
    )
}

/// A device became active.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivationEventResponse {
    /// The id of the event.
    #[schemars(range(min = 1))]
    id: i64,
    /// The tenant of the device.
    tenant_uuid: TenantUuid,
    /// The hub that saw the device; null of OPERATOR.
    hub_uuid: Option<HubUuid>,
    /// The device, which may be deleted by now.
    #[schemars(range(min = 1))]
    device_instance_id: i64,
    /// The cause of the activation.
    kind: ActivationKind,
    /// When it became active.
    occurred_at: Timestamp,
}

impl From<StoredActivation> for ActivationEventResponse {
    fn from(activation: StoredActivation) -> Self {
        Self {
            id: activation.activation_event_id,
            tenant_uuid: activation.tenant_uuid,
            hub_uuid: activation.hub_uuid,
            device_instance_id: activation.device_instance_id,
            kind: activation.kind,
            occurred_at: activation.occurred_at,
        }
    }
}

async fn list(
    _: PlatformAdmin,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<ActivationEventResponse>> {
    let mut conn = core.db.read().await?;
    let (activations, total) = activations::list_all(&mut conn, page.slice()).await?;
    Ok(page.listed(
        activations
            .into_iter()
            .map(ActivationEventResponse::from)
            .collect(),
        total,
    ))
}
