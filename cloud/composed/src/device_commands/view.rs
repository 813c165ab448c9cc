//! A command as it is shown. The outcome of one that a hub carries out is read from its job.

use std::collections::HashMap;

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_fleet::jobs::{self, HubJob};
use hub_identity::authz::Scope;
use hub_protocol::job::HubJobStatus;
use hub_protocol::{HubJobUuid, HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::store::CommandRow;

/// The state of a command. The last three are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CommandStatus {
    /// The command waits for its hub.
    Queued,
    /// Its hub or the supplier's endpoint has it.
    Sent,
    /// The command was carried out.
    Succeeded,
    /// The command was not carried out, or in part, or the outcome is unknown: `error` says which.
    Failed,
    /// Its hub reported nothing about it in time.
    Expired,
}

/// The reason of a failed command.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeviceCommandError")]
pub struct CommandError {
    /// A stable word, such as `DEVICE_NOT_FOUND` or `OUTCOME_UNKNOWN`.
    code: String,
    /// The error as a sentence.
    message: String,
}

/// A command that a device was given.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCommandResponse {
    /// The command.
    command_uuid: Uuid,
    /// The device.
    #[schemars(range(min = 1))]
    device_instance_id: i64,
    /// The action.
    action_id: String,
    /// The state.
    status: CommandStatus,
    /// The hub that carries it out; null where an external endpoint does.
    hub_uuid: Option<HubUuid>,
    /// The result. Over GATT: `{"steps": [{"characteristic", "operation", "value"?}]}` with values
    /// in hexadecimal, also of the steps before one that failed. Of an endpoint: `{"status",
    /// "body"}`.
    #[schemars(with = "Option<Map<String, Value>>")]
    result: Option<Box<RawValue>>,
    /// The reason of the failure.
    error: Option<CommandError>,
    /// When it was given.
    created_at: Timestamp,
    /// When it ended.
    completed_at: Option<Timestamp>,
}

impl DeviceCommandResponse {
    pub const fn is_settled(&self) -> bool {
        !matches!(self.status, CommandStatus::Queued | CommandStatus::Sent)
    }

    pub const fn device_instance_id(&self) -> i64 {
        self.device_instance_id
    }

    pub const fn status(&self) -> CommandStatus {
        self.status
    }

    pub const fn command_uuid(&self) -> Uuid {
        self.command_uuid
    }
}

/// The outcome of a command.
struct Outcome {
    status: CommandStatus,
    result: Option<String>,
    error: Option<(String, String)>,
    at: Option<Timestamp>,
}

const UNKNOWN: &str = "OUTCOME_UNKNOWN";

impl Outcome {
    const fn open(status: CommandStatus) -> Self {
        Self {
            status,
            result: None,
            error: None,
            at: None,
        }
    }

    fn failed(code: &str, message: impl Into<String>, at: Timestamp) -> Self {
        let error = Some((code.to_owned(), message.into()));
        Self {
            status: CommandStatus::Failed,
            result: None,
            error,
            at: Some(at),
        }
    }

    fn of_call(row: &CommandRow, now: Timestamp) -> Self {
        match (row.finished_at, &row.error_code) {
            (None, _) if row.deadline_at > now => Self::open(CommandStatus::Sent),
            (None, _) => {
                let message =
                    "the service was stopped in the middle of it; it may have been carried out";
                Self::failed(UNKNOWN, message, row.deadline_at)
            }
            (Some(at), None) => Self {
                status: CommandStatus::Succeeded,
                result: row.result.clone(),
                error: None,
                at: Some(at),
            },
            (Some(at), Some(code)) => {
                let message = row.error_message.clone().unwrap_or_default();
                Self {
                    result: row.result.clone(),
                    ..Self::failed(code, message, at)
                }
            }
        }
    }

    fn of_job(job: &HubJob) -> Self {
        let at = job.finished_at.unwrap_or(job.deadline_at);
        let message = || job.detail.clone().unwrap_or_default();
        let detail: Map<String, Value> = job
            .result
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let steps = detail
            .get("steps")
            .map(|steps| json!({"steps": steps}).to_string());
        match job.status {
            HubJobStatus::Pending => Self::open(CommandStatus::Queued),
            HubJobStatus::Dispatched | HubJobStatus::Running => Self::open(CommandStatus::Sent),
            HubJobStatus::Succeeded => Self {
                status: CommandStatus::Succeeded,
                result: steps,
                error: None,
                at: Some(at),
            },
            HubJobStatus::Failed => {
                let code = detail
                    .get("reason")
                    .and_then(Value::as_str)
                    .unwrap_or("FAILED");
                Self {
                    result: steps,
                    ..Self::failed(code, message(), at)
                }
            }
            HubJobStatus::Cancelled => Self::failed("CANCELLED", message(), at),
            HubJobStatus::Expired if job.started_at.is_some() => {
                let message = "the hub began it and did not report its end in time; it may have been carried out";
                Self::failed(UNKNOWN, message, at)
            }
            HubJobStatus::Expired => {
                let (code, message) = match job.dispatched_at {
                    None => (
                        "HUB_NOT_REACHED",
                        "the hub was not reached in time; nothing was done",
                    ),
                    Some(_) => (
                        "HUB_SILENT",
                        "the hub got it and did not report that it began, within its time",
                    ),
                };
                Self {
                    status: CommandStatus::Expired,
                    ..Self::failed(code, message, at)
                }
            }
        }
    }
}

fn shown(
    row: CommandRow,
    jobs: &HashMap<HubJobUuid, HubJob>,
    now: Timestamp,
) -> Result<DeviceCommandResponse> {
    let outcome = match row.hub_job_uuid.map(|uuid| jobs.get(&uuid)) {
        None => Outcome::of_call(&row, now),
        Some(Some(job)) => Outcome::of_job(job),
        Some(None) => Outcome::failed(UNKNOWN, "its job is not kept any longer", row.deadline_at),
    };
    Ok(DeviceCommandResponse {
        command_uuid: row.command_uuid,
        device_instance_id: row.device_instance_id,
        action_id: row.action_id,
        status: outcome.status,
        hub_uuid: row.hub_uuid,
        result: outcome
            .result
            .map(RawValue::from_string)
            .transpose()
            .map_err(Error::internal)?,
        error: outcome
            .error
            .map(|(code, message)| CommandError { code, message }),
        created_at: row.created_at,
        completed_at: outcome.at,
    })
}

/// Commands of one page, in their order.
pub async fn all(
    conn: &mut Conn,
    scope: &Scope,
    rows: Vec<CommandRow>,
    now: Timestamp,
) -> Result<Vec<DeviceCommandResponse>> {
    let uuids: Vec<HubJobUuid> = rows.iter().filter_map(|row| row.hub_job_uuid).collect();
    let jobs = jobs::some(conn, scope, &uuids).await?;
    let jobs = jobs
        .into_iter()
        .map(|job| (job.hub_job_uuid, job))
        .collect();
    rows.into_iter().map(|row| shown(row, &jobs, now)).collect()
}

pub async fn one(
    conn: &mut Conn,
    scope: &Scope,
    row: CommandRow,
    now: Timestamp,
) -> Result<DeviceCommandResponse> {
    all(conn, scope, vec![row], now)
        .await?
        .pop()
        .ok_or_else(super::not_found)
}

/// A command in the export of its requester.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedCommand {
    command_uuid: Uuid,
    device_instance_id: i64,
    action_id: String,
    created_at: Timestamp,
}

impl From<CommandRow> for ExportedCommand {
    fn from(row: CommandRow) -> Self {
        Self {
            command_uuid: row.command_uuid,
            device_instance_id: row.device_instance_id,
            action_id: row.action_id,
            created_at: row.created_at,
        }
    }
}
