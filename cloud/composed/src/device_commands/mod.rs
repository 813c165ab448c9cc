//! Device commands: what the people of a device and its supplier have it do. A command goes to an
//! external endpoint, or becomes a job of the hub nearest to the device. It is carried out at most
//! once: whoever was stopped in the middle says so, and nobody tries again. Parameters are passed
//! on and not kept.

mod call;
pub mod http;
mod nearest;
mod store;
mod view;

use std::time::Duration;

use hub_base::db::{Conn, Db, Slice, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_devices::device_instances::{self, ActivationStatus, Shown};
use hub_devices::device_pages::{self, Carried, EndpointMethod};
use hub_devices::external_endpoints;
use hub_fleet::hubs;
use hub_fleet::jobs::{self, Jobs};
use hub_identity::authz::{Scope, UserScope};
use hub_people::supplier_links::{self, SupplierLinks};
use hub_protocol::command::{DeviceCommand, DeviceCommandStep};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::end_users::EndUserNow;
use call::{Call, Calls, Parameters, Place};
pub use store::forget_author;
use store::{CommandRow, Seen};
pub use view::{CommandStatus, DeviceCommandResponse};

/// The lifetime of a command, from its creation.
const DEADLINE_SECS: i64 = 120;
/// The most commands of one device, one user and one tenant within a minute.
const MAX_OF_DEVICE: i64 = 20;
const MAX_OF_USER: i64 = 60;
const MAX_OF_TENANT: i64 = 600;
const WINDOW_SECS: i64 = 60;
/// The pauses of a request that waits for the end of a command, at first and later.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_millis(500);

/// State of the handlers. Cheap to clone.
#[derive(Clone)]
pub struct DeviceCommands {
    pub core: Core,
    pub jobs: Jobs,
    pub links: SupplierLinks,
    calls: Calls,
}

impl DeviceCommands {
    pub fn new(core: Core, jobs: Jobs, links: SupplierLinks) -> Self {
        Self {
            core,
            jobs,
            links,
            calls: Calls::default(),
        }
    }
}

/// The requester of a command, and the device; the requester has access to it.
struct Requester {
    scope: Scope,
    device_instance_id: i64,
    /// The person, in their app.
    person: Option<(UserScope, EndUserNow)>,
}

impl Requester {
    fn author_uuid(&self) -> Uuid {
        match &self.person {
            Some((scope, _)) => scope.user_uuid().0,
            None => self.scope.tenant_uuid().0,
        }
    }
}

/// The requested command.
struct Order {
    action_id: String,
    parameters: Map<String, Value>,
    idempotency_key: Option<String>,
}

/// A checked command, ready to begin.
enum Ready {
    Hub(HubUuid, DeviceCommand),
    Call(Place, Box<Call>),
}

fn not_found() -> Error {
    Error::not_found("command")
}

/// Creates a command, and returns its present state. A repeated key returns the state of the
/// earlier command.
async fn submit(
    commands: &DeviceCommands,
    requester: &Requester,
    order: Order,
) -> Result<CommandRow> {
    let core = &commands.core;
    let mut conn = core.db.read().await?;
    if let Some(given) = repeated(&mut conn, requester, &order).await? {
        return Ok(given);
    }
    let device =
        device_instances::get(&mut conn, &requester.scope, requester.device_instance_id).await?;
    require_in_use(device.instance.activation_status)?;
    let model = device.instance.device_uuid;
    let action =
        device_pages::prepare(&mut conn, &requester.scope, &order.action_id, model).await?;
    drop(conn);
    let parameters = order.parameters.clone();
    let carried = tokio::task::spawn_blocking(move || action.carried(&parameters))
        .await
        .map_err(Error::internal)??;
    let command_uuid = Uuid::now_v7();
    let ready = match carried {
        Carried::Gatt(steps) => for_hub(commands, requester, &device, steps).await?,
        Carried::Http {
            external_endpoint_id,
            path,
            method,
        } => {
            let target = (external_endpoint_id, path.as_str(), method);
            for_endpoint(commands, requester, &device, &order, command_uuid, target).await?
        }
    };
    begin(commands, requester, &order, command_uuid, ready).await
}

async fn repeated(
    conn: &mut hub_base::db::Conn,
    requester: &Requester,
    order: &Order,
) -> Result<Option<CommandRow>> {
    let Some(key) = &order.idempotency_key else {
        return Ok(None);
    };
    let author_uuid = requester.author_uuid();
    let given = store::by_key(
        conn,
        &requester.scope,
        requester.device_instance_id,
        author_uuid,
        key,
    )
    .await?;
    if given
        .as_ref()
        .is_some_and(|given| given.action_id != order.action_id)
    {
        let message = "another action was carried out with this `idempotencyKey`; choose a new key for each command";
        return Err(Error::conflict("IDEMPOTENCY_KEY_REUSED", message));
    }
    Ok(given)
}

fn require_in_use(status: ActivationStatus) -> Result<()> {
    match status {
        ActivationStatus::Registered | ActivationStatus::Active => Ok(()),
        ActivationStatus::Suspended => Err(Error::conflict(
            "DEVICE_SUSPENDED",
            "this device is suspended; its supplier has to resume it first",
        )),
        ActivationStatus::Retired => Err(Error::conflict(
            "DEVICE_RETIRED",
            "this device is retired, which is final",
        )),
    }
}

async fn for_hub(
    commands: &DeviceCommands,
    requester: &Requester,
    device: &Shown,
    steps: Vec<DeviceCommandStep>,
) -> Result<Ready> {
    let address = device.instance.address.clone().ok_or_else(|| {
        let message = "this device has no address of its own, so no hub can connect to it";
        Error::conflict("DEVICE_HAS_NO_ADDRESS", message)
    })?;
    let person = requester.person.as_ref().map(|(_, person)| person);
    let now = commands.core.clock.now();
    let hub_uuid = nearest::hub(&commands.core, &requester.scope, device, person, now).await?;
    Ok(Ready::Hub(
        hub_uuid,
        DeviceCommand {
            device_instance_id: requester.device_instance_id,
            address,
            steps,
        },
    ))
}

async fn for_endpoint(
    commands: &DeviceCommands,
    requester: &Requester,
    device: &Shown,
    order: &Order,
    command_uuid: Uuid,
    (endpoint, path, method): (Uuid, &str, EndpointMethod),
) -> Result<Ready> {
    let core = &commands.core;
    let supplier = requester.scope.tenant_uuid();
    let place = commands.calls.place(supplier)?;
    let endpoint =
        external_endpoints::callable(core, &mut core.db.read().await?, &requester.scope, endpoint)
            .await?;
    let bearer = match &requester.person {
        None => None,
        Some((scope, _)) => {
            Some(supplier_links::token_for(&commands.links, scope, supplier).await?)
        }
    };
    let sent = Parameters {
        command_uuid,
        device_instance_id: requester.device_instance_id,
        serial_number: device.instance.serial_number.as_deref(),
        address: device.instance.address.as_deref(),
        action_id: &order.action_id,
        parameters: &order.parameters,
    };
    let call = call::call(core, &endpoint, path, method, bearer.as_ref(), &sent)?;
    Ok(Ready::Call(place, Box::new(call)))
}

/// Stores the command, together with the job or the call that carries it out.
async fn begin(
    commands: &DeviceCommands,
    requester: &Requester,
    order: &Order,
    command_uuid: Uuid,
    ready: Ready,
) -> Result<CommandRow> {
    let core = &commands.core;
    let mut tx = core.db.begin().await?;
    // The hub before the device, as by all who lock both.
    let hub = match &ready {
        Ready::Hub(hub_uuid, _) => Some(hubs::lock(&mut tx, &requester.scope, *hub_uuid).await?),
        Ready::Call(..) => None,
    };
    // Concurrent commands for the device wait here.
    device_instances::lock(&mut tx, &requester.scope, requester.device_instance_id).await?;
    if let Some(given) = repeated(&mut tx, requester, order).await? {
        return Ok(given);
    }
    let now = core.clock.now();
    require_pace(&mut tx, requester, now).await?;
    let deadline_at = now.plus_secs(DEADLINE_SECS);
    let (hub_job_uuid, call) = match (ready, &hub) {
        (Ready::Hub(_, command), Some(hub)) => {
            let added = jobs::add_command(
                &mut tx,
                &commands.jobs.changes,
                hub,
                &command,
                deadline_at,
                now,
            )
            .await??;
            (Some(added), None)
        }
        (Ready::Call(place, call), _) => (None, Some((place, call))),
        (Ready::Hub(..), None) => {
            return Err(Error::internal("a command for a hub that was not locked"));
        }
    };
    let row = CommandRow {
        command_uuid,
        device_instance_id: requester.device_instance_id,
        author_uuid: requester.author_uuid(),
        action_id: order.action_id.clone(),
        idempotency_key: order.idempotency_key.clone(),
        hub_uuid: hub.map(|hub| hub.hub_uuid),
        hub_job_uuid,
        deadline_at,
        result: None,
        error_code: None,
        error_message: None,
        created_at: now,
        finished_at: None,
    };
    store::insert(&mut tx, &requester.scope, &row).await?;
    if let Some((place, call)) = call {
        let core = core.clone();
        tx.after_commit(async move {
            drop(
                core.workers
                    .clone()
                    .spawn(carry_out(core, command_uuid, place, *call)),
            )
        });
    }
    let audit = Audit::new(&requester.scope, "device_command.create", command_uuid, now);
    tx.commit(audit.changed(None, Some(state(&row)))).await?;
    Ok(row)
}

/// The representation in the audit log.
fn state(row: &CommandRow) -> Value {
    json!({
        "deviceInstanceId": row.device_instance_id,
        "actionId": row.action_id,
        "hubUuid": row.hub_uuid,
        "hubJobUuid": row.hub_job_uuid,
    })
}

/// 429 while the device, or the requester, has too many commands.
async fn require_pace(tx: &mut Tx, requester: &Requester, now: Timestamp) -> Result<()> {
    let since = now.plus_secs(-WINDOW_SECS);
    let retry_after_secs = WINDOW_SECS.unsigned_abs();
    if store::count_of_device(tx, requester.device_instance_id, since, MAX_OF_DEVICE).await?
        >= MAX_OF_DEVICE
    {
        let message = format!("a device accepts {MAX_OF_DEVICE} commands a minute; wait a moment");
        return Err(Error::too_many_requests(message, retry_after_secs));
    }
    let most = if requester.person.is_some() {
        MAX_OF_USER
    } else {
        MAX_OF_TENANT
    };
    if store::count_of_author(tx, requester.author_uuid(), since, most).await? >= most {
        let message = format!("you can give {most} commands a minute; wait a moment");
        return Err(Error::too_many_requests(message, retry_after_secs));
    }
    Ok(())
}

/// Makes the call of a command and stores its outcome. An outcome that cannot be stored is unknown.
async fn carry_out(core: Core, command_uuid: Uuid, place: Place, call: Call) {
    let end = call::make(&core, call).await;
    drop(place);
    let stored = async {
        let mut tx = core.db.begin().await?;
        store::finish(&mut tx, command_uuid, end, core.clock.now()).await?;
        tx.commit_unaudited("the end of a command whose beginning was audited")
            .await
    };
    if let Err(error) = stored.await {
        tracing::warn!(%error, %command_uuid, "the result of a command could not be stored; its status is unknown");
    }
}

/// The command as it is now, or once it has ended, if that is within `wait`.
async fn settled(
    commands: &DeviceCommands,
    scope: &Scope,
    mut row: CommandRow,
    wait: Duration,
) -> Result<DeviceCommandResponse> {
    let core = &commands.core;
    let ends_at = Instant::now() + wait;
    let mut look = FIRST_LOOK;
    let seen = Seen {
        author_uuid: None,
        since: row.created_at,
    };
    loop {
        let mut conn = core.db.read().await?;
        let shown = view::one(&mut conn, scope, row, core.clock.now()).await?;
        drop(conn);
        if shown.is_settled() || Instant::now() + look > ends_at || core.shutdown.is_cancelled() {
            return Ok(shown);
        }
        tokio::time::sleep(look).await;
        look = (look * 2).min(LAST_LOOK);
        let (id, uuid) = (shown.device_instance_id(), shown.command_uuid());
        let again = store::get(&mut core.db.read().await?, scope, id, seen, uuid).await?;
        row = again.ok_or_else(not_found)?;
    }
}

/// Deletes commands that were given before, up to `limit`, and returns how many.
pub async fn forget(db: &Db, before: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::forget(&mut tx, before, limit).await?;
    tx.commit_unaudited("commands whose retention has passed")
        .await?;
    Ok(deleted)
}

/// The commands that a requester gave in a tenant since a time, oldest first.
pub async fn given(
    conn: &mut Conn,
    scope: &Scope,
    (author_uuid, since): (Uuid, Timestamp),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<DeviceCommandResponse>> {
    let rows = store::given(conn, scope, (author_uuid, since), limit).await?;
    view::all(conn, scope, rows, now).await
}

/// The commands of a requester, oldest first.
pub async fn exported(
    conn: &mut Conn,
    author_uuid: Uuid,
    slice: Slice,
) -> Result<Vec<view::ExportedCommand>> {
    Ok(store::of_author(conn, author_uuid, slice)
        .await?
        .into_iter()
        .map(view::ExportedCommand::from)
        .collect())
}
