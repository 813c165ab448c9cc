//! The least HTTP/1.1 that a receiver needs, since it shares the machine with the service: it reads
//! requests, counts the events in them, notes when marked ones came, and answers 200.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const ID: &[u8] = b"\"bleEventId\":";
const MARK: &[u8] = b"\"name\":\"mark-";

pub struct Receiver {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: AtomicUsize,
    events: AtomicUsize,
    /// When each mark came first.
    marks: Mutex<HashMap<usize, Instant>>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/in", listener.local_addr().expect("an address"));
        let shared: Arc<Shared> = Arc::default();
        let accepting = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, accepting.clone()));
            }
        });
        Self { url, shared }
    }

    pub fn events(&self) -> usize {
        self.shared.events.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Waits for so many events in all.
    pub async fn until(&self, events: usize, within: Duration) {
        let deadline = Instant::now() + within;
        while self.events() < events {
            assert!(
                Instant::now() < deadline,
                "{} of {events} events came within {within:?}",
                self.events()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// When marks came, since the last time.
    pub fn take_marks(&self) -> HashMap<usize, Instant> {
        std::mem::take(&mut *self.shared.marks.lock().expect("marks"))
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(64 * 1024);
    loop {
        let Some(head_end) = find(&buffer, b"\r\n\r\n") else {
            match stream.read_buf(&mut buffer).await {
                Ok(1..) => continue,
                _ => return,
            }
        };
        let head = String::from_utf8_lossy(&buffer[..head_end]).to_ascii_lowercase();
        let length = head
            .split("\r\n")
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length
            .and_then(|length| length.trim().parse().ok())
            .expect("a length");
        let end = head_end + 4 + length;
        while buffer.len() < end {
            match stream.read_buf(&mut buffer).await {
                Ok(1..) => {}
                _ => return,
            }
        }
        note(&buffer[head_end + 4..end], &shared);
        buffer.drain(..end);
        if stream.write_all(ANSWER).await.is_err() {
            return;
        }
    }
}

fn note(body: &[u8], shared: &Shared) {
    let now = Instant::now();
    let mut events = 0;
    let mut rest = body;
    while let Some(at) = find(rest, ID) {
        events += 1;
        rest = &rest[at + ID.len()..];
    }
    let mut rest = body;
    while let Some(at) = find(rest, MARK) {
        rest = &rest[at + MARK.len()..];
        let digits: String = rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .map(|byte| char::from(*byte))
            .collect();
        shared
            .marks
            .lock()
            .expect("marks")
            .entry(digits.parse().expect("a number"))
            .or_insert(now);
    }
    shared.requests.fetch_add(1, Ordering::Relaxed);
    shared.events.fetch_add(events, Ordering::Relaxed);
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, pattern)
}
