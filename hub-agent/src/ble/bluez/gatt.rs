//! One command on a device: finds it, connects through `bluer`, takes the steps, and disconnects
//! whatever happens. Scanning goes on meanwhile. Each command has a session and a thread of its
//! own, for the reason that `control` states. Nothing is tried twice once the first step may be
//! taken.

use std::collections::BTreeMap;
use std::time::Duration;

use bluer::gatt::CharacteristicReader;
use bluer::gatt::WriteOp;
use bluer::gatt::remote::{Characteristic, CharacteristicWriteRequest};
use bluer::{Adapter, AdapterEvent, Address, Device, ErrorKind, Session};
use futures_util::StreamExt;
use hub_protocol::command::{
    DeviceCommandOutcome, DeviceCommandStep, GattOperation, MAX_READ_BYTES,
};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a device is looked for that bluetoothd does not know.
const FIND_WITHIN: Duration = Duration::from_secs(20);
/// How long one attempt to connect may take, and how many there are.
const CONNECT_WITHIN: Duration = Duration::from_secs(25);
const CONNECT_ATTEMPTS: u32 = 3;
const CONNECT_PAUSE: Duration = Duration::from_secs(1);
const STEP_WITHIN: Duration = Duration::from_secs(10);
const NOTIFY_WITHIN: Duration = Duration::from_secs(30);
const DISCONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The stable reasons of commands that were not carried out, as the service stores them.
pub mod reason {
    pub const BLUETOOTH_UNAVAILABLE: &str = "BLUETOOTH_UNAVAILABLE";
    pub const CONNECTION_FAILED: &str = "CONNECTION_FAILED";
    pub const DEVICE_NOT_FOUND: &str = "DEVICE_NOT_FOUND";
    pub const NOT_BEGUN: &str = "NOT_BEGUN";
    pub const NO_SUCH_CHARACTERISTIC: &str = "NO_SUCH_CHARACTERISTIC";
    pub const PAIRING_REQUIRED: &str = "PAIRING_REQUIRED";
    pub const STEP_FAILED: &str = "STEP_FAILED";
    pub const STEP_TIMED_OUT: &str = "STEP_TIMED_OUT";
    pub const STOPPED: &str = "STOPPED";
    pub const TIMED_OUT: &str = "TIMED_OUT";
}

/// A command with the adapter and the time that it may use.
#[derive(Debug)]
pub struct Task {
    /// The kernel's name of the adapter, such as `hci0`.
    pub adapter_name: String,
    pub address: String,
    pub steps: Vec<DeviceCommandStep>,
    /// The time limit of the whole command.
    pub within: Duration,
}

/// Why a command was not carried out, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub reason: &'static str,
    pub message: String,
}

impl Stopped {
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// How a command ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// The outcomes of the steps that were taken, in order.
    pub outcomes: Vec<DeviceCommandOutcome>,
    pub stopped: Option<Stopped>,
}

/// Asks, before the first step, whether it may be taken.
#[derive(Debug)]
pub struct Gate {
    pub ask: oneshot::Sender<()>,
    pub may: oneshot::Receiver<bool>,
}

/// Carries out a command. If the caller leaves, it stops and disconnects.
pub async fn perform(task: Task, gate: Gate) -> Ended {
    let cancel = CancellationToken::new();
    let _stops = cancel.clone().drop_guard();
    let (sender, ended) = oneshot::channel();
    let work = move || drop(sender.send(on_thread(task, gate, &cancel)));
    let spawned = std::thread::Builder::new()
        .name("device-command".to_owned())
        .spawn(work);
    let failed = |message: String| Ended {
        stopped: Some(Stopped::new(reason::BLUETOOTH_UNAVAILABLE, message)),
        ..Ended::default()
    };
    match spawned {
        Ok(_) => ended
            .await
            .unwrap_or_else(|_| failed("the thread of the command ended early".to_owned())),
        Err(error) => failed(format!("no thread can be started: {error}")),
    }
}

/// Ends a connection that a command left behind when the agent was killed.
pub async fn disconnect(adapter_name: String, address: String) {
    let (sender, ended) = oneshot::channel();
    let work = move || {
        let Ok(runtime) = runtime() else { return };
        runtime.block_on(async {
            let ending = async {
                let address: Address = address.parse().ok()?;
                let device = Session::new()
                    .await
                    .ok()?
                    .adapter(&adapter_name)
                    .ok()?
                    .device(address)
                    .ok()?;
                device.disconnect().await.ok()
            };
            let _ = timeout(DISCONNECT_WITHIN, ending).await;
        });
        runtime.shutdown_background();
        let _ = sender.send(());
    };
    if std::thread::Builder::new()
        .name("device-command".to_owned())
        .spawn(work)
        .is_ok()
    {
        let _ = ended.await;
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn on_thread(task: Task, gate: Gate, cancel: &CancellationToken) -> Ended {
    let mut ended = Ended::default();
    let stopped = match runtime() {
        Ok(runtime) => {
            let stopped = runtime.block_on(on_adapter(&task, gate, &mut ended.outcomes, cancel));
            runtime.shutdown_background();
            stopped
        }
        Err(error) => Err(Stopped::new(
            reason::BLUETOOTH_UNAVAILABLE,
            format!("no runtime can be started: {error}"),
        )),
    };
    ended.stopped = stopped.err();
    ended
}

async fn on_adapter(
    task: &Task,
    gate: Gate,
    outcomes: &mut Vec<DeviceCommandOutcome>,
    cancel: &CancellationToken,
) -> Result<(), Stopped> {
    let ends_at = Instant::now() + task.within;
    let too_late = || {
        Stopped::new(
            reason::TIMED_OUT,
            format!("it took longer than {} s", task.within.as_secs()),
        )
    };
    let stopped = || Stopped::new(reason::STOPPED, "the agent was stopped");
    let reaching = timeout_at(ends_at, reach(task));
    let device = cancel
        .run_until_cancelled(reaching)
        .await
        .ok_or_else(stopped)?
        .map_err(|_| too_late())??;
    // A connection of another program stays open.
    let was_connected = device.is_connected().await.unwrap_or(false);
    let working = timeout_at(ends_at, on_device(&device, task, gate, outcomes));
    let worked = match cancel.run_until_cancelled(working).await {
        None => Err(stopped()),
        Some(Err(_)) => Err(too_late()),
        Some(Ok(worked)) => worked,
    };
    if !was_connected
        && !matches!(
            timeout(DISCONNECT_WITHIN, device.disconnect()).await,
            Ok(Ok(()))
        )
    {
        tracing::debug!(
            address = task.address,
            "a device may still be connected; bluetoothd ends it when it is idle"
        );
    }
    worked
}

fn unavailable(error: &bluer::Error) -> Stopped {
    Stopped::new(
        reason::BLUETOOTH_UNAVAILABLE,
        format!("bluetoothd cannot be used: {}", words(error)),
    )
}

/// The device, as bluetoothd knows it, or once it was heard.
async fn reach(task: &Task) -> Result<Device, Stopped> {
    let malformed = |_| {
        Stopped::new(
            reason::DEVICE_NOT_FOUND,
            format!("{:?} is not an address", task.address),
        )
    };
    let address: Address = task.address.parse().map_err(malformed)?;
    let session = Session::new().await.map_err(|error| unavailable(&error))?;
    let adapter = session
        .adapter(&task.adapter_name)
        .map_err(|error| unavailable(&error))?;
    if !adapter
        .is_powered()
        .await
        .map_err(|error| unavailable(&error))?
    {
        adapter
            .set_powered(true)
            .await
            .map_err(|error| unavailable(&error))?;
    }
    let known = adapter
        .device_addresses()
        .await
        .map_err(|error| unavailable(&error))?;
    if !known.contains(&address) {
        let found = timeout(FIND_WITHIN, heard(&adapter, address)).await;
        let absent = || {
            let secs = FIND_WITHIN.as_secs();
            let message = format!(
                "the hub did not hear the device for {secs} s: it is out of range, asleep or off"
            );
            Stopped::new(reason::DEVICE_NOT_FOUND, message)
        };
        found
            .map_err(|_| absent())?
            .map_err(|error| unavailable(&error))?;
    }
    adapter.device(address).map_err(|error| unavailable(&error))
}

/// Waits until the device is heard.
async fn heard(adapter: &Adapter, address: Address) -> bluer::Result<()> {
    let mut events = std::pin::pin!(adapter.discover_devices().await?);
    while let Some(event) = events.next().await {
        if matches!(event, AdapterEvent::DeviceAdded(added) if added == address) {
            return Ok(());
        }
    }
    // The adapter was switched off.
    std::future::pending().await
}

async fn on_device(
    device: &Device,
    task: &Task,
    gate: Gate,
    outcomes: &mut Vec<DeviceCommandOutcome>,
) -> Result<(), Stopped> {
    connect(device).await?;
    let found = characteristics(device, &task.steps).await?;
    let is_allowed = gate.ask.send(()).is_ok() && gate.may.await.unwrap_or(false);
    if !is_allowed {
        let message =
            "nothing was done: it was withdrawn, or the hub could not record that it begins";
        return Err(Stopped::new(reason::NOT_BEGUN, message));
    }
    // A device may notify while it is still being written to.
    let mut notified = BTreeMap::new();
    for step in task
        .steps
        .iter()
        .filter(|step| step.operation == GattOperation::Notify)
    {
        if let (None, Some(at)) = (notified.get(&key(step)), found.get(&key(step))) {
            let subscribed = timeout(STEP_WITHIN, at.notify_io()).await;
            let subscribed = subscribed.map_err(|_| {
                Stopped::new(
                    reason::STEP_TIMED_OUT,
                    "it does not let itself be subscribed to",
                )
            });
            let reader = subscribed?
                .map_err(|error| refused(&error, "to subscribe to its notifications"))?;
            notified.insert(key(step), reader);
        }
    }
    let mut room = MAX_READ_BYTES;
    for (at, step) in task.steps.iter().enumerate() {
        let Some(characteristic) = found.get(&key(step)) else {
            return Err(missing(step));
        };
        let number = at + 1;
        let within = step
            .timeout_millis
            .and_then(|millis| u64::try_from(millis).ok())
            .map(Duration::from_millis);
        let within = within.unwrap_or(if step.operation == GattOperation::Notify {
            NOTIFY_WITHIN
        } else {
            STEP_WITHIN
        });
        let taking = timeout(
            within,
            take(device, step, characteristic, notified.get(&key(step))),
        );
        let value = taking.await.map_err(|_| {
            let what = described(step.operation);
            let message = format!(
                "step {number}, {what}: nothing came within {} ms",
                within.as_millis()
            );
            Stopped::new(reason::STEP_TIMED_OUT, message)
        })?;
        let value = value.map_err(|stopped| Stopped {
            message: format!("step {number}, {}", stopped.message),
            ..stopped
        })?;
        outcomes.push(outcome(step, value, &mut room));
    }
    Ok(())
}

fn key(step: &DeviceCommandStep) -> (Uuid, Uuid) {
    (step.service, step.characteristic)
}

/// The outcome of a step, with the value that it read as far as there is room for it.
fn outcome(
    step: &DeviceCommandStep,
    value: Option<Vec<u8>>,
    room: &mut usize,
) -> DeviceCommandOutcome {
    let is_cut = value.as_ref().is_some_and(|value| value.len() > *room);
    let value = value.map(|mut value| {
        value.truncate(*room);
        *room -= value.len();
        hex::encode(value)
    });
    DeviceCommandOutcome {
        characteristic: step.characteristic,
        operation: step.operation,
        value,
        is_cut,
    }
}

async fn connect(device: &Device) -> Result<(), Stopped> {
    let mut last = String::new();
    for attempt in 1..=CONNECT_ATTEMPTS {
        match timeout(CONNECT_WITHIN, device.connect()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if error.kind == ErrorKind::AlreadyConnected => return Ok(()),
            Ok(Err(error)) => last = words(&error),
            Err(_) => {
                last = format!("no answer within {} s", CONNECT_WITHIN.as_secs());
                // An attempt that goes on would be in the way of the next.
                let _ = timeout(DISCONNECT_WITHIN, device.disconnect()).await;
            }
        }
        if attempt < CONNECT_ATTEMPTS {
            tokio::time::sleep(CONNECT_PAUSE).await;
        }
    }
    let message =
        format!("the device does not accept a connection ({CONNECT_ATTEMPTS} attempts): {last}");
    Err(Stopped::new(reason::CONNECTION_FAILED, message))
}

/// The characteristics that the steps need.
async fn characteristics(
    device: &Device,
    steps: &[DeviceCommandStep],
) -> Result<BTreeMap<(Uuid, Uuid), Characteristic>, Stopped> {
    let failed = |error: bluer::Error| {
        Stopped::new(
            reason::CONNECTION_FAILED,
            format!("the device does not list its services: {}", words(&error)),
        )
    };
    let mut found = BTreeMap::new();
    for service in device.services().await.map_err(failed)? {
        let service_uuid = service.uuid().await.map_err(failed)?;
        if !steps.iter().any(|step| step.service == service_uuid) {
            continue;
        }
        for characteristic in service.characteristics().await.map_err(failed)? {
            let uuid = characteristic.uuid().await.map_err(failed)?;
            found.entry((service_uuid, uuid)).or_insert(characteristic);
        }
    }
    match steps.iter().find(|step| !found.contains_key(&key(step))) {
        None => Ok(found),
        Some(step) => Err(missing(step)),
    }
}

fn missing(step: &DeviceCommandStep) -> Stopped {
    let message = format!(
        "nothing was done: the device has no characteristic {} in a service {}",
        step.characteristic, step.service
    );
    Stopped::new(reason::NO_SUCH_CHARACTERISTIC, message)
}

/// Takes a step. Returns what was read or notified.
async fn take(
    device: &Device,
    step: &DeviceCommandStep,
    characteristic: &Characteristic,
    notified: Option<&CharacteristicReader>,
) -> Result<Option<Vec<u8>>, Stopped> {
    let what = described(step.operation);
    let write = async |op_type: WriteOp| {
        let malformed = |_| {
            Stopped::new(
                reason::STEP_FAILED,
                format!("{what}: its value is not hexadecimal"),
            )
        };
        let value = hex::decode(step.value.as_deref().unwrap_or_default()).map_err(malformed)?;
        let request = CharacteristicWriteRequest {
            op_type,
            ..CharacteristicWriteRequest::default()
        };
        characteristic
            .write_ext(&value, &request)
            .await
            .map_err(|error| refused(&error, what))?;
        Ok(None)
    };
    match step.operation {
        GattOperation::Read => characteristic
            .read()
            .await
            .map(Some)
            .map_err(|error| refused(&error, what)),
        GattOperation::Write => write(WriteOp::Request).await,
        GattOperation::WriteWithoutResponse => write(WriteOp::Command).await,
        GattOperation::Notify => {
            let gone = || {
                Stopped::new(
                    reason::STEP_FAILED,
                    format!("{what}: the device ended the connection"),
                )
            };
            let value = notified
                .ok_or_else(gone)?
                .recv()
                .await
                .map_err(|_| gone())?;
            // A notification may be empty, and so is the end of the socket.
            match value.is_empty() && !device.is_connected().await.unwrap_or(false) {
                true => Err(gone()),
                false => Ok(Some(value)),
            }
        }
    }
}

fn described(operation: GattOperation) -> &'static str {
    match operation {
        GattOperation::Read => "to read",
        GattOperation::Write => "to write",
        GattOperation::WriteWithoutResponse => "to write without response",
        GattOperation::Notify => "to wait for a notification",
    }
}

fn refused(error: &bluer::Error, what: &str) -> Stopped {
    match is_unpaired(error) {
        true => {
            let message =
                format!("{what}: the device wants to be paired first, which hubs do not do");
            Stopped::new(reason::PAIRING_REQUIRED, message)
        }
        false => Stopped::new(reason::STEP_FAILED, format!("{what}: {}", words(error))),
    }
}

/// Whether the device wants a connection that is encrypted or authenticated (ATT errors 05, 08, 0c
/// and 0f, Bluetooth Core Specification, Vol 3, Part F, 3.4.1.1).
fn is_unpaired(error: &bluer::Error) -> bool {
    let att = ["0x05", "0x08", "0x0c", "0x0f"];
    matches!(
        error.kind,
        ErrorKind::NotAuthorized
            | ErrorKind::AuthenticationCanceled
            | ErrorKind::AuthenticationFailed
            | ErrorKind::AuthenticationRejected
            | ErrorKind::AuthenticationTimeout
    ) || att.iter().any(|code| {
        error
            .message
            .to_ascii_lowercase()
            .contains(&format!("att error: {code}"))
    })
}

/// The text of bluetoothd's error, as a sentence.
fn words(error: &bluer::Error) -> String {
    let plain = match error.kind {
        ErrorKind::NotPermitted => "the device does not permit it",
        ErrorKind::NotSupported => "the device does not support it",
        ErrorKind::InvalidLength => "the value has another length than the device accepts",
        ErrorKind::InProgress => "bluetoothd is busy with it for somebody else",
        ErrorKind::NotReady => "the adapter is off",
        ErrorKind::ServicesUnresolved => "it lost the connection",
        _ => "",
    };
    match (plain, error.message.trim()) {
        ("", "") => format!("{:?}", error.kind),
        ("", message) => message.to_owned(),
        (plain, "") => plain.to_owned(),
        (plain, message) => format!("{plain} ({message})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::mock;
    use super::*;

    fn step(operation: GattOperation) -> DeviceCommandStep {
        DeviceCommandStep {
            service: Uuid::from_u128(1),
            characteristic: Uuid::from_u128(2),
            operation,
            value: None,
            timeout_millis: None,
        }
    }

    #[test]
    fn what_is_read_is_reported_as_far_as_there_is_room() {
        let (read, mut room) = (step(GattOperation::Read), 3);
        let first = outcome(&read, Some(vec![1, 2]), &mut room);
        assert_eq!(
            (first.value.as_deref(), first.is_cut, room),
            (Some("0102"), false, 1)
        );
        let second = outcome(&read, Some(vec![3, 4]), &mut room);
        assert_eq!(
            (second.value.as_deref(), second.is_cut, room),
            (Some("03"), true, 0)
        );
        assert_eq!(
            outcome(&step(GattOperation::Write), None, &mut room).value,
            None
        );
    }

    const ADDRESS: &str = "C0:00:00:00:00:01";

    fn on(uuid: &str, operation: GattOperation, value: Option<&str>) -> DeviceCommandStep {
        let full = |short: &str| {
            format!("0000{short}-0000-1000-8000-00805f9b34fb")
                .parse()
                .expect("a uuid")
        };
        DeviceCommandStep {
            service: full("ff00"),
            characteristic: full(uuid),
            operation,
            value: value.map(str::to_owned),
            timeout_millis: Some(1_500),
        }
    }

    /// Carries the steps out. `may` answers whether they may be taken.
    async fn carried_out(steps: &[DeviceCommandStep], may: bool) -> (Ended, bool) {
        let ((ask, asks), (answer, allowed)) = (oneshot::channel(), oneshot::channel());
        let task = Task {
            adapter_name: "hci0".to_owned(),
            address: ADDRESS.to_owned(),
            steps: steps.to_vec(),
            within: Duration::from_secs(30),
        };
        let asked = async {
            let is_asked = asks.await.is_ok();
            let _ = answer.send(may);
            is_asked
        };
        tokio::join!(perform(task, Gate { ask, may: allowed }), asked)
    }

    fn reason_of(ended: &Ended) -> Option<&'static str> {
        ended.stopped.as_ref().map(|stopped| stopped.reason)
    }

    #[tokio::test]
    async fn steps_are_taken_in_order_and_the_device_is_let_go() {
        let Some(mut mock) = mock() else { return };
        let services = json!({"ff00": {"ff01": {"value": "07"}, "ff02": {"echoes": "ff01"}}});
        mock.order(json!({"cmd": "add_adapter", "address": "00:11:22:33:44:55"}));
        mock.order(json!({"cmd": "report", "address": ADDRESS, "rssi": -50, "known": true}));
        mock.order(json!({"cmd": "connectable", "address": ADDRESS, "services": services}));
        let (write, notify) = (
            on("ff01", GattOperation::Write, Some("012a")),
            on("ff02", GattOperation::Notify, None),
        );
        let read = on("ff01", GattOperation::Read, None);
        let command = on("ff01", GattOperation::WriteWithoutResponse, Some("ff"));
        let state = |mock: &mut crate::ble::bluez::mock::Mock| {
            mock.order(json!({"cmd": "peripheral", "address": ADDRESS}))
        };

        let (ended, asked) = carried_out(
            &[write.clone(), notify.clone(), read.clone(), command],
            true,
        )
        .await;
        assert_eq!((ended.stopped, asked), (None, true));
        let values: Vec<_> = ended
            .outcomes
            .iter()
            .map(|outcome| outcome.value.as_deref())
            .collect();
        assert_eq!(values, [None, Some("012a"), Some("07"), None]);
        let shown = state(&mut mock);
        assert_eq!(
            shown["written"],
            json!([["ff01", "012a", "request"], ["ff01", "ff", "command"]])
        );
        assert_eq!(
            (&shown["connected"], &shown["connects"]),
            (&json!(false), &json!(1))
        );

        // No notification arrives: the steps before it are reported.
        let (ended, _) = carried_out(&[read.clone(), notify], true).await;
        assert_eq!(
            (reason_of(&ended), ended.outcomes.len()),
            (Some(reason::STEP_TIMED_OUT), 1)
        );
        // The command may not begin, or cannot: no value is written.
        let (ended, asked) = carried_out(std::slice::from_ref(&write), false).await;
        assert_eq!((reason_of(&ended), asked), (Some(reason::NOT_BEGUN), true));
        let (ended, asked) = carried_out(
            &[write.clone(), on("ff03", GattOperation::Read, None)],
            true,
        )
        .await;
        assert_eq!(
            (reason_of(&ended), asked),
            (Some(reason::NO_SUCH_CHARACTERISTIC), false)
        );
        mock.order(
            json!({"cmd": "fault", "call": "WriteValue", "error": "NotPermitted", "times": 1}),
        );
        let (ended, _) = carried_out(std::slice::from_ref(&write), true).await;
        assert_eq!(reason_of(&ended), Some(reason::STEP_FAILED));
        mock.order(
            json!({"cmd": "fault", "call": "ReadValue", "error": "NotAuthorized", "times": 1}),
        );
        let (ended, _) = carried_out(std::slice::from_ref(&read), true).await;
        assert_eq!(reason_of(&ended), Some(reason::PAIRING_REQUIRED));
        mock.order(json!({"cmd": "fault", "call": "WriteValue", "error": "hang", "times": 1}));
        let (ended, _) = carried_out(std::slice::from_ref(&write), true).await;
        assert_eq!(reason_of(&ended), Some(reason::STEP_TIMED_OUT));
        let shown = state(&mut mock);
        assert_eq!(
            (
                shown["written"].as_array().map(Vec::len),
                &shown["connected"]
            ),
            (Some(2), &json!(false))
        );

        // A failed connection is tried once more, as no step was taken yet.
        mock.order(json!({"cmd": "fault", "call": "Connect", "error": "Failed", "times": 1}));
        let (ended, _) = carried_out(std::slice::from_ref(&write), true).await;
        assert_eq!(ended.stopped, None);
        mock.order(json!({"cmd": "fault", "call": "Connect", "error": "Failed"}));
        let (ended, asked) = carried_out(std::slice::from_ref(&write), true).await;
        assert_eq!(
            (reason_of(&ended), asked),
            (Some(reason::CONNECTION_FAILED), false)
        );
        mock.order(json!({"cmd": "stop_daemon", "crash": true}));
        let (ended, _) = carried_out(&[write], true).await;
        assert_eq!(reason_of(&ended), Some(reason::BLUETOOTH_UNAVAILABLE));
    }

    #[test]
    fn errors_are_sentences() {
        let error = |kind, message: &str| bluer::Error {
            kind,
            message: message.to_owned(),
        };
        let paired = refused(
            &error(ErrorKind::Failed, "Operation failed with ATT error: 0x0F"),
            "to read",
        );
        assert_eq!(paired.reason, reason::PAIRING_REQUIRED);
        let other = refused(
            &error(ErrorKind::Failed, "Operation failed with ATT error: 0x0e"),
            "to read",
        );
        assert_eq!(
            other.message,
            "to read: Operation failed with ATT error: 0x0e"
        );
        assert_eq!(
            words(&error(ErrorKind::NotPermitted, "")),
            "the device does not permit it"
        );
        assert_eq!(words(&error(ErrorKind::DoesNotExist, " ")), "DoesNotExist");
    }
}
