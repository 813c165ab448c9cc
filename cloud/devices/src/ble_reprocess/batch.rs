//! Reads batches of stored events, bounded in rows and in bytes, and reads them again on a thread
//! of their own.

use hub_base::error::Result;
use hub_core::Core;
use hub_protocol::TenantUuid;

use crate::ble::{self, ReprocessedEvent, Selection, StoredEvent};
use crate::recognition::Recognition;

const FIRST_ROWS: usize = 250;
const LEAST_ROWS: usize = 50;
const MOST_ROWS: usize = 2000;
/// The intended size of a batch. A single event has 16 KiB at most.
const WANTED_BYTES: usize = 2 * 1024 * 1024;

/// Reads a tenant's events from an id on.
pub struct Batches<'a> {
    pub core: &'a Core,
    pub recognition: &'a Recognition,
    pub tenant_uuid: TenantUuid,
    pub selection: Selection,
    rows: usize,
}

impl<'a> Batches<'a> {
    pub const fn new(
        core: &'a Core,
        recognition: &'a Recognition,
        tenant_uuid: TenantUuid,
        selection: Selection,
    ) -> Self {
        Self {
            core,
            recognition,
            tenant_uuid,
            selection,
            rows: FIRST_ROWS,
        }
    }

    /// The next events with ids from `from` up to, and without, `to`; none if there are no more.
    pub async fn stored(&mut self, (from, to): (i64, i64)) -> Result<Vec<StoredEvent>> {
        let limit = i64::try_from(self.rows).unwrap_or(i64::MAX);
        let stored = ble::stored_events(
            self.core,
            self.tenant_uuid,
            self.selection,
            (from, to),
            limit,
        )
        .await?;
        if !stored.is_empty() {
            let bytes: usize = stored.iter().map(ble::bytes_of).sum();
            self.rows = (WANTED_BYTES * stored.len() / bytes.max(1)).clamp(LEAST_ROWS, MOST_ROWS);
        }
        Ok(stored)
    }

    /// Reprocesses events, and reads the next stored ones meanwhile.
    pub async fn reprocess(
        &mut self,
        stored: Vec<StoredEvent>,
        to: i64,
    ) -> Result<(Vec<ReprocessedEvent>, Vec<StoredEvent>)> {
        let next = stored
            .last()
            .map_or(to, |last| last.ble_event_id.saturating_add(1));
        let catalog = self.recognition.catalog(self.tenant_uuid).await?;
        let reprocessed = ble::reprocess(self.core, self.tenant_uuid, catalog, stored);
        tokio::try_join!(reprocessed, self.stored((next, to)))
    }
}
