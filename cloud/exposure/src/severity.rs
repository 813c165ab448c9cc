//! The severity of a vulnerability.

use hub_advisories::osv;
use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The severity of a vulnerability, as those who published it judge it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum VulnerabilitySeverity {
    /// Nobody has said.
    Unknown,
    /// No harm is expected.
    None,
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
    /// Critical.
    Critical,
}

text_enum!(VulnerabilitySeverity {
    Unknown = "UNKNOWN",
    None = "NONE",
    Low = "LOW",
    Medium = "MEDIUM",
    High = "HIGH",
    Critical = "CRITICAL",
});

impl VulnerabilitySeverity {
    /// The number by which lists are sorted.
    pub const fn rank(self) -> i64 {
        match self {
            Self::Unknown => 0,
            Self::None => 1,
            Self::Low => 2,
            Self::Medium => 3,
            Self::High => 4,
            Self::Critical => 5,
        }
    }

    pub fn of_rank(rank: i64) -> Self {
        let found = Self::ALL
            .into_iter()
            .find(|severity| severity.rank() == rank);
        found.unwrap_or(Self::Unknown)
    }
}

impl From<osv::Severity> for VulnerabilitySeverity {
    fn from(severity: osv::Severity) -> Self {
        match severity {
            osv::Severity::Unknown => Self::Unknown,
            osv::Severity::None => Self::None,
            osv::Severity::Low => Self::Low,
            osv::Severity::Medium => Self::Medium,
            osv::Severity::High => Self::High,
            osv::Severity::Critical => Self::Critical,
        }
    }
}
