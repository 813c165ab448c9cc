//! The catalog in a hub's scan configuration.

use std::collections::HashMap;
use std::sync::Arc;

use hub_protocol::scan_config::{ScanConfig, ScanDevice, ScanKeys};
use serde_json::json;

use super::{Calibration, Catalog, Instance, Model, Models, Protocol, Reader, beacon_of};
use crate::advertisement::address_of;
use crate::language::hex_bytes;
use crate::library;
use crate::matching::Identifier;

impl Catalog {
    /// The catalog of a scan configuration. The error says which part cannot be understood.
    pub fn from_scan_config(config: &ScanConfig) -> Result<Catalog, String> {
        let mut identifiers = Vec::new();
        for identifier in &config.identifiers {
            let parsed = Identifier::parse(&json!({"conditions": identifier.conditions}))
                .map_err(|error| format!("identifier {}: {error}", identifier.id))?;
            identifiers.push((identifier.id, identifier.device_uuid, parsed));
        }
        let mut protocols = Vec::new();
        for protocol in &config.protocols {
            let parsed = json!({"kind": protocol.kind, "definition": protocol.definition});
            let decoder = library::Protocol::parse(&parsed)
                .map_err(|error| format!("protocol {}: {error}", protocol.device_protocol_id))?;
            let (device_protocol_id, revision) = (protocol.device_protocol_id, protocol.revision);
            protocols.push(Protocol {
                device_protocol_id,
                revision,
                reader: Reader::Decoder(decoder),
            });
        }
        let keys: HashMap<i64, &ScanKeys> = config
            .keys
            .iter()
            .map(|keys| (keys.device_instance_id, keys))
            .collect();
        let (mut models, mut instances) = (Vec::new(), Vec::new());
        for device in &config.devices {
            match device.device_instance_id {
                None => models.push(model(device)),
                Some(id) => instances.push(instance(id, device, keys.get(&id).copied())?),
            }
        }
        Ok(Catalog::new(
            Arc::new(Models::new(models, identifiers, protocols)),
            instances,
        ))
    }
}

fn model(device: &ScanDevice) -> Model {
    Model {
        device_uuid: device.device_uuid,
        name: device.name.clone().unwrap_or_default(),
        expected_interval_secs: device.expected_interval_seconds,
        auto_register: false,
        device_protocol_id: device.device_protocol_id,
    }
}

fn instance(id: i64, device: &ScanDevice, keys: Option<&ScanKeys>) -> Result<Instance, String> {
    let beacon = match &device.beacon {
        None => None,
        Some(beacon) => {
            Some(beacon_of(beacon).ok_or_else(|| format!("device {id}: its beacon is malformed"))?)
        }
    };
    let address = match &device.address {
        None => None,
        Some(address) => Some(
            address_of(address).ok_or_else(|| format!("device {id}: its address is malformed"))?,
        ),
    };
    let key = |digits: Option<&String>| digits.and_then(|digits| hex_bytes(digits));
    let calibration = |(name, found): (&String, &hub_protocol::scan_config::ScanCalibration)| {
        (
            name.clone(),
            Calibration {
                offset: found.offset,
                scale: found.scale,
            },
        )
    };
    Ok(Instance {
        device_instance_id: id,
        device_uuid: device.device_uuid,
        name: device.name.clone(),
        device_protocol_id: device.device_protocol_id,
        address,
        beacon,
        bind_key: key(keys.and_then(|keys| keys.bind_key.as_ref())),
        identity_resolving_key: key(keys.and_then(|keys| keys.identity_resolving_key.as_ref()))
            .and_then(|key| key.try_into().ok()),
        calibration: device.calibration.iter().map(calibration).collect(),
    })
}
