//! `/tenant/action-definitions`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::{FromRef, State};
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
use crate::authn::Authn;
use crate::authz::{Authorized, permission as perm};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Created};
use crate::http::check::Check;
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::ActionPath;

const ID: &str = "^[a-z0-9._-]{1,64}$";

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
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

/// Something that can be done with a device.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionDefinitionResponse {
    /// Its id, unique within the supplier.
    action_id: String,
    /// The tenant that defined it.
    supplier_uuid: TenantUuid,
    /// The model whose devices it is for; null for every device of the supplier.
    device_uuid: Option<Uuid>,
    /// A name for people.
    name: String,
    /// A text for people.
    description: Option<String>,
    /// What it takes: the JSON Schema of an object; null for nothing.
    #[schemars(with = "Option<Map<String, Value>>")]
    parameters: Option<Box<RawValue>>,
    /// Whether people are asked before it is carried out.
    confirm: bool,
    /// How it is carried out.
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

/// Whose actions are wanted.
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
    /// A name for people.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// A text for people.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// The model whose devices it is for; every device of the tenant when absent.
    device_uuid: Option<Uuid>,
    /// What it takes: the JSON Schema of an object, of 64 KiB at most.
    #[schemars(with = "Option<Map<String, Value>>")]
    parameters: Option<Box<RawValue>>,
    /// Whether people are asked before it is carried out; false when absent.
    confirm: Option<bool>,
    /// How it is carried out. A member that is not known is an error.
    transport: Transport,
}

/// What to change; a member that is absent or null leaves the stored value alone, empty text
/// removes it. The result is checked like a new action.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionDefinitionUpdateRequest {
    /// A name for people.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// A text for people.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// The model whose devices it is for; the nil UUID for every device of the tenant.
    device_uuid: Option<Uuid>,
    /// What it takes: the JSON Schema of an object; `{}` for nothing.
    #[schemars(with = "Option<Map<String, Value>>")]
    parameters: Option<Box<RawValue>>,
    /// Whether people are asked before it is carried out.
    confirm: Option<bool>,
    /// How it is carried out; it replaces all of what was given before.
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
