//! Jobs: what a hub is to do once, and what it reports about it. A hub runs the jobs of its desired
//! state in their order, one at a time. Device commands wait for no other job.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::command::DeviceCommand;
use crate::{AppUuid, HubJobUuid, ReleaseUuid, Timestamp, text_enum};

text_enum!(HubJobType {
    AppInstall = "APP_INSTALL",
    AppRemove = "APP_REMOVE",
    SelfUpdate = "SELF_UPDATE",
    DeviceCommand = "DEVICE_COMMAND",
    Move = "MOVE",
});
text_enum!(HubJobStatus {
    Pending = "PENDING",
    Dispatched = "DISPATCHED",
    Running = "RUNNING",
    Succeeded = "SUCCEEDED",
    Failed = "FAILED",
    Cancelled = "CANCELLED",
    Expired = "EXPIRED",
});
text_enum!(InstalledAppState { Running = "RUNNING", Stopped = "STOPPED", Failed = "FAILED" });

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubJobType {
    /// Installs a release of an app.
    AppInstall,
    /// Removes an app.
    AppRemove,
    /// Updates the agent.
    SelfUpdate,
    /// Connects to a device.
    DeviceCommand,
    /// Sends the hub to another service of this software.
    Move,
}

/// The status of a job: `PENDING`, `DISPATCHED`, `RUNNING`, then `SUCCEEDED` or `FAILED`; from any
/// of the first three also `CANCELLED` or `EXPIRED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubJobStatus {
    /// Not dispatched to the hub yet.
    Pending,
    /// Dispatched to the hub.
    Dispatched,
    /// The hub has started it.
    Running,
    /// The hub did it.
    Succeeded,
    /// The hub could not do it.
    Failed,
    /// An operator cancelled it.
    Cancelled,
    /// Its deadline passed.
    Expired,
}

impl HubJobStatus {
    /// Whether the status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Expired
        )
    }
}

/// A job that is not finished, as the desired state lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredJob {
    /// The job.
    pub hub_job_uuid: HubJobUuid,
    /// What it does.
    #[serde(rename = "type")]
    pub job_type: HubJobType,
    /// The app to install or remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<AppUuid>,
    /// The release to install: `GET /v1/apps/{releaseUuid}/manifest`, or for a self-update `GET
    /// /v1/agent/releases/latest?releaseUuid=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_uuid: Option<ReleaseUuid>,
    /// When the job expires, whether the hub has started it or not.
    pub deadline_at: Timestamp,
    /// When in the day, in the time zone of the hub, the change may be applied; at any time when
    /// absent. Downloads need not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,
    /// Whether to try a release that failed on this hub before.
    #[serde(default)]
    pub force: bool,
    /// What to do with a device. A command that was begun is never begun again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<DeviceCommand>,
    /// Where a `MOVE` sends the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub move_to: Option<ServiceMove>,
}

/// The service to which a `MOVE` sends a hub.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceMove {
    /// The URL of that service, such as `https://hubs.example.com`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 500), regex(pattern = crate::patterns::FILLED_LINE)))]
    pub service_url: String,
    /// A claim code of that service, with which the hub claims there.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::CLAIM_CODE)))]
    pub claim_code: String,
}

/// Whether a host of a URL, an IPv6 address in brackets, is this machine, or has an address of a
/// private network: TLS is not required there.
pub fn is_near(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

/// Without the claim code, which is a secret.
impl std::fmt::Debug for ServiceMove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceMove")
            .field("service_url", &self.service_url)
            .finish_non_exhaustive()
    }
}

/// A part of the day, in the time zone of the hub. It spans midnight if `end` is the smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// When it begins, as `HH:MM`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::TIME_OF_DAY)))]
    pub start: String,
    /// When it ends, as `HH:MM`; another time than `start`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::TIME_OF_DAY)))]
    pub end: String,
}

impl MaintenanceWindow {
    /// Whether the window is open at a minute of the day; `None` if the window is malformed.
    pub fn is_open(&self, minute_of_day: u32) -> Option<bool> {
        let (start, end) = (minute(&self.start)?, minute(&self.end)?);
        Some(match start <= end {
            true => (start..end).contains(&minute_of_day),
            false => minute_of_day >= start || minute_of_day < end,
        })
    }
}

/// Minutes since midnight of `HH:MM`.
pub fn minute(text: &str) -> Option<u32> {
    let (hours, minutes) = text
        .split_once(':')
        .filter(|_| text.len() == 5 && text.is_ascii())?;
    let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
    (hours < 24 && minutes < 60 && !text.contains('+')).then_some(hours * 60 + minutes)
}

/// What happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubJobEventKind {
    /// The hub has accepted the job.
    Accepted,
    /// The hub has made progress.
    Progress,
    /// A remark that changes no status.
    Log,
    /// The job is done.
    Succeeded,
    /// The job failed.
    Failed,
}

/// `POST /v1/hubs/{hubUuid}/jobs/{hubJobUuid}/events`: what happened to a job. Sent until it is
/// answered; the same `eventUuid` is stored once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubJobEventRequest {
    /// Identifies the event.
    pub event_uuid: Uuid,
    /// What happened.
    pub kind: HubJobEventKind,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 2000), regex(pattern = crate::patterns::LINES)))]
    pub message: Option<String>,
    /// Percent done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub progress: Option<i64>,
    /// An object of at most 16 KiB with what else there is to know. Of a failure, `reason` is a
    /// stable word such as `DIGEST_MISMATCH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("type" = ["object", "null"])))]
    pub detail: Option<Value>,
    /// When it happened, by the clock of the hub.
    pub occurred_at: Timestamp,
}

/// The reasons of failures whose cause passes: the network, the service, the disk or the helper was
/// away until the deadline of the job. They say nothing about the release.
pub const PASSING_REASONS: [&str; 4] = [
    "DOWNLOAD_FAILED",
    "EXPIRED",
    "HELPER_UNAVAILABLE",
    "NO_SPACE",
];

/// `PUT /v1/hubs/{hubUuid}/installed-apps`: every app that the hub has now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstalledApps {
    /// All apps.
    #[cfg_attr(feature = "schema", schemars(length(max = 256)))]
    pub apps: Vec<InstalledApp>,
}

/// An app on a hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstalledApp {
    /// The app.
    pub app_uuid: AppUuid,
    /// The release of it that is installed.
    pub release_uuid: ReleaseUuid,
    /// The version of that release.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 64), regex(pattern = crate::patterns::FILLED_LINE)))]
    pub version: String,
    /// Whether it runs.
    pub state: InstalledAppState,
    /// Why it is in that state, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1000), regex(pattern = crate::patterns::LINES)))]
    pub message: Option<String>,
    /// When it entered its state, by the clock of the hub.
    pub since: Timestamp,
    /// How often systemd has restarted it since it was installed.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub restarts: i64,
}

/// Whether an app on a hub runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InstalledAppState {
    /// It runs.
    Running,
    /// It ended, and is not restarted.
    Stopped,
    /// It ends again and again.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_wire() {
        use HubJobStatus::{Cancelled, Dispatched, Expired, Failed, Pending, Running, Succeeded};
        for status in [
            Pending, Dispatched, Running, Succeeded, Failed, Cancelled, Expired,
        ] {
            assert_eq!(serde_json::to_value(status).expect("a word"), status.name());
            assert_eq!(HubJobStatus::try_from(status.name().to_owned()), Ok(status));
        }
        use HubJobType::{AppInstall, AppRemove, DeviceCommand, Move, SelfUpdate};
        for kind in [AppInstall, AppRemove, SelfUpdate, DeviceCommand, Move] {
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.name());
        }
        for state in [
            InstalledAppState::Running,
            InstalledAppState::Stopped,
            InstalledAppState::Failed,
        ] {
            assert_eq!(serde_json::to_value(state).expect("a word"), state.name());
        }
        assert!(HubJobType::try_from("app_install".to_owned()).is_err());
    }

    #[test]
    fn debug_output_of_a_move_has_no_claim_code() {
        let to = ServiceMove {
            service_url: "https://hubs.example.com".into(),
            claim_code: "7K3M-9QXT-0V4B-HD2R".into(),
        };
        let text = format!("{to:?}");
        assert!(
            text.contains("hubs.example.com") && !text.contains("7K3M"),
            "{text}"
        );
    }

    #[test]
    fn window_may_span_midnight() {
        let window = |start: &str, end: &str| MaintenanceWindow {
            start: start.into(),
            end: end.into(),
        };
        let night = window("22:30", "04:00");
        assert_eq!(night.is_open(22 * 60 + 29), Some(false));
        assert_eq!(night.is_open(22 * 60 + 30), Some(true));
        assert_eq!(night.is_open(3 * 60 + 59), Some(true));
        assert_eq!(night.is_open(4 * 60), Some(false));
        assert_eq!(window("02:00", "04:00").is_open(180), Some(true));
        assert_eq!(window("02:00", "04:00").is_open(240), Some(false));
        for malformed in ["2:00", "24:00", "12:60", "ab:cd", "+1:00", "12:00:00", ""] {
            assert_eq!(window(malformed, "04:00").is_open(0), None, "{malformed}");
        }
    }
}
