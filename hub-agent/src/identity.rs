//! The state directory and the hub's identity in it: the hardware identity and the credentials that
//! the service issued. Only their owner can read the files. Never logs a token.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::hmac;
use hub_agent::durable;
use hub_protocol::claim::HubCredentials;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Failure;
use crate::set_aside;

pub const CREDENTIALS_FILE: &str = "credentials.json";
const IDENTITY_FILE: &str = "device-instance-id";
const CLAIM_KEY_FILE: &str = "claim-key";
const LOCK_FILE: &str = "lock";
pub const SEAL_KEY_FILE: &str = "seal-key";

/// The credentials that the service issued to this hub. The tokens are secrets and are never
/// printed.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub access_token: SecretString,
    pub refresh_token: SecretString,
    pub expires_at: Timestamp,
    /// The service that issued them, to which alone they are shown. Absent in files of an agent
    /// that did not store it.
    pub service_url: Option<String>,
}

impl Credentials {
    /// As the service at `url` issued them.
    pub fn issued(issued: HubCredentials, url: &Url) -> Self {
        Self {
            hub_uuid: issued.hub_uuid,
            tenant_uuid: issued.tenant_uuid,
            access_token: issued.access_token.into(),
            refresh_token: issued.refresh_token.into(),
            expires_at: issued.expires_at,
            service_url: Some(url.to_string()),
        }
    }
}

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CredentialsFile {
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    access_token: String,
    refresh_token: String,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service_url: Option<String>,
}

impl From<&Credentials> for CredentialsFile {
    fn from(credentials: &Credentials) -> Self {
        Self {
            hub_uuid: credentials.hub_uuid,
            tenant_uuid: credentials.tenant_uuid,
            access_token: credentials.access_token.expose_secret().to_owned(),
            refresh_token: credentials.refresh_token.expose_secret().to_owned(),
            expires_at: credentials.expires_at,
            service_url: credentials.service_url.clone(),
        }
    }
}

/// The credentials in a file, or the line at which it is damaged: the parser's own message could
/// quote a token.
pub fn parse_credentials(bytes: &[u8]) -> Result<Credentials, usize> {
    let file: CredentialsFile = serde_json::from_slice(bytes).map_err(|error| error.line())?;
    Ok(Credentials {
        hub_uuid: file.hub_uuid,
        tenant_uuid: file.tenant_uuid,
        access_token: file.access_token.into(),
        refresh_token: file.refresh_token.into(),
        expires_at: file.expires_at,
        service_url: file.service_url,
    })
}

/// Closes a state directory of this user to all others. A directory with the sticky bit, such as
/// `/tmp`, is meant for all users and stays as it is.
fn close_to_others(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    let mode = metadata.mode() & 0o7777;
    if metadata.is_dir() && is_ours && mode & 0o077 != 0 && mode & 0o1000 == 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        tracing::warn!(
            directory = %path.display(), mode = format!("{mode:03o}"),
            "the state directory was open to other users; it is closed to them now"
        );
    }
    Ok(())
}

/// The directory of everything durable, locked by this process as long as the value lives.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    _lock: File,
    /// A lock that the write under way holds: see [`StateDir::on_disk`].
    writing: Arc<tokio::sync::Mutex<()>>,
}

/// Why a state directory cannot be opened.
#[derive(Debug)]
pub enum Unopened {
    /// Another agent uses it.
    InUse(Failure),
    /// It cannot be read or written now.
    Unusable(String),
}

impl From<Unopened> for Failure {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::InUse(failure) => failure,
            Unopened::Unusable(reason) => Self::Failed(reason),
        }
    }
}

impl StateDir {
    /// Creates the directory if it does not exist, and locks it.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self::try_open(path)?)
    }

    /// As [`StateDir::open`], for a caller that can wait.
    pub fn try_open(path: &Path) -> Result<Self, Unopened> {
        let failed = |what: &str, error: io::Error| {
            Unopened::Unusable(format!(
                "cannot {what} the state directory {}: {error}; make it writable to this user, or select another with \
                 --state-dir",
                path.display()
            ))
        };
        if !path.exists() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|error| failed("create", error))?;
        }
        close_to_others(path).map_err(|error| failed("read", error))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join(LOCK_FILE))
            .map_err(|error| failed("write to", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Unopened::InUse(Failure::Failed(format!(
                    "another agent is running on {}; stop it first, or give this one a --state-dir of its own",
                    path.display()
                ))));
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", error)),
        }
        let opened = Self {
            path: path.to_owned(),
            _lock: lock,
            writing: Arc::default(),
        };
        // A file on a broken part of the disk.
        if let Err(failure) = opened.load_credentials() {
            return Err(Unopened::Unusable(failure.to_string()));
        }
        Ok(opened)
    }

    /// Why an agent on this directory waits, as far as the directory shows it.
    pub fn trouble(path: &Path) -> Option<String> {
        let lock = path.join(LOCK_FILE);
        let error = File::options().write(true).open(lock).err()?;
        (error.kind() != io::ErrorKind::NotFound).then(|| error.to_string())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `write` with the directory's path, on a thread that may wait for the disk. The agent's
    /// tasks share one thread, so none of them writes a file of the state directory itself.
    ///
    /// Writes run one at a time, in the order of the calls. One that has begun is finished even if
    /// its caller stops waiting: a later write never overtakes it and always has the last word.
    pub async fn on_disk<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let path = self.path.clone();
        let writing = self.writing.clone().lock_owned().await;
        let written = tokio::task::spawn_blocking(move || {
            let written = write(&path);
            drop(writing);
            written
        });
        written.await.map_err(io::Error::other)?
    }

    /// Replaces the content of the file `name`. The content is on disk when this returns.
    pub async fn replace(&self, name: &'static str, content: Vec<u8>) -> io::Result<()> {
        self.on_disk(move |path| durable::replace(path, name, &content))
            .await
    }

    /// Removes the file `name`, if it exists.
    pub async fn remove(&self, name: &'static str) -> io::Result<()> {
        self.on_disk(move |path| durable::remove(&path.join(name)))
            .await
    }

    /// The credentials of the last claim, `None` before the first.
    pub fn load_credentials(&self) -> Result<Option<Credentials>, Failure> {
        // A hub without credentials can be claimed; a hub that does not start cannot.
        set_aside::read(&self.path, CREDENTIALS_FILE, |bytes| {
            parse_credentials(bytes).map_err(|line| format!("line {line}; claim this hub again"))
        })
        .map_err(|error| {
            let path = self.path.join(CREDENTIALS_FILE);
            Failure::Failed(format!("cannot read {}: {error}", path.display()))
        })
    }

    /// Fails if credentials could not be written now: a claim uses its code up either way.
    pub async fn check_space(&self) -> io::Result<()> {
        self.on_disk(|path| {
            let probe = format!("{CREDENTIALS_FILE}.probe");
            durable::replace(path, &probe, &[b' '; 16 << 10])?;
            durable::remove(&path.join(probe))
        })
        .await
    }

    pub async fn save_credentials(&self, credentials: &Credentials) -> io::Result<()> {
        let file = CredentialsFile::from(credentials);
        let text = serde_json::to_vec_pretty(&file).map_err(io::Error::other)?;
        self.replace(CREDENTIALS_FILE, text).await
    }

    /// The hub's stable hardware identity: the configured one, else one derived from the machine's
    /// id, else one that is generated once. Called at the start, before any task runs.
    pub fn device_instance_id(&self, configured: Option<&str>) -> Result<String, Failure> {
        if let Some(configured) = configured {
            return Ok(configured.to_owned());
        }
        if let Some(machine_id) = read_machine_id(Path::new("/etc/machine-id")) {
            return Ok(derive_identity(&machine_id));
        }
        generated_once(&self.path, IDENTITY_FILE).map_err(|error| {
            Failure::Failed(format!(
                "cannot write {}: {error}",
                self.path.join(IDENTITY_FILE).display()
            ))
        })
    }

    /// The idempotency key of this hub's claims, which never changes: a claim whose answer was lost
    /// can be repeated with the same code, and another claim comes from the same hub.
    pub async fn claim_key(&self) -> io::Result<String> {
        self.on_disk(|path| generated_once(path, CLAIM_KEY_FILE))
            .await
    }
}

/// The secret with which this hub encrypts what it stores. It never leaves the hub.
pub fn seal_key(folder: &Path) -> io::Result<String> {
    generated_once(folder, SEAL_KEY_FILE)
}

/// The random text in a file, generated when it is first read.
fn generated_once(folder: &Path, name: &str) -> io::Result<String> {
    match std::fs::read_to_string(folder.join(name)) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => {
            let generated = Uuid::new_v4().simple().to_string();
            durable::replace(folder, name, generated.as_bytes())?;
            Ok(generated)
        }
    }
}

/// systemd's id of this installation. On some images it is missing or not generated yet.
fn read_machine_id(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// The machine's id is confidential (machine-id(5)): only a keyed hash of it leaves the machine.
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
            service_url: Some("https://hubs.example.com/".to_owned()),
        }
    }

    #[tokio::test]
    async fn credentials_survive_a_restart_and_only_their_owner_can_read_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let state = StateDir::open(&path).unwrap();
        assert!(state.load_credentials().unwrap().is_none());
        let issued = credentials();
        state.save_credentials(&issued).await.unwrap();
        let loaded = state.load_credentials().unwrap().unwrap();
        assert_eq!(loaded.hub_uuid, issued.hub_uuid);
        assert_eq!(loaded.access_token.expose_secret(), "access");
        assert_eq!(loaded.service_url, issued.service_url);
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

    #[tokio::test]
    async fn the_claim_key_stays_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let key = StateDir::open(dir.path())
            .unwrap()
            .claim_key()
            .await
            .unwrap();
        assert_eq!(key.len(), 32);
        assert_eq!(
            StateDir::open(dir.path())
                .unwrap()
                .claim_key()
                .await
                .unwrap(),
            key
        );
        let other = tempfile::tempdir().unwrap();
        assert_ne!(
            StateDir::open(other.path())
                .unwrap()
                .claim_key()
                .await
                .unwrap(),
            key
        );
    }

    #[tokio::test]
    async fn writes_leave_the_runtime_thread_and_keep_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let runtime = std::thread::current().id();
        let thread = state
            .on_disk(|_| Ok(std::thread::current().id()))
            .await
            .unwrap();
        assert_ne!(thread, runtime);

        // The first write is slow, and its caller stops waiting for it as soon as it has begun.
        let (began, begun) = tokio::sync::oneshot::channel();
        let slow = state.on_disk(|path| {
            let _ = began.send(());
            std::thread::sleep(std::time::Duration::from_millis(200));
            durable::replace(path, "file", b"first")
        });
        tokio::select! {
            biased;
            _ = slow => panic!("it takes 200 ms"),
            _ = begun => {}
        }
        state.replace("file", b"second".to_vec()).await.unwrap();
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"second");
    }

    #[test]
    fn a_hub_with_a_damaged_credentials_file_is_unclaimed() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        std::fs::write(dir.path().join(CREDENTIALS_FILE), b"{\"hub-uuid\":").unwrap();
        assert!(state.load_credentials().unwrap().is_none());
    }

    #[test]
    fn a_second_agent_on_the_same_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let first = StateDir::open(dir.path()).unwrap();
        let error = StateDir::open(dir.path()).unwrap_err();
        assert!(
            error.to_string().contains("another agent is running"),
            "{error}"
        );
        drop(first);
        StateDir::open(dir.path()).unwrap();
    }

    #[test]
    fn the_hardware_identity_does_not_contain_the_machine_id() {
        let id = "0123456789abcdef0123456789abcdef";
        let derived = derive_identity(id);
        assert_eq!(derived.len(), 32);
        assert_ne!(derived, id);
        assert_eq!(derived, derive_identity(id));
    }

    #[test]
    fn debug_output_contains_no_token() {
        let text = format!("{:?}", credentials());
        assert!(
            !text.contains("\"access\"") && !text.contains("\"refresh\""),
            "{text}"
        );
    }
}
