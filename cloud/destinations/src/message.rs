//! What is sent: one message, and how it is shown without being sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use hub_protocol::{TenantUuid, Timestamp, TraceContext};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::attempt::Failure;

pub use hub_steps::Body;

/// One message: the same bytes and id on every try.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: String,
    pub event_type: &'static str,
    pub sent_at: Timestamp,
    pub bodies: Vec<Payload>,
    /// Whether JSON bodies go as a list, even of one.
    pub is_batch: bool,
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub first_event_id: i64,
    pub last_event_id: i64,
    /// The span of this try, which spans of the receiver belong to.
    pub trace: Option<TraceContext>,
}

#[derive(Clone, Debug)]
pub struct Payload {
    pub body: Body,
    /// What topics and subjects are rendered from.
    pub event: Arc<Map<String, Value>>,
}

/// The secrets that sign messages. Those before the current one sign too for a while after a
/// rotation, the newest first.
pub struct Signing {
    pub current: SecretString,
    pub previous: Vec<SecretString>,
}

/// What would be sent, without secrets; of a protocol other than HTTP the equivalent. Of several
/// bodies that go one by one, the first.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    pub method: String,
    pub url: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// Why it would not be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The bytes of one body on its own.
pub fn body_bytes(body: &Body) -> Result<Vec<u8>, Failure> {
    match body {
        Body::Event(event) => {
            serde_json::to_vec(event).map_err(|_| Failure::message("the event is no JSON"))
        }
        Body::Text(text) => Ok(text.as_bytes().to_vec()),
    }
}
