//! What pipelines keep for a while: deliveries, dead letters, replays that have ended.

use hub_base::error::Result;
use hub_core::pace::Held;
use hub_people::tenants;
use hub_pipelines::retention::{self, DEAD_LETTER_DAYS, REPLAY_DAYS};
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::{DAY_SECS, Run};

/// The records that are deleted in one batch.
#[derive(Clone, Copy)]
enum Aged {
    Deliveries(TenantUuid),
    DeadLetters,
    Replays,
}

impl Run<'_> {
    /// Deletes what pipelines have kept for long enough. Returns whether none is left.
    pub(super) async fn pipelines(&mut self) -> Result<bool> {
        let mut after = Uuid::nil();
        while let Some(tenant_uuid) =
            retention::next_tenant(&mut self.core.db.read().await?, after).await?
        {
            let days = tenants::limits::delivery_retention_days(
                &mut self.core.db.read().await?,
                tenant_uuid,
            )
            .await?;
            if !self
                .aged(Aged::Deliveries(tenant_uuid), self.before(days))
                .await?
            {
                return Ok(false);
            }
            after = tenant_uuid.0;
        }
        Ok(self
            .aged(
                Aged::DeadLetters,
                self.now.plus_secs(-DEAD_LETTER_DAYS * DAY_SECS),
            )
            .await?
            && self
                .aged(Aged::Replays, self.now.plus_secs(-REPLAY_DAYS * DAY_SECS))
                .await?)
    }

    /// Deletes what is from before a time. Returns whether none is left.
    async fn aged(&mut self, aged: Aged, before: Timestamp) -> Result<bool> {
        loop {
            if self.is_over() {
                return Ok(false);
            }
            self.keep_log_short().await?;
            let size = self.pace.size();
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            let deleted = match aged {
                Aged::Deliveries(tenant) => {
                    retention::delete_deliveries(&mut tx, tenant, before, size).await?
                }
                Aged::DeadLetters => retention::delete_dead_letters(&mut tx, before, size).await?,
                Aged::Replays => retention::delete_replays(&mut tx, before, size).await?,
            };
            held.commits();
            tx.commit_unaudited("what pipelines keep for a while")
                .await?;
            self.metrics.deleted_records.inc_by(deleted);
            if deleted.cast_signed() < size {
                return Ok(true);
            }
            self.rest(&held, deleted.cast_signed()).await;
        }
    }
}
