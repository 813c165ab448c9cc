//! Messages as messages of a NATS JetStream, one for each event: a subject comes from its event. A
//! message is settled when the stream has acknowledged all of them; the stream itself drops what it
//! has by its `Nats-Msg-Id`. The client is the service's own: it connects where `outgoing` allows,
//! never to servers that a server names, and reads no more than it must.

mod keys;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

use hub_base::sealing::random;
use hub_outgoing::{CallError, Outgoing, OutgoingStream, Security};
use hub_protocol::TraceContext;
use hub_protocol::trace_context::TRACEPARENT;
use hub_steps::{DestinationForm, OptionForm};
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::attempt::{Answer, Failure, Sent};
use crate::auth::{Auth, BASIC, BEARER};
use crate::kind::{Checked, Destination, Kind, SendFuture, Sending};
use crate::members::Problem;
use crate::message::{Message, Payload, Preview, body_bytes};
use crate::source::Source;
use crate::template::Template;
use keys::{CREDENTIALS, CredentialsFile, NKEY, UserKey};

const MAX_LINE: u64 = 32 * 1024;
const MAX_PAYLOAD: usize = 64 * 1024;
const MAX_SUBJECT_BYTES: usize = 1_024;
/// Messages that wait for their acknowledgement.
const MAX_IN_FLIGHT: usize = 64;

pub const KIND: Kind = Kind {
    form: DestinationForm {
        kind: "NATS",
        options: &[
            ("subject", OptionForm::Text("subject")),
            ("tls_first", OptionForm::Flag("tlsFirst")),
        ],
        required: Some("subject"),
    },
    members: &["kind", "url", "tlsFirst", "subject", "auth"],
    is_signed: false,
    check,
    plain_schemes: &["nats"],
    plain: |scheme, url, name| {
        matches!(scheme, "nats" | "tls").then(|| {
            json!({"kind": "NATS", "url": url, "subject": format!("{name}.{{{{deviceInstanceId}}}}")})
        })
    },
};

#[derive(Debug)]
struct Nats {
    url: Url,
    /// Whether the connection begins with TLS, before the server says anything.
    tls_first: bool,
    subject: Template,
}

fn check(source: &Source<'_>) -> Result<Checked, Problem> {
    let url = source.broker(&["tls", "nats"], &[])?;
    let auth = source.auth(&[&BEARER, &BASIC, &NKEY, &CREDENTIALS])?;
    let subject = source.template("subject", check_subject)?;
    let tls_first = source.members.flag("tlsFirst")?;
    if tls_first && url.scheme() != "tls" {
        return Err(source
            .members
            .problem("tlsFirst", "is only for a `url` that begins with tls://"));
    }
    let mut shown = json!({"kind": "NATS", "url": url.as_str(), "subject": subject.text()});
    if let (true, Some(shown)) = (tls_first, shown.as_object_mut()) {
        shown.insert("tlsFirst".to_owned(), true.into());
    }
    let nats = Nats {
        url,
        tls_first,
        subject,
    };
    Ok(Checked::new(nats, shown, auth))
}

/// Whether messages can be published under a subject.
fn check_subject(subject: &str) -> Result<(), String> {
    if subject.is_empty() || subject.len() > MAX_SUBJECT_BYTES {
        return Err(format!(
            "must be a subject of 1 to {MAX_SUBJECT_BYTES} bytes"
        ));
    }
    let is_refused = |c: char| matches!(c, '*' | '>') || c.is_whitespace() || c.is_control();
    if subject.starts_with('$') || subject.chars().any(is_refused) {
        return Err(
            "must be a subject without `*`, `>` and spaces, and not begin with `$`".to_owned(),
        );
    }
    match subject.split('.').any(str::is_empty) {
        true => Err("must be a subject without empty parts".to_owned()),
        false => Ok(()),
    }
}

struct Publication {
    subject: String,
    id: String,
    payload: Vec<u8>,
    trace: Option<TraceContext>,
}

impl Destination for Nats {
    fn send<'a>(&'a self, sending: Sending<'a>) -> SendFuture<'a> {
        Box::pin(self.attempt(sending))
    }

    fn preview(&self, message: &Message) -> Result<Preview, Failure> {
        let publications = self.publications(message)?;
        let first = publications
            .into_iter()
            .next()
            .ok_or_else(|| Failure::message("there is nothing to send"))?;
        Ok(Preview {
            method: "PUB".to_owned(),
            url: self.url.to_string(),
            headers: BTreeMap::from([
                ("Nats-Msg-Id".to_owned(), first.id),
                ("subject".to_owned(), first.subject),
            ]),
            body: String::from_utf8_lossy(&first.payload).into_owned(),
            error: None,
        })
    }
}

impl Nats {
    fn publications(&self, message: &Message) -> Result<Vec<Publication>, Failure> {
        let publication = |(number, payload): (usize, &Payload)| {
            let subject = self.subject.render(&payload.event);
            let subject =
                subject.map_err(|reason| Failure::message(format!("subject: {reason}")))?;
            check_subject(&subject)
                .map_err(|reason| Failure::message(format!("the rendered subject {reason}")))?;
            let id = match message.bodies.len() {
                1 => message.id.clone(),
                _ => format!("{}-{number}", message.id),
            };
            Ok(Publication {
                subject,
                id,
                payload: body_bytes(&payload.body)?,
                trace: message.trace,
            })
        };
        message.bodies.iter().enumerate().map(publication).collect()
    }

    async fn attempt(&self, sending: Sending<'_>) -> Sent {
        let (auth, key) = (sending.auth()?, sending.key());
        let Sending {
            message,
            connections,
            outgoing,
            within,
            ..
        } = sending;
        let publications = self.publications(message)?;
        let mut reused: Option<Box<NatsConnection>> = connections.take(&key);
        loop {
            let is_reused = reused.is_some();
            let mut connection = match reused.take() {
                Some(connection) => connection,
                None => Box::new(self.connect(auth.as_ref(), outgoing, within).await?),
            };
            match connection.publish(&publications).await {
                // The server may have closed a connection that was idle.
                Err(Trouble::Broken(_)) if is_reused => {}
                Err(Trouble::Broken(error)) => return Err(CallError::broken(&error).into()),
                Err(Trouble::Refused(failure)) => return Err(failure),
                Ok(()) => {
                    connections.put(key, connection);
                    return Ok((Answer::default(), Ok(())));
                }
            }
        }
    }

    async fn connect(
        &self,
        auth: Option<&Auth>,
        outgoing: &Outgoing,
        within: Duration,
    ) -> Result<NatsConnection, Failure> {
        let host = self.url.host_str().unwrap_or_default();
        let stream = outgoing
            .connect(
                host,
                self.url.port().unwrap_or(4222),
                match self.tls_first {
                    true => Security::Tls(None),
                    false => Security::Plain,
                },
                within,
            )
            .await?;
        let mut stream = BufReader::new(stream);
        let broken = |error: io::Error| Failure::from(CallError::broken(&error));
        let line = read_line(&mut stream).await.map_err(broken)?;
        let info = line
            .strip_prefix("INFO ")
            .and_then(|info| serde_json::from_str::<Value>(info).ok());
        let info = info.ok_or_else(|| Failure::receiver("the server does not speak NATS"))?;
        let says = |name: &str| info.get(name).and_then(Value::as_bool).unwrap_or_default();
        let is_tls = self.url.scheme() == "tls" || says("tls_required");
        if is_tls && !self.tls_first {
            // What was sent in the open before TLS began is not to be read as if it was secure.
            if !stream.buffer().is_empty() {
                return Err(Failure::receiver("the server sent data before TLS began"));
            }
            stream = BufReader::new(
                outgoing
                    .start_tls(stream.into_inner(), host, within)
                    .await?,
            );
        }
        if !says("headers") {
            return Err(Failure::receiver(
                "the server is too old: it knows no headers",
            ));
        }
        let max_payload = info
            .get("max_payload")
            .and_then(Value::as_u64)
            .and_then(|max| usize::try_from(max).ok());
        let mut hello = json!({"verbose": false, "pedantic": false, "tls_required": is_tls, "name": "hub-cloud",
            "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "headers": true,
            "no_responders": true, "echo": false});
        if let Some(hello) = hello.as_object_mut() {
            let challenge = info.get("nonce").and_then(Value::as_str);
            hello.extend(introduction(auth, challenge)?);
        }
        let inbox = format!("_INBOX.{}", hex::encode(random::<16>()));
        let max_payload = max_payload.unwrap_or(1024 * 1024);
        let mut connection = NatsConnection {
            stream,
            inbox,
            max_payload,
            next: 0,
        };
        let hello = format!(
            "CONNECT {hello}\r\nSUB {}.* 1\r\nPING\r\n",
            connection.inbox
        );
        connection.write(hello.as_bytes()).await.map_err(broken)?;
        loop {
            match connection.read().await.map_err(broken)? {
                Operation::Pong => return Ok(connection),
                Operation::Error(failure) => return Err(failure),
                Operation::Reply { .. } | Operation::Nothing => {}
            }
        }
    }
}

/// What a client says of itself, with the server's challenge signed where it has a key.
fn introduction(
    auth: Option<&Auth>,
    challenge: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let unusable = || Failure::Credentials {
        reason: "the credentials of the destination cannot be used: give them again".to_owned(),
    };
    let signed = |key: &UserKey| {
        let challenge = challenge.ok_or_else(|| Failure::Credentials {
            reason: "the server asks for no signature; it has no users with keys".to_owned(),
        })?;
        Ok::<_, Failure>(key.sign(challenge))
    };
    let members = match auth {
        Some(Auth::Bearer { token }) => vec![("auth_token", token.expose_secret().to_owned())],
        Some(Auth::Basic { username, password }) => vec![
            ("user", username.clone()),
            ("pass", password.expose_secret().to_owned()),
        ],
        Some(Auth::Nkey { seed }) => {
            let key = UserKey::of_seed(seed.expose_secret()).ok_or_else(unusable)?;
            vec![("nkey", key.public()), ("sig", signed(&key)?)]
        }
        Some(Auth::Credentials { text }) => {
            let file = CredentialsFile::parse(text.expose_secret()).ok_or_else(unusable)?;
            let jwt = file.jwt.expose_secret().to_owned();
            vec![("jwt", jwt), ("sig", signed(&file.key)?)]
        }
        Some(Auth::Header { .. }) | None => Vec::new(),
    };
    let member = |(name, value): (&str, String)| (name.to_owned(), Value::from(value));
    Ok(members.into_iter().map(member).collect())
}

enum Trouble {
    Broken(io::Error),
    Refused(Failure),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

struct NatsConnection {
    stream: BufReader<OutgoingStream>,
    /// Where acknowledgements arrive.
    inbox: String,
    max_payload: usize,
    next: u64,
}

enum Operation {
    Pong,
    Reply {
        number: u64,
        result: Result<(), Failure>,
    },
    Error(Failure),
    Nothing,
}

impl NatsConnection {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn publish(&mut self, publications: &[Publication]) -> Result<(), Trouble> {
        for group in publications.chunks(MAX_IN_FLIGHT) {
            let mut bytes = Vec::new();
            let mut waiting = HashMap::new();
            for Publication {
                subject,
                id,
                payload,
                trace,
            } in group
            {
                let trace =
                    trace.map_or_else(String::new, |trace| format!("{TRACEPARENT}: {trace}\r\n"));
                let head = format!("NATS/1.0\r\nNats-Msg-Id: {id}\r\n{trace}\r\n");
                let total = head.len() + payload.len();
                if total > self.max_payload {
                    let failure = Failure::message("the message is longer than the server takes");
                    return Err(Trouble::Refused(failure));
                }
                self.next += 1;
                waiting.insert(self.next, ());
                let line = format!(
                    "HPUB {subject} {}.{} {} {total}\r\n",
                    self.inbox,
                    self.next,
                    head.len()
                );
                for part in [line.as_bytes(), head.as_bytes(), payload, b"\r\n"] {
                    bytes.extend(part);
                }
            }
            self.write(&bytes).await?;
            while !waiting.is_empty() {
                match self.read().await? {
                    Operation::Reply { number, result } if waiting.remove(&number).is_some() => {
                        result.map_err(Trouble::Refused)?;
                    }
                    Operation::Error(failure) => return Err(Trouble::Refused(failure)),
                    Operation::Reply { .. } | Operation::Pong | Operation::Nothing => {}
                }
            }
        }
        Ok(())
    }

    /// Reads one operation of the server.
    async fn read(&mut self) -> io::Result<Operation> {
        let line = read_line(&mut self.stream).await?;
        let mut words = line.split_ascii_whitespace();
        match words.next().unwrap_or_default() {
            "PONG" => Ok(Operation::Pong),
            "PING" => {
                self.write(b"PONG\r\n").await?;
                Ok(Operation::Nothing)
            }
            // What it says of other servers is not followed.
            "INFO" | "+OK" => Ok(Operation::Nothing),
            "-ERR" => Ok(Operation::Error(refused(&line))),
            kind @ ("MSG" | "HMSG") => {
                let words: Vec<&str> = words.collect();
                let number = words
                    .first()
                    .and_then(|subject| subject.rsplit_once('.')?.1.parse().ok());
                let head = match (kind, words.as_slice()) {
                    ("HMSG", [.., head, _]) => head.parse::<usize>().map_err(|_| strange())?,
                    _ => 0,
                };
                let total = words.last().and_then(|word| word.parse::<usize>().ok());
                let total = total
                    .filter(|total| *total <= MAX_PAYLOAD && head <= *total)
                    .ok_or_else(strange)?;
                let mut payload = vec![0; total + 2];
                self.stream.read_exact(&mut payload).await?;
                payload.truncate(total);
                let Some(number) = number else {
                    return Ok(Operation::Nothing);
                };
                let (head, body) = payload.split_at_checked(head).ok_or_else(strange)?;
                Ok(Operation::Reply {
                    number,
                    result: acknowledged(head, body),
                })
            }
            _ => Err(strange()),
        }
    }
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not what a NATS server says")
}

async fn read_line(stream: &mut BufReader<OutgoingStream>) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(MAX_LINE).read_until(b'\n', &mut line).await?;
    match line.pop() {
        Some(b'\n') => Ok(String::from_utf8_lossy(&line).trim_end().to_owned()),
        Some(_) => Err(strange()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// An error of the server, which may concern any message in flight.
fn refused(line: &str) -> Failure {
    let text: String = line
        .trim_start_matches("-ERR")
        .trim()
        .trim_matches('\'')
        .chars()
        .take(200)
        .collect();
    let lower = text.to_ascii_lowercase();
    let is = |part: &str| lower.contains(part);
    if is("authorization") || is("authentication") || is("permissions violation") {
        return Failure::Credentials {
            reason: format!("the server refused the credentials: {text}"),
        };
    }
    match is("maximum payload") {
        true => Failure::message("the message is longer than the server takes"),
        false => Failure::receiver(format!("the server said: {text}")),
    }
}

/// The answer of a stream.
fn acknowledged(head: &[u8], body: &[u8]) -> Result<(), Failure> {
    if head.starts_with(b"NATS/1.0 503") {
        return Err(Failure::receiver(
            "no stream of the server takes this subject",
        ));
    }
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(error) = answer.get("error") {
        let text: String = error
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect();
        // The message is longer than the stream allows.
        return Err(match error.get("err_code").and_then(Value::as_u64) {
            Some(10_054) => Failure::message(format!("the stream refused the message: {text}")),
            _ => Failure::receiver(format!("the stream refused the message: {text}")),
        });
    }
    match answer.get("stream").is_some_and(Value::is_string) {
        true => Ok(()),
        // Somebody else subscribes to the subject and answered.
        false => Err(Failure::receiver("what answered is no stream")),
    }
}
