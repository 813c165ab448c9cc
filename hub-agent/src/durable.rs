//! Files that are replaced as a whole: after a crash or a power cut a file has its old content or
//! its new content, never a part of either. These functions wait for the disk, so the agent calls
//! them through `StateDir::on_disk` and never on the thread that runs its tasks.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces the content of `folder/name`. Only the file's owner can read it. The content is on disk
/// when this returns.
pub fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.new"));
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&unfinished)?;
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
