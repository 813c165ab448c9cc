//! The quarantine beside the spool: a damaged file of the spool, and uploads that the service
//! refused permanently. Both are kept for inspection and bounded in number.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hub_protocol::BatchUuid;

/// The most refused uploads that are kept.
const MAX_REFUSED_KEPT: usize = 16;

/// Moves a damaged file away. The last one is kept for inspection.
pub fn quarantine_damaged(path: &Path, reason: &str) {
    let target = path.with_extension("db.damaged");
    tracing::error!(file = %path.display(), moved_to = %target.display(), reason, "the spool is damaged; a new one is created");
    for suffix in ["", "-wal", "-shm"] {
        let from = PathBuf::from(format!("{}{suffix}", path.display()));
        let to = PathBuf::from(format!("{}{suffix}", target.display()));
        if from.exists()
            && let Err(error) = std::fs::rename(&from, &to)
        {
            tracing::error!(file = %from.display(), %error, "the damaged file cannot be moved");
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
