//! Notifications between replicas. A message only announces that the database holds something new,
//! so a lost message delays a reader and loses nothing. The bus does not know what its topics mean.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;

const SUBJECT: &str = "hub-cloud.news";

/// Receives the bodies of one topic's messages. A message that finds the channel full is dropped.
#[derive(Debug)]
pub struct Subscription {
    pub topic: &'static str,
    pub messages: mpsc::Sender<String>,
}

/// Logs once that the bus is away, and once that it is back.
fn log_change(is_away: &AtomicBool, event: &async_nats::Event) {
    match event {
        async_nats::Event::Connected if is_away.swap(false, Ordering::Relaxed) => {
            tracing::warn!("the bus is back");
        }
        async_nats::Event::Connected => tracing::info!("connected to the bus"),
        async_nats::Event::Disconnected | async_nats::Event::ClientError(_)
            if !is_away.swap(true, Ordering::Relaxed) =>
        {
            tracing::warn!(
                reason = %event,
                "the bus is away; changes of other replicas are found by polling until it is back"
            );
        }
        _ => {}
    }
}

/// The connection between replicas.
#[derive(Clone, Debug)]
pub enum Bus {
    /// No bus: there is one process, or replicas poll the database.
    Local,
    Nats(async_nats::Client),
}

impl Bus {
    /// Connects in the background and reconnects on its own. While the bus is unreachable, other
    /// replicas notice changes later, and everything keeps working.
    pub async fn open(url: Option<&SecretString>) -> Result<Self, async_nats::ConnectError> {
        let Some(url) = url else {
            return Ok(Self::Local);
        };
        let is_away = Arc::new(AtomicBool::new(false));
        let options = async_nats::ConnectOptions::new()
            .name("hub-cloud")
            .event_callback(move |event| {
                log_change(&is_away, &event);
                std::future::ready(())
            })
            .retry_on_initial_connect()
            .connection_timeout(Duration::from_secs(5));
        Ok(Self::Nats(options.connect(url.expose_secret()).await?))
    }

    /// Whether messages of other replicas arrive here.
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Nats(_))
    }

    /// Sends a message to all other replicas. `topic` has no blanks.
    pub async fn publish(&self, topic: &'static str, body: &str) {
        if let Self::Nats(client) = self
            && let Err(error) = client
                .publish(SUBJECT, format!("{topic} {body}").into())
                .await
        {
            tracing::debug!(topic, %error, "bus message not sent; other replicas will find the change by polling");
        }
    }

    /// Delivers messages of other replicas to the subscriptions until the bus is closed.
    pub async fn dispatch(self, subscriptions: Vec<Subscription>) {
        let Self::Nats(client) = self else { return };
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
