//! A reader of a live stream that loses its connection again and again and resumes with
//! `Last-Event-ID`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::client::Client;

/// An event as it came: its id and its data.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: String,
    pub data: Value,
}

/// A reader at work. Dropping it ends it.
pub struct Follower {
    seen: Arc<Mutex<Vec<Event>>>,
    task: JoinHandle<()>,
}

/// Older than every record: a reader that begins here misses none.
const THE_BEGINNING: &str = "2000-01-01T00:00:00.000000Z";
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

impl Follower {
    /// Follows from the beginning, cutting the connection after at most so many events, at random.
    pub fn start(client: &Client, path: &str, most_events: usize, seed: u64) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (client, path, kept) = (client.clone(), path.to_owned(), seen.clone());
        let task = tokio::spawn(async move {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut last_id = THE_BEGINNING.to_owned();
            loop {
                let cut_after = random.random_range(1..=most_events);
                // The service may be down; this reader reconnects.
                let _ = read(&client, &path, &mut last_id, cut_after, &kept).await;
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
        });
        Self { seen, task }
    }

    /// Everything seen so far, in the order it came.
    pub fn seen(&self) -> Vec<Event> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until so many events were seen.
    pub async fn until(&self, count: usize) {
        while self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
            < count
        {
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection. An event counts once the blank line behind it has come (WHATWG HTML, 9.2.6).
async fn read(
    client: &Client,
    path: &str,
    last_id: &mut String,
    most: usize,
    seen: &Mutex<Vec<Event>>,
) -> reqwest::Result<()> {
    let response = client
        .get(path)
        .header("last-event-id", last_id.as_str())
        .send()
        .await?
        .error_for_status()?;
    let mut chunks = response.bytes_stream();
    let (mut text, mut event, mut count) = (Vec::new(), Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        text.extend_from_slice(&chunk?);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&text[..end]).into_owned();
            text.drain(..=end);
            if !line.is_empty() {
                event.push(line);
                continue;
            }
            let field = |name: &str| {
                event
                    .iter()
                    .find_map(|line: &String| line.strip_prefix(name))
            };
            if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
                last_id.clear();
                last_id.push_str(id);
                let data = serde_json::from_str(data).expect("data of an event is JSON");
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Event {
                        id: id.to_owned(),
                        data,
                    });
                count += 1;
                if count == most {
                    return Ok(());
                }
            }
            event.clear();
        }
    }
    Ok(())
}
