//! What a job asks for, once it is known to name all that it takes.

use hub_protocol::job::{DesiredJob, HubJobType};
use hub_protocol::{AppUuid, ReleaseUuid};

use super::{Failed, reason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Install { app_uuid: AppUuid, release_uuid: ReleaseUuid },
    Remove { app_uuid: AppUuid },
    Update,
}

impl Work {
    pub fn of(job: &DesiredJob) -> Result<Self, Failed> {
        let lacks = |what: &str| Failed { reason: reason::BAD_RELEASE, message: format!("the job names no {what}") };
        let app_uuid = job.app_uuid.ok_or_else(|| lacks("app"));
        let release_uuid = job.release_uuid.ok_or_else(|| lacks("release"));
        Ok(match job.job_type {
            HubJobType::AppInstall => Self::Install { app_uuid: app_uuid?, release_uuid: release_uuid? },
            HubJobType::AppRemove => Self::Remove { app_uuid: app_uuid? },
            HubJobType::SelfUpdate => release_uuid.map(|_| Self::Update)?,
        })
    }
}

/// Apps are changed in order, one at a time; the agent itself is another matter.
pub fn may_overtake(job: &DesiredJob, waiting: &DesiredJob) -> bool {
    (job.job_type == HubJobType::SelfUpdate) != (waiting.job_type == HubJobType::SelfUpdate)
}
