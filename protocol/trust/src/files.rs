//! Whether files have changed since they were read.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files as they are at a moment: equal to a later one as long as none of them changes.
#[derive(Debug, PartialEq, Eq)]
pub struct FilesNow(Vec<(PathBuf, Option<FileState>)>);

/// Inode, size, and the time of the last change with its nanoseconds.
type FileState = (u64, u64, i64, i64);

impl FilesNow {
    pub fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let with_state = |path: PathBuf| {
            let file = std::fs::metadata(&path).ok();
            let state = file.map(|file| (file.ino(), file.size(), file.mtime(), file.mtime_nsec()));
            (path, state)
        };
        Self(files.into_iter().map(with_state).collect())
    }

    /// The files with the authorities that this machine trusts, and this one.
    pub fn of_authorities(given: Option<&Path>) -> Self {
        let system = openssl_probe::probe();
        let files = system.cert_file.into_iter().chain(system.cert_dir);
        Self::of(files.chain(given.map(Path::to_owned)))
    }
}
