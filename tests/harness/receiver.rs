//! A receiver of webhooks in the test's process: it records requests, and answers as configured.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::sync::watch;

/// A request, and how it was answered.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub at: Instant,
    pub status: StatusCode,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The ids of the events in it: the body is one, or a list of them.
    pub fn event_ids(&self) -> Vec<i64> {
        let id = |event: &Value| event["bleEventId"].as_i64().expect("an event with its id");
        match self.json() {
            Value::Array(events) => events.iter().map(id).collect(),
            event => vec![id(&event)],
        }
    }
}

/// How a request is answered, and after how long.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub status: u16,
    pub after: Duration,
}

impl Answer {
    pub fn now(status: u16) -> Self {
        Self {
            status,
            after: Duration::ZERO,
        }
    }
}

/// An answer: its status, and its headers.
pub type Answered = (u16, Vec<(&'static str, String)>);

type Answering = Arc<dyn Fn(&Received) -> Answer + Send + Sync>;

#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    received: Mutex<Vec<Received>>,
    answering: Mutex<Answering>,
    /// For the next requests, before that.
    in_turn: Mutex<VecDeque<Answered>>,
    count: watch::Sender<usize>,
}

impl Receiver {
    /// One that accepts everything.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let answering: Answering = Arc::new(|_| Answer::now(200));
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            answering: Mutex::new(answering),
            in_turn: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let app = Router::new()
            .fallback(receive)
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, shared }
    }

    /// From now on, requests are answered so.
    pub fn answer(&self, answering: impl Fn(&Received) -> Answer + Send + Sync + 'static) {
        *self.shared.answering.lock().expect("the answer") = Arc::new(answering);
    }

    /// The next requests are answered so.
    pub fn answer_in_turn(&self, answers: impl IntoIterator<Item = Answered>) {
        self.shared
            .in_turn
            .lock()
            .expect("the answers")
            .extend(answers);
    }

    /// Takes what was received.
    pub fn take(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received())
    }

    pub fn received(&self) -> MutexGuard<'_, Vec<Received>> {
        self.shared.received.lock().expect("what was received")
    }

    /// What came to one path.
    pub fn at(&self, path: &str) -> Vec<Received> {
        self.received()
            .iter()
            .filter(|one| one.path == path)
            .cloned()
            .collect()
    }

    /// Those after the first `count`.
    pub fn received_from(&self, count: usize) -> Vec<Received> {
        self.shared
            .received
            .lock()
            .expect("the requests")
            .get(count..)
            .unwrap_or_default()
            .to_vec()
    }

    /// Waits until what was received is as wanted.
    pub async fn until(&self, within: Duration, mut wanted: impl FnMut(&[Received]) -> bool) {
        let mut count = self.shared.count.subscribe();
        let arrived = tokio::time::timeout(within, async {
            loop {
                count.mark_unchanged();
                if wanted(&self.received()) {
                    return;
                }
                count.changed().await.expect("the receiver runs");
            }
        });
        assert!(
            arrived.await.is_ok(),
            "not received within {within:?}; {} requests came",
            self.received().len()
        );
    }
}

async fn receive(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (path, at, status) = (uri.path().to_owned(), Instant::now(), StatusCode::OK);
    let mut received = Received {
        path,
        headers,
        body,
        at,
        status,
    };
    let in_turn = shared.in_turn.lock().expect("the answers").pop_front();
    let answering = shared.answering.lock().expect("the answer").clone();
    let (answer, headers) = match in_turn {
        Some((status, headers)) => (Answer::now(status), headers),
        None => (answering(&received), Vec::new()),
    };
    received.status = StatusCode::from_u16(answer.status).expect("a status");
    let mut response = received.status.into_response();
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, value.parse().expect("a header value"));
    }
    tokio::time::sleep(answer.after).await;
    shared
        .received
        .lock()
        .expect("what was received")
        .push(received);
    shared.count.send_modify(|count| *count += 1);
    response
}
