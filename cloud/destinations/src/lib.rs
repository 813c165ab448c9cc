//! How the messages of a pipeline leave: over HTTP, MQTT, NATS or to S3. What is sent when is the
//! business of whoever calls; here one message is tried once, in bounded time. All connections are
//! made by `outgoing`. Everything of a kind of destination is in a folder of its own.

mod attempt;
mod auth;
mod connections;
mod headers;
mod http;
mod kind;
mod members;
mod message;
mod mqtt;
mod nats;
mod s3;
mod source;
mod template;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_outgoing::{CallError, Outgoing};
use hub_steps::DestinationForm;
use secrecy::SecretString;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use self::attempt::credentials_missing;
pub use self::attempt::{Attempt, Failure};
pub use self::auth::{Auth, auth_header, checked_auth, own_header};
pub use self::connections::{Connections, NameOf};
pub use self::headers::usable as usable_header;
pub use self::kind::BatchDefaults;
use self::kind::{Checked, Destination, Kind, Secrets, Sending, Withdrawal};
use self::members::Members;
pub use self::members::Problem;
pub use self::message::{Body, Message, Payload, Preview, Signing};
use self::source::Source;

/// All kinds of destinations.
const KINDS: [Kind; 4] = [http::KIND, mqtt::KIND, nats::KIND, s3::KIND];

/// How destinations are written and drawn.
pub fn forms() -> [DestinationForm; KINDS.len()] {
    KINDS.map(|kind| kind.form)
}

fn kind_of(definition: &Value) -> Option<Kind> {
    let name = definition.get("kind").and_then(Value::as_str)?;
    KINDS.into_iter().find(|kind| kind.form.kind == name)
}

/// Whether the messages of a definition carry signatures.
pub fn is_signed(definition: &Value) -> bool {
    kind_of(definition).is_some_and(|kind| kind.is_signed)
}

/// The definition of a receiver without credentials. Its topics or subjects begin with `name`.
pub fn plain(url: &str, name: &str) -> Option<Value> {
    let (scheme, _) = url.split_once("://")?;
    KINDS
        .into_iter()
        .find_map(|kind| (kind.plain)(scheme, url, name))
}

/// The schemes of receivers without credentials, as they are named.
pub fn plain_schemes() -> Vec<&'static str> {
    KINDS
        .into_iter()
        .flat_map(|kind| kind.plain_schemes)
        .copied()
        .collect()
}

/// The members of a definition that have secrets.
pub const SECRET_MEMBERS: [&str; 2] = ["auth", tls::MEMBER];

/// A checked destination, without its secrets. It serializes to the JSON that is shown and stored.
#[derive(Clone, Debug)]
pub struct Definition {
    destination: Arc<dyn Destination>,
    /// Whether there are secrets; without them nothing is sent.
    has_secrets: bool,
    shown: Value,
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.serialize(serializer)
    }
}

impl Definition {
    /// Whether messages leave announcements at the receiver, which [`withdraw`] removes.
    pub fn announces(&self) -> bool {
        self.destination.announces()
    }

    /// What the destination asks for where `delivery` says nothing.
    pub fn batch_defaults(&self) -> Option<BatchDefaults> {
        self.destination.batch_defaults()
    }
}

/// Checks a destination as a tenant gives it. Its secrets are separate, as the JSON text of an
/// object with the [`SECRET_MEMBERS`]: whoever stores the definition seals them.
pub fn parse(
    value: &Value,
    outgoing: &Outgoing,
) -> Result<(Definition, Option<SecretString>), Problem> {
    let definition = read(value, outgoing, false)?;
    let secrets: Map<String, Value> = SECRET_MEMBERS
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), value.get(name)?.clone())))
        .filter(|(_, secret)| !secret.is_null())
        .collect();
    let secrets = (!secrets.is_empty()).then(|| Value::Object(secrets).to_string().into());
    Ok((definition, secrets))
}

/// A destination as it was stored, without its secrets.
pub fn parse_stored(value: &Value, outgoing: &Outgoing) -> Result<Definition, Problem> {
    read(value, outgoing, true)
}

fn read(value: &Value, outgoing: &Outgoing, is_stored: bool) -> Result<Definition, Problem> {
    let Some(kind) = kind_of(value) else {
        if !value.is_object() {
            return Err(Problem::new("", "must be an object"));
        }
        let kinds = forms().map(|form| form.kind).join(", ");
        let message = format!("must be one of {kinds}");
        return Err(Problem::new("/kind", message));
    };
    let source = Source {
        members: Members::new(value, "", kind.members)?,
        outgoing,
        is_stored,
    };
    let Checked {
        destination,
        shown,
        has_secrets,
    } = (kind.check)(&source)?;
    Ok(Definition {
        destination,
        has_secrets,
        shown,
    })
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
        if definition.has_secrets && secrets.is_none() {
            return Err(credentials_missing());
        }
        let sending = Sending {
            shown: &definition.shown,
            secrets,
            signing,
            message,
            connections,
            outgoing,
            within,
        };
        definition.destination.send(sending).await
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

/// Removes what messages of a pipeline have announced at the receiver: of all devices, or of one.
/// Returns how many announcements there were.
pub async fn withdraw(
    definition: &Definition,
    secrets: Option<&SecretString>,
    pipeline_uuid: uuid::Uuid,
    device_instance_id: Option<i64>,
    outgoing: &Outgoing,
    within: Duration,
) -> Result<usize, Failure> {
    let withdrawal = Withdrawal {
        secrets: Secrets {
            shown: &definition.shown,
            sealed: secrets,
        },
        pipeline_uuid,
        device_instance_id,
        outgoing,
        within,
    };
    let withdrawing = definition.destination.withdraw(withdrawal);
    let withdrawn = tokio::time::timeout(within, withdrawing).await;
    withdrawn.unwrap_or_else(|_| Err(CallError::timed_out().into()))
}

/// What would be sent.
pub fn preview(definition: &Definition, message: &Message) -> Preview {
    let made = definition.destination.preview(message);
    made.unwrap_or_else(|failure| Preview {
        error: Some(failure.into_reason()),
        ..Preview::default()
    })
}
