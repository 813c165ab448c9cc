//! The files of a feed: an archive of OSV, a directory of records, one record, or KEV's catalog. A
//! thread of its own reads them and hands batches on.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hub_advisories::kev::{self, Catalog};
use hub_advisories::osv::{self, Advisory, Archive};
use serde::Deserialize;
use tokio::sync::mpsc::Sender;

/// The largest file that is one record or a catalog.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// The most files of a directory.
const MAX_FILES: usize = 1_000_000;
/// Advisories and their packages that are handed on at once.
const BATCH: usize = 1024;

/// What is read.
pub enum Batch {
    Advisories(Vec<Advisory>),
    Known(Catalog),
    /// How many records there are, as soon as it is known.
    Total(usize),
    /// A record that cannot be read, and why.
    Refused(String),
}

/// The receiver of the batches has gone: it reports why.
struct Gone;

enum Stop {
    Gone,
    Unreadable(String),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// Reads a file or a directory. Fails if it is none of what can be brought in.
pub fn read(path: &Path, batches: &Sender<Batch>) -> Result<(), String> {
    match read_into(path, &mut Batches::new(batches)) {
        Ok(()) | Err(Stop::Gone) => Ok(()),
        Err(Stop::Unreadable(why)) => Err(format!("{}: {why}", path.display())),
    }
}

fn read_into(path: &Path, batches: &mut Batches<'_>) -> Result<(), Stop> {
    let unreadable = |error: std::io::Error| Stop::Unreadable(error.to_string());
    if path.is_dir() {
        let files = files_of(path).map_err(unreadable)?;
        if files.is_empty() {
            return Err(Stop::Unreadable("no file in it ends with .json".to_owned()));
        }
        batches.send(Batch::Total(files.len()))?;
        for file in files {
            let text = whole(&file).map_err(unreadable)?;
            match osv::read(&text) {
                Ok(advisory) => batches.add(advisory)?,
                Err(error) => batches.refuse(&file.display().to_string(), &error.to_string())?,
            }
        }
        return Ok(batches.flush()?);
    }
    let mut file = File::open(path).map_err(unreadable)?;
    let mut magic = [0; 2];
    let read = file.read(&mut magic).map_err(unreadable)?;
    if read == 2 && magic == *b"PK" {
        return read_archive(path, batches);
    }
    let text = whole(path).map_err(unreadable)?;
    if is_catalog(&text) {
        let catalog = kev::read(&text).map_err(|error| Stop::Unreadable(error.to_string()))?;
        return Ok(batches.send(Batch::Known(catalog))?);
    }
    let advisory = osv::read(&text).map_err(|error| {
        Stop::Unreadable(format!(
            "is neither an archive of OSV, nor a record of it, nor KEV's catalog: {error}"
        ))
    })?;
    batches.send(Batch::Total(1))?;
    batches.add(advisory)?;
    Ok(batches.flush()?)
}

fn read_archive(path: &Path, batches: &mut Batches<'_>) -> Result<(), Stop> {
    let file = File::open(path).map_err(|error| Stop::Unreadable(error.to_string()))?;
    // The list of an archive's entries is at its end, so one that is cut off is refused here.
    let mut archive = Archive::open(file)
        .map_err(|error| Stop::Unreadable(format!("the archive is cut off or damaged: {error}")))?;
    let count = archive.len();
    batches.send(Batch::Total(count))?;
    for index in 0..count {
        match archive.read(index) {
            Ok(Some(advisory)) => batches.add(advisory)?,
            Ok(None) => {}
            Err(error) => batches.refuse(&format!("entry {index}"), &error.to_string())?,
        }
    }
    Ok(batches.flush()?)
}

/// Whether this is KEV's catalog, by the members that it has.
fn is_catalog(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Members {
        catalog_version: Option<serde::de::IgnoredAny>,
        vulnerabilities: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Members>(text)
        .is_ok_and(|members| members.catalog_version.is_some() && members.vulnerabilities.is_some())
}

/// The files below a directory whose names end with `.json`, sorted.
fn files_of(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let (mut found, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            // Links are not followed: they may form a circle.
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "json") {
                found.push(path);
            }
            if found.len() + directories.len() > MAX_FILES {
                let message = format!("has more than {MAX_FILES} files");
                return Err(std::io::Error::other(message));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
    match u64::try_from(text.len()).is_ok_and(|bytes| bytes <= MAX_FILE_BYTES) {
        true => Ok(text),
        false => {
            let mebibytes = MAX_FILE_BYTES / (1024 * 1024);
            let message = format!("{} has more than {mebibytes} MiB", path.display());
            Err(std::io::Error::other(message))
        }
    }
}

/// Collects advisories until they are a batch.
struct Batches<'a> {
    to: &'a Sender<Batch>,
    waiting: Vec<Advisory>,
    rows: usize,
}

impl<'a> Batches<'a> {
    const fn new(to: &'a Sender<Batch>) -> Self {
        Self {
            to,
            waiting: Vec::new(),
            rows: 0,
        }
    }

    fn add(&mut self, advisory: Advisory) -> Result<(), Gone> {
        self.rows += 1 + advisory.affected.len();
        self.waiting.push(advisory);
        match self.rows >= BATCH {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn refuse(&mut self, name: &str, why: &str) -> Result<(), Gone> {
        self.send(Batch::Refused(format!("{name}: {why}")))
    }

    fn flush(&mut self) -> Result<(), Gone> {
        self.rows = 0;
        match self.waiting.is_empty() {
            true => Ok(()),
            false => {
                let batch = Batch::Advisories(std::mem::take(&mut self.waiting));
                self.send(batch)
            }
        }
    }

    fn send(&self, batch: Batch) -> Result<(), Gone> {
        self.to.blocking_send(batch).map_err(|_| Gone)
    }
}
