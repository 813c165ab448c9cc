//! OSV's archive of all records of an ecosystem, read record by record.

use std::fs::File;
use std::io::{BufReader, Read};

use zip::ZipArchive;

use crate::error::FeedError;

use super::advisory::Advisory;
use super::record::{self, MAX_RECORD_BYTES};

/// What is held of the archive is its list of entries, which has about this many at most.
const MAX_ENTRIES: usize = 2_000_000;

/// An open archive.
pub struct Archive {
    zip: ZipArchive<BufReader<File>>,
    /// The last record as text, whose memory the next one uses again.
    json: Vec<u8>,
}

impl Archive {
    /// Fails for an archive that is cut: its list of entries is at its end.
    pub fn open(file: File) -> Result<Self, FeedError> {
        let zip = ZipArchive::new(BufReader::new(file));
        let zip = zip.map_err(|error| FeedError::of("the archive", error))?;
        if zip.len() > MAX_ENTRIES {
            let fault = format!("more than {MAX_ENTRIES} entries");
            return Err(FeedError::of("the archive", fault));
        }
        Ok(Self {
            zip,
            json: Vec::new(),
        })
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.zip.len()
    }

    pub fn is_empty(&self) -> bool {
        self.zip.is_empty()
    }

    /// Reads an entry. None if it is no record.
    pub fn read(&mut self, index: usize) -> Result<Option<Advisory>, FeedError> {
        let unreadable = |error| FeedError::of(&format!("entry {index}"), error);
        let entry = self.zip.by_index(index).map_err(unreadable)?;
        let name = entry.name().map_err(unreadable)?.into_owned();
        if entry.is_dir() || !name.ends_with(".json") {
            return Ok(None);
        }
        self.json.clear();
        self.json.shrink_to(1024 * 1024);
        // What an entry says of its size may be untrue.
        let mut bounded = entry.take(MAX_RECORD_BYTES as u64 + 1);
        bounded
            .read_to_end(&mut self.json)
            .map_err(|error| FeedError::of(&name, error))?;
        let advisory = record::read(&self.json).map_err(|error| error.within(&name))?;
        Ok(Some(advisory))
    }
}
