//! Metrics of pipelines. None is by tenant or pipeline: there is no bound to those.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempted {
    status: &'static str,
}

/// Pipelines that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WithStatus {
    status: &'static str,
}

#[derive(Clone)]
pub struct PipelineMetrics {
    /// The age of the oldest event that a running pipeline is not done with.
    pub lag_seconds: Gauge,
    /// Lanes that this replica works on.
    pub lanes: Gauge,
    /// Slots in use.
    pub slots: Gauge,
    pub dead_letters: Counter,
    pipelines: Family<WithStatus, Gauge>,
    attempts: Family<Attempted, Counter>,
    events: Counter,
    settle_duration: Histogram,
    settled_lanes: Counter,
}

impl PipelineMetrics {
    pub fn new() -> Self {
        let attempts = Family::<Attempted, Counter>::default();
        // There from the start, so that the first one raises a rate.
        for status in ["DELIVERED", "FAILED", "DEAD"] {
            drop(attempts.get_or_create(&Attempted { status }));
        }
        Self {
            lag_seconds: Gauge::default(),
            pipelines: Family::default(),
            lanes: Gauge::default(),
            slots: Gauge::default(),
            dead_letters: Counter::default(),
            attempts,
            events: Counter::default(),
            settle_duration: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            settled_lanes: Counter::default(),
        }
    }

    /// An attempt to deliver a message of so many events: DELIVERED, FAILED or DEAD.
    pub fn attempt(&self, status: &'static str, events: usize) {
        self.attempts.get_or_create(&Attempted { status }).inc();
        if status == "DELIVERED" {
            self.events.inc_by(events as u64);
        }
    }

    /// How many pipelines have a status.
    pub fn count(&self, status: &'static str, pipelines: i64) {
        self.pipelines
            .get_or_create(&WithStatus { status })
            .set(pipelines);
    }

    /// A transaction stored what lanes have done.
    pub fn settled(&self, took: Duration, lanes: usize) {
        self.settle_duration.observe(took.as_secs_f64());
        self.settled_lanes.inc_by(lanes as u64);
    }

    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("pipeline");
        registry.register("states", "Pipelines by status", self.pipelines.clone());
        let help = "Age of the oldest event that a running pipeline is not done with";
        registry.register("lag_seconds", help, self.lag_seconds.clone());
        registry.register(
            "lanes",
            "Lanes that this replica works on",
            self.lanes.clone(),
        );
        registry.register(
            "slots_used",
            "Slots for messages in use",
            self.slots.clone(),
        );
        registry.register(
            "dead_letters",
            "Messages that went to the dead letters",
            self.dead_letters.clone(),
        );
        registry.register(
            "attempts",
            "Attempts to deliver a message",
            self.attempts.clone(),
        );
        registry.register("delivered_events", "Events delivered", self.events.clone());
        let help = "Time to store what lanes have done";
        registry.register_with_unit(
            "settle_duration",
            help,
            Unit::Seconds,
            self.settle_duration.clone(),
        );
        registry.register(
            "settled_lanes",
            "Lanes of which news were stored",
            self.settled_lanes.clone(),
        );
    }
}
