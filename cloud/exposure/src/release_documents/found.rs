//! What is certain to be in the file of a release that came without a bill of materials: what
//! package managers and compilers wrote into its entries. The file is read once, from the store to
//! the end, and never unpacked to a disk. What cannot be read is left out: nothing depends on it.

use std::io::{self, Read};

use bytes::Bytes;
use futures_util::StreamExt;
use hub_advisories::components::Component;
use hub_advisories::image;
use hub_base::error::{Error, Result};
use hub_core::tasks::{self, Done};
use hub_fleet::releases::Releases;
use hub_fleet::releases::contents::{self, ComponentSource, ReleaseDocument};
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, ReleaseUuid, TenantUuid};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, channel};

use super::statements::Subject;
use super::store;
use crate::software::components::{self, ListedComponent};
use crate::{software, vulnerabilities};

/// Of one release.
const MAX_COMPONENTS: usize = 100_000;
const MAX_ENTRIES: usize = 1_000_000;
/// Unpacked: an archive may be far larger than it looks.
const MAX_UNPACKED_BYTES: u64 = 8 << 30;
/// The largest window of a zstd frame, as a power of two.
const MAX_WINDOW_LOG: u32 = 27;
/// Parts of the file that wait for being read.
const QUEUED: usize = 4;
const ACTOR: &str = "release-contents";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    tenant_uuid: TenantUuid,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
}

/// Performs the task that looks for components in the file of a release.
pub async fn perform(releases: &Releases, payload: &Value) -> Result<Done> {
    let of = Payload::deserialize(payload).map_err(Error::internal)?;
    let core = &releases.core;
    let scope = Scope::system(ACTOR, of.tenant_uuid);
    let release = {
        let mut conn = core.db.read().await?;
        contents::of_app(&mut conn, &scope, of.app_uuid, of.release_uuid).await
    };
    let release = match release {
        Ok(release) => release,
        Err(error) if error.code() == "NOT_FOUND" => return Ok(Done::Finished),
        Err(error) => return Err(error),
    };
    if release.source != ComponentSource::None {
        return Ok(Done::Finished);
    }
    let range = 0..release.size_bytes.unsigned_abs();
    let Some(mut file) = releases.files.read(of.release_uuid, range).await? else {
        return Ok(Done::Finished);
    };
    let (parts, received) = channel(QUEUED);
    let finding = tokio::task::spawn_blocking(move || find(Parts::new(received)));
    let mut has_failed = false;
    while let Some(part) = file.next().await {
        has_failed |= part.is_err();
        // The reader ends before the file does when it has seen enough.
        if parts.send(part).await.is_err() || core.shutdown.is_cancelled() {
            break;
        }
    }
    drop(parts);
    let found = finding.await.map_err(Error::internal)?;
    if core.shutdown.is_cancelled() {
        return Ok(Done::RunAt(core.clock.now()));
    }
    let found = match found {
        Ok(found) => found,
        Err(error) if has_failed => return Err(Error::internal(error)),
        Err(error) => {
            let release_uuid = of.release_uuid;
            tracing::info!(%release_uuid, %error, "the file of a release cannot be searched");
            return Ok(Done::Finished);
        }
    };
    if found.is_empty() {
        return Ok(Done::Finished);
    }
    keep(releases, &scope, &of, found).await?;
    Ok(Done::Finished)
}

async fn keep(
    releases: &Releases,
    scope: &Scope,
    of: &Payload,
    found: Vec<ListedComponent>,
) -> Result<()> {
    let core = &releases.core;
    let mut conn = core.db.read().await?;
    let release = contents::of_app(&mut conn, scope, of.app_uuid, of.release_uuid).await?;
    let vex = store::get(&mut conn, of.release_uuid, ReleaseDocument::Vex).await?;
    drop(conn);
    let had_vex = vex.is_some();
    let read = tokio::task::spawn_blocking(move || {
        let subject = Subject::new(
            release.release_uuid,
            &release.name,
            &release.version,
            &found,
        );
        let stated = match vex {
            Some(packed) => super::stated_in(&packed, &subject)?,
            None => None,
        };
        Ok::<_, Error>((components::pack(&found)?, stated))
    });
    let (list, stated) = read.await.map_err(Error::internal)??;
    let Some(list) = list else {
        return Ok(());
    };
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let release = contents::lock_of_app(&mut tx, scope, of.app_uuid, of.release_uuid).await?;
    if release.uploaded_at(ReleaseDocument::Vex).is_some() != had_vex {
        // The task is tried again.
        return Err(Error::internal("a document came while a file was searched"));
    }
    software::put_of_release(&mut tx, of.tenant_uuid, of.release_uuid, &list, now).await?;
    if let Some(stated) = stated {
        vulnerabilities::put_of_maker(&mut tx, of.tenant_uuid, of.release_uuid, &stated).await?;
    }
    let source = ComponentSource::Found;
    release
        .note_components(&mut tx, source, list.package_count)
        .await?;
    tasks::enqueue(core, &mut tx, software::matching(now), now).await?;
    tx.commit_unaudited("what follows from a file that is stored")
        .await
}

/// A file as it arrives in parts, to be read by a thread that may wait.
struct Parts {
    received: Receiver<io::Result<Bytes>>,
    part: Bytes,
}

impl Parts {
    const fn new(received: Receiver<io::Result<Bytes>>) -> Self {
        Self {
            received,
            part: Bytes::new(),
        }
    }
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.received.blocking_recv() {
                Some(part) => self.part = part?,
                None => return Ok(0),
            }
        }
        let length = self.part.len().min(buffer.len());
        let taken = self.part.split_to(length);
        if let Some(start) = buffer.get_mut(..length) {
            start.copy_from_slice(&taken);
        }
        Ok(length)
    }
}

/// The components that entries of an archive tell of: tar, compressed with zstd.
fn find(file: impl Read) -> io::Result<Vec<ListedComponent>> {
    let mut decoder = zstd::stream::read::Decoder::new(file)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    let mut archive = tar::Archive::new(decoder.take(MAX_UNPACKED_BYTES));
    let (mut found, mut distribution): (Vec<Component>, Option<String>) = (Vec::new(), None);
    for entry in archive.entries()?.take(MAX_ENTRIES) {
        let mut entry = entry?;
        let is_file = entry.header().entry_type().is_file();
        if !is_file || entry.size() > image::MAX_ENTRY_BYTES {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut bytes = Vec::new();
        let start = image::START_BYTES as u64;
        entry.by_ref().take(start).read_to_end(&mut bytes)?;
        if !image::is_wanted(&path, &bytes) {
            continue;
        }
        entry.read_to_end(&mut bytes)?;
        distribution = distribution.or_else(|| image::distribution(&path, &bytes));
        found.extend(image::read_entry(&path, &bytes));
        if found.len() > MAX_COMPONENTS {
            return Err(io::Error::other("it has too many components"));
        }
    }
    Ok(found
        .into_iter()
        .map(|component| listed(component, distribution.as_deref()))
        .collect())
}

/// A package of Debian is of the release that the archive says to be.
fn listed(component: Component, distribution: Option<&str>) -> ListedComponent {
    let mut listed = ListedComponent::from(component);
    if listed.ecosystem.as_deref() == Some("Debian")
        && let Some(distribution) = distribution
    {
        listed.ecosystem = Some(distribution.to_owned());
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            builder
                .append_data(&mut header, path, *bytes)
                .expect("an entry");
        }
        let tar = builder.into_inner().expect("an archive");
        zstd::bulk::compress(&tar, 3).expect("compressed")
    }

    #[test]
    fn components_are_found_in_entries_of_the_archive() {
        let status = b"Package: libssl3\nStatus: install ok installed\nSource: openssl\n\
            Version: 3.0.11-1\n\n";
        let file = archive(&[
            ("var/lib/dpkg/status", status),
            ("etc/os-release", b"ID=debian\nVERSION_ID=\"12\"\n"),
            (
                "app/node_modules/left-pad/package.json",
                br#"{"name": "left-pad", "version": "1.0.0"}"#,
            ),
            ("app/README", b"nothing"),
        ]);
        let found = find(file.as_slice()).expect("an archive");
        let found: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.ecosystem.as_deref(),
                    one.name.as_str(),
                    one.version.as_str(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (Some("Debian:12"), "libssl3", "3.0.11-1"),
                (Some("npm"), "left-pad", "1.0.0"),
            ]
        );
    }

    #[test]
    fn what_is_no_archive_is_an_error_and_no_panic() {
        for file in [&b""[..], b"no archive", &archive(&[("a", b"b")])[..20]] {
            assert!(find(file).is_err() || find(file).is_ok_and(|found| found.is_empty()));
        }
    }
}
