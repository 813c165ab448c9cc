//! How the messages of a pipeline leave: over HTTP, MQTT, NATS or to S3. What is sent when is the
//! business of whoever calls; here one message is tried once, in bounded time, and what became of
//! it is told in a way that decides what happens next. All connections are made by `outgoing`.

mod auth;
mod connections;
mod definition;
mod home_assistant;
mod http;
mod influx;
mod members;
mod mqtt;
mod nats;
mod s3;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_protocol::{TenantUuid, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use self::definition::Kind;
use crate::outgoing::{CallError, CallErrorKind, Outgoing};
pub use crate::steps::Body;

pub use self::auth::{Auth, checked_auth, own_header};
pub use self::connections::Connections;
pub use self::definition::{BatchDefaults, parse, parse_stored};
pub use self::http::{auth_header, usable as usable_header};

/// A checked destination, without its secrets. It serializes to the JSON that is shown and stored.
#[derive(Clone, Debug)]
pub struct Definition {
    kind: Kind,
    /// Whether there are secrets; without them nothing is sent.
    has_auth: bool,
    shown: Value,
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.serialize(serializer)
    }
}

impl Definition {
    /// `HTTP`, `MQTT`, `NATS` or `S3`.
    pub const fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Http(_) => "HTTP",
            Kind::Mqtt(_) => "MQTT",
            Kind::Nats(_) => "NATS",
            Kind::S3(_) => "S3",
        }
    }

    /// Whether messages carry signatures.
    pub const fn is_signed(&self) -> bool {
        matches!(self.kind, Kind::Http(_))
    }

    /// What the destination asks for where `delivery` says nothing.
    pub fn batch_defaults(&self) -> Option<BatchDefaults> {
        match &self.kind {
            Kind::S3(s3) => Some(BatchDefaults {
                every: Duration::from_secs(s3.every_seconds),
            }),
            Kind::Http(_) | Kind::Mqtt(_) | Kind::Nats(_) => None,
        }
    }
}

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A JSON pointer relative to the destination.
    pub pointer: String,
    pub message: String,
}

impl Problem {
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

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
}

#[derive(Clone, Debug)]
pub struct Payload {
    pub body: Body,
    /// What topics and subjects are rendered from.
    pub event: Arc<Map<String, Value>>,
}

/// The secrets that sign messages. The previous one signs too for a while after a rotation.
pub struct Signing {
    pub current: SecretString,
    pub previous: Option<SecretString>,
}

#[derive(Debug)]
pub struct Attempt {
    pub result: Result<(), Failure>,
    pub response_status: Option<u16>,
    /// The first KiB, without control characters.
    pub response_body: Option<String>,
    pub duration: Duration,
}

impl Attempt {
    /// What became of the message: DELIVERED, DEAD if the receiver does not accept this one, FAILED
    /// if it has to be sent again.
    pub fn status(&self) -> &'static str {
        match &self.result {
            Ok(()) => "DELIVERED",
            Err(Failure::Message { .. }) => "DEAD",
            Err(Failure::Receiver { .. } | Failure::Credentials { .. } | Failure::Gone { .. }) => {
                "FAILED"
            }
        }
    }
}

/// Why a message was not accepted. The reasons are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The receiver is at fault, for all messages: the circuit counts it.
    Receiver {
        reason: String,
        retry_after: Option<Duration>,
    },
    /// The receiver does not accept the credentials.
    Credentials { reason: String },
    /// This message is at fault; others may be accepted.
    Message { reason: String },
    /// There is no such receiver any more, or it must not be called.
    Gone { reason: String },
}

impl Failure {
    pub fn into_reason(self) -> String {
        match self {
            Self::Receiver { reason, .. }
            | Self::Credentials { reason }
            | Self::Message { reason }
            | Self::Gone { reason } => reason,
        }
    }

    fn receiver(reason: impl Into<String>) -> Self {
        Self::Receiver {
            reason: reason.into(),
            retry_after: None,
        }
    }

    fn message(reason: impl Into<String>) -> Self {
        Self::Message {
            reason: reason.into(),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error.kind {
            CallErrorKind::Forbidden => Self::Gone {
                reason: error.message,
            },
            CallErrorKind::Dns
            | CallErrorKind::Connect
            | CallErrorKind::Tls
            | CallErrorKind::TimedOut
            | CallErrorKind::Broken => Self::receiver(error.message),
        }
    }
}

/// What came back, whatever it means.
#[derive(Debug, Default)]
struct Answer {
    status: Option<u16>,
    body: Option<String>,
}

/// Bytes of an answer that are read, and those that are kept.
const MAX_ANSWER_BYTES: usize = 16 * 1024;
const KEPT_ANSWER_BYTES: usize = 1024;

impl Answer {
    fn new(status: u16, body: &[u8]) -> Self {
        let head = body
            .get(..KEPT_ANSWER_BYTES.min(body.len()))
            .unwrap_or_default();
        let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let text: String = String::from_utf8_lossy(head)
            .chars()
            .filter(is_plain)
            .collect();
        Self {
            status: Some(status),
            body: (!text.is_empty()).then_some(text),
        }
    }
}

/// Tries once. The message is settled when the result is `Ok`.
pub async fn send(
    definition: &Definition,
    secrets: Option<&SecretString>,
    signing: Option<&Signing>,
    message: &Message,
    connections: &Connections,
    outgoing: &Outgoing,
    within: Duration,
) -> Attempt {
    let began = Instant::now();
    let sending = async {
        let auth = match secrets {
            Some(secrets) => Some(Auth::open(secrets).ok_or_else(credentials_missing)?),
            None if definition.has_auth => return Err(credentials_missing()),
            None => None,
        };
        match &definition.kind {
            Kind::Http(http) => {
                http.send(auth.as_ref(), signing, message, outgoing, within)
                    .await
            }
            Kind::Mqtt(mqtt) => {
                let key = connections::key(definition, secrets, message);
                mqtt.send(auth.as_ref(), message, connections, key, outgoing, within)
                    .await
            }
            Kind::Nats(nats) => {
                let key = connections::key(definition, secrets, message);
                nats.send(auth.as_ref(), message, connections, key, outgoing, within)
                    .await
            }
            Kind::S3(s3) => s3.send(auth.as_ref(), message, outgoing, within).await,
        }
    };
    let timed_out = || Err(CallError::timed_out().into());
    let sent = tokio::time::timeout(within, sending)
        .await
        .unwrap_or_else(|_| timed_out());
    let duration = began.elapsed();
    match sent {
        Ok((answer, result)) => Attempt {
            result,
            response_status: answer.status,
            response_body: answer.body,
            duration,
        },
        Err(failure) => Attempt {
            result: Err(failure),
            response_status: None,
            response_body: None,
            duration,
        },
    }
}

type Sent = Result<(Answer, Result<(), Failure>), Failure>;

fn credentials_missing() -> Failure {
    Failure::Credentials {
        reason: "the credentials of the destination are missing: give them again".to_owned(),
    }
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

pub fn preview(definition: &Definition, message: &Message) -> Preview {
    let made = match &definition.kind {
        Kind::Http(http) => http.preview(message),
        Kind::Mqtt(mqtt) => mqtt.preview(message),
        Kind::Nats(nats) => nats.preview(message),
        Kind::S3(s3) => s3.preview(message),
    };
    made.unwrap_or_else(|failure| {
        let (Failure::Receiver { reason, .. }
        | Failure::Credentials { reason }
        | Failure::Message { reason }
        | Failure::Gone { reason }) = failure;
        Preview {
            error: Some(reason),
            ..Preview::default()
        }
    })
}

/// The bytes of one body on its own.
fn body_bytes(body: &Body) -> Result<Vec<u8>, Failure> {
    match body {
        Body::Event(event) => {
            serde_json::to_vec(event).map_err(|_| Failure::message("the event is no JSON"))
        }
        Body::Text(text) => Ok(text.as_bytes().to_vec()),
    }
}

/// For the connections of one tenant and pipeline; a changed definition or secret is another one.
fn fingerprint(definition: &Definition, secrets: Option<&SecretString>) -> Vec<u8> {
    let secret = secrets
        .map(|secrets| secrets.expose_secret())
        .unwrap_or_default();
    crate::sealing::hash(&format!("{}\n{secret}", definition.shown))
}
