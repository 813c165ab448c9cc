//! The states of pipelines, lanes, deliveries and retries, as they are shown and stored.

use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a pipeline works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PipelineStatus {
    /// It delivers what there is.
    Running,
    /// It was paused.
    Disabled,
    /// Its receiver fails; it is tried again now and then.
    OpenCircuit,
    /// Its receiver has failed for too long, or refuses for good; it waits for somebody to resume
    /// it.
    Suspended,
    /// This version of the service cannot run its stored definition; `lastError` says why.
    Invalid,
}

/// How far a position in the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "PipelineReplayStatus")]
pub enum LaneStatus {
    /// It is worked on, or waits for its turn.
    Running,
    /// The receiver fails; it is tried again now and then.
    OpenCircuit,
    /// It waits for somebody to resume the pipeline.
    Suspended,
    /// The definition of the pipeline cannot be run.
    Invalid,
    /// The pipeline was paused.
    Disabled,
    /// It is done.
    Finished,
    /// It was cancelled.
    Cancelled,
}

text_enum!(LaneStatus {
    Running = "RUNNING",
    OpenCircuit = "OPEN_CIRCUIT",
    Suspended = "SUSPENDED",
    Invalid = "INVALID",
    Disabled = "DISABLED",
    Finished = "FINISHED",
    Cancelled = "CANCELLED",
});

impl LaneStatus {
    /// The status of a new lane.
    pub(crate) const fn of_new(enabled: bool) -> Self {
        if enabled {
            Self::Running
        } else {
            Self::Disabled
        }
    }

    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }

    /// The status of the pipeline whose LIVE lane this is.
    pub(crate) const fn of_pipeline(self, enabled: bool) -> PipelineStatus {
        match self {
            _ if !enabled => PipelineStatus::Disabled,
            Self::Running | Self::Finished => PipelineStatus::Running,
            Self::OpenCircuit => PipelineStatus::OpenCircuit,
            Self::Suspended => PipelineStatus::Suspended,
            Self::Invalid => PipelineStatus::Invalid,
            Self::Disabled | Self::Cancelled => PipelineStatus::Disabled,
        }
    }
}

/// Lanes by what they are for, as they are stored.
pub const LIVE: &str = "LIVE";
pub const REPLAY: &str = "REPLAY";
pub const RETRY: &str = "RETRY";

/// What came of an attempt to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryOutcome {
    /// It is under way. Attempts are recorded when they have ended, so none is.
    Pending,
    /// The receiver took the message.
    Delivered,
    /// It failed; another attempt follows.
    Failed,
    /// It failed, and the message is a dead letter.
    Dead,
}

text_enum!(DeliveryOutcome { Pending = "PENDING", Delivered = "DELIVERED", Failed = "FAILED", Dead = "DEAD" });

/// The revision with which a dead letter is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "RetryRevision")]
pub enum Retry {
    /// The one that made it.
    Original,
    /// The one in force.
    #[default]
    Current,
}

text_enum!(Retry { Original = "ORIGINAL", Current = "CURRENT" });
