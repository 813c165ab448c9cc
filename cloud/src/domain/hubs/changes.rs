//! Wakes the requests that wait for a hub's desired state to change, here and, over the bus, on the other replicas; where there is no bus, a waiting
//! request looks for itself now and then. Holds nothing about hubs nobody waits for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hub_protocol::HubUuid;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;

use crate::bus::{Bus, News};
use crate::error::{Error, Result};

/// Requests that wait at a time, in all.
const MAX_WAITING: i64 = 20_000;
/// A hub that lost its connection and came back may still be waiting here; one that has more is at fault.
const MAX_WAITING_PER_HUB: usize = 8;

#[derive(Debug)]
pub struct Changes {
    hubs: Mutex<HashMap<HubUuid, watch::Sender<()>>>,
    waiting: Gauge,
    bus: Bus,
}

/// One waiting request. It hears of every change from when it was made.
#[derive(Debug)]
pub struct Watch<'a> {
    changes: &'a Changes,
    hub_uuid: HubUuid,
    receiver: watch::Receiver<()>,
}

impl Changes {
    /// `waiting` shows how many requests wait.
    pub fn new(waiting: Gauge, bus: Bus) -> Self {
        Self { hubs: Mutex::default(), waiting, bus }
    }

    /// Call this once a change is committed.
    pub async fn notify(&self, hub_uuid: HubUuid) {
        self.notify_here(hub_uuid);
        self.bus.tell(News::DesiredState(hub_uuid)).await;
    }

    /// A change that another replica told of.
    pub fn notify_here(&self, hub_uuid: HubUuid) {
        if let Some(sender) = self.lock().get(&hub_uuid) {
            sender.send_replace(());
        }
    }

    pub fn watch(&self, hub_uuid: HubUuid) -> Result<Watch<'_>> {
        let mut hubs = self.lock();
        if self.waiting.get() >= MAX_WAITING {
            return Err(Error::unavailable("BUSY", "too many hubs are waiting here; ask again without `wait`"));
        }
        let sender = hubs.entry(hub_uuid).or_insert_with(|| watch::channel(()).0);
        if sender.receiver_count() >= MAX_WAITING_PER_HUB {
            let message = "this hub has too many requests waiting; wait with one at a time";
            return Err(Error::too_many_requests(message, 5));
        }
        let receiver = sender.subscribe();
        self.waiting.inc();
        Ok(Watch { changes: self, hub_uuid, receiver })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HubUuid, watch::Sender<()>>> {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch<'_> {
    /// Waits for a change since the watch was made, or since the last time this returned.
    pub async fn changed(&mut self) {
        // The sender lives as long as this watch.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut hubs = self.changes.lock();
        self.changes.waiting.dec();
        // The receiver of this watch is still counted.
        if hubs.get(&self.hub_uuid).is_some_and(|sender| sender.receiver_count() <= 1) {
            hubs.remove(&self.hub_uuid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_watch_hears_of_its_own_hub_and_leaves_nothing_behind() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let (one, other) = (HubUuid::new(), HubUuid::new());
        let mut watch = changes.watch(one).expect("a watch");
        let mut silent = changes.watch(other).expect("a watch");
        changes.notify(one).await;
        watch.changed().await;
        assert!(futures_util::poll!(std::pin::pin!(silent.changed())).is_pending());
        drop((watch, silent));
        assert!(changes.lock().is_empty() && changes.waiting.get() == 0);
    }

    #[test]
    fn one_hub_cannot_take_all_places() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let hub = HubUuid::new();
        let watches: Vec<_> = (0..MAX_WAITING_PER_HUB).map(|_| changes.watch(hub).expect("a watch")).collect();
        assert_eq!(changes.watch(hub).expect_err("a refusal").status(), 429);
        drop(watches);
        changes.watch(hub).expect("a watch");
    }
}
