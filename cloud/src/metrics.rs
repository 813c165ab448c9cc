//! Metrics for Prometheus at `/metrics`. Labels are few and bounded: a route is labelled with its
//! template, never with the requested path.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Route, Counter>,
    request_duration: Histogram,
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
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("hub_cloud");
        let metrics = Self {
            registry: Arc::default(),
            requests: Family::default(),
            request_duration: seconds_histogram(),
            ingest_queued: Gauge::default(),
            ingest_commits: Counter::default(),
            ingest_uploads: Counter::default(),
            ingest_records: Counter::default(),
            ingest_commit_duration: seconds_histogram(),
            hub_waits: Gauge::default(),
            stream_subscribers: Gauge::default(),
            stream_slow_readers: Counter::default(),
        };
        registry.register("http_requests", "Requests served", metrics.requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time from the request to the head of its response",
            Unit::Seconds,
            metrics.request_duration.clone(),
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
        Self { registry: Arc::new(registry), ..metrics }
    }
}

impl Metrics {
    /// The metrics as OpenMetrics text.
    pub fn encode(&self) -> Result<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).map_err(Error::internal)?;
        Ok(text)
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

/// A request in progress, to be counted under its route.
pub struct Measured {
    method: &'static str,
    route: Option<MatchedPath>,
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
        Self { method, route: request.extensions().get::<MatchedPath>().cloned(), started_at: Instant::now() }
    }

    pub fn end(self, metrics: &Metrics, status: StatusCode) {
        metrics.request_duration.observe(self.started_at.elapsed().as_secs_f64());
        let route = self.route.as_ref().map_or("none", MatchedPath::as_str).to_owned();
        metrics.requests.get_or_create(&Route { method: self.method, route, status: status.as_u16() }).inc();
    }
}
