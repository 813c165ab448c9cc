//! What users want to be deleted sooner than their supplier would: BLE events of their own hubs.

use hub_base::db::months::Month;
use hub_base::error::Result;
use hub_core::pace::Held;
use hub_devices::device_history;
use hub_fleet::consent::retention::{self, Keeper};
use hub_ingest::{self as ingest, Kind, history};
use hub_protocol::{HubUuid, Timestamp};

use super::{DAY_SECS, Run, TENANTS};

impl Run<'_> {
    /// Deletes what users want to be deleted. Returns whether none is left.
    pub(super) async fn consents(&mut self) -> Result<bool> {
        let mut after = 0;
        loop {
            let keepers =
                retention::keepers(&mut self.core.db.read().await?, after, TENANTS).await?;
            let Some(last) = keepers.last() else {
                return Ok(true);
            };
            after = last.consent_id;
            for keeper in keepers {
                let hubs = retention::hubs_of(&mut self.core.db.read().await?, &keeper).await?;
                for hub_uuid in hubs {
                    if !self.events_of_hub(&keeper, hub_uuid).await?
                        || !self.hours_of_hub(&keeper, hub_uuid).await?
                    {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Deletes the old events of one hub. Returns whether none is left.
    async fn events_of_hub(&mut self, keeper: &Keeper, hub_uuid: HubUuid) -> Result<bool> {
        let before = self
            .now
            .plus_secs(-keeper.retention_days.saturating_mul(DAY_SECS));
        if !self.files_with_hub(keeper, hub_uuid, before).await? {
            return Ok(false);
        }
        loop {
            if self.is_over() {
                return Ok(false);
            }
            let size = self.pace.size();
            let mut conn = self.core.db.read().await?;
            // Rows whose events are in files are deleted by themselves.
            let from = history::first_open(&mut conn, keeper.tenant_uuid).await?;
            let between = (from, before);
            let log = ingest::BLE_EVENTS;
            let batch =
                ingest::oldest_of_hub(&mut conn, log, keeper.tenant_uuid, hub_uuid, between, size)
                    .await?;
            drop(conn);
            let Some(first_id) = batch.first_id else {
                return Ok(true);
            };
            self.keep_log_short().await?;
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            if !ingest::delete_of_hub(&mut tx, log, keeper.tenant_uuid, hub_uuid, batch).await? {
                return Ok(false);
            }
            // Bytes are counted by the month, and a batch is of one month.
            let month = Month::of(Timestamp::from_micros(first_id));
            ingest::lower_stored(
                &mut tx,
                keeper.tenant_uuid,
                Kind::BleEvents,
                month,
                batch.bytes,
            )
            .await?;
            retention::add_deleted(&mut tx, keeper, batch.records).await?;
            held.commits();
            tx.commit_unaudited("what a user wants to be deleted")
                .await?;
            self.metrics
                .deleted_records
                .inc_by(batch.records.unsigned_abs());
            self.metrics
                .deleted_bytes
                .inc_by(batch.bytes.unsigned_abs());
            self.rest(&held, batch.row_count).await;
        }
    }

    /// Writes files again without the old events of one hub. Returns whether none is left.
    async fn files_with_hub(
        &mut self,
        keeper: &Keeper,
        hub_uuid: HubUuid,
        before: Timestamp,
    ) -> Result<bool> {
        let (core, tenant_uuid) = (self.core, keeper.tenant_uuid);
        let between = (Timestamp::from_micros(0), before);
        while let Some(file) = history::without_hub(core, tenant_uuid, hub_uuid, between).await? {
            let mut tx = core.db.begin().await?;
            if !file.apply(&mut tx, core.clock.now()).await? {
                return Ok(false);
            }
            file.lower_stored(&mut tx).await?;
            retention::add_deleted(&mut tx, keeper, file.removed_events()).await?;
            tx.commit_unaudited("what a user wants to be deleted")
                .await?;
            let (records, bytes) = (file.removed_events(), file.removed_bytes());
            self.metrics.deleted_records.inc_by(records.unsigned_abs());
            self.metrics.deleted_bytes.inc_by(bytes.unsigned_abs());
            // It is gone when the file that had it is.
            if !history::remove_files(core, || self.is_over()).await? || self.is_over() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes what is known by the hour of the devices that one hub hears best. Returns whether
    /// none is left.
    async fn hours_of_hub(&mut self, keeper: &Keeper, hub_uuid: HubUuid) -> Result<bool> {
        let before = self
            .now
            .plus_secs(-keeper.retention_days.saturating_mul(DAY_SECS));
        loop {
            if self.is_over() {
                return Ok(false);
            }
            let size = self.pace.size();
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            let deleted =
                device_history::forget_of_hub(&mut tx, keeper.tenant_uuid, hub_uuid, before, size)
                    .await?;
            held.commits();
            tx.commit_unaudited("what a user wants to be deleted")
                .await?;
            if deleted.cast_signed() < size {
                return Ok(true);
            }
            self.rest(&held, deleted.cast_signed()).await;
        }
    }
}
