//! Wakes requests that wait for a hub's desired state to change. Every change of a hub's desired
//! state or token goes through here: the transaction increments the revision, and its commit wakes
//! the hub. A waiting request holds no database connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_protocol::{HubUuid, TenantUuid};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::store;
use crate::bus::{Bus, Subscription};
use crate::core::Core;
use crate::db::Tx;
use crate::error::{Error, Result};

/// Requests that may wait concurrently.
const MAX_WAITING: i64 = 20_000;
/// A reconnecting hub may still have an earlier request waiting. A hub with more of them is faulty.
const MAX_WAITING_PER_HUB: usize = 8;
/// How often the database is polled. Without a shared bus, polling is the only way to see changes
/// of other replicas; with one it is a safety net.
const POLL_INTERVAL_WITHOUT_BUS: Duration = Duration::from_secs(1);
const POLL_INTERVAL_WITH_BUS: Duration = Duration::from_secs(15);
/// Queued announcements of other replicas.
const QUEUE_ANNOUNCEMENTS: usize = 1024;

const TOPIC: &str = "desired-state";

/// The version that a waiting request compares: the current token and the revision. A change of
/// either wakes it.
pub type HubVersion = (Option<Uuid>, i64);

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Changes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hubs: Mutex<HashMap<HubUuid, Waiting>>,
    waiting: Gauge,
    bus: Bus,
}

/// The state of a hub that has a waiting request.
#[derive(Debug)]
struct Waiting {
    sender: watch::Sender<()>,
    /// As last read by any request; none until one has read it.
    version: Option<HubVersion>,
}

/// One waiting request. It is woken by every change since it was created.
#[derive(Debug)]
pub struct Watch<'a> {
    changes: &'a Changes,
    hub_uuid: HubUuid,
    receiver: watch::Receiver<()>,
}

impl Changes {
    /// `waiting` is the gauge of waiting requests.
    pub fn new(waiting: Gauge, bus: Bus) -> Self {
        Self(Arc::new(Inner { hubs: Mutex::default(), waiting, bus }))
    }

    /// Increments the revision of the hub's desired state and returns it; none if there is no such
    /// hub.
    pub async fn bump(&self, tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<i64>> {
        self.notify_after(tx, hub_uuid);
        store::bump_desired_revision(tx, hub_uuid).await
    }

    /// Like [`Changes::bump`], for hubs that the transaction has locked.
    pub async fn bump_all(&self, tx: &mut Tx, hubs: &[HubUuid]) -> Result<()> {
        if hubs.is_empty() {
            return Ok(());
        }
        hubs.iter().for_each(|hub_uuid| self.notify_after(tx, *hub_uuid));
        store::bump_all(tx, hubs).await
    }

    /// Like [`Changes::bump`], for all hubs of a tenant, which it locks in key order.
    pub async fn bump_tenant(&self, tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
        let hubs = store::bump_tenant(tx, tenant_uuid).await?;
        hubs.into_iter().for_each(|hub_uuid| self.notify_after(tx, hub_uuid));
        Ok(())
    }

    /// Wakes the hub after the commit, on this and all other replicas.
    pub fn notify_after(&self, tx: &mut Tx, hub_uuid: HubUuid) {
        let changes = self.clone();
        tx.after_commit(async move { changes.notify(hub_uuid).await });
    }

    async fn notify(&self, hub_uuid: HubUuid) {
        self.notify_here(hub_uuid);
        if self.0.bus.is_shared() {
            self.0.bus.publish(TOPIC, &hub_uuid.to_string()).await;
        }
    }

    fn notify_here(&self, hub_uuid: HubUuid) {
        if let Some(waiting) = self.lock().get(&hub_uuid) {
            waiting.sender.send_replace(());
        }
    }

    /// Records the version in the database. If it differs from the last recorded one, all requests
    /// that wait for the hub are woken to read it.
    fn note(&self, hub_uuid: HubUuid, version: HubVersion) {
        let mut hubs = self.lock();
        let Some(waiting) = hubs.get_mut(&hub_uuid) else { return };
        if waiting.version.is_some_and(|known| known != version) {
            waiting.sender.send_replace(());
        }
        waiting.version = Some(version);
    }

    pub fn watch(&self, hub_uuid: HubUuid) -> Result<Watch<'_>> {
        let mut hubs = self.lock();
        if self.0.waiting.get() >= MAX_WAITING {
            return Err(Error::unavailable("BUSY", "too many hubs are waiting; repeat the request without `wait`"));
        }
        let waiting = hubs.entry(hub_uuid).or_insert_with(|| Waiting { sender: watch::channel(()).0, version: None });
        if waiting.sender.receiver_count() >= MAX_WAITING_PER_HUB {
            let message = "this hub has too many waiting requests; send one at a time";
            return Err(Error::too_many_requests(message, 5));
        }
        let receiver = waiting.sender.subscribe();
        self.0.waiting.inc();
        Ok(Watch { changes: self, hub_uuid, receiver })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HubUuid, Waiting>> {
        self.0.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hubs with a waiting request that has read the hub's version. The others need no wake-up.
    fn awaited(&self) -> Vec<HubUuid> {
        let hubs = self.lock();
        hubs.iter().filter(|(_, waiting)| waiting.version.is_some()).map(|(hub_uuid, _)| *hub_uuid).collect()
    }

    /// Wakes hubs that other replicas have changed, on announcements of the bus and by polling.
    /// Returns the task and its subscription to the bus. The task ends when the service shuts down.
    pub fn follow_replicas(&self, core: Core) -> (impl Future<Output = ()> + Send + use<>, Subscription) {
        let (messages, announcements) = mpsc::channel(QUEUE_ANNOUNCEMENTS);
        (follow_replicas(self.clone(), core, announcements), Subscription { topic: TOPIC, messages })
    }
}

async fn follow_replicas(changes: Changes, core: Core, mut announcements: mpsc::Receiver<String>) {
    let interval = if core.bus.is_shared() { POLL_INTERVAL_WITH_BUS } else { POLL_INTERVAL_WITHOUT_BUS };
    let mut polls = tokio::time::interval(interval);
    polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            Some(text) = announcements.recv() => {
                if let Ok(hub_uuid) = text.parse() {
                    changes.notify_here(hub_uuid);
                }
            }
            _ = polls.tick() => {
                if let Err(error) = poll(&changes, &core).await {
                    // The next poll finds the changes.
                    tracing::debug!(%error, "cannot poll for changes of waiting hubs; the next poll retries");
                }
            }
        }
    }
}

async fn poll(changes: &Changes, core: &Core) -> Result<()> {
    let awaited = changes.awaited();
    if awaited.is_empty() {
        return Ok(());
    }
    let mut conn = core.db.read().await?;
    let versions = store::versions(&mut conn, awaited).await?;
    drop(conn);
    for (hub_uuid, token_id, revision) in versions {
        changes.note(hub_uuid, (token_id, revision));
    }
    Ok(())
}

impl Watch<'_> {
    /// Waits for a change since the watch was created, or since this last returned.
    pub async fn changed(&mut self) {
        // The sender lives as long as this watch.
        let _ = self.receiver.changed().await;
    }

    /// Records the version that this request has read. Any later change wakes the request.
    pub fn has_read(&self, version: HubVersion) {
        self.changes.note(self.hub_uuid, version);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut hubs = self.changes.lock();
        self.changes.0.waiting.dec();
        // The receiver of this watch is still included in the count.
        if hubs.get(&self.hub_uuid).is_some_and(|waiting| waiting.sender.receiver_count() <= 1) {
            hubs.remove(&self.hub_uuid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_pending(watch: &mut Watch<'_>) -> bool {
        futures_util::poll!(std::pin::pin!(watch.changed())).is_pending()
    }

    #[tokio::test]
    async fn a_watch_is_woken_for_its_own_hub_only_and_cleans_up() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let (one, other) = (HubUuid::new(), HubUuid::new());
        let mut watch = changes.watch(one).expect("a watch");
        let mut silent = changes.watch(other).expect("a watch");
        changes.notify(one).await;
        watch.changed().await;
        assert!(is_pending(&mut silent).await);
        drop((watch, silent));
        assert!(changes.lock().is_empty() && changes.0.waiting.get() == 0);
    }

    #[tokio::test]
    async fn a_newer_version_wakes_earlier_readers() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let hub = HubUuid::new();
        let token_id = Some(Uuid::now_v7());
        let mut first = changes.watch(hub).expect("a watch");
        assert!(changes.awaited().is_empty(), "no request has read a version yet");
        first.has_read((token_id, 5));
        assert_eq!(changes.awaited(), [hub]);
        changes.note(hub, (token_id, 5));
        assert!(is_pending(&mut first).await, "nothing changed");
        let second = changes.watch(hub).expect("a watch");
        second.has_read((token_id, 6));
        assert!(!is_pending(&mut first).await, "a later reader found a newer revision");
        assert!(is_pending(&mut first).await);
        changes.note(hub, (None, 6));
        assert!(!is_pending(&mut first).await, "the token was revoked");
    }

    #[test]
    fn waiting_requests_of_one_hub_are_limited() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let hub = HubUuid::new();
        let watches: Vec<_> = (0..MAX_WAITING_PER_HUB).map(|_| changes.watch(hub).expect("a watch")).collect();
        assert_eq!(changes.watch(hub).expect_err("a refusal").status(), 429);
        drop(watches);
        changes.watch(hub).expect("a watch");
    }
}
