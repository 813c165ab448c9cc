//! How replicas tell each other that there is something new. Only that: the database is what they read it from, so a lost message costs a
//! moment and nothing else.

use std::time::Duration;

use futures_util::StreamExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;

use hub_protocol::{HubUuid, TenantUuid};

use crate::ingest::Kind;

const SUBJECT: &str = "hub-cloud.news";

/// What one replica tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Records of a tenant were committed, up to this id.
    Records { tenant_uuid: TenantUuid, kind: Kind, last_id: i64 },
    /// What a hub is to be has changed, or its token.
    DesiredState(HubUuid),
}

impl News {
    fn to_text(self) -> String {
        match self {
            Self::Records { tenant_uuid, kind, last_id } => format!("records {tenant_uuid} {} {last_id}", kind.name()),
            Self::DesiredState(hub_uuid) => format!("desired-state {hub_uuid}"),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        match parts.as_slice() {
            ["records", tenant_uuid, kind, last_id] => Some(Self::Records {
                tenant_uuid: tenant_uuid.parse().ok()?,
                kind: Kind::from_name(kind)?,
                last_id: last_id.parse().ok()?,
            }),
            ["desired-state", hub_uuid] => hub_uuid.parse().ok().map(Self::DesiredState),
            _ => None,
        }
    }
}

/// What connects the replicas.
#[derive(Clone, Debug)]
pub enum Bus {
    /// There is one process, or replicas look at the database from time to time.
    Local,
    Nats(async_nats::Client),
}

impl Bus {
    /// Connects in the background, again and again: a bus that is away slows streams between replicas and stops nothing.
    pub async fn open(url: Option<&SecretString>) -> Result<Self, async_nats::ConnectError> {
        let Some(url) = url else { return Ok(Self::Local) };
        let options = async_nats::ConnectOptions::new()
            .name("hub-cloud")
            .retry_on_initial_connect()
            .connection_timeout(Duration::from_secs(5));
        Ok(Self::Nats(options.connect(url.expose_secret()).await?))
    }

    /// Whether news from other replicas arrives by itself.
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Nats(_))
    }

    pub async fn tell(&self, news: News) {
        if let Self::Nats(client) = self
            && let Err(error) = client.publish(SUBJECT, news.to_text().into()).await
        {
            tracing::debug!(%error, "other replicas were not told of news; they will find it by themselves");
        }
    }

    /// Passes on what other replicas say, until the receiver is gone.
    pub async fn forward(self, to: mpsc::Sender<News>) {
        let Self::Nats(client) = self else { return };
        let mut messages = match client.subscribe(SUBJECT).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(%error, "cannot listen to the bus; new records of other replicas will be found later");
                return;
            }
        };
        while let Some(message) = messages.next().await {
            let news = std::str::from_utf8(&message.payload).ok().and_then(News::from_text);
            let Some(news) = news else { continue };
            // A full queue means that the publisher is behind; everyone looks at the database anyway.
            if let Err(mpsc::error::TrySendError::Closed(_)) = to.try_send(news) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_reads_as_written() {
        let records = News::Records { tenant_uuid: TenantUuid::new(), kind: Kind::Logs, last_id: 42 };
        for news in [records, News::DesiredState(HubUuid::new())] {
            assert_eq!(News::from_text(&news.to_text()), Some(news));
        }
        assert_eq!(News::from_text("records x LOGS 1"), None);
    }
}
