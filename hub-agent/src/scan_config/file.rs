//! The scan configuration on disk. Only the owner of the file can read it, and the keys in it are
//! encrypted with a secret of this hub, so that a copy of the file alone has none. Keys are never
//! logged.

use std::io::{self, ErrorKind};
use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_agent::durable;
use hub_protocol::scan_config::{ScanConfig, ScanKeys};
use hub_protocol::{HubUuid, TenantUuid};
use serde::{Deserialize, Serialize};

use crate::identity::{SEAL_KEY_FILE, seal_key};

pub const FILE: &str = "scan-config.json";
const PURPOSE: &[u8] = b"hub-agent scan configuration keys";

/// The content of the file.
#[derive(Debug)]
pub struct Stored {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub etag: Option<String>,
    pub config: ScanConfig,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    etag: Option<String>,
    /// The list of keys as JSON, encrypted: the nonce, the ciphertext and its tag, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed_keys: Option<String>,
    /// The configuration without its keys.
    config: ScanConfig,
}

/// Stores the configuration, which is on disk when this returns.
pub fn save(folder: &Path, stored: Stored) -> io::Result<()> {
    let Stored {
        hub_uuid,
        tenant_uuid,
        etag,
        mut config,
    } = stored;
    let keys = std::mem::take(&mut config.keys);
    let sealed_keys = if keys.is_empty() {
        None
    } else {
        Some(seal(&seal_key(folder)?, hub_uuid, &keys)?)
    };
    let content = Content {
        hub_uuid,
        tenant_uuid,
        etag,
        sealed_keys,
        config,
    };
    durable::replace(folder, FILE, &serde_json::to_vec(&content)?)
}

/// The stored configuration; `None` if there is none. If the hub's secret is lost, it has no keys
/// and no entity tag: then the service is asked for the whole configuration.
pub fn load(folder: &Path) -> io::Result<Option<Stored>> {
    let bytes = match std::fs::read(folder.join(FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // The parser's own message could quote a value.
    let content: Content = serde_json::from_slice(&bytes)
        .map_err(|error| damaged(&format!("line {}", error.line())))?;
    let Content {
        hub_uuid,
        tenant_uuid,
        mut etag,
        sealed_keys,
        mut config,
    } = content;
    if let Some(sealed) = sealed_keys {
        let secret = std::fs::read_to_string(folder.join(SEAL_KEY_FILE)).unwrap_or_default();
        match unseal(secret.trim(), hub_uuid, &sealed) {
            Some(keys) => config.keys = keys,
            None => etag = None,
        }
    }
    Ok(Some(Stored {
        hub_uuid,
        tenant_uuid,
        etag,
        config,
    }))
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

fn cipher(secret: &str) -> Option<RandomizedNonceKey> {
    let key = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
        PURPOSE,
    );
    RandomizedNonceKey::new(&AES_256_GCM, key.as_ref()).ok()
}

fn seal(secret: &str, hub_uuid: HubUuid, keys: &[ScanKeys]) -> io::Result<String> {
    let mut text = serde_json::to_vec(keys)?;
    let aad = Aad::from(hub_uuid.to_string());
    let nonce =
        cipher(secret).and_then(|cipher| cipher.seal_in_place_append_tag(aad, &mut text).ok());
    let nonce = nonce.ok_or_else(|| io::Error::other("the keys cannot be encrypted"))?;
    Ok(STANDARD.encode([nonce.as_ref().as_slice(), text.as_slice()].concat()))
}

fn unseal(secret: &str, hub_uuid: HubUuid, sealed: &str) -> Option<Vec<ScanKeys>> {
    let bytes = STANDARD.decode(sealed).ok()?;
    let (nonce, text) = bytes.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = text.to_vec();
    let plain = cipher(secret)?
        .open_in_place(nonce, Aad::from(hub_uuid.to_string()), &mut text)
        .ok()?;
    serde_json::from_slice(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const BIND_KEY: &str = "00112233445566778899aabbccddeeff";

    fn stored() -> Stored {
        let keys = ScanKeys {
            device_instance_id: 7,
            bind_key: Some(BIND_KEY.into()),
            identity_resolving_key: None,
        };
        Stored {
            hub_uuid: HubUuid::new(),
            tenant_uuid: TenantUuid::new(),
            etag: Some("\"5\"".into()),
            config: ScanConfig {
                revision: 5,
                keys: vec![keys],
                ..ScanConfig::default()
            },
        }
    }

    #[test]
    fn it_is_read_back_whole_and_its_keys_are_not_readable_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        assert!(load(dir.path()).unwrap().is_none());
        let (hub_uuid, config) = (stored().hub_uuid, stored().config);
        save(
            dir.path(),
            Stored {
                hub_uuid,
                ..stored()
            },
        )
        .unwrap();
        let loaded = load(dir.path()).unwrap().unwrap();
        assert_eq!(
            (loaded.hub_uuid, loaded.etag.as_deref(), &loaded.config),
            (hub_uuid, Some("\"5\""), &config)
        );
        for name in [FILE, SEAL_KEY_FILE] {
            let path = dir.path().join(name);
            assert!(
                !std::fs::read_to_string(&path)
                    .unwrap()
                    .contains(&BIND_KEY[4..20]),
                "{name}"
            );
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600,
                "{name}"
            );
        }
        assert!(!format!("{loaded:?}").contains(&BIND_KEY[4..20]));
    }

    #[test]
    fn without_its_secret_it_has_no_keys_and_is_requested_again() {
        let dir = tempfile::tempdir().unwrap();
        save(dir.path(), stored()).unwrap();
        std::fs::write(dir.path().join(SEAL_KEY_FILE), "another").unwrap();
        let loaded = load(dir.path()).unwrap().unwrap();
        assert_eq!(
            (
                loaded.config.revision,
                loaded.config.keys.len(),
                loaded.etag
            ),
            (5, 0, None)
        );
        // Nor can another hub's keys be put into it.
        save(dir.path(), stored()).unwrap();
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        let hub_uuid = load(dir.path()).unwrap().unwrap().hub_uuid;
        let other = text.replace(&hub_uuid.to_string(), &HubUuid::new().to_string());
        std::fs::write(dir.path().join(FILE), other).unwrap();
        assert!(load(dir.path()).unwrap().unwrap().config.keys.is_empty());
    }

    #[test]
    fn a_damaged_file_is_an_error_that_quotes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "{\"hubUuid\": \"secret\"").unwrap();
        assert_eq!(load(dir.path()).unwrap_err().to_string(), "line 1");
    }
}
