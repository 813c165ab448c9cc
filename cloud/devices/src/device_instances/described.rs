//! The devices of a tenant as hubs get them, and the keys of those near a hub.

use std::collections::{BTreeMap, HashMap};

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::{DEVICE_BIND_KEY, DEVICE_IDENTITY_RESOLVING_KEY};
use hub_core::Core;
use hub_identity::authz::Scope;
use hub_protocol::HubUuid;
use hub_protocol::scan_config::{ScanCalibration, ScanDevice, ScanKeys};
use serde_json::Value;
use uuid::Uuid;

use super::{Beacon, Calibration, store};

/// Devices near one hub whose keys it gets.
const MAX_KEYS: i64 = 5000;

/// The tenant's devices that are registered or active, by their ids. `of_versions` are the
/// protocols that versions name.
pub async fn described(
    conn: &mut Conn,
    scope: &Scope,
    of_versions: &HashMap<Uuid, i64>,
) -> Result<Vec<ScanDevice>> {
    let devices = store::described(conn, scope)
        .await?
        .into_iter()
        .map(|row| ScanDevice {
            device_uuid: row.device_uuid,
            device_instance_id: Some(row.device_instance_id),
            name: row.name,
            expected_interval_seconds: None,
            device_protocol_id: row
                .device_version_uuid
                .and_then(|version| of_versions.get(&version).copied()),
            address: row.address,
            beacon: row
                .beacon
                .as_deref()
                .and_then(Beacon::from_text)
                .and_then(|beacon| match serde_json::to_value(beacon) {
                    Ok(Value::Object(beacon)) => Some(beacon),
                    _ => None,
                }),
            calibration: scan_calibration(row.calibration.0),
        });
    Ok(devices.collect())
}

fn scan_calibration(
    calibration: BTreeMap<String, Calibration>,
) -> BTreeMap<String, ScanCalibration> {
    let of = |(quantity, Calibration { offset, scale })| {
        (
            quantity,
            ScanCalibration {
                offset: offset.unwrap_or(0.0),
                scale: scale.unwrap_or(1.0),
            },
        )
    };
    calibration.into_iter().map(of).collect()
}

/// The sealed keys of the devices that a hub hears best.
pub struct KeysNear(Vec<store::SealedKeys>);

/// The keys of at most [`MAX_KEYS`] devices.
pub async fn keys_near(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<KeysNear> {
    store::keys_near(conn, scope, hub_uuid, MAX_KEYS)
        .await
        .map(KeysNear)
}

impl KeysNear {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A text that is equal for equal keys, and reveals nothing of them.
    pub fn fingerprint(&self) -> String {
        let mut text = String::new();
        for keys in &self.0 {
            text.push_str(&keys.device_instance_id.to_string());
            for sealed in [&keys.sealed_bind_key, &keys.sealed_identity_resolving_key] {
                text.push(' ');
                text.push_str(&sealed.as_deref().map(hex::encode).unwrap_or_default());
            }
            text.push('\n');
        }
        text
    }

    /// The keys in the form in which hubs get them. Never log them.
    pub fn open(self, core: &Core) -> Result<Vec<ScanKeys>> {
        let open = |purpose, id: i64, sealed: Option<Vec<u8>>| match sealed {
            None => Ok(None),
            Some(sealed) => match core.sealer.open(purpose, &id.to_string(), &sealed) {
                Ok(key) => Ok(Some(hex::encode(key))),
                Err(error) => Err(Error::internal(format!(
                    "cannot open a key of device {id}: {error}"
                ))),
            },
        };
        let keys = self.0.into_iter().map(|keys| {
            let id = keys.device_instance_id;
            Ok(ScanKeys {
                device_instance_id: id,
                bind_key: open(DEVICE_BIND_KEY, id, keys.sealed_bind_key)?,
                identity_resolving_key: open(
                    DEVICE_IDENTITY_RESOLVING_KEY,
                    id,
                    keys.sealed_identity_resolving_key,
                )?,
            })
        });
        keys.collect()
    }
}
