//! Records that another version of the agent wrote: files that were set aside, as after an update
//! that was taken back. A version that reads them moves their segments into the spool, a few at a
//! time, and no segment twice.

use std::path::PathBuf;

use super::quarantine::{quarantine_damaged, remove_database, set_aside_files};
use super::segment::{PerKind, Segment};
use super::store::{Store, StoreError};

/// About the bytes that are moved at a time.
const BYTES_AT_A_TIME: usize = 1 << 20;

pub struct Import {
    path: PathBuf,
    name: String,
    from: Store,
    after: i64,
    /// The kinds of which a segment was read.
    begun: PerKind<bool>,
}

/// The next file that this version can read, and the size of all that it cannot.
pub fn find(dir: &std::path::Path, store: &Store) -> (Option<Import>, u64) {
    let (mut found, mut unread_bytes) = (None, 0);
    for path in set_aside_files(dir) {
        let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
        match Store::open(&path) {
            Ok(_) if found.is_some() => {}
            Ok(from) => found = begin(path, from, store),
            Err(StoreError::Damaged(reason)) => quarantine_damaged(&path, &reason),
            Err(_) => unread_bytes += bytes,
        }
    }
    (found, unread_bytes)
}

fn begin(path: PathBuf, from: Store, store: &Store) -> Option<Import> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let after = store.imported(&name).ok()?;
    tracing::info!(file = %path.display(), "records of another version are moved into the spool");
    let begun = PerKind::from_fn(|_| after > 0);
    Some(Import {
        path,
        name,
        from,
        after,
        begun,
    })
}

impl Import {
    /// The next segments, as they are stored in the spool, and the id up to which they are read.
    /// None if all are there.
    pub fn next(&mut self, next_id: &mut i64) -> Result<Option<(Vec<Segment>, i64)>, StoreError> {
        let mut segments = self.from.after(self.after, BYTES_AT_A_TIME)?;
        let Some(last) = segments.last().map(|segment| segment.id) else {
            return Ok(None);
        };
        for segment in &mut segments {
            segment.id = *next_id;
            *next_id += 1;
            // The first of a kind may have been sent by the version that wrote it.
            let has_begun = self.begun.get_mut(segment.kind);
            segment.fixed |= !std::mem::replace(has_begun, true);
        }
        Ok(Some((segments, last)))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The segments up to this id are in the spool, on disk.
    pub fn moved(&mut self, last: i64) {
        self.after = last;
    }

    /// Removes the file, whose segments are all in the spool. One with segments that only another
    /// version knows stays for it.
    pub fn finish(self, store: &Store) {
        let Self {
            path, name, from, ..
        } = self;
        if from.unknown_bytes() > 0 {
            return;
        }
        drop(from);
        remove_database(&path);
        // A name is used once: what is left of it does no harm.
        let _ = store.forget_imported(&name);
    }
}
