//! Wakes requests that wait for a hub's desired state to change. Every change of a hub's desired
//! state or token goes through here: the transaction increments the revision, and its commit wakes
//! the hub. A waiting request holds no database connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_base::bus::{Bus, Subscription};
use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_protocol::{HubUuid, TenantUuid};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::store;

/// Requests that may wait concurrently.
const MAX_WAITING: usize = 20_000;
/// The same of one tenant, so that the hubs of others can wait too.
const MAX_WAITING_PER_TENANT: usize = 10_000;
/// A hub that may not wait for changes still gets them at this interval.
const RETRY_AFTER_SECS: u64 = 30;
/// How often the database is polled while the bus announces changes: a safety net.
const POLL_INTERVAL_WITH_BUS: Duration = Duration::from_secs(15);
/// The most steps in which all waiting hubs are woken by changed scan configurations, and the least
/// number of hubs in a step.
const WAKE_STEPS: usize = 60;
const MIN_WOKEN: usize = 20;
/// Queued announcements of other replicas.
const QUEUE_ANNOUNCEMENTS: usize = 1024;

const TOPIC: &str = "desired-state";

/// The version that a waiting request compares: the current token and the revision. A change of
/// either wakes it.
pub type HubVersion = (Option<Uuid>, i64);

/// The changes of desired states. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Changes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    waiting: Mutex<Waiting>,
    gauge: Gauge,
    bus: Bus,
}

/// The waiting requests: at most one of each hub.
#[derive(Debug, Default)]
struct Waiting {
    hubs: HashMap<HubUuid, WaitingHub>,
    tenants: HashMap<TenantUuid, usize>,
    /// Distinguishes a request from those of the same hub before it.
    last_number: u64,
}

#[derive(Debug)]
struct WaitingHub {
    tenant_uuid: TenantUuid,
    number: u64,
    /// The sender is dropped when a later request of the hub replaces this one.
    sender: watch::Sender<()>,
    /// The version as last read; None until the request has read it.
    version: Option<HubVersion>,
    /// The revision of the tenant's scan configuration, likewise.
    scan_revision: Option<i64>,
}

/// One waiting request. It is woken by every change since it was created.
#[derive(Debug)]
pub struct Watch<'a> {
    changes: &'a Changes,
    hub_uuid: HubUuid,
    number: u64,
    receiver: watch::Receiver<()>,
}

/// The reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The desired state or the token may have changed.
    Changed,
    /// The hub sent another request that waits, as after it lost its connection.
    Replaced,
}

impl Changes {
    /// `waiting` is the gauge of waiting requests.
    pub fn new(waiting: Gauge, bus: Bus) -> Self {
        Self(Arc::new(Inner {
            waiting: Mutex::default(),
            gauge: waiting,
            bus,
        }))
    }

    /// Increments the revision of the hub's desired state and returns it; none if there is no such
    /// hub.
    pub async fn bump(&self, tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<i64>> {
        self.notify_after(tx, hub_uuid);
        store::bump_desired_revision(tx, hub_uuid).await
    }

    /// Like [`Changes::bump`], by several revisions, of which it returns the last.
    pub async fn bump_by(&self, tx: &mut Tx, hub_uuid: HubUuid, count: i64) -> Result<Option<i64>> {
        self.notify_after(tx, hub_uuid);
        store::bump_desired_revision_by(tx, hub_uuid, count).await
    }

    /// Like [`Changes::bump`], for hubs that the transaction has locked.
    pub async fn bump_all(&self, tx: &mut Tx, hubs: &[HubUuid]) -> Result<()> {
        if hubs.is_empty() {
            return Ok(());
        }
        hubs.iter()
            .for_each(|hub_uuid| self.notify_after(tx, *hub_uuid));
        store::bump_all(tx, hubs).await
    }

    /// Like [`Changes::bump`], for all hubs of a tenant, which it locks in key order.
    pub async fn bump_tenant(&self, tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
        let hubs = store::bump_tenant(tx, tenant_uuid).await?;
        hubs.into_iter()
            .for_each(|hub_uuid| self.notify_after(tx, hub_uuid));
        Ok(())
    }

    /// Wakes the hub after the commit, on this and all other replicas.
    pub fn notify_after(&self, tx: &mut Tx, hub_uuid: HubUuid) {
        let changes = self.clone();
        tx.after_commit(async move { changes.notify(hub_uuid).await });
    }

    async fn notify(&self, hub_uuid: HubUuid) {
        self.notify_here(hub_uuid);
        self.0.bus.publish(TOPIC, &hub_uuid.to_string()).await;
    }

    fn notify_here(&self, hub_uuid: HubUuid) {
        if let Some(hub) = self.lock().hubs.get(&hub_uuid) {
            hub.sender.send_replace(());
        }
    }

    /// Records the version in the database. If it differs from the last recorded one, the request
    /// that waits for the hub is woken to read it.
    fn note(&self, hub_uuid: HubUuid, version: HubVersion) {
        let mut waiting = self.lock();
        let Some(hub) = waiting.hubs.get_mut(&hub_uuid) else {
            return;
        };
        if hub.version.is_some_and(|known| known != version) {
            hub.sender.send_replace(());
        }
        hub.version = Some(version);
    }

    /// A waiting request of the hub, in place of an earlier one. Fails with 429 if too many hubs of
    /// the tenant wait, and with 503 if too many hubs of all tenants do.
    pub fn watch(&self, hub_uuid: HubUuid, tenant_uuid: TenantUuid) -> Result<Watch<'_>> {
        let mut waiting = self.lock();
        waiting.remove(hub_uuid);
        if waiting.hubs.len() >= MAX_WAITING {
            return Err(Error::unavailable(
                "BUSY",
                "too many hubs are waiting; repeat the request without `wait`",
            ));
        }
        let of_tenant = waiting.tenants.entry(tenant_uuid).or_default();
        if *of_tenant >= MAX_WAITING_PER_TENANT {
            let message = format!(
                "{MAX_WAITING_PER_TENANT} hubs of this tenant are waiting, which is the limit; repeat the request without `wait`"
            );
            return Err(Error::too_many_requests(message, RETRY_AFTER_SECS));
        }
        *of_tenant += 1;
        waiting.last_number += 1;
        let number = waiting.last_number;
        let (sender, receiver) = watch::channel(());
        waiting.hubs.insert(
            hub_uuid,
            WaitingHub {
                tenant_uuid,
                number,
                sender,
                version: None,
                scan_revision: None,
            },
        );
        self.count(&waiting);
        Ok(Watch {
            changes: self,
            hub_uuid,
            number,
            receiver,
        })
    }

    fn count(&self, waiting: &Waiting) {
        self.0
            .gauge
            .set(i64::try_from(waiting.hubs.len()).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Hubs with a waiting request that has read the hub's version. The others need no wake-up.
    fn awaited(&self) -> Vec<HubUuid> {
        let waiting = self.lock();
        waiting
            .hubs
            .iter()
            .filter(|(_, hub)| hub.version.is_some())
            .map(|(hub_uuid, _)| *hub_uuid)
            .collect()
    }

    /// The tenants with waiting hubs.
    pub fn waiting_tenants(&self) -> Vec<TenantUuid> {
        self.lock().tenants.keys().copied().collect()
    }

    /// Wakes some of the hubs whose tenant's scan configuration has a later revision than they have
    /// read, and returns whether there may be more: the change concerns all hubs of its tenant,
    /// whose requests must not all come at the same moment.
    pub fn wake_outdated(&self, revisions: &HashMap<TenantUuid, i64>) -> bool {
        let mut waiting = self.lock();
        let mut room = (waiting.hubs.len() / WAKE_STEPS).max(MIN_WOKEN);
        for hub in waiting.hubs.values_mut() {
            let (Some(read), Some(latest)) = (hub.scan_revision, revisions.get(&hub.tenant_uuid))
            else {
                continue;
            };
            if read < *latest {
                if room == 0 {
                    return true;
                }
                room -= 1;
                hub.scan_revision = Some(*latest);
                hub.sender.send_replace(());
            }
        }
        false
    }

    /// Wakes hubs that other replicas have changed, on announcements of the bus and by polling.
    /// Returns the task and its subscription to the bus. The task ends when the service shuts down.
    pub fn follow_replicas(
        &self,
        core: Core,
    ) -> (impl Future<Output = ()> + Send + use<>, Subscription) {
        let (messages, announcements) = mpsc::channel(QUEUE_ANNOUNCEMENTS);
        (
            follow_replicas(self.clone(), core, announcements),
            Subscription {
                topic: TOPIC,
                messages,
            },
        )
    }
}

async fn follow_replicas(changes: Changes, core: Core, mut announcements: mpsc::Receiver<String>) {
    let mut polls = core.bus.polls(POLL_INTERVAL_WITH_BUS);
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            Some(text) = announcements.recv() => {
                if let Ok(hub_uuid) = text.parse() {
                    changes.notify_here(hub_uuid);
                }
            }
            () = polls.next() => {
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

impl Waiting {
    /// Removes the hub's request, which then no longer waits.
    fn remove(&mut self, hub_uuid: HubUuid) {
        let Some(hub) = self.hubs.remove(&hub_uuid) else {
            return;
        };
        if let Entry::Occupied(mut count) = self.tenants.entry(hub.tenant_uuid) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Watch<'_> {
    /// Waits for a change since the watch was created, or since this last returned.
    pub async fn changed(&mut self) -> Woken {
        match self.receiver.changed().await {
            Ok(()) => Woken::Changed,
            Err(_) => Woken::Replaced,
        }
    }

    /// Records what this request has read. Any later change wakes the request.
    pub fn has_read(&self, version: HubVersion, scan_revision: i64) {
        self.changes.note(self.hub_uuid, version);
        if let Some(hub) = self.changes.lock().hubs.get_mut(&self.hub_uuid) {
            hub.scan_revision = Some(scan_revision);
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut waiting = self.changes.lock();
        // A request that replaced this one stays.
        if waiting
            .hubs
            .get(&self.hub_uuid)
            .is_some_and(|hub| hub.number == self.number)
        {
            waiting.remove(self.hub_uuid);
            self.changes.count(&waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_pending(watch: &mut Watch<'_>) -> bool {
        futures_util::poll!(std::pin::pin!(watch.changed())).is_pending()
    }

    fn changes() -> Changes {
        Changes::new(Gauge::default(), Bus::Local)
    }

    #[tokio::test]
    async fn a_watch_is_woken_for_its_own_hub_only_and_cleans_up() {
        let (changes, tenant) = (changes(), TenantUuid::new());
        let (one, other) = (HubUuid::new(), HubUuid::new());
        let mut watch = changes.watch(one, tenant).expect("a watch");
        let mut silent = changes.watch(other, tenant).expect("a watch");
        changes.notify(one).await;
        assert_eq!(watch.changed().await, Woken::Changed);
        assert!(is_pending(&mut silent).await);
        assert_eq!(changes.0.gauge.get(), 2);
        drop((watch, silent));
        let waiting = changes.lock();
        assert!(
            waiting.hubs.is_empty() && waiting.tenants.is_empty() && changes.0.gauge.get() == 0
        );
    }

    #[tokio::test]
    async fn a_newer_version_wakes_the_request() {
        let changes = changes();
        let hub = HubUuid::new();
        let token_id = Some(Uuid::now_v7());
        let mut watch = changes.watch(hub, TenantUuid::new()).expect("a watch");
        assert!(
            changes.awaited().is_empty(),
            "the request has not read a version yet"
        );
        watch.has_read((token_id, 5), 1);
        assert_eq!(changes.awaited(), [hub]);
        changes.note(hub, (token_id, 5));
        assert!(is_pending(&mut watch).await, "nothing changed");
        changes.note(hub, (token_id, 6));
        assert!(!is_pending(&mut watch).await, "there is a newer revision");
        assert!(is_pending(&mut watch).await);
        changes.note(hub, (None, 6));
        assert!(!is_pending(&mut watch).await, "the token was revoked");
    }

    #[tokio::test]
    async fn a_newer_scan_configuration_wakes_the_hubs_of_its_tenant_by_and_by() {
        let (changes, tenant, other) = (changes(), TenantUuid::new(), TenantUuid::new());
        let watch = |tenant| {
            let watch = changes.watch(HubUuid::new(), tenant).expect("a watch");
            watch.has_read((None, 1), 4);
            watch
        };
        let mut hubs: Vec<_> = (0..MIN_WOKEN + 1).map(|_| watch(tenant)).collect();
        let mut bystander = watch(other);
        let revisions = HashMap::from([(tenant, 5), (other, 4)]);
        assert!(
            changes.wake_outdated(&revisions),
            "there are more than a step wakes"
        );
        assert!(!changes.wake_outdated(&revisions));
        for hub in &mut hubs {
            assert_eq!(hub.changed().await, Woken::Changed);
        }
        assert!(is_pending(&mut bystander).await);
        assert!(
            !changes.wake_outdated(&HashMap::from([(tenant, 3)])),
            "an older reading wakes nobody"
        );
        assert!(is_pending(hubs.first_mut().expect("a hub")).await);
    }

    #[tokio::test]
    async fn a_later_request_of_a_hub_replaces_the_earlier_one() {
        let (changes, hub, tenant) = (changes(), HubUuid::new(), TenantUuid::new());
        let mut first = changes.watch(hub, tenant).expect("a watch");
        let mut second = changes.watch(hub, tenant).expect("a watch");
        assert_eq!(first.changed().await, Woken::Replaced);
        assert_eq!(changes.0.gauge.get(), 1);
        drop(first);
        assert!(is_pending(&mut second).await);
        changes.notify(hub).await;
        assert_eq!(second.changed().await, Woken::Changed);
    }

    #[test]
    fn one_tenant_cannot_use_up_the_places_of_all() {
        let (changes, tenant) = (changes(), TenantUuid::new());
        let hubs: Vec<HubUuid> = (0..MAX_WAITING_PER_TENANT)
            .map(|_| HubUuid::new())
            .collect();
        let held: Vec<_> = hubs
            .iter()
            .map(|hub| changes.watch(*hub, tenant).expect("a watch"))
            .collect();
        assert_eq!(
            changes
                .watch(HubUuid::new(), tenant)
                .expect_err("a refusal")
                .status(),
            429
        );
        changes
            .watch(HubUuid::new(), TenantUuid::new())
            .expect("another tenant's hub may wait");
        let again = hubs.first().map(|hub| {
            changes
                .watch(*hub, tenant)
                .expect("a reconnected hub may wait")
        });
        drop((held, again));
        changes.watch(HubUuid::new(), tenant).expect("a watch");
    }
}
