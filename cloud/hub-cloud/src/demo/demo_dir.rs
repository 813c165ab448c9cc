//! The directory of the demo: database, keys, account, logs and the state of the hub. It is private
//! to its owner and locked by one running demo.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::sealing;
use serde::{Deserialize, Serialize};

use super::Failure;

const ACCOUNT: &str = "account.json";
const LOCK: &str = "demo.lock";
pub const CLAIM_CODE: &str = "claim-code";
pub const ENVIRONMENT: &str = "env.sh";
pub const RECORDING: &str = "recording.jsonl";
/// Signs the release of the sample.
pub const RELEASE_KEY: &str = "release.key";
pub const TRUSTED_KEYS: &str = "release-keys/agent";
pub const RECEIVER_PORT: &str = "receiver-port";
pub const SAMPLE: &str = "sample.json";
pub const SERVICE_LOG: &str = "hub-cloud.log";
pub const AGENT_LOG: &str = "hub-agent.log";
pub const HUB: &str = "hub";

const EMAIL: &str = "demo@example.com";
const OPERATOR_EMAIL: &str = "operator@example.com";

/// An account of the demo.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub email: String,
    pub password: String,
}

impl Account {
    /// The administrator of the platform, who has the same password.
    pub fn operator(&self) -> Self {
        Self {
            email: OPERATOR_EMAIL.to_owned(),
            password: self.password.clone(),
        }
    }
}

pub struct DemoDir {
    dir: PathBuf,
    _lock: File,
}

impl DemoDir {
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure(format!(
                "cannot use {}: {error}; choose another --data-dir",
                dir.display()
            ))
        };
        if dir.join("hub-cloud.sqlite").exists() && !dir.join(ACCOUNT).exists() {
            return Err(Failure(format!(
                "{} holds the data of a real service, not of a demo; choose another --data-dir",
                dir.display()
            )));
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(failed)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(dir.join(LOCK));
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                dir: dir.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(Failure(format!(
                "a demo is already running in {}; stop it first, or choose another --data-dir",
                dir.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The directory, quoted for a shell.
    pub fn shell_path(&self) -> String {
        let dir = self.dir.display().to_string();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        // A relative path needs a slash: the shell command `.` searches PATH for names without one.
        match (dir.chars().all(is_plain), dir.starts_with('/')) {
            (true, true) => dir,
            (true, false) => format!("./{}", dir.trim_start_matches("./")),
            (false, true) => format!("'{}'", dir.replace('\'', r"'\''")),
            (false, false) => format!(
                "'./{}'",
                dir.trim_start_matches("./").replace('\'', r"'\''")
            ),
        }
    }

    /// The stored account. At the first start it is created here and not registered yet.
    pub fn account(&self) -> Result<Account, Failure> {
        let path = self.path(ACCOUNT);
        match std::fs::read(&path) {
            // The error of the parser could quote the password.
            Ok(text) => serde_json::from_slice(&text).map_err(|_| {
                Failure(format!(
                    "{} is damaged; remove {} to start over",
                    path.display(),
                    self.dir.display()
                ))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let password = URL_SAFE_NO_PAD.encode(sealing::random::<15>());
                let account = Account {
                    email: EMAIL.to_owned(),
                    password,
                };
                let text = serde_json::to_vec_pretty(&account)
                    .map_err(|error| Failure(error.to_string()))?;
                // Stored before it is registered: without its password the account would be
                // unusable.
                self.write(ACCOUNT, &text)?;
                Ok(account)
            }
            Err(error) => Err(Failure(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// The content of a file, if it is there.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        match std::fs::read(self.path(name)) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let path = self.path(name);
                Err(Failure(format!("cannot read {}: {error}", path.display())))
            }
        }
    }

    /// Replaces the file atomically, with permissions for its owner only.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.path(name);
        let draft = self.path(&format!("{name}.new"));
        let written = (|| {
            let mut file = File::options()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(content)?;
            file.sync_all()?;
            std::fs::rename(&draft, &path)
        })();
        written.map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
    }

    /// Opens a log file for appending.
    pub fn log(&self, name: &str) -> Result<File, Failure> {
        let path = self.path(name);
        let file = File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path);
        file.map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn account_is_created_once_and_private_to_its_owner() {
        let parent = tempfile::tempdir().expect("a directory");
        let dir = parent.path().join("a/demo");
        let first = DemoDir::open(&dir).expect("a demo directory");
        let account = first.account().expect("an account");
        assert!(account.password.len() >= 20);
        let mode = |path: &Path| {
            std::fs::metadata(path)
                .expect("metadata")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!((mode(&dir), mode(&dir.join(ACCOUNT))), (0o700, 0o600));
        drop(first);
        assert!(
            DemoDir::open(&dir)
                .expect("a demo directory")
                .account()
                .expect("an account")
                == account
        );
        std::fs::write(
            dir.join(ACCOUNT),
            format!("{{\"password\":\"{}\"", account.password),
        )
        .expect("a file");
        let Err(error) = DemoDir::open(&dir).expect("a demo directory").account() else {
            panic!("a damaged file was accepted")
        };
        assert!(
            error.to_string().contains("is damaged")
                && !error.to_string().contains(&account.password),
            "{error}"
        );
    }

    #[test]
    fn second_demo_and_data_of_a_real_service_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = DemoDir::open(dir.path()).expect("a demo directory");
        assert!(
            DemoDir::open(dir.path())
                .is_err_and(|error| error.to_string().contains("already running"))
        );
        drop(first);
        std::fs::write(dir.path().join("hub-cloud.sqlite"), "").expect("a file");
        assert!(
            DemoDir::open(dir.path())
                .is_err_and(|error| error.to_string().contains("not of a demo"))
        );
    }

    #[test]
    fn shell_path_is_quoted_for_a_shell() {
        let parent = tempfile::tempdir().expect("a directory");
        let shown = |dir: &str| {
            let lock = File::create(parent.path().join("lock")).expect("a file");
            DemoDir {
                dir: dir.into(),
                _lock: lock,
            }
            .shell_path()
        };
        assert_eq!(shown("hub-cloud-data/demo"), "./hub-cloud-data/demo");
        assert_eq!(shown("./x"), "./x");
        assert_eq!(shown("/srv/demo"), "/srv/demo");
        assert_eq!(shown("/srv/it's mine"), r"'/srv/it'\''s mine'");
        assert_eq!(shown("it $HOME"), "'./it $HOME'");
    }
}
