//! What a pipeline is: its source, steps, destination and delivery, as they are stored and
//! compiled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_destinations::{self as destinations, Signing};
use hub_devices::ble::{self, BleEventResponse, StoredEvent};
use hub_protocol::{TenantUuid, Timestamp};
use hub_steps::{Input, Program};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use super::destination::Stored;
use super::secrets;
use super::store::{self, RevisionRow};
pub use hub_devices::delivery_status::Source;

/// How messages are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PipelineDelivery")]
pub struct Delivery {
    /// Events of one message at most. Of 1, a message is the event itself; of more, a list.
    #[schemars(range(min = 1, max = 1000))]
    pub batch_events: usize,
    /// How long an event waits for others.
    #[schemars(range(min = 0))]
    pub batch_millis: u64,
    /// Whether a message waits for the one before it.
    pub ordered: bool,
    /// Messages under way at once.
    #[schemars(range(min = 1, max = 32))]
    pub concurrency: usize,
    /// How long a receiver may take to answer.
    #[serde(
        rename = "timeoutSeconds",
        serialize_with = "as_secs",
        deserialize_with = "from_secs"
    )]
    #[schemars(with = "u64", range(min = 1, max = 30))]
    pub timeout: Duration,
    /// Statuses that count as failures of the receiver, so that the message is sent again; absent
    /// where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<u16>,
}

fn as_secs<S: Serializer>(timeout: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(timeout.as_secs())
}

fn from_secs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_secs)
}

/// A definition as it is stored, without secrets.
#[derive(Clone, Debug, Deserialize)]
pub struct StoredDefinition {
    pub source: Source,
    pub steps: Value,
    /// As it was given, but for what is secret in `auth`.
    pub destination: Value,
    pub delivery: Delivery,
}

impl StoredDefinition {
    pub fn of(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::internal(format!("stored pipeline: {error}")))
    }
}

/// A revision of a pipeline, ready to run.
pub struct Compiled {
    pub pipeline_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub revision: i64,
    pub source: Source,
    pub program: Program,
    pub destination: destinations::Definition,
    pub auth: Option<SecretString>,
    /// As of when it was loaded.
    pub signing: Option<Signing>,
    /// When the first of the replaced secrets signs no longer.
    pub secret_ends_at: Option<Timestamp>,
    pub delivery: Delivery,
}

/// Revisions that one statement reads.
const CHUNK: usize = 100;

/// Loads and compiles revisions, each a pipeline and the number of the revision. A
/// revision that does not compile any more comes with the reason; one that does not exist is
/// absent.
pub async fn load(
    core: &Core,
    wanted: &[(Uuid, i64)],
) -> Result<HashMap<(Uuid, i64), Result<Arc<Compiled>, String>>> {
    let mut rows = Vec::with_capacity(wanted.len());
    {
        let mut conn = core.db.read().await?;
        for some in wanted.chunks(CHUNK) {
            rows.extend(store::revisions::of_all(&mut conn, some).await?);
        }
    }
    let now = core.clock.now();
    let mut loaded = HashMap::with_capacity(rows.len());
    for row in rows {
        let key = (row.pipeline_uuid, row.revision);
        loaded.insert(key, compile(core, row, now).map(Arc::new));
    }
    Ok(loaded)
}

fn compile(core: &Core, row: RevisionRow, now: Timestamp) -> Result<Compiled, String> {
    let definition = StoredDefinition::of(&row.definition).map_err(|error| error.to_string())?;
    let problem =
        |problem: hub_steps::Problem| format!("/steps{}: {}", problem.pointer, problem.message);
    let program = Program::compile(&definition.steps).map_err(problem)?;
    let stored = Stored::open(
        core,
        row.revision_uuid,
        definition.destination,
        row.sealed_auth.as_deref(),
    )
    .map_err(|error| error.to_string())?;
    let destination = stored.compile(core)?;
    let (signing, secret_ends_at) =
        secrets::open(core, &row, now).map_err(|error| error.to_string())?;
    Ok(Compiled {
        pipeline_uuid: row.pipeline_uuid,
        tenant_uuid: row.tenant_uuid,
        revision: row.revision,
        source: definition.source,
        program,
        destination,
        auth: stored.auth,
        signing,
        secret_ends_at,
        delivery: definition.delivery,
    })
}

/// The signing secrets of a pipeline of the tenant.
pub async fn signing_of(core: &Core, pipeline: (Uuid, i64)) -> Result<Option<Signing>> {
    let rows = store::revisions::of_all(&mut core.db.read().await?, &[pipeline]).await?;
    let now = core.clock.now();
    match rows.first() {
        Some(row) => secrets::open(core, row, now).map(|(signing, _)| signing),
        None => Ok(None),
    }
}

/// An event of the log as steps take it.
pub fn input_of(event: StoredEvent) -> Result<Input> {
    let (hub_uuid, device_instance_id) = (event.hub_uuid, event.device_instance_id);
    let (ble_event_id, observation_id) = (event.ble_event_id, event.observation_id);
    let response: BleEventResponse = ble::response(event)?;
    let (received_at, observed_at) = (response.received_at, response.observed_at);
    let address = response.advertisement.address.clone();
    let event = match serde_json::to_value(&response).map_err(Error::internal)? {
        Value::Object(mut event) => {
            // It is on its way, and what a receiver gets does not depend on when it gets it.
            event.insert("deliveryStatus".to_owned(), Value::from("PENDING"));
            event
        }
        _ => return Err(Error::internal("an event is no object")),
    };
    Ok(Input {
        event,
        received_at,
        observed_at,
        hub_uuid,
        device_instance_id,
        address,
        observation_id,
        ble_event_id,
    })
}
