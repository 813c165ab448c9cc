//! The files of releases, in a directory or in an S3 bucket. They go in and out in pieces: no file is ever whole in memory. A file is there under its
//! name when all of it is, or not at all.

use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use hub_protocol::{ReleaseUuid, TenantUuid};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{
    BackoffConfig, ClientConfigKey, GetOptions, GetRange, GetResultPayload, MultipartUpload, ObjectStore,
    ObjectStoreExt, RetryConfig,
};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use crate::config::FilesConfig;
use crate::error::{Error, Result};

/// What is written at once. S3 takes no smaller parts, but for the last.
const S3_PART_BYTES: usize = 5 * 1024 * 1024;
const DIRECTORY_PART_BYTES: usize = 512 * 1024;
/// What is read at once.
const READ_BYTES: usize = 64 * 1024;
/// Uploads at once on one replica: each holds a part in memory.
const MAX_UPLOADS: usize = 8;
/// The same of one owner, so that slow ones of somebody's do not keep all others from theirs. As many places are kept for the platform.
const MAX_UPLOADS_EACH: usize = 2;
/// How long one request to S3 may take, a part's bytes included.
const S3_TIMEOUT: &str = "120s";

/// Where files are kept; cheap to clone.
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

/// Why there is no place for files.
#[derive(Debug, thiserror::Error)]
pub enum OpenFilesError {
    #[error("the directory of files {dir} cannot be used: {source}")]
    Directory { dir: String, source: std::io::Error },
    #[error("the setting files cannot be used: {0}")]
    Store(#[from] object_store::Error),
}

impl Files {
    /// Makes the directory where there is none. Whether a bucket is there is found out when it is used.
    pub fn open(config: &FilesConfig) -> std::result::Result<Self, OpenFilesError> {
        let (store, kind, prefix): (Arc<dyn ObjectStore>, _, _) = match config {
            FilesConfig::Directory(dir) => {
                let unusable = |source| OpenFilesError::Directory { dir: dir.display().to_string(), source };
                let releases = dir.join(FOLDER);
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&releases).map_err(unusable)?;
                // A release that was answered READY survives a power cut.
                let store = LocalFileSystem::new_with_prefix(dir)?.with_fsync(true);
                (Arc::new(store), Kind::Directory(releases), Path::default())
            }
            FilesConfig::S3 { bucket, prefix } => {
                let s3 = s3(bucket)?;
                (Arc::new(s3.clone()), Kind::S3(s3), Path::from(prefix.as_str()))
            }
        };
        Ok(Self(Arc::new(Inner { store, kind, prefix, uploads: Uploads::default() })))
    }

    fn path(&self, release_uuid: ReleaseUuid) -> Path {
        self.0.prefix.clone().join(FOLDER).join(release_uuid.to_string())
    }

    /// Begins to write a file, which takes the place of one that may be there once it is finished. The owner is the tenant whose it is, or the platform.
    pub async fn create(&self, release_uuid: ReleaseUuid, owner: Option<TenantUuid>) -> Result<Upload<'_>> {
        let turn = self.0.uploads.begin(owner)?;
        let upload = self.0.store.put_multipart(&self.path(release_uuid)).await.map_err(failed)?;
        let part_bytes = match self.0.kind {
            Kind::Directory(_) => DIRECTORY_PART_BYTES,
            Kind::S3(_) => S3_PART_BYTES,
        };
        Ok(Upload { upload: Some(upload), part: Vec::new(), part_bytes, _turn: turn })
    }

    /// A piece of a file, as it is read; nothing when there is no such file.
    pub async fn read(
        &self,
        release_uuid: ReleaseUuid,
        range: Range<u64>,
    ) -> Result<Option<BoxStream<'static, std::io::Result<Bytes>>>> {
        let length = range.end.saturating_sub(range.start);
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let found = match self.0.store.get_opts(&self.path(release_uuid), options).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        Ok(Some(match found.payload {
            GetResultPayload::File(file, _) => {
                let mut file = tokio::fs::File::from_std(file);
                file.set_max_buf_size(READ_BYTES);
                file.seek(std::io::SeekFrom::Start(range.start)).await.map_err(Error::internal)?;
                ReaderStream::with_capacity(file.take(length), READ_BYTES).boxed()
            }
            GetResultPayload::Stream(stream) => stream.map_err(std::io::Error::other).boxed(),
        }))
    }

    /// A URL of the store itself; nothing when the service has to hand the file out.
    pub async fn download_url(&self, release_uuid: ReleaseUuid, valid_for: Duration) -> Result<Option<String>> {
        let Kind::S3(s3) = &self.0.kind else { return Ok(None) };
        let url = s3.signed_url(reqwest::Method::GET, &self.path(release_uuid), valid_for).await.map_err(failed)?;
        Ok(Some(url.to_string()))
    }

    /// Whether there is a file or not.
    pub async fn delete(&self, release_uuid: ReleaseUuid) -> Result<()> {
        match self.0.store.delete(&self.path(release_uuid)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Puts a small file, reads it, and removes it.
    pub async fn try_out(&self) -> Result<()> {
        let path = self.0.prefix.clone().join(FOLDER).join(format!("check-{}", uuid::Uuid::new_v4()));
        let put = async {
            self.0.store.put(&path, Bytes::from_static(b"hub-cloud check").into()).await?;
            self.0.store.get(&path).await?.bytes().await
        };
        let read = put.await;
        let deleted = self.0.store.delete(&path).await;
        read.map_err(failed)?;
        deleted.map_err(failed)
    }

    /// Removes what a process that was killed left of an upload. A bucket does that by a rule of its own.
    pub async fn sweep(&self, older_than: Duration) -> Result<()> {
        let Kind::Directory(dir) = &self.0.kind else { return Ok(()) };
        let dir = dir.clone();
        let swept = tokio::task::spawn_blocking(move || sweep_directory(&dir, older_than)).await;
        swept.map_err(Error::internal)?.map_err(Error::internal)
    }
}

/// Whose uploads are under way.
#[derive(Default)]
struct Uploads(Mutex<Vec<Option<TenantUuid>>>);

impl Uploads {
    fn begin(&self, owner: Option<TenantUuid>) -> Result<Turn<'_>> {
        let refused = |message| Err(Error::unavailable("TOO_MANY_UPLOADS", message));
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.iter().filter(|other| **other == owner).count() >= MAX_UPLOADS_EACH {
            return refused(match owner {
                Some(_) => "two files of this tenant are being uploaded at this moment; wait until one is here",
                None => "two files of the platform are being uploaded at this moment; wait until one is here",
            });
        }
        let of_tenants = owners.iter().filter(|other| other.is_some()).count();
        if owner.is_some() && of_tenants >= MAX_UPLOADS - MAX_UPLOADS_EACH {
            return refused("files of other tenants are being uploaded at this moment; try again shortly");
        }
        owners.push(owner);
        Ok(Turn { uploads: self, owner })
    }
}

/// Leave to upload, until it is dropped.
struct Turn<'a> {
    uploads: &'a Uploads,
    owner: Option<TenantUuid>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut owners = self.uploads.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = owners.iter().position(|other| *other == self.owner) {
            owners.swap_remove(place);
        }
    }
}

const FOLDER: &str = "releases";

fn s3(bucket: &str) -> object_store::Result<AmazonS3> {
    let retry =
        RetryConfig { backoff: BackoffConfig::default(), max_retries: 3, retry_timeout: Duration::from_secs(60) };
    let timeout = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
    AmazonS3Builder::from_env().with_config(timeout, S3_TIMEOUT).with_retry(retry).with_bucket_name(bucket).build()
}

/// The store writes beside the file that is to be, and calls that `<name>#<number>`.
fn sweep_directory(dir: &FilePath, older_than: Duration) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let is_draft = entry.file_name().to_string_lossy().contains('#');
        // One that ended meanwhile has neither.
        let Some(modified) = entry.metadata().ok().and_then(|file| file.modified().ok()) else { continue };
        if is_draft && modified.elapsed().is_ok_and(|age| age > older_than) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn failed(error: object_store::Error) -> Error {
    tracing::error!(%error, "the store of files does not work");
    let message = "the store of files is not available now; try again shortly";
    Error::unavailable("FILE_STORE_UNAVAILABLE", message).with_cause(error)
}

/// A file that is being written. Dropped before it is finished, it leaves nothing.
pub struct Upload<'a> {
    /// Nothing once it has ended.
    upload: Option<Box<dyn MultipartUpload>>,
    part: Vec<u8>,
    part_bytes: usize,
    _turn: Turn<'a>,
}

impl Upload<'_> {
    /// Takes the next bytes, and waits until the store has room for more.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.part.capacity() == 0 {
                self.part.reserve_exact(self.part_bytes);
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.part_bytes - self.part.len()));
            self.part.extend_from_slice(now);
            bytes = later;
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

    /// Puts the file in its place.
    pub async fn finish(mut self) -> Result<()> {
        self.flush().await?;
        if let Some(upload) = &mut self.upload {
            upload.complete().await.map_err(failed)?;
        }
        self.upload = None;
        Ok(())
    }

    /// Gives it up, and waits until nothing is left of it.
    pub async fn abort(mut self) {
        if let Some(upload) = self.upload.take() {
            abort(upload).await;
        }
    }
}

async fn abort(mut upload: Box<dyn MultipartUpload>) {
    if let Err(error) = upload.abort().await {
        tracing::warn!(%error, "what was uploaded of a file could not be removed");
    }
}

impl Drop for Upload<'_> {
    /// The request ended with its connection, or the store failed.
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
    fn nobodys_uploads_keep_others_from_theirs() {
        let uploads = Uploads::default();
        let begin = |owner| uploads.begin(owner).map_err(|error| error.code());
        let tenants: Vec<Option<TenantUuid>> = (0..4).map(|_| Some(TenantUuid::new())).collect();
        let full = Err("TOO_MANY_UPLOADS");
        let mut turns = Vec::new();
        for owner in &tenants[..3] {
            turns.push((begin(*owner).expect("a turn"), begin(*owner).expect("a second")));
            assert_eq!(begin(*owner).map(|_| ()), full);
        }
        assert_eq!(begin(tenants[3]).map(|_| ()), full, "so much memory is not lent");
        let platform = (begin(None).expect("a turn"), begin(None).expect("a second"));
        assert_eq!(begin(None).map(|_| ()), full);
        turns.pop();
        let _again = begin(tenants[3]).expect("a turn that was given back");
        drop(platform);
        begin(None).map(|_| ()).expect("a turn that was given back");
    }
}
