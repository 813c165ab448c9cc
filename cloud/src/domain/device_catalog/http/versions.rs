//! `/tenant/device-versions`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::{FromRef, State};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::{self, versions::VersionRow};
use super::super::versions::{self, Given};
use super::super::{MAX_NAME_CHARS, MAX_TEXT_CHARS};
use super::{OfModelQuery, TAG};
use crate::authn::Authn;
use crate::authz::{Authorized, permission as perm};
use crate::core::Core;
use crate::error::Result;
use crate::http::answer::{Answer, Empty};
use crate::http::check::Check;
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::DeviceVersionPath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
    ApiRouter::new()
        .api_route(
            "/tenant/device-versions",
            get_with(
                list,
                operation(
                    "deviceVersions.list",
                    TAG,
                    "Versions of device models, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[404, 409],
                    "deviceVersions.create",
                    TAG,
                    "Create a version of a device model",
                ),
            ),
        )
        .api_route(
            "/tenant/device-versions/{deviceVersionUuid}",
            get_with(get, operation("deviceVersions.get", TAG, "One version"))
                .patch_with(
                    update,
                    operation_failing(&[409], "deviceVersions.update", TAG, "Change a version"),
                )
                .delete_with(
                    delete,
                    operation_failing(&[409], "deviceVersions.delete", TAG, "Delete a version"),
                ),
        )
}

/// A version of a device model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceVersionResponse {
    /// The version.
    device_version_uuid: Uuid,
    /// The model.
    device_uuid: Uuid,
    /// Its name, unique within the model.
    version: String,
    /// The hardware of it.
    hardware_version: Option<String>,
    /// The firmware of it.
    firmware_version: Option<String>,
    /// The protocol that reads it; null for the newest of the model.
    #[schemars(range(min = 1))]
    device_protocol_id: Option<i64>,
    /// A text for people.
    notes: Option<String>,
    /// Whether it is on sale.
    released: bool,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl From<VersionRow> for DeviceVersionResponse {
    fn from(row: VersionRow) -> Self {
        Self {
            device_version_uuid: row.device_version_uuid,
            device_uuid: row.device_uuid,
            version: row.version,
            hardware_version: row.hardware_version,
            firmware_version: row.firmware_version,
            device_protocol_id: row.device_protocol_id,
            notes: row.notes,
            released: row.released,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A version to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeviceVersionRequest {
    /// The model.
    device_uuid: Uuid,
    /// Its name, unique within the model.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    version: String,
    /// The hardware of it.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    hardware_version: Option<String>,
    /// The firmware of it.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    firmware_version: Option<String>,
    /// The protocol of the same model that reads it; the newest of the model when absent.
    device_protocol_id: Option<i64>,
    /// A text for people.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    notes: Option<String>,
    /// Whether it is on sale; false when absent.
    released: Option<bool>,
}

/// What to change; a member that is absent or null leaves the stored value alone, empty text
/// removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateDeviceVersionRequest {
    /// Its name, unique within the model.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    version: Option<String>,
    /// The hardware of it.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    hardware_version: Option<String>,
    /// The firmware of it.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    firmware_version: Option<String>,
    /// The protocol of the same model that reads it; 0 for the newest of the model.
    #[schemars(range(min = 0))]
    device_protocol_id: Option<i64>,
    /// A text for people.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    notes: Option<String>,
    /// Whether it is on sale.
    released: Option<bool>,
}

impl UpdateDeviceVersionRequest {
    fn checked(self) -> Result<Given> {
        let mut check = Check::new();
        if let Some(version) = &self.version {
            check.required("version", version, MAX_NAME_CHARS);
        }
        check.line(
            "hardwareVersion",
            self.hardware_version.as_deref(),
            MAX_NAME_CHARS,
        );
        check.line(
            "firmwareVersion",
            self.firmware_version.as_deref(),
            MAX_NAME_CHARS,
        );
        check.lines("notes", self.notes.as_deref(), MAX_TEXT_CHARS);
        check.done()?;
        let Self {
            version,
            hardware_version,
            firmware_version,
            device_protocol_id,
            notes,
            released,
        } = self;
        Ok(Given {
            version,
            hardware_version,
            firmware_version,
            device_protocol_id,
            notes,
            released,
        })
    }
}

async fn list(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Query(OfModelQuery { device_uuid }): Query<OfModelQuery>,
    page: Page,
) -> Result<Listed<DeviceVersionResponse>> {
    let mut conn = core.db.read().await?;
    let (rows, total) =
        store::versions::list(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    Ok(page.listed(
        rows.into_iter().map(DeviceVersionResponse::from).collect(),
        total,
    ))
}

async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceVersionRequest>,
) -> Result<Answer<DeviceVersionResponse>> {
    let device_uuid = request.device_uuid;
    let given = UpdateDeviceVersionRequest {
        version: Some(request.version),
        hardware_version: request.hardware_version,
        firmware_version: request.firmware_version,
        device_protocol_id: request.device_protocol_id,
        notes: request.notes,
        released: request.released,
    };
    let row = versions::create(&core, &auth.scope, device_uuid, given.checked()?).await?;
    Ok(Answer(row.into()))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceVersionPath {
        device_version_uuid,
    }): Path<DeviceVersionPath>,
) -> Result<Answer<DeviceVersionResponse>> {
    let row = versions::get(&mut core.db.read().await?, &auth.scope, device_version_uuid).await?;
    Ok(Answer(row.into()))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceVersionPath {
        device_version_uuid,
    }): Path<DeviceVersionPath>,
    Json(request): Json<UpdateDeviceVersionRequest>,
) -> Result<Answer<DeviceVersionResponse>> {
    let row = versions::update(&core, &auth.scope, device_version_uuid, request.checked()?).await?;
    Ok(Answer(row.into()))
}

async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceVersionPath {
        device_version_uuid,
    }): Path<DeviceVersionPath>,
) -> Result<Empty> {
    versions::delete(&core, &auth.scope, device_version_uuid).await?;
    Ok(Empty)
}
