//! How replicas tell each other that there is something new. Only that: the database is what they read it from, so a lost message costs a
//! moment and nothing else.

use std::time::Duration;

use futures_util::StreamExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;

use hub_protocol::TenantUuid;

use crate::ingest::Kind;

const SUBJECT: &str = "hub-cloud.published";

/// Records of a tenant were committed, up to this id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    pub tenant_uuid: TenantUuid,
    pub kind: Kind,
    pub last_id: i64,
}

impl Wake {
    fn to_text(self) -> String {
        format!("{} {} {}", self.tenant_uuid, self.kind.name(), self.last_id)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let tenant_uuid = parts.next()?.parse().ok()?;
        let kind = Kind::from_name(parts.next()?)?;
        let last_id = parts.next()?.parse().ok()?;
        Some(Self { tenant_uuid, kind, last_id })
    }
}

/// What connects the replicas.
#[derive(Clone)]
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

    pub async fn wake(&self, wake: Wake) {
        if let Self::Nats(client) = self
            && let Err(error) = client.publish(SUBJECT, wake.to_text().into()).await
        {
            tracing::debug!(%error, "another replica was not told of new records; it will find them by itself");
        }
    }

    /// Passes on what other replicas say, until the receiver is gone.
    pub async fn forward(self, to: mpsc::Sender<Wake>) {
        let Self::Nats(client) = self else { return };
        let mut messages = match client.subscribe(SUBJECT).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(%error, "cannot listen to the bus; new records of other replicas will be found later");
                return;
            }
        };
        while let Some(message) = messages.next().await {
            let wake = std::str::from_utf8(&message.payload).ok().and_then(Wake::from_text);
            let Some(wake) = wake else { continue };
            // A full queue means that the publisher is behind; it looks at the database anyway.
            if let Err(mpsc::error::TrySendError::Closed(_)) = to.try_send(wake) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_reads_as_written() {
        let wake = Wake { tenant_uuid: TenantUuid::new(), kind: Kind::Logs, last_id: 42 };
        assert_eq!(Wake::from_text(&wake.to_text()), Some(wake));
        assert_eq!(Wake::from_text("x LOGS 1"), None);
    }
}
