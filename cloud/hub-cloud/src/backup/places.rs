//! Where backups are: one named file, a directory of them, or a bucket. A name says when its backup
//! was made, so the newest one and its age are known from the names alone.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use hub_base::bucket;
use hub_base::paths::sync_folder_of;
use hub_core::config::BackupPlace;
use hub_protocol::Timestamp;
use object_store::aws::AmazonS3;
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::work::Work;
use super::{Failure, Result};

const PREFIX: &str = "hub-cloud-";
const SUFFIX: &str = ".tar.zst";
/// A clock may be so far ahead of the one that reads its names.
const CLOCKS_DIFFER_SECS: i64 = 300;
/// S3 accepts 10,000 parts of an object, and none below 5 MiB but the last.
const LEAST_PART_BYTES: u64 = 8 << 20;
const MOST_PARTS: u64 = 9000;

/// The name of a backup of this time, without characters that file systems or shells treat
/// specially: `hub-cloud-2026-01-31T080000Z.tar.zst`.
fn name_of(moment: Timestamp) -> String {
    let text = moment.to_string().replace(':', "");
    let seconds = text.split('.').next().unwrap_or_default();
    format!("{PREFIX}{seconds}Z{SUFFIX}")
}

/// The time in the name of a backup; none if the name is no such.
pub fn moment_of(name: &str) -> Option<Timestamp> {
    let time = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let (hour, minute, second) = (clock.get(..2)?, clock.get(2..4)?, clock.get(4..)?);
    let moment: Timestamp = format!("{date}T{hour}:{minute}:{second}Z").parse().ok()?;
    (name_of(moment) == name).then_some(moment)
}

/// The place of one backup.
pub enum Archive {
    File(PathBuf),
    Object { store: AmazonS3, key: Key },
}

impl Archive {
    /// Where a backup of this moment goes. A path that is a directory, or ends with a slash, gets a
    /// file in it; every other path is the file itself.
    pub fn new(place: &BackupPlace, moment: Timestamp) -> Result<Self> {
        let name = name_of(moment);
        Ok(match place {
            BackupPlace::Path(path) if is_folder(path) => Self::File(path.join(name)),
            BackupPlace::Path(path) => Self::File(path.clone()),
            BackupPlace::S3 { bucket, key } => Self::Object {
                store: open(bucket)?,
                key: Key::from(key.as_str()).join(name),
            },
        })
    }

    /// The backup at a place: the named one, or the newest.
    pub async fn find(place: &BackupPlace) -> Result<Self> {
        if let BackupPlace::Path(path) = place
            && !is_folder(path)
        {
            return Ok(Self::File(path.clone()));
        }
        if let BackupPlace::S3 { bucket, key } = place
            && let key = Key::from(key.as_str())
            && key.filename().and_then(moment_of).is_some()
        {
            let store = open(bucket)?;
            return Ok(Self::Object { store, key });
        }
        let newest = list(place)
            .await?
            .pop()
            .ok_or_else(|| Failure::Failed(format!("there is no backup at {}", shown(place))))?;
        Self::new(place, newest)
    }

    pub fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Object { key, .. } => format!("object {key} in the bucket"),
        }
    }

    /// The finished file of a work folder becomes the backup.
    pub async fn keep(&self, file: &Path) -> Result<()> {
        match self {
            Self::File(path) => {
                let failed = |error| Failure::at(path, "cannot write", error);
                fs::rename(file, path).map_err(failed)?;
                sync_folder_of(path).map_err(failed)
            }
            Self::Object { store, key } => upload(store, key, file).await,
        }
    }

    /// The backup as a file of this machine; an object is fetched into the work folder.
    pub async fn fetch(&self, work: &Work) -> Result<PathBuf> {
        let (store, key) = match self {
            Self::File(path) => return Ok(path.clone()),
            Self::Object { store, key } => (store, key),
        };
        let path = work.join("fetched");
        let failed = |error| Failure::at(&path, "cannot write", error);
        let mut file =
            tokio::fs::File::from_std(super::archive::create_private(&path).map_err(failed)?);
        let mut parts = store.get(key).await.map_err(store_failed)?.into_stream();
        while let Some(part) = parts.try_next().await.map_err(store_failed)? {
            file.write_all(&part).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        Ok(path)
    }
}

/// The times of the backups at a place, the newest last.
async fn list(place: &BackupPlace) -> Result<Vec<Timestamp>> {
    let mut moments: Vec<Timestamp> = match place {
        BackupPlace::Path(path) => {
            let entries = match fs::read_dir(path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Vec::new());
                }
                Err(error) => return Err(Failure::at(path, "cannot list", error)),
            };
            entries
                .flatten()
                .filter_map(|entry| moment_of(entry.file_name().to_str()?))
                .collect()
        }
        BackupPlace::S3 { bucket, key } => {
            let prefix = Key::from(key.as_str());
            let found = open(bucket)?.list_with_delimiter(Some(&prefix)).await;
            found
                .map_err(store_failed)?
                .objects
                .iter()
                .filter_map(|object| moment_of(object.location.filename()?))
                .collect()
        }
    };
    moments.sort_unstable();
    Ok(moments)
}

/// As [`list`], without those of the future: a clock that was wrong named them.
async fn list_past(place: &BackupPlace, now: Timestamp) -> Result<Vec<Timestamp>> {
    let mut moments = list(place).await?;
    moments.retain(|moment| *moment <= now.plus_secs(CLOCKS_DIFFER_SECS));
    Ok(moments)
}

/// The time of the newest backup at a place.
pub async fn newest(place: &BackupPlace, now: Timestamp) -> Result<Option<Timestamp>> {
    Ok(list_past(place, now).await?.pop())
}

/// Deletes the oldest backups at a place until so many are left; returns how many it deleted.
pub async fn prune(place: &BackupPlace, keep: usize, now: Timestamp) -> Result<usize> {
    let mut moments = list_past(place, now).await?;
    moments.truncate(moments.len().saturating_sub(keep));
    for moment in &moments {
        match Archive::new(place, *moment)? {
            Archive::File(path) => fs::remove_file(&path)
                .map_err(|error| Failure::at(&path, "cannot delete", error))?,
            Archive::Object { store, key } => store.delete(&key).await.map_err(store_failed)?,
        }
    }
    Ok(moments.len())
}

pub fn shown(place: &BackupPlace) -> String {
    match place {
        BackupPlace::Path(path) => path.display().to_string(),
        BackupPlace::S3 { bucket, key } => format!("s3://{bucket}/{key}"),
    }
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn open(name: &str) -> Result<AmazonS3> {
    bucket::open(name).map_err(store_failed)
}

fn store_failed(error: object_store::Error) -> Failure {
    Failure::Failed(format!(
        "the bucket: {error}; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL, \
         and allow put, get, list and delete"
    ))
}

/// The object appears when all parts are there.
async fn upload(store: &AmazonS3, key: &Key, path: &Path) -> Result<()> {
    let failed = |error| Failure::at(path, "cannot read", error);
    let mut file = tokio::fs::File::open(path).await.map_err(failed)?;
    let bytes = file.metadata().await.map_err(failed)?.len();
    let part_bytes = (bytes / MOST_PARTS).max(LEAST_PART_BYTES);
    let mut upload = store.put_multipart(key).await.map_err(store_failed)?;
    let sent = async {
        loop {
            let mut part = Vec::new();
            let mut next = (&mut file).take(part_bytes);
            if next.read_to_end(&mut part).await.map_err(failed)? == 0 {
                break;
            }
            upload.put_part(part.into()).await.map_err(store_failed)?;
        }
        upload.complete().await.map_err(store_failed)
    }
    .await;
    match sent {
        Ok(_) => Ok(()),
        Err(failure) => {
            // A lifecycle rule of the bucket removes what this cannot.
            let _ = upload.abort().await;
            Err(failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time_and_say_it() {
        let moment: Timestamp = "2026-01-31T08:05:09.5Z".parse().expect("a time");
        let name = name_of(moment);
        assert_eq!(name, "hub-cloud-2026-01-31T080509Z.tar.zst");
        assert_eq!(moment_of(&name), "2026-01-31T08:05:09Z".parse().ok());
        assert!(name < name_of(moment.plus_secs(1)));
        for other in [
            "hub-cloud-2026-01-31T080509Z.tar.zst.partial",
            "hub-cloud-2026-01-31T0805Z.tar.zst",
            "hub-cloud-.tar.zst",
            "notes.txt",
        ] {
            assert_eq!(moment_of(other), None, "{other}");
        }
    }
}
