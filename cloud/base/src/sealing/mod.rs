//! Secrets at rest: AES-256-GCM under the service's master keys, and the hashes that tokens are
//! looked up by. A master key is in a file of its own (or in a setting that replicas share) and
//! never in the database. The first key of the ring seals; all of them open.
//!
//! Sealed bytes: 0x01, the key's id (4 bytes), the nonce (12 bytes), ciphertext and tag. The
//! purpose of a secret and its row are authenticated with it, so that a sealed secret that was
//! moved to another row does not open.

pub mod stored;

use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::paths::sync_folder_of;

/// The file of the keys in the data directory.
pub const MASTER_KEY_FILE: &str = "master.key";

const FORMAT: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 12;
/// The bytes before the nonce, which identify the sealing key.
pub const PREFIX_BYTES: usize = 1 + KEY_ID_BYTES;

/// Seals and opens secrets. Clones share one key ring.
#[derive(Clone)]
pub struct Sealer(Arc<Inner>);

struct Inner {
    /// The file of the keys; `None` if a setting holds them.
    file: Option<PathBuf>,
    ring: RwLock<Ring>,
}

struct Ring {
    /// The first one seals.
    keys: Vec<Key>,
    /// The version of the file that the keys were read from.
    version: Option<FileVersion>,
}

struct Key {
    id: [u8; KEY_ID_BYTES],
    cipher: Aes256Gcm,
    /// Derived from the key, so that the key that encrypts is not also used to authenticate
    /// messages.
    mac: hmac::Key,
}

impl Key {
    fn new(key: &[u8; 32]) -> Self {
        let mac = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, key),
            b"hub-cloud message authentication",
        );
        Self {
            id: id_of(key),
            cipher: Aes256Gcm::new(&(*key).into()),
            mac: hmac::Key::new(hmac::HMAC_SHA256, mac.as_ref()),
        }
    }
}

/// The sealed bytes were not sealed by one of these master keys for this purpose and row.
#[derive(Debug, thiserror::Error)]
#[error("cannot open a stored secret: it was changed, or the master key that sealed it is missing")]
pub struct OpenError;

/// Why no master key is available.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    #[error("{MASTER_KEY_FORM}")]
    Setting,
    #[error(
        "the master key file {0} must contain keys of 64 hex digits, one on each line; restore the right file"
    )]
    Malformed(String),
    #[error("cannot use the master key file {path}: {source}")]
    File {
        path: String,
        source: std::io::Error,
    },
    #[error(
        "the master key file {0} is missing, but this database was sealed with one; restore it (or set master-key), or set database-url to another database"
    )]
    Lost(String),
}

/// The form of the setting.
pub const MASTER_KEY_FORM: &str =
    "master-key must be 64 hex digits, or several such keys separated by commas";

impl Sealer {
    /// Fails on a setting that is no master key.
    pub fn check(setting: &SecretString) -> Result<(), MasterKeyError> {
        match parse_keys(setting.expose_secret()) {
            Some(_) => Ok(()),
            None => Err(MasterKeyError::Setting),
        }
    }

    /// Loads the keys from the setting, or from `master.key` in the data directory. If the file is
    /// missing and `may_create` is set, creates it with a new key.
    pub fn load(
        setting: Option<&SecretString>,
        data_dir: &Path,
        may_create: bool,
    ) -> Result<Self, MasterKeyError> {
        if let Some(setting) = setting {
            let keys = parse_keys(setting.expose_secret()).ok_or(MasterKeyError::Setting)?;
            return Ok(Self(Arc::new(Inner {
                file: None,
                ring: RwLock::new(Ring {
                    keys,
                    version: None,
                }),
            })));
        }
        let path = data_dir.join(MASTER_KEY_FILE);
        let failed = |source| MasterKeyError::File {
            path: path.display().to_string(),
            source,
        };
        if !path.try_exists().map_err(failed)? {
            if !may_create {
                return Err(MasterKeyError::Lost(path.display().to_string()));
            }
            write_file(&path, &[hex::encode(random::<32>())], Replace::No).map_err(failed)?;
        }
        let ring = read_ring(&path)?;
        Ok(Self(Arc::new(Inner {
            file: Some(path),
            ring: RwLock::new(ring),
        })))
    }

    /// Seals a secret. It opens only for the same `purpose` and `row`.
    pub fn seal(&self, purpose: &str, row: &str, secret: &[u8]) -> Vec<u8> {
        self.reload_changed();
        let ring = self.read();
        let nonce: [u8; NONCE_BYTES] = random();
        let mut sealed = Vec::with_capacity(PREFIX_BYTES + NONCE_BYTES + secret.len() + 16);
        // The ring is never empty.
        if let Some(key) = ring.keys.first() {
            sealed.push(FORMAT);
            sealed.extend(key.id);
            sealed.extend(nonce);
            let aad = associated_data(purpose, row);
            let payload = Payload {
                msg: secret,
                aad: &aad,
            };
            // Encryption fails only for messages of 64 GiB and more.
            sealed.extend(
                key.cipher
                    .encrypt(&nonce.into(), payload)
                    .unwrap_or_default(),
            );
        }
        sealed
    }

    pub fn open(&self, purpose: &str, row: &str, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let id = sealed.get(1..PREFIX_BYTES).unwrap_or_default();
        if !self.read().keys.iter().any(|key| key.id == id) {
            // Another process may have added a key.
            self.reload_changed();
        }
        let ring = self.read();
        match ring.keys.iter().find(|key| key.id == id) {
            Some(key) if sealed.first() == Some(&FORMAT) => {
                let sealed = sealed.get(PREFIX_BYTES..).unwrap_or_default();
                decrypt(&key.cipher, &associated_data(purpose, row), sealed)
            }
            // Databases of version 0.1 contain secrets without a key's id, bound to their purpose
            // alone.
            _ => ring
                .keys
                .iter()
                .find_map(|key| decrypt(&key.cipher, purpose.as_bytes(), sealed).ok())
                .ok_or(OpenError),
        }
    }

    /// Authenticates a message for a purpose. Every replica can verify the result while its ring
    /// contains the key that seals now.
    pub fn mac(&self, purpose: &str, message: &str) -> Vec<u8> {
        self.reload_changed();
        let message = associated_data(purpose, message);
        let ring = self.read();
        // The ring is never empty.
        ring.keys
            .first()
            .map(|key| hmac::sign(&key.mac, &message).as_ref().to_vec())
            .unwrap_or_default()
    }

    /// Whether [`Sealer::mac`] created this MAC, on this replica or another.
    pub fn is_mac(&self, purpose: &str, message: &str, mac: &[u8]) -> bool {
        let message = associated_data(purpose, message);
        let is_ours = || {
            self.read()
                .keys
                .iter()
                .any(|key| hmac::verify(&key.mac, &message, mac).is_ok())
        };
        is_ours() || {
            // Another process may have added a key.
            self.reload_changed();
            is_ours()
        }
    }

    /// The ids of all keys, the sealing key first.
    pub fn key_ids(&self) -> Vec<String> {
        self.read()
            .keys
            .iter()
            .map(|key| hex::encode(key.id))
            .collect()
    }

    /// The prefix of everything sealed with the current sealing key.
    pub fn prefix(&self) -> Vec<u8> {
        let mut prefix = vec![FORMAT];
        prefix.extend(self.read().keys.iter().take(1).flat_map(|key| key.id));
        prefix
    }

    /// The key file; `None` if a setting holds the keys.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// Adds a new key as the first in the file. Every process that uses the file reloads it.
    pub fn add_key(&self) -> Result<(), MasterKeyError> {
        self.rewrite(|keys| keys.insert(0, hex::encode(random::<32>())))
    }

    /// Removes the key with this id from the file.
    pub fn remove_key(&self, id: &str) -> Result<(), MasterKeyError> {
        self.rewrite(|keys| {
            keys.retain(|key| key_bytes(key).is_none_or(|key| hex::encode(id_of(&key)) != id))
        })
    }

    fn rewrite(&self, change: impl FnOnce(&mut Vec<String>)) -> Result<(), MasterKeyError> {
        let Some(path) = self.file() else {
            return Err(MasterKeyError::Setting);
        };
        let failed = |source| MasterKeyError::File {
            path: path.display().to_string(),
            source,
        };
        let mut keys: Vec<String> = std::fs::read_to_string(path)
            .map_err(failed)?
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        change(&mut keys);
        write_file(path, &keys, Replace::Yes).map_err(failed)?;
        *self.0.ring.write().unwrap_or_else(PoisonError::into_inner) = read_ring(path)?;
        Ok(())
    }

    /// Reads the file again if it was changed. An unreadable file changes nothing: the loaded keys
    /// remain in use.
    fn reload_changed(&self) {
        let Some(path) = self.file() else { return };
        if version(path) == self.read().version {
            return;
        }
        match read_ring(path) {
            Ok(ring) => *self.0.ring.write().unwrap_or_else(PoisonError::into_inner) = ring,
            Err(error) => {
                tracing::error!(%error, "the master key file was changed and cannot be read; the loaded keys remain in use")
            }
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Ring> {
        self.0.ring.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unambiguous: a purpose is a constant of this program and contains no zero byte.
fn associated_data(purpose: &str, row: &str) -> Vec<u8> {
    [purpose.as_bytes(), &[0], row.as_bytes()].concat()
}

fn decrypt(cipher: &Aes256Gcm, aad: &[u8], sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
    let (nonce, message) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(OpenError)?;
    cipher
        .decrypt(&(*nonce).into(), Payload { msg: message, aad })
        .map_err(|_| OpenError)
}

/// Whether the text has the form of a list of master keys.
pub fn is_master_key(text: &str) -> bool {
    parse_keys(text).is_some()
}

fn parse_keys(text: &str) -> Option<Vec<Key>> {
    let words = text
        .split([',', ' ', '\t', '\r', '\n'])
        .filter(|word| !word.is_empty());
    let keys: Option<Vec<Key>> = words
        .map(|word| key_bytes(word).map(|key| Key::new(&key)))
        .collect();
    keys.filter(|keys| !keys.is_empty())
}

fn key_bytes(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    hex::decode_to_slice(text, &mut key).ok()?;
    Some(key)
}

/// The id is derived from the key, so that a wrong key cannot pass for the right one.
fn id_of(key: &[u8; 32]) -> [u8; KEY_ID_BYTES] {
    let digest = Sha256::new_with_prefix(b"hub-cloud master key id")
        .chain_update(key)
        .finalize();
    digest.first_chunk().copied().unwrap_or_default()
}

/// The time of the last write and the inode. The file is only ever replaced as a whole.
type FileVersion = (SystemTime, u64);

fn version(path: &Path) -> Option<FileVersion> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.ino()))
}

fn read_ring(path: &Path) -> Result<Ring, MasterKeyError> {
    let name = || path.display().to_string();
    // Read before the text: a change in between is noticed the next time.
    let version = version(path);
    let text = std::fs::read_to_string(path).map_err(|source| MasterKeyError::File {
        path: name(),
        source,
    })?;
    let keys = parse_keys(&text).ok_or_else(|| MasterKeyError::Malformed(name()))?;
    Ok(Ring { keys, version })
}

#[derive(Clone, Copy, PartialEq)]
enum Replace {
    Yes,
    /// An existing file stays.
    No,
}

/// Writes a temporary file and moves it into place: a crash leaves no partial key, and if two
/// processes create the first file, one of them wins.
fn write_file(path: &Path, keys: &[String], replace: Replace) -> std::io::Result<()> {
    let draft = path.with_extension(format!("key.{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    let replaced = match replace {
        Replace::Yes => path,
        Replace::No => path.parent().unwrap_or(path),
    };
    keep_owner(&file, &std::fs::metadata(replaced)?)?;
    file.write_all(keys.join("\n").as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    match replace {
        Replace::Yes => std::fs::rename(&draft, path)?,
        Replace::No => {
            let linked = std::fs::hard_link(&draft, path);
            std::fs::remove_file(&draft)?;
            match linked {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
    }
    sync_folder_of(path)
}

/// Commands may run as root. The file keeps the owner of the file that it replaces, or of the
/// directory, so that the service can still read it.
fn keep_owner(file: &std::fs::File, owner: &std::fs::Metadata) -> std::io::Result<()> {
    let own = file.metadata()?;
    let is_same = (own.uid(), own.gid()) == (owner.uid(), owner.gid());
    if is_same || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Cryptographically random bytes.
#[allow(
    clippy::expect_used,
    reason = "without random numbers, the service must not continue"
)]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the operating system provides random bytes");
    bytes
}

/// The hash that a token or code is looked up by. These have at least 80 random bits, so a plain
/// hash is sufficient.
pub fn hash(token: &str) -> Vec<u8> {
    digest(token.as_bytes())
}

/// The SHA-256 digest of what need not be secret.
pub fn digest(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let sealer = Sealer::load(None, dir.path(), true).expect("a key");
        let sealed = sealer.seal("claim-code", "row 1", b"secret");
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
        assert_eq!(
            sealer.open("claim-code", "row 1", &sealed).expect("opens"),
            b"secret"
        );
        assert!(
            sealer.open("signing-key", "row 1", &sealed).is_err(),
            "another purpose"
        );
        assert!(
            sealer.open("claim-code", "row 2", &sealed).is_err(),
            "another row"
        );
        for cut in 0..sealed.len() {
            assert!(
                sealer.open("claim-code", "row 1", &sealed[..cut]).is_err(),
                "cut short"
            );
            let mut changed = sealed.clone();
            changed[cut] ^= 1;
            assert!(
                sealer.open("claim-code", "row 1", &changed).is_err(),
                "byte {cut} changed"
            );
        }
        let again = Sealer::load(None, dir.path(), false).expect("the same key");
        assert_eq!(
            again.open("claim-code", "row 1", &sealed).expect("opens"),
            b"secret"
        );
        let other =
            Sealer::load(Some(&"00".repeat(32).into()), dir.path(), true).expect("another key");
        assert!(other.open("claim-code", "row 1", &sealed).is_err());
    }

    #[test]
    fn missing_key_file_is_not_created_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = Sealer::load(None, dir.path(), false)
            .err()
            .expect("a refusal")
            .to_string();
        assert!(
            error.contains("master.key") && error.contains("restore it"),
            "{error}"
        );
        assert!(!dir.path().join("master.key").exists());
    }

    #[test]
    fn a_new_key_seals_and_the_old_one_opens_in_every_process() {
        let dir = tempfile::tempdir().expect("a directory");
        let service = Sealer::load(None, dir.path(), true).expect("a key");
        let sealed_before = service.seal("mail", "1", b"before");
        let command = Sealer::load(None, dir.path(), false).expect("the same key");
        command.add_key().expect("a new key");
        assert_eq!(command.key_ids().len(), 2);
        let sealed_after = command.seal("mail", "2", b"after");
        assert!(
            sealed_after.starts_with(&command.prefix())
                && !sealed_before.starts_with(&command.prefix())
        );
        assert_eq!(
            service
                .open("mail", "2", &sealed_after)
                .expect("the service finds the key"),
            b"after"
        );
        assert_eq!(
            service
                .open("mail", "1", &sealed_before)
                .expect("the old one opens"),
            b"before"
        );
        assert!(
            service
                .seal("mail", "3", b"x")
                .starts_with(&command.prefix()),
            "and seals with the new one"
        );
        command
            .remove_key(&command.key_ids()[1].clone())
            .expect("the old key goes");
        assert_eq!(command.key_ids().len(), 1);
        assert!(command.open("mail", "1", &sealed_before).is_err());
    }

    #[test]
    fn key_file_keeps_its_owner_when_root_rewrites_it() {
        // Only root can change the owner of a file.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::chown(dir.path(), Some(4321), Some(4322)).expect("another owner");
        let owner = || {
            let file = std::fs::metadata(dir.path().join("master.key")).expect("a file");
            (file.uid(), file.gid(), file.mode() & 0o777)
        };
        let sealer = Sealer::load(None, dir.path(), true).expect("a key");
        assert_eq!(owner(), (4321, 4322, 0o600), "as the directory");
        std::os::unix::fs::chown(dir.path().join("master.key"), Some(4323), Some(4322))
            .expect("another owner");
        sealer.add_key().expect("a new key");
        assert_eq!(owner(), (4323, 4322, 0o600), "as the file before");
    }

    #[test]
    fn mac_is_bound_to_its_purpose_and_key() {
        let dir = tempfile::tempdir().expect("a directory");
        let (old, new) = ("11".repeat(32), "22".repeat(32));
        let load = |keys: String| Sealer::load(Some(&keys.into()), dir.path(), true).expect("keys");
        let mac = load(old.clone()).mac("url-upload", "a file");
        assert_eq!(mac.len(), 32);
        assert!(load(format!("{new},{old}")).is_mac("url-upload", "a file", &mac));
        assert!(
            !load(new.clone()).is_mac("url-upload", "a file", &mac),
            "another key"
        );
        let sealer = load(old);
        assert!(
            !sealer.is_mac("url-download", "a file", &mac),
            "another purpose"
        );
        assert!(
            !sealer.is_mac("url-upload", "another file", &mac)
                && !sealer.is_mac("url-upload", "a file", &[])
        );
        assert_ne!(mac, load(new).mac("url-upload", "a file"));
    }

    #[test]
    fn a_setting_may_hold_several_keys() {
        let dir = tempfile::tempdir().expect("a directory");
        let (old, new) = ("11".repeat(32), "22".repeat(32));
        let load = |keys: String| Sealer::load(Some(&keys.into()), dir.path(), true).expect("keys");
        let sealed = load(old.clone()).seal("mail", "1", b"secret");
        assert_eq!(
            load(format!("{new},{old}"))
                .open("mail", "1", &sealed)
                .expect("opens"),
            b"secret"
        );
        assert!(load(new).open("mail", "1", &sealed).is_err());
        assert!(
            !is_master_key("")
                && !is_master_key(",")
                && !is_master_key("11")
                && is_master_key(&old)
        );
    }
}
