//! The files of releases, in a directory or an S3 bucket. Files are streamed and never held in
//! memory as a whole. A file appears under its name only when it is complete.

use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use hub_base::bucket;
use hub_base::error::{Error, Result};
use hub_core::config::FilesConfig;
use hub_protocol::{ReleaseUuid, TenantUuid};
use object_store::aws::AmazonS3;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{
    GetOptions, GetRange, GetResultPayload, MultipartUpload, ObjectStore, ObjectStoreExt,
};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

/// Size of a write. S3 accepts no smaller parts, except for the last.
const S3_PART_BYTES: usize = 5 * 1024 * 1024;
const DIRECTORY_PART_BYTES: usize = 512 * 1024;
/// Size of a read.
const READ_BYTES: usize = 64 * 1024;
/// Concurrent uploads on one replica; each holds a part in memory.
const MAX_UPLOADS: usize = 8;
/// Concurrent uploads of one owner, so that slow uploads of one do not block all others. The same
/// number is reserved for the platform.
const MAX_UPLOADS_EACH: usize = 2;

/// The file store; cheap to clone.
#[derive(Clone)]
pub struct Files(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    kind: Kind,
    prefix: Path,
    uploads: Uploads,
}

enum Kind {
    Directory(PathBuf),
    S3(AmazonS3),
}

/// The reason why the file store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenFilesError {
    #[error("the directory {dir} of the setting `files` cannot be used: {source}")]
    Directory { dir: String, source: std::io::Error },
    #[error("the setting `files` cannot be used: {0}")]
    Store(#[from] object_store::Error),
}

impl Files {
    /// Fails on a setting that names no place for files. Creates nothing, and calls nobody.
    pub fn check(config: &FilesConfig) -> std::result::Result<(), OpenFilesError> {
        let dir = match config {
            FilesConfig::S3 { bucket, .. } => {
                bucket::open(bucket)?;
                return Ok(());
            }
            FilesConfig::Directory(dir) => dir,
        };
        let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        let existing = absolute.ancestors().find(|ancestor| ancestor.exists());
        let existing = existing.unwrap_or(&absolute);
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        let usable =
            std::fs::read_dir(existing).and_then(|_| Ok(rustix::fs::access(existing, access)?));
        usable.map_err(|source| OpenFilesError::Directory {
            dir: dir.display().to_string(),
            source,
        })
    }

    /// Opens the store. Creates the directory if it does not exist. A missing bucket is detected
    /// when it is first used.
    pub fn open(config: &FilesConfig) -> std::result::Result<Self, OpenFilesError> {
        let (store, kind, prefix): (Arc<dyn ObjectStore>, _, _) = match config {
            FilesConfig::Directory(dir) => {
                let unusable = |source| OpenFilesError::Directory {
                    dir: dir.display().to_string(),
                    source,
                };
                let releases = dir.join(FOLDER);
                std::fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&releases)
                    .map_err(unusable)?;
                // Files are synced: a release that was reported as READY must survive a power
                // failure.
                let store = LocalFileSystem::new_with_prefix(dir)?.with_fsync(true);
                (Arc::new(store), Kind::Directory(releases), Path::default())
            }
            FilesConfig::S3 { bucket, prefix } => {
                let s3 = bucket::open(bucket)?;
                (
                    Arc::new(s3.clone()),
                    Kind::S3(s3),
                    Path::from(prefix.as_str()),
                )
            }
        };
        Ok(Self(Arc::new(Inner {
            store,
            kind,
            prefix,
            uploads: Uploads::default(),
        })))
    }

    /// Whether the files lie on a disk of this machine.
    pub fn is_directory(&self) -> bool {
        matches!(self.0.kind, Kind::Directory(_))
    }

    fn path(&self, release_uuid: ReleaseUuid) -> Path {
        self.0
            .prefix
            .clone()
            .join(FOLDER)
            .join(release_uuid.to_string())
    }

    /// Starts to write a file, which replaces an existing one when it is finished. The owner is the
    /// tenant of the release; None is the platform.
    pub async fn create(
        &self,
        release_uuid: ReleaseUuid,
        owner: Option<TenantUuid>,
    ) -> Result<Upload<'_>> {
        let permit = self.0.uploads.begin(owner)?;
        let upload = self
            .0
            .store
            .put_multipart(&self.path(release_uuid))
            .await
            .map_err(failed)?;
        let part_bytes = match self.0.kind {
            Kind::Directory(_) => DIRECTORY_PART_BYTES,
            Kind::S3(_) => S3_PART_BYTES,
        };
        Ok(Upload {
            upload: Some(upload),
            part: Vec::new(),
            part_bytes,
            _permit: permit,
        })
    }

    /// Streams a range of a file; None if there is no such file.
    pub async fn read(
        &self,
        release_uuid: ReleaseUuid,
        range: Range<u64>,
    ) -> Result<Option<BoxStream<'static, std::io::Result<Bytes>>>> {
        let length = range.end.saturating_sub(range.start);
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let found = match self
            .0
            .store
            .get_opts(&self.path(release_uuid), options)
            .await
        {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        Ok(Some(match found.payload {
            GetResultPayload::File(file, _) => {
                let mut file = tokio::fs::File::from_std(file);
                file.set_max_buf_size(READ_BYTES);
                file.seek(std::io::SeekFrom::Start(range.start))
                    .await
                    .map_err(Error::internal)?;
                ReaderStream::with_capacity(file.take(length), READ_BYTES).boxed()
            }
            GetResultPayload::Stream(stream) => stream.map_err(std::io::Error::other).boxed(),
        }))
    }

    /// A presigned URL of the store; None if the service has to serve the file itself.
    pub async fn download_url(
        &self,
        release_uuid: ReleaseUuid,
        valid_for: Duration,
    ) -> Result<Option<String>> {
        let Kind::S3(s3) = &self.0.kind else {
            return Ok(None);
        };
        let url = s3
            .signed_url(reqwest::Method::GET, &self.path(release_uuid), valid_for)
            .await
            .map_err(failed)?;
        Ok(Some(url.to_string()))
    }

    /// Deletes a file. A missing file is no error.
    pub async fn delete(&self, release_uuid: ReleaseUuid) -> Result<()> {
        match self.0.store.delete(&self.path(release_uuid)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Checks the store: writes a small file, reads it and deletes it.
    pub async fn try_out(&self) -> Result<()> {
        let path = self
            .0
            .prefix
            .clone()
            .join(FOLDER)
            .join(format!("check-{}", uuid::Uuid::new_v4()));
        let put = async {
            self.0
                .store
                .put(&path, Bytes::from_static(b"hub-cloud check").into())
                .await?;
            self.0.store.get(&path).await?.bytes().await
        };
        let read = put.await;
        let deleted = self.0.store.delete(&path).await;
        read.map_err(failed)?;
        deleted.map_err(failed)
    }

    /// Deletes partial uploads of a process that was killed. For a bucket, a lifecycle rule does
    /// this.
    pub async fn sweep(&self, older_than: Duration) -> Result<()> {
        let Kind::Directory(dir) = &self.0.kind else {
            return Ok(());
        };
        let dir = dir.clone();
        let swept = tokio::task::spawn_blocking(move || sweep_directory(&dir, older_than)).await;
        swept.map_err(Error::internal)?.map_err(Error::internal)
    }
}

/// The owners of the uploads in progress.
#[derive(Default)]
struct Uploads(Mutex<Vec<Option<TenantUuid>>>);

impl Uploads {
    fn begin(&self, owner: Option<TenantUuid>) -> Result<UploadPermit<'_>> {
        let refused = |message| Err(Error::unavailable("TOO_MANY_UPLOADS", message));
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.iter().filter(|other| **other == owner).count() >= MAX_UPLOADS_EACH {
            return refused(match owner {
                Some(_) => "this tenant is uploading two files already; wait until one is finished",
                None => "the platform is uploading two files already; wait until one is finished",
            });
        }
        let of_tenants = owners.iter().filter(|other| other.is_some()).count();
        if owner.is_some() && of_tenants >= MAX_UPLOADS - MAX_UPLOADS_EACH {
            return refused("too many uploads are in progress; try again shortly");
        }
        owners.push(owner);
        Ok(UploadPermit {
            uploads: self,
            owner,
        })
    }
}

/// The permit to upload, released when dropped.
struct UploadPermit<'a> {
    uploads: &'a Uploads,
    owner: Option<TenantUuid>,
}

impl Drop for UploadPermit<'_> {
    fn drop(&mut self) {
        let mut owners = self
            .uploads
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = owners.iter().position(|other| *other == self.owner) {
            owners.swap_remove(index);
        }
    }
}

/// The folder of the files in the store, each named after its release.
pub const FOLDER: &str = "releases";

/// The store writes to `<name>#<number>` beside the final file.
fn sweep_directory(dir: &FilePath, older_than: Duration) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let is_draft = entry.file_name().to_string_lossy().contains('#');
        // A file that was renamed or deleted in the meantime has no metadata.
        let Some(modified) = entry.metadata().ok().and_then(|file| file.modified().ok()) else {
            continue;
        };
        if is_draft && modified.elapsed().is_ok_and(|age| age > older_than) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn failed(error: object_store::Error) -> Error {
    if is_storage_full(&error) {
        return Error::storage_full();
    }
    tracing::error!(%error, "the file store failed");
    let message = "the file store is unavailable; try again shortly";
    Error::unavailable("FILE_STORE_UNAVAILABLE", message).with_cause(error)
}

/// Whether some cause of the error is that the disk is full.
fn is_storage_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io_error = error.downcast_ref::<std::io::Error>();
        if io_error.is_some_and(|error| error.kind() == std::io::ErrorKind::StorageFull) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A file that is being written. If it is dropped before it is finished, nothing is left of it.
pub struct Upload<'a> {
    /// The open upload; None after its end.
    upload: Option<Box<dyn MultipartUpload>>,
    part: Vec<u8>,
    part_bytes: usize,
    _permit: UploadPermit<'a>,
}

impl Upload<'_> {
    /// Appends bytes, and waits while the store cannot accept more.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.part.capacity() == 0 {
                self.part.reserve_exact(self.part_bytes);
            }
            let (head, tail) = bytes.split_at(bytes.len().min(self.part_bytes - self.part.len()));
            self.part.extend_from_slice(head);
            bytes = tail;
            if self.part.len() == self.part_bytes {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        let part = std::mem::take(&mut self.part);
        match &mut self.upload {
            Some(upload) if !part.is_empty() => upload.put_part(part.into()).await.map_err(failed),
            _ => Ok(()),
        }
    }

    /// Completes the file, which then appears under its name.
    pub async fn finish(mut self) -> Result<()> {
        self.flush().await?;
        if let Some(upload) = &mut self.upload {
            upload.complete().await.map_err(failed)?;
        }
        self.upload = None;
        Ok(())
    }

    /// Aborts the upload, and waits until its parts are deleted.
    pub async fn abort(mut self) {
        if let Some(upload) = self.upload.take() {
            abort(upload).await;
        }
    }
}

async fn abort(mut upload: Box<dyn MultipartUpload>) {
    if let Err(error) = upload.abort().await {
        tracing::warn!(%error, "cannot delete the parts of an aborted upload");
    }
}

impl Drop for Upload<'_> {
    /// Runs when the connection of the request was closed, or the store failed.
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(abort(upload));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_are_limited_by_owner_and_in_total() {
        let uploads = Uploads::default();
        let begin = |owner| uploads.begin(owner).map_err(|error| error.code());
        let tenants: Vec<Option<TenantUuid>> = (0..4).map(|_| Some(TenantUuid::new())).collect();
        let full = Err("TOO_MANY_UPLOADS");
        let mut permits = Vec::new();
        for owner in &tenants[..3] {
            permits.push((
                begin(*owner).expect("a permit"),
                begin(*owner).expect("a second"),
            ));
            assert_eq!(begin(*owner).map(|_| ()), full);
        }
        assert_eq!(
            begin(tenants[3]).map(|_| ()),
            full,
            "all permits for tenants are held"
        );
        let platform = (
            begin(None).expect("a permit"),
            begin(None).expect("a second"),
        );
        assert_eq!(begin(None).map(|_| ()), full);
        permits.pop();
        let _again = begin(tenants[3]).expect("a released permit");
        drop(platform);
        begin(None).map(|_| ()).expect("a released permit");
    }
}
