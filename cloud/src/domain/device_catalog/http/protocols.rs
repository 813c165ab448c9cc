//! `/tenant/device-protocols`.

use std::collections::BTreeMap;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::{FromRef, State};
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
use crate::authn::Authn;
use crate::authz::{Authorized, permission as perm};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Empty};
use crate::http::check::Check;
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::DeviceProtocolPath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
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

/// How the advertisements of a device model are read.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProtocolResponse {
    /// The id of the protocol.
    #[schemars(range(min = 1))]
    device_protocol_id: i64,
    /// The model.
    device_uuid: Uuid,
    /// A name for people.
    name: String,
    /// How it is given.
    kind: ProtocolKind,
    /// What the kind demands.
    #[schemars(with = "Value")]
    definition: Box<RawValue>,
    /// Advertisements with what they say.
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
    /// A name for people.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// How it is given.
    kind: ProtocolKind,
    /// What the kind demands, of 64 KiB at most. A member that is not known is an error.
    definition: Value,
    /// Advertisements with what they say, in the form of docs/decoders.md, of 64 KiB at most. They
    /// are shown to every reader of the catalog: give no key of a device in use.
    #[schemars(length(max = MAX_ITEMS))]
    tests: Option<Vec<Map<String, Value>>>,
}

/// What to change; a member that is absent or null leaves the stored value alone. The result is
/// compiled and tested like a new protocol.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UpdateDeviceProtocolRequest {
    /// A name for people.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// How it is given.
    kind: Option<ProtocolKind>,
    /// What the kind demands.
    definition: Option<Value>,
    /// Advertisements with what they say; they replace all that were given before.
    #[schemars(length(max = MAX_ITEMS))]
    tests: Option<Vec<Map<String, Value>>>,
}

/// A protocol to try.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct DeviceProtocolTestRequest {
    /// How it is given.
    kind: ProtocolKind,
    /// What the kind demands, of 64 KiB at most. A member that is not known is an error.
    definition: Value,
    /// Advertisements with what they say, in the form of docs/decoders.md, of 64 KiB at most. A
    /// test whose `expect` is empty tells what is read.
    #[schemars(length(max = MAX_ITEMS))]
    tests: Option<Vec<Map<String, Value>>>,
}

/// What a protocol reads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeviceProtocolTestResult {
    /// One for each test, in their order.
    tests: Vec<ProtocolTestOutcome>,
}

/// What a protocol reads of the frame of one test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProtocolTestOutcome {
    /// Whether all is as the test expects.
    passed: bool,
    /// The values by quantity; one of several of a quantity as `quantity[index]`.
    values: BTreeMap<String, Value>,
    /// The quantities that are not as the test expects.
    differing: Vec<String>,
    /// Why nothing was read.
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

/// Refused with 409 while versions of the model name it.
async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceProtocolPath { device_protocol_id }): Path<DeviceProtocolPath>,
) -> Result<Empty> {
    protocols::delete(&core, &auth.scope, device_protocol_id).await?;
    Ok(Empty)
}
