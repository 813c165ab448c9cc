//! The machine's adapters, through BlueZ over D-Bus. Only this module and those below it know D-Bus
//! and bluer. Decides which adapters are scanned, and keeps scanning whatever happens to the bus,
//! to bluetoothd or to a controller. One connection with one subscription delivers every value as a
//! signal: an advertisement needs no call.

mod bus;
pub mod control;
pub mod gatt;
mod monitor;
mod names;
mod objects;
mod scanner;
mod shared;
mod wire;

#[cfg(test)]
mod mock;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::hub::{Adapter, AdapterRole};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use self::bus::{Bus, CallError, Listener, system_address};
use self::names::{BLUEZ, BUS, OBJECT_MANAGER, PROPERTIES};
use self::objects::Objects;
use self::scanner::Scanner;
use self::shared::Shared;
use self::wire::{Kind, Message, Value};
use super::reports::Pipeline;
use super::types::{RadioConfig, now};

const TICK: Duration = Duration::from_secs(1);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// The state that is published beside the advertisements.
pub struct Outputs {
    pub adapters: watch::Sender<Vec<Adapter>>,
    pub trouble: watch::Sender<Option<String>>,
}

pub fn start(
    config: RadioConfig,
    pipeline: Pipeline,
    outputs: Outputs,
    roles: watch::Receiver<BTreeMap<String, AdapterRole>>,
    cancel: CancellationToken,
) {
    let supervisor = Supervisor {
        shared: Shared::new(Objects::new(pipeline)),
        config: Arc::new(config),
        outputs,
        roles,
        known: BTreeSet::new(),
    };
    tokio::spawn(supervisor.run(cancel));
}

struct Supervisor {
    shared: Shared,
    config: Arc<RadioConfig>,
    outputs: Outputs,
    roles: watch::Receiver<BTreeMap<String, AdapterRole>>,
    /// Addresses of the expected adapters: configured, or seen before.
    known: BTreeSet<String>,
}

impl Supervisor {
    async fn run(mut self, cancel: CancellationToken) {
        self.known.extend(self.config.adapters.iter().cloned());
        let mut retry = FIRST_RETRY;
        loop {
            let mut tasks = JoinSet::new();
            let Some(reason) = cancel
                .run_until_cancelled(self.connection(&mut tasks))
                .await
            else {
                break;
            };
            tasks.shutdown().await;
            let was_up = !self.shared.objects().owner.is_empty();
            self.shared.objects().set_owner("");
            self.bluez_is_gone(&reason);
            retry = if was_up {
                FIRST_RETRY
            } else {
                (retry * 2).min(LAST_RETRY)
            };
            if cancel
                .run_until_cancelled(tokio::time::sleep(retry))
                .await
                .is_none()
            {
                break;
            }
        }
        self.shared.objects().pipeline().finish(now());
    }

    /// Scans until the connection is lost. Returns why it was.
    async fn connection(&mut self, tasks: &mut JoinSet<()>) -> String {
        let (bus, incoming) = match Bus::connect(&system_address()).await {
            Ok(connected) => connected,
            Err(error) => return format!("D-Bus cannot be reached: {error}"),
        };
        let (lost, mut why_lost) = watch::channel(None);
        let signals = Signals {
            shared: self.shared.clone(),
            bus: bus.clone(),
        };
        tasks.spawn(async move {
            let error = incoming.run(signals).await;
            lost.send_replace(Some(format!("the connection to D-Bus is lost: {error}")));
        });
        let scan = self.scan(&bus, tasks);
        tokio::select! {
            Err(error) = scan => format!("D-Bus refuses us: {error}"),
            Ok(reason) = why_lost.wait_for(Option::is_some) => reason.clone().unwrap_or_default(),
        }
    }

    async fn scan(&mut self, bus: &Bus, tasks: &mut JoinSet<()>) -> Result<(), CallError> {
        bus.hello().await?;
        for rule in [
            "type='signal',sender='org.bluez',path_namespace='/org/bluez',\
             interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'",
            "type='signal',sender='org.bluez',path='/',interface='org.freedesktop.DBus.ObjectManager'",
            "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',\
             interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.bluez'",
        ] {
            bus.add_match(rule).await?;
        }
        // Where bluetoothd is started on demand, this call starts it. Otherwise the owner of its
        // name will be announced.
        let _ = bus
            .bus_call(
                "StartServiceByName",
                "su",
                &[Value::Str(BLUEZ), Value::Int(0)],
            )
            .await;
        if let Ok(reply) = bus
            .bus_call("GetNameOwner", "s", &[Value::Str(BLUEZ)])
            .await
        {
            let mut objects = self.shared.objects();
            // A change of owner that was announced meanwhile is newer than this answer.
            if objects.owner.is_empty() {
                objects.set_owner(
                    reply
                        .body()
                        .first()
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                );
            }
        }
        let mut loaded_from = String::new();
        let mut scanners = BTreeMap::new();
        let mut changes = self.shared.changes.subscribe();
        let mut tick = tokio::time::interval(TICK);
        loop {
            let owner = self.shared.objects().owner.clone();
            if owner != loaded_from {
                scanners.values().for_each(AbortHandle::abort);
                scanners.clear();
                loaded_from.clear();
                if !owner.is_empty() && self.load(bus).await {
                    loaded_from.clone_from(&owner);
                }
            }
            if owner.is_empty() {
                self.bluez_is_gone("bluetoothd is not running (try: systemctl start bluetooth)");
            } else if loaded_from == owner {
                self.reconcile(bus, tasks, &mut scanners);
            }
            tokio::select! {
                _ = changes.changed() => {}
                _ = tick.tick() => {
                    self.publish();
                    self.shared.objects().pipeline().flush(now());
                }
            }
            while tasks.try_join_next().is_some() {}
        }
    }

    /// Requests all objects; the listener processes the answer. Returns whether there was one.
    async fn load(&self, bus: &Bus) -> bool {
        let serial = bus.next_serial();
        self.shared.objects().listing = serial;
        let listed = bus
            .call_as(
                serial,
                BLUEZ,
                "/",
                OBJECT_MANAGER,
                "GetManagedObjects",
                "",
                &[],
            )
            .await;
        if let Err(error) = &listed {
            self.trouble(&format!("bluetoothd does not list its adapters: {error}"));
        }
        listed.is_ok()
    }

    /// Runs a scanner for every adapter that is present and selected, and for no other.
    fn reconcile(
        &mut self,
        bus: &Bus,
        tasks: &mut JoinSet<()>,
        scanners: &mut BTreeMap<(String, String), AbortHandle>,
    ) {
        let mut present = BTreeSet::new();
        for (path, seen) in self.shared.objects().adapters() {
            let address = &seen.adapter.address;
            if !address.is_empty()
                && (self.config.adapters.is_empty() || self.config.adapters.contains(address))
            {
                present.insert((address.clone(), path.clone()));
            }
        }
        scanners.retain(|key, scanner| {
            let stays = present.contains(key);
            if !stays {
                scanner.abort();
            }
            stays
        });
        for (address, path) in &present {
            scanners
                .entry((address.clone(), path.clone()))
                .or_insert_with(|| {
                    self.known.insert(address.clone());
                    tasks.spawn(
                        Scanner::new(bus, &self.shared, &self.config, &self.roles, address, path)
                            .run(),
                    )
                });
        }
        for address in &self.known {
            if !present.iter().any(|(there, _)| there == address) {
                self.absent(
                    address,
                    "the adapter is missing: unplugged, or its driver has failed",
                );
            }
        }
        if present.is_empty() {
            self.trouble(
                "there is no Bluetooth adapter to scan with (hub-agent check shows what there is)",
            );
        } else {
            self.outputs
                .trouble
                .send_if_modified(|trouble| trouble.take().is_some());
        }
    }

    fn bluez_is_gone(&self, reason: &str) {
        for address in &self.known {
            self.absent(address, reason);
        }
        self.trouble(reason);
        self.publish();
    }

    /// Notes an adapter that cannot be used. A disabled adapter does not count as blind.
    fn absent(&self, address: &str, reason: &str) {
        let health = self.shared.objects().pipeline().health().clone();
        if !scanner::is_scanner(&self.roles.borrow(), address) {
            health.disabled(address, now());
        } else if health.blind(address, now(), reason) {
            tracing::warn!(adapter = address, reason, "the hub is blind");
        }
    }

    fn trouble(&self, reason: &str) {
        let is_new = self.outputs.trouble.send_if_modified(|trouble| {
            let is_new = trouble.as_deref() != Some(reason);
            *trouble = Some(reason.to_owned());
            is_new
        });
        if is_new {
            tracing::warn!(reason, "no adapter to scan with");
        }
    }

    /// Published once a second at most: BlueZ restarts discovery every few seconds, which ends
    /// before it matters.
    fn publish(&self) {
        let mut adapters: Vec<_> = self
            .shared
            .objects()
            .adapters()
            .map(|(_, seen)| seen.adapter.clone())
            .collect();
        adapters.sort_by(|a, b| a.address.cmp(&b.address));
        self.outputs.adapters.send_if_modified(|before| {
            let is_new = *before != adapters;
            *before = adapters;
            is_new
        });
    }
}

/// Processes what arrives on the connection.
struct Signals {
    shared: Shared,
    bus: Bus,
}

impl Listener for Signals {
    fn batch(&mut self, messages: &[Message<'_>]) {
        let at = now();
        let mut objects = self.shared.objects();
        let mut changed = false;
        for message in messages {
            changed |= match message.kind {
                Kind::Call if message.sender == objects.owner => {
                    objects.monitors.answer(&self.bus, message)
                }
                Kind::Call | Kind::Error => false,
                Kind::Return if message.reply_serial == objects.listing => {
                    listing(&mut objects, message, at)
                }
                Kind::Return => false,
                Kind::Signal => signal(&mut objects, message, at),
            };
        }
        objects.pipeline().flush(at);
        drop(objects);
        if changed {
            self.shared.note_change();
        }
    }
}

fn listing(objects: &mut Objects, message: &Message<'_>, at: Timestamp) -> bool {
    if let Ok([listed, ..]) = message.body().as_deref() {
        objects.load(listed, at);
    }
    true
}

/// True if adapters or bluetoothd's presence changed.
fn signal(objects: &mut Objects, message: &Message<'_>, at: Timestamp) -> bool {
    let Ok(body) = message.body() else {
        return false;
    };
    match (message.interface, message.member, body.as_slice()) {
        (BUS, "NameOwnerChanged", [Value::Str(BLUEZ), _, Value::Str(owner)])
            if message.sender == BUS =>
        {
            objects.set_owner(owner);
            true
        }
        // Every program can send a signal; only those of bluetoothd are processed.
        _ if objects.owner.is_empty() || message.sender != objects.owner => false,
        (PROPERTIES, "PropertiesChanged", [Value::Str(interface), properties, invalidated]) => {
            objects.changed(message.path, interface, properties, invalidated.items(), at)
        }
        (OBJECT_MANAGER, "InterfacesAdded", [Value::Str(path), interfaces]) => {
            objects.added(path, interfaces, at, true)
        }
        (OBJECT_MANAGER, "InterfacesRemoved", [Value::Str(path), interfaces]) => {
            objects.removed(path, interfaces.items())
        }
        _ => false,
    }
}
