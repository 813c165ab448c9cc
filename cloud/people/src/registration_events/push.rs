//! Pushes the registration events of a tenant to its system, a few at a time. A system that does
//! not respond delays its own tenant only.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::outbox::{self, Claimed, Settled};
use hub_core::tasks::Done;
use hub_protocol::{TenantUuid, Timestamp};
use serde_json::Value;

use crate::supplier_oauth::{self, Message, Refused};
use crate::tenants;

/// Tries of an event, after which it is given up.
const TRIES: i64 = 10;
/// Calls to one tenant's system at a time, by one replica.
const AT_ONCE: i64 = 4;
/// The lease of a delivery, longer than a call can take. An event is due again after it if its
/// process was killed.
const LEASE_SECS: i64 = 120;
/// The time after which another tenant is served.
const RUN_TIME: Duration = Duration::from_secs(40);
/// The rows that one transaction gives up or deletes.
const CHUNK: i64 = 500;
/// The delay after the first try; it is tripled by each of the next.
const FIRST_DELAY_SECS: i64 = 5;
const LONGEST_DELAY_SECS: i64 = 6 * 3600;
/// The longest pause after a failure, for all events of a tenant's system.
const LONGEST_PAUSE_SECS: i64 = 60;
/// The delay after which another runner checks a tenant that is being served.
const BUSY_SECS: i64 = 5;

/// The tenants whose events this replica sends now. Cheap to clone.
#[derive(Clone)]
pub struct Pushes {
    core: Core,
    running: Arc<Mutex<HashSet<TenantUuid>>>,
}

/// A tenant's place among those that are served.
struct Place<'a> {
    pushes: &'a Pushes,
    tenant_uuid: TenantUuid,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pushes
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.tenant_uuid);
    }
}

impl Pushes {
    pub fn new(core: Core) -> Self {
        Self {
            core,
            running: Arc::default(),
        }
    }

    /// A place; None while the tenant is served already. Events that are written meanwhile make its
    /// task due again.
    fn enter(&self, tenant_uuid: TenantUuid) -> Option<Place<'_>> {
        let is_new = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(tenant_uuid);
        is_new.then_some(Place {
            pushes: self,
            tenant_uuid,
        })
    }

    /// Pushes what is due of one tenant.
    pub async fn perform(&self, payload: &Value) -> Result<Done> {
        let core = &self.core;
        let tenant_uuid = payload["tenantUuid"]
            .as_str()
            .and_then(|uuid| uuid.parse().ok());
        let tenant_uuid: TenantUuid =
            tenant_uuid.ok_or_else(|| Error::internal("the task names no tenant"))?;
        let Some(_place) = self.enter(tenant_uuid) else {
            return Ok(Done::RunAt(core.clock.now().plus_secs(BUSY_SECS)));
        };
        let ends_at = Instant::now() + RUN_TIME;
        while Instant::now() < ends_at && !core.shutdown.is_cancelled() {
            let mut conn = core.db.read().await?;
            let is_deleted = tenants::name(&mut conn, tenant_uuid).await?.is_none();
            let target = supplier_oauth::registration_target(core, &mut conn, tenant_uuid).await?;
            drop(conn);
            let now = core.clock.now();
            let (url, secret) = target.map_or((None, None), |target| (target.url, target.secret));
            let has_more = match (is_deleted, url, secret) {
                (true, ..) => {
                    let mut tx = core.db.begin().await?;
                    let deleted = outbox::delete_pending(&mut tx, tenant_uuid, CHUNK).await?;
                    tx.commit_unaudited("events of a deleted tenant, which nobody receives")
                        .await?;
                    deleted >= CHUNK.unsigned_abs()
                }
                (_, None, _) => {
                    self.give_up(tenant_uuid, "no registration_url is configured", now)
                        .await?
                }
                (_, _, None) => {
                    self.give_up(
                        tenant_uuid,
                        "no registration_shared_secret is configured",
                        now,
                    )
                    .await?
                }
                (_, Some(url), Some(secret)) => {
                    match self.push_some(tenant_uuid, &url, &secret).await? {
                        Pushed::All => true,
                        Pushed::Nothing => false,
                        Pushed::Failed(pause_secs) => {
                            return self.after_failure(tenant_uuid, pause_secs).await;
                        }
                    }
                }
            };
            if !has_more {
                break;
            }
        }
        let due = outbox::next_due(&mut core.db.read().await?, tenant_uuid).await?;
        Ok(due.map_or(Done::Finished, Done::RunAt))
    }

    /// The system has failed: what else is due would fail too. It is left alone for a while.
    async fn after_failure(&self, tenant_uuid: TenantUuid, pause_secs: i64) -> Result<Done> {
        let due = outbox::next_due(&mut self.core.db.read().await?, tenant_uuid).await?;
        let rested = self
            .core
            .clock
            .now()
            .plus_secs(pause_secs.clamp(1, LONGEST_PAUSE_SECS));
        Ok(due.map_or(Done::Finished, |due| Done::RunAt(due.max(rested))))
    }

    /// Gives up events that the tenant's configuration does not allow to send. The platform can
    /// requeue them. Returns whether there may be more.
    async fn give_up(
        &self,
        tenant_uuid: TenantUuid,
        error: &'static str,
        now: Timestamp,
    ) -> Result<bool> {
        let mut tx = self.core.db.begin().await?;
        let failed = outbox::fail_due(&mut tx, tenant_uuid, error, now, CHUNK).await?;
        tx.commit_unaudited("the row holds its own outcome").await?;
        Ok(failed >= CHUNK.unsigned_abs())
    }

    /// Tries a few events at once.
    async fn push_some(
        &self,
        tenant_uuid: TenantUuid,
        url: &str,
        secret: &secrecy::SecretString,
    ) -> Result<Pushed> {
        let core = &self.core;
        let now = core.clock.now();
        let mut tx = core.db.begin().await?;
        let claimed = outbox::claim_due(
            &mut tx,
            tenant_uuid,
            now,
            now.plus_secs(LEASE_SECS),
            AT_ONCE,
        )
        .await?;
        if claimed.is_empty() {
            return Ok(Pushed::Nothing);
        }
        tx.commit_unaudited("a claim of background work").await?;
        let posts = claimed.iter().map(|event| async move {
            let message = Message {
                event_type: event.event_type.name(),
                id: event.event_uuid,
                body: event.payload.clone(),
            };
            supplier_oauth::post(core, url, Some(secret), &message).await
        });
        let results = join_all(posts).await;
        let now = core.clock.now();
        let mut tx = core.db.begin().await?;
        let mut pause_secs = None;
        for (event, result) in claimed.iter().zip(results) {
            if let Err(refused) = &result {
                let delay = delay_secs(event.attempts, refused.retry_after_secs);
                pause_secs = pause_secs.max(Some(delay));
            }
            settle(&mut tx, event, result, now).await?;
        }
        tx.commit_unaudited("the row holds its own outcome").await?;
        Ok(pause_secs.map_or(Pushed::All, Pushed::Failed))
    }
}

/// The outcome of a few events.
enum Pushed {
    Nothing,
    All,
    /// Some were not accepted; the system asks for a pause of this many seconds.
    Failed(i64),
}

async fn settle(
    tx: &mut Tx,
    event: &Claimed,
    result: Result<(), Refused>,
    now: Timestamp,
) -> Result<()> {
    let settled = match result {
        Ok(()) => Settled::Delivered,
        Err(refused) if event.attempts >= TRIES => Settled::Failed(refused.message),
        Err(refused) => {
            let delay = delay_secs(event.attempts, refused.retry_after_secs);
            Settled::Retry(now.plus_secs(delay), refused.message)
        }
    };
    outbox::settle(tx, event, &settled, now).await
}

/// Exponential backoff with jitter, from 5 seconds to 6 hours, and no sooner than the receiver asks
/// for.
fn delay_secs(attempts: i64, retry_after_secs: Option<i64>) -> i64 {
    let tripled = u32::try_from(attempts.saturating_sub(1).clamp(0, 10)).unwrap_or_default();
    let base = FIRST_DELAY_SECS
        .saturating_mul(3_i64.pow(tripled))
        .min(LONGEST_DELAY_SECS);
    let spread = base / 5;
    let jitter =
        i64::from(u32::from_le_bytes(hub_base::sealing::random())) % (2 * spread + 1) - spread;
    let delay = (base + jitter).max(retry_after_secs.unwrap_or_default());
    delay.clamp(FIRST_DELAY_SECS, LONGEST_DELAY_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_from_5_seconds_to_6_hours() {
        for (attempts, base) in [
            (1, 5),
            (2, 15),
            (3, 45),
            (5, 405),
            (9, 21_600),
            (10, 21_600),
            (i64::MAX, 21_600),
        ] {
            for _ in 0..50 {
                let delay = delay_secs(attempts, None);
                assert!((5..=21_600).contains(&delay), "{delay}");
                assert!(
                    (base * 4 / 5..=base * 6 / 5).contains(&delay),
                    "{attempts}: {delay}"
                );
            }
        }
        let delays: HashSet<i64> = (0..50).map(|_| delay_secs(6, None)).collect();
        assert!(delays.len() > 1, "they are spread");
    }

    #[test]
    fn the_receiver_may_ask_for_more_time_but_not_without_end() {
        assert_eq!(delay_secs(1, Some(600)), 600);
        assert!(delay_secs(5, Some(1)) > 300);
        assert_eq!(delay_secs(1, Some(i64::MAX)), LONGEST_DELAY_SECS);
    }
}
