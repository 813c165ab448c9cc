//! Follows a stream of server-sent events over any number of connections: each begins after the
//! last event of the one before, so nothing is lost and nothing is repeated.

use std::collections::VecDeque;
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

/// An event of a stream, or a change of its connection.
#[derive(Debug)]
pub enum Event {
    /// A record.
    Record(Value),
    /// The connection is lost; the stream tries to resume.
    Lost { reason: String },
    /// The connection is resumed after the last record before the loss; records that the service
    /// received meanwhile follow.
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

    /// Connects, so that a wrong address or a missing permission fails at once.
    pub async fn open(&mut self) -> Result<(), Error> {
        let response = self.client.send(&self.call, self.last_id.as_deref()).await;
        self.read_from(response.map_err(|(error, _)| error)?);
        Ok(())
    }

    /// Waits for the next event. An error ends the stream; the next call connects after the last
    /// record.
    pub async fn next(&mut self) -> Result<Event, Error> {
        let next = self.read().await;
        if next.is_err() {
            self.body = None;
            self.parser = Parser::default();
        }
        next
    }

    async fn read(&mut self) -> Result<Event, Error> {
        loop {
            if let Some((id, data)) = self.parser.next() {
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
                Some(Ok(chunk)) => self.parser.push(&chunk)?,
                ended => {
                    self.body = None;
                    self.parser = Parser::default();
                    // A stream that the service ended is resumed at once.
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
        // The start of the stream, for a loss before its first event.
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

/// Parses server-sent events (WHATWG HTML, 9.2) from chunks of any size.
#[derive(Default)]
struct Parser {
    line: Vec<u8>,
    /// Id and data of the event that is not complete yet.
    id: Option<String>,
    data: Option<String>,
    complete: VecDeque<(String, String)>,
}

impl Parser {
    fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
            }
            let length = self.line.len() + self.data.as_ref().map_or(0, String::len);
            if length > MAX_EVENT_BYTES {
                return Err(Error::Unexpected(
                    "an event of the stream is too large".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &str) {
        if line.is_empty() {
            // Without both there is no event: comments keep the connection alive.
            if let (Some(id), Some(data)) = (self.id.take(), self.data.take()) {
                self.complete.push_back((id, data));
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments, event type and retry time are not used.
            _ => {}
        }
    }

    /// The id and the data of the next complete event.
    fn next(&mut self) -> Option<(String, String)> {
        self.complete.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": ping\n\nretry: 1000\n\nid: 1\nevent: ble_event\ndata: {\"a\":1}\n\n\
                          : ping\n\nid: 2\r\ndata: b\r\ndata:é\r\n\r\nid: 3\ndata: cut";

    #[test]
    fn events_are_parsed_from_chunks_of_any_size() {
        for size in 1..=STREAM.len() {
            let mut parser = Parser::default();
            for chunk in STREAM.as_bytes().chunks(size) {
                parser.push(chunk).expect("small events");
            }
            let found: Vec<_> = std::iter::from_fn(|| parser.next()).collect();
            let owned = |id: &str, data: &str| (id.to_owned(), data.to_owned());
            let expected = [owned("1", "{\"a\":1}"), owned("2", "b\né")];
            assert_eq!(found, expected, "in chunks of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_refused() {
        let mut parser = Parser::default();
        let chunk = vec![b'x'; MAX_EVENT_BYTES];
        parser.push(&chunk).expect("within the limit");
        assert!(parser.push(b"x").is_err());
    }

    #[test]
    fn dates_are_read() {
        let time = http_date("Sat, 31 Jan 2026 08:00:00 GMT").expect("a time");
        assert_eq!(time.to_string(), "2026-01-31T08:00:00.000000Z");
        assert_eq!(http_date("nonsense"), None);
    }
}
