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

use hub_protocol::command::{DeviceCommand, DeviceCommandStep};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::audit::Audit;
use crate::authz::{Scope, UserScope};
use crate::core::Core;
use crate::db::{Conn, Db, Slice, Tx};
use crate::domain::device_instances::{self, ActivationStatus, Shown};
use crate::domain::device_pages::{self, Carried, EndpointMethod};
use crate::domain::end_users::EndUserNow;
use crate::domain::jobs::{self, Jobs};
use crate::domain::supplier_links::{self, SupplierLinks};
use crate::domain::{external_endpoints, hubs};
use crate::error::{Error, Result};
use call::{Call, Calls, Place, Told};
pub use store::forget_author;
use store::{CommandRow, Seen};
use view::DeviceCommandResponse;

/// How long a command may take, from when it is given.
const DEADLINE_SECS: i64 = 120;
/// Commands that one device, one user and one tenant give or get within a minute.
const MAX_OF_DEVICE: i64 = 20;
const MAX_OF_USER: i64 = 60;
const MAX_OF_TENANT: i64 = 600;
const WINDOW_SECS: i64 = 60;
/// How often a request that waits for the end of a command looks, at first and later.
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

/// Who gives a command, and to which device; they have access to it.
struct Giver {
    scope: Scope,
    device_instance_id: i64,
    /// The person, in their app.
    person: Option<(UserScope, EndUserNow)>,
}

impl Giver {
    fn author_uuid(&self) -> Uuid {
        match &self.person {
            Some((scope, _)) => scope.user_uuid().0,
            None => self.scope.tenant_uuid().0,
        }
    }
}

/// What is to be done.
struct Order {
    action_id: String,
    parameters: Map<String, Value>,
    idempotency_key: Option<String>,
}

/// What a command comes to, ready to begin.
enum Ready {
    Hub(HubUuid, DeviceCommand),
    Call(Place, Box<Call>),
}

fn not_found() -> Error {
    Error::not_found("command")
}

/// Gives a command, and returns it as it is then. One with a key that was given before is returned
/// as it has become.
async fn give(commands: &DeviceCommands, giver: &Giver, order: Order) -> Result<CommandRow> {
    let core = &commands.core;
    let mut conn = core.db.read().await?;
    if let Some(given) = given_before(&mut conn, giver, &order).await? {
        return Ok(given);
    }
    let device = device_instances::get(&mut conn, &giver.scope, giver.device_instance_id).await?;
    require_in_use(device.instance.activation_status)?;
    let model = device.instance.device_uuid;
    let action = device_pages::prepare(&mut conn, &giver.scope, &order.action_id, model).await?;
    drop(conn);
    let parameters = order.parameters.clone();
    let carried = tokio::task::spawn_blocking(move || action.carried(&parameters))
        .await
        .map_err(Error::internal)??;
    let command_uuid = Uuid::now_v7();
    let ready = match carried {
        Carried::Gatt(steps) => for_hub(commands, giver, &device, steps).await?,
        Carried::Http {
            external_endpoint_id,
            path,
            method,
        } => {
            let target = (external_endpoint_id, path.as_str(), method);
            for_endpoint(commands, giver, &device, &order, command_uuid, target).await?
        }
    };
    begin(commands, giver, &order, command_uuid, ready).await
}

async fn given_before(
    conn: &mut crate::db::Conn,
    giver: &Giver,
    order: &Order,
) -> Result<Option<CommandRow>> {
    let Some(key) = &order.idempotency_key else {
        return Ok(None);
    };
    let author_uuid = giver.author_uuid();
    let given = store::by_key(
        conn,
        &giver.scope,
        giver.device_instance_id,
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
    giver: &Giver,
    device: &Shown,
    steps: Vec<DeviceCommandStep>,
) -> Result<Ready> {
    let address = device.instance.address.clone().ok_or_else(|| {
        let message = "this device has no address of its own, so no hub can connect to it";
        Error::conflict("DEVICE_HAS_NO_ADDRESS", message)
    })?;
    let mut conn = commands.core.db.read().await?;
    let person = giver.person.as_ref().map(|(_, person)| person);
    let now = commands.core.clock.now();
    let hub_uuid = nearest::hub(&mut conn, &giver.scope, device, person, now).await?;
    Ok(Ready::Hub(
        hub_uuid,
        DeviceCommand {
            device_instance_id: giver.device_instance_id,
            address,
            steps,
        },
    ))
}

async fn for_endpoint(
    commands: &DeviceCommands,
    giver: &Giver,
    device: &Shown,
    order: &Order,
    command_uuid: Uuid,
    (endpoint, path, method): (Uuid, &str, EndpointMethod),
) -> Result<Ready> {
    let core = &commands.core;
    let supplier = giver.scope.tenant_uuid();
    let place = commands.calls.place(supplier)?;
    let endpoint =
        external_endpoints::callable(core, &mut core.db.read().await?, &giver.scope, endpoint)
            .await?;
    let bearer = match &giver.person {
        None => None,
        Some((scope, _)) => {
            Some(supplier_links::token_for(&commands.links, scope, supplier).await?)
        }
    };
    let told = Told {
        command_uuid,
        device_instance_id: giver.device_instance_id,
        serial_number: device.instance.serial_number.as_deref(),
        address: device.instance.address.as_deref(),
        action_id: &order.action_id,
        parameters: &order.parameters,
    };
    let call = call::call(core, &endpoint, path, method, bearer.as_ref(), &told)?;
    Ok(Ready::Call(place, Box::new(call)))
}

/// Stores the command, and with it whatever carries it out.
async fn begin(
    commands: &DeviceCommands,
    giver: &Giver,
    order: &Order,
    command_uuid: Uuid,
    ready: Ready,
) -> Result<CommandRow> {
    let core = &commands.core;
    let mut tx = core.db.begin().await?;
    // The hub before the device, as by all who lock both.
    let hub = match &ready {
        Ready::Hub(hub_uuid, _) => Some(hubs::lock(&mut tx, &giver.scope, *hub_uuid).await?),
        Ready::Call(..) => None,
    };
    // Whoever gives the device a command at the same moment waits here.
    device_instances::lock(&mut tx, &giver.scope, giver.device_instance_id).await?;
    if let Some(given) = given_before(&mut tx, giver, order).await? {
        return Ok(given);
    }
    let now = core.clock.now();
    require_pace(&mut tx, giver, now).await?;
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
        device_instance_id: giver.device_instance_id,
        author_uuid: giver.author_uuid(),
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
    store::insert(&mut tx, &giver.scope, &row).await?;
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
    let audit = Audit::new(&giver.scope, "device_command.create", command_uuid, now);
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

/// 429 while the device gets, or its author gives, too many commands.
async fn require_pace(tx: &mut Tx, giver: &Giver, now: Timestamp) -> Result<()> {
    let since = now.plus_secs(-WINDOW_SECS);
    let retry_after_secs = WINDOW_SECS.unsigned_abs();
    if store::count_of_device(tx, giver.device_instance_id, since, MAX_OF_DEVICE).await?
        >= MAX_OF_DEVICE
    {
        let message = format!("a device accepts {MAX_OF_DEVICE} commands a minute; wait a moment");
        return Err(Error::too_many_requests(message, retry_after_secs));
    }
    let most = if giver.person.is_some() {
        MAX_OF_USER
    } else {
        MAX_OF_TENANT
    };
    if store::count_of_author(tx, giver.author_uuid(), since, most).await? >= most {
        let message = format!("you can give {most} commands a minute; wait a moment");
        return Err(Error::too_many_requests(message, retry_after_secs));
    }
    Ok(())
}

/// Makes the call of a command and stores what came of it. What cannot be stored is unknown.
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
        tracing::warn!(%error, %command_uuid, "what became of a command could not be stored; it counts as unknown");
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

/// What somebody has given, oldest first.
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
