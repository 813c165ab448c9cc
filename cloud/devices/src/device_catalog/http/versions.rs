//! `/tenant/device-versions`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::super::store::{self, versions::VersionRow};
use super::super::versions::{self, Given};
use super::super::{MAX_NAME_CHARS, MAX_TEXT_CHARS};
use super::{OfModelQuery, TAG};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceVersionPath {
    /// The version of a device model.
    pub device_version_uuid: Uuid,
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
    /// Free-text notes.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    notes: Option<String>,
    /// Whether it is on sale; false when absent.
    released: Option<bool>,
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and empty text
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
    /// Free-text notes.
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
) -> Result<Listed<VersionRow>> {
    let mut conn = core.db.read().await?;
    let (rows, total) =
        store::versions::list(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    Ok(page.listed(rows, total))
}

async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceVersionRequest>,
) -> Result<Answer<VersionRow>> {
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
    Ok(Answer(row))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceVersionPath {
        device_version_uuid,
    }): Path<DeviceVersionPath>,
) -> Result<Answer<VersionRow>> {
    let row = versions::get(&mut core.db.read().await?, &auth.scope, device_version_uuid).await?;
    Ok(Answer(row))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceVersionPath {
        device_version_uuid,
    }): Path<DeviceVersionPath>,
    Json(request): Json<UpdateDeviceVersionRequest>,
) -> Result<Answer<VersionRow>> {
    let row = versions::update(&core, &auth.scope, device_version_uuid, request.checked()?).await?;
    Ok(Answer(row))
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
