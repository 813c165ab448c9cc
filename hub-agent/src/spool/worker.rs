//! The spool's thread: gathers records into segments, commits them in groups, and forms batches
//! from them.
//!
//! How a batch keeps its content without a write for every upload: only the first segment of a kind
//! may be sent while its row is not marked as `fixed`. So after a start that segment is treated as
//! sent, and never joined with others. While the disk cannot be written, new segments are held in
//! memory, within a bound, and uploaded from there.
//!
//! After an outage new records go ahead of the backlog: their batches and those of the backlog take
//! turns, each in their own order. Those that go ahead are marked as `fixed` before they are sent.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hub_agent::durable;
use hub_protocol::{BatchUuid, Timestamp};
use tokio::sync::mpsc;

use super::boots;
use super::drops::DropLog;
use super::import::{self, Import};
use super::quarantine::{
    quarantine_damaged, quarantine_refused, remove_database, set_aside, set_aside_files,
};
use super::segment::{CORRECT_ABOVE_MICROS, Frames, Gathering, Kind, PerKind, Segment};
use super::store::{Change, Counters, Range, Store, StoreError, Usage};
use super::types::{Batch, Command, SpoolConfig, SpoolStats, Verdict};
use crate::ble::Heard;
use crate::clock::{self, Clock, machine_offset_micros};

const FILE: &str = "spool.db";

/// The most bytes of segments in memory while the disk cannot be written.
const MAX_HELD_BYTES: usize = 4 << 20;

/// The most bytes of one upload: a quarter of the service's limit.
const MAX_UPLOAD_BYTES: usize = 1 << 20;

/// The size that the spool may have on the fullest disk: records pass through it on their way to
/// the service.
const MIN_BYTES: u64 = 4 << 20;

/// Space for SQLite's journal beside the file: without it not even deleting succeeds.
const JOURNAL_BYTES: u64 = 8 << 20;

/// The reserve that is held back of the disk for the state directory: for the journal, and for the
/// files that are replaced as a whole.
const RESERVE_BYTES: u64 = 4 << 20;
/// The reserve is at most this part of the disk.
const RESERVE_PART: u64 = 8;

/// Records that wait for longer are a backlog, which newer ones overtake.
const BACKLOG_AFTER_MICROS: i64 = 60_000_000;

const ALL_IDS: std::ops::Range<i64> = 0..i64::MAX;

const REOPEN_EVERY: Duration = Duration::from_secs(30);
const DISK_CHECK_EVERY: Duration = Duration::from_secs(10);

pub struct Worker {
    config: SpoolConfig,
    clock: Arc<Clock>,
    stats: Arc<Mutex<SpoolStats>>,
    frames: Frames,
    store: Option<Store>,
    opened_at: Instant,
    gathering: PerKind<Gathering>,
    /// Segments that are not on disk yet.
    held: VecDeque<Segment>,
    /// Segments that are delivered, and not deleted on disk yet.
    done: Vec<Range>,
    /// Records that are not counted on disk yet.
    count: Counters,
    /// Batches that are being uploaded.
    offered: PerKind<Option<(BatchUuid, Range)>>,
    /// The segment of each kind that an earlier start may have sent.
    maybe_sent: PerKind<Option<i64>>,
    /// The id before which the segments of a kind are a backlog.
    backlog_until: PerKind<Option<i64>>,
    /// The last batch of a kind was one that went ahead of the backlog.
    went_ahead: PerKind<bool>,
    /// The file of another version whose records are moved into the spool.
    import: Option<Import>,
    /// The size of such files that this version cannot read.
    unread_bytes: u64,
    next_id: i64,
    committed_at: Instant,
    limit_bytes: u64,
    limit_at: Option<Instant>,
    /// The size that the spool keeps to since the disk was found full.
    full_limit_bytes: Option<u64>,
    reserve_bytes: u64,
    trouble: Option<String>,
    drop_log: DropLog,
}

impl Worker {
    pub fn new(
        config: SpoolConfig,
        clock: Arc<Clock>,
        stats: Arc<Mutex<SpoolStats>>,
    ) -> io::Result<Self> {
        let mut worker = Self {
            limit_bytes: config.max_bytes,
            config,
            clock,
            stats,
            frames: Frames::new()?,
            store: None,
            opened_at: Instant::now(),
            gathering: PerKind::default(),
            held: VecDeque::new(),
            done: Vec::new(),
            count: Counters::default(),
            offered: PerKind::default(),
            maybe_sent: PerKind::default(),
            backlog_until: PerKind::default(),
            went_ahead: PerKind::default(),
            import: None,
            unread_bytes: 0,
            next_id: 1,
            committed_at: Instant::now(),
            limit_at: None,
            full_limit_bytes: None,
            reserve_bytes: 0,
            trouble: None,
            drop_log: DropLog::default(),
        };
        worker.open();
        worker.publish();
        Ok(worker)
    }

    pub fn run(&mut self, mut inbox: mpsc::Receiver<Command>, alive: impl Fn()) {
        while let Some(command) = inbox.blocking_recv() {
            match command {
                Command::Heard(heard) => self.gather(heard),
                Command::Record {
                    kind,
                    json,
                    at,
                    clock_offset_micros,
                } => {
                    self.push(kind, &json, at, at, clock_offset_micros);
                }
                Command::Keep {
                    kind,
                    json,
                    at,
                    clock_offset_micros,
                    reply,
                } => {
                    let kept = self.keep(kind, &json, at, clock_offset_micros);
                    self.publish();
                    let _ = reply.send(kept);
                }
                Command::Lost(events) => {
                    self.count.lost_events += events;
                }
                Command::Tick => {
                    if self.store.is_none() && self.opened_at.elapsed() >= REOPEN_EVERY {
                        self.open();
                    }
                    // A tick early: the next one would be late.
                    if self.committed_at.elapsed() >= self.config.commit_every * 4 / 5 {
                        self.commit();
                    }
                    self.import_some();
                    self.drop_log.log();
                    self.publish();
                }
                Command::Next {
                    kind,
                    max_records,
                    reply,
                } => {
                    let batch = self.next(kind, max_records);
                    self.publish();
                    // A caller that has stopped waiting gets the same batch with its next request.
                    let _ = reply.send(batch);
                }
                Command::Resolve {
                    kind,
                    batch,
                    verdict,
                } => self.resolve(kind, batch, verdict),
                Command::Forget => self.forget(),
                Command::Close(reply) => {
                    self.commit();
                    self.publish();
                    // The file is closed before the reply: another handle may open it at once.
                    self.store = None;
                    let _ = reply.send(());
                    return;
                }
            }
            alive();
        }
        self.commit();
    }

    fn path(&self) -> PathBuf {
        self.config.dir.join(FILE)
    }

    fn open(&mut self) {
        self.opened_at = Instant::now();
        let mut opened = Store::open(&self.path());
        if matches!(opened, Err(StoreError::Full(_))) && durable::release_reserve(&self.config.dir)
        {
            opened = Store::open(&self.path());
        }
        match &opened {
            Err(StoreError::Damaged(reason)) => {
                quarantine_damaged(&self.path(), reason);
                opened = Store::open(&self.path());
            }
            Err(error @ StoreError::UnknownFormat(_)) => {
                set_aside(&self.path(), &error.to_string());
                opened = Store::open(&self.path());
            }
            _ => {}
        }
        match opened {
            Ok(mut store) => {
                self.next_id = self.next_id.max(store.last_id() + 1);
                for kind in Kind::ALL {
                    let head = store
                        .head(kind, ALL_IDS, 0, 0, Segment::can_join)
                        .ok()
                        .and_then(|head| head.first().map(|first| first.id));
                    *self.maybe_sent.get_mut(kind) = head;
                }
                (self.import, self.unread_bytes) = import::find(&self.config.dir, &store);
                self.store = Some(store);
                self.set_available();
            }
            Err(error) => self.set_failed(error),
        }
    }

    /// Moves some records of another version into the spool, as long as it has room for them.
    fn import_some(&mut self) {
        let limit_bytes = self.limit_bytes();
        let (Some(mut import), Some(store)) = (self.import.take(), &mut self.store) else {
            return;
        };
        let moved = match import.next(&mut self.next_id) {
            Ok(Some((segments, last))) => {
                let bytes: usize = segments.iter().map(|segment| segment.body.len()).sum();
                if store.used_bytes() + bytes as u64 > limit_bytes / 8 * 7 {
                    self.import = Some(import);
                    return;
                }
                let change = Change {
                    insert: &segments,
                    imported: Some((import.name(), last)),
                    limit_bytes,
                    ..Change::default()
                };
                store.apply(&change).map(|()| Some(last))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match moved {
            Ok(Some(last)) => {
                import.moved(last);
                self.import = Some(import);
            }
            Ok(None) => {
                import.finish(store);
                (self.import, self.unread_bytes) = import::find(&self.config.dir, store);
            }
            // The next start tries it again.
            Err(error) => tracing::warn!(%error, "records of another version cannot be moved"),
        }
    }

    fn set_available(&mut self) {
        if self.trouble.take().is_some() {
            tracing::info!("the spool can be written again");
        }
    }

    fn set_failed(&mut self, error: StoreError) {
        if let StoreError::Damaged(reason) = &error {
            self.store = None;
            quarantine_damaged(&self.path(), reason);
            // Batches of the old file are lost; what is held in memory goes into the new file.
            self.opened_at = Instant::now();
            match Store::open(&self.path()) {
                Ok(store) => {
                    self.store = Some(store);
                    self.done.clear();
                    self.maybe_sent = PerKind::default();
                    return;
                }
                Err(error) => return self.unavailable(&error.to_string()),
            }
        }
        self.unavailable(&error.to_string());
    }

    fn unavailable(&mut self, reason: &str) {
        if self.trouble.as_deref() != Some(reason) {
            tracing::error!(
                file = %self.path().display(), reason,
                "the spool cannot be written; records are held in memory and the oldest are dropped. Free some disk space"
            );
            self.trouble = Some(reason.to_owned());
        }
    }

    fn gather(&mut self, heard: Vec<Heard>) {
        let offset = machine_offset_micros();
        for item in heard {
            match item {
                Heard::Events(events) => {
                    for (at, event) in events.iter() {
                        self.make_room(Kind::BleEvents, at, at, offset);
                        self.gathering
                            .get_mut(Kind::BleEvents)
                            .push_json(event, at, at, offset);
                    }
                }
                Heard::Window(window) => {
                    for device in &window.devices {
                        self.push(Kind::BleWindows, device, window.start, window.end, offset);
                    }
                }
            }
        }
    }

    /// Closes the gathered records if the next one does not belong to them.
    fn make_room(&mut self, kind: Kind, from: Timestamp, to: Timestamp, clock_offset_micros: i64) {
        let gathering = self.gathering.get(kind);
        if gathering.must_close_before(clock_offset_micros)
            || (kind == Kind::BleWindows && gathering.is_of_another_window(from, to))
        {
            self.close_segment(kind);
            self.bound_held();
        }
    }

    fn push(
        &mut self,
        kind: Kind,
        record: &impl serde::Serialize,
        from: Timestamp,
        to: Timestamp,
        clock_offset_micros: i64,
    ) {
        self.make_room(kind, from, to, clock_offset_micros);
        if let Err(error) = self
            .gathering
            .get_mut(kind)
            .push(record, from, to, clock_offset_micros)
        {
            tracing::error!(%error, "a record cannot be encoded as JSON and is dropped");
            self.count.drop_of(kind, 1);
        }
    }

    /// Writes one record by itself. If that fails, the record is removed from memory, and the
    /// caller retries.
    fn keep(
        &mut self,
        kind: Kind,
        json: &impl serde::Serialize,
        at: Timestamp,
        clock_offset_micros: i64,
    ) -> bool {
        self.close_segment(kind);
        self.push(kind, json, at, at, clock_offset_micros);
        let id = self.next_id;
        self.close_segment(kind);
        let kept = self.commit();
        if !kept {
            self.held
                .retain(|segment| (segment.kind, segment.id) != (kind, id));
        }
        kept
    }

    fn close_segment(&mut self, kind: Kind) {
        let gathering = self.gathering.get_mut(kind);
        if gathering.is_empty() {
            return;
        }
        match gathering.close(self.next_id, kind, self.clock.boot(), &mut self.frames) {
            Ok(segment) => {
                self.next_id += 1;
                self.held.push_back(segment);
            }
            Err(error) => {
                tracing::error!(%error, "records cannot be compressed and are dropped");
                *self.gathering.get_mut(kind) = Gathering::default();
            }
        }
    }

    /// Keeps the held segments within their bound.
    fn bound_held(&mut self) {
        let mut bytes: usize = self.held.iter().map(|segment| segment.body.len()).sum();
        while bytes > MAX_HELD_BYTES {
            let offered = self.offered;
            let free = |segment: &Segment| {
                !offered
                    .get(segment.kind)
                    .is_some_and(|(_, range)| range.contains(segment))
            };
            let victim = self
                .held
                .iter()
                .position(|segment| segment.kind.is_ble() && free(segment))
                .or_else(|| {
                    self.held
                        .iter()
                        .position(|segment| segment.kind != Kind::JobEvents && free(segment))
                });
            let Some(lost) = victim.and_then(|at| self.held.remove(at)) else {
                return;
            };
            bytes -= lost.body.len();
            self.count.drop_of(lost.kind, lost.records);
            self.drop_log.note(lost.records, self.limit_bytes);
        }
    }

    /// Writes everything in memory to disk. False if that failed; it is then still in memory,
    /// within a bound.
    fn commit(&mut self) -> bool {
        for kind in Kind::ALL {
            self.close_segment(kind);
        }
        self.committed_at = Instant::now();
        let limit_bytes = self.limit_bytes();
        let offset = self.clock.offset();
        let Some(store) = &mut self.store else {
            self.bound_held();
            return false;
        };
        if self.held.is_empty() && self.done.is_empty() && self.count.is_zero() {
            return self.trouble.is_none();
        }
        let known_dropped = store.counters().dropped() + self.count.dropped();
        let mut change = Change {
            insert: self.held.make_contiguous(),
            delete: &self.done,
            count: self.count,
            limit_bytes,
            offered: PerKind::from_fn(|kind| self.offered.get(kind).map(|(_, range)| range)),
            imported: None,
        };
        let write = |store: &mut Store, change: &Change<'_>| {
            boots::remember(store, &self.clock, offset).and_then(|()| store.apply(change))
        };
        let mut written = write(store, &change);
        if matches!(written, Err(StoreError::Full(_))) {
            // From now on the oldest records make room for the new ones in the file, and the
            // journal is written from its beginning. The reserve is for what the journal holds.
            let floor = self.reserve_bytes / 4;
            change.limit_bytes = limit_bytes.min((store.used_bytes() / 8 * 7).max(floor));
            self.full_limit_bytes = Some(change.limit_bytes);
            let _ = store.empty_journal();
            written = write(store, &change);
            if matches!(written, Err(StoreError::Full(_)))
                && durable::release_reserve(&self.config.dir)
            {
                let _ = store.empty_journal();
                written = write(store, &change);
            }
        }
        match written {
            Ok(()) => {
                let dropped = store.counters().dropped().saturating_sub(known_dropped);
                self.drop_log.note(dropped, self.limit_bytes);
                self.held.clear();
                self.done.clear();
                self.count = Counters::default();
                self.set_available();
                true
            }
            Err(error) => {
                self.set_failed(error);
                self.bound_held();
                false
            }
        }
    }

    /// The configured bound, or the file's size if the disk has no space for it to grow: dropping
    /// more would not free any.
    fn limit_bytes(&mut self) -> u64 {
        if self
            .limit_at
            .is_some_and(|at| at.elapsed() < DISK_CHECK_EVERY)
        {
            return self
                .limit_bytes
                .min(self.full_limit_bytes.unwrap_or(u64::MAX));
        }
        self.limit_at = Some(Instant::now());
        let file_bytes = self
            .store
            .as_ref()
            .and_then(|store| store.file_bytes().ok())
            .unwrap_or(0);
        let (free_bytes, disk_bytes) =
            rustix::fs::statvfs(&self.config.dir).map_or((u64::MAX, 0), |disk| {
                (
                    disk.f_bavail.saturating_mul(disk.f_frsize),
                    disk.f_blocks.saturating_mul(disk.f_frsize),
                )
            });
        self.reserve_bytes = RESERVE_BYTES.min(disk_bytes / RESERVE_PART);
        if self.reserve_bytes > 0 && free_bytes >= 2 * self.reserve_bytes {
            // A hub without the reserve works all the same until the disk is full.
            let _ = durable::hold_reserve(&self.config.dir, self.reserve_bytes);
            self.full_limit_bytes = None;
        }
        let room = free_bytes.saturating_sub(self.config.disk_headroom_bytes.max(JOURNAL_BYTES));
        self.limit_bytes = self
            .config
            .max_bytes
            .min(file_bytes.saturating_add(room).max(MIN_BYTES));
        self.limit_bytes
            .min(self.full_limit_bytes.unwrap_or(u64::MAX))
    }

    fn next(&mut self, kind: Kind, max_records: u64) -> Option<Batch> {
        if let Some((_, range)) = *self.offered.get(kind) {
            let segments = self.read_range(range);
            if !segments.is_empty() {
                return self.offer(segments);
            }
            *self.offered.get_mut(kind) = None;
        }
        let max_records = max_records.clamp(1, kind.max_records());
        let segments = if self.commit() {
            self.form(kind, max_records)
        } else {
            self.offer_unwritten(kind)
        };
        self.offer(segments)
    }

    /// Remembers the batch as being uploaded, and builds its body.
    fn offer(&mut self, segments: Vec<Segment>) -> Option<Batch> {
        let (first, last) = (segments.first()?, segments.last()?);
        let (kind, batch) = (first.kind, first.batch);
        *self.offered.get_mut(kind) = Some((
            batch,
            Range {
                kind,
                first: first.id,
                last: last.id,
            },
        ));
        match self.frames.upload(&segments) {
            Ok(body) => Some(Batch {
                kind,
                batch,
                records: segments.iter().map(|segment| segment.records).sum(),
                body: body.into(),
            }),
            Err(error) => {
                tracing::error!(%error, "an upload cannot be compressed");
                None
            }
        }
    }

    fn read_range(&mut self, range: Range) -> Vec<Segment> {
        let held: Vec<_> = self
            .held
            .iter()
            .filter(|segment| range.contains(segment))
            .cloned()
            .collect();
        if !held.is_empty() {
            return held;
        }
        let read = self
            .store
            .as_ref()
            .map_or(Ok(Vec::new()), |store| store.read(range));
        read.unwrap_or_else(|error| {
            self.set_failed(error);
            Vec::new()
        })
    }

    /// The first batch of a kind: one that was formed before, unchanged, else as many segments as
    /// can be joined.
    fn form(&mut self, kind: Kind, max_records: u64) -> Vec<Segment> {
        let formed = self
            .ids_in_turn(kind)
            .and_then(|ids| self.try_form(kind, ids, max_records));
        match formed {
            Ok(segments) => segments,
            Err(error) => {
                self.set_failed(error);
                Vec::new()
            }
        }
    }

    /// The ids of the segments of which the next batch is formed: all of them, or where there is a
    /// backlog, its ids and the later ones in turn.
    fn ids_in_turn(&mut self, kind: Kind) -> Result<std::ops::Range<i64>, StoreError> {
        let Some(store) = &self.store else {
            return Ok(ALL_IDS);
        };
        // The events of a job are worth nothing out of order.
        if kind == Kind::JobEvents {
            return Ok(ALL_IDS);
        }
        let backlog_until = self.backlog_until.get_mut(kind);
        let newest = backlog_until.unwrap_or(ALL_IDS.start);
        let is_old = store
            .first_begin(kind, newest)?
            .map(|(boot, begin_micros)| {
                boot != self.clock.boot()
                    || clock::since_boot_micros() - begin_micros > BACKLOG_AFTER_MICROS
            });
        if is_old == Some(true) {
            *backlog_until = Some(self.next_id);
        }
        let Some(until) = *backlog_until else {
            return Ok(ALL_IDS);
        };
        if store.head_id(kind)?.is_none_or(|first| first >= until) {
            *backlog_until = None;
            return Ok(ALL_IDS);
        }
        // Only what is newer than the backlog is young.
        let goes_ahead = is_old == Some(false) && !*self.went_ahead.get(kind);
        *self.went_ahead.get_mut(kind) = goes_ahead;
        Ok(match goes_ahead {
            true => until..ALL_IDS.end,
            false => ALL_IDS.start..until,
        })
    }

    fn try_form(
        &mut self,
        kind: Kind,
        ids: std::ops::Range<i64>,
        max_records: u64,
    ) -> Result<Vec<Segment>, StoreError> {
        let Some(store) = &mut self.store else {
            return Ok(Vec::new());
        };
        let goes_ahead = ids.start > ALL_IDS.start;
        let mut segments = store.head(
            kind,
            ids.clone(),
            max_records,
            MAX_UPLOAD_BYTES,
            Segment::can_join,
        )?;
        let Some(first) = segments.first() else {
            store.shrink_if_empty()?;
            return Ok(Vec::new());
        };
        let (batch, first_id, fixed) = (first.batch, first.id, first.fixed);
        if fixed {
            // Its bounds may have been wider when it was formed.
            return store.head(kind, ids, u64::MAX, 4 * MAX_UPLOAD_BYTES, |first, next| {
                first.batch == next.batch
            });
        }
        // A segment with an implausible time was never sent: nothing is sent before the time is
        // known.
        if *self.maybe_sent.get(kind) == Some(first_id) && clock::is_plausible(first.from) {
            segments.truncate(1);
            return Ok(segments);
        }
        let unsent = segments.iter().take_while(|segment| !segment.fixed).count();
        segments.truncate(unsent);
        // Not an id that a segment had before: on a disk that went back in time, the service may
        // have stored the segment under it, and would take what is joined with it for stored, too.
        let batch = match segments.len() > 1 {
            true => BatchUuid::new(),
            false => batch,
        };
        let is_fixed = segments.len() > 1 || goes_ahead;
        let mut changed = is_fixed;
        for segment in &mut segments {
            segment.batch = batch;
            segment.fixed = is_fixed;
            let by_micros = boots::offset_micros(store, &self.clock, segment.boot)?
                - segment.clock_offset_micros;
            if by_micros.abs() > CORRECT_ABOVE_MICROS {
                match self.frames.shift(segment, by_micros) {
                    Ok(()) => changed = true,
                    Err(error) => {
                        tracing::warn!(%error, "the times of a segment cannot be corrected; it is sent as it is")
                    }
                }
            }
        }
        if changed {
            store.rewrite(&segments)?;
        }
        Ok(segments)
    }

    /// While the disk cannot be written: the first segment that is on disk, until it is delivered
    /// and cannot be deleted; then those in memory. A second one from the disk could be joined with
    /// others after a restart, although the service has it.
    fn offer_unwritten(&mut self, kind: Kind) -> Vec<Segment> {
        let is_first_delivered = self.done.iter().any(|range| range.kind == kind);
        let stored = if is_first_delivered {
            Vec::new()
        } else {
            self.try_form(kind, ALL_IDS, 1).unwrap_or_default()
        };
        if stored.is_empty() {
            self.offer_held(kind)
        } else {
            stored
        }
    }

    /// While the disk cannot be written: the oldest segment in memory. The segment is never joined
    /// with others later.
    fn offer_held(&mut self, kind: Kind) -> Vec<Segment> {
        let Some(segment) = self.held.iter_mut().find(|segment| segment.kind == kind) else {
            return Vec::new();
        };
        segment.fixed = true;
        vec![segment.clone()]
    }

    fn resolve(&mut self, kind: Kind, batch: BatchUuid, verdict: Verdict) {
        let Some((_, range)) = (*self.offered.get(kind)).filter(|(offered, _)| *offered == batch)
        else {
            return;
        };
        match verdict {
            Verdict::Stored { rejected } => self.count.rejected_records += rejected,
            Verdict::Refused => self.refuse(range, batch),
            Verdict::TooLarge => {
                let segments = self.read_range(range);
                let next_id = &mut self.next_id;
                let halves = self.frames.halve(&segments, &mut || {
                    let id = *next_id;
                    *next_id += 1;
                    id
                });
                match halves {
                    // The halves go to the end of the spool: the case is too rare to need an order
                    // of its own.
                    Ok(Some(halves)) => self.held.extend(halves),
                    Ok(None) => self.refuse(range, batch),
                    Err(error) => {
                        tracing::error!(%error, "an upload that is too large cannot be split");
                        self.refuse(range, batch);
                    }
                }
            }
        }
        *self.offered.get_mut(kind) = None;
        self.held.retain(|segment| !range.contains(segment));
        self.done.push(range);
    }

    /// Counts an upload that the service refused permanently, and quarantines it.
    fn refuse(&mut self, range: Range, batch: BatchUuid) {
        let segments = self.read_range(range);
        self.count.refused_records += segments.iter().map(|segment| segment.records).sum::<u64>();
        let dir = self.config.dir.join("refused");
        let kept = self
            .frames
            .upload(&segments)
            .and_then(|body| quarantine_refused(&dir, batch, &body));
        if let Err(error) = kept {
            tracing::warn!(%error, "a refused upload cannot be quarantined");
        }
    }

    fn forget(&mut self) {
        self.commit();
        for segment in self.held.drain(..) {
            self.count.discarded_records += segment.records;
        }
        if let Some(store) = &self.store {
            for kind in Kind::ALL {
                self.count.discarded_records += store.usage().get(kind).records;
            }
        }
        self.import = None;
        self.unread_bytes = 0;
        for file in set_aside_files(&self.config.dir) {
            remove_database(&file);
        }
        self.backlog_until = PerKind::default();
        self.done = Kind::ALL
            .map(|kind| Range {
                kind,
                first: 0,
                last: i64::MAX,
            })
            .to_vec();
        self.offered = PerKind::default();
        self.commit();
        self.publish();
    }

    fn publish(&mut self) {
        let mut stats = SpoolStats {
            trouble: self.trouble.clone(),
            counters: self.count,
            ..SpoolStats::default()
        };
        if let Some(store) = &self.store {
            stats.usage = *store.usage();
            stats.counters = store.counters().plus(self.count);
            stats.oldest = store.oldest().unwrap_or_default();
            stats.set_aside_bytes = self.unread_bytes + store.unknown_bytes();
        }
        for segment in &self.held {
            let usage: &mut Usage = stats.usage.get_mut(segment.kind);
            usage.segments += 1;
            usage.records += segment.records;
            usage.bytes += segment.body.len() as u64;
        }
        stats.oldest = stats
            .oldest
            .or_else(|| self.held.front().map(|segment| segment.from));
        for kind in Kind::ALL {
            stats.usage.get_mut(kind).records += self.gathering.get(kind).records();
        }
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}
