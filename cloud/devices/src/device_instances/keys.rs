//! The keys of a device. They are stored sealed and bound to the device's row, and never answered,
//! logged or audited.

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_base::sealing::stored::{DEVICE_BIND_KEY, DEVICE_IDENTITY_RESOLVING_KEY};
use hub_core::Core;
use hub_core::tasks::{self, NewTask};
use hub_protocol::{TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The lane of what follows from changes of devices.
pub const LANE: &str = "devices";
/// The kind of the task after a registered device got another bind key.
pub const KEY_WAS_SET: &str = "device.key_was_set";
/// Uploads that were read before the change are stored by then.
const KEY_WAS_SET_AFTER_SECS: i64 = 2;

/// A registered device has another bind key. A subject that stores the device's events reprocesses
/// them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyWasSet {
    pub tenant_uuid: TenantUuid,
    pub device_instance_id: i64,
}

impl KeyWasSet {
    /// The value in a task's payload.
    pub fn of(payload: &Value) -> Result<Self> {
        serde_json::from_value(payload.clone()).map_err(Error::internal)
    }

    pub(super) async fn commit_with(&self, core: &Core, tx: &mut Tx, now: Timestamp) -> Result<()> {
        let task = NewTask {
            lane: LANE,
            kind: KEY_WAS_SET,
            payload: serde_json::to_value(self).map_err(Error::internal)?,
            due_at: now.plus_secs(KEY_WAS_SET_AFTER_SECS),
            dedup_key: Some(format!("{KEY_WAS_SET}/{}", self.device_instance_id)),
        };
        tasks::enqueue(core, tx, task, now).await
    }
}

/// Lengths in bytes of a key that advertisements are encrypted with: AES-128, and the 12 bytes of
/// it that older MiBeacon devices reveal.
const BIND_KEY_BYTES: [usize; 2] = [16, 12];
const IDENTITY_RESOLVING_KEY_BYTES: [usize; 1] = [16];

/// A key as given by an operator. It has no `Debug`.
#[derive(Clone)]
pub struct DeviceKey(Vec<u8>);

impl DeviceKey {
    /// The key from hex digits of either case; None if its length is another.
    pub fn bind_key(digits: &str) -> Option<Self> {
        Self::of(digits, &BIND_KEY_BYTES)
    }

    /// The key from hex digits of either case; None if its length is another.
    pub fn identity_resolving_key(digits: &str) -> Option<Self> {
        Self::of(digits, &IDENTITY_RESOLVING_KEY_BYTES)
    }

    fn of(digits: &str, lengths: &[usize]) -> Option<Self> {
        let bytes = hex::decode(digits).ok()?;
        lengths.contains(&bytes.len()).then_some(Self(bytes))
    }

    pub fn sealed_as_bind_key(&self, core: &Core, device_instance_id: i64) -> Vec<u8> {
        core.sealer
            .seal(DEVICE_BIND_KEY, &device_instance_id.to_string(), &self.0)
    }

    pub fn sealed_as_identity_resolving_key(
        &self,
        core: &Core,
        device_instance_id: i64,
    ) -> Vec<u8> {
        core.sealer.seal(
            DEVICE_IDENTITY_RESOLVING_KEY,
            &device_instance_id.to_string(),
            &self.0,
        )
    }

    /// The hash that finds two devices of a tenant with the same key. It reveals nothing of the
    /// key, which is random, nor whether another tenant has it.
    pub fn hash(&self, tenant_uuid: TenantUuid) -> Vec<u8> {
        sealing::hash(&format!("{tenant_uuid} {}", hex::encode(&self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_lengths() {
        for (digits, is_bind_key, is_identity_resolving_key) in [
            (32, true, true),
            (24, true, false),
            (0, false, false),
            (30, false, false),
            (31, false, false),
            (33, false, false),
            (64, false, false),
        ] {
            let text = "aF".repeat(32).chars().take(digits).collect::<String>();
            assert_eq!(
                DeviceKey::bind_key(&text).is_some(),
                is_bind_key,
                "{digits}"
            );
            let is_key = DeviceKey::identity_resolving_key(&text).is_some();
            assert_eq!(is_key, is_identity_resolving_key, "{digits}");
        }
        assert!(DeviceKey::bind_key(&"0g".repeat(16)).is_none());
        assert!(DeviceKey::bind_key(&"é".repeat(16)).is_none());
    }

    #[test]
    fn case_of_digits_does_not_matter_and_the_tenant_does() {
        let hash = |digits: &str, tenant_uuid| {
            DeviceKey::identity_resolving_key(digits).map(|key| key.hash(tenant_uuid))
        };
        let (tenant, other) = (TenantUuid::new(), TenantUuid::new());
        let (lower, upper) = ("ab".repeat(16), "AB".repeat(16));
        assert!(hash(&lower, tenant).is_some());
        assert_eq!(hash(&lower, tenant), hash(&upper, tenant));
        assert_ne!(hash(&lower, tenant), hash(&lower, other));
    }
}
