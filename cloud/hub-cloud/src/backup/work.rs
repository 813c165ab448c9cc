//! The folder that a backup, a restore or a drill works in. It is private, it is locked while
//! somebody works in it, and its name says that it is not finished. What a killed process left
//! there is removed by the next one.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use hub_base::paths::with_suffix;
use rustix::fs::{FlockOperation, flock};

use super::{Failure, Result};

pub const SUFFIX: &str = ".partial";

/// A folder that is removed with this value, unless it is kept.
pub struct Work {
    path: PathBuf,
    _lock: File,
    is_kept: bool,
}

impl Work {
    /// Creates the folder, or empties the one that a killed process left.
    pub fn begin(path: PathBuf) -> Result<Self> {
        Self::again(path, |_| Ok(()))
    }

    /// The same; `undo` reads what the killed process left, before it is gone.
    pub fn again(path: PathBuf, undo: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let failed = |error| Failure::at(&path, "cannot use", error);
        let created = fs::DirBuilder::new().mode(0o700).create(&path);
        match created {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => other.map_err(failed)?,
        }
        let own = fs::symlink_metadata(&path).map_err(failed)?;
        if !own.is_dir() || own.uid() != rustix::process::geteuid().as_raw() {
            return Err(Failure::Failed(format!(
                "{} belongs to somebody else; run the command as that user",
                path.display()
            )));
        }
        let lock = lock(&path).map_err(failed)?.ok_or_else(|| {
            Failure::Failed(format!(
                "another process works in {}; wait until it is done",
                path.display()
            ))
        })?;
        undo(&path)?;
        empty(&path).map_err(failed)?;
        Ok(Self {
            path,
            _lock: lock,
            is_kept: false,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The work is done: the folder no longer has its name, then it is removed.
    pub fn finish(mut self, renamed: &Path) -> std::io::Result<()> {
        if renamed.exists() {
            fs::remove_dir_all(renamed)?;
        }
        fs::rename(&self.path, renamed)?;
        self.path = renamed.to_owned();
        Ok(())
    }

    /// Leaves the folder there.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.is_kept {
            // The next one to work there removes the rest.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// `None` while another process holds it. The kernel frees the lock of a process that was killed.
fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let folder = File::open(path)?;
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(folder)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn empty(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Removes the folders in `dir` that killed processes left, of those that `is_ours` knows by name.
pub fn sweep(dir: &Path, is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_left = name
            .to_str()
            .and_then(|name| name.strip_suffix(SUFFIX))
            .is_some_and(&is_ours);
        if is_left && let Ok(Some(_lock)) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The path with the suffix of unfinished work.
pub fn partial(path: &Path) -> PathBuf {
    with_suffix(path, SUFFIX)
}

/// Runs what reads and writes files in a thread of its own.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::Failed(error.to_string()))?
}
