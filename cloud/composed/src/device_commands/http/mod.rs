//! Requests and responses of device commands, a file for each kind of caller.

mod app;
mod tenant;

use std::time::Duration;

use aide::axum::ApiRouter;
use hub_base::error::{Error, Result};
use hub_core::http::check::Check;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::Order;
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(app::routes())
        .merge(tenant::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCommandPath {
    /// The id of the device.
    pub device_instance_id: i64,
    /// The command.
    pub command_uuid: Uuid,
}

const MAX_WAIT_SECS: u64 = 10;
const MAX_KEY_CHARS: usize = 200;

/// A command for a device.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCommandRequest {
    /// The action.
    #[schemars(regex(pattern = "^[a-z0-9._-]{1,64}$"))]
    action_id: String,
    /// The parameters of the action, which fit its schema: 16 KiB at most.
    parameters: Option<Map<String, Value>>,
    /// The client's key: a command with the same key is sent to the device once.
    #[schemars(length(min = 1, max = MAX_KEY_CHARS), regex(pattern = "^[!-~]+$"))]
    idempotency_key: Option<String>,
}

impl DeviceCommandRequest {
    fn checked(self) -> Result<Order> {
        let mut check = Check::new();
        let is_id_char =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let is_id =
            (1..=64).contains(&self.action_id.len()) && self.action_id.bytes().all(is_id_char);
        check.that(
            is_id,
            "actionId",
            "must be 1 to 64 lower-case letters, digits, dots, dashes and underscores",
        );
        let is_key = |key: &String| {
            (1..=MAX_KEY_CHARS).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let message = format!("must be 1 to {MAX_KEY_CHARS} visible ASCII characters");
        check.that(
            self.idempotency_key.as_ref().is_none_or(is_key),
            "idempotencyKey",
            message,
        );
        check.done()?;
        let parameters = self.parameters.unwrap_or_default();
        Ok(Order {
            action_id: self.action_id,
            parameters,
            idempotency_key: self.idempotency_key,
        })
    }
}

/// The time to wait for the end of a command.
#[derive(Debug, Deserialize, JsonSchema)]
struct WaitQuery {
    /// Seconds to hold the request until the command has ended; 10 when absent.
    #[schemars(range(max = MAX_WAIT_SECS))]
    wait: Option<u64>,
}

impl WaitQuery {
    fn checked(&self) -> Result<Duration> {
        match self.wait.unwrap_or(MAX_WAIT_SECS) {
            secs @ 0..=MAX_WAIT_SECS => Ok(Duration::from_secs(secs)),
            _ => Err(Error::field(
                "wait",
                format!("must be between 0 and {MAX_WAIT_SECS}"),
            )),
        }
    }
}
