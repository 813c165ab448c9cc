//! The stored logins: one private file, read and replaced as a whole under a lock. No secret of it
//! is printed, except by `hub token`. A refresh happens under the lock, since a refresh token works
//! once. A credential goes to its own service alone.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hub_client::{ServiceUrl, Session};
use hub_protocol::TenantUuid;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::issuer::IssuerSession;

/// A login at one service, or at an issuer alone.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    pub service_url: Option<String>,
    #[serde(default)]
    pub insecure_http: bool,
    pub tenant_uuid: Option<TenantUuid>,
    pub credential: StoredCredential,
}

impl Profile {
    /// The service that the credential goes to.
    pub fn service(&self, accepts_plain_http: bool) -> Result<ServiceUrl, Failure> {
        let url = self.service_url.as_deref().ok_or_else(|| {
            Failure::configuration(
                "this login works only with `hub token`; log in with --service-url",
            )
        })?;
        Ok(ServiceUrl::parse(
            url,
            accepts_plain_http || self.insecure_http,
        )?)
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoredCredential {
    ApiKey(String),
    Session(Session),
    Issuer(IssuerSession),
}

#[derive(Default, Serialize, Deserialize)]
pub struct Profiles {
    pub profiles: BTreeMap<String, Profile>,
}

/// The directory of the file.
pub struct Store {
    dir: PathBuf,
}

/// The store, locked against other processes.
pub struct Locked<'a> {
    store: &'a Store,
    _lock: File,
}

impl Store {
    /// `$XDG_CONFIG_HOME/hub`, or `~/.config/hub`.
    pub fn open() -> Result<Self, Failure> {
        let folder = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let config =
            folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
        let missing =
            || Failure::configuration("no directory for credentials; set HOME or XDG_CONFIG_HOME");
        Ok(Self {
            dir: config.ok_or_else(missing)?.join("hub"),
        })
    }

    pub fn file(&self) -> PathBuf {
        self.dir.join("credentials.json")
    }

    /// Locks the store; waits while another process holds the lock.
    pub fn lock(&self) -> Result<Locked<'_>, Failure> {
        let failed = |path: &Path, error| {
            Failure::failed(format!(
                "{} is not usable: {error}; check its permissions",
                path.display()
            ))
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(|error| failed(&self.dir, error))?;
        let path = self.dir.join("credentials.lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let lock = lock
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| failed(&path, error))?;
        Ok(Locked {
            store: self,
            _lock: lock,
        })
    }

    /// All logins; none before the first login.
    pub fn read(&self) -> Result<Profiles, Failure> {
        let file = self.file();
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Profiles::default()),
            Err(error) => {
                return Err(Failure::failed(format!(
                    "cannot read {}: {error}",
                    file.display()
                )));
            }
        };
        serde_json::from_slice(&text).map_err(|_| {
            Failure::configuration(format!(
                "{} is damaged; remove it and run `hub login`",
                file.display()
            ))
        })
    }
}

impl Locked<'_> {
    pub fn read(&self) -> Result<Profiles, Failure> {
        self.store.read()
    }

    /// Replaces the file atomically: after a crash it holds the old or the new logins.
    pub fn write(&self, profiles: &Profiles) -> Result<(), Failure> {
        let (file, new) = (
            self.store.file(),
            self.store.dir.join("credentials.json.new"),
        );
        let write = || {
            // A file left over from a crash could be readable by others.
            match std::fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut opened = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&new)?;
            opened.write_all(&serde_json::to_vec_pretty(profiles)?)?;
            opened.sync_all()?;
            std::fs::rename(&new, &file)
        };
        write()
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))
    }

    /// Changes one login, if it exists.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Profile)) -> Result<(), Failure> {
        let mut profiles = self.read()?;
        if let Some(profile) = profiles.profiles.get_mut(name) {
            change(profile);
            self.write(&profiles)?;
        }
        Ok(())
    }
}
