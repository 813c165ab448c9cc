//! Jobs: what a hub is to do once, and what it tells about it. A hub does the jobs of its desired state in their order, one at a time.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{AppUuid, HubJobUuid, ReleaseUuid, Timestamp};

/// The words of an enumeration as a database keeps them: the same as on the wire.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $type {
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }

        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(word: String) -> Result<Self, String> {
                match word.as_str() {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!(concat!("{} is no ", stringify!($type)), word)),
                }
            }
        }
    };
}

words!(HubJobType { AppInstall = "APP_INSTALL", AppRemove = "APP_REMOVE", SelfUpdate = "SELF_UPDATE" });
words!(HubJobStatus {
    Pending = "PENDING",
    Dispatched = "DISPATCHED",
    Running = "RUNNING",
    Succeeded = "SUCCEEDED",
    Failed = "FAILED",
    Cancelled = "CANCELLED",
    Expired = "EXPIRED",
});
words!(InstalledAppState { Running = "RUNNING", Stopped = "STOPPED", Failed = "FAILED" });

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubJobType {
    AppInstall,
    AppRemove,
    SelfUpdate,
}

/// `PENDING -> DISPATCHED -> RUNNING -> SUCCEEDED | FAILED`, and from any of the first three `CANCELLED` or `EXPIRED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubJobStatus {
    /// The hub has not been told yet.
    Pending,
    /// The hub was told.
    Dispatched,
    /// The hub has begun.
    Running,
    Succeeded,
    Failed,
    Cancelled,
    /// Its deadline passed.
    Expired,
}

impl HubJobStatus {
    /// Whether nothing can happen to the job any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled | Self::Expired)
    }
}

/// A job, as the desired state's `jobs` has it: only those that are not over, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredJob {
    pub hub_job_uuid: HubJobUuid,
    #[serde(rename = "type")]
    pub job_type: HubJobType,
    /// The app to install or remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<AppUuid>,
    /// What to install: `GET /v1/apps/{releaseUuid}/manifest`, or for a self-update `GET /v1/agent/releases/latest?releaseUuid=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_uuid: Option<ReleaseUuid>,
    /// After this the job is over, whether the hub got to it or not.
    pub deadline_at: Timestamp,
    /// When in the day, by the hub's own time zone, the change may be made; at any time when absent. Downloads need not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,
    /// A release that failed on this hub before is tried again only when this says so.
    #[serde(default)]
    pub force: bool,
}

/// `start` to `end`, `HH:MM` each, over midnight if `end` is the smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    pub start: String,
    pub end: String,
}

impl MaintenanceWindow {
    /// Whether the window is open at a minute of the day; nothing when it is malformed.
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
    let (hours, minutes) = text.split_once(':').filter(|_| text.len() == 5 && text.is_ascii())?;
    let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
    (hours < 24 && minutes < 60 && !text.contains('+')).then_some(hours * 60 + minutes)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubJobEventKind {
    Accepted,
    Progress,
    Log,
    Succeeded,
    Failed,
}

/// `POST /v1/hubs/{hubUuid}/jobs/{hubJobUuid}/events`: what happened to a job. Sent until it is answered; the same `event_uuid` is stored once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubJobEventRequest {
    pub event_uuid: Uuid,
    pub kind: HubJobEventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Percent done, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<i64>,
    /// What else there is to know; of a failure, `reason` is a stable word such as `DIGEST_MISMATCH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
    pub occurred_at: Timestamp,
}

/// `PUT /v1/hubs/{hubUuid}/installed-apps`: every app the hub has now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstalledApps {
    /// At most 256.
    pub apps: Vec<InstalledApp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstalledApp {
    pub app_uuid: AppUuid,
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub state: InstalledAppState,
    /// Why it is in that state, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// In its present state since then.
    pub since: Timestamp,
    /// How often systemd has started it again since it was installed.
    #[serde(default)]
    pub restarts: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InstalledAppState {
    Running,
    /// It ended, and is not started again.
    Stopped,
    /// It ends again and again.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_wire() {
        use HubJobStatus::{Cancelled, Dispatched, Expired, Failed, Pending, Running, Succeeded};
        for status in [Pending, Dispatched, Running, Succeeded, Failed, Cancelled, Expired] {
            assert_eq!(serde_json::to_value(status).expect("a word"), status.name());
            assert_eq!(HubJobStatus::try_from(status.name().to_owned()), Ok(status));
        }
        for kind in [HubJobType::AppInstall, HubJobType::AppRemove, HubJobType::SelfUpdate] {
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.name());
        }
        for state in [InstalledAppState::Running, InstalledAppState::Stopped, InstalledAppState::Failed] {
            assert_eq!(serde_json::to_value(state).expect("a word"), state.name());
        }
        assert!(HubJobType::try_from("app_install".to_owned()).is_err());
    }

    #[test]
    fn a_window_may_go_over_midnight() {
        let window = |start: &str, end: &str| MaintenanceWindow { start: start.into(), end: end.into() };
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
