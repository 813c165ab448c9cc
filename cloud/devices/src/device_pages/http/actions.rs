//! `/tenant/action-definitions`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, Created};
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::super::actions::{self, Given};
use super::super::store::{self, actions::ActionRow};
use super::super::transport::Transport;
use super::super::{MAX_NAME_CHARS, MAX_TEXT_CHARS};
use super::TAG;
use crate::Parts;
use crate::device_pages::http::ActionPath;

const ID: &str = "^[a-z0-9._-]{1,64}$";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/action-definitions",
            get_with(
                list,
                operation("actionDefinitions.list", TAG, "Actions, newest first"),
            )
            .post_with(
                create,
                operation_failing(
                    &[404, 409],
                    "actionDefinitions.create",
                    TAG,
                    "Define what can be done with a device",
                ),
            ),
        )
        .api_route(
            "/tenant/action-definitions/{actionId}",
            get_with(get, operation("actionDefinitions.get", TAG, "One action"))
                .patch_with(
                    update,
                    operation("actionDefinitions.update", TAG, "Change an action"),
                )
                .delete_with(
                    delete,
                    operation("actionDefinitions.delete", TAG, "Delete an action"),
                ),
        )
}

/// An action of a device.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionDefinitionResponse {
    /// Its id, unique within the supplier.
    action_id: String,
    /// The tenant that defined it.
    supplier_uuid: TenantUuid,
    /// The model whose devices it is for; null for every device of the supplier.
    device_uuid: Option<Uuid>,
    /// Display name.
    name: String,
    /// Free-text description.
    description: Option<String>,
    /// The parameters: the JSON Schema of an object; null for none.
    #[schemars(with = "Option<Map<String, Value>>")]
    parameters: Option<Box<RawValue>>,
    /// Whether the user has to confirm the action.
    confirm: bool,
    /// The transport.
    #[schemars(with = "Transport")]
    transport: Box<RawValue>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl ActionDefinitionResponse {
    pub fn new(supplier_uuid: TenantUuid, row: ActionRow) -> Result<Self> {
        let parameters = row.parameters.map(RawValue::from_string).transpose();
        Ok(Self {
            action_id: row.action_id,
            supplier_uuid,
            device_uuid: row.device_uuid,
            name: row.name,
            description: row.description,
            parameters: parameters.map_err(Error::internal)?,
            confirm: row.confirm,
            transport: RawValue::from_string(row.transport).map_err(Error::internal)?,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// The supplier of the actions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfSupplierQuery {
    /// The supplier, which is the tenant of the request: another one is refused.
    #[expect(
        dead_code,
        reason = "`Authorized` reads it, for every operation of a tenant"
    )]
    supplier_uuid: Option<TenantUuid>,
}

/// An action to define.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionDefinitionCreateRequest {
    /// Its id, unique within the tenant.
    #[schemars(regex(pattern = ID))]
    action_id: String,
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// Free-text description.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// The model whose devices it is for; every device of the tenant when absent.
    device_uuid: Option<Uuid>,
    /// The parameters: the JSON Schema of an object, of 64 KiB at most.
    #[schemars(with = "Option<Map<String, Value>>")]
    parameters: Option<Box<RawValue>>,
    /// Whether the user has to confirm the action; false when absent.
    confirm: Option<bool>,
    /// The transport. An unknown member is an error.
    transport: Transport,
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and empty text
/// removes it. The result is checked like a new action.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionDefinitionUpdateRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// Free-text description.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// The model whose devices it is for; the nil UUID for every device of the tenant.
    device_uuid: Option<Uuid>,
    /// The parameters: the JSON Schema of an object; `{}` for none.
    #[schemars(with = "Option<Map<String, Value>>")]
    parameters: Option<Box<RawValue>>,
    /// Whether the user has to confirm the action.
    confirm: Option<bool>,
    /// The transport, which replaces the previous one as a whole.
    transport: Option<Transport>,
}

impl ActionDefinitionUpdateRequest {
    fn checked(self) -> Result<Given> {
        let mut check = Check::new();
        if let Some(name) = &self.name {
            check.required("name", name, MAX_NAME_CHARS);
        }
        check.lines("description", self.description.as_deref(), MAX_TEXT_CHARS);
        check.done()?;
        Ok(Given {
            device_uuid: self.device_uuid,
            name: self.name,
            description: self.description,
            parameters: self
                .parameters
                .map(|parameters| parameters.get().to_owned()),
            confirm: self.confirm,
            transport: self.transport,
        })
    }
}

fn check_id(id: &str) -> Result<()> {
    let mut check = Check::new();
    check.that(
        actions::is_id(id),
        "actionId",
        "must be 1 to 64 lower-case letters, digits, dots, dashes and underscores",
    );
    check.done()
}

/// A page has at most 8 MiB of parameters and transports.
async fn list(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    _: Query<OfSupplierQuery>,
    page: Page,
) -> Result<Listed<ActionDefinitionResponse>> {
    let supplier = auth.scope.tenant_uuid();
    let mut conn = core.db.read().await?;
    let bytes = store::actions::page_bytes(&mut conn, &auth.scope, None, page.slice()).await?;
    let _held = page.hold(&core, supplier, bytes, "actions")?;
    let (rows, total) = store::actions::list(&mut conn, &auth.scope, None, page.slice()).await?;
    let actions: Result<Vec<_>> = rows
        .into_iter()
        .map(|row| ActionDefinitionResponse::new(supplier, row))
        .collect();
    Ok(page.listed(actions?, total))
}

async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<ActionDefinitionCreateRequest>,
) -> Result<Created<ActionDefinitionResponse>> {
    check_id(&request.action_id)?;
    let action_id = request.action_id;
    let given = ActionDefinitionUpdateRequest {
        name: Some(request.name),
        description: request.description,
        device_uuid: request.device_uuid,
        parameters: request.parameters,
        confirm: request.confirm,
        transport: Some(request.transport),
    };
    let row = actions::create(&core, &auth.scope, action_id, given.checked()?).await?;
    Ok(Created(ActionDefinitionResponse::new(
        auth.scope.tenant_uuid(),
        row,
    )?))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(ActionPath { action_id }): Path<ActionPath>,
) -> Result<Answer<ActionDefinitionResponse>> {
    let row = actions::get(&mut core.db.read().await?, &auth.scope, &action_id).await?;
    Ok(Answer(ActionDefinitionResponse::new(
        auth.scope.tenant_uuid(),
        row,
    )?))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(ActionPath { action_id }): Path<ActionPath>,
    Json(request): Json<ActionDefinitionUpdateRequest>,
) -> Result<Answer<ActionDefinitionResponse>> {
    let row = actions::update(&core, &auth.scope, &action_id, request.checked()?).await?;
    Ok(Answer(ActionDefinitionResponse::new(
        auth.scope.tenant_uuid(),
        row,
    )?))
}

async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(ActionPath { action_id }): Path<ActionPath>,
) -> Result<Answer<()>> {
    actions::delete(&core, &auth.scope, &action_id).await?;
    Ok(Answer(()))
}
