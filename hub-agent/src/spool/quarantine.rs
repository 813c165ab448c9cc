//! The files beside the spool: a damaged file of the spool and uploads that the service refused
//! permanently, which are kept for inspection, and files of another version of the agent, which are
//! read again when such a version runs. All are bounded in number.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hub_agent::durable;
use hub_protocol::BatchUuid;

/// The most refused uploads that are kept.
const MAX_REFUSED_KEPT: usize = 16;

/// Moves a damaged file away. The last one is kept for inspection.
pub fn quarantine_damaged(path: &Path, reason: &str) {
    let target = path.with_extension("db.damaged");
    tracing::error!(file = %path.display(), moved_to = %target.display(), reason, "the spool is damaged; a new one is created");
    move_database(path, &target);
}

/// The most files of other versions that are kept.
const MAX_SET_ASIDE: usize = 4;
const SET_ASIDE: &str = "spool.db.set-aside-";

/// Moves a file of another version away, until such a version runs.
pub fn set_aside(path: &Path, reason: &str) {
    let dir = path.parent().unwrap_or(Path::new("."));
    let kept = set_aside_files(dir);
    for old in kept.iter().rev().skip(MAX_SET_ASIDE - 1) {
        tracing::error!(file = %old.display(), "too many files of other versions; the oldest is removed");
        remove_database(old);
    }
    let target = dir.join(format!("{SET_ASIDE}{}", BatchUuid::new()));
    tracing::error!(
        file = %path.display(), moved_to = %target.display(), reason,
        "another version wrote the spool; its records are uploaded when such a version runs"
    );
    move_database(path, &target);
}

/// The files of other versions, oldest first.
pub fn set_aside_files(dir: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = names
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(SET_ASIDE) && !name.ends_with("-wal") && !name.ends_with("-shm")
        })
        .map(|entry| entry.path())
        .collect();
    // Version 7 uuids sort by their time.
    files.sort();
    files
}

/// The files of one database of SQLite.
fn database_files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| PathBuf::from(format!("{}{suffix}", path.display())))
}

fn move_database(path: &Path, target: &Path) {
    for (from, to) in database_files(path).iter().zip(database_files(target)) {
        if from.exists()
            && let Err(error) = std::fs::rename(from, to)
        {
            tracing::error!(file = %from.display(), %error, "the file cannot be moved");
        }
    }
}

pub fn remove_database(path: &Path) {
    for file in database_files(path) {
        if let Err(error) = durable::remove(&file) {
            tracing::warn!(file = %file.display(), %error, "the file cannot be removed");
        }
    }
}

pub fn quarantine_refused(dir: &Path, batch: BatchUuid, body: &[u8]) -> io::Result<()> {
    // Records belong to the hub's owner alone.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    // Version 7 uuids sort by their time.
    let mut kept: Vec<PathBuf> = std::fs::read_dir(dir)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    kept.sort();
    for old in kept.iter().rev().skip(MAX_REFUSED_KEPT - 1) {
        std::fs::remove_file(old)?;
    }
    let path = dir.join(format!("{batch}.json.zst"));
    File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)?
        .write_all(body)
}
