//! Jobs that have a hub do something with a device. They replace no other job, and what they are to
//! do is kept no longer than until they are finished.

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::command::DeviceCommand;
use hub_protocol::job::HubJobType;
use hub_protocol::{HubJobUuid, Timestamp};

use super::{HubJob, NewJob, Refusal, Terms, insert_job, store};
use crate::hubs::{Addressee, Changes};

/// The most open commands of a hub, which leave room for jobs of other kinds.
const MAX_OPEN: i64 = 20;

/// Adds a command for a hub that the transaction has locked. The caller writes the audit entry.
pub async fn add_command(
    tx: &mut Tx,
    changes: &Changes,
    hub: &Addressee,
    command: &DeviceCommand,
    deadline_at: Timestamp,
    now: Timestamp,
) -> Result<Result<HubJobUuid, Refusal>> {
    if hub.blocked_at.is_some() {
        return Ok(Err(Refusal::HubBlocked));
    }
    if store::count_open_of(tx, hub.hub_uuid, HubJobType::DeviceCommand).await? >= MAX_OPEN {
        return Ok(Err(Refusal::TooManyCommands));
    }
    let new = NewJob {
        job_type: HubJobType::DeviceCommand,
        app_uuid: None,
        release_uuid: None,
        version: None,
        policy_uuid: None,
        window: None,
        command: Some(serde_json::to_string(command).map_err(Error::internal)?),
        terms: Terms {
            deadline_at,
            force: false,
        },
    };
    let hub_job_uuid = HubJobUuid::new();
    let job = insert_job(tx, changes, hub, hub_job_uuid, new, now).await?;
    Ok(job.map(|job| job.hub_job_uuid))
}

/// The given jobs of the tenant, in any order.
pub async fn some(conn: &mut Conn, scope: &Scope, jobs: &[HubJobUuid]) -> Result<Vec<HubJob>> {
    match jobs.is_empty() {
        true => Ok(Vec::new()),
        false => store::some(conn, scope, jobs).await,
    }
}
