//! Reads the live stream of server-sent events (WHATWG HTML, 9.2) and resumes it after the last
//! received event.

use std::time::Duration;

use reqwest::Response;
use tokio::sync::mpsc::Sender;

use super::client::{Api, Event, failed};
use super::{Failure, Update};

const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Forwards events until the receiver is closed. The service ends each stream after some minutes;
/// the next one resumes there.
pub async fn follow(api: Api, first: Response, updates: Sender<Update>) {
    let mut parser = Parser::default();
    let mut stream = Some(first);
    while !updates.is_closed() {
        let failure = match stream.take() {
            Some(response) => read(response, &mut parser, &updates).await.err(),
            None => None,
        };
        parser.reset();
        let opened = match failure {
            Some(failure) => Err(failure),
            None => api.open_stream(parser.last_id()).await,
        };
        match opened {
            Ok(response) => stream = Some(response),
            Err(failure) => {
                let _ = updates.send(Update::Error(failure.to_string())).await;
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// Reads one stream until it ends.
async fn read(
    mut response: Response,
    parser: &mut Parser,
    updates: &Sender<Update>,
) -> Result<(), Failure> {
    while let Some(bytes) = response.chunk().await.map_err(|error| failed(&error))? {
        let mut events = Vec::new();
        for data in parser.feed(&bytes) {
            let event: Event = serde_json::from_str(&data)
                .map_err(|error| Failure(format!("the service sent an invalid event: {error}")))?;
            events.push(event);
        }
        if !events.is_empty() && updates.send(Update::Events(events)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Incremental parser: bytes in chunks of any size to the data of events.
#[derive(Default)]
struct Parser {
    line: Vec<u8>,
    data: Option<String>,
    /// Id of the incomplete event; becomes `last_id` when the event is complete.
    id: Option<String>,
    last_id: Option<String>,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line);
                complete.extend(self.take_line(line.trim_end_matches(['\r', '\n'])));
            }
        }
        complete
    }

    fn take_line(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            if let Some(id) = self.id.take() {
                self.last_id = Some(id);
            }
            return self.data.take();
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
        None
    }

    /// Discards an incomplete event: the next stream sends it again.
    fn reset(&mut self) {
        *self = Self {
            last_id: self.last_id.take(),
            ..Self::default()
        };
    }

    fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "retry: 1000\n\nid: 1\nevent: ble_event\ndata: {\"a\":1}\n\n: ping\n\nid: 2\r\ndata: b\r\ndata:é\r\n\r\nid: 3\ndata: cut";

    #[test]
    fn events_are_parsed_from_chunks_of_any_size() {
        for size in 1..STREAM.len() {
            let mut parser = Parser::default();
            let data: Vec<String> = STREAM
                .as_bytes()
                .chunks(size)
                .flat_map(|bytes| parser.feed(bytes))
                .collect();
            assert_eq!(data, ["{\"a\":1}", "b\né"], "in chunks of {size}");
            assert_eq!(
                parser.last_id(),
                Some("2"),
                "an event counts as seen when it is complete"
            );
        }
    }

    #[test]
    fn reset_discards_the_incomplete_event_and_keeps_the_last_id() {
        let mut parser = Parser::default();
        parser.feed(STREAM.as_bytes());
        parser.reset();
        assert_eq!(parser.feed(b"data: c\n\n"), ["c"]);
        assert_eq!(parser.last_id(), Some("2"));
    }
}
