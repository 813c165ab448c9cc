//! Messages as publications of MQTT, one for each event: a topic comes from its event. A message is
//! settled when the broker has acknowledged all of them.

mod codec;
mod home_assistant;
#[cfg(test)]
mod tests;
mod websocket;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use hub_base::sealing::random;
use hub_outgoing::{CallError, Outgoing, OwnTls, Security};
use hub_steps::{DestinationForm, OptionForm};
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};

use crate::attempt::{Answer, Failure, Sent};
use crate::auth::{Auth, BASIC};
use crate::connections::Connections;
use crate::kind::{Checked, Destination, Kind, SendFuture, Sending, WithdrawFuture, Withdrawal};
use crate::members::Problem;
use crate::message::{Body, Message, Payload, Preview, body_bytes};
use crate::source::Source;
use crate::template::Template;
use crate::tls;
use codec::{Heard, Limits, Packet, Publish, Step, Version};
use websocket::{Transport, WebSocket};

/// Publications that wait for their acknowledgement. Mosquitto takes 20 by default, and passes on
/// those beyond in another order.
const MAX_IN_FLIGHT: usize = 16;
/// Documents that are removed at once.
const MAX_REMOVED: usize = 20_000;
/// Devices that a connection remembers to have announced.
const MAX_ANNOUNCED: usize = 10_000;
const MAX_TOPIC_BYTES: usize = 1_024;

pub const KIND: Kind = Kind {
    form: DestinationForm {
        kind: "MQTT",
        options: &[
            ("topic", OptionForm::Text("topic")),
            ("qos", OptionForm::Whole("qos")),
            ("retain", OptionForm::Flag("retain")),
            ("discovery", OptionForm::Flag("homeAssistantDiscovery")),
        ],
        required: Some("topic"),
    },
    members: &[
        "kind",
        "url",
        "version",
        "topic",
        "qos",
        "retain",
        "auth",
        "homeAssistantDiscovery",
        "tls",
    ],
    is_signed: false,
    check,
    plain_schemes: &["mqtt", "mqtts", "ws", "wss"],
    plain: |scheme, url, name| {
        matches!(scheme, "mqtt" | "mqtts" | "ws" | "wss").then(
            || json!({"kind": "MQTT", "url": url, "topic": format!("{name}/{{{{address}}}}")}),
        )
    },
};

#[derive(Debug)]
struct Mqtt {
    url: Url,
    version: Version,
    topic: Template,
    qos: u8,
    retain: bool,
    discovery: bool,
}

fn check(source: &Source<'_>) -> Result<Checked, Problem> {
    let url = source.broker(&["mqtts", "mqtt", "wss", "ws"], &["wss", "ws"])?;
    let auth = source.auth(&[&BASIC])?;
    let topic = source.template("topic", check_topic)?;
    let qos = source.members.number("qos", 0, 2, 1)?;
    let retain = source.members.flag("retain")?;
    let discovery = source.members.flag("homeAssistantDiscovery")?;
    let version = source.members.word("version", &["3.1.1", "5"], "3.1.1")?;
    let shown = json!({"kind": "MQTT", "url": url.as_str(), "version": version, "topic": topic.text(), "qos": qos,
        "retain": retain, "homeAssistantDiscovery": discovery});
    let version = if version == "5" {
        Version::V5
    } else {
        Version::V3
    };
    let mqtt = Mqtt {
        url,
        version,
        topic,
        qos: u8::try_from(qos).unwrap_or(1),
        retain,
        discovery,
    };
    let tls = tls::check(source, mqtt.is_secure())?;
    Ok(Checked::new(mqtt, shown, auth).with_tls(tls))
}

/// Whether messages can be published under a topic.
fn check_topic(topic: &str) -> Result<(), String> {
    if topic.is_empty() || topic.len() > MAX_TOPIC_BYTES {
        return Err(format!("must be a topic of 1 to {MAX_TOPIC_BYTES} bytes"));
    }
    if topic.starts_with('$')
        || topic
            .chars()
            .any(|c| matches!(c, '+' | '#') || c.is_control())
    {
        return Err(
            "must be a topic without `+`, `#` and control characters, and not begin with `$`"
                .to_owned(),
        );
    }
    match topic.split('/').any(str::is_empty) {
        true => Err("must be a topic without empty levels".to_owned()),
        false => Ok(()),
    }
}

/// One publication.
struct Publication {
    topic: String,
    payload: Vec<u8>,
    qos: u8,
    retain: bool,
}

impl Destination for Mqtt {
    fn send<'a>(&'a self, sending: Sending<'a>) -> SendFuture<'a> {
        Box::pin(self.attempt(sending))
    }

    fn announces(&self) -> bool {
        self.discovery
    }

    fn withdraw<'a>(&'a self, withdrawal: Withdrawal<'a>) -> WithdrawFuture<'a> {
        Box::pin(self.remove_documents(withdrawal))
    }

    fn preview(&self, message: &Message) -> Result<Preview, Failure> {
        let publications = self.publications(message)?;
        let first = publications
            .into_iter()
            .next()
            .ok_or_else(|| Failure::message("there is nothing to send"))?;
        Ok(Preview {
            method: "PUBLISH".to_owned(),
            url: self.url.to_string(),
            headers: BTreeMap::from([
                ("qos".to_owned(), first.qos.to_string()),
                ("retain".to_owned(), first.retain.to_string()),
                ("topic".to_owned(), first.topic),
            ]),
            body: String::from_utf8_lossy(&first.payload).into_owned(),
            error: None,
        })
    }
}

impl Mqtt {
    fn is_secure(&self) -> bool {
        matches!(self.url.scheme(), "mqtts" | "wss")
    }

    fn publications(&self, message: &Message) -> Result<Vec<Publication>, Failure> {
        let publication = |payload: &Payload| {
            let topic = self
                .topic
                .render(&payload.event)
                .map_err(|reason| Failure::message(format!("topic: {reason}")))?;
            check_topic(&topic)
                .map_err(|reason| Failure::message(format!("the rendered topic {reason}")))?;
            Ok(Publication {
                topic,
                payload: body_bytes(&payload.body)?,
                qos: self.qos,
                retain: self.retain,
            })
        };
        message.bodies.iter().map(publication).collect()
    }

    async fn attempt(&self, sending: Sending<'_>) -> Sent {
        let (auth, tls, key) = (sending.auth()?, sending.tls()?, sending.key());
        let Sending {
            message,
            connections,
            outgoing,
            within,
            ..
        } = sending;
        let publications = self.publications(message)?;
        let mut reused: Option<Box<MqttConnection>> = connections.take(&key);
        loop {
            let is_reused = reused.is_some();
            let mut connection = match reused.take() {
                Some(connection) => connection,
                None => {
                    let stream = self.open(tls.as_deref(), outgoing, within).await?;
                    Box::new(self.begin(stream, auth.as_ref()).await?)
                }
            };
            let delivered = self.deliver(&mut connection, message, &publications, connections);
            match delivered.await {
                // The broker may have closed a connection that was idle.
                Err(Trouble::Broken(_)) if is_reused => {}
                Err(Trouble::Broken(error)) => return Err(CallError::broken(&error).into()),
                Err(Trouble::Refused(failure)) => {
                    // It works, and only this message does not.
                    if matches!(failure, Failure::Message { .. }) && connection.is_settled() {
                        connections.put(key, connection);
                    }
                    return Err(failure);
                }
                Ok(()) => {
                    connections.put(key, connection);
                    return Ok((Answer::default(), Ok(())));
                }
            }
        }
    }

    async fn open(
        &self,
        tls: Option<&OwnTls>,
        outgoing: &Outgoing,
        within: Duration,
    ) -> Result<Transport, Failure> {
        let (default_port, is_web) = match self.url.scheme() {
            "mqtts" => (8883, false),
            "wss" => (443, true),
            "ws" => (80, true),
            _ => (1883, false),
        };
        let port = self.url.port().unwrap_or(default_port);
        let security = match self.is_secure() {
            true => Security::Tls(tls),
            false => Security::Plain,
        };
        let host = self.url.host_str().unwrap_or_default();
        let stream = outgoing.connect(host, port, security, within).await?;
        Ok(match is_web {
            true => Transport::Web(Box::new(WebSocket::begin(stream, &self.url).await?)),
            false => Transport::Raw(stream),
        })
    }

    /// Removes the documents that are retained of the pipeline, or of one device of it.
    async fn remove_documents(&self, withdrawal: Withdrawal<'_>) -> Result<usize, Failure> {
        let (auth, tls) = (withdrawal.auth()?, withdrawal.tls()?);
        let Withdrawal {
            pipeline_uuid,
            device_instance_id,
            outgoing,
            within,
            ..
        } = withdrawal;
        let stream = self.open(tls.as_deref(), outgoing, within).await?;
        let mut connection = self.begin(stream, auth.as_ref()).await?;
        let broken = |error: std::io::Error| Failure::from(CallError::broken(&error));
        let filter = home_assistant::filter(device_instance_id);
        let mut asked = codec::subscribe(self.version, &filter, 1).unwrap_or_default();
        asked.extend(codec::PING);
        connection.write(&asked).await.map_err(broken)?;
        let mut topics = HashSet::new();
        loop {
            let heard = codec::hear(&mut connection.stream, self.version);
            match heard.await.map_err(broken)? {
                Heard::Published { topic, payload }
                    if home_assistant::is_of(&payload, pipeline_uuid)
                        && topics.len() < MAX_REMOVED =>
                {
                    topics.insert(topic);
                }
                Heard::Refused => {
                    return Err(Failure::Credentials {
                        reason: format!("the broker does not allow to subscribe to {filter}"),
                    });
                }
                Heard::Pong => break,
                Heard::Published { .. } | Heard::Nothing => {}
            }
        }
        // Another connection, which hears nothing of it.
        let stream = self.open(tls.as_deref(), outgoing, within).await?;
        let mut connection = self.begin(stream, auth.as_ref()).await?;
        let removed = topics.len();
        let empty = |topic: String| Publication {
            topic,
            payload: Vec::new(),
            qos: 1,
            retain: true,
        };
        let empty: Vec<Publication> = topics.into_iter().map(empty).collect();
        match connection.publish(&empty).await {
            Ok(()) => Ok(removed),
            Err(Trouble::Broken(error)) => Err(broken(error)),
            Err(Trouble::Refused(failure)) => Err(failure),
        }
    }

    async fn begin(
        &self,
        stream: Transport,
        auth: Option<&Auth>,
    ) -> Result<MqttConnection, Failure> {
        let mut connection = MqttConnection::new(stream, self.version);
        let credentials = match auth {
            Some(Auth::Basic { username, password }) => {
                Some((username.as_str(), password.expose_secret()))
            }
            _ => None,
        };
        // Letters and digits, at most 23: what every broker takes.
        let client_id = format!("hub{}", hex::encode(random::<10>()));
        let hello = codec::connect(self.version, &client_id, credentials);
        let hello = hello.ok_or_else(|| Failure::Credentials {
            reason: "the credentials are too long".to_owned(),
        })?;
        let broken = |error: std::io::Error| Failure::from(CallError::broken(&error));
        connection.write(&hello).await.map_err(broken)?;
        match codec::read(&mut connection.stream, self.version)
            .await
            .map_err(broken)?
        {
            Packet::Connected { code: 0, limits } => connection.limits = limits,
            Packet::Connected { code, .. } => return Err(refused_connection(code)),
            Packet::Acknowledged { .. } | Packet::Disconnected { .. } => {
                return Err(Failure::receiver("the broker did not answer as MQTT says"));
            }
        }
        Ok(connection)
    }

    async fn deliver(
        &self,
        connection: &mut MqttConnection,
        message: &Message,
        publications: &[Publication],
        connections: &Connections,
    ) -> Result<(), Trouble> {
        if self.discovery {
            for (payload, publication) in message.bodies.iter().zip(publications) {
                let Body::Event(event) = &payload.body else {
                    continue;
                };
                let mut new =
                    home_assistant::sensors(event, &publication.topic, message.pipeline_uuid);
                new.retain(|sensor| !connection.announced.contains(&sensor.topic));
                let device = event.get("deviceInstanceId").and_then(Value::as_i64);
                if let (false, Some(device)) = (new.is_empty(), device)
                    && let Some(name) = connections.device_name(message.tenant_uuid, device).await
                {
                    for sensor in &mut new {
                        home_assistant::rename(sensor, &name);
                    }
                }
                let new: Vec<Publication> = new
                    .into_iter()
                    .map(|sensor| Publication {
                        topic: sensor.topic,
                        payload: sensor.config.to_string().into_bytes(),
                        qos: self.qos,
                        retain: true,
                    })
                    .collect();
                connection.publish(&new).await?;
                if connection.announced.len() + new.len() > MAX_ANNOUNCED {
                    connection.announced.clear();
                }
                connection
                    .announced
                    .extend(new.into_iter().map(|publication| publication.topic));
            }
        }
        connection.publish(publications).await
    }
}

fn refused_connection(code: u8) -> Failure {
    match code {
        // Of 3.1.1, then of 5.
        4 | 5 | 0x86 | 0x87 | 0x8a | 0x8c => Failure::Credentials {
            reason: format!("the broker refused the credentials (code {code})"),
        },
        _ => Failure::receiver(format!("the broker refused the connection (code {code})")),
    }
}

/// The failure that a reason code of version 5 means.
fn refused_publication(code: u8) -> Failure {
    match code {
        0x87 => Failure::Credentials {
            reason: "the broker does not allow to publish under the topic".to_owned(),
        },
        0x90 | 0x95 | 0x99 => {
            Failure::message(format!("the broker refused the message (code {code})"))
        }
        _ => Failure::receiver(format!(
            "the broker could not take the message (code {code})"
        )),
    }
}

enum Trouble {
    Broken(std::io::Error),
    Refused(Failure),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error)
    }
}

struct MqttConnection {
    stream: BufReader<Transport>,
    version: Version,
    limits: Limits,
    next_id: u16,
    /// Whether acknowledgements are missing: the connection cannot be used again.
    awaits: bool,
    /// Topics of discovery documents.
    announced: HashSet<String>,
}

impl MqttConnection {
    fn new(stream: Transport, version: Version) -> Self {
        let (limits, announced) = (Limits::default(), HashSet::new());
        Self {
            stream: BufReader::new(stream),
            version,
            limits,
            next_id: 1,
            awaits: false,
            announced,
        }
    }

    fn is_settled(&self) -> bool {
        !self.awaits
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn publish(&mut self, publications: &[Publication]) -> Result<(), Trouble> {
        for group in publications.chunks(MAX_IN_FLIGHT.min(usize::from(self.limits.in_flight))) {
            let mut bytes = Vec::new();
            let mut waiting = HashMap::new();
            for publication in group {
                let id = self.next_id;
                self.next_id = self.next_id.checked_add(1).unwrap_or(1);
                let qos = publication.qos.min(self.limits.qos);
                let retain = publication.retain && self.limits.retain;
                let Publication { topic, payload, .. } = publication;
                let publish = Publish {
                    topic,
                    payload,
                    qos,
                    retain,
                    id,
                };
                let packet = codec::publish(self.version, &publish)
                    .filter(|packet| packet.len() <= self.limits.packet);
                let too_long = || {
                    Trouble::Refused(Failure::message(
                        "the message is longer than the broker takes",
                    ))
                };
                bytes.extend(packet.ok_or_else(too_long)?);
                if qos > 0 {
                    waiting.insert(id, if qos == 2 { Step::Received } else { Step::Ack });
                }
            }
            self.awaits = true;
            self.write(&bytes).await?;
            self.acknowledged(waiting).await?;
            self.awaits = false;
        }
        Ok(())
    }

    /// Waits for all acknowledgements, by the id of their publication.
    async fn acknowledged(&mut self, mut waiting: HashMap<u16, Step>) -> Result<(), Trouble> {
        let mut refused = None;
        while !waiting.is_empty() {
            match codec::read(&mut self.stream, self.version).await? {
                Packet::Acknowledged { step, id, code } if waiting.get(&id) == Some(&step) => {
                    if code >= 0x80 {
                        refused = Some(refused_publication(code));
                    }
                    if step == Step::Received && code < 0x80 {
                        self.write(&codec::release(id)).await?;
                        waiting.insert(id, Step::Complete);
                    } else {
                        waiting.remove(&id);
                    }
                }
                Packet::Disconnected { code } => {
                    return Err(Trouble::Refused(refused_publication(code)));
                }
                Packet::Acknowledged { .. } | Packet::Connected { .. } => {
                    let failure = Failure::receiver("the broker acknowledged what was not sent");
                    return Err(Trouble::Refused(failure));
                }
            }
        }
        match refused {
            Some(failure) => {
                self.awaits = false;
                Err(Trouble::Refused(failure))
            }
            None => Ok(()),
        }
    }
}
