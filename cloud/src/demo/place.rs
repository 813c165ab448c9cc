//! The demo's directory: database, keys, account, logs and the hub's own state. Only its owner may look in, and one demo at a time uses it.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::sealing;

const ACCOUNT: &str = "account.json";
const LOCK: &str = "demo.lock";
pub const CLAIM_CODE: &str = "claim-code";
pub const ENVIRONMENT: &str = "env.sh";
pub const TRACE: &str = "trace.jsonl.zst";
pub const SERVICE_LOG: &str = "hub-cloud.log";
pub const AGENT_LOG: &str = "hub-agent.log";
pub const HUB: &str = "hub";

const EMAIL: &str = "demo@example.com";

/// Whom the demo logs in as.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub email: String,
    pub password: String,
}

pub struct Place {
    dir: PathBuf,
    _lock: File,
}

impl Place {
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure(format!("{} cannot be used: {error}; name another --data-dir", dir.display()));
        if dir.join("hub-cloud.sqlite").exists() && !dir.join(ACCOUNT).exists() {
            return Err(Failure(format!(
                "{} holds the data of a service that is no demo; name another --data-dir",
                dir.display()
            )));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(dir.join(LOCK));
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Failure(format!(
                "a demo is already running in {}; end it first, or name another --data-dir",
                dir.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The directory, ready to be pasted into a shell.
    pub fn shown(&self) -> String {
        let dir = self.dir.display().to_string();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        // A relative path gets a slash in front: `.` looks for names without one in PATH.
        match (dir.chars().all(is_plain), dir.starts_with('/')) {
            (true, true) => dir,
            (true, false) => format!("./{}", dir.trim_start_matches("./")),
            (false, true) => format!("'{}'", dir.replace('\'', r"'\''")),
            (false, false) => format!("'./{}'", dir.trim_start_matches("./").replace('\'', r"'\''")),
        }
    }

    /// The account of the last start; at the first, one that is still to be registered.
    pub fn account(&self) -> Result<Account, Failure> {
        let path = self.path(ACCOUNT);
        match std::fs::read(&path) {
            // The parser's own text could quote the password.
            Ok(text) => serde_json::from_slice(&text).map_err(|_| {
                Failure(format!("{} is damaged; remove {} to begin afresh", path.display(), self.dir.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let password = URL_SAFE_NO_PAD.encode(sealing::random::<15>());
                let account = Account { email: EMAIL.to_owned(), password };
                let text = serde_json::to_vec_pretty(&account).map_err(|error| Failure(error.to_string()))?;
                // On disk before the service knows it: an account without its password would lock the demo out.
                self.write(ACCOUNT, &text)?;
                Ok(account)
            }
            Err(error) => Err(Failure(format!("{} cannot be read: {error}", path.display()))),
        }
    }

    /// Puts `content` in place of the file's old content, whole; nobody else can read it.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.path(name);
        let fresh = self.path(&format!("{name}.new"));
        let written = (|| {
            let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
            file.write_all(content)?;
            file.sync_all()?;
            std::fs::rename(&fresh, &path)
        })();
        written.map_err(|error| Failure(format!("{} cannot be written: {error}", path.display())))
    }

    /// A log to add to.
    pub fn log(&self, name: &str) -> Result<File, Failure> {
        let path = self.path(name);
        let file = File::options().create(true).append(true).mode(0o600).open(&path);
        file.map_err(|error| Failure(format!("{} cannot be written: {error}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_account_is_made_once_and_only_its_owner_reads_it() {
        let parent = tempfile::tempdir().expect("a directory");
        let dir = parent.path().join("a/demo");
        let first = Place::open(&dir).expect("a place");
        let account = first.account().expect("an account");
        assert!(account.password.len() >= 20);
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&dir.join(ACCOUNT))), (0o700, 0o600));
        drop(first);
        assert!(Place::open(&dir).expect("a place").account().expect("an account") == account);
        std::fs::write(dir.join(ACCOUNT), format!("{{\"password\":\"{}\"", account.password)).expect("a file");
        let Err(error) = Place::open(&dir).expect("a place").account() else { panic!("a damaged file was accepted") };
        assert!(error.to_string().contains("is damaged") && !error.to_string().contains(&account.password), "{error}");
    }

    #[test]
    fn two_demos_and_the_data_of_a_real_service_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = Place::open(dir.path()).expect("a place");
        assert!(Place::open(dir.path()).is_err_and(|error| error.to_string().contains("already running")));
        drop(first);
        std::fs::write(dir.path().join("hub-cloud.sqlite"), "").expect("a file");
        assert!(Place::open(dir.path()).is_err_and(|error| error.to_string().contains("no demo")));
    }

    #[test]
    fn the_directory_can_be_pasted_into_a_shell() {
        let parent = tempfile::tempdir().expect("a directory");
        let shown = |dir: &str| {
            let lock = File::create(parent.path().join("lock")).expect("a file");
            Place { dir: dir.into(), _lock: lock }.shown()
        };
        assert_eq!(shown("hub-cloud-data/demo"), "./hub-cloud-data/demo");
        assert_eq!(shown("./x"), "./x");
        assert_eq!(shown("/srv/demo"), "/srv/demo");
        assert_eq!(shown("/srv/it's mine"), r"'/srv/it'\''s mine'");
        assert_eq!(shown("it $HOME"), "'./it $HOME'");
    }
}
