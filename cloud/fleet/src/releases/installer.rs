//! Upload and download of release files, under URLs that carry their own credential.

use axum::extract::Request;
use futures_util::stream::BoxStream;
use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_core::http::body::{Frames, declared_length};
use hub_core::tasks;
use hub_identity::authz::Scope;
use hub_protocol::{ReleaseUuid, TenantUuid, Timestamp};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::contents;
use super::store::agent_releases::AgentReleaseRow;
use super::store::app_releases::AppReleaseRow;
use super::store::shared::{self, Table};
use super::store::{agent_releases, app_releases};
use super::urls::{self, SignedQuery, Use};
use super::{Status, files::Upload};
use crate::releases::Releases;

/// The actor in the audit log that marks a release READY: the holder of the upload URL.
const ACTOR: &str = "release-upload";

/// A release of either kind.
enum Release {
    App(AppReleaseRow),
    Agent(AgentReleaseRow),
}

/// A file in the manifest.
pub struct File {
    pub release_uuid: ReleaseUuid,
    pub size_bytes: u64,
    /// The digest in lower-case hex.
    pub sha256: String,
}

impl Release {
    async fn find(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Self> {
        if let Some(row) = app_releases::of_any_tenant(conn, release_uuid).await? {
            return Ok(Self::App(row));
        }
        let row = agent_releases::get(conn, release_uuid).await?;
        row.map(Self::Agent)
            .ok_or_else(|| Error::not_found("release"))
    }

    fn status(&self) -> Status {
        match self {
            Self::App(row) => row.status,
            Self::Agent(row) => row.status,
        }
    }

    /// The tenant that the release belongs to; None for the platform.
    fn owner(&self) -> Option<TenantUuid> {
        match self {
            Self::App(row) => Some(row.tenant_uuid),
            Self::Agent(_) => None,
        }
    }

    fn file(&self) -> File {
        let (release_uuid, size_bytes, sha256) = match self {
            Self::App(row) => (row.release_uuid, row.size_bytes, &row.sha256),
            Self::Agent(row) => (row.release_uuid, row.size_bytes, &row.sha256),
        };
        File {
            release_uuid,
            size_bytes: size_bytes.unsigned_abs(),
            sha256: sha256.clone(),
        }
    }

    /// Marks the release READY. Returns false if it is not awaited any more.
    async fn mark_ready(&self, tx: &mut Tx, now: Timestamp) -> Result<bool> {
        match self {
            Self::App(row) => {
                shared::mark_ready(tx, Table::AppReleases, row.release_uuid, now).await
            }
            Self::Agent(row) => {
                shared::mark_ready(tx, Table::AgentReleases, row.release_uuid, now).await
            }
        }
    }

    fn audit(&self, now: Timestamp) -> Audit {
        let audit = match self {
            Self::App(row) => Audit::new(
                &Scope::system(ACTOR, row.tenant_uuid),
                "app_release.ready",
                row.release_uuid,
                now,
            ),
            Self::Agent(row) => {
                Audit::by_system(ACTOR, "agent_release.ready", row.release_uuid, now)
            }
        };
        audit.changed(
            Some(json!({"status": Status::AwaitingFile})),
            Some(json!({"status": Status::Ready})),
        )
    }
}

/// Receives a release's file: exactly the file of the manifest, or nothing.
pub async fn receive(
    releases: &Releases,
    file_name: &str,
    query: &SignedQuery,
    request: Request,
) -> Result<File> {
    let release_uuid = urls::check(releases, Use::Upload, file_name, query)?;
    let release = Release::find(&mut releases.core.db.read().await?, release_uuid).await?;
    if release.status() == Status::Ready {
        return Err(Error::conflict(
            "ALREADY_READY",
            "the file of this release was uploaded already; there is nothing to do",
        ));
    }
    let file = release.file();
    if declared_length(&request).is_some_and(|length| length != file.size_bytes) {
        return Err(wrong_size(&file));
    }
    let frames = Frames::of_file(request)?;
    let mut upload = releases.files.create(release_uuid, release.owner()).await?;
    match copy(releases, frames, &file, &mut upload).await {
        Ok(()) => upload.finish().await?,
        Err(error) => {
            upload.abort().await;
            return Err(error);
        }
    }
    let now = releases.core.clock.now();
    let mut tx = releases.core.db.begin().await?;
    if release.mark_ready(&mut tx, now).await? {
        if let Release::App(row) = &release
            && let Some(task) = contents::finding(row, now)
        {
            tasks::enqueue(&releases.core, &mut tx, task, now).await?;
        }
        tx.commit(release.audit(now)).await?;
        return Ok(file);
    }
    drop(tx);
    // Another upload of the same file finished first, or the release was deleted.
    match Release::find(&mut releases.core.db.read().await?, release_uuid).await {
        Ok(_) => Ok(file),
        Err(error) => {
            releases.files.delete(release_uuid).await?;
            Err(error)
        }
    }
}

async fn copy(
    releases: &Releases,
    mut frames: Frames,
    file: &File,
    upload: &mut Upload<'_>,
) -> Result<()> {
    let mut digest = Sha256::new();
    let mut size_bytes = 0_u64;
    while let Some(bytes) = frames.next().await? {
        size_bytes += bytes.len() as u64;
        if size_bytes > file.size_bytes {
            return Err(wrong_size(file));
        }
        if releases.files.is_directory() {
            // A file must not use up what is left for others.
            releases.core.storage.require_room()?;
        }
        digest.update(&bytes);
        upload.write(&bytes).await?;
    }
    if size_bytes != file.size_bytes {
        return Err(wrong_size(file));
    }
    let sha256 = hex::encode(digest.finalize());
    match sha256 == file.sha256 {
        true => Ok(()),
        false => {
            let message = format!(
                "the file's SHA-256 is {sha256}, but the manifest states {}; upload the signed file",
                file.sha256
            );
            Err(Error::bad_request("WRONG_DIGEST", message))
        }
    }
}

fn wrong_size(file: &File) -> Error {
    Error::bad_request(
        "WRONG_SIZE",
        format!(
            "the file must have {} bytes, as the manifest states",
            file.size_bytes
        ),
    )
}

/// The file that a download URL refers to.
pub async fn find(releases: &Releases, file_name: &str, query: &SignedQuery) -> Result<File> {
    let release_uuid = urls::check(releases, Use::Download, file_name, query)?;
    let release = Release::find(&mut releases.core.db.read().await?, release_uuid).await?;
    match release.status() {
        Status::Ready => Ok(release.file()),
        Status::AwaitingFile => Err(Error::not_found("release")),
    }
}

/// Streams a range of a file.
pub async fn read(
    releases: &Releases,
    file: &File,
    range: std::ops::Range<u64>,
) -> Result<BoxStream<'static, std::io::Result<bytes::Bytes>>> {
    let found = releases.files.read(file.release_uuid, range).await?;
    found.ok_or_else(|| {
        Error::internal(format!(
            "the file of the READY release {} is missing",
            file.release_uuid
        ))
    })
}
