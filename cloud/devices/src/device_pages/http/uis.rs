//! `/tenant/device-ui-schemas`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::config::Config;
use super::super::store::{self, uis::UiRow};
use super::super::uis::{self, Given, New, UiKind};
use super::super::{LOCALE, MAX_LOCALE_CHARS, MAX_NAME_CHARS, check_locale};
use super::{OfModelQuery, TAG};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/device-ui-schemas",
            get_with(
                list,
                operation(
                    "deviceUis.list",
                    TAG,
                    "Forms of device models, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[404, 409],
                    "deviceUis.create",
                    TAG,
                    "Create a form of a device model",
                ),
            ),
        )
        .api_route(
            "/tenant/device-ui-schemas/{deviceUiId}",
            get_with(get, operation("deviceUis.get", TAG, "One form"))
                .patch_with(update, operation("deviceUis.update", TAG, "Change a form"))
                .delete_with(delete, operation("deviceUis.delete", TAG, "Delete a form")),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceUiPath {
    /// The id of the UI schema.
    pub device_ui_id: i64,
}

/// A form for the devices of a model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceUiResponse {
    /// The id of the form.
    #[schemars(range(min = 1))]
    device_ui_id: i64,
    /// The model.
    device_uuid: Uuid,
    /// The purpose.
    kind: UiKind,
    /// Display name.
    name: String,
    /// The language of it, such as `pt-BR`.
    locale: Option<String>,
    /// Its steps.
    #[schemars(with = "Config")]
    config_json: Box<RawValue>,
    /// Rises when `configJson` changes.
    #[schemars(range(min = 1))]
    revision: i64,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl DeviceUiResponse {
    pub fn new(row: UiRow) -> Result<Self> {
        Ok(Self {
            device_ui_id: row.device_ui_id,
            device_uuid: row.device_uuid,
            kind: row.kind,
            name: row.name,
            locale: row.locale,
            config_json: RawValue::from_string(row.config).map_err(Error::internal)?,
            revision: row.revision,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// A form to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeviceUiRequest {
    /// The model.
    device_uuid: Uuid,
    /// The purpose.
    kind: UiKind,
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// The language of it, such as `pt-BR`.
    #[schemars(length(max = MAX_LOCALE_CHARS), regex(pattern = LOCALE))]
    locale: Option<String>,
    /// Its steps.
    config_json: Config,
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and an empty locale
/// removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateDeviceUiRequest {
    /// The purpose.
    kind: Option<UiKind>,
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// The language of it, such as `pt-BR`.
    #[schemars(length(max = MAX_LOCALE_CHARS), regex(pattern = LOCALE))]
    locale: Option<String>,
    /// Its steps; they replace all that were given before.
    config_json: Option<Config>,
}

fn check(name: Option<&str>, locale: Option<&str>) -> Result<()> {
    let mut check = Check::new();
    if let Some(name) = name {
        check.required("name", name, MAX_NAME_CHARS);
    }
    check_locale(&mut check, locale);
    check.done()
}

/// A page has at most 8 MiB of forms.
async fn list(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Query(OfModelQuery { device_uuid }): Query<OfModelQuery>,
    page: Page,
) -> Result<Listed<DeviceUiResponse>> {
    let mut conn = core.db.read().await?;
    let bytes = store::uis::page_bytes(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    let _held = page.hold(&core, auth.scope.tenant_uuid(), bytes, "forms")?;
    let (rows, total) = store::uis::list(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    let forms: Result<Vec<_>> = rows.into_iter().map(DeviceUiResponse::new).collect();
    Ok(page.listed(forms?, total))
}

async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceUiRequest>,
) -> Result<Answer<DeviceUiResponse>> {
    check(Some(&request.name), request.locale.as_deref())?;
    let CreateDeviceUiRequest {
        device_uuid,
        kind,
        name,
        locale,
        config_json,
    } = request;
    let new = New {
        device_uuid,
        kind,
        name,
        locale,
        config: config_json.checked()?,
    };
    let row = uis::create(&core, &auth.scope, new).await?;
    Ok(Answer(DeviceUiResponse::new(row)?))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceUiPath { device_ui_id }): Path<DeviceUiPath>,
) -> Result<Answer<DeviceUiResponse>> {
    let row = uis::get(&mut core.db.read().await?, &auth.scope, device_ui_id).await?;
    Ok(Answer(DeviceUiResponse::new(row)?))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceUiPath { device_ui_id }): Path<DeviceUiPath>,
    Json(request): Json<UpdateDeviceUiRequest>,
) -> Result<Answer<DeviceUiResponse>> {
    check(request.name.as_deref(), request.locale.as_deref())?;
    let UpdateDeviceUiRequest {
        kind,
        name,
        locale,
        config_json,
    } = request;
    let config = config_json.map(Config::checked).transpose()?;
    let row = uis::update(
        &core,
        &auth.scope,
        device_ui_id,
        Given {
            kind,
            name,
            locale,
            config,
        },
    )
    .await?;
    Ok(Answer(DeviceUiResponse::new(row)?))
}

async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceUiPath { device_ui_id }): Path<DeviceUiPath>,
) -> Result<Empty> {
    uis::delete(&core, &auth.scope, device_ui_id).await?;
    Ok(Empty)
}
