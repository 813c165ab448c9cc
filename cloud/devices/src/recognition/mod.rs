//! Recognition: which device of a tenant sent an advertisement, and what it says. The catalog of a
//! tenant is compiled once and shared by all requests; a change of it is seen by the next upload.
//!
//! Each change of a catalog raises the tenant's revision in its transaction. A change of models
//! makes readers read all of it (`models_revision`); a change of a device bears the revision in its
//! own row, and only such rows are read. `Core::catalog_revisions` has the latest revision that the
//! process knows: from its own commits, and from the writer of uploads, whose first statement
//! returns it.
//!
//! Anybody can send frames with the address of another device. So a key that was verified never
//! becomes wrong by a frame, and a counter that goes back flags the event and changes no state.

mod late;
mod states;
#[cfg(test)]
mod tests;
mod tracked;
mod unknown;
mod unread;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use hub_adverts::advertisement::address_text;
use hub_adverts::builtin::noise;
use hub_adverts::catalog::{Advertisers, Before, Catalog, KeyUse, Read};
use hub_adverts::{AddressType, Frame, Identity, Sequence};
use hub_base::db::Tx;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_fleet::hubs;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_ingest::{Derived, Due, HeardUpload};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use quick_cache::sync::Cache;
use serde_json::json;
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

use crate::ble_routes::{self, Route};
use crate::device_instances::heard::{self, Changes, NewDevice};
use crate::device_instances::{ActivationKind, ActivationStatus, Beacon, BindKeyStatus};
use crate::{device_catalog, device_instances};
pub use late::LateStates;
use states::States;
use unknown::Unknown;
pub use unknown::{Sightings, UnreadModel};
use unread::NotedUnread;
pub use unread::{UNREAD, Unread};

/// The most tenants whose catalog is kept compiled.
const MAX_TENANTS: usize = 4096;
/// Catalogs are read by background work of this name.
const NAME: &str = "recognition";
/// The most devices of an upload whose decreased counter is recorded in the audit log.
const MAX_REPLAYS_AUDITED: usize = 8;

/// The parts of what was heard of advertisers before, which uploads of different hubs lock.
const PARTS: usize = 16;

/// A tenant's catalog, compiled.
pub struct TenantCatalog {
    pub revision: i64,
    models_revision: i64,
    /// The protocols that versions of models name.
    protocols: Arc<BTreeMap<Uuid, i64>>,
    pub catalog: Catalog,
    /// The route of events that have arrived.
    pub route: Arc<Route>,
    statuses: HashMap<i64, (ActivationStatus, BindKeyStatus)>,
    advertisers: Arc<HeardBefore>,
}

/// What was heard of advertisers before, in parts that hubs are shared out among.
type HeardBefore = [std::sync::Mutex<Advertisers>; PARTS];

#[derive(Default)]
struct Slot {
    current: RwLock<Option<Arc<TenantCatalog>>>,
    loading: Mutex<()>,
    /// The lock of changes of devices by receptions.
    changing: Arc<Mutex<()>>,
}

impl Slot {
    fn current(&self) -> Option<Arc<TenantCatalog>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The compiled catalogs and the states of devices; cheap to clone.
#[derive(Clone)]
pub struct Recognition {
    core: Core,
    slots: Arc<Cache<TenantUuid, Arc<Slot>>>,
    derived: Arc<DeviceRows>,
    unread: Arc<NotedUnread>,
    advertisers: Arc<HeardBefore>,
}

/// The rows that the writer of uploads writes with them.
#[derive(Default)]
struct DeviceRows {
    states: States,
    unknown: Unknown,
}

impl Recognition {
    pub fn new(core: &Core) -> Self {
        Self {
            core: core.clone(),
            slots: Arc::new(Cache::new(MAX_TENANTS)),
            derived: Arc::default(),
            unread: Arc::default(),
            advertisers: Arc::new(std::array::from_fn(|_| std::sync::Mutex::default())),
        }
    }

    /// Has events read again that are stored next, and whose scripts had no time.
    pub async fn note_unread(&self, tenant_uuid: TenantUuid) -> Result<()> {
        self.unread.note(&self.core, tenant_uuid).await
    }

    /// The rows that the writer of uploads writes with them.
    pub fn derived(&self) -> Arc<dyn Derived> {
        self.derived.clone()
    }

    fn slot(&self, tenant_uuid: TenantUuid) -> Arc<Slot> {
        if let Some(slot) = self.slots.get(&tenant_uuid) {
            return slot;
        }
        let slot = Arc::new(Slot::default());
        self.slots.insert(tenant_uuid, slot.clone());
        slot
    }

    /// Waits until no other request changes devices of the tenant by hearing them. Many hubs hear a
    /// new device at the same time: after the first has registered it, the others have nothing to
    /// write.
    pub async fn begin_changes(&self, tenant_uuid: TenantUuid) -> OwnedMutexGuard<()> {
        self.slot(tenant_uuid).changing.clone().lock_owned().await
    }

    /// The tenant's catalog as of the last change that this process has seen.
    pub async fn catalog(&self, tenant_uuid: TenantUuid) -> Result<Arc<TenantCatalog>> {
        let slot = self.slot(tenant_uuid);
        let fresh = || {
            let latest = self.core.catalog_revisions.latest(tenant_uuid)?;
            slot.current().filter(|current| current.revision >= latest)
        };
        if let Some(current) = fresh() {
            return Ok(current);
        }
        let _loading = slot.loading.lock().await;
        if let Some(current) = fresh() {
            return Ok(current);
        }
        let loaded = Arc::new(self.load(tenant_uuid, slot.current()).await?);
        self.core
            .catalog_revisions
            .note(tenant_uuid, loaded.revision);
        *slot.current.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded.clone());
        Ok(loaded)
    }

    /// Reads what has changed; all of it if models have.
    async fn load(
        &self,
        tenant_uuid: TenantUuid,
        current: Option<Arc<TenantCatalog>>,
    ) -> Result<TenantCatalog> {
        let scope = &Scope::system(NAME, tenant_uuid);
        let mut conn = self.core.db.read().await?;
        // The revision is read first: a change between the reads is read twice rather than never.
        let (revision, models_revision) = device_catalog::revisions(&mut conn, scope).await?;
        let current = current.filter(|current| current.models_revision >= models_revision);
        let protocols = match &current {
            Some(current) => current.protocols.clone(),
            None => Arc::new(device_catalog::protocols_of_versions(&mut conn, scope).await?),
        };
        let route = match &current {
            Some(current) => current.route.clone(),
            None => Arc::new(ble_routes::get(&mut conn, tenant_uuid).await?),
        };
        let after = current.as_ref().map_or(0, |current| current.revision);
        let (devices, retired) =
            device_instances::compiled(&self.core, &mut conn, scope, after, &protocols).await?;
        let mut statuses = current
            .as_ref()
            .map_or_else(HashMap::new, |current| current.statuses.clone());
        let mut instances = Vec::with_capacity(devices.len());
        for device in devices {
            statuses.insert(
                device.instance.device_instance_id,
                (device.activation_status, device.bind_key_status),
            );
            instances.push(device.instance);
        }
        let catalog = match &current {
            Some(current) => current.catalog.with(instances, &retired),
            None => {
                let models = device_catalog::compiled(&mut conn, scope).await?;
                Catalog::new(Arc::new(models), instances)
            }
        };
        Ok(TenantCatalog {
            revision,
            models_revision,
            protocols,
            catalog,
            route,
            statuses,
            advertisers: self.advertisers.clone(),
        })
    }

    /// Makes the changes of devices by receptions, if the hub's token is in force.
    pub async fn apply(&self, hub: &Hub, kind: ActivationKind, changes: &Changes) -> Result<()> {
        hub.require_in_force(&self.core).await?;
        // The receptions of such a hub are private.
        if hubs::withholds_events(&mut self.core.db.read().await?, hub.hub_uuid).await? {
            return Ok(());
        }
        heard::apply(&self.core, &Scope::of_hub(hub), hub.hub_uuid, kind, changes).await
    }

    /// The tenant's catalog as of now, also if another replica has changed it.
    pub async fn latest_catalog(&self, tenant_uuid: TenantUuid) -> Result<Arc<TenantCatalog>> {
        let mut conn = self.core.db.read().await?;
        let (revision, _) =
            device_catalog::revisions(&mut conn, &Scope::system(NAME, tenant_uuid)).await?;
        drop(conn);
        self.core.catalog_revisions.note(tenant_uuid, revision);
        self.catalog(tenant_uuid).await
    }

    /// Adds the advertisers of a stored upload of which no model is known.
    pub fn note_unknown(&self, hub: &Hub, sightings: Sightings) {
        if !sightings.is_empty() {
            self.derived
                .unknown
                .note(hub.tenant_uuid, hub.hub_uuid, sightings);
        }
    }

    /// The given events that may be recordings, since their authenticated counter decreased.
    pub async fn replayed(&self, hub: &Hub, counters: &[Counter]) -> Result<Vec<bool>> {
        let unknown = self
            .derived
            .states
            .unknown(counters.iter().map(|counter| counter.device_instance_id));
        if !unknown.is_empty() {
            let mut conn = self.core.db.read().await?;
            self.derived
                .states
                .load(&mut conn, hub.tenant_uuid, &unknown)
                .await?;
        }
        let now = self.core.clock.now();
        let is_replayed = |counter: &Counter| {
            self.derived.states.is_replayed(
                counter.device_instance_id,
                counter.sequence,
                counter.observed_at.min(now),
            )
        };
        let replayed: Vec<bool> = counters.iter().map(is_replayed).collect();
        let mut devices: Vec<i64> = counters
            .iter()
            .zip(&replayed)
            .filter(|(_, replayed)| **replayed)
            .map(|(counter, _)| counter.device_instance_id)
            .collect();
        devices.sort_unstable();
        devices.dedup();
        devices.retain(|id| self.derived.states.may_audit_replay(*id, now));
        for id in devices.into_iter().take(MAX_REPLAYS_AUDITED) {
            self.audit_replay(hub, id, now).await?;
        }
        Ok(replayed)
    }

    async fn audit_replay(&self, hub: &Hub, device_instance_id: i64, now: Timestamp) -> Result<()> {
        let tx = self.core.db.begin().await?;
        let audit = Audit::new(
            &Scope::of_hub(hub),
            "device.counter_replayed",
            device_instance_id,
            now,
        );
        tx.commit(audit.with(json!({"hubUuid": hub.hub_uuid})))
            .await
    }
}

impl Derived for DeviceRows {
    fn write<'a>(
        &'a self,
        tx: &'a mut Tx,
        heard: &'a [HeardUpload<'a>],
        due: Due,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.states.write(tx, heard, due, now).await?;
            let theirs: Option<HashSet<TenantUuid>> = (due == Due::Theirs)
                .then(|| heard.iter().map(|upload| upload.tenant_uuid).collect());
            self.unknown
                .write(tx, theirs.as_ref(), due == Due::All, now)
                .await
        })
    }

    fn committed(&self, now: Timestamp) {
        self.states.committed();
        self.unknown.committed(now);
    }

    fn is_waiting(&self) -> bool {
        self.states.is_waiting() || self.unknown.is_waiting()
    }
}

/// An event with an authenticated counter.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    pub device_instance_id: i64,
    pub sequence: Sequence,
    pub observed_at: Timestamp,
}

/// What stands for the advertiser of a frame as a hub hears it.
pub fn advertiser_key(hub_uuid: HubUuid, frame: &Frame<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (hub_uuid, frame.address).hash(&mut hasher);
    hasher.finish()
}

impl TenantCatalog {
    /// What the hub has heard of the advertiser of a frame before, which this process remembers as
    /// far as it read it.
    pub fn before(&self, hub_uuid: HubUuid, frame: &Frame<'_>) -> Before {
        if self.catalog.is_empty() {
            return Before::default();
        }
        let key = advertiser_key(hub_uuid, frame);
        let part = usize::try_from(hub_uuid.0.as_u128() % PARTS as u128).unwrap_or_default();
        let Some(part) = self.advertisers.get(part) else {
            return Before::default();
        };
        // Manufacturer data is compared only where that decides what is read.
        let manufacturer_data = match self.catalog.models().takes_several_companies() {
            true => frame.manufacturer_data,
            false => &[],
        };
        let noted = Frame {
            manufacturer_data,
            ..*frame
        };
        let mut advertisers = part.lock().unwrap_or_else(PoisonError::into_inner);
        advertisers.note(key, &noted)
    }

    /// Adds to `changes` the changes of the device by a frame that was read. Returns whether that
    /// registers a device: the frame has to be read again afterwards.
    pub fn note(&self, frame: &Frame<'_>, read: &Read<'_>, changes: &mut Changes) -> bool {
        if let Some(instance) = read.instance {
            self.change(instance.device_instance_id, read, changes);
            return false;
        }
        let Some(new) = new_device(frame, read) else {
            return false;
        };
        if changes.register.len() < heard::MAX_NEW && !changes.register.contains(&new) {
            changes.register.push(new);
        }
        true
    }

    /// The status of a device.
    pub fn activation_status(&self, device_instance_id: i64) -> Option<ActivationStatus> {
        self.statuses
            .get(&device_instance_id)
            .map(|(status, _)| *status)
    }

    /// Leaves out what has been changed meanwhile. Registrations are not looked at.
    pub fn retain_due(&self, changes: &mut Changes) {
        let status = |id: &i64| self.statuses.get(id);
        changes.activate.retain(|id| {
            status(id).is_some_and(|(status, _)| *status == ActivationStatus::Registered)
        });
        changes
            .bind_keys
            .retain(|id, proved| status(id).is_some_and(|(_, bind_key)| bind_key != proved));
    }

    /// Whether a frame that the bind key of the device reads proves something that is not known.
    pub fn may_be_proved(&self, device_instance_id: i64) -> bool {
        let status = self
            .statuses
            .get(&device_instance_id)
            .map(|(_, status)| *status);
        matches!(status, Some(BindKeyStatus::Set | BindKeyStatus::Wrong))
    }

    fn change(&self, id: i64, read: &Read<'_>, changes: &mut Changes) {
        let Some((activation, bind_key)) = self.statuses.get(&id) else {
            return;
        };
        if *activation == ActivationStatus::Registered && !changes.activate.contains(&id) {
            changes.activate.push(id);
        }
        // A frame that the key reads proves it. A key that was proved stays so: anybody can send
        // frames that it does not read.
        let proved = match (read.key, bind_key) {
            (Some(KeyUse::Verified), BindKeyStatus::Set | BindKeyStatus::Wrong) => {
                Some(BindKeyStatus::Verified)
            }
            (Some(KeyUse::Wrong), BindKeyStatus::Set) => Some(BindKeyStatus::Wrong),
            _ => None,
        };
        if let Some(status) = proved {
            let known = changes.bind_keys.entry(id).or_insert(status);
            if status == BindKeyStatus::Verified {
                *known = status;
            }
        }
    }
}

/// The device to register, if its model wants that and the device is identifiable: by a fixed
/// address, or by its beacon where the address changes. Makers send one beacon from all their
/// devices, so a beacon does not make one device of several fixed addresses.
fn new_device(frame: &Frame<'_>, read: &Read<'_>) -> Option<NewDevice> {
    let model = read.model.filter(|model| model.auto_register)?;
    if noise::of(frame).is_some() && read.identifier.is_none() {
        return None;
    }
    let named = |beacon: Option<String>, address: Option<[u8; 6]>, is_random_address| NewDevice {
        device_uuid: model.device_uuid,
        beacon,
        address: address.map(address_text),
        is_random_address,
    };
    let beacon = |beacon: Beacon| Some(named(Some(beacon.to_text()?), None, false));
    let rotates = unknown::rotates(frame) || frame.address.is_none();
    match read
        .facts
        .identity
        .filter(|identity| rotates || matches!(identity, Identity::Mac(_)))
    {
        Some(Identity::Beacon { uuid, major, minor }) => beacon(Beacon {
            uuid: Some(uuid),
            major: Some(major.into()),
            minor: Some(minor.into()),
            namespace: None,
            instance: None,
        }),
        Some(Identity::Eddystone {
            namespace,
            instance,
        }) => beacon(Beacon {
            uuid: None,
            major: None,
            minor: None,
            namespace: Some(hex::encode(namespace)),
            instance: Some(hex::encode(instance)),
        }),
        Some(Identity::Mac(address)) => Some(named(None, Some(address), false)),
        Some(Identity::MacTail(_)) | None => {
            let address = frame.address?;
            let is_random = frame.address_type == Some(AddressType::Random);
            (!unknown::rotates(frame)).then(|| named(None, Some(address), is_random))
        }
    }
}
