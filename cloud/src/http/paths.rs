//! The parameters of paths, by their names in the paths. Each describes itself.

use hub_protocol::{AppUuid, HubJobUuid, HubUuid, PersonaUuid, ReleaseUuid, TenantUuid};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubPath {
    /// The hub.
    pub hub_uuid: HubUuid,
}

/// Two paths of the platform use this spelling.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SnakeCaseHubPath {
    /// The hub.
    pub hub_uuid: HubUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The address of the adapter, such as `00:1A:7D:DA:71:13`.
    pub address: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubJobPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The job.
    pub hub_job_uuid: HubJobUuid,
}

/// As [`HubJobPath`], under `/tenant/hub-monitoring`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MonitoredJobPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The job.
    pub job_uuid: HubJobUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupDelegationPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The id of the delegation.
    pub id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPath {
    /// The update policy.
    pub policy_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundlePath {
    /// The bundle.
    pub bundle_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppPath {
    /// The app.
    pub app_uuid: AppUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleasePath {
    /// The release of an app.
    pub app_release_uuid: ReleaseUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePath {
    /// The release.
    pub release_uuid: ReleaseUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct FilePath {
    /// `<channel>.json` for the feed of a channel, or the name of a file in a signed URL.
    pub filename: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyPath {
    /// The id of the API key.
    pub api_key_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicePath {
    /// The id of the device.
    pub device_instance_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCommandPath {
    /// The id of the device.
    pub device_instance_id: i64,
    /// The command.
    pub command_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventPath {
    /// The id of the event.
    pub ble_event_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessPath {
    /// The task that reads events again.
    pub task_id: Uuid,
}

/// Of the platform, which names any tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantPath {
    /// The tenant.
    pub tenant_uuid: TenantUuid,
}

/// The access extractor reads the tenant of the path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberPath {
    /// The persona of the member in the tenant.
    pub target_persona_uuid: PersonaUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonaPath {
    /// The persona of the member in the tenant.
    pub persona_uuid: PersonaUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationPath {
    /// The id of the invitation.
    pub invitation_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct InvitationTokenPath {
    /// The token of the invitation, from the mail.
    pub token: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransferPath {
    /// The transfer request.
    pub request_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCodePath {
    /// The claim code, whose case, dashes and blanks are ignored, or its `id`.
    pub claim_code: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceModelPath {
    /// The device model.
    pub device_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceIdentifierPath {
    /// The device model.
    pub device_uuid: Uuid,
    /// The id of the identifier.
    pub id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProtocolPath {
    /// The id of the protocol.
    pub device_protocol_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceVersionPath {
    /// The version of a device model.
    pub device_version_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FloorPlanPath {
    /// The id of the floor plan.
    pub floor_plan_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalEndpointPath {
    /// The id of the external endpoint.
    pub id: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceUiPath {
    /// The id of the UI schema.
    pub device_ui_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceManualPath {
    /// The id of the manual.
    pub device_manual_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionPath {
    /// The action, as its supplier named it.
    pub action_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentPath {
    /// The id of the consent.
    pub consent_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupplierPath {
    /// The supplier.
    pub supplier_uuid: TenantUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationPath {
    /// The id of the notice.
    pub notification_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RegistrationEventPath {
    /// The id of the event.
    pub id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SupplierOauthApprovalPath {
    /// The id of the change.
    pub id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct LibraryPath {
    /// The first half of the key of a model, such as `ruuvi`.
    pub brand: String,
    /// The second half, such as `ruuvitag`.
    pub key: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelinePath {
    /// The pipeline.
    pub pipeline_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayPath {
    /// The pipeline.
    pub pipeline_uuid: Uuid,
    /// The replay.
    pub replay_uuid: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPath {
    /// The pipeline.
    pub pipeline_uuid: Uuid,
    /// The id of the dead letter.
    pub dlq_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SupplierLinkPath {
    /// The id of the link.
    pub id: i64,
}
