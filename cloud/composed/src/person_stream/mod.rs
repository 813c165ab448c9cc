//! What is new about a person's devices, live: values, the devices themselves, and the commands
//! that the person gave. Whose a device is, is asked each time before something is sent of it.
//! Values are sent once, in the order of their receipt, and a reader resumes after the last one;
//! a device and a command are sent as they are, at the beginning and whenever they have changed.

pub mod http;
mod position;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_all};
use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::connection::Connection;
use hub_devices::ble;
use hub_devices::device_history::SensorItemResponse;
use hub_devices::device_instances::ActivationStatus;
use hub_identity::authn::user::User;
use hub_identity::authz::{Scope, UserScope};
use hub_protocol::{HubUuid, TenantUuid};
use hub_streams::guard::{self, Guard, Reader, Watch};
use hub_streams::{DeviceFeed, News, Slot, Streams};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, interval_at, sleep_until};
use uuid::Uuid;

use crate::device_commands::{self, CommandStatus};
use crate::end_users::http::devices::summaries;
use crate::end_users::{self, OwnDevice};
use position::Position;

/// Devices, and suppliers of these, that one stream is of.
const MAX_DEVICES: usize = 500;
/// One more shows that there are too many.
const LISTED_DEVICES: i64 = MAX_DEVICES as i64 + 1;
const MAX_SUPPLIERS: usize = 16;
/// Receptions that are read at a time, of all devices and of one.
const READ: usize = 2_000;
const READ_OF_DEVICE: usize = 200;
/// The time between two reads: what is received meanwhile is read together.
const REST: Duration = Duration::from_millis(500);
/// How often commands are looked at, and after how many of these looks devices are.
const LOOK: Duration = Duration::from_secs(2);
const LOOKS_OF_DEVICES: u32 = 4;
/// The age up to which a command is sent.
const COMMAND_SECS: i64 = 600;
const MAX_COMMANDS: i64 = 100;

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
    standing: (String, ActivationStatus, bool, Option<HubUuid>),
}

/// One open stream of a person.
pub struct PersonStream {
    core: Core,
    streams: Streams,
    scope: UserScope,
    user: User,
    /// The only hub whose devices are wanted.
    hub_uuid: Option<HubUuid>,
    suppliers: Vec<Supplier>,
    devices: HashMap<i64, SentDevice>,
    commands: HashMap<Uuid, CommandStatus>,
    /// What is to be sent next.
    queue: VecDeque<Bytes>,
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
        (scope, user): (UserScope, User),
        connection: Connection,
        hub_uuid: Option<HubUuid>,
        resume_after: Option<Position>,
    ) -> Result<Self> {
        let core = streams.core.clone();
        let slot = streams.slots.enter_person(user.user_uuid)?;
        let mut conn = core.db.read().await?;
        let person = end_users::of_caller(&core, &mut conn, &scope).await?;
        if let Some(hub_uuid) = hub_uuid {
            end_users::require_hub(&mut conn, &person, hub_uuid).await?;
        }
        let own = end_users::some_devices(&mut conn, &person, hub_uuid, LISTED_DEVICES).await?;
        drop(conn);
        require_few(&own)?;
        let authn = streams.authn.clone();
        let is_allowed = move || -> BoxFuture<'static, bool> {
            let authn = authn.clone();
            Box::pin(async move {
                let session = authn.permissions.require_session(&authn.core.db, &user);
                // An unavailable database ends no login.
                session
                    .await
                    .map_or_else(|error| error.status().is_server_error(), |()| true)
            })
        };
        let (watch, guard) = guard::post(Reader {
            core: core.clone(),
            connection,
            is_allowed: Box::new(is_allowed),
        });
        let heartbeat = core.config.stream_times.heartbeat;
        let mut heartbeats = interval_at(Instant::now() + heartbeat, heartbeat);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stream = Self {
            core,
            streams,
            scope,
            user,
            hub_uuid,
            suppliers: Vec::new(),
            devices: HashMap::new(),
            commands: HashMap::new(),
            // Confirms the connection at once, and sets the delay of reconnections.
            queue: [Bytes::from_static(b"retry: 1000\n\n")].into(),
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
            if let Some(bytes) = self.queue.pop_front() {
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

    fn position(&self) -> Position {
        let of_supplier = |supplier: &Supplier| (supplier.tenant_uuid, supplier.cursor);
        Position(self.suppliers.iter().map(of_supplier).collect())
    }

    fn send(&mut self, event: &str, data: &impl Serialize) -> Result<()> {
        let data = serde_json::to_string(data).map_err(Error::internal)?;
        let id = self.position();
        let text = format!("id: {id}\nevent: {event}\ndata: {data}\n\n");
        self.queue.push_back(text.into());
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
        let mut conn = self.core.db.read().await?;
        let person = end_users::of_caller(&self.core, &mut conn, &self.scope).await?;
        let mut own =
            end_users::some_devices(&mut conn, &person, self.hub_uuid, LISTED_DEVICES).await?;
        own.truncate(MAX_DEVICES);
        let shown = summaries(&mut conn, &own, self.core.clock.now()).await?;
        drop(conn);
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
            let device_instance_id = device.device_instance_id();
            let Some(tenant_uuid) = tenants.get(&device_instance_id).copied() else {
                continue;
            };
            let standing = device.standing();
            let sent = self.devices.get(&device_instance_id);
            if sent.is_none_or(|sent| sent.standing != standing) {
                self.devices.insert(
                    device_instance_id,
                    SentDevice {
                        tenant_uuid,
                        standing,
                    },
                );
                self.send(DEVICE, &device)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, device_instance_id: i64) -> Result<()> {
        match self.devices.remove(&device_instance_id) {
            Some(_) => self.send(DEVICE_REMOVED, &RemovedDevice { device_instance_id }),
            None => Ok(()),
        }
    }

    async fn look_at_commands(&mut self) -> Result<()> {
        let now = self.core.clock.now();
        let since = now.plus_secs(-COMMAND_SECS);
        let mut found = Vec::new();
        let mut conn = self.core.db.read().await?;
        for supplier in &self.suppliers {
            let scope = Scope::of_person(&self.user, supplier.tenant_uuid);
            let author_uuid = self.scope.user_uuid().0;
            let given = (author_uuid, since);
            found
                .extend(device_commands::given(&mut conn, &scope, given, MAX_COMMANDS, now).await?);
        }
        drop(conn);
        let sent = std::mem::take(&mut self.commands);
        for command in found {
            if !self.devices.contains_key(&command.device_instance_id()) {
                continue;
            }
            let (command_uuid, status) = (command.command_uuid(), command.status());
            self.commands.insert(command_uuid, status);
            if sent.get(&command_uuid) != Some(&status) {
                self.send(COMMAND, &command)?;
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
        let mut conn = self.core.db.read().await?;
        let person = end_users::of_caller(&self.core, &mut conn, &self.scope).await?;
        let own = end_users::own_devices(&mut conn, &person, &wanted).await?;
        drop(conn);
        let own: HashMap<i64, OwnDevice> = own
            .into_iter()
            .map(|one| (one.device_instance_id, one))
            .collect();
        for reception in receptions {
            let device_instance_id = reception.device_instance_id;
            let Some(own) = own.get(&device_instance_id) else {
                continue;
            };
            let since = own.since;
            let is_older =
                reception.ble_event_id < since.as_micros() || reception.observed_at < since;
            if is_older || reception.values.is_empty() {
                continue;
            }
            self.move_to(at, reception.ble_event_id);
            let item = SensorItemResponse::new(reception);
            self.send(
                VALUES,
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
