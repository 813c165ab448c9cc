//! All SQL of the spool: one table of segments in the order of their arrival, counters, and the
//! clock offset of each boot. Every change is one transaction that is on disk when its call
//! returns. Used by the spool's thread alone.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hub_protocol::{BatchUuid, Timestamp};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params,
};
use uuid::Uuid;

use super::segment::{Kind, PerKind, Segment};

const SCHEMA: &str = "
CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    batch BLOB NOT NULL,
    fixed INTEGER NOT NULL,
    records INTEGER NOT NULL,
    from_micros INTEGER NOT NULL,
    to_micros INTEGER NOT NULL,
    boot BLOB NOT NULL,
    clock_offset_micros INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE boots (boot BLOB PRIMARY KEY, clock_offset_micros INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
";
const SCHEMA_VERSION: i64 = 1;

/// The size of a row without its body, approximately.
const ROW_BYTES: u64 = 128;

/// A larger file is shrunk when it is empty.
const SHRINK_ABOVE_BYTES: u64 = 32 << 20;

/// The records of one kind in the spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub segments: u64,
    pub records: u64,
    pub bytes: u64,
}

/// Counted since the spool was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Advertisements, or devices of windows, dropped because the spool was full.
    pub dropped_events: u64,
    /// Other records dropped because the spool was full.
    pub dropped_records: u64,
    /// Records in uploads that the service refused permanently.
    pub refused_records: u64,
    /// Records that the service refused in uploads that it accepted.
    pub rejected_records: u64,
    /// Advertisements that came faster than they could be stored.
    pub lost_events: u64,
    /// Records of an owner that the hub no longer has.
    pub discarded_records: u64,
}

impl Counters {
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    pub fn drop_of(&mut self, kind: Kind, records: u64) {
        if kind.is_ble() {
            self.dropped_events += records;
        } else {
            self.dropped_records += records;
        }
    }

    /// Records of any kind dropped because the spool was full.
    pub fn dropped(&self) -> u64 {
        self.dropped_events + self.dropped_records
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            dropped_events: self.dropped_events + other.dropped_events,
            dropped_records: self.dropped_records + other.dropped_records,
            refused_records: self.refused_records + other.refused_records,
            rejected_records: self.rejected_records + other.rejected_records,
            lost_events: self.lost_events + other.lost_events,
            discarded_records: self.discarded_records + other.discarded_records,
        }
    }

    fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("dropped_events", self.dropped_events),
            ("dropped_records", self.dropped_records),
            ("refused_records", self.refused_records),
            ("rejected_records", self.rejected_records),
            ("lost_events", self.lost_events),
            ("discarded_records", self.discarded_records),
        ]
    }
}

/// Segments of one kind, from one id to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub kind: Kind,
    pub first: i64,
    pub last: i64,
}

impl Range {
    pub fn contains(&self, segment: &Segment) -> bool {
        segment.kind == self.kind && (self.first..=self.last).contains(&segment.id)
    }
}

/// A change that is applied completely or not at all.
#[derive(Debug, Default)]
pub struct Change<'a> {
    pub insert: &'a [Segment],
    pub delete: &'a [Range],
    pub count: Counters,
    /// The maximum size afterwards; the excess is dropped, oldest advertisements first.
    pub limit_bytes: u64,
    /// Batches that are being uploaded and must not be dropped.
    pub offered: PerKind<Option<Range>>,
    /// The name of a file that was set aside, and the id of its last segment that is in `insert`.
    pub imported: Option<(&'a str, i64)>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its content is damaged: another attempt does not help.
    #[error("{0}")]
    Damaged(String),
    /// Another version of the agent wrote it.
    #[error("the spool has format {0}, which this version does not know")]
    UnknownFormat(i64),
    /// The disk is full: with less to store it may suffice.
    #[error("{0}")]
    Full(String),
    /// The disk is unavailable: another attempt may help.
    #[error("{0}")]
    Unavailable(String),
}

/// SQLite's code for memory, shared by its readers and writers, that cannot grow.
const SHARED_MEMORY_FULL: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(cause, _)
                if cause.code == ErrorCode::DiskFull
                    || cause.extended_code == SHARED_MEMORY_FULL =>
            {
                Self::Full(error.to_string())
            }
            rusqlite::Error::SqliteFailure(cause, _)
                if !matches!(
                    cause.code,
                    ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase
                ) =>
            {
                Self::Unavailable(error.to_string())
            }
            // Not only corruption: a column may be missing or of another type.
            _ => Self::Damaged(error.to_string()),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull => Self::Full(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

pub struct Store {
    connection: Connection,
    usage: PerKind<Usage>,
    counters: Counters,
    last_id: i64,
    /// No segment of the kind has a lower id. The bound avoids reading the segments of other kinds.
    first_id: PerKind<i64>,
    /// Segments whose kind only another version knows. They stay for it.
    unknown_bytes: u64,
}

impl Store {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // Records belong to the hub's owner alone; SQLite gives the files beside it the same mode.
        std::fs::File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A commit is on disk when it returns; how often it happens bounds what a power cut can
        // lose.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -512)?;
        connection.pragma_update(None, "wal_autocheckpoint", 512)?;
        connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match version {
            0 => connection.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT;"))?,
            SCHEMA_VERSION => {}
            other => return Err(StoreError::UnknownFormat(other)),
        }
        let mut store = Self {
            connection,
            usage: PerKind::default(),
            counters: Counters::default(),
            last_id: 0,
            first_id: PerKind::default(),
            unknown_bytes: 0,
        };
        store.count_segments()?;
        Ok(store)
    }

    fn count_segments(&mut self) -> Result<(), StoreError> {
        // The length of a body is known without reading it.
        let mut statement = self.connection.prepare(
            "SELECT kind, COUNT(*), SUM(records), SUM(length(body)), MAX(id) \
             FROM segments GROUP BY kind",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let segments: u64 = row.get(1)?;
            let bytes: u64 = row.get(3)?;
            self.last_id = self.last_id.max(row.get(4)?);
            let Some(kind) = Kind::from_code(row.get(0)?) else {
                self.unknown_bytes += bytes + segments * ROW_BYTES;
                continue;
            };
            *self.usage.get_mut(kind) = Usage {
                segments,
                records: row.get(2)?,
                bytes: bytes + segments * ROW_BYTES,
            };
        }
        for (name, field) in [
            ("dropped_events", &mut self.counters.dropped_events),
            ("dropped_records", &mut self.counters.dropped_records),
            ("refused_records", &mut self.counters.refused_records),
            ("rejected_records", &mut self.counters.rejected_records),
            ("lost_events", &mut self.counters.lost_events),
            ("discarded_records", &mut self.counters.discarded_records),
        ] {
            *field = self
                .connection
                .query_row(
                    "SELECT value FROM counters WHERE name = ?1",
                    [name],
                    |row| row.get(0),
                )
                .optional()?
                .unwrap_or(0);
        }
        // On a full disk they stay a while longer.
        let _ = self.connection.execute(
            "DELETE FROM boots \
             WHERE boot NOT IN (SELECT DISTINCT boot FROM segments)",
            [],
        );
        Ok(())
    }

    pub fn usage(&self) -> &PerKind<Usage> {
        &self.usage
    }

    pub fn unknown_bytes(&self) -> u64 {
        self.unknown_bytes
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The highest id.
    pub fn last_id(&self) -> i64 {
        self.last_id
    }

    /// When the oldest segment begins.
    pub fn oldest(&self) -> Result<Option<Timestamp>, StoreError> {
        let micros = self
            .connection
            .query_row(
                "SELECT from_micros FROM segments ORDER BY id LIMIT 1",
                [],
                |row| row.get(0),
            )
            .optional()?;
        Ok(micros.map(Timestamp::from_micros))
    }

    /// The size of all segments.
    pub fn used_bytes(&self) -> u64 {
        used(&self.usage)
    }

    /// Moves SQLite's journal into the file, so that the journal is written from its beginning
    /// again and needs no more of the disk.
    pub fn empty_journal(&self) -> Result<(), StoreError> {
        Ok(self
            .connection
            .query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))?)
    }

    pub fn file_bytes(&self) -> Result<u64, StoreError> {
        let pages: u64 = self
            .connection
            .query_row("PRAGMA page_count", [], |row| row.get(0))?;
        let page_bytes: u64 = self
            .connection
            .query_row("PRAGMA page_size", [], |row| row.get(0))?;
        Ok(pages * page_bytes)
    }

    pub fn apply(&mut self, change: &Change<'_>) -> Result<(), StoreError> {
        let before = (self.usage, self.counters);
        let done = self.try_apply(change);
        if done.is_err() {
            (self.usage, self.counters) = before;
        }
        done
    }

    fn try_apply(&mut self, change: &Change<'_>) -> Result<(), StoreError> {
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut count = change.count;
        for range in change.delete {
            for row in headers(&tx, &[range.kind], range.first, Some(range.last), None)? {
                remove(&tx, &mut self.usage, &row)?;
            }
        }
        // Advertisements are dropped first, so that what is new finds its space in the file.
        let incoming = change.insert.iter().map(stored_bytes).sum();
        drop_oldest(
            &tx,
            &mut self.usage,
            &mut count,
            change,
            &DROPPED[..1],
            incoming,
        )?;
        for segment in change.insert {
            insert(&tx, segment)?;
            let usage = self.usage.get_mut(segment.kind);
            usage.segments += 1;
            usage.records += segment.records;
            usage.bytes += stored_bytes(segment);
        }
        drop_oldest(&tx, &mut self.usage, &mut count, change, &DROPPED, 0)?;
        let total = self.counters.plus(count);
        for ((name, value), (_, before)) in total.named().into_iter().zip(self.counters.named()) {
            if value != before {
                tx.execute(
                    "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
                    params![name, value],
                )?;
            }
        }
        if let Some((file, last_id)) = change.imported {
            tx.execute(
                "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
                params![imported(file), last_id],
            )?;
        }
        tx.commit()?;
        self.counters = total;
        self.last_id = change
            .insert
            .iter()
            .map(|segment| segment.id)
            .fold(self.last_id, i64::max);
        Ok(())
    }

    /// The first segments of a kind with these ids, in order, within the bounds and as long as they
    /// can join the first, which is always included.
    pub fn head(
        &mut self,
        kind: Kind,
        ids: std::ops::Range<i64>,
        max_records: u64,
        max_bytes: usize,
        can_join: impl Fn(&Segment, &Segment) -> bool,
    ) -> Result<Vec<Segment>, StoreError> {
        if self.usage.get(kind).segments == 0 {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT * FROM segments \
             WHERE kind = ?1 AND id >= ?2 AND id < ?3 ORDER BY id",
        )?;
        let first_id = *self.first_id.get(kind);
        let from_id = first_id.max(ids.start);
        let mut rows = statement.query([kind.code(), from_id, ids.end])?;
        let mut found: Vec<Segment> = Vec::new();
        let (mut records, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            let segment = segment_of(row)?;
            records += segment.records;
            bytes += segment.body.len();
            if let Some(first) = found.first()
                && (records > max_records || bytes > max_bytes || !can_join(first, &segment))
            {
                break;
            }
            found.push(segment);
        }
        if let Some(first) = found.first()
            && ids.start <= first_id
        {
            *self.first_id.get_mut(kind) = first.id;
        }
        Ok(found)
    }

    /// The lowest id of a kind.
    pub fn head_id(&self, kind: Kind) -> Result<Option<i64>, StoreError> {
        if self.usage.get(kind).segments == 0 {
            return Ok(None);
        }
        let id = self
            .connection
            .prepare_cached(
                "SELECT id FROM segments WHERE kind = ?1 AND id >= ?2 ORDER BY id LIMIT 1",
            )?
            .query_row([kind.code(), *self.first_id.get(kind)], |row| row.get(0))
            .optional()?;
        Ok(id)
    }

    /// When the first segment of a kind with this id or a higher one begins: the boot, and the time
    /// since then.
    pub fn first_begin(&self, kind: Kind, id: i64) -> Result<Option<(Uuid, i64)>, StoreError> {
        if self.usage.get(kind).segments == 0 {
            return Ok(None);
        }
        let from_id = id.max(*self.first_id.get(kind));
        let begin = self
            .connection
            .prepare_cached(
                "SELECT boot, from_micros - clock_offset_micros FROM segments \
                 WHERE kind = ?1 AND id >= ?2 ORDER BY id LIMIT 1",
            )?
            .query_row([kind.code(), from_id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(begin)
    }

    /// The first segments after an id, whose batches are all complete: about `bytes`. None of a
    /// kind that this version does not know.
    pub fn after(&self, id: i64, bytes: usize) -> Result<Vec<Segment>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT * FROM segments WHERE id > ?1 ORDER BY id")?;
        let mut rows = statement.query([id])?;
        let mut found: Vec<Segment> = Vec::new();
        let mut found_bytes = 0;
        while let Some(row) = rows.next()? {
            if Kind::from_code(row.get(1)?).is_none() {
                continue;
            }
            let segment = segment_of(row)?;
            let is_of_known_batch = found.iter().any(|before| before.batch == segment.batch);
            if found_bytes >= bytes && !is_of_known_batch {
                break;
            }
            found_bytes += segment.body.len();
            found.push(segment);
        }
        Ok(found)
    }

    /// The id up to which the segments of a file that was set aside are here.
    pub fn imported(&self, file: &str) -> Result<i64, StoreError> {
        let value = self.connection.query_row(
            "SELECT value FROM counters WHERE name = ?1",
            [imported(file)],
            |row| row.get(0),
        );
        Ok(value.optional()?.unwrap_or(0))
    }

    /// Forgets a file that was set aside and is gone.
    pub fn forget_imported(&self, file: &str) -> Result<(), StoreError> {
        self.connection
            .execute("DELETE FROM counters WHERE name = ?1", [imported(file)])?;
        Ok(())
    }

    pub fn read(&self, range: Range) -> Result<Vec<Segment>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT * FROM segments \
             WHERE kind = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id",
        )?;
        let mut rows = statement.query(params![range.kind.code(), range.first, range.last])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(segment_of(row)?);
        }
        Ok(found)
    }

    /// Rewrites stored segments: their batch and their corrected times.
    pub fn rewrite(&mut self, segments: &[Segment]) -> Result<(), StoreError> {
        let before = self.usage;
        let done = self.try_rewrite(segments);
        if done.is_err() {
            self.usage = before;
        }
        done
    }

    fn try_rewrite(&mut self, segments: &[Segment]) -> Result<(), StoreError> {
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for segment in segments {
            let old: (u64, i64) = tx.query_row(
                "SELECT length(body), clock_offset_micros FROM segments WHERE id = ?1",
                [segment.id],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            if old.1 == segment.clock_offset_micros {
                // The body is unchanged and large: it is not rewritten.
                tx.execute(
                    "UPDATE segments SET batch = ?2, fixed = ?3 WHERE id = ?1",
                    params![segment.id, segment.batch.0, segment.fixed],
                )?;
            } else {
                tx.execute("DELETE FROM segments WHERE id = ?1", [segment.id])?;
                insert(&tx, segment)?;
                let usage = self.usage.get_mut(segment.kind);
                usage.bytes = usage.bytes.saturating_sub(old.0) + segment.body.len() as u64;
            }
        }
        tx.commit()?;
        Ok(())
    }

    /// The clock offset of a boot of this machine, if it was known.
    pub fn boot_offset(&self, boot: Uuid) -> Result<Option<i64>, StoreError> {
        Ok(self
            .connection
            .query_row(
                "SELECT clock_offset_micros FROM boots WHERE boot = ?1",
                [boot],
                |row| row.get(0),
            )
            .optional()?)
    }

    pub fn set_boot_offset(&self, boot: Uuid, clock_offset_micros: i64) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO boots VALUES (?1, ?2) ON CONFLICT DO UPDATE SET clock_offset_micros = ?2",
            params![boot, clock_offset_micros],
        )?;
        Ok(())
    }

    /// Time since boot of the last record of a boot.
    pub fn boot_end_micros(&self, boot: Uuid) -> Result<Option<i64>, StoreError> {
        Ok(self.connection.query_row(
            "SELECT MAX(to_micros - clock_offset_micros) FROM segments WHERE boot = ?1",
            [boot],
            |row| row.get(0),
        )?)
    }

    /// Returns the disk space of a file that had grown and is empty.
    pub fn shrink_if_empty(&self) -> Result<(), StoreError> {
        if self.usage.iter().all(|usage| usage.segments == 0)
            && self.file_bytes()? > SHRINK_ABOVE_BYTES
        {
            self.connection
                .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        }
        Ok(())
    }
}

/// The counter with the progress of an import.
fn imported(file: &str) -> String {
    format!("imported {file}")
}

fn used(usage: &PerKind<Usage>) -> u64 {
    usage.iter().map(|usage| usage.bytes).sum()
}

fn stored_bytes(segment: &Segment) -> u64 {
    segment.body.len() as u64 + ROW_BYTES
}

/// The kinds that are dropped when there is too much, in this order.
const DROPPED: [[Kind; 2]; 2] = [
    [Kind::BleEvents, Kind::BleWindows],
    [Kind::Telemetry, Kind::Logs],
];

/// Drops the oldest segments of these kinds until the rest and what is to come are within the
/// limit.
fn drop_oldest(
    tx: &Transaction<'_>,
    usage: &mut PerKind<Usage>,
    count: &mut Counters,
    change: &Change<'_>,
    dropped: &[[Kind; 2]],
    incoming_bytes: u64,
) -> Result<(), StoreError> {
    if used(usage) + incoming_bytes <= change.limit_bytes {
        return Ok(());
    }
    // A little more than necessary, so that not every commit has to drop.
    let target = (change.limit_bytes - change.limit_bytes / 64).saturating_sub(incoming_bytes);
    for kinds in dropped {
        let mut after = 0;
        while used(usage) > target {
            let rows = headers(tx, kinds, after, None, Some(32))?;
            let Some(last) = rows.last() else { break };
            after = last.id + 1;
            for row in rows {
                let offered = change.offered.get(row.kind);
                if offered.is_some_and(|range| (range.first..=range.last).contains(&row.id)) {
                    continue;
                }
                if used(usage) <= target {
                    break;
                }
                remove(tx, usage, &row)?;
                count.drop_of(row.kind, row.records);
            }
        }
    }
    Ok(())
}

/// A segment without its body.
struct Header {
    id: i64,
    kind: Kind,
    records: u64,
    body_bytes: u64,
}

fn headers(
    tx: &Transaction<'_>,
    kinds: &[Kind],
    first: i64,
    last: Option<i64>,
    limit: Option<u32>,
) -> Result<Vec<Header>, StoreError> {
    let mut statement = tx.prepare_cached(
        "SELECT id, kind, records, length(body) FROM segments \
         WHERE kind IN (?1, ?2) AND id BETWEEN ?3 AND ?4 ORDER BY id LIMIT ?5",
    )?;
    let [one, other] = match kinds {
        [one, other] => [one.code(), other.code()],
        [one] => [one.code(), one.code()],
        _ => return Ok(Vec::new()),
    };
    let mut rows = statement.query(params![
        one,
        other,
        first,
        last.unwrap_or(i64::MAX),
        limit.map_or(-1, i64::from)
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Header {
            id: row.get(0)?,
            kind: kind_of(row.get(1)?)?,
            records: row.get(2)?,
            body_bytes: row.get(3)?,
        });
    }
    Ok(found)
}

fn remove(
    tx: &Transaction<'_>,
    usage: &mut PerKind<Usage>,
    row: &Header,
) -> Result<(), StoreError> {
    tx.prepare_cached("DELETE FROM segments WHERE id = ?1")?
        .execute([row.id])?;
    let usage = usage.get_mut(row.kind);
    usage.segments = usage.segments.saturating_sub(1);
    usage.records = usage.records.saturating_sub(row.records);
    usage.bytes = usage.bytes.saturating_sub(row.body_bytes + ROW_BYTES);
    Ok(())
}

fn insert(tx: &Transaction<'_>, segment: &Segment) -> Result<(), StoreError> {
    tx.prepare_cached("INSERT INTO segments VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
        .execute(params![
            segment.id,
            segment.kind.code(),
            segment.batch.0,
            segment.fixed,
            segment.records,
            segment.from.as_micros(),
            segment.to.as_micros(),
            segment.boot,
            segment.clock_offset_micros,
            segment.body,
        ])?;
    Ok(())
}

fn kind_of(code: i64) -> Result<Kind, StoreError> {
    Kind::from_code(code)
        .ok_or_else(|| StoreError::Damaged(format!("a segment has the unknown kind {code}")))
}

fn segment_of(row: &Row<'_>) -> Result<Segment, StoreError> {
    Ok(Segment {
        id: row.get(0)?,
        kind: kind_of(row.get(1)?)?,
        batch: BatchUuid(row.get(2)?),
        fixed: row.get(3)?,
        records: row.get(4)?,
        from: Timestamp::from_micros(row.get(5)?),
        to: Timestamp::from_micros(row.get(6)?),
        boot: row.get(7)?,
        clock_offset_micros: row.get(8)?,
        body: row.get(9)?,
    })
}
