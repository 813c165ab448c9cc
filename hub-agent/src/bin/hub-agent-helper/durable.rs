//! Changes on disk that are there whole or not at all, also after a power cut: written beside, synced, renamed, the directory synced.
//! Works only in directories that nobody but the helper can write to: links in them are the helper's own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is not finished has this at the end of its name.
const UNFINISHED: &str = ".hub-agent-helper-new";

/// Makes a directory that all may read, with its parents.
pub fn make_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = parent(path);
    make_dir(parent)?;
    fs::DirBuilder::new().mode(0o755).create(path)?;
    sync_dir(parent)
}

/// Replaces a file's content. Does nothing when it is that already.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let unfinished = beside(path);
    remove(&unfinished)?;
    let mut file = File::options().write(true).create_new(true).mode(mode).open(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    rename(&unfinished, path)
}

/// Makes or switches a symbolic link.
pub fn link(path: &Path, target: &Path) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let unfinished = beside(path);
    remove(&unfinished)?;
    std::os::unix::fs::symlink(target, &unfinished)?;
    rename(&unfinished, path)
}

/// Renames within one file system. Files in what is renamed have to be synced before.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_dir(parent(to))?;
    if parent(from) != parent(to) { sync_dir(parent(from)) } else { Ok(()) }
}

/// Removes a file, a link, or a directory with all in it. It is no error when there is none. Links are never followed.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Ok(()) => sync_dir(parent(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Syncs a tree of files and directories, from the leaves up.
pub fn sync_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_dir(path)
}

pub fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// What is in a directory, by name in order; nothing when it is not there.
pub fn names(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Removes from a directory what was begun and not finished.
pub fn remove_unfinished(path: &Path) -> io::Result<()> {
    for name in names(path)?.iter().filter(|name| name.ends_with(UNFINISHED)) {
        remove(&path.join(name))?;
    }
    Ok(())
}

/// Bytes that may still be written to the disk a path is on.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("file")).to_owned();
    name.push(UNFINISHED);
    path.with_file_name(name)
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
