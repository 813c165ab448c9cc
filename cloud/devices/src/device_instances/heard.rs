//! What a device changes by being heard: it becomes active, its key proves right or wrong, and a
//! device of a model with `autoRegister` is registered.

use std::collections::BTreeMap;

use hub_base::db::Tx;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::audit::{self, Audit};
use hub_core::outbox::{self, Event, EventType};
use hub_identity::authz::Scope;
use hub_protocol::HubUuid;
use uuid::Uuid;

use super::activations::{self, Activation, ActivationKind};
use super::store::{self, Identity};
use super::{ActivationStatus, AddressType, Beacon, BindKeyStatus, Instance, MAX_INSTANCES};
use crate::device_catalog;

/// Devices that one upload registers. The others are registered with later ones.
pub const MAX_NEW: usize = 256;

/// A device of a model with `autoRegister` that is not registered yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewDevice {
    pub device_uuid: Uuid,
    /// The beacon in the form of [`Beacon::to_text`].
    pub beacon: Option<String>,
    /// The address in upper case. None for a device that its beacon identifies.
    pub address: Option<String>,
    pub is_random_address: bool,
}

/// The changes to make.
#[derive(Debug, Default)]
pub struct Changes {
    pub activate: Vec<i64>,
    pub bind_keys: BTreeMap<i64, BindKeyStatus>,
    pub register: Vec<NewDevice>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.activate.is_empty() && self.bind_keys.is_empty() && self.register.is_empty()
    }
}

/// Carries the changes out, as far as they still apply. The scope is that of the hub.
pub async fn apply(
    core: &Core,
    scope: &Scope,
    hub_uuid: HubUuid,
    kind: ActivationKind,
    changes: &Changes,
) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let mut ids: Vec<i64> = changes
        .activate
        .iter()
        .chain(changes.bind_keys.keys())
        .copied()
        .collect();
    ids.sort_unstable();
    ids.dedup();
    // The devices are locked before the catalog is, as by all changes of a device.
    let mut instances = Vec::with_capacity(ids.len());
    for id in ids {
        instances.extend(store::lock(&mut tx, scope, id).await?);
    }
    let revision = device_catalog::raise_revision(core, &mut tx, scope).await?;
    let mut entries = Vec::new();
    let mut events = Vec::new();
    for instance in &instances {
        entries.extend(
            change(
                core,
                &mut tx,
                scope,
                hub_uuid,
                kind,
                changes,
                instance,
                revision,
                &mut events,
            )
            .await?,
        );
    }
    let room = MAX_INSTANCES - store::count(&mut tx, scope, MAX_INSTANCES).await?;
    for new in changes
        .register
        .iter()
        .take(usize::try_from(room).unwrap_or(0).min(MAX_NEW))
    {
        entries.extend(
            register(
                core,
                &mut tx,
                scope,
                hub_uuid,
                kind,
                new,
                revision,
                &mut events,
            )
            .await?,
        );
    }
    // Without entries, another process was faster.
    let Some(last) = entries.pop() else {
        return Ok(());
    };
    outbox::insert(
        core,
        &mut tx,
        scope.tenant_uuid(),
        &events,
        core.clock.now(),
    )
    .await?;
    for entry in entries {
        audit::insert(&mut tx, entry).await?;
    }
    tx.commit(last).await
}

#[allow(
    clippy::too_many_arguments,
    reason = "they are what one change consists of"
)]
async fn change(
    core: &Core,
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    kind: ActivationKind,
    changes: &Changes,
    before: &Instance,
    revision: i64,
    events: &mut Vec<Event>,
) -> Result<Option<Audit>> {
    let now = core.clock.now();
    let id = before.device_instance_id;
    let mut after = before.clone();
    let is_activated =
        changes.activate.contains(&id) && before.activation_status == ActivationStatus::Registered;
    if is_activated {
        after.activation_status = ActivationStatus::Active;
        after.activated_at = before.activated_at.or(Some(now));
        let activation = Activation {
            hub_uuid: Some(hub_uuid),
            device_instance_id: id,
            kind,
            occurred_at: now,
        };
        activations::insert(tx, scope, &activation).await?;
        store::update(tx, scope, &after).await?;
        events.push(after.event(EventType::DeviceActivated, Some(hub_uuid)));
    }
    // A key that was cleared meanwhile has no status to prove.
    if let Some(status) = changes
        .bind_keys
        .get(&id)
        .filter(|_| before.bind_key_status != BindKeyStatus::None)
    {
        after.bind_key_status = *status;
        store::set_bind_key_status(tx, scope, id, *status).await?;
    }
    let (old, new) = before.difference(&after);
    if old == new {
        return Ok(None);
    }
    store::mark_changed(tx, scope, id, revision).await?;
    let action = if is_activated {
        "device.activate"
    } else {
        "device.update"
    };
    Ok(Some(
        Audit::new(scope, action, id, now).changed(Some(old), Some(new)),
    ))
}

#[allow(
    clippy::too_many_arguments,
    reason = "they are what one registration consists of"
)]
async fn register(
    core: &Core,
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    kind: ActivationKind,
    new: &NewDevice,
    revision: i64,
    events: &mut Vec<Event>,
) -> Result<Option<Audit>> {
    let identities = [
        new.beacon.as_deref().map(Identity::Beacon),
        new.address.as_deref().map(Identity::Address),
    ];
    for identity in identities.into_iter().flatten() {
        if store::holder(tx, scope, identity).await?.is_some() {
            return Ok(None);
        }
    }
    if device_catalog::name_of(tx, scope, new.device_uuid)
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let now = core.clock.now();
    let address_type = if new.is_random_address {
        AddressType::Random
    } else {
        AddressType::Public
    };
    let mut instance = Instance {
        device_instance_id: 0,
        device_uuid: new.device_uuid,
        device_version_uuid: None,
        name: None,
        address: new.address.clone(),
        address_type: new.address.is_some().then_some(address_type),
        beacon: new.beacon.as_deref().and_then(Beacon::from_text),
        serial_number: None,
        labels: BTreeMap::new(),
        calibration: BTreeMap::new(),
        activation_status: ActivationStatus::Active,
        bind_key_status: BindKeyStatus::None,
        has_identity_resolving_key: false,
        created_at: now,
        activated_at: Some(now),
        retired_at: None,
    };
    let id = store::insert(tx, scope, &instance).await?;
    instance.device_instance_id = id;
    store::update(tx, scope, &instance).await?;
    store::mark_changed(tx, scope, id, revision).await?;
    let activation = Activation {
        hub_uuid: Some(hub_uuid),
        device_instance_id: id,
        kind,
        occurred_at: now,
    };
    activations::insert(tx, scope, &activation).await?;
    events.extend(
        [EventType::DeviceRegistered, EventType::DeviceActivated]
            .map(|what| instance.event(what, Some(hub_uuid))),
    );
    Ok(Some(
        Audit::new(scope, "device.create", id, now).changed(None, Some(instance.audited())),
    ))
}
