//! Files that are replaced as a whole: after a crash or a power cut a file has its old content or
//! its new content, never a part of either. These functions wait for the disk, so the agent calls
//! them through `StateDir::on_disk` and never on the thread that runs its tasks.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

/// A file that keeps a part of the disk for the state directory, until the disk is full.
const RESERVE: &str = "reserve";

/// Replaces the content of `folder/name`. Only the file's owner can read it. The content is on disk
/// when this returns. On a full disk the folder's reserve gives the space.
pub fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    match try_replace(folder, name, content) {
        Err(error) if error.kind() == ErrorKind::StorageFull && release_reserve(folder) => {
            try_replace(folder, name, content)
        }
        replaced => replaced,
    }
}

/// Holds `bytes` of the disk in reserve, unless they are held already. A file system that cannot
/// allocate a file in advance holds none.
pub fn hold_reserve(folder: &Path, bytes: u64) -> io::Result<()> {
    let path = folder.join(RESERVE);
    if std::fs::metadata(&path).is_ok_and(|file| file.len() >= bytes) {
        return Ok(());
    }
    let file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    let allocated = fallocate(&file, FallocateFlags::empty(), 0, bytes);
    if allocated.is_err() {
        release_reserve(folder);
    }
    allocated.map_err(io::Error::from)
}

/// Gives the reserve to whoever writes next. Returns whether there was one.
pub fn release_reserve(folder: &Path) -> bool {
    std::fs::remove_file(folder.join(RESERVE)).is_ok()
}

fn try_replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.new"));
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, folder.join(name))?;
    sync_folder(folder)
}

/// Writes the names in a folder to disk: a file that was renamed keeps its new name after a power
/// cut.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes a file. A file that does not exist is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
