//! What is new about a person's devices, live: values, the devices themselves, and the commands
//! that the person gave; for the person, or for the recipient of a mandate. Whose a device is, is
//! asked each time before something is sent of it.
//! Values are sent once, in the order of their receipt, and a reader resumes after the last one;
//! a device and a command are sent as they are, at the beginning and whenever they have changed.

pub mod http;
mod position;
mod view;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::select_all;
use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::connection::Connection;
use hub_devices::ble;
use hub_devices::device_history::SensorItemResponse;
use hub_identity::authn::LEASE;
use hub_protocol::TenantUuid;
use hub_streams::guard::{self, Guard, Reader, Watch};
use hub_streams::{DeviceFeed, News, Slot, Streams};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, interval_at, sleep_until};
use uuid::Uuid;

use crate::device_commands::CommandStatus;
use crate::end_users::OwnDevice;
use position::Position;
use view::{Standing, View, Visible};

/// Devices, and suppliers of these, that one stream is of.
const MAX_DEVICES: usize = 500;
const MAX_SUPPLIERS: usize = 16;
/// Receptions that are read at a time, of all devices and of one.
const READ: usize = 2_000;
const READ_OF_DEVICE: usize = 200;
/// The time between two reads: what is received meanwhile is read together.
const REST: Duration = Duration::from_millis(500);
/// How often commands are looked at, and after how many of these looks devices are.
const LOOK: Duration = Duration::from_secs(2);
const LOOKS_OF_DEVICES: u32 = 4;

/// The events of a stream.
const VALUES: &str = "values";
const DEVICE: &str = "device";
const DEVICE_REMOVED: &str = "device_removed";
const COMMAND: &str = "command";

/// Values of a device, as one reception has them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceValues {
    device_instance_id: i64,
    #[serde(flatten)]
    item: SensorItemResponse,
}

/// A device that is the person's no longer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RemovedDevice {
    device_instance_id: i64,
}

/// The events of one supplier.
struct Supplier {
    tenant_uuid: TenantUuid,
    feed: DeviceFeed,
    /// All values of events up to this one were sent.
    cursor: i64,
    unread: Option<News>,
}

/// A device as it was last sent.
struct SentDevice {
    tenant_uuid: TenantUuid,
    standing: Standing,
}

/// An event that waits to be sent.
struct Queued {
    /// The device that it is of; None of what everybody may see.
    device_instance_id: Option<i64>,
    bytes: Bytes,
}

/// One open stream of a person's devices.
pub struct PersonStream {
    core: Core,
    streams: Streams,
    view: View,
    suppliers: Vec<Supplier>,
    devices: HashMap<i64, SentDevice>,
    commands: HashMap<Uuid, CommandStatus>,
    /// What is to be sent next.
    queue: VecDeque<Queued>,
    /// When it was last asked whose the devices of the queue are.
    checked_at: Instant,
    looks: Interval,
    look: u32,
    heartbeats: Interval,
    /// When unread events may be read.
    read_at: Instant,
    watch: Arc<Watch>,
    _guard: Guard,
    _slot: Slot,
}

impl PersonStream {
    /// Values begin after `resume_after`, or with what is received from now on.
    pub async fn open(
        streams: Streams,
        view: View,
        connection: Connection,
        resume_after: Option<Position>,
    ) -> Result<Self> {
        let core = streams.core.clone();
        let slot = view.enter(&streams)?;
        let mut conn = core.db.read().await?;
        view.require_hub(&core, &mut conn).await?;
        let own = view.some_devices(&core, &mut conn).await?.devices;
        drop(conn);
        require_few(&own)?;
        let (watch, guard) = guard::post(Reader {
            core: core.clone(),
            connection,
            is_allowed: view.is_allowed(&streams),
        });
        let heartbeat = core.config.stream_times.heartbeat;
        let mut heartbeats = interval_at(Instant::now() + heartbeat, heartbeat);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stream = Self {
            core,
            streams,
            view,
            suppliers: Vec::new(),
            devices: HashMap::new(),
            commands: HashMap::new(),
            // Confirms the connection at once, and sets the delay of reconnections.
            queue: [Queued {
                device_instance_id: None,
                bytes: Bytes::from_static(b"retry: 1000\n\n"),
            }]
            .into(),
            checked_at: Instant::now(),
            looks,
            look: 0,
            heartbeats,
            read_at: Instant::now(),
            watch,
            _guard: guard,
            _slot: slot,
        };
        stream.join(&own).await?;
        for supplier in &mut stream.suppliers {
            let resumed = resume_after
                .as_ref()
                .and_then(|at| at.0.get(&supplier.tenant_uuid));
            if let Some(id) = resumed.filter(|id| **id < supplier.cursor) {
                supplier.cursor = *id;
                supplier.unread = Some(News {
                    devices: None,
                    up_to: supplier.feed.last_id(),
                });
            }
        }
        Ok(stream)
    }

    /// The next bytes to send; None when the stream has ended. The caller calls it again once they
    /// were sent.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.watch.sent_on();
        let bytes = self.produce().await?;
        self.watch.handed_over();
        Some(bytes)
    }

    async fn produce(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.next_queued().await {
                return Some(bytes);
            }
            let unread = self.suppliers.iter().position(|one| one.unread.is_some());
            let (suppliers, devices) = (&mut self.suppliers, &self.devices);
            let read = tokio::select! {
                biased;
                () = self.watch.ended() => return None,
                _ = self.looks.tick() => self.look().await,
                _ = self.heartbeats.tick() => {
                    return Some(format!("id: {}\n: ping\n\n", self.position()).into());
                }
                () = sleep_until(self.read_at), if unread.is_some() => {
                    self.read(unread.unwrap_or_default()).await
                }
                (at, news) = heard(suppliers, devices), if unread.is_none() => {
                    // Without a feed the reader has to resume.
                    let news = news?;
                    if let Some(supplier) = self.suppliers.get_mut(at) {
                        supplier.unread = Some(news);
                    }
                    Ok(())
                }
            };
            if let Err(error) = read {
                tracing::debug!(%error, "a person's stream ends because it cannot be read on");
                return None;
            }
        }
    }

    /// The next of what waits to be sent. A slow reader may have left it there for long: whose the
    /// devices are is then asked again, and what is of others is dropped.
    async fn next_queued(&mut self) -> Option<Bytes> {
        let is_checked = self.checked_at.elapsed() < LEASE;
        let waits = |queued: &Queued| queued.device_instance_id.is_some();
        if !is_checked && self.queue.iter().any(waits) {
            let begun = Instant::now();
            let ids: HashSet<i64> = self
                .queue
                .iter()
                .filter_map(|queued| queued.device_instance_id)
                .collect();
            let ids: Vec<i64> = ids.into_iter().collect();
            let checked = match self.core.db.read().await {
                Ok(mut conn) => self.view.those(&self.core, &mut conn, &ids).await,
                Err(error) => Err(error),
            };
            match checked {
                Ok(Visible { devices, .. }) => {
                    let own: HashSet<i64> =
                        devices.iter().map(|one| one.device_instance_id).collect();
                    let is_own = |id: i64| own.contains(&id);
                    self.queue
                        .retain(|queued| queued.device_instance_id.is_none_or(is_own));
                    self.checked_at = begun;
                }
                // The reader resumes where the last event that was sent is.
                Err(_) => {
                    self.queue.clear();
                    self.watch.end();
                    return None;
                }
            }
        }
        self.queue.pop_front().map(|queued| queued.bytes)
    }

    fn position(&self) -> Position {
        let of_supplier = |supplier: &Supplier| (supplier.tenant_uuid, supplier.cursor);
        Position(self.suppliers.iter().map(of_supplier).collect())
    }

    /// Queues an event, which is dropped if its device is the reader's no longer when it is sent.
    fn send(
        &mut self,
        event: &str,
        device_instance_id: Option<i64>,
        data: &impl Serialize,
    ) -> Result<()> {
        let data = serde_json::to_string(data).map_err(Error::internal)?;
        let id = self.position();
        let text = format!("id: {id}\nevent: {event}\ndata: {data}\n\n");
        self.queue.push_back(Queued {
            device_instance_id,
            bytes: text.into(),
        });
        Ok(())
    }

    /// Follows the suppliers of these devices that are not followed yet.
    async fn join(&mut self, own: &[OwnDevice]) -> Result<()> {
        for device in own {
            let tenant_uuid = device.tenant_uuid;
            let is_known = self
                .suppliers
                .iter()
                .any(|one| one.tenant_uuid == tenant_uuid);
            if is_known || self.suppliers.len() >= MAX_SUPPLIERS {
                continue;
            }
            let feed = DeviceFeed::join(&self.streams, tenant_uuid).await?;
            self.suppliers.push(Supplier {
                tenant_uuid,
                cursor: feed.last_id(),
                feed,
                unread: None,
            });
        }
        Ok(())
    }

    /// Looks for what has changed of commands, and from time to time of devices.
    async fn look(&mut self) -> Result<()> {
        if self.look.is_multiple_of(LOOKS_OF_DEVICES) {
            self.look_at_devices().await?;
        }
        self.look = self.look.wrapping_add(1);
        self.look_at_commands().await
    }

    async fn look_at_devices(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut conn = self.core.db.read().await?;
        let mut visible = self.view.some_devices(&self.core, &mut conn).await?;
        visible.devices.truncate(MAX_DEVICES);
        let own = visible.devices.clone();
        let shown = self.view.shown(&self.core, &mut conn, visible).await?;
        drop(conn);
        self.checked_at = begun;
        self.join(&own).await?;
        let tenants: HashMap<i64, TenantUuid> = own
            .iter()
            .map(|one| (one.device_instance_id, one.tenant_uuid))
            .collect();
        let gone = self.devices.keys().filter(|id| !tenants.contains_key(id));
        for device_instance_id in gone.copied().collect::<Vec<_>>() {
            self.remove(device_instance_id)?;
        }
        for device in shown {
            let device_instance_id = device.device_instance_id;
            let Some(tenant_uuid) = tenants.get(&device_instance_id).copied() else {
                continue;
            };
            let standing = device.standing;
            let sent = self.devices.get(&device_instance_id);
            if sent.is_none_or(|sent| sent.standing != standing) {
                self.devices.insert(
                    device_instance_id,
                    SentDevice {
                        tenant_uuid,
                        standing,
                    },
                );
                self.send(DEVICE, Some(device_instance_id), &device.item)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, device_instance_id: i64) -> Result<()> {
        match self.devices.remove(&device_instance_id) {
            Some(_) => self.send(DEVICE_REMOVED, None, &RemovedDevice { device_instance_id }),
            None => Ok(()),
        }
    }

    async fn look_at_commands(&mut self) -> Result<()> {
        let suppliers = self.suppliers.iter().map(|one| one.tenant_uuid);
        let mut conn = self.core.db.read().await?;
        let found = self.view.commands(&self.core, &mut conn, suppliers).await?;
        drop(conn);
        let sent = std::mem::take(&mut self.commands);
        for command in found {
            let device_instance_id = command.device_instance_id();
            if !self.devices.contains_key(&device_instance_id) {
                continue;
            }
            let (command_uuid, status) = (command.command_uuid(), command.status());
            self.commands.insert(command_uuid, status);
            if sent.get(&command_uuid) != Some(&status) {
                self.send(COMMAND, Some(device_instance_id), &command)?;
            }
        }
        Ok(())
    }

    /// Reads some of the unread events of a supplier, and sends the values that are the person's
    /// at this moment.
    async fn read(&mut self, at: usize) -> Result<()> {
        self.read_at = Instant::now() + REST;
        let Some(supplier) = self.suppliers.get(at) else {
            return Ok(());
        };
        let Some(News { devices, up_to }) = &supplier.unread else {
            return Ok(());
        };
        let (tenant_uuid, cursor, up_to) = (supplier.tenant_uuid, supplier.cursor, *up_to);
        let wanted: Vec<i64> = match devices {
            Some(devices) => devices.iter().copied().collect(),
            None => {
                let known = self.devices.iter();
                known
                    .filter(|(_, device)| device.tenant_uuid == tenant_uuid)
                    .map(|(device_instance_id, _)| *device_instance_id)
                    .collect()
            }
        };
        let of_device = (READ / wanted.len().max(1)).clamp(1, READ_OF_DEVICE);
        let of_device = i64::try_from(of_device).unwrap_or(1);
        let (mut receptions, mut end) = (Vec::new(), up_to);
        for device_instance_id in &wanted {
            let batch = ble::receptions_of(
                &self.core,
                tenant_uuid,
                *device_instance_id,
                (cursor.saturating_add(1), up_to),
                Direction::Ascending,
                of_device,
            )
            .await?;
            end = batch.last_id.map_or(end, |last_id| end.min(last_id));
            receptions.extend(batch.receptions);
        }
        // Devices with more to read have nothing after their last reception here.
        receptions.retain(|reception| reception.ble_event_id <= end);
        receptions.sort_unstable_by_key(|reception| reception.ble_event_id);
        let begun = Instant::now();
        let mut conn = self.core.db.read().await?;
        let visible = self.view.those(&self.core, &mut conn, &wanted).await?;
        drop(conn);
        self.checked_at = begun;
        let own: HashMap<i64, OwnDevice> = visible
            .devices
            .iter()
            .map(|one| (one.device_instance_id, *one))
            .collect();
        for mut reception in receptions {
            let device_instance_id = reception.device_instance_id;
            let Some(own) = own.get(&device_instance_id) else {
                continue;
            };
            let since = own.since;
            let is_older =
                reception.ble_event_id < since.as_micros() || reception.observed_at < since;
            reception.values.retain(|key, _| visible.allows(key));
            if is_older || reception.values.is_empty() {
                continue;
            }
            self.move_to(at, reception.ble_event_id);
            let item = SensorItemResponse::new(reception);
            self.send(
                VALUES,
                Some(device_instance_id),
                &DeviceValues {
                    device_instance_id,
                    item,
                },
            )?;
        }
        self.move_to(at, end);
        if end >= up_to
            && let Some(supplier) = self.suppliers.get_mut(at)
        {
            supplier.unread = None;
        }
        for device_instance_id in wanted.into_iter().filter(|id| !own.contains_key(id)) {
            self.remove(device_instance_id)?;
        }
        Ok(())
    }

    fn move_to(&mut self, at: usize, id: i64) {
        if let Some(supplier) = self.suppliers.get_mut(at) {
            supplier.cursor = supplier.cursor.max(id);
        }
    }
}

fn require_few(own: &[OwnDevice]) -> Result<()> {
    let suppliers: HashSet<TenantUuid> = own.iter().map(|one| one.tenant_uuid).collect();
    if own.len() <= MAX_DEVICES && suppliers.len() <= MAX_SUPPLIERS {
        return Ok(());
    }
    let message = format!(
        "a stream is of at most {MAX_DEVICES} devices and {MAX_SUPPLIERS} suppliers; ask for one hub with `hubUuid`"
    );
    Err(Error::conflict("TOO_MANY_DEVICES", message))
}

/// Waits for news of the devices, and returns whose they are.
async fn heard(
    suppliers: &mut [Supplier],
    devices: &HashMap<i64, SentDevice>,
) -> (usize, Option<News>) {
    let is_wanted = |device_instance_id| devices.contains_key(&device_instance_id);
    let feeds: Vec<_> = suppliers
        .iter_mut()
        .map(|supplier| supplier.feed.next(is_wanted).boxed())
        .collect();
    if feeds.is_empty() {
        return std::future::pending().await;
    }
    let (news, at, _) = select_all(feeds).await;
    (at, news)
}
