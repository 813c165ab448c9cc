//! The devices of a tenant as recognition uses them.

use std::collections::BTreeMap;

use hub_adverts::advertisement::address_of;
use hub_adverts::catalog::{self, beacon_of};
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_base::sealing::stored::{DEVICE_BIND_KEY, DEVICE_IDENTITY_RESOLVING_KEY};
use hub_core::Core;
use hub_identity::authz::Scope;
use uuid::Uuid;

use super::{ActivationStatus, BindKeyStatus, Calibration, store};

/// A device as recognition uses it, and what it may change of it.
pub struct Compiled {
    pub instance: catalog::Instance,
    pub activation_status: ActivationStatus,
    pub bind_key_status: BindKeyStatus,
}

/// The tenant's devices that changed after a revision of its catalog, and those that can no longer
/// be recognised. `protocols` are those that versions name.
pub async fn compiled(
    core: &Core,
    conn: &mut Conn,
    scope: &Scope,
    after_revision: i64,
    protocols: &BTreeMap<Uuid, i64>,
) -> Result<(Vec<Compiled>, Vec<i64>)> {
    let (mut found, mut retired) = (Vec::new(), Vec::new());
    for row in store::compiled(conn, scope, after_revision).await? {
        let id = row.device_instance_id;
        if row.activation_status == ActivationStatus::Retired {
            retired.push(id);
            continue;
        }
        let open = |purpose, sealed: Option<Vec<u8>>| {
            let key = core.sealer.open(purpose, &id.to_string(), &sealed?);
            let log = |error| tracing::error!(device_instance_id = id, %error, "cannot open the key of a device");
            key.map_err(log).ok()
        };
        let calibration =
            row.calibration
                .0
                .into_iter()
                .map(|(quantity, Calibration { offset, scale })| {
                    (
                        quantity,
                        catalog::Calibration {
                            offset: offset.unwrap_or(0.0),
                            scale: scale.unwrap_or(1.0),
                        },
                    )
                });
        let instance = catalog::Instance {
            device_instance_id: id,
            device_uuid: row.device_uuid,
            name: row.name,
            device_protocol_id: row
                .device_version_uuid
                .and_then(|version| protocols.get(&version).copied()),
            address: row.address.as_deref().and_then(address_of),
            beacon: row
                .beacon
                .as_deref()
                .and_then(super::Beacon::from_text)
                .and_then(|beacon| {
                    serde_json::to_value(beacon)
                        .ok()?
                        .as_object()
                        .and_then(beacon_of)
                }),
            bind_key: open(DEVICE_BIND_KEY, row.sealed_bind_key),
            identity_resolving_key: open(
                DEVICE_IDENTITY_RESOLVING_KEY,
                row.sealed_identity_resolving_key,
            )
            .and_then(|key| key.try_into().ok()),
            calibration: calibration.collect(),
        };
        let (activation_status, bind_key_status) = (row.activation_status, row.bind_key_status);
        found.push(Compiled {
            instance,
            activation_status,
            bind_key_status,
        });
    }
    Ok((found, retired))
}
