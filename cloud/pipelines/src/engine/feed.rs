//! The logs that lanes read: the latest commits from memory, older events in pages from the
//! database that the lanes of a tenant share.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use hub_base::bus::Subscription;
use hub_base::db::LogRange;
use hub_base::error::{Error, Result};
use hub_core::{Core, EventLog};
use hub_devices::ble::{self, StoredEvent};
use hub_devices::ble_routes::{self, Route};
use hub_devices::delivery_status;
use hub_ingest::{self as ingest, Commit, Follower, Kind, LogKey, Queued};
use hub_protocol::{HubUuid, TenantUuid};
use hub_steps::Input;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::super::definition::{Source, input_of};
use super::workers::Workers;

/// Memory of a tenant's latest events, and of all tenants' together.
const TENANT_RECENT_BYTES: usize = 16 * 1024 * 1024;
const RECENT_BYTES: usize = 64 * 1024 * 1024;
/// A page of older events.
const PAGE_EVENTS: i64 = 1000;
const PAGE_BYTES: i64 = 1024 * 1024;
/// Pages of a tenant that its lanes share.
const PAGES: usize = 4;
/// How often the database is asked for commits of other replicas.
const POLL_INTERVAL_WITH_BUS: Duration = Duration::from_secs(10);
const QUEUE_ANNOUNCEMENTS: usize = 1024;
/// Hubs of a tenant of which it is known what is bound to them.
const KNOWN_HUBS: usize = 10_000;
/// How old a route may be, and what is known of hubs.
const ROUTE_AGE: Duration = Duration::from_secs(1);

/// An event of the log.
pub struct LogEvent {
    stored: StoredEvent,
    /// As steps take it, made when the first lane wants it.
    input: OnceLock<Option<Input>>,
}

impl LogEvent {
    pub fn new(stored: StoredEvent) -> Arc<Self> {
        Arc::new(Self {
            stored,
            input: OnceLock::new(),
        })
    }

    /// Whether the tenant's route lets a pipeline see it.
    pub fn is_for(&self, route: &Route, pipeline_uuid: Uuid) -> bool {
        let device_uuid = self
            .input()
            .and_then(|input| input.event.get("deviceUuid")?.as_str()?.parse().ok());
        ble::is_for(&self.stored, route, pipeline_uuid, device_uuid)
    }

    /// Whether a source may select it, as far as that is known without reading it.
    pub fn may_be_of(&self, source: &Source, bound: &HashSet<HubUuid>) -> bool {
        source.may_select(self.stored.hub_uuid, bound, self.stored.device_instance_id)
    }

    pub fn id(&self) -> i64 {
        self.stored.ble_event_id
    }

    /// The event as steps take it; None of what no version could have stored.
    pub fn input(&self) -> Option<&Input> {
        let make = || {
            let failed = |error: &Error| tracing::error!(%error, "a stored event cannot be read; pipelines skip it");
            input_of(self.stored.clone()).inspect_err(failed).ok()
        };
        self.input.get_or_init(make).as_ref()
    }

    /// The event as JSON; empty if it cannot be read.
    pub fn to_json(&self) -> String {
        self.input()
            .and_then(|input| serde_json::to_string(&input.event).ok())
            .unwrap_or_default()
    }

    /// The memory that it uses, with its JSON.
    fn bytes(&self) -> usize {
        let text = self.stored.event.len() + self.stored.reading.as_deref().map_or(0, str::len);
        size_of::<Self>() + text * 4
    }
}

/// Events of a log in the order of their ids, without gaps up to `complete_to`.
pub struct Read {
    pub events: Vec<Arc<LogEvent>>,
    pub complete_to: i64,
}

/// The logs that the lanes of this replica read; cheap to clone.
#[derive(Clone)]
pub struct Feeds(Arc<Inner>);

struct Inner {
    core: Core,
    /// To read pages with, on the threads of lanes.
    background: EventLog,
    main: Handle,
    workers: Workers,
    follower: Follower,
    tenants: Mutex<HashMap<TenantUuid, Weak<Feed>>>,
    recent_bytes: AtomicUsize,
}

/// The log of one tenant. It is followed while a lane holds it.
pub struct Feed {
    tenant_uuid: TenantUuid,
    feeds: Feeds,
    /// The last id that was committed, as far as this replica knows.
    head: watch::Sender<i64>,
    recent: Mutex<Recent>,
    pages: tokio::sync::Mutex<VecDeque<Page>>,
    /// The route, if it lets some pipelines see some events only, and when it was read.
    route: tokio::sync::Mutex<Option<(Instant, Option<Arc<Route>>)>>,
    bound: tokio::sync::Mutex<BoundHubs>,
}

/// What was read of hubs that bundles have bound pipelines to, for all lanes of the tenant.
#[derive(Default)]
struct BoundHubs {
    read_at: HashMap<HubUuid, Instant>,
    bound: HashSet<(Uuid, HubUuid)>,
}

/// The latest events: all with ids above `after`, up to `last`.
#[derive(Default)]
struct Recent {
    after: i64,
    last: i64,
    events: VecDeque<Arc<LogEvent>>,
    bytes: usize,
}

/// All events with ids above `after`, up to `last`.
struct Page {
    after: i64,
    last: i64,
    events: Arc<[Arc<LogEvent>]>,
}

impl Feeds {
    pub fn new(core: Core, follower: Follower, workers: Workers) -> Self {
        let (main, tenants, recent_bytes) =
            (Handle::current(), Mutex::default(), AtomicUsize::new(0));
        let background = EventLog {
            db: core.db.background(),
            ..core.event_log.clone()
        };
        Self(Arc::new(Inner {
            core,
            background,
            main,
            workers,
            follower,
            tenants,
            recent_bytes,
        }))
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<TenantUuid, Weak<Feed>>> {
        self.0
            .tenants
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, tenant_uuid: TenantUuid) -> Option<Arc<Feed>> {
        self.tenants().get(&tenant_uuid)?.upgrade()
    }

    /// The log of a tenant, and the last id that is in it.
    pub async fn follow(&self, tenant_uuid: TenantUuid) -> Result<Arc<Feed>> {
        if let Some(feed) = self.open(tenant_uuid) {
            return Ok(feed);
        }
        // Followed before the last id is read, so that no commit is missed between the two.
        self.0.follower.follow((tenant_uuid, Kind::BleEvents));
        let last_id = ingest::last_id(
            &mut self.0.core.db.read().await?,
            (tenant_uuid, Kind::BleEvents),
        )
        .await?;
        let mut tenants = self.tenants();
        if let Some(feed) = tenants.get(&tenant_uuid).and_then(Weak::upgrade) {
            return Ok(feed);
        }
        let feed = Arc::new(Feed {
            tenant_uuid,
            feeds: self.clone(),
            head: watch::Sender::new(last_id),
            recent: Mutex::new(Recent {
                after: last_id,
                last: last_id,
                ..Recent::default()
            }),
            pages: tokio::sync::Mutex::default(),
            route: tokio::sync::Mutex::default(),
            bound: tokio::sync::Mutex::default(),
        });
        tenants.insert(tenant_uuid, Arc::downgrade(&feed));
        // The last holder of a former one may have ended that meanwhile.
        self.0.follower.follow((tenant_uuid, Kind::BleEvents));
        Ok(feed)
    }

    /// Reads what is small from the database, on the threads that serve requests: a connection
    /// belongs to the threads that opened it, and those of lanes may have to wait.
    async fn query<T: Send + 'static>(
        &self,
        read: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.0.main.spawn(read).await.map_err(Error::internal)?
    }

    /// When no lane reads any more.
    pub async fn close(&self) {
        self.0.background.db.close_readers().await;
    }

    /// What keeps the logs up to date until the service ends, and its subscription to the bus.
    pub fn keep(self, queued: Queued) -> (impl Future<Output = ()>, Subscription) {
        let (messages, announcements) = mpsc::channel(QUEUE_ANNOUNCEMENTS);
        (
            self.run(queued, announcements),
            Subscription {
                topic: ingest::TOPIC,
                messages,
            },
        )
    }

    async fn run(self, mut queued: Queued, mut announcements: mpsc::Receiver<String>) {
        let core = &self.0.core;
        let mut polls = core.bus.polls(POLL_INTERVAL_WITH_BUS);
        loop {
            tokio::select! {
                biased;
                () = core.shutdown.cancelled() => return,
                Some(commits) = queued.recv() => {
                    let feeds = self.clone();
                    let added = self.0.workers.spawn(async move { commits.into_iter().for_each(|one| feeds.add(one)) });
                    if let Err(error) = added.await {
                        tracing::error!(%error, "commits could not be added to the logs; lanes read them from the database");
                    }
                }
                Some(text) = announcements.recv() => {
                    if let Some((key, last_id)) = ingest::parse_announcement(&text) {
                        self.advance(key, last_id);
                    }
                }
                () = polls.next() => {
                    if let Err(error) = self.poll().await {
                        tracing::debug!(%error, "cannot read the ends of the logs; the next poll does");
                    }
                }
            }
        }
    }

    fn add(&self, commit: Commit) {
        if let Some(feed) = self
            .open(commit.tenant_uuid)
            .filter(|_| commit.kind == Kind::BleEvents)
        {
            feed.add(commit);
        }
    }

    fn advance(&self, (tenant_uuid, kind): LogKey, last_id: i64) {
        if let Some(feed) = self.open(tenant_uuid).filter(|_| kind == Kind::BleEvents) {
            feed.advance(last_id);
        }
    }

    async fn poll(&self) -> Result<()> {
        let tenants: Vec<TenantUuid> = self.tenants().keys().copied().collect();
        for tenants in tenants.chunks(500) {
            let mut conn = self.0.core.db.read().await?;
            for (key, last_id) in ingest::last_ids(&mut conn, tenants.iter().copied()).await? {
                self.advance(key, last_id);
            }
        }
        Ok(())
    }
}

impl Feed {
    /// Changes whenever there is more to read.
    pub fn head(&self) -> watch::Receiver<i64> {
        self.head.subscribe()
    }

    /// The tenant's route, if it lets some pipelines see some events only.
    pub async fn route(&self) -> Result<Option<Arc<Route>>> {
        let mut known = self.route.lock().await;
        if let Some((_, route)) = known
            .as_ref()
            .filter(|(read_at, _)| read_at.elapsed() < ROUTE_AGE)
        {
            return Ok(route.clone());
        }
        let (core, tenant_uuid) = (self.feeds.0.core.clone(), self.tenant_uuid);
        let read = async move { ble_routes::get(&mut core.db.read().await?, tenant_uuid).await };
        let route = self.feeds.query(read).await?;
        let route = route.names_pipelines().then(|| Arc::new(route));
        *known = Some((Instant::now(), route.clone()));
        Ok(route)
    }

    /// Which hubs of these events a bundle has bound the pipeline to, as far as that matters. It is
    /// asked for after the events were read: a hub is bound before its first event.
    pub async fn bound(
        &self,
        pipeline_uuid: Uuid,
        source: &Source,
        events: &[Arc<LogEvent>],
    ) -> Result<HashSet<HubUuid>> {
        if events.is_empty() || !source.is_limited_to_hubs() {
            return Ok(HashSet::new());
        }
        let hubs = events.iter().map(|event| event.stored.hub_uuid);
        let hubs: HashSet<HubUuid> = hubs
            .filter(|hub_uuid| !source.hub_uuids.contains(hub_uuid))
            .collect();
        let mut known = self.bound.lock().await;
        let is_unknown = |hub: &&HubUuid| {
            known
                .read_at
                .get(hub)
                .is_none_or(|at| at.elapsed() >= ROUTE_AGE)
        };
        let unknown: Vec<HubUuid> = hubs.iter().filter(is_unknown).copied().collect();
        if !unknown.is_empty() {
            if known.read_at.len() >= KNOWN_HUBS {
                *known = BoundHubs::default();
            }
            known.bound.retain(|(_, hub)| !unknown.contains(hub));
            let (core, asked) = (self.feeds.0.core.clone(), unknown.clone());
            let read = async move {
                delivery_status::bound_to_hubs(&mut core.db.read().await?, &asked).await
            };
            known.bound.extend(self.feeds.query(read).await?);
            known
                .read_at
                .extend(unknown.into_iter().map(|hub| (hub, Instant::now())));
        }
        Ok(hubs
            .into_iter()
            .filter(|hub| known.bound.contains(&(pipeline_uuid, *hub)))
            .collect())
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self, last_id: i64) {
        self.head.send_if_modified(|head| {
            let is_new = last_id > *head;
            *head = last_id.max(*head);
            is_new
        });
    }

    fn add(&self, commit: Commit) {
        let Commit {
            previous_id,
            last_id,
            records,
            ..
        } = commit;
        {
            let mut recent = self.recent();
            let total = &self.feeds.0.recent_bytes;
            if last_id <= recent.last {
                return;
            }
            if previous_id != recent.last || total.load(Ordering::Relaxed) > RECENT_BYTES {
                total.fetch_sub(recent.bytes, Ordering::Relaxed);
                *recent = Recent {
                    after: previous_id,
                    ..Recent::default()
                };
            }
            let before = recent.bytes;
            for record in records.iter().cloned() {
                let event = LogEvent::new(ble::committed(
                    record.id,
                    record.hub_uuid,
                    record.observation_id,
                    record.record,
                ));
                recent.bytes += event.bytes();
                recent.events.push_back(event);
            }
            recent.last = last_id;
            while recent.bytes > TENANT_RECENT_BYTES
                && let Some(oldest) = recent.events.pop_front()
            {
                recent.bytes = recent.bytes.saturating_sub(oldest.bytes());
                recent.after = oldest.id();
            }
            total.fetch_add(recent.bytes, Ordering::Relaxed);
            total.fetch_sub(before, Ordering::Relaxed);
        }
        self.advance(last_id);
    }

    /// Whether at least so many events follow `after`, as far as that is known without reading.
    pub fn has(&self, after: i64, events: usize) -> bool {
        let recent = self.recent();
        let first = recent.events.partition_point(|event| event.id() <= after);
        after < recent.after || recent.events.len().saturating_sub(first) >= events
    }

    /// The next events after an id, at most `limit`.
    pub async fn read(&self, after: i64, limit: usize) -> Result<Read> {
        let head = *self.head.borrow();
        if after >= head {
            return Ok(Read {
                events: Vec::new(),
                complete_to: after,
            });
        }
        if let Some(read) = self.read_recent(after, limit) {
            return Ok(read);
        }
        let (events, last) = self.page(after, head).await?;
        let first = events.partition_point(|event| event.id() <= after);
        let rest = events.get(first..).unwrap_or_default();
        let taken: Vec<Arc<LogEvent>> = rest.iter().take(limit).cloned().collect();
        let complete_to = match taken.len() < rest.len() {
            true => taken.last().map_or(after, |event| event.id()),
            false => last,
        };
        Ok(Read {
            events: taken,
            complete_to,
        })
    }

    fn read_recent(&self, after: i64, limit: usize) -> Option<Read> {
        let recent = self.recent();
        if after < recent.after || after >= recent.last {
            return None;
        }
        let first = recent.events.partition_point(|event| event.id() <= after);
        let events: Vec<Arc<LogEvent>> =
            recent.events.range(first..).take(limit).cloned().collect();
        let complete_to = match first + events.len() < recent.events.len() {
            true => events.last().map_or(after, |event| event.id()),
            false => recent.last,
        };
        Some(Read {
            events,
            complete_to,
        })
    }

    /// A page that holds what follows `after`. Lanes that want the same one read it once.
    async fn page(&self, after: i64, head: i64) -> Result<(Arc<[Arc<LogEvent>]>, i64)> {
        let mut pages = self.pages.lock().await;
        if let Some(page) = pages
            .iter()
            .find(|page| page.after <= after && after < page.last)
        {
            return Ok((page.events.clone(), page.last));
        }
        let range = LogRange {
            after,
            last: head,
            max_rows: PAGE_EVENTS,
            max_bytes: PAGE_BYTES,
        };
        let (log, tenant_uuid) = (self.feeds.0.background.clone(), self.tenant_uuid);
        let read = async move { ble::after(&log, tenant_uuid, range).await };
        let read = self
            .feeds
            .0
            .workers
            .spawn(read)
            .await
            .map_err(Error::internal)??;
        let events: Arc<[Arc<LogEvent>]> = read.into_iter().map(LogEvent::new).collect();
        // A page is full, or there is nothing more up to the head.
        let last = events.last().map_or(head, |event| event.id());
        if pages.len() >= PAGES {
            pages.pop_front();
        }
        pages.push_back(Page {
            after,
            last,
            events: events.clone(),
        });
        Ok((events, last))
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let bytes = self
            .recent
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .bytes;
        self.feeds
            .0
            .recent_bytes
            .fetch_sub(bytes, Ordering::Relaxed);
        let mut tenants = self.feeds.tenants();
        // Another one may have been opened meanwhile.
        if tenants
            .get(&self.tenant_uuid)
            .is_some_and(|feed| feed.strong_count() == 0)
        {
            tenants.remove(&self.tenant_uuid);
            self.feeds
                .0
                .follower
                .unfollow((self.tenant_uuid, Kind::BleEvents));
        }
    }
}
