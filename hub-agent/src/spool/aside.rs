//! Files beside the spool: one that was damaged, and uploads the service refused for good, kept for someone to look at. Bounded in number.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hub_protocol::BatchUuid;

/// Uploads that were refused and are kept for someone to look at.
const MAX_REFUSED_KEPT: usize = 16;

/// Moves a file that makes no sense out of the way; the last one is kept for whoever wants to look.
pub fn set_aside(path: &Path, reason: &str) {
    let aside = path.with_extension("db.damaged");
    tracing::error!(file = %path.display(), moved_to = %aside.display(), reason, "the spool is damaged; a new one is begun");
    for suffix in ["", "-wal", "-shm"] {
        let from = PathBuf::from(format!("{}{suffix}", path.display()));
        let to = PathBuf::from(format!("{}{suffix}", aside.display()));
        if from.exists()
            && let Err(error) = std::fs::rename(&from, &to)
        {
            tracing::error!(file = %from.display(), %error, "the damaged file cannot be moved");
        }
    }
}

pub fn keep_refused(dir: &Path, batch: BatchUuid, body: &[u8]) -> io::Result<()> {
    // What was heard is the owner's alone.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    // Version 7 uuids sort by their time.
    let mut kept: Vec<PathBuf> =
        std::fs::read_dir(dir)?.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    kept.sort();
    for old in kept.iter().rev().skip(MAX_REFUSED_KEPT - 1) {
        std::fs::remove_file(old)?;
    }
    let path = dir.join(format!("{batch}.json.zst"));
    File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?.write_all(body)
}
