//! The registered devices of a catalog, by what identifies them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::builtin::{eddystone, ibeacon};
use crate::frame::{Address, AddressType, Frame};
use crate::language::hex_bytes;
use crate::outcome::{Facts, Identity, Keys, Outcome};
use crate::resolvable::{Resolver, is_resolvable};

/// Resolvable addresses whose device, or whose lack of one, is remembered. A device changes its
/// address about every 15 minutes.
const MAX_RESOLVED: usize = 65_536;

/// A correction of a measured quantity: the value times `scale`, plus `offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    pub offset: f64,
    pub scale: f64,
}

/// A registered device.
#[derive(Clone, Default)]
pub struct Instance {
    pub device_instance_id: i64,
    pub device_uuid: Uuid,
    pub name: Option<String>,
    /// The protocol that reads its frames, if not that of its model.
    pub device_protocol_id: Option<i64>,
    pub address: Option<Address>,
    pub beacon: Option<Identity>,
    pub bind_key: Option<Vec<u8>>,
    pub identity_resolving_key: Option<[u8; 16]>,
    /// The corrections by quantity.
    pub calibration: BTreeMap<String, Calibration>,
}

/// The output omits the keys.
impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("device_instance_id", &self.device_instance_id)
            .finish_non_exhaustive()
    }
}

/// The identity of `{"uuid", "major", "minor"}` or `{"namespace", "instance"}`.
pub fn beacon_of(beacon: &Map<String, Value>) -> Option<Identity> {
    let text = |name: &str| beacon.get(name).and_then(Value::as_str);
    let number = |name: &str| {
        beacon
            .get(name)
            .and_then(Value::as_u64)
            .and_then(|number| u16::try_from(number).ok())
    };
    if let Some(uuid) = text("uuid") {
        let (uuid, major, minor) = (
            Uuid::parse_str(uuid).ok()?,
            number("major")?,
            number("minor")?,
        );
        return Some(Identity::Beacon { uuid, major, minor });
    }
    let namespace = hex_bytes(text("namespace")?)?.try_into().ok()?;
    let instance = hex_bytes(text("instance")?)?.try_into().ok()?;
    Some(Identity::Eddystone {
        namespace,
        instance,
    })
}

#[derive(Debug, Default)]
pub(super) struct Instances {
    all: HashMap<i64, Arc<Instance>>,
    addresses: HashMap<Address, Arc<Instance>>,
    beacons: HashMap<Identity, Arc<Instance>>,
    resolvers: Vec<(Resolver, i64)>,
    /// The devices of resolvable addresses; `None` for an address of no device.
    resolved: Mutex<HashMap<Address, Option<i64>>>,
}

impl Instances {
    pub fn new(instances: Vec<Instance>) -> Instances {
        let mut made = Instances::default();
        for instance in instances {
            made.add(Arc::new(instance));
        }
        made
    }

    pub fn with(&self, changed: Vec<Instance>, removed: &[i64]) -> Instances {
        let mut all = self.all.clone();
        for id in removed {
            all.remove(id);
        }
        for instance in changed {
            all.insert(instance.device_instance_id, Arc::new(instance));
        }
        let mut made = Instances::default();
        for instance in all.into_values() {
            made.add(instance);
        }
        made
    }

    fn add(&mut self, instance: Arc<Instance>) {
        if let Some(address) = instance.address {
            self.addresses.insert(address, instance.clone());
        }
        if let Some(beacon) = instance.beacon {
            self.beacons.insert(beacon, instance.clone());
        }
        if let Some(key) = &instance.identity_resolving_key {
            self.resolvers
                .push((Resolver::new(key), instance.device_instance_id));
        }
        self.all.insert(instance.device_instance_id, instance);
    }

    pub fn get(&self, device_instance_id: i64) -> Option<&Instance> {
        self.all.get(&device_instance_id).map(Arc::as_ref)
    }

    pub fn by_address(&self, address: Address) -> Option<&Instance> {
        self.addresses.get(&address).map(Arc::as_ref)
    }

    /// The device that a beacon's payload names.
    pub fn by_beacon(&self, frame: &Frame<'_>) -> Option<&Instance> {
        if self.beacons.is_empty() {
            return None;
        }
        let mut unused = Vec::new();
        for decode in [ibeacon::decode, eddystone::decode] {
            if let Outcome::Decoded(Facts {
                identity: Some(identity),
                ..
            }) = decode(frame, &Keys::default(), &mut unused)
                && let Some(instance) = self.beacons.get(&identity)
            {
                return Some(instance);
            }
        }
        None
    }

    /// The device of the frame's address.
    pub fn by_sender(&self, frame: &Frame<'_>) -> Option<&Instance> {
        let address = frame.address?;
        let is_random = frame.address_type != Some(AddressType::Public);
        if is_random && is_resolvable(address) && !self.resolvers.is_empty() {
            let resolved = self.resolve(address);
            if let Some(instance) = resolved.and_then(|id| self.get(id)) {
                return Some(instance);
            }
        }
        self.by_address(address)
    }

    fn resolve(&self, address: Address) -> Option<i64> {
        if let Some(known) = self
            .resolved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&address)
        {
            return *known;
        }
        let found = self
            .resolvers
            .iter()
            .find(|(resolver, _)| resolver.resolves(address))
            .map(|(_, id)| *id);
        let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if resolved.len() >= MAX_RESOLVED {
            resolved.clear();
        }
        resolved.insert(address, found);
        found
    }
}
