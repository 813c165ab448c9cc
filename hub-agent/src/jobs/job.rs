//! The types of a job: the request in the desired state, the action it asks for, the events it
//! causes, and the reasons with which it can fail.

use std::path::PathBuf;

use hub_protocol::job::{DesiredJob, HubJobEventRequest, HubJobType};
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid};
use serde::{Deserialize, Serialize};

/// A job of the desired state.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestedJob {
    Known(DesiredJob),
    /// The service is newer than this agent.
    NotUnderstood {
        hub_job_uuid: HubJobUuid,
        error: String,
    },
}

impl RequestedJob {
    pub fn hub_job_uuid(&self) -> HubJobUuid {
        match self {
            Self::Known(job) => job.hub_job_uuid,
            Self::NotUnderstood { hub_job_uuid, .. } => *hub_job_uuid,
        }
    }

    /// Whether it is a device command, which waits for no other job.
    pub fn is_command(&self) -> bool {
        matches!(self, Self::Known(job) if job.job_type == HubJobType::DeviceCommand)
    }
}

/// The jobs of the desired state; `None` until the service has sent one.
pub type RequestedJobs = Option<Vec<RequestedJob>>;

/// An event of a job, as the spool stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    pub hub_job_uuid: HubJobUuid,
    pub event: HubJobEventRequest,
}

/// Settings of the jobs.
#[derive(Clone, Debug)]
pub struct JobsConfig {
    pub release_keys: PathBuf,
    /// Free space that the agent leaves to others.
    pub headroom_bytes: u64,
}

/// The action of a job, with every uuid that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Install {
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
    },
    Remove {
        app_uuid: AppUuid,
    },
    UpdateAgent,
    /// Sends the hub to another service.
    Move,
}

impl Action {
    pub fn of(job: &DesiredJob) -> Result<Self, Failed> {
        let missing =
            |what: &str| Failed::new(reason::BAD_RELEASE, format!("the job names no {what}"));
        let app_uuid = job.app_uuid.ok_or_else(|| missing("app"));
        let release_uuid = job.release_uuid.ok_or_else(|| missing("release"));
        Ok(match job.job_type {
            HubJobType::AppInstall => Self::Install {
                app_uuid: app_uuid?,
                release_uuid: release_uuid?,
            },
            HubJobType::AppRemove => Self::Remove {
                app_uuid: app_uuid?,
            },
            HubJobType::SelfUpdate => release_uuid.map(|_| Self::UpdateAgent)?,
            HubJobType::Move => Self::Move,
            HubJobType::DeviceCommand => {
                return Err(Failed::new(
                    reason::BAD_RELEASE,
                    "a device command is not a job of this kind",
                ));
            }
        })
    }
}

/// Why a job failed. `reason` is one of the constants in [`reason`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub reason: &'static str,
    pub message: String,
}

impl Failed {
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// Why something did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another attempt cannot succeed.
    Fatal(Failed),
    /// A later attempt may succeed. The job fails for this if its deadline comes first.
    Later(Failed),
}

impl Trouble {
    pub fn fatal(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Fatal(Failed::new(reason, message))
    }

    pub fn later(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Later(Failed::new(reason, message))
    }
}

/// The stable reasons of failed jobs, as the service stores them.
pub mod reason {
    pub const BAD_SIGNATURE: &str = "BAD_SIGNATURE";
    /// The release is not the one that the job names, or this agent cannot do such a job.
    pub const BAD_RELEASE: &str = "BAD_RELEASE";
    /// The service to which the hub was to move does not accept the claim.
    pub const CLAIM_REFUSED: &str = "CLAIM_REFUSED";
    pub const COUNTER_TOO_LOW: &str = "COUNTER_TOO_LOW";
    pub const DID_NOT_START: &str = "DID_NOT_START";
    pub const DIGEST_MISMATCH: &str = "DIGEST_MISMATCH";
    pub const DOWNLOAD_FAILED: &str = "DOWNLOAD_FAILED";
    pub const EXPIRED: &str = "EXPIRED";
    pub const FAILED_BEFORE: &str = "FAILED_BEFORE";
    pub const HEALTH_CHECK_FAILED: &str = "HEALTH_CHECK_FAILED";
    pub const HELPER_UNAVAILABLE: &str = "HELPER_UNAVAILABLE";
    pub const NO_LAUNCHER: &str = "NO_LAUNCHER";
    pub const NO_SPACE: &str = "NO_SPACE";
    pub const NOT_CONFIRMED: &str = "NOT_CONFIRMED";
    /// The service to which the hub was to move cannot be reached.
    pub const SERVICE_UNREACHABLE: &str = "SERVICE_UNREACHABLE";
    /// What the hub had recorded could not be uploaded before it was to move.
    pub const SPOOL_NOT_EMPTY: &str = "SPOOL_NOT_EMPTY";
    pub const WRONG_ARCHITECTURE: &str = "WRONG_ARCHITECTURE";

    /// The constant for a reason that was read from a file: a file may hold any text.
    pub fn known(text: &str) -> Option<&'static str> {
        [
            BAD_SIGNATURE,
            BAD_RELEASE,
            CLAIM_REFUSED,
            COUNTER_TOO_LOW,
            DID_NOT_START,
            DIGEST_MISMATCH,
            DOWNLOAD_FAILED,
            EXPIRED,
            FAILED_BEFORE,
            HEALTH_CHECK_FAILED,
            HELPER_UNAVAILABLE,
            NO_LAUNCHER,
            NO_SPACE,
            NOT_CONFIRMED,
            SERVICE_UNREACHABLE,
            SPOOL_NOT_EMPTY,
            WRONG_ARCHITECTURE,
        ]
        .into_iter()
        .find(|known| *known == text)
    }
}

#[cfg(test)]
mod tests {
    use hub_protocol::job::PASSING_REASONS;

    use super::*;

    #[test]
    fn reasons_that_pass_are_reasons_of_this_agent() {
        for reason in PASSING_REASONS {
            assert_eq!(reason::known(reason), Some(reason));
        }
    }
}
