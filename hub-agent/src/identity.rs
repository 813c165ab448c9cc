//! Who this hub is: its hardware identity, and the credentials the service gave it, in the state directory.
//! Files are replaced whole or not at all, and only their owner can read them. Never logs a token.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use hub_protocol::claim::HubCredentials;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Failure;

pub const CREDENTIALS_FILE: &str = "credentials.json";
const IDENTITY_FILE: &str = "device-instance-id";
const CLAIM_KEY_FILE: &str = "claim-key";
const LOCK_FILE: &str = "lock";

/// What the service gave this hub. The tokens open the hub's door: they are never printed.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub access_token: SecretString,
    pub refresh_token: SecretString,
    pub expires_at: Timestamp,
}

impl From<HubCredentials> for Credentials {
    fn from(given: HubCredentials) -> Self {
        Self {
            hub_uuid: given.hub_uuid,
            tenant_uuid: given.tenant_uuid,
            access_token: given.access_token.into(),
            refresh_token: given.refresh_token.into(),
            expires_at: given.expires_at,
        }
    }
}

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CredentialsFile {
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    access_token: String,
    refresh_token: String,
    expires_at: Timestamp,
}

/// The credentials in a file, or the line at which it is damaged: the parser's own text could quote a token.
pub fn parse_credentials(bytes: &[u8]) -> Result<Credentials, usize> {
    let file: CredentialsFile = serde_json::from_slice(bytes).map_err(|error| error.line())?;
    Ok(Credentials {
        hub_uuid: file.hub_uuid,
        tenant_uuid: file.tenant_uuid,
        access_token: file.access_token.into(),
        refresh_token: file.refresh_token.into(),
        expires_at: file.expires_at,
    })
}

/// A state directory that others can enter is closed to them, where it is ours. One with the sticky bit is meant for all, such as `/tmp`.
fn close_to_others(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    let mode = metadata.mode() & 0o7777;
    if metadata.is_dir() && is_ours && mode & 0o077 != 0 && mode & 0o1000 == 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        tracing::warn!(directory = %path.display(), mode = format!("{mode:03o}"), "the state directory was open to others and is closed to them now");
    }
    Ok(())
}

/// The directory everything durable lives in, held by this process alone for as long as the value lives.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    _lock: File,
}

impl StateDir {
    /// Makes the directory if need be and locks it.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |what: &str, error: io::Error| {
            Failure::Failed(format!(
                "cannot {what} the state directory {}: {error}; --state-dir names another",
                path.display()
            ))
        };
        if !path.exists() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|error| failed("make", error))?;
        }
        close_to_others(path).map_err(|error| failed("look at", error))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join(LOCK_FILE))
            .map_err(|error| failed("write to", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Failure::Failed(format!(
                "another agent is running on {}; stop it first, or give this one a --state-dir of its own",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failed("lock", error)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The credentials of the last claim, `None` before the first.
    pub fn load_credentials(&self) -> Result<Option<Credentials>, Failure> {
        let path = self.path.join(CREDENTIALS_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::Failed(format!("cannot read {}: {error}", path.display()))),
        };
        match parse_credentials(&bytes) {
            Ok(credentials) => Ok(Some(credentials)),
            Err(line) => {
                // A hub without credentials can be claimed again; one that does not start helps nobody.
                tracing::error!(
                    file = %path.display(), line,
                    "the credentials file is damaged and is not used; claim this hub again"
                );
                Ok(None)
            }
        }
    }

    /// Makes sure that credentials could be written now: a claim code is used up by the claim, written or not.
    pub fn check_room(&self) -> io::Result<()> {
        let probe = format!("{CREDENTIALS_FILE}.probe");
        self.replace(&probe, &[b' '; 16 << 10])?;
        std::fs::remove_file(self.path.join(probe))
    }

    pub fn save_credentials(&self, credentials: &Credentials) -> io::Result<()> {
        let file = CredentialsFile {
            hub_uuid: credentials.hub_uuid,
            tenant_uuid: credentials.tenant_uuid,
            access_token: credentials.access_token.expose_secret().to_owned(),
            refresh_token: credentials.refresh_token.expose_secret().to_owned(),
            expires_at: credentials.expires_at,
        };
        let text = serde_json::to_vec_pretty(&file).map_err(io::Error::other)?;
        self.replace(CREDENTIALS_FILE, &text)
    }

    /// Puts `content` in place of the file's old content: after a crash or a power cut it is the one or the other, whole.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let target = self.path.join(name);
        let fresh = self.path.join(format!("{name}.new"));
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&fresh, &target)?;
        File::open(&self.path)?.sync_all()
    }

    /// The hub's stable hardware identity: the given one, else one derived from the machine's id, else one made up once.
    pub fn device_instance_id(&self, given: Option<&str>) -> Result<String, Failure> {
        if let Some(given) = given {
            return Ok(given.to_owned());
        }
        if let Some(machine_id) = read_machine_id(Path::new("/etc/machine-id")) {
            return Ok(derive_identity(&machine_id));
        }
        self.made_up_once(IDENTITY_FILE).map_err(|error| {
            Failure::Failed(format!("cannot keep {}: {error}", self.path.join(IDENTITY_FILE).display()))
        })
    }

    /// Tells this hub's claims from everyone else's, so that one whose answer was lost can be sent again with the same code.
    pub fn claim_key(&self) -> io::Result<String> {
        self.made_up_once(CLAIM_KEY_FILE)
    }

    /// What the file holds: random text, made when first asked for.
    fn made_up_once(&self, name: &str) -> io::Result<String> {
        match std::fs::read_to_string(self.path.join(name)) {
            Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                let made = Uuid::new_v4().simple().to_string();
                self.replace(name, made.as_bytes())?;
                Ok(made)
            }
        }
    }
}

/// systemd's id of this installation; absent, or not yet made, on some images.
fn read_machine_id(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// The machine's id is to be kept from others (machine-id(5)): what leaves the machine is a keyed hash of it.
fn derive_identity(machine_id: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, machine_id.as_bytes());
    let tag = hmac::sign(&key, b"hub-agent device instance id");
    hex::encode(tag.as_ref()).chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials {
            hub_uuid: HubUuid::new(),
            tenant_uuid: TenantUuid::new(),
            access_token: "access".to_owned().into(),
            refresh_token: "refresh".to_owned().into(),
            expires_at: Timestamp::from_micros(1),
        }
    }

    #[test]
    fn credentials_survive_and_only_their_owner_reads_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let state = StateDir::open(&path).unwrap();
        assert!(state.load_credentials().unwrap().is_none());
        let given = credentials();
        state.save_credentials(&given).unwrap();
        let loaded = state.load_credentials().unwrap().unwrap();
        assert_eq!(loaded.hub_uuid, given.hub_uuid);
        assert_eq!(loaded.access_token.expose_secret(), "access");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path.join(CREDENTIALS_FILE)), 0o600);
        assert_eq!(mode(&path), 0o700);
        drop(state);
        for (before, after) in [(0o755, 0o700), (0o1777, 0o777)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(before)).unwrap();
            StateDir::open(&path).unwrap();
            assert_eq!(mode(&path), after, "{before:o}");
        }
    }

    #[test]
    fn a_claim_is_sent_again_under_the_same_key() {
        let dir = tempfile::tempdir().unwrap();
        let key = StateDir::open(dir.path()).unwrap().claim_key().unwrap();
        assert_eq!(key.len(), 32);
        assert_eq!(StateDir::open(dir.path()).unwrap().claim_key().unwrap(), key);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(StateDir::open(other.path()).unwrap().claim_key().unwrap(), key);
    }

    #[test]
    fn a_damaged_file_counts_as_unclaimed() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        std::fs::write(dir.path().join(CREDENTIALS_FILE), b"{\"hub-uuid\":").unwrap();
        assert!(state.load_credentials().unwrap().is_none());
    }

    #[test]
    fn two_agents_never_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = StateDir::open(dir.path()).unwrap();
        let error = StateDir::open(dir.path()).unwrap_err();
        assert!(error.to_string().contains("another agent is running"), "{error}");
        drop(first);
        StateDir::open(dir.path()).unwrap();
    }

    #[test]
    fn the_machine_id_itself_never_leaves() {
        let id = "0123456789abcdef0123456789abcdef";
        let derived = derive_identity(id);
        assert_eq!(derived.len(), 32);
        assert_ne!(derived, id);
        assert_eq!(derived, derive_identity(id));
    }

    #[test]
    fn debug_output_holds_no_token() {
        let text = format!("{:?}", credentials());
        assert!(!text.contains("\"access\"") && !text.contains("\"refresh\""), "{text}");
    }
}
