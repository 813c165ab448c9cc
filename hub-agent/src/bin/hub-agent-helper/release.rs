//! Verifies whether a release may be installed on this hub, and its file, copied to where only root
//! can write while it is verified.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use aws_lc_rs::digest;
use hub_agent::helper_api::{Reason, Refusal};
use hub_protocol::release::{ReleaseKind, ReleaseManifest, public_key, verify};
use rustix::fs::{Mode, OFlags, openat};

use crate::refusal::{internal, refuse};
use crate::root::Root;
use crate::{counters, durable, log};

const MAX_KEYS: usize = 64;

/// The manifest, if a key of this hub's owner signed it and it is for this hub.
pub fn check(
    root: &Root,
    kind: ReleaseKind,
    manifest: &str,
    signature: &str,
) -> Result<ReleaseManifest, Refusal> {
    let folder = root.join("etc/hub-agent/release-keys").join(match kind {
        ReleaseKind::Agent => "agent",
        ReleaseKind::App => "app",
    });
    let mut keys = Vec::new();
    let names = durable::names(&folder).map_err(internal("cannot list the release keys"))?;
    for name in names
        .iter()
        .filter(|name| name.ends_with(".pub"))
        .take(MAX_KEYS)
    {
        let text = fs::read_to_string(folder.join(name))
            .map_err(internal(format_args!("cannot read the key {name}")))?;
        match public_key(&text) {
            Ok(key) => keys.push(key),
            Err(error) => log(format_args!(
                "{} is not a key: {error}",
                folder.join(name).display()
            )),
        }
    }
    if keys.is_empty() {
        return Err(refuse(
            Reason::Untrusted,
            format!("no release key is installed in {}", folder.display()),
        ));
    }
    let manifest = verify(manifest.as_bytes(), signature, &keys)
        .map_err(|error| refuse(Reason::Untrusted, error))?;
    if manifest.kind != kind || (kind == ReleaseKind::Agent && manifest.name != "hub-agent") {
        let found = format!(
            "{} is of the kind {:?}, not {kind:?}",
            manifest.name, manifest.kind
        );
        return Err(refuse(Reason::WrongKind, found));
    }
    let machine = rustix::system::uname();
    let machine = machine.machine().to_string_lossy();
    if !manifest.fits(&machine) {
        let found = format!(
            "the release is for {}, this hub is {machine}",
            manifest.architecture
        );
        return Err(refuse(Reason::WrongArchitecture, found));
    }
    counters::check(root, &manifest)?;
    Ok(manifest)
}

/// Copies a file of the agent to `to`, synced, if it is the one in the manifest. Errors reveal
/// nothing else about the file: the helper can read files that its clients cannot.
pub fn copy_file(
    root: &Root,
    headroom: u64,
    file: &Path,
    manifest: &ReleaseManifest,
    to: &Path,
    mode: u32,
) -> Result<(), Refusal> {
    let mut from = open(root, file).map_err(|error| {
        refuse(
            Reason::FileUnreadable,
            format!(
                "{} below the agent's state directory: {error}",
                file.display()
            ),
        )
    })?;
    let found = from
        .metadata()
        .map_err(internal("cannot read the file's metadata"))?;
    if !found.is_file() {
        return Err(refuse(
            Reason::FileUnreadable,
            format!("{} is not a regular file", file.display()),
        ));
    }
    let is_another = || {
        refuse(
            Reason::DigestMismatch,
            format!("{} is not the release's file", file.display()),
        )
    };
    if found.len() != manifest.size_bytes {
        return Err(is_another());
    }
    let free = durable::free_bytes(to.parent().unwrap_or(to))
        .map_err(internal("cannot read the free space of the disk"))?;
    let needed = manifest.size_bytes.saturating_add(headroom);
    if free < needed {
        return Err(refuse(
            Reason::NoSpace,
            format!("the disk has {free} free bytes, {needed} are needed"),
        ));
    }
    let mut copy = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(to)
        .map_err(internal("cannot copy"))?;
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut buffer = vec![0; 64 << 10];
    let mut left = manifest.size_bytes;
    while left > 0 {
        let length = match from.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(internal("cannot read the file")(error)),
        };
        let piece = buffer.get(..length).unwrap_or_default();
        // The file may shrink or grow meanwhile.
        left = match left.checked_sub(length as u64) {
            Some(left) if length > 0 => left,
            _ => return Err(is_another()),
        };
        hash.update(piece);
        copy.write_all(piece)
            .map_err(internal("cannot copy the file"))?;
    }
    copy.sync_all().map_err(internal("cannot copy the file"))?;
    match hex::encode(hash.finish()) == manifest.sha256 {
        true => Ok(()),
        false => Err(is_another()),
    }
}

/// Opens a file below the agent's state directory, by a path without links: component by component,
/// because the agent owns the directory and may change it at any moment. (openat2 would do it at
/// once, but RestrictSUIDSGID= of the unit forbids it.)
fn open(root: &Root, file: &Path) -> io::Result<File> {
    let mut parts = Vec::new();
    for part in file.components() {
        match part {
            Component::Normal(part) => parts.push(part),
            _ => return Err(io::Error::other("not a path of plain names")),
        }
    }
    let (name, parents) = parts
        .split_last()
        .ok_or_else(|| io::Error::other("not a path"))?;
    let within = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut directory = OwnedFd::from(File::open(root.join("var/lib/hub-agent"))?);
    for parent in parents {
        directory = openat(
            &directory,
            *parent,
            within | OFlags::DIRECTORY,
            Mode::empty(),
        )?;
    }
    // A named pipe would block the helper until its other end is opened.
    Ok(openat(
        &directory,
        *name,
        within | OFlags::NONBLOCK | OFlags::NOCTTY,
        Mode::empty(),
    )?
    .into())
}
