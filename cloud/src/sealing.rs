//! Secrets at rest: AES-256-GCM under the service's master key, and the hashes by which tokens are found. The master key is a file of its own
//! (or a setting, where replicas share it) and never enters the database.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

const NONCE_BYTES: usize = 12;

/// Seals and opens secrets.
#[derive(Clone)]
pub struct Sealer(Aes256Gcm);

/// The sealed bytes are not what this master key sealed for this purpose.
#[derive(Debug, thiserror::Error)]
#[error("a stored secret cannot be opened: the master key is not the one it was sealed with")]
pub struct OpenError;

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    #[error("master-key must be 64 hex digits")]
    Setting,
    #[error("the master key file {0} must hold 64 hex digits; put the right key back")]
    Malformed(String),
    #[error("the master key file {path} cannot be used: {source}")]
    File { path: String, source: std::io::Error },
}

impl Sealer {
    /// The key from the setting, or from `master.key` in the data directory, which is made on the first start.
    pub fn load(setting: Option<&SecretString>, data_dir: &Path) -> Result<Self, MasterKeyError> {
        match setting {
            Some(hex) => Self::from_hex(hex.expose_secret()).ok_or(MasterKeyError::Setting),
            None => {
                let path = data_dir.join("master.key");
                let name = || path.display().to_string();
                let hex = read_or_create(&path).map_err(|source| MasterKeyError::File { path: name(), source })?;
                Self::from_hex(&hex).ok_or_else(|| MasterKeyError::Malformed(name()))
            }
        }
    }

    fn from_hex(text: &str) -> Option<Self> {
        Some(Self(Aes256Gcm::new(&key_bytes(text)?.into())))
    }

    /// `purpose` is bound in: what was sealed for one use opens for no other.
    pub fn seal(&self, purpose: &str, secret: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_BYTES] = random();
        let payload = Payload { msg: secret, aad: purpose.as_bytes() };
        let mut sealed = nonce.to_vec();
        // Fails only for messages of 64 GiB and more.
        sealed.extend(self.0.encrypt(&nonce.into(), payload).unwrap_or_default());
        sealed
    }

    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (nonce, message) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(OpenError)?;
        let payload = Payload { msg: message, aad: purpose.as_bytes() };
        self.0.decrypt(&(*nonce).into(), payload).map_err(|_| OpenError)
    }
}

/// Whether the text is a master key by its form.
pub fn is_master_key(text: &str) -> bool {
    key_bytes(text).is_some()
}

fn key_bytes(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    hex::decode_to_slice(text.trim(), &mut key).ok()?;
    Some(key)
}

fn read_or_create(path: &Path) -> std::io::Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        other => return other,
    }
    let key = hex::encode(random::<32>());
    // Written beside and linked in place: a crash leaves no half key, and of two processes that start together one wins.
    let draft = path.with_extension(format!("key.{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(key.as_bytes())?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    if let Some(dir) = path.parent() {
        std::fs::File::open(dir)?.sync_all()?;
    }
    std::fs::read_to_string(path)
}

/// Unguessable bytes.
#[allow(clippy::expect_used, reason = "a machine without randomness must not go on")]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// What a token or code is found by. These carry 80 random bits or more, so a plain hash is enough.
pub fn hash(token: &str) -> Vec<u8> {
    Sha256::digest(token.as_bytes()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let sealer = Sealer::load(None, dir.path()).expect("a key");
        let sealed = sealer.seal("claim-code", b"secret");
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
        assert_eq!(sealer.open("claim-code", &sealed).expect("opens"), b"secret");
        assert!(sealer.open("signing-key", &sealed).is_err(), "another purpose");
        assert!(sealer.open("claim-code", &sealed[1..]).is_err(), "cut short");
        let again = Sealer::load(None, dir.path()).expect("the same key");
        assert_eq!(again.open("claim-code", &sealed).expect("opens"), b"secret");
        let other = Sealer::load(Some(&"00".repeat(32).into()), dir.path()).expect("another key");
        assert!(other.open("claim-code", &sealed).is_err());
    }
}
