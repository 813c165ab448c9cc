//! Wakes the requests that wait for a hub's desired state to change: what this process changes at once, what other replicas change when the bus tells
//! of it or one look at the database for all waiting hubs finds it. Holds nothing about hubs nobody waits for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_protocol::HubUuid;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::store;
use crate::app::App;
use crate::bus::{Bus, News};
use crate::error::{Error, Result};

/// Requests that wait at a time, in all.
const MAX_WAITING: i64 = 20_000;
/// A hub that lost its connection and came back may still be waiting here; one that has more is at fault.
const MAX_WAITING_PER_HUB: usize = 8;
/// How often the database is asked: it is the only messenger where replicas share no bus, a safety net elsewhere.
const LOOK_INTERVAL_ALONE: Duration = Duration::from_secs(1);
const LOOK_INTERVAL_WITH_BUS: Duration = Duration::from_secs(15);

/// What a waiting request goes by: the token in force and the revision. A change of either wakes it.
pub type Stand = (Option<Uuid>, i64);

#[derive(Debug)]
pub struct Changes {
    hubs: Mutex<HashMap<HubUuid, Waiting>>,
    waiting: Gauge,
    bus: Bus,
}

/// What is known of a hub that somebody waits for.
#[derive(Debug)]
struct Waiting {
    sender: watch::Sender<()>,
    /// As it was last read, by whomever; nothing until the first request has read it.
    stand: Option<Stand>,
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
        if let Some(waiting) = self.lock().get(&hub_uuid) {
            waiting.sender.send_replace(());
        }
    }

    /// How a hub stands by the database. If that is news, all who wait for the hub are to read it, whoever found it.
    fn note(&self, hub_uuid: HubUuid, stand: Stand) {
        let mut hubs = self.lock();
        let Some(waiting) = hubs.get_mut(&hub_uuid) else { return };
        if waiting.stand.is_some_and(|known| known != stand) {
            waiting.sender.send_replace(());
        }
        waiting.stand = Some(stand);
    }

    pub fn watch(&self, hub_uuid: HubUuid) -> Result<Watch<'_>> {
        let mut hubs = self.lock();
        if self.waiting.get() >= MAX_WAITING {
            return Err(Error::unavailable("BUSY", "too many hubs are waiting here; ask again without `wait`"));
        }
        let waiting = hubs.entry(hub_uuid).or_insert_with(|| Waiting { sender: watch::channel(()).0, stand: None });
        if waiting.sender.receiver_count() >= MAX_WAITING_PER_HUB {
            let message = "this hub has too many requests waiting; wait with one at a time";
            return Err(Error::too_many_requests(message, 5));
        }
        let receiver = waiting.sender.subscribe();
        self.waiting.inc();
        Ok(Watch { changes: self, hub_uuid, receiver })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HubUuid, Waiting>> {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hubs that somebody waits for and that were read once: who has not read yet needs no waking.
    fn awaited(&self) -> Vec<HubUuid> {
        let hubs = self.lock();
        hubs.iter().filter(|(_, waiting)| waiting.stand.is_some()).map(|(hub_uuid, _)| *hub_uuid).collect()
    }
}

/// Looks, from time to time, whether other replicas changed what somebody waits for here. Ends when the service does.
pub async fn look_for_changes(app: App) {
    let interval = if app.hub_changes.bus.is_shared() { LOOK_INTERVAL_WITH_BUS } else { LOOK_INTERVAL_ALONE };
    let mut looks = tokio::time::interval(interval);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            _ = looks.tick() => {}
        }
        if let Err(error) = look(&app).await {
            // Nothing is lost by it: the next look finds what has changed.
            tracing::debug!(%error, "waiting hubs hear of changes later");
        }
    }
}

async fn look(app: &App) -> Result<()> {
    let awaited = app.hub_changes.awaited();
    if awaited.is_empty() {
        return Ok(());
    }
    let mut conn = app.db.read().await?;
    let stands = store::stands(&mut conn, awaited).await?;
    drop(conn);
    for (hub_uuid, token_id, revision) in stands {
        app.hub_changes.note(hub_uuid, (token_id, revision));
    }
    Ok(())
}

impl Watch<'_> {
    /// Waits for a change since the watch was made, or since the last time this returned.
    pub async fn changed(&mut self) {
        // The sender lives as long as this watch.
        let _ = self.receiver.changed().await;
    }

    /// How the hub stands, as this request has read it. From then on it is woken when that changes.
    pub fn has_read(&self, stand: Stand) {
        self.changes.note(self.hub_uuid, stand);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut hubs = self.changes.lock();
        self.changes.waiting.dec();
        // The receiver of this watch is still counted.
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
    async fn a_watch_hears_of_its_own_hub_and_leaves_nothing_behind() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let (one, other) = (HubUuid::new(), HubUuid::new());
        let mut watch = changes.watch(one).expect("a watch");
        let mut silent = changes.watch(other).expect("a watch");
        changes.notify(one).await;
        watch.changed().await;
        assert!(is_pending(&mut silent).await);
        drop((watch, silent));
        assert!(changes.lock().is_empty() && changes.waiting.get() == 0);
    }

    #[tokio::test]
    async fn whoever_finds_news_wakes_those_who_read_before() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let hub = HubUuid::new();
        let token_id = Some(Uuid::now_v7());
        let mut first = changes.watch(hub).expect("a watch");
        assert!(changes.awaited().is_empty(), "nobody has read yet");
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
    fn one_hub_cannot_take_all_places() {
        let changes = Changes::new(Gauge::default(), Bus::Local);
        let hub = HubUuid::new();
        let watches: Vec<_> = (0..MAX_WAITING_PER_HUB).map(|_| changes.watch(hub).expect("a watch")).collect();
        assert_eq!(changes.watch(hub).expect_err("a refusal").status(), 429);
        drop(watches);
        changes.watch(hub).expect("a watch");
    }
}
