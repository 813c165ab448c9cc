//! The types of notices, their channels, and their thresholds.

use std::fmt;

use hub_core::http::check::Check;
use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The type of a notice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NoticeType {
    /// A hub has not been in contact for `threshold` minutes; 10 when absent.
    HubOffline,
    /// A hub that was offline for `threshold` minutes is back; 10 when absent.
    HubOnline,
    /// No adapter of a hub has received anything for `threshold` minutes; 5 when absent.
    HubBlind,
    /// A job of a hub has failed or expired.
    JobFailed,
    /// The rollout of a release was halted.
    RolloutHalted,
    /// A device has been silent for `threshold` minutes more than usual; 5 when absent.
    DeviceSilent,
    /// The battery of a device has `threshold` percent or less; 15 when absent.
    DeviceBatteryLow,
    /// A value of a device is above or below `threshold`.
    DeviceThreshold,
    /// A pipeline has not delivered for `threshold` minutes; 60 when absent.
    PipelineFailing,
    /// A user has withdrawn their consent.
    ConsentWithdrawn,
    /// The certificate of a hub expires in `threshold` days; 14 when absent.
    CertificateExpiring,
    /// Two machines seem to have the credentials of one hub.
    HubCloned,
    /// A hub uploads far more than its share of the tenant's limit.
    HubFlooding,
    /// A hub was away for so long that it cannot refresh its token in `threshold` days; 7 when
    /// absent.
    HubCredentialsExpiring,
    /// An API key expires in `threshold` days; 14 when absent.
    ApiKeyExpiring,
    /// A vulnerability was found in what hubs run.
    VulnerabilityFound,
    /// The support of a device model, or of a release that hubs run, ends in 90 days, in 30 days,
    /// or has ended.
    SupportEnding,
    /// The server of Dependency-Track has taken nothing for `threshold` minutes, 60 when absent; or
    /// it refuses a document.
    DependencyTrackFailing,
}

text_enum!(NoticeType {
    HubOffline = "HUB_OFFLINE",
    HubOnline = "HUB_ONLINE",
    HubBlind = "HUB_BLIND",
    JobFailed = "JOB_FAILED",
    RolloutHalted = "ROLLOUT_HALTED",
    DeviceSilent = "DEVICE_SILENT",
    DeviceBatteryLow = "DEVICE_BATTERY_LOW",
    DeviceThreshold = "DEVICE_THRESHOLD",
    PipelineFailing = "PIPELINE_FAILING",
    ConsentWithdrawn = "CONSENT_WITHDRAWN",
    CertificateExpiring = "CERTIFICATE_EXPIRING",
    HubCloned = "HUB_CLONED",
    HubFlooding = "HUB_FLOODING",
    HubCredentialsExpiring = "HUB_CREDENTIALS_EXPIRING",
    ApiKeyExpiring = "API_KEY_EXPIRING",
    VulnerabilityFound = "VULNERABILITY_FOUND",
    SupportEnding = "SUPPORT_ENDING",
    DependencyTrackFailing = "DEPENDENCY_TRACK_FAILING",
});

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Hub,
    Device,
    Pipeline,
    Rollout,
    Person,
    ApiKey,
    Vulnerability,
    /// A device model or a release.
    Product,
}

/// The channel of a notice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Channel {
    /// The members of the tenant see it in their notifications.
    InApp,
    /// A mail.
    Email,
    /// A signed message to a URL.
    Webhook,
}

text_enum!(Channel { InApp = "IN_APP", Email = "EMAIL", Webhook = "WEBHOOK" });

/// The severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Severity {
    /// For information.
    Info,
    /// Attention is advisable.
    Warning,
    /// A function has stopped, and does not resume by itself.
    Critical,
}

text_enum!(Severity { Info = "INFO", Warning = "WARNING", Critical = "CRITICAL" });

/// The threshold of a notice: a number, whose unit is that of the type; of DEVICE_THRESHOLD a
/// quantity with its bounds, or a number, above which a temperature in degrees Celsius must not be.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Threshold {
    Number(f64),
    Bounds(Bounds),
}

// A derived implementation would not name the member of the bounds that is at fault.
impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrBounds;
        impl<'de> Visitor<'de> for NumberOrBounds {
            type Value = Threshold;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number, or an object with a quantity and its bounds")
            }

            fn visit_f64<E>(self, number: f64) -> Result<Threshold, E> {
                Ok(Threshold::Number(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Threshold, E> {
                Ok(Threshold::Number(number as f64))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Threshold, E> {
                Ok(Threshold::Number(number as f64))
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Threshold, A::Error> {
                Bounds::deserialize(MapAccessDeserializer::new(members)).map(Threshold::Bounds)
            }
        }
        deserializer.deserialize_any(NumberOrBounds)
    }
}

/// The bounds of a quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// The quantity, such as `temperature`.
    #[schemars(length(min = 1, max = 64))]
    pub quantity: String,
    /// The upper bound: a notice is raised above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The lower bound: a notice is raised below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

const MAX_MINUTES: f64 = 7.0 * 24.0 * 60.0;
/// The limit of the values of all quantities.
const MAX_VALUE: f64 = 1e12;

impl NoticeType {
    pub const fn severity(self) -> Severity {
        match self {
            Self::HubOnline => Severity::Info,
            Self::RolloutHalted | Self::PipelineFailing | Self::HubCloned => Severity::Critical,
            _ => Severity::Warning,
        }
    }

    /// What of a tenant the notice is about.
    pub const fn subject(self) -> Subject {
        match self {
            Self::HubOffline
            | Self::HubOnline
            | Self::HubBlind
            | Self::JobFailed
            | Self::CertificateExpiring
            | Self::HubCloned
            | Self::HubFlooding
            | Self::HubCredentialsExpiring => Subject::Hub,
            Self::DeviceSilent | Self::DeviceBatteryLow | Self::DeviceThreshold => Subject::Device,
            Self::PipelineFailing => Subject::Pipeline,
            Self::RolloutHalted => Subject::Rollout,
            Self::ConsentWithdrawn => Subject::Person,
            Self::ApiKeyExpiring => Subject::ApiKey,
            Self::VulnerabilityFound | Self::DependencyTrackFailing => Subject::Vulnerability,
            Self::SupportEnding => Subject::Product,
        }
    }

    /// Whether the condition is silence. Silence causes no notice right after an outage of the
    /// service itself.
    pub const fn is_of_silence(self) -> bool {
        matches!(
            self,
            Self::HubOffline | Self::HubOnline | Self::DeviceSilent
        )
    }

    /// The least, the greatest and the default of a threshold that is a number.
    const fn range(self) -> Option<(f64, f64, f64)> {
        match self {
            Self::HubOffline | Self::HubOnline => Some((1.0, MAX_MINUTES, 10.0)),
            Self::HubBlind | Self::DeviceSilent => Some((1.0, MAX_MINUTES, 5.0)),
            Self::PipelineFailing | Self::DependencyTrackFailing => Some((1.0, MAX_MINUTES, 60.0)),
            Self::DeviceBatteryLow => Some((1.0, 99.0, 15.0)),
            Self::CertificateExpiring | Self::ApiKeyExpiring => Some((1.0, 60.0, 14.0)),
            Self::HubCredentialsExpiring => Some((1.0, 60.0, 7.0)),
            Self::DeviceThreshold
            | Self::JobFailed
            | Self::RolloutHalted
            | Self::ConsentWithdrawn
            | Self::HubCloned
            | Self::HubFlooding
            | Self::VulnerabilityFound
            | Self::SupportEnding => None,
        }
    }

    /// The threshold of a type whose threshold is a number.
    pub fn number(self, threshold: Option<&Threshold>) -> f64 {
        let (least, greatest, default) = self.range().unwrap_or((0.0, 0.0, 0.0));
        match threshold {
            Some(Threshold::Number(number)) => number.clamp(least, greatest),
            Some(Threshold::Bounds(_)) | None => default,
        }
    }

    /// The same in seconds, of a type whose threshold is in minutes.
    pub fn hold_secs(self, threshold: Option<&Threshold>) -> i64 {
        match self {
            Self::HubOffline
            | Self::HubOnline
            | Self::HubBlind
            | Self::DeviceSilent
            | Self::PipelineFailing
            | Self::DependencyTrackFailing => {
                // A whole week has few seconds.
                (self.number(threshold) * 60.0) as i64
            }
            _ => 0,
        }
    }

    /// The bounds of DEVICE_THRESHOLD.
    pub fn bounds(threshold: Option<&Threshold>) -> Option<Bounds> {
        match threshold? {
            Threshold::Bounds(bounds) => Some(bounds.clone()),
            Threshold::Number(number) => Some(Bounds {
                quantity: "temperature".to_owned(),
                above: Some(*number),
                below: None,
            }),
        }
    }

    /// Whether the members of a tenant see such notices unless somebody has turned them off. No
    /// value is out of bounds before somebody has set the bounds.
    pub fn is_on_by_default(self) -> bool {
        self != Self::DeviceThreshold
    }

    /// Whether such a notice is also for the person whose hub or device it is about.
    pub const fn is_for_owners(self) -> bool {
        matches!(
            self,
            Self::HubOffline
                | Self::HubOnline
                | Self::HubBlind
                | Self::JobFailed
                | Self::DeviceSilent
                | Self::DeviceBatteryLow
                | Self::DeviceThreshold
                | Self::ConsentWithdrawn
        )
    }

    pub fn check(
        self,
        check: &mut Check,
        field: &str,
        threshold: Option<&Threshold>,
        is_enabled: bool,
    ) {
        let is_number = |number: f64| number.is_finite() && number.abs() <= MAX_VALUE;
        match (threshold, self.range()) {
            (None, _) => {
                let is_missing = self == Self::DeviceThreshold && is_enabled;
                check.that(!is_missing, field, "is required of DEVICE_THRESHOLD");
            }
            (Some(Threshold::Number(number)), Some((least, greatest, _))) => {
                let message = format!("must be from {least} to {greatest}");
                check.that((least..=greatest).contains(number), field, message);
            }
            (Some(Threshold::Number(number)), None) if self == Self::DeviceThreshold => {
                check.that(
                    is_number(*number),
                    field,
                    "must be a number that a quantity can have",
                );
            }
            (Some(Threshold::Bounds(bounds)), None) if self == Self::DeviceThreshold => {
                let is_known = hub_adverts::quantity::quantity(&bounds.quantity).is_some();
                check.that(
                    is_known,
                    format!("{field}.quantity"),
                    "must be a known quantity",
                );
                let has_one = bounds.above.is_some() || bounds.below.is_some();
                check.that(has_one, field, "must have `above` or `below`");
                let are_numbers = [bounds.above, bounds.below]
                    .into_iter()
                    .flatten()
                    .all(is_number);
                check.that(
                    are_numbers,
                    field,
                    "must have numbers that a quantity can have",
                );
            }
            (Some(Threshold::Bounds(_)), Some(_)) => check.that(false, field, "must be a number"),
            (Some(_), None) => {
                check.that(false, field, "must be absent: this type has no threshold")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(notice_type: NoticeType, threshold: Option<serde_json::Value>) -> bool {
        let threshold = threshold.map(|json| serde_json::from_value(json).expect("a threshold"));
        let mut check = Check::new();
        notice_type.check(&mut check, "threshold", threshold.as_ref(), true);
        check.done().is_ok()
    }

    #[test]
    fn thresholds_are_checked_by_type() {
        use serde_json::json;
        for (notice_type, threshold, expected) in [
            (NoticeType::HubOffline, None, true),
            (NoticeType::HubOffline, Some(json!(30)), true),
            (NoticeType::HubOffline, Some(json!(0)), false),
            (
                NoticeType::HubOffline,
                Some(json!({"quantity": "temperature", "above": 3})),
                false,
            ),
            (NoticeType::JobFailed, Some(json!(1)), false),
            (NoticeType::DeviceBatteryLow, Some(json!(100)), false),
            (NoticeType::DeviceThreshold, None, false),
            (NoticeType::DeviceThreshold, Some(json!(8.5)), true),
            (
                NoticeType::DeviceThreshold,
                Some(json!({"quantity": "temperature", "above": 8, "below": 2})),
                true,
            ),
            (
                NoticeType::DeviceThreshold,
                Some(json!({"quantity": "temperature"})),
                false,
            ),
            (
                NoticeType::DeviceThreshold,
                Some(json!({"quantity": "mood", "above": 8})),
                false,
            ),
        ] {
            assert_eq!(
                is_valid(notice_type, threshold.clone()),
                expected,
                "{notice_type:?} {threshold:?}"
            );
        }
        assert_eq!(
            NoticeType::HubOffline.hold_secs(Some(&Threshold::Number(30.0))),
            1800
        );
        assert_eq!(NoticeType::HubOffline.hold_secs(None), 600);
    }
}
