//! Atomic and durable changes on disk, also across a power cut: written to another file, synced,
//! renamed, and the directory synced. Works only in directories to which only the helper can write:
//! links in them are the helper's own.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, openat, renameat_with, unlinkat};
use rustix::io::Errno;

/// The suffix of unfinished files.
const UNFINISHED: &str = ".hub-agent-helper-new";

/// Creates a directory that all users can read, with its parents.
pub fn create_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = parent(path);
    create_dir(parent)?;
    fs::DirBuilder::new().mode(0o755).create(path)?;
    sync_dir(parent)
}

/// Replaces a file's content. Does nothing and returns false if it is the same.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<bool> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(false);
    }
    let unfinished = beside(path);
    remove(&unfinished)?;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    rename(&unfinished, path)?;
    Ok(true)
}

/// Creates or replaces a symbolic link.
pub fn link(path: &Path, target: &Path) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let unfinished = beside(path);
    remove(&unfinished)?;
    std::os::unix::fs::symlink(target, &unfinished)?;
    rename(&unfinished, path)
}

/// Renames within one file system. Files in a renamed directory must be synced before.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_dir(parent(to))?;
    if parent(from) != parent(to) {
        sync_dir(parent(from))
    } else {
        Ok(())
    }
}

/// Removes a file, a link, or a directory with its content. A missing path is not an error. Links
/// are never followed.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => remove_tree(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Ok(()) => sync_dir(parent(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a directory with its content, however deep: an app may nest directories deeper than the
/// descriptors or the stack allow. So a directory's content is moved up before it is removed, until
/// nothing is left. Links are never followed.
fn remove_tree(path: &Path) -> io::Result<()> {
    let within = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let tree = openat(CWD, path, within, Mode::empty())?;
    let mut moved = 0_u64;
    loop {
        let mut found_directory = false;
        for name in entries(&tree)? {
            let name = name?;
            if unlink_unless_directory(&tree, &name)? {
                continue;
            }
            found_directory = true;
            let directory = openat(&tree, &name, within, Mode::empty())?;
            for name in entries(&directory)? {
                let name = name?;
                if !unlink_unless_directory(&directory, &name)? {
                    move_up(&directory, &name, &tree, &mut moved)?;
                }
            }
            unlinkat(&tree, &name, AtFlags::REMOVEDIR)?;
        }
        if !found_directory {
            return fs::remove_dir(path);
        }
    }
}

fn entries(directory: &OwnedFd) -> io::Result<impl Iterator<Item = io::Result<CString>>> {
    let names = Dir::read_from(directory)?.map(|entry| Ok(entry?.file_name().to_owned()));
    Ok(names.filter(|name| {
        !name
            .as_ref()
            .is_ok_and(|name| matches!(name.to_bytes(), b"." | b".."))
    }))
}

/// False for a directory.
fn unlink_unless_directory(parent: &OwnedFd, name: &CStr) -> io::Result<bool> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Uses a name that is free there.
fn move_up(from: &OwnedFd, name: &CStr, to: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match renameat_with(from, name, to, format!("{moved}"), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            done => return Ok(done?),
        }
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

/// The names in a directory, sorted; none if it does not exist.
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

/// Removes unfinished files from a directory.
pub fn remove_unfinished(path: &Path) -> io::Result<()> {
    for name in names(path)?
        .iter()
        .filter(|name| name.ends_with(UNFINISHED))
    {
        remove(&path.join(name))?;
    }
    Ok(())
}

/// Free bytes of the disk of a path.
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
