//! Metrics for Prometheus at `/metrics`. Labels are few and bounded: a route is labelled with its
//! template, never with the requested path.

mod classic;
mod process;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

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

/// A pool of connections to the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPool {
    pub pool: &'static str,
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
    /// Requests that wait for a desired state to change.
    pub hub_waits: Gauge,
    pub stream_subscribers: Gauge,
    /// Streams closed because the client read too slowly.
    pub stream_slow_readers: Counter,
    /// Hubs with telemetry of the last ten minutes, of all tenants.
    pub hubs_online: Gauge,
    /// Claimed hubs of all tenants.
    pub hubs: Gauge,
    /// Tasks that are due and not done.
    pub tasks_due: Family<InLane, Gauge>,
    /// How long the task that is due longest has waited.
    pub task_delay_seconds: Family<InLane, Gauge>,
    pub pool_connections: Family<OfPool, Gauge>,
    pub pool_idle_connections: Family<OfPool, Gauge>,
}

impl Metrics {
    pub fn new() -> Self {
        let mut root = Registry::default();
        root.register_collector(Box::new(Process::new()));
        let registry = root.sub_registry_with_prefix("hub_cloud");
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
            hub_waits: Gauge::default(),
            stream_subscribers: Gauge::default(),
            stream_slow_readers: Counter::default(),
            hubs_online: Gauge::default(),
            hubs: Gauge::default(),
            tasks_due: Family::default(),
            task_delay_seconds: Family::default(),
            pool_connections: Family::default(),
            pool_idle_connections: Family::default(),
        };
        registry.register("build", "The program", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
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
        registry.register("ingest_queued", "Uploads waiting for the writer", metrics.ingest_queued.clone());
        registry.register("ingest_commits", "Transactions of the writer", metrics.ingest_commits.clone());
        registry.register("ingest_uploads", "Uploads processed by the writer", metrics.ingest_uploads.clone());
        registry.register("ingest_records", "Records stored by the writer", metrics.ingest_records.clone());
        registry.register_with_unit(
            "ingest_commit_duration",
            "Duration of a transaction of the writer",
            Unit::Seconds,
            metrics.ingest_commit_duration.clone(),
        );
        registry.register("hub_waits", "Hubs waiting for their desired state to change", metrics.hub_waits.clone());
        registry.register("stream_subscribers", "Open event streams", metrics.stream_subscribers.clone());
        registry.register(
            "stream_slow_readers",
            "Streams closed because the client read too slowly",
            metrics.stream_slow_readers.clone(),
        );
        registry.register("hubs", "Claimed hubs", metrics.hubs.clone());
        registry.register("hubs_online", "Hubs with telemetry of the last ten minutes", metrics.hubs_online.clone());
        registry.register("tasks_due", "Background tasks that are due and not done", metrics.tasks_due.clone());
        registry.register_with_unit(
            "task_delay",
            "How long the background task that is due longest has waited",
            Unit::Seconds,
            metrics.task_delay_seconds.clone(),
        );
        registry.register("database_connections", "Open connections to the database", metrics.pool_connections.clone());
        registry.register(
            "database_idle_connections",
            "Connections to the database that no request uses",
            metrics.pool_idle_connections.clone(),
        );
        Self { registry: Arc::new(root), ..metrics }
    }
}

impl Metrics {
    /// The metrics as OpenMetrics text.
    pub fn openmetrics(&self) -> Result<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).map_err(Error::internal)?;
        Ok(text)
    }

    /// The metrics in the text format of Prometheus.
    pub fn classic(&self) -> Result<String> {
        self.openmetrics().map(|text| classic::from_openmetrics(&text))
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// 0.5 ms to 16 s.
fn seconds_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.0, 16))
}

/// 2 ms to 8 s: there is one for each route.
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
        let is_held = request.uri().path().ends_with("/desired-state") && request.uri().query().is_some_and(waits);
        Self { method, route, is_held, started_at: Instant::now() }
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
        metrics.requests.get_or_create(&Answered { method, route: route.clone(), status }).inc();
        match self.is_held {
            true => metrics.held_request_duration.observe(seconds),
            false => metrics.request_duration.get_or_create(&Route { method, route }).observe(seconds),
        }
    }
}
