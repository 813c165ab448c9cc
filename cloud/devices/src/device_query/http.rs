//! `/v1/hubs/{hubUuid}/device-query`.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_fleet::hubs::http::HubPath;
use hub_identity::authn::hub::Hub;
use hub_ingest::UploadBody;
use hub_protocol::ble::Advertisement;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::Found;
use crate::Parts;
use crate::device_instances::ActivationStatus;
use crate::recognition::Recognition;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/v1/hubs/{hubUuid}/device-query",
        post_with(
            query,
            operation(
                "hub.queryDevice",
                "hub-api",
                "Which registered device the hub sees",
            ),
        ),
    )
}

/// The device that the hub sees. Without one, `matched` is the only member.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceQueryResponse {
    /// Whether it is a registered device.
    matched: bool,
    /// The device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    device_instance_id: Option<i64>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_uuid: Option<Uuid>,
    /// Its status, after the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_status: Option<ActivationStatus>,
    /// Whether the query has made it active.
    #[serde(skip_serializing_if = "Option::is_none")]
    activated: Option<bool>,
}

impl From<Found> for DeviceQueryResponse {
    fn from(found: Found) -> Self {
        Self {
            matched: true,
            device_instance_id: Some(found.device_instance_id),
            device_uuid: Some(found.device_uuid),
            activation_status: Some(found.activation_status),
            activated: Some(found.activated),
        }
    }
}

async fn query(
    hub: Hub,
    State(core): State<Core>,
    State(recognition): State<Recognition>,
    Path(_): Path<HubPath>,
    body: UploadBody<Advertisement>,
) -> Result<Answer<DeviceQueryResponse>> {
    let (advertisement, _turn) = body.report(&core, &core.turns.reports, &hub).await?;
    let found = super::query(&core, &recognition, &hub, advertisement).await?;
    Ok(Answer(
        found.map(DeviceQueryResponse::from).unwrap_or_default(),
    ))
}
