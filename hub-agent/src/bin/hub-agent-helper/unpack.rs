//! Unpacks an app's archive. Accepts only regular files and directories, within bounds. Anything
//! else refuses the archive, and nothing is skipped silently. Writes below one empty directory to
//! which no other user can write.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hub_agent::helper_api::{Reason, Refusal};
use tar::{Entry, EntryType};

use crate::durable;
use crate::refusal::{internal, refuse};

/// All headers and files together.
const MAX_UNPACKED_BYTES: u64 = 2 << 30;
const MAX_ENTRIES: u64 = 20_000;
const MAX_PATH_BYTES: usize = 512;
const MAX_PATH_PARTS: usize = 16;
const MAX_NAME_BYTES: usize = 255;
/// The limit of a long name, or of extended attributes, which are read as a whole.
const MAX_EXTENSION_BYTES: u64 = 64 << 10;
/// A window of 8 MiB: RFC 8878 requires decoders to support it, and `zstd` uses it up to level 19.
const MAX_WINDOW_LOG: u32 = 23;
/// The number of bytes written between two checks of the free space.
const CHECK_SPACE_EVERY_BYTES: u64 = 16 << 20;

/// Unpacks `archive` into the directory, and leaves `headroom` bytes of the disk free. Nothing is
/// synced.
pub fn unpack(archive: File, into: &Path, headroom: u64) -> Result<(), Refusal> {
    let mut decoder = zstd::Decoder::new(archive).map_err(damaged)?;
    decoder
        .window_log_max(MAX_WINDOW_LOG)
        .map_err(internal("cannot unpack"))?;
    let mut archive = tar::Archive::new(decoder);
    let mut unpacking = Unpacking {
        into,
        headroom,
        entries: 0,
        bytes: 0,
        checked_at_bytes: None,
    };
    let mut long_name = None;
    // Raw: the crate itself would read names and attributes of any length into memory.
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        unpacking.count(entry.header().entry_size().map_err(damaged)?)?;
        match entry.header().entry_type() {
            EntryType::GNULongName => long_name = Some(read_long_name(&mut entry)?),
            EntryType::XHeader => long_name = read_attributes(&mut entry)?.or(long_name),
            EntryType::XGlobalHeader => {
                if read_attributes(&mut entry)?.is_some() {
                    return Err(refused("it has one path for all its entries"));
                }
            }
            kind => unpacking.add(&mut entry, kind, long_name.take())?,
        }
    }
    Ok(())
}

struct Unpacking<'a> {
    into: &'a Path,
    headroom: u64,
    entries: u64,
    bytes: u64,
    checked_at_bytes: Option<u64>,
}

impl Unpacking<'_> {
    /// Counts an entry before its content is read.
    fn count(&mut self, size: u64) -> Result<(), Refusal> {
        self.entry()?;
        self.bytes = self.bytes.saturating_add(size).saturating_add(1_024);
        if self.bytes > MAX_UNPACKED_BYTES {
            return Err(refused(format!(
                "it is larger than {MAX_UNPACKED_BYTES} bytes when unpacked"
            )));
        }
        if self
            .checked_at_bytes
            .is_none_or(|before| self.bytes - before >= CHECK_SPACE_EVERY_BYTES)
        {
            self.checked_at_bytes = Some(self.bytes);
            let free = durable::free_bytes(self.into)
                .map_err(internal("cannot read the free space of the disk"))?;
            if free < size.saturating_add(self.headroom) {
                return Err(refuse(
                    Reason::NoSpace,
                    "the disk has too little space for the unpacked app",
                ));
            }
        }
        Ok(())
    }

    fn entry(&mut self) -> Result<(), Refusal> {
        self.entries += 1;
        match self.entries > MAX_ENTRIES {
            true => Err(refused(format!(
                "it has more than {MAX_ENTRIES} files and directories"
            ))),
            false => Ok(()),
        }
    }

    fn add(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        kind: EntryType,
        name: Option<Vec<u8>>,
    ) -> Result<(), Refusal> {
        let name = name.unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let path = checked(&name)?;
        let shown = path.display();
        if !matches!(kind, EntryType::Regular | EntryType::Directory) {
            return Err(refused(format!(
                "{shown} is neither a regular file nor a directory"
            )));
        }
        let mode = entry.header().mode().map_err(damaged)?;
        if mode & 0o6000 != 0 {
            return Err(refused(format!("{shown} has a setuid or setgid bit")));
        }
        if kind == EntryType::Directory {
            return self.create_dirs(&path);
        }
        if name.ends_with(b"/") || path.as_os_str().is_empty() {
            return Err(refused(format!("{shown} is a file named like a directory")));
        }
        if let Some(parent) = path.parent() {
            self.create_dirs(parent)?;
        }
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(self.into.join(&path))
            .map_err(|error| cannot_create(&path, error))?;
        let size = entry.header().entry_size().map_err(damaged)?;
        let written = copy(entry, &mut file)?;
        if written != size {
            return Err(refused(format!("it ends within {shown}")));
        }
        Ok(())
    }

    /// Creates a directory and its parents. Existing ones are not an error.
    fn create_dirs(&mut self, path: &Path) -> Result<(), Refusal> {
        let mut created = self.into.to_owned();
        for part in path {
            created.push(part);
            match fs::DirBuilder::new().mode(0o755).create(&created) {
                Ok(()) => self.entry()?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists && created.is_dir() => {}
                Err(error) => return Err(cannot_create(path, error)),
            }
        }
        Ok(())
    }
}

/// Distinguishes reading from writing: a damaged archive is the archive's fault, a full disk is
/// not.
fn copy(from: &mut impl Read, to: &mut File) -> Result<u64, Refusal> {
    let mut buffer = vec![0; 64 << 10];
    let mut copied = 0;
    loop {
        let length = from.read(&mut buffer).map_err(damaged)?;
        if length == 0 {
            return Ok(copied);
        }
        io::Write::write_all(to, buffer.get(..length).unwrap_or_default())
            .map_err(internal("cannot write the app"))?;
        copied += length as u64;
    }
}

fn read_extension(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, Refusal> {
    let mut content = Vec::new();
    let size = entry.header().entry_size().map_err(damaged)?;
    if size > MAX_EXTENSION_BYTES {
        return Err(refused("it has a name or attributes that are too long"));
    }
    entry.read_to_end(&mut content).map_err(damaged)?;
    Ok(content)
}

fn read_long_name(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, Refusal> {
    let mut name = read_extension(entry)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

/// The path in an entry's extended attributes (pax, POSIX.1-2001), if there is one. Times and
/// owners are ignored. Attributes that change the entry's size or kind are refused: readers
/// disagree about them, and archives can hide content there.
fn read_attributes(entry: &mut Entry<'_, impl Read>) -> Result<Option<Vec<u8>>, Refusal> {
    let content = read_extension(entry)?;
    let mut path = None;
    for attribute in tar::PaxExtensions::new(&content) {
        let attribute = attribute.map_err(damaged)?;
        let key = attribute.key_bytes();
        if key == b"path" {
            path = Some(attribute.value_bytes().to_vec());
        } else if key == b"size" || key == b"linkpath" || key.starts_with(b"GNU.sparse") {
            let key = String::from_utf8_lossy(key);
            return Err(refused(format!("it has an entry with the attribute {key}")));
        }
    }
    Ok(path)
}

/// The path of an entry, if it stays within the archive. Only a leading `./` is removed.
fn checked(name: &[u8]) -> Result<PathBuf, Refusal> {
    let text = std::str::from_utf8(name).map_err(|_| refused("it has a name that is not UTF-8"))?;
    if text.len() > MAX_PATH_BYTES {
        return Err(refused(format!(
            "it has a path of more than {MAX_PATH_BYTES} bytes"
        )));
    }
    if text.chars().any(char::is_control) {
        return Err(refused("it has a name with control characters"));
    }
    if text.starts_with('/') || text.is_empty() {
        return Err(refused(format!("{text:?} is not a relative path")));
    }
    let text = text.strip_prefix("./").unwrap_or(text);
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() || text == "." {
        return Ok(PathBuf::new());
    }
    let is_fine = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= MAX_NAME_BYTES;
    if !text.split('/').all(is_fine) || text.split('/').count() > MAX_PATH_PARTS {
        return Err(refused(format!(
            "{text:?} is not a path of at most {MAX_PATH_PARTS} plain names"
        )));
    }
    Ok(PathBuf::from(text))
}

fn cannot_create(path: &Path, error: io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            refused(format!("{} is in it twice", path.display()))
        }
        _ => internal("cannot write the app")(error),
    }
}

/// A read error is the disk's if the system reported it, else the archive's.
fn damaged(error: io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(_) => internal("cannot read the archive")(error),
        None => refused(format!("it cannot be read: {error}")),
    }
}

pub fn refused(problem: impl std::fmt::Display) -> Refusal {
    refuse(
        Reason::ArchiveRefused,
        format!("the archive is refused: {problem}"),
    )
}
