//! Follows a stream of server-sent events over any number of connections: each begins after the
//! last event of the one before, so nothing is lost and nothing is repeated.

use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use hub_protocol::Timestamp;
use serde_json::Value;

use crate::client::now;
use crate::{Call, Client, Error};

/// The largest event that is read.
const MAX_EVENT_BYTES: usize = 16 << 20;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// What a stream tells.
#[derive(Debug)]
pub enum Event {
    /// A record.
    Record(Value),
    /// The connection is lost; the stream tries to resume.
    Lost { reason: String },
    /// The stream goes on after the last record before the loss: what was received meanwhile
    /// follows.
    Resumed {
        after: Option<Timestamp>,
        lost_for: Duration,
    },
}

type Body = Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<Vec<u8>>> + Send>>;

pub struct Stream {
    client: Client,
    call: Call,
    body: Option<Body>,
    parser: Parser,
    last_id: Option<String>,
    lost_at: Option<Timestamp>,
    pause: Duration,
}

impl Stream {
    pub(crate) fn new(client: Client, call: Call) -> Self {
        let parser = Parser::default();
        Self {
            client,
            call,
            body: None,
            parser,
            last_id: None,
            lost_at: None,
            pause: FIRST_PAUSE,
        }
    }

    /// Begins after this time instead of now.
    pub fn after(mut self, time: Option<Timestamp>) -> Self {
        self.last_id = time.map(|time| time.to_string());
        self
    }

    /// Connects, so that what is wrong from the start is told at once.
    pub async fn open(&mut self) -> Result<(), Error> {
        let response = self.client.send(&self.call, self.last_id.as_deref()).await;
        self.read_from(response.map_err(|(error, _)| error)?);
        Ok(())
    }

    /// Waits for what comes next. An error is final: the stream has ended.
    pub async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some((id, data)) = self.parser.next()? {
                let record = serde_json::from_str(&data);
                let record = record
                    .map_err(|error| Error::Unexpected(format!("an event is no JSON: {error}")))?;
                self.last_id = Some(id);
                return Ok(Event::Record(record));
            }
            let Some(body) = &mut self.body else {
                match self.connect().await? {
                    Some(event) => return Ok(event),
                    None => continue,
                }
            };
            match body.next().await {
                Some(Ok(chunk)) => self.parser.push(&chunk),
                ended => {
                    self.body = None;
                    self.parser = Parser::default();
                    // A stream that the service has ended goes on at once.
                    if let Some(Err(error)) = ended {
                        let error = self.client.unreachable(&error);
                        return Ok(self.lost(&error));
                    }
                }
            }
        }
    }

    /// Connects, and waits after a failed attempt.
    async fn connect(&mut self) -> Result<Option<Event>, Error> {
        match self.client.send(&self.call, self.last_id.as_deref()).await {
            Ok(response) => {
                self.read_from(response);
                let lost_at = self.lost_at.take();
                Ok(lost_at.map(|lost_at| {
                    let micros = now().as_micros().saturating_sub(lost_at.as_micros());
                    let lost_for = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
                    Event::Resumed {
                        after: self.last_id.as_ref().and_then(|id| id.parse().ok()),
                        lost_for,
                    }
                }))
            }
            Err((error, _)) if error.is_temporary() => {
                if self.lost_at.is_none() {
                    return Ok(Some(self.lost(&error)));
                }
                let asked = match &error {
                    Error::Refused { retry_after, .. } => *retry_after,
                    _ => None,
                };
                tokio::time::sleep(asked.unwrap_or(self.pause).min(LONGEST_PAUSE)).await;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Ok(None)
            }
            Err((error, _)) => Err(error),
        }
    }

    fn read_from(&mut self, response: reqwest::Response) {
        // Where a stream begins is known before its first event.
        let begins = response
            .headers()
            .get("date")
            .and_then(|date| date.to_str().ok())
            .and_then(http_date);
        self.last_id = self.last_id.take().or(begins.map(|time| time.to_string()));
        self.body = Some(Box::pin(
            response
                .bytes_stream()
                .map(|chunk| chunk.map(|bytes| bytes.to_vec())),
        ));
        self.pause = FIRST_PAUSE;
    }

    fn lost(&mut self, error: &Error) -> Event {
        self.lost_at = Some(now());
        Event::Lost {
            reason: error.to_string(),
        }
    }
}

/// The time in a `Date` header: `Sat, 31 Jan 2026 08:00:00 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut parts = text.split(' ').skip(1);
    let (day, month, year, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    format!("{year}-{month:02}-{day}T{time}Z").parse().ok()
}

/// The bytes of a connection that are no whole event yet.
#[derive(Default)]
struct Parser {
    bytes: Vec<u8>,
}

impl Parser {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    /// The id and the data of the next event that has both. Comments keep the connection alive.
    fn next(&mut self) -> Result<Option<(String, String)>, Error> {
        while let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&block);
            let field = |name: &str| {
                text.lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::trim)
            };
            if let (Some(id), Some(data)) = (field("id:"), field("data:")) {
                return Ok(Some((id.to_owned(), data.to_owned())));
            }
        }
        match self.bytes.len() > MAX_EVENT_BYTES {
            true => Err(Error::Unexpected(
                "an event of the stream is too large".to_owned(),
            )),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text =
            ": ping\n\nid: 1\nevent: a\ndata: {\"x\":1}\n\n: ping\n\nid: 2\ndata: {}\n\nid: 3\nda";
        let mut parser = Parser::default();
        let mut found = Vec::new();
        for byte in text.bytes() {
            parser.push(&[byte]);
            while let Some(event) = parser.next().expect("small events") {
                found.push(event);
            }
        }
        let owned = |id: &str, data: &str| (id.to_owned(), data.to_owned());
        assert_eq!(found, [owned("1", "{\"x\":1}"), owned("2", "{}")]);
    }

    #[test]
    fn dates_are_read() {
        let time = http_date("Sat, 31 Jan 2026 08:00:00 GMT").expect("a time");
        assert_eq!(time.to_string(), "2026-01-31T08:00:00.000000Z");
        assert_eq!(http_date("nonsense"), None);
    }
}
