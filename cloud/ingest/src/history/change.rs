//! Files that are written again with other contents: events that were reprocessed, or without the
//! events of a hub. The new file is written first; a transaction puts it in the place of the old.

use std::collections::{BTreeMap, HashMap};

use hub_base::db::aged::RECORD_BYTES;
use hub_base::db::months::Month;
use hub_base::db::{Conn, Direction, Tx, sql};
use hub_base::error::Result;
use hub_core::Core;
use hub_history::{File, StoredEvent};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::manifest::{self, FileRow, HubEvents};
use super::unreadable;
use crate::Kind;
use crate::batches::{Rewritten, count_bytes};
use crate::quota::lower_stored;

/// A new file is removed after this time if it did not become a file of the history.
const DRAFT_SECS: i64 = 3600;

/// What the events of a file count as stored.
pub(super) fn bytes_of(events: &[StoredEvent]) -> i64 {
    let bytes = |event: &StoredEvent| i64::try_from(event.text_bytes()).unwrap_or(i64::MAX);
    events.iter().map(|event| bytes(event) + RECORD_BYTES).sum()
}

/// A file that was written, and what the database counts of it.
pub(super) struct Written {
    pub file: File,
    pub bytes: i64,
    pub hubs: HubEvents,
}

/// Writes a file. Its removal is noted until [`manifest::insert`] makes it part of the history.
pub(super) async fn write(
    core: &Core,
    tenant_uuid: TenantUuid,
    ids: (i64, i64),
    events: Vec<StoredEvent>,
) -> Result<Written> {
    let mut hubs: HashMap<HubUuid, i64> = HashMap::new();
    for event in &events {
        *hubs.entry(event.hub_uuid).or_default() += 1;
    }
    let name = Uuid::new_v4();
    let due_at = core.clock.now().plus_secs(DRAFT_SECS);
    let mut tx = core.db.begin().await?;
    manifest::remove(&mut tx, tenant_uuid, ids.0, name, due_at).await?;
    tx.commit_unaudited("a file that is about to be written")
        .await?;
    let bytes = bytes_of(&events);
    let file = core
        .event_log
        .history
        .write(tenant_uuid, name, ids, events)
        .await;
    Ok(Written {
        file: file.map_err(|error| unreadable(&core.event_log, error))?,
        bytes,
        hubs: hubs.into_iter().collect(),
    })
}

/// A file of the history that goes, and the one in its place.
pub struct Replacement {
    old: FileRow,
    /// None if no event is left.
    new: Option<Written>,
}

impl Replacement {
    /// Puts the new file in the place of the old. Returns false if the old one is not part of the
    /// history any more: then the transaction must not be committed.
    pub async fn apply(&self, tx: &mut Tx, now: Timestamp) -> Result<bool> {
        if !manifest::delete(tx, &self.old.file(), now).await? {
            return Ok(false);
        }
        match &self.new {
            Some(new) => manifest::insert(tx, &new.file, new.bytes, &new.hubs).await?,
            None => forget_repeats(tx, &self.old).await?,
        }
        Ok(true)
    }

    /// How many events the new file lacks.
    pub fn removed_events(&self) -> i64 {
        self.old.events - self.new.as_ref().map_or(0, |new| new.file.events)
    }

    /// How much less is stored.
    pub fn removed_bytes(&self) -> i64 {
        self.old.bytes - self.new.as_ref().map_or(0, |new| new.bytes)
    }

    /// The month in which its events are counted.
    pub fn month(&self) -> Month {
        Month::of(Timestamp::from_micros(self.old.first_id))
    }

    pub fn last_id(&self) -> i64 {
        self.old.last_id
    }

    /// Counts what the new file lacks as stored no more.
    pub async fn lower_stored(&self, tx: &mut Tx) -> Result<()> {
        let (tenant_uuid, bytes) = (self.old.tenant_uuid, self.removed_bytes());
        lower_stored(tx, tenant_uuid, Kind::BleEvents, self.month(), bytes).await
    }
}

/// Deletes which batches repeat those that were in the file.
async fn forget_repeats(tx: &mut Tx, file: &FileRow) -> Result<()> {
    sql(
        "DELETE FROM ble_batch_repeats WHERE tenant_uuid = $1 AND observed_in >= $2 \
         AND observed_in <= $3",
    )
    .bind((file.tenant_uuid, file.first_id, file.last_id))
    .run(tx)
    .await
}

/// A tenant's oldest file, if all of its events were received before a time: it can go as a whole.
pub async fn oldest_before(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    before: Timestamp,
) -> Result<Option<Replacement>> {
    let ids = (0, before.as_micros().saturating_sub(1));
    let files = manifest::files(conn, tenant_uuid, ids, None, Direction::Ascending, 1).await?;
    let is_old = |file: &FileRow| file.last_id < before.as_micros();
    let oldest = files.into_iter().find(is_old);
    Ok(oldest.map(|old| Replacement { old, new: None }))
}

/// The oldest file with events of a hub that were received from `from` on and before `before`, and
/// one in its place without them; None if there is none.
pub async fn without_hub(
    core: &Core,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    (from, before): (Timestamp, Timestamp),
) -> Result<Option<Replacement>> {
    let goes = from.as_micros()..before.as_micros();
    let mut ids = (goes.start, goes.end.saturating_sub(1));
    loop {
        let mut conn = core.db.read().await?;
        let hub = Some(hub_uuid);
        let files = manifest::files(&mut conn, tenant_uuid, ids, hub, Direction::Ascending, 1);
        let Some(old) = files.await?.pop() else {
            return Ok(None);
        };
        drop(conn);
        let mut events = read_all(core, &old).await?;
        let count = events.len();
        events.retain(|event| event.hub_uuid != hub_uuid || !goes.contains(&event.ble_event_id));
        if events.len() < count {
            let new = match events.is_empty() {
                true => None,
                false => {
                    let ids = (old.first_id, old.last_id);
                    Some(write(core, tenant_uuid, ids, events).await?)
                }
            };
            return Ok(Some(Replacement { old, new }));
        }
        // Those of the hub in this file were received earlier or later.
        ids.0 = old.last_id.saturating_add(1);
    }
}

async fn read_all(core: &Core, row: &FileRow) -> Result<Vec<StoredEvent>> {
    let events = core.event_log.history.all(&row.file()).await;
    events.map_err(|error| unreadable(&core.event_log, error))
}

/// Files with the changes of events.
pub struct Replacements {
    files: Vec<Replacement>,
    changes: Vec<Rewritten>,
    /// An event is in no file.
    is_incomplete: bool,
}

impl Replacements {
    pub fn replaces_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Puts all new files in place, and counts what changes. Returns false if that is not possible
    /// any more: then the transaction must not be committed.
    pub async fn apply(
        &self,
        tx: &mut Tx,
        tenant_uuid: TenantUuid,
        now: Timestamp,
    ) -> Result<bool> {
        for file in &self.files {
            if !file.apply(tx, now).await? {
                return Ok(false);
            }
        }
        count_bytes(tx, tenant_uuid, &self.changes).await?;
        Ok(!self.is_incomplete)
    }
}

/// Writes the files with events that have changed; the events must all be in files.
pub async fn rewrite(
    core: &Core,
    tenant_uuid: TenantUuid,
    changes: Vec<Rewritten>,
    now: Timestamp,
) -> Result<Replacements> {
    let by_id: BTreeMap<i64, &Rewritten> = changes
        .iter()
        .map(|change| (change.ble_event_id, change))
        .collect();
    let mut files = Vec::new();
    let mut changed = 0;
    let mut next = by_id.first_key_value().map(|(id, _)| *id);
    let last_id = by_id.last_key_value().map_or(0, |(id, _)| *id);
    while let Some(first_id) = next {
        let mut conn = core.db.read().await?;
        let ids = (first_id, last_id);
        let found = manifest::files(&mut conn, tenant_uuid, ids, None, Direction::Ascending, 1);
        let Some(old) = found.await?.pop() else {
            break;
        };
        drop(conn);
        let mut events = read_all(core, &old).await?;
        for event in &mut events {
            if let Some(change) = by_id.get(&event.ble_event_id) {
                event.processing_status = change.processing_status;
                event.device_instance_id = change.device_instance_id;
                event.reading = change.reading.as_deref().map(str::to_owned);
                event.reprocessed_at = Some(now);
                changed += 1;
            }
        }
        next = by_id
            .range(old.last_id.saturating_add(1)..)
            .next()
            .map(|(id, _)| *id);
        let ids = (old.first_id, old.last_id);
        let new = Some(write(core, tenant_uuid, ids, events).await?);
        files.push(Replacement { old, new });
    }
    Ok(Replacements {
        is_incomplete: changed != by_id.len(),
        files,
        changes,
    })
}
