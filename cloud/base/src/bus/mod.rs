//! Notifications between replicas. A message only announces that the database holds something new,
//! so a lost message delays a reader and loses nothing: readers also ask the database, often while
//! no bus is connected ([`Polls`]). The bus does not know what its topics mean.

mod polls;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{mpsc, watch};

pub use polls::Polls;

const SUBJECT: &str = "hub-cloud.news";
/// A bus that does not answer two of these in a row is away.
const PING_INTERVAL: Duration = Duration::from_millis(400);
/// How long a message may wait to be sent. Readers find the change by polling.
const SEND_TIME: Duration = Duration::from_secs(1);

/// Receives the bodies of one topic's messages. A message that finds the channel full is dropped.
#[derive(Debug)]
pub struct Subscription {
    pub topic: &'static str,
    pub messages: mpsc::Sender<String>,
}

/// The connection between replicas.
#[derive(Clone, Debug)]
pub enum Bus {
    /// No bus: there is one process, or replicas poll the database.
    Local,
    Nats {
        client: async_nats::Client,
        /// Whether messages of other replicas arrive here now.
        connected: watch::Receiver<bool>,
    },
}

/// Notes whether the bus is connected. Logs once that it is away, and once that it is back.
fn note_change(connected: &watch::Sender<bool>, is_away: &mut bool, event: &async_nats::Event) {
    match event {
        async_nats::Event::Connected => {
            match std::mem::take(is_away) {
                true => tracing::warn!("the bus is back"),
                false => tracing::info!("connected to the bus"),
            }
            connected.send_replace(true);
        }
        async_nats::Event::Disconnected | async_nats::Event::ClientError(_) => {
            if !std::mem::replace(is_away, true) {
                tracing::warn!(
                    reason = %event,
                    "the bus is away; changes of other replicas are found by polling until it is back"
                );
            }
            if matches!(event, async_nats::Event::Disconnected) {
                connected.send_replace(false);
            }
        }
        _ => {}
    }
}

impl Bus {
    /// Connects in the background and reconnects on its own. While the bus is unreachable, other
    /// replicas find changes by polling, and everything keeps working.
    pub async fn open(url: Option<&SecretString>) -> Result<Self, async_nats::ConnectError> {
        let Some(url) = url else {
            return Ok(Self::Local);
        };
        let (sender, connected) = watch::channel(false);
        let is_away = Mutex::new(false);
        let options = async_nats::ConnectOptions::new()
            .name("hub-cloud")
            .event_callback(move |event| {
                let mut is_away = is_away.lock().unwrap_or_else(PoisonError::into_inner);
                note_change(&sender, &mut is_away, &event);
                std::future::ready(())
            })
            .ping_interval(PING_INTERVAL)
            .retry_on_initial_connect()
            .connection_timeout(Duration::from_secs(5));
        let client = options.connect(url.expose_secret()).await?;
        Ok(Self::Nats { client, connected })
    }

    /// Fails on a URL that names no server.
    pub fn check(url: &SecretString) -> Result<(), async_nats::ConnectError> {
        async_nats::ToServerAddrs::to_server_addrs(url.expose_secret())?;
        Ok(())
    }

    /// Whether a bus is configured, so that other replicas may listen.
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Nats { .. })
    }

    /// When to ask the database for changes of other replicas: so seldom while the bus announces
    /// them.
    pub fn polls(&self, interval_with_bus: Duration) -> Polls {
        Polls::new(self.connection(), interval_with_bus)
    }

    /// Whether the bus is connected, and when that changes; None without one.
    pub fn connection(&self) -> Option<watch::Receiver<bool>> {
        match self {
            Self::Local => None,
            Self::Nats { connected, .. } => Some(connected.clone()),
        }
    }

    /// Sends a message to all other replicas, if the bus is connected. `topic` has no blanks.
    pub async fn publish(&self, topic: &'static str, body: &str) {
        let Self::Nats { client, connected } = self else {
            return;
        };
        if !*connected.borrow() {
            return;
        }
        let sent = client.publish(SUBJECT, format!("{topic} {body}").into());
        if !matches!(tokio::time::timeout(SEND_TIME, sent).await, Ok(Ok(()))) {
            tracing::debug!(
                topic,
                "bus message not sent; other replicas will find the change by polling"
            );
        }
    }

    /// Delivers messages of other replicas to the subscriptions until the bus is closed.
    pub async fn dispatch(self, subscriptions: Vec<Subscription>) {
        let Self::Nats { client, .. } = self else {
            return;
        };
        let mut messages = match client.subscribe(SUBJECT).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(%error, "cannot subscribe to the bus; changes of other replicas are found by polling");
                return;
            }
        };
        while let Some(message) = messages.next().await {
            let text = std::str::from_utf8(&message.payload).ok();
            let Some((topic, body)) = text.and_then(|text| text.split_once(' ')) else {
                continue;
            };
            for subscription in subscriptions
                .iter()
                .filter(|subscription| subscription.topic == topic)
            {
                let _ = subscription.messages.try_send(body.to_owned());
            }
        }
    }
}
