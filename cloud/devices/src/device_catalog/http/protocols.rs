//! `/tenant/device-protocols`.

use std::collections::BTreeMap;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_adverts::Builtin;
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
use serde_json::{Map, Value};
use uuid::Uuid;

use super::super::protocols::{self, Given, ProtocolKind};
use super::super::store::{self, protocols::ProtocolRow};
use super::super::trial::{self, Reading};
use super::super::{MAX_ITEMS, MAX_NAME_CHARS};
use super::{OfModelQuery, TAG};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/device-protocols",
            get_with(
                list,
                operation("deviceProtocols.list", TAG, "Protocols, newest first"),
            )
            .post_with(
                create,
                operation_failing(
                    &[404, 409],
                    "deviceProtocols.create",
                    TAG,
                    "Say how advertisements of a device model are read",
                ),
            ),
        )
        .api_route(
            "/tenant/device-protocols/test-run",
            post_with(
                test_run,
                operation(
                    "deviceProtocols.testRun",
                    TAG,
                    "Try a protocol that is not stored",
                ),
            ),
        )
        .api_route(
            "/tenant/device-protocols/{deviceProtocolId}",
            get_with(get, operation("deviceProtocols.get", TAG, "One protocol"))
                .patch_with(
                    update,
                    operation_failing(&[409], "deviceProtocols.update", TAG, "Change a protocol"),
                )
                .delete_with(
                    delete,
                    operation_failing(&[409], "deviceProtocols.delete", TAG, "Delete a protocol"),
                ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProtocolPath {
    /// The id of the protocol.
    pub device_protocol_id: i64,
}

/// A protocol of the advertisements of a device model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProtocolResponse {
    /// The id of the protocol.
    #[schemars(range(min = 1))]
    device_protocol_id: i64,
    /// The model.
    device_uuid: Uuid,
    /// Display name.
    name: String,
    /// The kind of its definition.
    kind: ProtocolKind,
    /// The definition, in the form of the kind.
    #[schemars(with = "Value")]
    definition: Box<RawValue>,
    /// Advertisements with their expected values.
    #[schemars(with = "Vec<Map<String, Value>>")]
    tests: Box<RawValue>,
    /// Rises when kind or definition change.
    #[schemars(range(min = 1))]
    revision: i64,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl DeviceProtocolResponse {
    fn new(row: ProtocolRow) -> Result<Self> {
        Ok(Self {
            device_protocol_id: row.device_protocol_id,
            device_uuid: row.device_uuid,
            name: row.name,
            kind: row.kind,
            definition: RawValue::from_string(row.definition).map_err(Error::internal)?,
            tests: RawValue::from_string(row.tests).map_err(Error::internal)?,
            revision: row.revision,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// A protocol to create. It is compiled, and its tests are run, before it is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeviceProtocolRequest {
    /// The model.
    device_uuid: Uuid,
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// The kind of its definition.
    kind: ProtocolKind,
    /// The definition, in the form of the kind, of 64 KiB at most. An unknown member is an error.
    definition: Value,
    /// Advertisements with their expected values, in the form of docs/decoders.md, of 64 KiB at
    /// most. Every reader of the catalog can see them: include no key of a device in use.
    #[schemars(length(max = MAX_ITEMS))]
    tests: Option<Vec<Map<String, Value>>>,
}

/// Changes to make. An absent or null member leaves the stored value unchanged. The result is
/// compiled and tested like a new protocol.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UpdateDeviceProtocolRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// The kind of its definition.
    kind: Option<ProtocolKind>,
    /// The definition, in the form of the kind.
    definition: Option<Value>,
    /// Advertisements with their expected values, which replace all previous ones.
    #[schemars(length(max = MAX_ITEMS))]
    tests: Option<Vec<Map<String, Value>>>,
}

/// A protocol to try.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct DeviceProtocolTestRequest {
    /// The kind of its definition.
    kind: ProtocolKind,
    /// The definition, in the form of the kind, of 64 KiB at most. An unknown member is an error.
    #[schemars(extend("x-decoders" = Builtin::ALL.map(Builtin::name)))]
    definition: Value,
    /// Advertisements with their expected values, in the form of docs/decoders.md, of 64 KiB at
    /// most. A test with an empty `expect` shows the decoded values.
    #[schemars(length(max = MAX_ITEMS))]
    tests: Option<Vec<Map<String, Value>>>,
}

/// The result of a test of a protocol.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeviceProtocolTestResult {
    /// The outcomes of the tests, in their order.
    tests: Vec<ProtocolTestOutcome>,
}

/// The values that a protocol decodes from the frame of one test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProtocolTestOutcome {
    /// Whether all is as the test expects.
    passed: bool,
    /// The values by quantity; one of several of a quantity as `quantity[index]`.
    values: BTreeMap<String, Value>,
    /// The quantities that are not as the test expects.
    differing: Vec<String>,
    /// The reason for having no values.
    problem: Option<String>,
}

impl From<Reading> for ProtocolTestOutcome {
    fn from(reading: Reading) -> Self {
        Self {
            passed: reading.has_passed(),
            values: reading
                .measurements
                .iter()
                .map(|one| (one.key(), one.value.json()))
                .collect(),
            differing: reading
                .differences
                .into_iter()
                .map(|one| one.quantity)
                .collect(),
            problem: reading.problem,
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    let mut check = Check::new();
    check.required("name", name, MAX_NAME_CHARS);
    check.done()
}

/// A page has at most 8 MiB of definitions and tests.
async fn list(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Query(OfModelQuery { device_uuid }): Query<OfModelQuery>,
    page: Page,
) -> Result<Listed<DeviceProtocolResponse>> {
    let mut conn = core.db.read().await?;
    let bytes =
        store::protocols::page_bytes(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    let _held = page.hold(&core, auth.scope.tenant_uuid(), bytes, "protocols")?;
    let (rows, total) =
        store::protocols::list(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    let protocols: Result<Vec<_>> = rows.into_iter().map(DeviceProtocolResponse::new).collect();
    Ok(page.listed(protocols?, total))
}

/// A SCRIPT is run on its tests as on events. 503 BUSY while too many scripts are being run.
async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceProtocolRequest>,
) -> Result<Answer<DeviceProtocolResponse>> {
    check_name(&request.name)?;
    let CreateDeviceProtocolRequest {
        device_uuid,
        name,
        kind,
        definition,
        tests,
    } = request;
    let given = Given {
        name: Some(name),
        kind: Some(kind),
        definition: Some(definition),
        tests,
    };
    let row = protocols::create(&core, &auth.scope, device_uuid, given).await?;
    Ok(Answer(DeviceProtocolResponse::new(row)?))
}

/// Compiles the definition and runs its tests, and stores nothing. What cannot be compiled and what
/// is no test is refused by name. 503 BUSY while too many scripts are being run.
async fn test_run(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<DeviceProtocolTestRequest>,
) -> Result<Answer<DeviceProtocolTestResult>> {
    let DeviceProtocolTestRequest {
        kind,
        definition,
        tests,
    } = request;
    let tests = Value::from(tests.unwrap_or_default()).to_string();
    let readings = trial::run(&core, &auth.scope, kind, definition.to_string(), tests).await?;
    Ok(Answer(DeviceProtocolTestResult {
        tests: readings.into_iter().map(Into::into).collect(),
    }))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceProtocolPath { device_protocol_id }): Path<DeviceProtocolPath>,
) -> Result<Answer<DeviceProtocolResponse>> {
    let row = protocols::get(&mut core.db.read().await?, &auth.scope, device_protocol_id).await?;
    Ok(Answer(DeviceProtocolResponse::new(row)?))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceProtocolPath { device_protocol_id }): Path<DeviceProtocolPath>,
    Json(request): Json<UpdateDeviceProtocolRequest>,
) -> Result<Answer<DeviceProtocolResponse>> {
    let UpdateDeviceProtocolRequest {
        name,
        kind,
        definition,
        tests,
    } = request;
    name.as_deref().map(check_name).transpose()?;
    let given = Given {
        name,
        kind,
        definition,
        tests,
    };
    let row = protocols::update(&core, &auth.scope, device_protocol_id, given).await?;
    Ok(Answer(DeviceProtocolResponse::new(row)?))
}

/// The request is refused with 409 while versions of the model name it.
async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceProtocolPath { device_protocol_id }): Path<DeviceProtocolPath>,
) -> Result<Empty> {
    protocols::delete(&core, &auth.scope, device_protocol_id).await?;
    Ok(Empty)
}
