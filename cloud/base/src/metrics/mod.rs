//! Metrics for Prometheus at `/metrics`. Labels are few and bounded: a route is labelled with its
//! template, never with the requested path.

mod classic;
mod conditions;
mod pipelines;
mod process;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use hub_protocol::HubUuid;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use self::conditions::ConditionMetrics;
use self::pipelines::PipelineMetrics;
use self::process::Process;
use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    route: String,
    status: u16,
}

/// A lane of background work.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct InLane {
    pub lane: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfHub {
    hub_uuid: String,
}

/// A pool of connections to the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPool {
    pub pool: &'static str,
}

/// A kind of record, as `upload_clocks` and the settings name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RecordKind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Quota {
    quota: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalCode {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScriptOutcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScriptReason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallResult {
    result: &'static str,
}

/// Why a script process ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptEnd {
    /// The process did not answer in time, and was killed.
    Silent,
    /// The process ended by itself.
    Crashed,
}

impl ScriptEnd {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Crashed => "crashed",
        }
    }
}

/// Counters of retention for one kind of record.
pub struct RetentionMetrics {
    pub deleted_records: Counter,
    pub deleted_bytes: Counter,
    pub dropped_months: Counter,
    /// 1 while records wait to be deleted.
    pub is_behind: Gauge,
    /// Bytes of all tenants at the last count.
    pub stored_bytes: Gauge,
}

#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Answered, Counter>,
    request_duration: Family<Route, Histogram, fn() -> Histogram>,
    held_request_duration: Histogram,
    /// Uploads waiting for the writer.
    pub ingest_queued: Gauge,
    pub ingest_commits: Counter,
    pub ingest_uploads: Counter,
    pub ingest_records: Counter,
    pub ingest_commit_duration: Histogram,
    /// Seconds that the writer has spent in transactions.
    pub ingest_busy: Counter<f64, AtomicU64>,
    /// Uploads refused because the hub has used its share of the limit.
    pub ingest_share_refusals: Counter,
    quota_refusals: Family<Quota, Counter>,
    refused_credentials: Family<RefusalCode, Counter>,
    retention_deleted_records: Family<RecordKind, Counter>,
    retention_deleted_bytes: Family<RecordKind, Counter>,
    retention_dropped_months: Family<RecordKind, Counter>,
    retention_behind: Family<RecordKind, Gauge>,
    stored_bytes: Family<RecordKind, Gauge>,
    /// How long a transaction of retention held the writer.
    pub retention_batch_duration: Histogram,
    /// Events that were moved to files.
    pub history_closed_events: Counter,
    /// Reads of files that failed.
    pub history_read_failures: Counter,
    /// 1 while days that ended long enough ago are not in files.
    pub history_behind: Gauge,
    /// How long a transaction that deletes rows of closed days held the writer.
    pub history_batch_duration: Histogram,
    /// Stored BLE events that were reprocessed, and those of them that changed.
    pub pipelines: PipelineMetrics,
    pub reprocessed_events: Counter,
    pub reprocess_changed_events: Counter,
    /// How long a transaction of reprocessing held the writer.
    pub reprocess_batch_duration: Histogram,
    pub conditions: ConditionMetrics,
    /// 1 while the disk under the database is full.
    pub storage_full: Gauge,
    /// Free bytes in the file system of an SQLite database.
    pub storage_free_bytes: Gauge,
    /// Since the newest backup was made; 0 without a schedule.
    pub backup_age_seconds: Gauge,
    /// Spans that no collector accepted.
    pub trace_spans_dropped: Counter,
    /// Memory reserved for bodies.
    pub body_memory_bytes: Gauge,
    /// Requests that wait for a desired state to change.
    pub hub_waits: Gauge,
    pub stream_subscribers: Gauge,
    /// Streams closed because the client read too slowly.
    pub stream_slow_readers: Counter,
    /// Hubs with telemetry of the last ten minutes, of all tenants.
    pub hubs_online: Gauge,
    pub replicas: Gauge,
    /// Claimed hubs of all tenants.
    pub hubs: Gauge,
    hubs_flooding: Family<OfHub, Gauge>,
    /// Tasks that are due and not done.
    pub tasks_due: Family<InLane, Gauge>,
    /// How long the task that is due longest has waited.
    pub task_delay_seconds: Family<InLane, Gauge>,
    /// Registration events that are to be delivered, counted up to 100,000.
    pub registration_events_pending: Gauge,
    /// Since the oldest of them was written.
    pub registration_event_age_seconds: Gauge,
    pub pool_connections: Family<OfPool, Gauge>,
    pub pool_idle_connections: Family<OfPool, Gauge>,
    script_runs: Family<ScriptOutcome, Counter>,
    script_ends: Family<ScriptReason, Counter>,
    /// Seconds that callers have waited for scripts.
    pub scripts_busy: Counter<f64, AtomicU64>,
    pub script_processes: Gauge,
    outgoing_calls: Family<CallResult, Counter>,
}

impl Metrics {
    pub fn new() -> Self {
        let mut root = Registry::default();
        root.register_collector(Box::new(Process::new()));
        let registry = root.sub_registry_with_prefix("hub_cloud");
        let outgoing_calls = Family::<CallResult, Counter>::default();
        // There from the start, so that the page of metrics shows what is counted.
        drop(outgoing_calls.get_or_create(&CallResult { result: "ok" }));
        let metrics = Self {
            registry: Arc::default(),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(request_histogram),
            held_request_duration: seconds_histogram(),
            ingest_queued: Gauge::default(),
            ingest_commits: Counter::default(),
            ingest_uploads: Counter::default(),
            ingest_records: Counter::default(),
            ingest_commit_duration: seconds_histogram(),
            ingest_busy: Counter::default(),
            ingest_share_refusals: Counter::default(),
            quota_refusals: Family::default(),
            refused_credentials: Family::default(),
            retention_deleted_records: Family::default(),
            retention_deleted_bytes: Family::default(),
            retention_dropped_months: Family::default(),
            retention_behind: Family::default(),
            stored_bytes: Family::default(),
            retention_batch_duration: Histogram::new(BATCH_SECONDS),
            history_closed_events: Counter::default(),
            history_read_failures: Counter::default(),
            history_behind: Gauge::default(),
            history_batch_duration: Histogram::new(BATCH_SECONDS),
            pipelines: PipelineMetrics::new(),
            reprocessed_events: Counter::default(),
            reprocess_changed_events: Counter::default(),
            reprocess_batch_duration: Histogram::new(BATCH_SECONDS),
            conditions: ConditionMetrics::default(),
            storage_full: Gauge::default(),
            storage_free_bytes: Gauge::default(),
            backup_age_seconds: Gauge::default(),
            trace_spans_dropped: Counter::default(),
            body_memory_bytes: Gauge::default(),
            hub_waits: Gauge::default(),
            stream_subscribers: Gauge::default(),
            stream_slow_readers: Counter::default(),
            hubs_online: Gauge::default(),
            replicas: Gauge::default(),
            hubs_flooding: Family::default(),
            hubs: Gauge::default(),
            tasks_due: Family::default(),
            task_delay_seconds: Family::default(),
            registration_events_pending: Gauge::default(),
            registration_event_age_seconds: Gauge::default(),
            pool_connections: Family::default(),
            pool_idle_connections: Family::default(),
            script_runs: Family::default(),
            script_ends: Family::default(),
            scripts_busy: Counter::default(),
            script_processes: Gauge::default(),
            outgoing_calls,
        };
        registry.register(
            "build",
            "The program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register("http_requests", "Requests served", metrics.requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time from the request to the head of its response, without requests that wait for a change",
            Unit::Seconds,
            metrics.request_duration.clone(),
        );
        registry.register_with_unit(
            "http_held_request_duration",
            "Time from the request to the head of its response, of requests that wait for a change",
            Unit::Seconds,
            metrics.held_request_duration.clone(),
        );
        registry.register(
            "ingest_queued",
            "Uploads waiting for the writer",
            metrics.ingest_queued.clone(),
        );
        registry.register(
            "ingest_commits",
            "Transactions of the writer",
            metrics.ingest_commits.clone(),
        );
        registry.register(
            "ingest_uploads",
            "Uploads processed by the writer",
            metrics.ingest_uploads.clone(),
        );
        registry.register(
            "ingest_records",
            "Records stored by the writer",
            metrics.ingest_records.clone(),
        );
        registry.register_with_unit(
            "ingest_commit_duration",
            "Duration of a transaction of the writer",
            Unit::Seconds,
            metrics.ingest_commit_duration.clone(),
        );
        registry.register_with_unit(
            "ingest_busy",
            "Time that the writer has spent in transactions",
            Unit::Seconds,
            metrics.ingest_busy.clone(),
        );
        registry.register(
            "ingest_share_refusals",
            "Uploads refused because the hub has used its share of its tenant's limit",
            metrics.ingest_share_refusals.clone(),
        );
        registry.register(
            "quota_refusals",
            "Uploads refused by a full quota",
            metrics.quota_refusals.clone(),
        );
        registry.register(
            "refused_credentials",
            "Requests refused for their password, token, key, signature or claim code, by error code",
            metrics.refused_credentials.clone(),
        );
        metrics.register_retention(registry);
        metrics.register_history(registry);
        metrics.pipelines.register(registry);
        metrics.conditions.register(registry);
        metrics.register_reprocessing(registry);
        metrics.register_scripts(registry);
        let help = "Calls to addresses that tenants chose, by result";
        registry.register("outgoing_calls", help, metrics.outgoing_calls.clone());
        registry.register(
            "storage_full",
            "1 while the disk of the database is full",
            metrics.storage_full.clone(),
        );
        registry.register_with_unit(
            "storage_free",
            "Free space on the disk of an SQLite database",
            Unit::Bytes,
            metrics.storage_free_bytes.clone(),
        );
        registry.register_with_unit(
            "backup_age",
            "Since the newest backup was made; 0 without a schedule",
            Unit::Seconds,
            metrics.backup_age_seconds.clone(),
        );
        registry.register(
            "trace_spans_dropped",
            "Spans that the collector of otlp-endpoint did not accept",
            metrics.trace_spans_dropped.clone(),
        );
        registry.register_with_unit(
            "body_memory",
            "Memory reserved for the bodies of requests and responses in progress",
            Unit::Bytes,
            metrics.body_memory_bytes.clone(),
        );
        registry.register(
            "hub_waits",
            "Hubs waiting for their desired state to change",
            metrics.hub_waits.clone(),
        );
        registry.register(
            "stream_subscribers",
            "Open event streams",
            metrics.stream_subscribers.clone(),
        );
        registry.register(
            "stream_slow_readers",
            "Streams closed because the client read too slowly",
            metrics.stream_slow_readers.clone(),
        );
        registry.register("hubs", "Claimed hubs", metrics.hubs.clone());
        registry.register(
            "hubs_flooding",
            "Hubs that upload far more than their share of the limit, up to 100",
            metrics.hubs_flooding.clone(),
        );
        registry.register(
            "replicas",
            "Replicas that share the bus, this one included",
            metrics.replicas.clone(),
        );
        registry.register(
            "hubs_online",
            "Hubs with telemetry of the last ten minutes",
            metrics.hubs_online.clone(),
        );
        registry.register(
            "tasks_due",
            "Background tasks that are due and not done",
            metrics.tasks_due.clone(),
        );
        registry.register_with_unit(
            "task_delay",
            "How long the background task that is due longest has waited",
            Unit::Seconds,
            metrics.task_delay_seconds.clone(),
        );
        registry.register(
            "registration_events_pending",
            "Registration events that are to be delivered, counted up to 100,000",
            metrics.registration_events_pending.clone(),
        );
        registry.register_with_unit(
            "registration_event_age",
            "Time since the oldest registration event that is to be delivered was written",
            Unit::Seconds,
            metrics.registration_event_age_seconds.clone(),
        );
        registry.register(
            "database_connections",
            "Open connections to the database",
            metrics.pool_connections.clone(),
        );
        registry.register(
            "database_idle_connections",
            "Connections to the database that no request uses",
            metrics.pool_idle_connections.clone(),
        );
        Self {
            registry: Arc::new(root),
            ..metrics
        }
    }
}

impl Metrics {
    fn register_retention(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("retention");
        let deleted = self.retention_deleted_records.clone();
        registry.register(
            "deleted_records",
            "Records deleted because of their age",
            deleted,
        );
        let deleted = self.retention_deleted_bytes.clone();
        registry.register_with_unit(
            "deleted",
            "What these records counted",
            Unit::Bytes,
            deleted,
        );
        let dropped = self.retention_dropped_months.clone();
        registry.register(
            "dropped_months",
            "Months of PostgreSQL dropped as a whole",
            dropped,
        );
        registry.register(
            "behind",
            "1 while old records wait to be deleted",
            self.retention_behind.clone(),
        );
        registry.register_with_unit(
            "stored",
            "What tenants store",
            Unit::Bytes,
            self.stored_bytes.clone(),
        );
        let duration = self.retention_batch_duration.clone();
        let help = "How long a batch held the writer of the database";
        registry.register_with_unit("batch_duration", help, Unit::Seconds, duration);
    }

    fn register_history(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("history");
        registry.register(
            "closed_events",
            "BLE events that were moved to files",
            self.history_closed_events.clone(),
        );
        registry.register(
            "read_failures",
            "Reads of files that failed, because of the store or a damaged file",
            self.history_read_failures.clone(),
        );
        registry.register(
            "behind",
            "1 while days that ended long enough ago are not in files",
            self.history_behind.clone(),
        );
        let duration = self.history_batch_duration.clone();
        let help = "How long a batch held the writer of the database";
        registry.register_with_unit("batch_duration", help, Unit::Seconds, duration);
    }

    fn register_reprocessing(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("reprocess");
        registry.register(
            "events",
            "Stored BLE events that were read again",
            self.reprocessed_events.clone(),
        );
        let changed = self.reprocess_changed_events.clone();
        registry.register(
            "changed_events",
            "Those of them that are read otherwise now",
            changed,
        );
        let duration = self.reprocess_batch_duration.clone();
        let help = "How long a batch held the writer of the database";
        registry.register_with_unit("batch_duration", help, Unit::Seconds, duration);
    }

    fn register_scripts(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("script");
        registry.register(
            "runs",
            "Frames and events given to scripts, by result",
            self.script_runs.clone(),
        );
        let help = "Script processes that were killed because they were silent, or that crashed";
        registry.register("process_ends", help, self.script_ends.clone());
        let help = "Time that uploads and requests have waited for scripts";
        registry.register_with_unit("busy", help, Unit::Seconds, self.scripts_busy.clone());
        registry.register(
            "processes",
            "Processes that run scripts",
            self.script_processes.clone(),
        );
    }

    /// Counts a call to an address that a tenant chose.
    pub fn outgoing_call(&self, result: &'static str) {
        self.outgoing_calls
            .get_or_create(&CallResult { result })
            .inc();
    }

    /// Counts a frame or an event that was given to a script.
    pub fn script_run(&self, outcome: &'static str) {
        self.script_runs
            .get_or_create(&ScriptOutcome { outcome })
            .inc();
    }

    pub fn script_process_ended(&self, end: ScriptEnd) {
        self.script_ends
            .get_or_create(&ScriptReason { reason: end.name() })
            .inc();
    }

    /// Sets which hubs flood the service.
    pub fn set_flooding(&self, hubs: impl Iterator<Item = HubUuid>) {
        self.hubs_flooding.clear();
        for hub_uuid in hubs {
            let hub = OfHub {
                hub_uuid: hub_uuid.to_string(),
            };
            self.hubs_flooding.get_or_create(&hub).set(1);
        }
    }

    /// The uploads that this quota refused.
    pub fn quota_refusals(&self, quota: &'static str) -> Counter {
        self.quota_refusals.get_or_create(&Quota { quota }).clone()
    }

    /// Counts a request whose credential was refused with this error code.
    pub fn refused_credential(&self, code: &'static str) {
        self.refused_credentials
            .get_or_create(&RefusalCode { code })
            .inc();
    }

    pub fn retention(&self, kind: &'static str) -> RetentionMetrics {
        let kind = RecordKind { kind };
        RetentionMetrics {
            deleted_records: self.retention_deleted_records.get_or_create(&kind).clone(),
            deleted_bytes: self.retention_deleted_bytes.get_or_create(&kind).clone(),
            dropped_months: self.retention_dropped_months.get_or_create(&kind).clone(),
            is_behind: self.retention_behind.get_or_create(&kind).clone(),
            stored_bytes: self.stored_bytes.get_or_create(&kind).clone(),
        }
    }

    /// The metrics as OpenMetrics text.
    pub fn openmetrics(&self) -> Result<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .map_err(Error::internal)?;
        Ok(text)
    }

    /// The metrics in the text format of Prometheus.
    pub fn classic(&self) -> Result<String> {
        self.openmetrics()
            .map(|text| classic::from_openmetrics(&text))
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// The buckets are finer near the intended duration of a batch of retention or reprocessing.
const BATCH_SECONDS: [f64; 10] = [0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 1.0];

/// 0.5 ms to 16 s.
fn seconds_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.0, 16))
}

/// 2 ms to 8 s: every route has a histogram of its own.
fn request_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.002, 4.0, 7))
}

/// A request in progress, to be counted under its route.
pub struct Measured {
    method: &'static str,
    route: Option<MatchedPath>,
    is_held: bool,
    started_at: Instant,
}

impl Measured {
    pub fn begin(request: &Request) -> Self {
        let method = match request.method().as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "OTHER",
        };
        let route = request.extensions().get::<MatchedPath>().cloned();
        let waits = |query: &str| query.split('&').any(|pair| pair.starts_with("wait="));
        let is_held = request.uri().path().ends_with("/desired-state")
            && request.uri().query().is_some_and(waits);
        Self {
            method,
            route,
            is_held,
            started_at: Instant::now(),
        }
    }

    /// The template of the route, or `none`.
    pub fn route(&self) -> &str {
        self.route.as_ref().map_or("none", MatchedPath::as_str)
    }

    /// Since the request began.
    pub fn duration(&self) -> Duration {
        self.started_at.elapsed()
    }

    pub fn end(self, metrics: &Metrics, status: StatusCode) {
        let seconds = self.duration().as_secs_f64();
        let method = self.method;
        let route = self.route().to_owned();
        let status = status.as_u16();
        metrics
            .requests
            .get_or_create(&Answered {
                method,
                route: route.clone(),
                status,
            })
            .inc();
        match self.is_held {
            true => metrics.held_request_duration.observe(seconds),
            false => metrics
                .request_duration
                .get_or_create(&Route { method, route })
                .observe(seconds),
        }
    }
}
