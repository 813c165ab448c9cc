//! Device instances: the single devices of a tenant, each of a model of its catalog. What
//! identifies a device on the air (its beacon, its identity resolving key, its address) belongs to
//! one device of the tenant that is not retired. Keys are stored sealed, and never read back to
//! anybody.

mod activations;
mod compiled;
mod deleted;
mod described;
mod display_name;
pub mod heard;
pub mod http;
mod identity;
mod keys;
pub mod states;
mod store;

use std::collections::{BTreeMap, HashMap};

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::patch::Change;
use hub_core::outbox::{self, Event, EventType};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::device_catalog;
use activations::Activation;
pub use activations::ActivationKind;
pub use activations::{
    delete_before as delete_activations_before, has_before as has_activations_before,
};
pub use compiled::{Compiled, compiled};
pub use deleted::{WAS_DELETED, WasDeleted};
pub use described::{KeysNear, described, keys_near};
pub use identity::Beacon;
pub use keys::{DeviceKey, KEY_WAS_SET, KeyWasSet, LANE};
use store::Identity;
pub use store::{DeviceCounts, Shown, Watched, counts, watched};
pub use store::{existing, forget_keys, hold_existing};

/// The most device instances of a tenant, retired ones included.
const MAX_INSTANCES: i64 = 100_000;
/// Characters of the key of a quantity.
pub const MAX_QUANTITY_CHARS: usize = 100;

/// The lifecycle state of a device. Retired is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActivationStatus {
    /// The device is known, and not in use yet.
    Registered,
    /// The device is in use.
    Active,
    /// The device is out of use for a while.
    Suspended,
    /// The device is out of use for good; its identity may be assigned to another one.
    Retired,
}

text_enum!(ActivationStatus {
    Registered = "REGISTERED",
    Active = "ACTIVE",
    Suspended = "SUSPENDED",
    Retired = "RETIRED",
});

/// The kind of a device's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AddressType {
    /// An address that is registered with the IEEE.
    #[serde(alias = "public")]
    Public,
    /// An address that the device or its maker chose.
    #[serde(alias = "random")]
    Random,
}

text_enum!(AddressType { Public = "PUBLIC", Random = "RANDOM" });

/// The state of the key that a device encrypts its advertisements with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BindKeyStatus {
    /// No key is set.
    None,
    /// The key is set, and no advertisement has been decrypted with it yet.
    Set,
    /// Advertisements are read with it.
    Verified,
    /// The key does not fit the advertisements of the device.
    Wrong,
}

text_enum!(BindKeyStatus { None = "NONE", Set = "SET", Verified = "VERIFIED", Wrong = "WRONG" });

/// The correction of a quantity: the value is multiplied by `scale`, then `offset` is added.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// The offset in the unit of the quantity; 0 when absent.
    #[schemars(range(min = -MAX_CALIBRATION, max = MAX_CALIBRATION))]
    offset: Option<f64>,
    /// The factor; 1 when absent, never 0.
    #[schemars(range(min = -MAX_CALIBRATION, max = MAX_CALIBRATION))]
    scale: Option<f64>,
}

/// The largest number of a calibration.
const MAX_CALIBRATION: f64 = 1e9;

/// A device.
#[derive(Clone, Debug)]
pub struct Instance {
    pub device_instance_id: i64,
    pub device_uuid: Uuid,
    pub device_version_uuid: Option<Uuid>,
    pub name: Option<String>,
    pub address: Option<String>,
    pub address_type: Option<AddressType>,
    pub beacon: Option<Beacon>,
    pub serial_number: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// The corrections by quantity.
    pub calibration: BTreeMap<String, Calibration>,
    pub activation_status: ActivationStatus,
    pub bind_key_status: BindKeyStatus,
    pub has_identity_resolving_key: bool,
    pub created_at: Timestamp,
    /// When it first became active.
    pub activated_at: Option<Timestamp>,
    pub retired_at: Option<Timestamp>,
}

/// The last reception of a device.
#[derive(Clone, Debug)]
pub struct Heard {
    pub last_seen_at: Option<Timestamp>,
    pub last_rssi_dbm: Option<i64>,
    pub nearest_hub_uuid: Option<HubUuid>,
    pub nearest_rssi_dbm: Option<i64>,
    pub nearest_since: Option<Timestamp>,
    pub online_until: Option<Timestamp>,
    pub state: BTreeMap<String, LastValue>,
}

/// The last value of a quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastValue {
    /// A number, a text or a boolean.
    #[schemars(extend("type" = ["number", "string", "boolean"]))]
    pub value: Value,
    /// The unit of a number, as in the SenML registry; null for what has none.
    pub unit: Option<String>,
    /// When the device sent it.
    pub at: Timestamp,
}

impl Instance {
    /// The representation in the audit log, which contains whether keys are set and never the keys.
    fn audited(&self) -> Value {
        json!({
            "deviceUuid": self.device_uuid,
            "deviceVersionUuid": self.device_version_uuid,
            "name": self.name,
            "address": self.address,
            "addressType": self.address_type,
            "beacon": self.beacon,
            "serialNumber": self.serial_number,
            "labels": self.labels,
            "calibration": self.calibration,
            "activationStatus": self.activation_status,
            "bindKeyStatus": self.bind_key_status,
            "identityResolvingKeySet": self.has_identity_resolving_key,
        })
    }

    /// The members that a change has changed, before and after.
    fn difference(&self, after: &Self) -> (Value, Value) {
        let (mut old, mut new) = (self.audited(), after.audited());
        if let (Some(old), Some(new)) = (old.as_object_mut(), new.as_object_mut()) {
            let is_same = |name: &str, value: &Value| new.get(name) == Some(value);
            let same: Vec<String> = old
                .iter()
                .filter(|(name, value)| is_same(name, value))
                .map(|(name, _)| name.clone())
                .collect();
            for name in same {
                old.remove(&name);
                new.remove(&name);
            }
        }
        (old, new)
    }

    fn event(&self, event_type: EventType, hub_uuid: Option<HubUuid>) -> Event {
        Event::device(
            event_type,
            hub_uuid,
            self.device_instance_id,
            self.device_uuid,
        )
    }

    fn require_not_retired(&self) -> Result<()> {
        match self.retired_at {
            None => Ok(()),
            Some(_) => Err(Error::conflict(
                "DEVICE_RETIRED",
                "this device is retired, which is final: delete it, or register it again",
            )),
        }
    }
}

/// A device to register.
pub struct NewInstance {
    pub device_uuid: Uuid,
    pub device_version_uuid: Option<Uuid>,
    pub name: Option<String>,
    /// The normalised address.
    pub address: Option<String>,
    pub address_type: Option<AddressType>,
    /// The valid beacon.
    pub beacon: Option<Beacon>,
    pub serial_number: Option<String>,
    pub bind_key: Option<DeviceKey>,
    pub identity_resolving_key: Option<DeviceKey>,
    pub labels: BTreeMap<String, String>,
    pub calibration: BTreeMap<String, Calibration>,
}

/// The changes to a device.
pub struct Update {
    pub device_version_uuid: Change<Uuid>,
    pub name: Change<String>,
    pub serial_number: Change<String>,
    pub bind_key: Change<DeviceKey>,
    pub identity_resolving_key: Change<DeviceKey>,
    /// The labels, which are replaced as a whole.
    pub labels: Change<BTreeMap<String, String>>,
    /// The corrections, which are replaced as a whole.
    pub calibration: Change<BTreeMap<String, Calibration>>,
}

/// Registers a device and returns its id. 409 if another one has its beacon, its identity resolving
/// key or its address.
async fn create(core: &Core, scope: &Scope, new: NewInstance) -> Result<i64> {
    // Counted ahead of the transaction, which would hold others up: those that are registered at
    // the same moment may exceed the limit by their number.
    if store::count(&mut core.db.read().await?, scope, MAX_INSTANCES).await? >= MAX_INSTANCES {
        let message =
            format!("a tenant may have at most {MAX_INSTANCES} devices; delete some first");
        return Err(Error::conflict("TOO_MANY_DEVICES", message));
    }
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    // After this, no other transaction changes the tenant's catalog or assigns the identity of a
    // device.
    let revision = device_catalog::raise_revision(core, &mut tx, scope).await?;
    if device_catalog::name_of(&mut tx, scope, new.device_uuid)
        .await?
        .is_none()
    {
        return Err(Error::not_found("device model"));
    }
    require_version(&mut tx, scope, new.device_uuid, new.device_version_uuid).await?;
    let mut instance = Instance {
        device_instance_id: 0,
        device_uuid: new.device_uuid,
        device_version_uuid: new.device_version_uuid,
        name: new.name,
        address: new.address,
        address_type: new.address_type,
        beacon: new.beacon,
        serial_number: new.serial_number,
        labels: new.labels,
        calibration: new.calibration,
        activation_status: ActivationStatus::Registered,
        bind_key_status: BindKeyStatus::None,
        has_identity_resolving_key: false,
        created_at: now,
        activated_at: None,
        retired_at: None,
    };
    if let Some(beacon) = instance.beacon.as_ref().and_then(Beacon::to_text) {
        require_free(&mut tx, scope, Identity::Beacon(&beacon)).await?;
    }
    if let Some(address) = &instance.address {
        require_free(&mut tx, scope, Identity::Address(address)).await?;
    }
    instance.device_instance_id = store::insert(&mut tx, scope, &instance).await?;
    if let Some(key) = &new.bind_key {
        set_bind_key(core, &mut tx, scope, &mut instance, Some(key)).await?;
    }
    if let Some(key) = &new.identity_resolving_key {
        set_identity_resolving_key(core, &mut tx, scope, &mut instance, Some(key)).await?;
    }
    store::mark_changed(&mut tx, scope, instance.device_instance_id, revision).await?;
    let event = instance.event(EventType::DeviceRegistered, None);
    outbox::insert(core, &mut tx, scope.tenant_uuid(), &[event], now).await?;
    let audit = Audit::new(scope, "device.create", instance.device_instance_id, now);
    tx.commit(audit.changed(None, Some(instance.audited())))
        .await?;
    Ok(instance.device_instance_id)
}

/// Changes a device that is not retired.
async fn update(core: &Core, scope: &Scope, device_instance_id: i64, update: Update) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let before = lock(&mut tx, scope, device_instance_id).await?;
    before.require_not_retired()?;
    let mut after = before.clone();
    after.device_version_uuid = update.device_version_uuid.of(before.device_version_uuid);
    after.name = update.name.of(before.name.clone());
    after.serial_number = update.serial_number.of(before.serial_number.clone());
    after.labels = update
        .labels
        .of(Some(before.labels.clone()))
        .unwrap_or_default();
    after.calibration = update
        .calibration
        .of(Some(before.calibration.clone()))
        .unwrap_or_default();
    let bind_key = changed_key(
        &update.bind_key,
        before.bind_key_status != BindKeyStatus::None,
    );
    let resolving_key = changed_key(
        &update.identity_resolving_key,
        before.has_identity_resolving_key,
    );
    let changes_reading = after.device_version_uuid != before.device_version_uuid
        || after.calibration != before.calibration
        || after.name != before.name;
    if changes_reading || bind_key.is_some() || resolving_key.is_some() {
        let revision = device_catalog::raise_revision(core, &mut tx, scope).await?;
        store::mark_changed(&mut tx, scope, device_instance_id, revision).await?;
    } else if after.audited() == before.audited() {
        return Ok(());
    }
    if after.device_version_uuid != before.device_version_uuid {
        require_version(&mut tx, scope, after.device_uuid, after.device_version_uuid).await?;
    }
    store::update(&mut tx, scope, &after).await?;
    let detail = json!({"bindKeyChanged": bind_key.is_some(), "identityResolvingKeyChanged": resolving_key.is_some()});
    if let Some(key) = bind_key {
        set_bind_key(core, &mut tx, scope, &mut after, key).await?;
        if key.is_some() {
            let fact = KeyWasSet {
                tenant_uuid: scope.tenant_uuid(),
                device_instance_id,
            };
            fact.commit_with(core, &mut tx, core.clock.now()).await?;
        }
    }
    if let Some(key) = resolving_key {
        set_identity_resolving_key(core, &mut tx, scope, &mut after, key).await?;
    }
    let audit = Audit::new(scope, "device.update", device_instance_id, core.clock.now());
    let (old, new) = before.difference(&after);
    tx.commit(audit.changed(Some(old), Some(new)).with(detail))
        .await
}

/// The key to set, or None to clear it; None if there is nothing to change.
fn changed_key(change: &Change<DeviceKey>, is_set: bool) -> Option<Option<&DeviceKey>> {
    match change {
        Change::Set(key) => Some(Some(key)),
        Change::Clear if is_set => Some(None),
        Change::Clear | Change::Keep => None,
    }
}

async fn set_bind_key(
    core: &Core,
    tx: &mut Tx,
    scope: &Scope,
    instance: &mut Instance,
    key: Option<&DeviceKey>,
) -> Result<()> {
    instance.bind_key_status = if key.is_some() {
        BindKeyStatus::Set
    } else {
        BindKeyStatus::None
    };
    let sealed = key.map(|key| key.sealed_as_bind_key(core, instance.device_instance_id));
    store::set_bind_key(
        tx,
        scope,
        instance.device_instance_id,
        sealed,
        instance.bind_key_status,
    )
    .await
}

/// 409 if another device has the key. The caller has raised the revision.
async fn set_identity_resolving_key(
    core: &Core,
    tx: &mut Tx,
    scope: &Scope,
    instance: &mut Instance,
    key: Option<&DeviceKey>,
) -> Result<()> {
    let hash = key.map(|key| key.hash(scope.tenant_uuid()));
    if let Some(hash) = &hash {
        let other = store::holder(tx, scope, Identity::ResolvingKey(hash)).await?;
        if let Some(other) = other.filter(|other| *other != instance.device_instance_id) {
            return Err(taken(other, Identity::ResolvingKey(hash)));
        }
    }
    instance.has_identity_resolving_key = key.is_some();
    let sealed =
        key.map(|key| key.sealed_as_identity_resolving_key(core, instance.device_instance_id));
    store::set_identity_resolving_key(tx, scope, instance.device_instance_id, sealed, hash).await
}

/// 409 if a device has the identity that another one is to get. The caller has raised the revision.
async fn require_free(tx: &mut Tx, scope: &Scope, identity: Identity<'_>) -> Result<()> {
    match store::holder(tx, scope, identity).await? {
        None => Ok(()),
        Some(other) => Err(taken(other, identity)),
    }
}

fn taken(other: i64, identity: Identity<'_>) -> Error {
    let what = identity.name();
    let message = format!("the device {other} has this {what}; retire or delete it first");
    Error::conflict("DEVICE_IDENTITY_TAKEN", message)
}

async fn require_version(
    tx: &mut Tx,
    scope: &Scope,
    device_uuid: Uuid,
    version: Option<Uuid>,
) -> Result<()> {
    match version {
        Some(version)
            if !device_catalog::version_exists(tx, scope, device_uuid, version).await? =>
        {
            Err(Error::not_found("device version"))
        }
        _ => Ok(()),
    }
}

/// An operator's change of a device's status.
#[derive(Clone, Copy, Debug)]
enum Step {
    Activate,
    Suspend,
    Retire,
}

impl Step {
    const fn status(self) -> ActivationStatus {
        match self {
            Self::Activate => ActivationStatus::Active,
            Self::Suspend => ActivationStatus::Suspended,
            Self::Retire => ActivationStatus::Retired,
        }
    }

    const fn action(self) -> &'static str {
        match self {
            Self::Activate => "device.activate",
            Self::Suspend => "device.suspend",
            Self::Retire => "device.retire",
        }
    }

    /// The type of the event for the tenant's own system.
    const fn event_type(self) -> Option<EventType> {
        match self {
            Self::Activate => Some(EventType::DeviceActivated),
            Self::Suspend => None,
            Self::Retire => Some(EventType::DeviceRetired),
        }
    }
}

/// Sets the status of a device. A device that has it already stays unchanged.
async fn change_status(
    core: &Core,
    scope: &Scope,
    device_instance_id: i64,
    step: Step,
) -> Result<()> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let before = lock(&mut tx, scope, device_instance_id).await?;
    before.require_not_retired()?;
    if before.activation_status == step.status() {
        return Ok(());
    }
    let mut after = before.clone();
    after.activation_status = step.status();
    let revision = device_catalog::raise_revision(core, &mut tx, scope).await?;
    store::mark_changed(&mut tx, scope, device_instance_id, revision).await?;
    match step {
        Step::Activate => {
            after.activated_at = before.activated_at.or(Some(now));
            let kind = ActivationKind::Operator;
            let activation = Activation {
                hub_uuid: None,
                device_instance_id,
                kind,
                occurred_at: now,
            };
            activations::insert(&mut tx, scope, &activation).await?;
        }
        Step::Suspend => {}
        Step::Retire => after.retired_at = Some(now),
    }
    store::update(&mut tx, scope, &after).await?;
    if let Some(event_type) = step.event_type() {
        outbox::insert(
            core,
            &mut tx,
            scope.tenant_uuid(),
            &[after.event(event_type, None)],
            now,
        )
        .await?;
    }
    let (old, new) = before.difference(&after);
    tx.commit(
        Audit::new(scope, step.action(), device_instance_id, now).changed(Some(old), Some(new)),
    )
    .await
}

/// The name of a device as people see it.
pub async fn display_name(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
) -> Result<Option<String>> {
    store::display_name(conn, tenant_uuid, device_instance_id).await
}

/// Deletes a device for good, in any status. Its BLE events and activations stay.
async fn delete(core: &Core, scope: &Scope, device_instance_id: i64) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let before = lock(&mut tx, scope, device_instance_id).await?;
    device_catalog::raise_models(core, &mut tx, scope).await?;
    store::delete(&mut tx, scope, device_instance_id).await?;
    let now = core.clock.now();
    let deleted = WasDeleted {
        tenant_uuid: scope.tenant_uuid(),
        device_instance_id,
    };
    deleted.commit_with(core, &mut tx, now).await?;
    let audit = Audit::new(scope, "device.delete", device_instance_id, now);
    tx.commit(audit.changed(Some(before.audited()), None)).await
}

/// The tenant's device, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, device_instance_id: i64) -> Result<Instance> {
    store::lock(tx, scope, device_instance_id)
        .await?
        .ok_or_else(not_found)
}

/// At most a page of devices of any tenants, in no order. The caller has checked that they may be
/// shown.
pub async fn shown(conn: &mut Conn, device_instance_ids: &[i64]) -> Result<Vec<Shown>> {
    match device_instance_ids.is_empty() {
        true => Ok(Vec::new()),
        false => store::shown(conn, device_instance_ids).await,
    }
}

/// The tenant's device.
pub async fn get(conn: &mut Conn, scope: &Scope, device_instance_id: i64) -> Result<Shown> {
    store::get(conn, scope, device_instance_id)
        .await?
        .ok_or_else(not_found)
}

fn not_found() -> Error {
    Error::not_found("device")
}

/// The tenants of the given devices that exist; a short list. The devices stay until the
/// transaction ends. The caller decides who may see them.
pub async fn held_tenants(
    tx: &mut Tx,
    device_instance_ids: &[i64],
) -> Result<HashMap<i64, TenantUuid>> {
    match device_instance_ids.is_empty() {
        true => Ok(HashMap::new()),
        false => store::held_tenants(tx, device_instance_ids)
            .await
            .map(HashMap::from_iter),
    }
}

/// The interval of the tenant's device in seconds, if it is known: learned, or of its model.
pub async fn interval_secs(
    conn: &mut Conn,
    scope: &Scope,
    device_instance_id: i64,
) -> Result<Option<i64>> {
    let interval = store::interval_secs(conn, scope, device_instance_id).await?;
    interval.ok_or_else(not_found)
}

/// Fails unless the device is the tenant's.
pub async fn require(conn: &mut Conn, scope: &Scope, device_instance_id: i64) -> Result<()> {
    interval_secs(conn, scope, device_instance_id)
        .await
        .map(|_| ())
}

/// Deletes a device that only the hubs of a person whose account is being deleted have ever heard,
/// with its stored data. The caller commits.
pub async fn forget(
    core: &Core,
    tx: &mut Tx,
    scope: &Scope,
    device_instance_id: i64,
) -> Result<()> {
    if store::lock(tx, scope, device_instance_id).await?.is_some() {
        device_catalog::raise_models(core, tx, scope).await?;
        store::delete(tx, scope, device_instance_id).await?;
    }
    Ok(())
}
