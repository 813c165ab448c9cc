//! Closed days of the log of BLE events: Parquet files in an object store, which other software
//! reads as they are. This crate writes files and reads from them. Which files are a tenant's
//! history is in the database, and not known here.
//!
//! A file has the events of a tenant and a day of receipt, or of a part of it. Its place is
//! `history/tenant_uuid=UUID/day=YYYY-MM-DD/NAME.parquet` (partitions as Hive names them). A file
//! is never changed: one with other contents has another name.

mod event;
mod file;
mod group;

use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use hub_base::bucket;
use hub_protocol::{TenantUuid, Timestamp};
use object_store::aws::AmazonS3;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use uuid::Uuid;

pub use event::{ProcessingStatus, StoredEvent};
pub use file::levels;
pub use group::{EventHead, GroupIds};

use group::{Group, Parts};

/// The folder of all files in the store.
const FOLDER: &str = "history";
/// Events of a row group at most.
pub const GROUP_EVENTS: usize = 32 * 1024;
/// Row groups of a file at most. A file is written, and read to be changed, as a whole.
const FILE_GROUPS: usize = 2;
/// The end of a file, which mostly has all that says where the rest is.
const END_BYTES: u64 = 32 * 1024;
/// Memory for layouts, and for the events of whole row groups.
const LAYOUT_BYTES: u64 = 32 << 20;
const EVENT_BYTES: u64 = 64 << 20;
/// Cached entries that the caches are made for.
const LAYOUTS: usize = 1024;
const GROUPS: usize = 8;
/// Pages that a read of one range of rows takes. Ranges that take more than their group are read
/// as the whole group.
const SPREAD_PAGES: usize = 4;
/// Row groups that are read at a time: each takes memory for its events.
const READS: usize = 4;
/// Failures that are remembered, so that each is logged once.
const FAILURES: usize = 1024;
/// Parts of a file that are fetched at a time.
const FETCHES: usize = 8;

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file is not in the store: it was replaced or deleted, or is lost.
    #[error("the file {0} is not in the store")]
    Missing(String),
    /// The file is in the store, with other contents than were written.
    #[error("the file {file} is damaged: {reason}")]
    Damaged { file: String, reason: String },
    #[error("the store failed: {0}")]
    Store(object_store::Error),
    #[error("a file cannot be written: {0}")]
    Write(ParquetError),
    #[error("a read was not finished: {0}")]
    Ended(tokio::task::JoinError),
}

pub type Result<T, E = HistoryError> = std::result::Result<T, E>;

/// A file of a tenant, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub tenant_uuid: TenantUuid,
    /// All of its events have ids from the first to the last, both included.
    pub first_id: i64,
    pub last_id: i64,
    /// Distinguishes it from other files with the same first event.
    pub name: Uuid,
    pub events: i64,
    pub file_bytes: i64,
    pub sha256: Vec<u8>,
    /// What the store calls this version of the file, where it does.
    pub e_tag: Option<String>,
}

impl File {
    /// Where the file is below the store's prefix.
    pub fn path(&self) -> String {
        path_of(self.tenant_uuid, self.first_id, self.name)
    }
}

/// Where a file is below the store's prefix.
pub fn path_of(tenant_uuid: TenantUuid, first_id: i64, name: Uuid) -> String {
    let received_at = Timestamp::from_micros(first_id).to_string();
    let day = received_at.get(..10).unwrap_or_default();
    format!("{FOLDER}/tenant_uuid={tenant_uuid}/day={day}/{first_id}-{name}.parquet")
}

/// The files of all tenants; cheap to clone.
#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    place: Place,
    store: OnceLock<Opened>,
    group_events: usize,
    prefix: Path,
    layouts: Cache<Uuid, Layout, LayoutBytes>,
    groups: Cache<(Uuid, usize), Arc<Vec<StoredEvent>>, GroupBytes>,
    reads: Arc<Semaphore>,
    failures: Cache<String, ()>,
}

/// What says where everything is in a file whose contents are as they were written.
#[derive(Clone)]
struct Layout {
    layout: Arc<ParquetMetaData>,
    e_tag: Option<String>,
}

#[derive(Clone)]
struct LayoutBytes;

impl Weighter<Uuid, Layout> for LayoutBytes {
    fn weight(&self, _: &Uuid, layout: &Layout) -> u64 {
        layout.layout.memory_size() as u64
    }
}

#[derive(Clone)]
struct GroupBytes;

impl Weighter<(Uuid, usize), Arc<Vec<StoredEvent>>> for GroupBytes {
    fn weight(&self, _: &(Uuid, usize), events: &Arc<Vec<StoredEvent>>) -> u64 {
        let bytes = |event: &StoredEvent| size_of::<StoredEvent>() + event.text_bytes();
        events.iter().map(bytes).sum::<usize>() as u64
    }
}

/// Where the files of all tenants are.
#[derive(Clone, Debug)]
pub enum Place {
    Directory(PathBuf),
    S3 {
        bucket: String,
        /// Without leading or trailing slash. May be empty.
        prefix: String,
    },
}

struct Opened {
    store: Arc<dyn ObjectStore>,
    /// The store, if it is one that signs URLs.
    bucket: Option<AmazonS3>,
}

impl Place {
    /// Opens the store. Creates the directory if it does not exist.
    fn open(&self) -> object_store::Result<Opened> {
        match self {
            Self::Directory(dir) => {
                let failed = |source: std::io::Error| object_store::Error::Generic {
                    store: "directory",
                    source: source.into(),
                };
                std::fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(dir)
                    .map_err(failed)?;
                // A file that is part of the history must survive a power failure.
                let store = LocalFileSystem::new_with_prefix(dir)?.with_fsync(true);
                Ok(Opened {
                    store: Arc::new(store),
                    bucket: None,
                })
            }
            Self::S3 { bucket, .. } => {
                let bucket = bucket::open(bucket)?;
                Ok(Opened {
                    store: Arc::new(bucket.clone()),
                    bucket: Some(bucket),
                })
            }
        }
    }
}

impl History {
    /// Opens nothing, and calls nobody, until it is used. A row group has at most `group_events`.
    pub fn new(place: Place, group_events: usize) -> Self {
        let prefix = match &place {
            Place::Directory(_) => Path::default(),
            Place::S3 { prefix, .. } => Path::from(prefix.as_str()),
        };
        Self(Arc::new(Inner {
            place,
            store: OnceLock::new(),
            group_events,
            prefix,
            layouts: Cache::with_weighter(LAYOUTS, LAYOUT_BYTES, LayoutBytes),
            groups: Cache::with_weighter(GROUPS, EVENT_BYTES, GroupBytes),
            reads: Arc::new(Semaphore::new(READS)),
            failures: Cache::new(FAILURES),
        }))
    }

    /// Whether the failure is new to this process, and not that of one more read of a file.
    pub fn is_first_failure(&self, error: &HistoryError) -> bool {
        let failure = error.to_string();
        let is_new = self.0.failures.get(&failure).is_none();
        if is_new {
            self.0.failures.insert(failure, ());
        }
        is_new
    }

    fn opened(&self) -> Result<&Opened> {
        if let Some(opened) = self.0.store.get() {
            return Ok(opened);
        }
        let opened = self.0.place.open().map_err(HistoryError::Store)?;
        Ok(self.0.store.get_or_init(|| opened))
    }

    fn store(&self) -> Result<&Arc<dyn ObjectStore>> {
        Ok(&self.opened()?.store)
    }

    /// Events of a file at most.
    pub fn file_events(&self) -> usize {
        FILE_GROUPS * self.0.group_events
    }

    /// The folder of a tenant's files: a URL of a bucket, or a path below the directory.
    pub fn location(&self, tenant_uuid: TenantUuid) -> String {
        let folder = format!("{FOLDER}/tenant_uuid={tenant_uuid}");
        match &self.0.place {
            Place::Directory(_) => folder,
            Place::S3 { bucket, .. } => format!("s3://{bucket}/{}", self.path(&folder)),
        }
    }

    /// A URL that reads a file for a while; None where the store has none.
    pub async fn url(&self, file: &File, valid_for: Duration) -> Result<Option<String>> {
        let Some(bucket) = &self.opened()?.bucket else {
            return Ok(None);
        };
        let path = self.path(&file.path());
        let url = bucket
            .signed_url(reqwest::Method::GET, &path, valid_for)
            .await;
        Ok(Some(url.map_err(HistoryError::Store)?.to_string()))
    }

    fn path(&self, path: &str) -> Path {
        path.split('/').fold(self.0.prefix.clone(), |path, part| {
            path.join(part.to_owned())
        })
    }

    /// Writes a file with these events, which must be of one tenant and in the order of their ids,
    /// none outside of the given ones. When this returns, the file is durable and was read back.
    pub async fn write(
        &self,
        tenant_uuid: TenantUuid,
        name: Uuid,
        (first_id, last_id): (i64, i64),
        events: Vec<StoredEvent>,
    ) -> Result<File> {
        let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let group_events = self.0.group_events;
        let work = move || {
            let bytes = file::write(&events, group_events)?;
            let sha256 = Sha256::digest(&bytes).to_vec();
            Ok((bytes, sha256))
        };
        let written: Result<_, ParquetError> = tokio::task::spawn_blocking(work)
            .await
            .map_err(HistoryError::Ended)?;
        let (bytes, sha256) = written.map_err(HistoryError::Write)?;
        let mut file = File {
            tenant_uuid,
            first_id,
            last_id,
            name,
            events: count,
            file_bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            sha256,
            e_tag: None,
        };
        let path_in_store = self.path(&file.path());
        let put = self.store()?.put(&path_in_store, bytes.into()).await;
        file.e_tag = put.map_err(HistoryError::Store)?.e_tag;
        let layout = self.layout_of_all(&file).await?;
        let stored: i64 = layout
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .sum();
        match stored == count {
            true => Ok(file),
            false => Err(self.damaged(&file, format!("{stored} of {count} events are in it"))),
        }
    }

    /// Deletes a file. A missing one is no error.
    pub async fn delete(&self, path: &str) -> Result<()> {
        match self.store()?.delete(&self.path(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(HistoryError::Store(error)),
        }
    }

    /// The row groups of a file.
    pub async fn groups(&self, file: &File) -> Result<Vec<GroupIds>> {
        let layout = self.layout(file).await?.layout;
        let group = |index| Group {
            layout: Arc::clone(&layout),
            index,
        };
        (0..layout.num_row_groups())
            .map(|index| group(index).ids())
            .collect::<Result<_, _>>()
            .map_err(|error| self.unreadable(file, error))
    }

    /// The heads of a row group's events in the order of their ids, or of those of a device.
    pub async fn heads(
        &self,
        file: &File,
        index: usize,
        device_instance_id: Option<i64>,
    ) -> Result<Vec<EventHead>> {
        let Layout { layout, e_tag } = self.layout(file).await?;
        let group = Group { layout, index };
        let rows = group.rows_of(device_instance_id);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |error| self.unreadable(file, error);
        let bytes = group.bytes_of_heads(&rows).map_err(failed)?;
        let parts = self.fetch(file, &e_tag, bytes).await?;
        self.read(move || group.heads(parts, rows, device_instance_id))
            .await?
            .map_err(failed)
    }

    /// The events in these rows of a row group, in the order of the rows, which must be ascending.
    pub async fn events(
        &self,
        file: &File,
        index: usize,
        rows: &[usize],
    ) -> Result<Vec<StoredEvent>> {
        let key = (file.name, index);
        if let Some(events) = self.0.groups.get(&key) {
            return Ok(chosen(&events, rows));
        }
        let Layout { layout, e_tag } = self.layout(file).await?;
        let group = Group { layout, index };
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for &row in rows {
            match ranges.last_mut() {
                Some(last) if last.end == row => last.end = row + 1,
                _ => ranges.push(row..row + 1),
            }
        }
        let failed = |error| self.unreadable(file, error);
        let (all, count) = (0..group.events(), group.events());
        // What is spread over the group takes most of its pages: all of it is read then, and kept.
        let is_spread = ranges.len() > 1 && ranges.len() * SPREAD_PAGES * file::PAGE_ROWS > count;
        let ranges = match is_spread {
            true => vec![all],
            false => ranges,
        };
        let bytes = group.bytes_of_events(&ranges).map_err(failed)?;
        let parts = self.fetch(file, &e_tag, bytes).await?;
        let events = self
            .read(move || group.events_of(parts, &ranges))
            .await?
            .map_err(failed)?;
        if !is_spread {
            return Ok(events);
        }
        let events = Arc::new(events);
        self.0.groups.insert(key, Arc::clone(&events));
        Ok(chosen(&events, rows))
    }

    /// All events of a file, in the order of their ids, of contents that were verified.
    pub async fn all(&self, file: &File) -> Result<Vec<StoredEvent>> {
        let (bytes, _) = self.fetch_all(file).await?;
        let read = move || {
            let layout = Arc::new(group::layout(bytes.clone(), bytes.len() as u64)?);
            let mut events = Vec::new();
            for index in 0..layout.num_row_groups() {
                let group = Group {
                    layout: Arc::clone(&layout),
                    index,
                };
                let parts = Parts {
                    file_bytes: bytes.len() as u64,
                    parts: vec![(0, bytes.clone())],
                };
                let all = 0..group.events();
                events.extend(group.events_of(parts, &[all])?);
            }
            events.sort_by_key(|event| event.ble_event_id);
            Ok(events)
        };
        self.read(read)
            .await?
            .map_err(|error| self.unreadable(file, error))
    }

    async fn layout(&self, file: &File) -> Result<Layout> {
        if let Some(layout) = self.0.layouts.get(&file.name) {
            return Ok(layout);
        }
        let size = u64::try_from(file.file_bytes).unwrap_or(0);
        let end = size.saturating_sub(END_BYTES)..size;
        let (bytes, e_tag) = self.get(file, end).await?;
        // A store that restored the file from a copy gives it another tag.
        let is_known = file.e_tag.is_some() && e_tag == file.e_tag;
        let parsed = match is_known {
            true => group::layout(bytes, size).ok(),
            false => None,
        };
        let layout = match parsed {
            Some(layout) => Arc::new(layout),
            None => self.layout_of_all(file).await?,
        };
        let layout = Layout { layout, e_tag };
        self.0.layouts.insert(file.name, layout.clone());
        Ok(layout)
    }

    async fn layout_of_all(&self, file: &File) -> Result<Arc<ParquetMetaData>> {
        let (bytes, _) = self.fetch_all(file).await?;
        let size = bytes.len() as u64;
        let layout = group::layout(bytes, size).map_err(|error| self.unreadable(file, error))?;
        Ok(Arc::new(layout))
    }

    /// A whole file, whose contents are as they were written.
    async fn fetch_all(&self, file: &File) -> Result<(Bytes, Option<String>)> {
        let size = u64::try_from(file.file_bytes).unwrap_or(0);
        let (bytes, e_tag) = self.get(file, 0..size).await?;
        let digest = bytes.clone();
        let sha256 = self.read(move || Sha256::digest(&digest).to_vec()).await?;
        match sha256 == file.sha256 {
            true => Ok((bytes, e_tag)),
            false => Err(self.damaged(file, "its contents were changed".to_owned())),
        }
    }

    async fn fetch(
        &self,
        file: &File,
        e_tag: &Option<String>,
        ranges: Vec<Range<u64>>,
    ) -> Result<Parts> {
        let part = |range: Range<u64>| async move {
            let start = range.start;
            let (bytes, found) = self.get(file, range).await?;
            match found == *e_tag {
                true => Ok((start, bytes)),
                false => {
                    self.0.layouts.remove(&file.name);
                    Err(self.damaged(file, "it was changed while it was read".to_owned()))
                }
            }
        };
        Ok(Parts {
            file_bytes: u64::try_from(file.file_bytes).unwrap_or(0),
            parts: stream::iter(ranges.into_iter().map(part))
                .buffered(FETCHES)
                .try_collect()
                .await?,
        })
    }

    async fn get(&self, file: &File, range: Range<u64>) -> Result<(Bytes, Option<String>)> {
        let path = file.path();
        let failed = |error| match error {
            object_store::Error::NotFound { .. } => HistoryError::Missing(path.clone()),
            error => HistoryError::Store(error),
        };
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let path_in_store = self.path(&path);
        let found = match self.store()?.get_opts(&path_in_store, options).await {
            Ok(found) => found,
            // A range that is not in the file may be an error of its own.
            Err(error) => {
                let size = self
                    .store()?
                    .head(&path_in_store)
                    .await
                    .map_err(failed)?
                    .size;
                self.require_size(file, size)?;
                return Err(failed(error));
            }
        };
        self.require_size(file, found.meta.size)?;
        let e_tag = found.meta.e_tag.clone();
        Ok((found.bytes().await.map_err(failed)?, e_tag))
    }

    fn require_size(&self, file: &File, size: u64) -> Result<()> {
        match u64::try_from(file.file_bytes) == Ok(size) {
            true => Ok(()),
            false => Err(self.damaged(
                file,
                format!("it has {size} bytes, and {} were written", file.file_bytes),
            )),
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.0.reads).acquire_owned().await.ok();
        let work = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(HistoryError::Ended)
    }

    fn unreadable(&self, file: &File, error: ParquetError) -> HistoryError {
        self.damaged(file, error.to_string())
    }

    fn damaged(&self, file: &File, reason: String) -> HistoryError {
        HistoryError::Damaged {
            file: file.path(),
            reason,
        }
    }
}

/// The events in these rows of a group.
fn chosen(events: &[StoredEvent], rows: &[usize]) -> Vec<StoredEvent> {
    rows.iter()
        .filter_map(|row| events.get(*row).cloned())
        .collect()
}
