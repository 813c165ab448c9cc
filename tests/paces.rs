//! A fleet shares its tenant's limit of uploads: simulated hubs with the agent's own arithmetic
//! (`hub_protocol::pace`) against the real service, on a clock of the test's own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use hub_base::db::sql;
use hub_cloud::upkeep;
use hub_core::tasks::Task;
use hub_protocol::Timestamp;
use hub_protocol::hub::{DesiredState, UploadPauses};
use hub_protocol::pace::{Pace, RateLimit};
use hub_tests::app::set_clock;
use hub_tests::events;
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use reqwest::header::{HeaderName, IF_NONE_MATCH};
use serde_json::{Value, json};

const NOON_MS: i64 = 1_800_014_400_000;
const MINUTE_MS: i64 = 60_000;
/// The hub's own settings, as the agent has them.
const UPLOAD_INTERVAL_MS: i64 = 1_000;
const TELEMETRY_INTERVAL_MS: i64 = 60_000;
const ONLINE_MS: i64 = 600_000;
/// How long a hub's request for its desired state is held: at its end it hears of a new pause.
const HOLD_MS: i64 = 55_000;
/// What is due within so much time happens at once, so that the test is quick.
const STEP_MS: i64 = 1_000;
const AT_ONCE: usize = 16;

/// What a simulated hub does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    ReadState,
    Telemetry,
    BleEvents,
}

/// A hub that uploads as the agent does. Its spool is what it has not delivered yet.
struct Hub {
    hub: SimulatedHub,
    started_ms: i64,
    etag: String,
    telemetry: Pace,
    ble: Pace,
    /// Records that were made, one in each interval, and of these the delivered ones.
    delivered: i64,
    delivered_events: i64,
    /// When telemetry was accepted last.
    shown_ms: Option<i64>,
    longest_gap_ms: i64,
}

#[derive(Default)]
struct Answers {
    accepted: usize,
    refused: usize,
}

impl Hub {
    fn new(hub: SimulatedHub, started_ms: i64) -> Self {
        let pace = Pace::new(UPLOAD_INTERVAL_MS, 0.0);
        Self {
            hub,
            started_ms,
            etag: String::new(),
            telemetry: pace.clone(),
            ble: pace,
            delivered: 0,
            delivered_events: 0,
            shown_ms: None,
            longest_gap_ms: 0,
        }
    }

    fn made(&self, now_ms: i64) -> i64 {
        (now_ms - self.started_ms) / TELEMETRY_INTERVAL_MS + 1
    }

    /// Does the work, and answers when it is due again and what else is due.
    async fn work(&mut self, work: Work, now_ms: i64, answers: &mut Answers) -> Vec<(i64, Work)> {
        match work {
            Work::ReadState => self.read_state(now_ms).await,
            Work::Telemetry => {
                let records: Vec<Value> = (self.delivered..self.made(now_ms))
                    .map(|n| json!({"n": n}))
                    .collect();
                if records.is_empty() {
                    return vec![(self.telemetry.idle(now_ms), work)];
                }
                let path = format!("/v1/hubs/{}/telemetry", self.hub.hub_uuid);
                let reply = self.hub.client.post(&path).json(&records).call().await;
                if reply.status == 204 {
                    self.longest_gap_ms = self
                        .longest_gap_ms
                        .max(now_ms - self.shown_ms.unwrap_or(self.started_ms));
                    self.shown_ms = Some(now_ms);
                    self.delivered += records.len() as i64;
                }
                vec![(next(&mut self.telemetry, &reply, now_ms, answers), work)]
            }
            Work::BleEvents => {
                let count = self.made(now_ms) - self.delivered_events;
                if count <= 0 {
                    return vec![(self.ble.idle(now_ms), work)];
                }
                let reply = self
                    .hub
                    .upload(&hub_tests::hub::events(count as usize))
                    .await;
                if reply.status == 201 {
                    self.delivered_events += count;
                }
                vec![(next(&mut self.ble, &reply, now_ms, answers), work)]
            }
        }
    }

    async fn read_state(&mut self, now_ms: i64) -> Vec<(i64, Work)> {
        let path = format!("/v1/hubs/{}/desired-state", self.hub.hub_uuid);
        let reply = self
            .hub
            .client
            .get(&path)
            .header(IF_NONE_MATCH, self.etag.as_str())
            .call()
            .await;
        if reply.status == 304 {
            return Vec::new();
        }
        let is_first = self.etag.is_empty();
        self.etag = reply.header("etag").to_owned();
        let pauses = reply
            .expect(200)
            .data::<DesiredState>()
            .settings
            .uploads
            .expect("pauses");
        self.telemetry.set(pauses.telemetry_pause_ms, pauses.phase);
        self.ble.set(pauses.ble_events_pause_ms, pauses.phase);
        match is_first {
            true => vec![
                (self.telemetry.first(now_ms), Work::Telemetry),
                (self.ble.first(now_ms), Work::BleEvents),
            ],
            false => Vec::new(),
        }
    }
}

/// When the next upload is due, as the agent decides it.
fn next(pace: &mut Pace, reply: &Reply, now_ms: i64, answers: &mut Answers) -> i64 {
    let number = |name: &str| reply.header(name).parse::<i64>().expect("a number");
    if reply.status == 429 {
        answers.refused += 1;
        return pace.refused(now_ms, Some(number("retry-after") * 1_000));
    }
    assert!(reply.status.is_success(), "{reply:?}");
    answers.accepted += 1;
    let rate = RateLimit {
        limit: number("ratelimit-limit"),
        remaining: number("ratelimit-remaining"),
        reset_secs: number("ratelimit-reset"),
    };
    pace.accepted(now_ms, Some(rate), false)
}

/// Hubs of one tenant, and what they do next.
struct Fleet {
    app: TestApp,
    tenant: Tenant,
    /// An API key of the tenant: the owner's token would expire.
    key: Client,
    micros: Arc<AtomicI64>,
    code: String,
    /// How often the pause has changed, as far as the hubs know.
    pace_revision: i64,
    hubs: Vec<Hub>,
    due: BinaryHeap<Reverse<(i64, usize, Work)>>,
    answers: Answers,
}

impl Fleet {
    async fn new(backend: Backend, options: Options) -> Self {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON_MS * 1_000));
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                ..options
            },
        )
        .await;
        let tenant = Tenant::create(&app.client()).await;
        let code = tenant.claim_code_for(1_000).await;
        let key = tenant.stored_api_key(&app, "hubs:read").await;
        let key = app
            .client()
            .tenant(tenant.tenant_uuid)
            .header(HeaderName::from_static("x-api-key"), &key);
        Self {
            app,
            tenant,
            key,
            micros,
            code,
            pace_revision: 0,
            hubs: Vec::new(),
            due: BinaryHeap::new(),
            answers: Answers::default(),
        }
    }

    fn now_ms(&self) -> i64 {
        self.micros.load(Ordering::Relaxed) / 1_000
    }

    /// So many new hubs begin now.
    async fn join(&mut self, count: usize) {
        let (client, code, first) = (self.app.client(), self.code.clone(), self.hubs.len());
        let claims = (first..first + count).map(|index| {
            let (client, code) = (client.clone(), code.clone());
            async move { SimulatedHub::claim_with(&client, &code, &format!("device {index}")).await }
        });
        let claimed: Vec<SimulatedHub> = stream::iter(claims).buffered(AT_ONCE).collect().await;
        let now_ms = self.now_ms();
        for hub in claimed {
            self.due
                .push(Reverse((now_ms, self.hubs.len(), Work::ReadState)));
            self.hubs.push(Hub::new(hub, now_ms));
        }
    }

    /// Everything that is due until then happens at its time.
    async fn run_until(&mut self, end_ms: i64) {
        let mut minute = self.now_ms() / MINUTE_MS;
        while let Some(Reverse((due_ms, _, _))) = self.due.peek().copied() {
            if due_ms >= end_ms {
                break;
            }
            let step_ms = (due_ms + STEP_MS - 1) / STEP_MS * STEP_MS;
            self.micros
                .store(step_ms.max(self.now_ms()) * 1_000, Ordering::Relaxed);
            if due_ms / MINUTE_MS > minute {
                minute = due_ms / MINUTE_MS;
                self.upkeep().await;
                self.hear_of_new_pause().await;
            }
            self.work_at_once().await;
        }
        self.micros.store(end_ms * 1_000, Ordering::Relaxed);
        self.upkeep().await;
    }

    /// Does what is due now, different hubs at the same time.
    async fn work_at_once(&mut self) {
        let now_ms = self.now_ms();
        let mut works: HashMap<usize, Work> = HashMap::new();
        while works.len() < AT_ONCE {
            let Some(Reverse((due_ms, index, work))) = self.due.peek().copied() else {
                break;
            };
            if due_ms > now_ms || works.contains_key(&index) {
                break;
            }
            self.due.pop();
            works.insert(index, work);
        }
        let busy = self.hubs.iter_mut().enumerate().filter_map(|(index, hub)| {
            let work = *works.get(&index)?;
            Some(async move {
                let mut answers = Answers::default();
                let due = hub.work(work, now_ms, &mut answers).await;
                (index, due, answers)
            })
        });
        for (index, due, answers) in join_all(busy).await {
            self.due.extend(
                due.into_iter()
                    .map(|(due_ms, work)| Reverse((due_ms.max(now_ms + 1), index, work))),
            );
            self.answers.accepted += answers.accepted;
            self.answers.refused += answers.refused;
        }
    }

    async fn upkeep(&self) {
        let kind = "upkeep.upload_paces".to_owned();
        let task = Task {
            task_uuid: uuid::Uuid::new_v4(),
            kind,
            payload: Value::Null,
            attempts: 1,
        };
        upkeep::perform(self.app.app.clone(), task)
            .await
            .expect("upkeep");
    }

    /// If the pause has changed, the hubs read it as their requests end, one after the other.
    async fn hear_of_new_pause(&mut self) {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        let revision = sql("SELECT revision FROM upload_paces WHERE tenant_uuid = $1")
            .bind(self.tenant.tenant_uuid);
        let revision: i64 = revision.scalar(&mut conn).await.expect("a revision");
        if std::mem::replace(&mut self.pace_revision, revision) != revision {
            let (now_ms, count) = (self.now_ms(), self.hubs.len());
            let at = |index: usize| now_ms + HOLD_MS * index as i64 / count as i64;
            self.due
                .extend((0..count).map(|index| Reverse((at(index), index, Work::ReadState))));
        }
    }

    /// How many hubs the tenant sees in each status.
    async fn statuses(&self) -> HashMap<String, usize> {
        let mut found = HashMap::new();
        for page in 1..=self.hubs.len().div_ceil(100) {
            let path = format!("/tenant/hubs?size=100&page={page}");
            let hubs: Vec<Value> = self.key.get(&path).call().await.expect(200).data();
            for hub in hubs {
                *found
                    .entry(hub["status"].as_str().expect("a status").to_owned())
                    .or_default() += 1;
            }
        }
        found
    }

    async fn stored_events(&self) -> i64 {
        let db = &self.app.app.db;
        i64::try_from(events::all(db).await.len()).expect("a small number")
    }

    async fn stored(&self, table: &'static str) -> i64 {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        sql("SELECT COUNT(*) FROM ")
            .push(table)
            .scalar(&mut conn)
            .await
            .expect("a count")
    }
}

on_each_database!(nine_hundred_hubs_share_the_default_limit);
/// 900 hubs, with the default limit, for 30 minutes: hubs join, hubs restart.
async fn nine_hundred_hubs_share_the_default_limit(backend: Backend) {
    let mut fleet = Fleet::new(backend, Options::default()).await;
    fleet.join(700).await;
    fleet.run_until(NOON_MS + 2 * MINUTE_MS).await;
    fleet.join(200).await;
    fleet.run_until(NOON_MS + 12 * MINUTE_MS).await;
    // All were seen by now; the last joined ten minutes ago.
    assert_eq!(
        fleet.statuses().await,
        HashMap::from([("ONLINE".to_owned(), 900)])
    );
    // A restarted hub has its pauses from its disk, and keeps its turns.
    for index in (0..900).step_by(9) {
        let (hub, now_ms) = (
            &mut fleet.hubs[index],
            fleet.micros.load(Ordering::Relaxed) / 1_000,
        );
        let pauses = hub.hub.desired().await.settings.uploads.expect("pauses");
        hub.telemetry = Pace::new(UPLOAD_INTERVAL_MS, 0.0);
        hub.telemetry.set(pauses.telemetry_pause_ms, pauses.phase);
        let due_ms = hub.telemetry.first(now_ms);
        fleet
            .due
            .retain(|Reverse((_, other, work))| (*other, *work) != (index, Work::Telemetry));
        fleet.due.push(Reverse((due_ms, index, Work::Telemetry)));
    }
    fleet.run_until(NOON_MS + 22 * MINUTE_MS).await;
    assert_eq!(
        fleet.statuses().await,
        HashMap::from([("ONLINE".to_owned(), 900)])
    );
    fleet.run_until(NOON_MS + 30 * MINUTE_MS).await;
    assert_eq!(
        fleet.statuses().await,
        HashMap::from([("ONLINE".to_owned(), 900)])
    );

    let Answers { accepted, refused } = fleet.answers;
    assert!(
        refused * 100 < accepted + refused,
        "{refused} of {} answers were 429",
        accepted + refused
    );
    assert!(accepted > 4_000, "only {accepted} uploads");
    let longest_gap_ms = fleet
        .hubs
        .iter()
        .map(|hub| hub.longest_gap_ms)
        .max()
        .expect("hubs");
    assert!(
        longest_gap_ms < ONLINE_MS,
        "a hub was not heard of for {} s",
        longest_gap_ms / 1_000
    );
    // Nothing is lost: what was made is stored, or is younger than a pause.
    let now_ms = fleet.now_ms();
    for hub in &fleet.hubs {
        let made = hub.made(now_ms);
        assert!(
            (made - 10..=made).contains(&hub.delivered),
            "{} of {made} records",
            hub.delivered
        );
        assert!(
            (made - 10..=made).contains(&hub.delivered_events),
            "{} of {made} events",
            hub.delivered_events
        );
    }
    assert_eq!(
        fleet.stored("hub_telemetry").await,
        fleet.hubs.iter().map(|hub| hub.delivered).sum::<i64>()
    );
    assert_eq!(
        fleet.stored_events().await,
        fleet
            .hubs
            .iter()
            .map(|hub| hub.delivered_events)
            .sum::<i64>()
    );
}

on_each_database!(hubs_at_a_small_limit_are_refused_as_rarely);
/// The same ratio with a limit of three, at which two hubs too many in a minute are many.
async fn hubs_at_a_small_limit_are_refused_as_rarely(backend: Backend) {
    let settings = hub_core::config::Settings {
        upload_limit_per_minute: Some(3),
        ..Default::default()
    };
    let mut fleet = Fleet::new(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    fleet.join(27).await;
    fleet.run_until(NOON_MS + 120 * MINUTE_MS).await;
    assert_eq!(
        fleet.statuses().await,
        HashMap::from([("ONLINE".to_owned(), 27)])
    );
    let Answers { accepted, refused } = fleet.answers;
    assert!(
        refused * 100 < accepted + refused && accepted > 500,
        "{refused} refused, {accepted} accepted"
    );
}

on_each_database!(pauses_follow_the_number_of_live_hubs_and_change_rarely);
async fn pauses_follow_the_number_of_live_hubs_and_change_rarely(backend: Backend) {
    let settings = hub_core::config::Settings {
        upload_limit_per_minute: Some(10),
        ..Default::default()
    };
    let mut fleet = Fleet::new(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let state = async |fleet: &Fleet| {
        let reply = fleet.hubs[0].hub.desired_reply().await;
        let (etag, state) = (
            reply.header("etag").to_owned(),
            reply.data::<DesiredState>(),
        );
        (
            etag,
            state.revision,
            state.settings.uploads.expect("pauses"),
        )
    };
    let mut seen = Vec::new();
    for _ in 0..40 {
        fleet.join(1).await;
        seen.push(state(&fleet).await);
    }
    assert!(seen.is_sorted_by_key(|(_, revision, pauses)| (*revision, pauses.telemetry_pause_ms)));
    for pair in seen.windows(2) {
        // The tag, the revision and the content change together.
        assert_eq!(pair[0].0 == pair[1].0, pair[0] == pair[1], "{pair:?}");
        assert_eq!(pair[0].1 == pair[1].1, pair[0] == pair[1], "{pair:?}");
    }
    seen.dedup();
    assert!(
        (5..12).contains(&seen.len()),
        "{} changes for 40 hubs",
        seen.len()
    );
    let UploadPauses {
        telemetry_pause_ms,
        ble_events_pause_ms,
        logs_pause_ms,
        ..
    } = seen.last().expect("a state").2;
    assert_eq!(
        (ble_events_pause_ms, logs_pause_ms),
        (telemetry_pause_ms, telemetry_pause_ms)
    );
    let all: Vec<f64> = join_all(fleet.hubs.iter().map(|hub| hub.hub.desired()))
        .await
        .into_iter()
        .map(|state| state.settings.uploads.expect("pauses").phase)
        .collect();
    assert!(all.iter().all(|phase| (0.0..1.0).contains(phase)));
    assert!(
        (1..40).all(|one| all[..one]
            .iter()
            .all(|other| (all[one] - other).abs() > 1e-4)),
        "{all:?}"
    );

    // Most hubs go. Their shares are not given away at once, then bit by bit.
    let before = state(&fleet).await;
    fleet.hubs.truncate(2);
    fleet.due.retain(|Reverse((_, index, _))| *index < 2);
    fleet.run_until(NOON_MS + 30 * MINUTE_MS).await;
    assert_eq!(state(&fleet).await, before, "they may come back");
    fleet.run_until(NOON_MS + 70 * MINUTE_MS).await;
    let halved = state(&fleet).await;
    assert!(halved.1 > before.1, "{halved:?}");
    assert!(
        halved.2.telemetry_pause_ms * 3 > before.2.telemetry_pause_ms,
        "by half at most: {halved:?}"
    );
    fleet.run_until(NOON_MS + 180 * MINUTE_MS).await;
    assert!(
        state(&fleet).await.2.telemetry_pause_ms < 60_000,
        "{:?}",
        state(&fleet).await
    );

    // An own limit of the tenant is reckoned with.
    let mut tx = fleet.app.app.db.begin().await.expect("a transaction");
    sql("UPDATE tenants SET upload_limit_per_minute = 1 WHERE tenant_uuid = $1")
        .bind(fleet.tenant.tenant_uuid)
        .execute(&mut tx)
        .await
        .expect("a limit");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    fleet.upkeep().await;
    assert!(state(&fleet).await.2.telemetry_pause_ms > 120_000);
}

on_each_database!(a_change_of_pace_wakes_no_waiting_hub);
/// 5,000 waiting hubs must not all ask at the same moment because one more has come.
async fn a_change_of_pace_wakes_no_waiting_hub(backend: Backend) {
    let settings = hub_core::config::Settings {
        upload_limit_per_minute: Some(1),
        ..Default::default()
    };
    let mut fleet = Fleet::new(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    fleet.join(1).await;
    let hub = fleet.hubs[0].hub.clone();
    let path = format!("/v1/hubs/{}/desired-state?wait=50", hub.hub_uuid);
    let mut joining = 9;
    // A request that counts as waiting may not have read the state yet. On a busy machine, it then
    // reads the new one, and the next is tried.
    let etag = loop {
        let etag = hub.desired_reply().await.header("etag").to_owned();
        let held = tokio::spawn(hub.client.get(&path).header(IF_NONE_MATCH, &etag).call());
        while fleet.app.app.metrics.hub_waits.get() == 0 && !held.is_finished() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        fleet.join(joining).await;
        // Longer than the service without a bus takes to look for changes.
        tokio::time::sleep(std::time::Duration::from_millis(2_200)).await;
        let is_held = !held.is_finished();
        held.abort();
        if is_held {
            break etag;
        }
        assert!(joining > 5, "it is woken");
        joining -= 1;
    };
    let news = hub
        .client
        .get(&path)
        .header(IF_NONE_MATCH, &etag)
        .call()
        .await
        .expect(200);
    assert_ne!(
        news.header("etag"),
        etag,
        "it hears of it when it asks again"
    );
    assert!(
        news.data::<DesiredState>()
            .settings
            .uploads
            .expect("pauses")
            .telemetry_pause_ms
            >= 600_000 / 2
    );
}
