//! Sends the data of PUSH mandates: what is new of the devices since the last message, signed, and
//! sent again until the recipient accepts it. A message has the values of one or more devices, in
//! the order of their receipt; what a failure delays is sent later, as far as retention keeps it.

use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_base::sealing::{self, stored::MANDATE_SIGNING_SECRET};
use hub_core::Core;
use hub_core::tasks::Done;
use hub_devices::ble;
use hub_devices::device_history::SensorItemResponse;
use hub_ingest::{self as ingest, Kind};
use hub_people::supplier_oauth::{Message, post};
use hub_protocol::Timestamp;
use secrecy::SecretString;
use serde::Serialize;
use uuid::Uuid;

use super::access::{Permitted, permitted};
use super::store::{self, MandateRow, PushRow};

/// The lane of this work.
pub const LANE: &str = "mandate_pushes";
/// The type of the messages.
const MESSAGE: &str = "mandate.data";
/// How soon after a message the next one may follow, and how soon after nothing was new.
const EVERY_SECS: i64 = 5;
const IDLE_SECS: i64 = 15;
/// The delays after failures double up to this one.
const MAX_DELAY_SECS: i64 = 3600;
const MAX_DOUBLINGS: i64 = 10;
/// Pushes that one run handles, and how many of them at once: a recipient may be slow to answer.
const SOME: i64 = 32;
const AT_ONCE: usize = 8;
/// Receptions of a message, of all devices and of one.
const READ: usize = 500;
const READ_OF_DEVICE: usize = 100;

/// The body of a message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    mandate_uuid: Uuid,
    sent_at: Timestamp,
    values: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Value {
    device_instance_id: i64,
    #[serde(flatten)]
    item: SensorItemResponse,
}

/// Sends what is due.
pub async fn perform(core: &Core) -> Result<Done> {
    let due = store::due_pushes(&mut core.db.read().await?, core.clock.now(), SOME).await?;
    let is_full = i64::try_from(due.len()).unwrap_or(SOME) >= SOME;
    for some in due.chunks(AT_ONCE) {
        let pushes = some.iter().map(|push| advance(core, push.clone()));
        for result in futures_util::future::join_all(pushes).await {
            result?;
        }
    }
    let pause_secs = if is_full { 0 } else { EVERY_SECS };
    Ok(Done::RunAt(core.clock.now().plus_secs(pause_secs)))
}

/// Sends the next message of a mandate, if there is one.
async fn advance(core: &Core, mut push: PushRow) -> Result<()> {
    let now = core.clock.now();
    let Some(row) = store::get(&mut core.db.read().await?, push.mandate_uuid).await? else {
        return Ok(());
    };
    let delay_secs = match send_next(core, &row, &push).await {
        Ok(Sent { up_to, is_message }) => {
            push.cursor_id = push.cursor_id.max(up_to);
            push.failures = 0;
            push.last_error = None;
            if is_message {
                push.last_sent_at = Some(now);
                EVERY_SECS
            } else {
                IDLE_SECS
            }
        }
        // The upkeep notes the end, and the row goes with it.
        Err(Failure::Ended) => MAX_DELAY_SECS,
        Err(Failure::Passing(error)) => return Err(error),
        Err(Failure::Refused {
            message,
            retry_after_secs,
        }) => {
            let doubled = EVERY_SECS << push.failures.clamp(0, MAX_DOUBLINGS);
            push.failures += 1;
            push.last_error = Some(message);
            retry_after_secs
                .unwrap_or(doubled)
                .clamp(EVERY_SECS, MAX_DELAY_SECS)
        }
    };
    let mut tx = core.db.begin().await?;
    store::set_push(&mut tx, &push, now.plus_secs(delay_secs)).await?;
    tx.commit_unaudited("the grant of the mandate has its entry")
        .await
}

/// Everything up to an event has been handled.
struct Sent {
    up_to: i64,
    is_message: bool,
}

enum Failure {
    /// The mandate is in force no longer.
    Ended,
    /// A fault of the service: the task is tried again.
    Passing(Error),
    Refused {
        message: String,
        retry_after_secs: Option<i64>,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.status().is_server_error() {
            true => Self::Passing(error),
            false => Self::Ended,
        }
    }
}

async fn send_next(core: &Core, row: &MandateRow, push: &PushRow) -> Result<Sent, Failure> {
    let mut conn = core.db.read().await?;
    let up_to = ingest::last_id(&mut conn, (row.tenant_uuid, Kind::BleEvents)).await?;
    let allowed = permitted(core, &mut conn, row, None).await?;
    let sealed = store::signing_secret(&mut conn, row.mandate_uuid).await?;
    drop(conn);
    let sealed = sealed.ok_or(Failure::Ended)?;
    let (items, end) = read(core, &allowed, push.cursor_id, up_to).await?;
    if items.is_empty() {
        return Ok(Sent {
            up_to: end,
            is_message: false,
        });
    }
    // What may be sent is asked again: reading may have taken a while.
    let ids: Vec<i64> = items.iter().map(|item| item.device_instance_id).collect();
    let row = store::get(&mut core.db.read().await?, row.mandate_uuid)
        .await?
        .ok_or(Failure::Ended)?;
    let still = permitted(core, &mut core.db.read().await?, &row, Some(&ids)).await?;
    let is_still = |item: &Value| {
        let mut devices = still.devices.iter();
        devices.any(|own| own.device_instance_id == item.device_instance_id)
    };
    let body = Body {
        mandate_uuid: row.mandate_uuid,
        sent_at: core.clock.now(),
        values: items.into_iter().filter(is_still).collect(),
    };
    let values = serde_json::to_string(&body.values).map_err(Error::internal)?;
    let body = serde_json::to_string(&body).map_err(Error::internal)?;
    let message = Message {
        event_type: MESSAGE,
        id: message_id(row.mandate_uuid, &values),
        body,
    };
    let id = row.mandate_uuid.to_string();
    let secret = core.sealer.open(MANDATE_SIGNING_SECRET, &id, &sealed);
    let secret = secret.map_err(Error::internal)?;
    let secret = String::from_utf8(secret).map_err(Error::internal)?;
    let url = row.push_url.as_deref().unwrap_or_default();
    match post(core, url, Some(&SecretString::from(secret)), &message).await {
        Ok(()) => Ok(Sent {
            up_to: end,
            is_message: true,
        }),
        Err(refused) => Err(Failure::Refused {
            message: refused.message,
            retry_after_secs: refused.retry_after_secs,
        }),
    }
}

/// The same for the same values, so that a recipient recognises a repeated message.
fn message_id(mandate_uuid: Uuid, values: &str) -> Uuid {
    let digest = sealing::hash(&format!("{mandate_uuid} {values}"));
    let mut bytes = [0; 16];
    for (byte, drawn) in bytes.iter_mut().zip(digest) {
        *byte = drawn;
    }
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// Values after an event, and the last event up to which they are all that there is.
async fn read(
    core: &Core,
    allowed: &Permitted,
    after: i64,
    up_to: i64,
) -> Result<(Vec<Value>, i64)> {
    let of_device = (READ / allowed.devices.len().max(1)).clamp(1, READ_OF_DEVICE);
    let of_device = i64::try_from(of_device).unwrap_or(1);
    let (mut receptions, mut end) = (Vec::new(), up_to);
    for own in &allowed.devices {
        let first = after.saturating_add(1).max(own.since.as_micros());
        let batch = ble::receptions_of(
            core,
            allowed.tenant_uuid,
            own.device_instance_id,
            (first, up_to),
            Direction::Ascending,
            of_device,
        )
        .await?;
        end = batch.last_id.map_or(end, |last_id| end.min(last_id));
        receptions.extend(batch.receptions.into_iter().map(|one| (own.since, one)));
    }
    // Devices with more to read have nothing after their last reception here.
    receptions.retain(|(_, reception)| reception.ble_event_id <= end);
    receptions.sort_unstable_by_key(|(_, reception)| reception.ble_event_id);
    let mut values = Vec::new();
    for (since, mut reception) in receptions {
        reception
            .values
            .retain(|key, _| allowed.quantities.allow(key));
        if reception.observed_at >= since && !reception.values.is_empty() {
            values.push(Value {
                device_instance_id: reception.device_instance_id,
                item: SensorItemResponse::new(reception),
            });
        }
    }
    Ok((values, end.max(after)))
}
