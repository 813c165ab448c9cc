//! Names of files that stand beside others, and folders that survive a power cut.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Appends to the file name: `release` becomes `release.key`, also if the name contains dots.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes what was created, renamed or deleted in the folder of `path` survive a power cut.
pub fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
