//! Spans of requests, uploads and deliveries, and the metrics of the service, for an OpenTelemetry
//! collector. Which traces are recorded is decided by their ids, so that every program that a trace
//! goes through decides alike. Without a collector there is no work and no memory.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! span
//! samples
//! collector
//! lib
//! ```

mod collector;
mod samples;
mod span;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hub_base::metrics::Metrics;
use hub_protocol::TraceContext;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::collector::{Collector, SettingsError};
pub use self::span::{Kind, Program, Span, Value};

/// Spans that wait to be sent. More are dropped, and counted.
const QUEUED_SPANS: usize = 8_192;
/// The most spans of one request to the collector.
const BATCH_SPANS: usize = 512;
/// How long spans wait for others.
const BATCH_TIME: Duration = Duration::from_secs(2);
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// The last spans and metrics have so long when the service ends.
const LAST_TIME: Duration = Duration::from_secs(3);

/// Records spans once there is a collector. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces(Arc<OnceLock<Inner>>);

struct Inner {
    /// The share of traces that are recorded, from 0 to 1.
    ratio: f64,
    queue: Sender<Span>,
    metrics: Metrics,
}

/// What sends the recorded spans, to be run beside the service.
pub struct Exporter {
    collector: Collector,
    queue: Receiver<Span>,
    metrics: Metrics,
}

impl Traces {
    /// Records this share of all traces for the collector, from now on.
    pub fn start(&self, collector: Collector, ratio: f64, metrics: Metrics) -> Exporter {
        let (sender, queue) = mpsc::channel(QUEUED_SPANS);
        self.0.get_or_init(|| Inner {
            ratio,
            queue: sender,
            metrics: metrics.clone(),
        });
        Exporter {
            collector,
            queue,
            metrics,
        }
    }

    pub fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    /// The context of a span that begins: a child of what the caller sent, or the first of a trace.
    /// None if it is not recorded.
    pub fn begin(&self, parent: Option<TraceContext>) -> Option<TraceContext> {
        let inner = self.0.get()?;
        let context = match parent {
            Some(parent) if !parent.is_sampled => return None,
            Some(parent) => parent.with_span(span_id()),
            None => TraceContext {
                trace_id: Uuid::new_v4().as_u128(),
                span_id: span_id(),
                is_sampled: true,
            },
        };
        context.is_within(inner.ratio).then_some(context)
    }

    /// Records a span that has ended. Never waits.
    pub fn record(&self, span: Span) {
        let Some(inner) = self.0.get() else {
            return;
        };
        if inner.queue.try_send(span).is_err() {
            inner.metrics.trace_spans_dropped.inc();
        }
    }
}

fn span_id() -> u64 {
    // Not zero: it has the version of the id.
    Uuid::new_v4().as_u64_pair().0
}

impl Exporter {
    /// Sends spans and metrics until the service ends, and then the last ones.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut metrics_due = tokio::time::interval(METRICS_INTERVAL);
        let mut batch = Vec::new();
        while !shutdown.is_cancelled() {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = fill(&mut self.queue, &mut batch) => {
                    shutdown.run_until_cancelled(self.send(&mut batch)).await;
                }
                _ = metrics_due.tick() => {
                    shutdown.run_until_cancelled(self.send_metrics()).await;
                }
            }
        }
        let last = async {
            while let Ok(span) = self.queue.try_recv() {
                batch.push(span);
                if batch.len() == BATCH_SPANS {
                    self.send(&mut batch).await;
                }
            }
            self.send(&mut batch).await;
            self.send_metrics().await;
        };
        let _ = tokio::time::timeout(LAST_TIME, last).await;
    }

    /// Empties the batch, unless it is cancelled.
    async fn send(&mut self, batch: &mut Vec<Span>) {
        if !batch.is_empty() && !self.collector.send_spans(batch.clone()).await {
            let dropped = batch.len() as u64;
            self.metrics.trace_spans_dropped.inc_by(dropped);
        }
        batch.clear();
    }

    async fn send_metrics(&mut self) {
        match self.metrics.openmetrics() {
            Ok(text) => drop(self.collector.send_metrics(&text).await),
            Err(error) => tracing::error!(%error, "the metrics cannot be written"),
        }
    }
}

/// Gathers spans for a while, or until they are many. Cancelled, it keeps those it has.
async fn fill(queue: &mut Receiver<Span>, batch: &mut Vec<Span>) {
    if batch.is_empty() {
        match queue.recv().await {
            Some(span) => batch.push(span),
            None => return std::future::pending().await,
        }
    }
    let more = async {
        while batch.len() < BATCH_SPANS {
            match queue.recv().await {
                Some(span) => batch.push(span),
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(BATCH_TIME, more).await;
}
